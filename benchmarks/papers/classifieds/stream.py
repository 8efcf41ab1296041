"""Events fed at a rate, whether or not they can be kept up with: what was answered in each second, and how late."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.papers.classifieds.cluster import Cluster

BATCH = 256
"""What waits is taken together, up to so many."""

KEPT = 50
"""The answer to one event in so many is kept, to be compared when nobody is timing."""


@dataclass(frozen=True, slots=True)
class Second:
    """One second of a run: how many events came and were answered, and how late, in milliseconds."""

    at: int
    came: int
    answered: int
    p50: float
    p99: float


@dataclass(slots=True)
class StreamRun:
    """A phase that was fed: its seconds, and some of the answers by the event's number."""

    seconds: list[Second] = field(default_factory=list)
    answers: list[tuple[int, list[str]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Able:
    """The capacity of a cluster: events a second, and processor time of an event on its busiest instance."""

    rate: float
    busiest_us: float


def measure_capacity(cluster: Cluster, events: list[dict[str, Any]], seconds: float) -> Able:
    """Measure the rate of answers when the next event is always waiting."""
    before, begin, count = cluster.read_spent(), time.perf_counter(), 0
    while time.perf_counter() - begin < seconds or count < len(events):
        at = count % len(events)
        count += len(cluster.ask(events[at : at + BATCH // 4]))
    took = time.perf_counter() - begin
    busiest = max(after - earlier for after, earlier in zip(cluster.read_spent(), before, strict=True))
    return Able(count / took, busiest / count * 1e6)


def feed_events(
    cluster: Cluster, events: list[dict[str, Any]], times: NDArray[np.float64], *, seconds: int
) -> StreamRun:
    """Feed events as they arrive, for so long; latency counts from arrival, so waiting in line is part of it.

    What still waits when the time is over is not answered; it counts as come, not as answered.
    """
    run, done = StreamRun(), np.full(len(times), np.nan)
    begin, at = time.perf_counter(), 0
    while at < len(times):
        now = time.perf_counter() - begin
        if now > seconds:
            break
        if times[at] > now:
            time.sleep(times[at] - now)
            continue
        end = min(int(np.searchsorted(times, now, side="right")), at + BATCH)
        which = [number % len(events) for number in range(at, end)]
        answers = cluster.ask([events[number] for number in which])
        done[at:end] = time.perf_counter() - begin
        run.answers += [(which[near], answers[near]) for near in range(-at % KEPT, end - at, KEPT)]
        at = end
    run.seconds = [_count_second(number, times, done) for number in range(seconds)]
    return run


def _count_second(number: int, times: NDArray[np.float64], done: NDArray[np.float64]) -> Second:
    came = int(np.count_nonzero((times >= number) & (times < number + 1)))
    then = (done >= number) & (done < number + 1)
    late = (done[then] - times[then]) * 1e3
    p50, p99 = np.percentile(late, (50, 99)) if len(late) else (np.nan, np.nan)
    return Second(number, came, int(np.count_nonzero(then)), float(p50), float(p99))
