"""Timing that a noisy machine can stand: warm up, repeat, report the median and how far repeats lie apart."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured thing: its unit, and what each repeat gave."""

    unit: str
    repeats: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle repeat."""
        return statistics.median(self.repeats)

    @property
    def low(self) -> float:
        """The least."""
        return min(self.repeats)

    @property
    def high(self) -> float:
        """The greatest."""
        return max(self.repeats)

    @property
    def spread(self) -> float:
        """Half the distance from the least to the greatest, as a share of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"unit": self.unit, "median": self.median, "low": self.low, "high": self.high, "repeats": self.repeats}

    @classmethod
    def of(cls, said: dict[str, Any]) -> Figure:
        """Read what `to_dict` returned."""
        return cls(said["unit"], tuple(said["repeats"]))


def seconds_of(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Run the work once and return how long it took; by `time.process_time`, how long it had a processor."""
    begin = clock()
    work()
    return clock() - begin


def repeated(
    work: Callable[[], object],
    *,
    repeat: int,
    budget_s: float,
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the seconds of up to `repeat` runs, after one unmeasured; once the budget is spent, no more are made."""
    if warm_up:
        work()
    found: list[float] = []
    while len(found) < repeat and (not found or sum(found) < budget_s):
        found.append(seconds_of(work, clock))
    return found


def scaled(seconds: list[float], unit: str, *, by: float = 1.0) -> Figure:
    """Return repeats in seconds as a figure of `unit`, each multiplied."""
    return Figure(unit, tuple(second * by for second in seconds))
