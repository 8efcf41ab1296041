"""Timing on a machine with noise: warm up, repeat, report the median and the spread of the repeats.

Everything that is measured here and under `benchmarks/` is timed by these functions. A slow subject is given fewer
events rather than more time: `count_fitting` and `grow_to_fit` say how many fit a budget.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

GROWTH = 8
"""Factor from one trial batch to the next while `grow_to_fit` looks for the largest batch that fits."""

SHORTEST_S = 1e-9
"""Durations below the resolution of the clock count as this one."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured quantity: its unit and the value of each repeat."""

    unit: str
    repeats: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the repeats."""
        return statistics.median(self.repeats)

    @property
    def low(self) -> float:
        """The least repeat."""
        return min(self.repeats)

    @property
    def high(self) -> float:
        """The greatest repeat."""
        return max(self.repeats)

    @property
    def spread(self) -> float:
        """Half the distance from the least to the greatest repeat, as a share of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"unit": self.unit, "median": self.median, "low": self.low, "high": self.high, "repeats": self.repeats}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Figure:
        """Rebuild a figure from `to_dict`."""
        return cls(record["unit"], tuple(record["repeats"]))


def measure_seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Run the work once and return its duration; with `time.process_time` as clock, its processor time."""
    begin = clock()
    work()
    return clock() - begin


def time_repeats(
    work: Callable[[], object],
    *,
    repeat: int,
    budget_s: float = float("inf"),
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the seconds of up to `repeat` runs, after one that is not timed; no run starts beyond the budget."""
    if warm_up:
        work()
    seconds: list[float] = []
    while len(seconds) < repeat and (not seconds or sum(seconds) < budget_s):
        seconds.append(measure_seconds(work, clock))
    return seconds


def time_work(work: Callable[[], object], *, repeat: int = 7) -> Figure:
    """Return the seconds of so many runs, after one that is not timed."""
    return to_figure(time_repeats(work, repeat=repeat), "s")


def to_figure(seconds: list[float], unit: str, *, by: float = 1.0) -> Figure:
    """Return repeats in seconds as a figure of `unit`, each multiplied by `by`."""
    return Figure(unit, tuple(second * by for second in seconds))


def count_fitting(once_s: float, most: int, *, allowed_s: float) -> int:
    """Return how many of `most` units of work fit the time when one takes `once_s`; at least one."""
    return max(1, min(most, int(allowed_s / max(once_s, SHORTEST_S))))


def grow_to_fit(
    work: Callable[[int], object],
    most: int,
    *,
    allowed_s: float,
    prepare: Callable[[int], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[int, float]:
    """Return the largest batch of at most `most` that was tried within the time, and the seconds it took.

    `work(size)` handles one batch; `prepare(size)` runs before it and is not timed. Sizes grow by `GROWTH` as long as
    the next one is expected to fit: one event alone says little about a matcher whose work is mostly per batch.
    """
    size = 1
    while True:
        prepare(size)
        seconds = measure_seconds(partial(work, size), clock)
        if size >= most or seconds * GROWTH > allowed_s:
            return size, seconds
        size = min(most, size * GROWTH)
