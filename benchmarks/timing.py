"""Timing that a noisy machine can stand: warm up, repeat, report the median and the spread."""

from __future__ import annotations

import platform
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each repetition of one piece of work."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle repetition."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance from the fastest to the slowest, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median

    def rate(self, count: int) -> str:
        """Say how many of `count` things a second holds."""
        return f"{count / self.median:>10,.0f}/s  +-{self.spread:.0%}"


def timed(work: Callable[[], object], *, repeat: int = 7, warm_up: int = 1) -> Timing:
    """Run the work a few times unmeasured, then measured."""
    for _ in range(warm_up):
        work()
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return Timing(tuple(seconds))


def machine() -> str:
    """Name the machine and the Python a figure was measured on."""
    return f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"
