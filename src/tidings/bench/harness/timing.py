"""Timing on a machine with noise: warm up, repeat, report the median and the spread of the repeats.

`tidings bench`, the scoreboard and the papers' studies are timed by these functions, with the clock as an argument:
wall time where a user waits for it, processor time where programs are compared. Programs of `benchmarks/` that time a
stream, processes or older versions (`living.py`, `spark/`, `kinds.py`) read the clock themselves. A slow subject is
given fewer events rather than more time: `count_fitting` and `plan_repeats` say how many fit a budget.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

US = 1e6
"""Microseconds in a second."""

GROWTH = 8
"""Factor from one trial batch to the next while `plan_repeats` looks for the largest batch that fits."""

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

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {"unit": self.unit, "median": self.median, "low": self.low, "high": self.high, "repeats": self.repeats}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Figure:
        """Rebuild a figure from `to_dict`."""
        return cls(record["unit"], tuple(record["repeats"]))


class Clock(StrEnum):
    """Which seconds are counted."""

    WALL = "wall"
    """Those that pass, waiting for the disk and for other programs included."""
    PROCESSOR = "processor"
    """Those that the threads of this process compute; a machine that others use too changes them little."""

    def read(self) -> float:
        """Return the seconds since some moment in the past; differences count."""
        return time.process_time() if self is Clock.PROCESSOR else time.perf_counter()


LEAST_S = {Clock.WALL: 0.0, Clock.PROCESSOR: 0.05}
"""A repeat that takes less than this is made of several rounds.

Entrants of the scoreboard differ by factors of thousands; without rounds, the fastest would be measured by the noise
of the clock and of the scheduler. A matcher of `tidings bench` is measured on whole batches of a thousand events.
"""


def measure_seconds(work: Callable[[], object], clock: Clock = Clock.WALL) -> float:
    """Run the work once and return its duration."""
    begin = clock.read()
    work()
    return clock.read() - begin


def time_repeats(
    work: Callable[[], object],
    *,
    repeat: int,
    budget_s: float = float("inf"),
    warm_up: bool = True,
    clock: Clock = Clock.WALL,
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


# Events in batches -----------------------------------------------------------------------------


class EventTimes(NamedTuple):
    """The time of one event in microseconds: by the clock that was asked for, and on average by the wall clock."""

    figure: Figure
    wall_us: float


def time_events(
    work: Callable[[], object], count: int, *, repeat: int, budget_s: float, clock: Clock = Clock.WALL
) -> EventTimes:
    """Time work that handles `count` events, repeated after a run that is not reported."""
    once_s = measure_seconds(work, clock)
    rounds = max(1, math.ceil(LEAST_S[clock] / max(once_s, US**-1)))

    def work_rounds() -> None:
        for _ in range(rounds):
            work()

    begin = Clock.WALL.read()
    seconds = time_repeats(work_rounds, repeat=repeat, budget_s=budget_s, warm_up=False, clock=clock)
    wall_s = Clock.WALL.read() - begin
    per_event = US / rounds / count
    return EventTimes(to_figure(seconds, "us", by=per_event), wall_s / len(seconds) * per_event)


def count_fitting(once_s: float, most: int, *, allowed_s: float) -> int:
    """Return how many of `most` units of work fit the time when one takes `once_s`; at least one."""
    return max(1, min(most, int(allowed_s / max(once_s, SHORTEST_S))))


class RepeatPlan(NamedTuple):
    """How many events a subject gets, and how many times."""

    events: int
    repeat: int


def plan_repeats(
    work: Callable[[int], object],
    most: int,
    *,
    repeat: int,
    allowed_s: float,
    least: int = 1,
    prepare: Callable[[int], None] = lambda _: None,
    clock: Clock = Clock.WALL,
) -> RepeatPlan:
    """Return how many of at most `most` events fit the time, `repeat` times and once to warm up.

    `work(size)` handles that many events; `prepare(size)` runs before it and is not timed. If fewer than `least`
    events would fit, repeats are given up for events, down to three.
    """
    size, seconds = _grow_batch(work, most, allowed_s=allowed_s / (repeat + 1), prepare=prepare, clock=clock)
    if size >= most:
        return RepeatPlan(most, repeat)
    for times in (repeat, min(3, repeat)):
        count = count_fitting(seconds / size, most, allowed_s=allowed_s / (times + 1))
        if count >= min(least, most):
            break
    return RepeatPlan(count, times)


def _grow_batch(
    work: Callable[[int], object], most: int, *, allowed_s: float, prepare: Callable[[int], None], clock: Clock
) -> tuple[int, float]:
    """Return the largest batch of at most `most` that was tried within the time, and the seconds it took.

    Sizes grow by `GROWTH` as long as the next one is expected to fit: one event alone says little about a matcher
    whose work is mostly per batch.
    """
    size = 1
    while True:
        prepare(size)
        seconds = measure_seconds(partial(work, size), clock)
        if size >= most or seconds * GROWTH > allowed_s:
            return size, seconds
        size = min(most, size * GROWTH)
