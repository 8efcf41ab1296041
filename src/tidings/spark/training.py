"""What runs where models are trained: each bucket counts its own keys or patterns, and one counts what all share.

Every event of the stream counts in training, also one that satisfies nothing. What is the stream's and not a bucket's
(how many events there were, how fast, how many satisfied each filter) is tallied where the events lie, and the tallies
are put together in a bucket of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidings.forecast.counts import Traffic
from tidings.forecast.learner import Learner
from tidings.forecast.learning import HalfLife
from tidings.forecast.model import filter_key, key_of
from tidings.patterns.state import packed, unpacked
from tidings.spark.buckets import arrived, from_bytes, in_order, prepared, together
from tidings.spark.dealing import Deal, Dealer
from tidings.spark.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.forecast import Model
    from tidings.patterns.detections import Part
    from tidings.patterns.names import Names
    from tidings.patterns.reading import Prepared
    from tidings.patterns.stream import Portion
    from tidings.spark.plan import Opened

TRAFFIC = "traffic"
"""The bucket of the tallies; no portion is called so."""

TRAINED = "bucket STRING, model BINARY"
"""What comes back: of each bucket a model, as its file would hold it."""

PIECE = 1 << 16
"""Events that a bucket takes at once; a learner counts what it has when twice as many have come."""


# Where events lie -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Teach(Deal):
    """Deals every event, and a tally of each piece."""

    half_life: HalfLife | None = None

    def dealer(self) -> Dealer:
        """Return what deals the events of one task."""
        return Teacher(self.plan, self.read, self.half_life)


class Teacher(Dealer):
    """Deals the events of one task to buckets that count them."""

    def __init__(self, plan: Plan, read: tuple[str, ...], half_life: HalfLife | None) -> None:
        """Open the patterns."""
        super().__init__(plan, read)
        self._half_life = half_life

    def besides(self, events: Prepared) -> list[tuple[str, bytes]]:
        """Return the tally."""
        return [(TRAFFIC, tally(events, self._opened.whole._numbered, self._half_life))]

    def counts_all(self, portion: Portion) -> bool:  # noqa: ARG002 - of every portion
        """Send everything: what satisfies nothing is a symbol too."""
        return True

    def clocked(self, portion: Portion) -> bool:  # noqa: ARG002 - of every portion
        """Tell every bucket when the history ends: what may still come after that is not known."""
        return True


def tally(events: Prepared, filters: int, half_life: HalfLife | None) -> bytes:
    """Count events, and those that satisfy each filter; with a half-life in time, as seen from the newest of them."""
    times, newest = events.times, int(events.times.max())
    timed = half_life is not None and half_life.timed
    weights = half_life.weights(times, times, (0, newest)) if half_life and timed else np.ones(len(times))
    satisfied = np.bincount(events.symbols, np.repeat(weights, np.diff(events.symbols_at)), filters)
    header = {"count": len(times), "seen": float(weights.sum()), "oldest": int(times.min()), "newest": newest}
    # How fast events came, lately more than long ago, needs all moments in one order.
    return packed(header, {"filters": satisfied, "times": np.unique(times) if timed else np.empty(0, np.int64)})


# Buckets ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trained:
    """All rows of a bucket, put in order and counted; a model comes back."""

    plan: Plan
    schema: pa.Schema

    def __call__(self, key: tuple[pa.Scalar, ...], dealt: pa.Table) -> pa.Table:
        """Return the bucket's name and its model."""
        name, values, opened = key[0].as_py(), arrived(dealt), self.plan.open()
        if not values:  # it was only told when the history ends
            return self.schema.empty_table()
        if name == TRAFFIC:
            model = traffic_of(values, opened)
        else:
            found = opened.portion(name)
            assert found is not None
            until = int(dealt.column("newest").to_numpy().max())
            model = taught(*found, in_order(together(list(map(from_bytes, values)))), until, opened)
        return pa.table({"bucket": [name], "model": [model.to_bytes()]}, schema=self.schema)


def taught(portion: Portion, number: int, rows: pa.Table, until: int, opened: Opened) -> Model:
    """Return the model of a bucket's rows, which are in order; the history ends at `until`."""
    detector = opened.unfed(portion)
    assert opened.model is not None
    keys = [key_of(told.pattern, told.mode) for told in detector.watched]
    blank = opened.model._like(known={key: opened.model.known[key] for key in keys}, traffic=Traffic(), now=(0, 0))
    learner = Learner(blank, detector.watched, detector._filters, **detector._around)
    listener: Any = learner if len(portion.ways) == 1 else Listening(learner, portion, number)
    detector.listen(listener, reports=any(lesson.group.tracked for lesson in learner.lessons))
    events = prepared(rows, 0, portion, detector._names)
    for start in range(0, len(events), PIECE):
        piece = events.take(np.arange(start, min(start + PIECE, len(events))))
        # Taken, but not tidied up after: a learner calls keys by the numbers that they have here.
        detector._taken(piece, detector._runs())
    learner.now = (learner.now[0], max(learner.now[1], until))
    return learner.model()


class Listening:
    """A learner that leaves out the keys of other buckets.

    An event that gives keys in two ways is in the bucket of each, and here the other key's events are not all there.
    """

    def __init__(self, learner: Learner, portion: Portion, number: int) -> None:
        """Hear for a learner."""
        self._learner, self._portion, self._number = learner, portion, number

    def take(self, events: Prepared, parts: Sequence[Part], base: int, names: Names) -> None:
        """Take events with what they completed."""
        self._learner.take(events, parts, base, names)
        for lesson in self._learner.lessons:
            lesson.fresh = [fresh.take(self._mine(fresh.key, names)) for fresh in lesson.fresh]
        self._learner.settle()

    def _mine(self, keys: np.ndarray, names: Names) -> np.ndarray:
        known, places = np.unique(keys, return_inverse=True)
        mine = [self._portion.bucket_of(names.values[key]) == self._number for key in known.tolist()]
        return np.flatnonzero(np.array(mine, bool)[places.reshape(-1)])


# What all share ---------------------------------------------------------------------------------------


def traffic_of(tallies: Sequence[bytes], opened: Opened) -> Model:
    """Return a model of no pattern, which knows the whole stream."""
    assert opened.model is not None
    half_life = opened.model.settings.half_life
    found = [unpacked(one) for one in tallies]
    newest, oldest = max(told["newest"] for told, _ in found), min(told["oldest"] for told, _ in found)
    first, elapsed, seen, filters = 1.0, float(newest - oldest), 0.0, np.zeros(opened.whole._numbered)
    if half_life is not None and half_life.timed:
        times = np.unique(np.concatenate([arrays["times"] for _, arrays in found]))
        weights = half_life.weights(times, times, (0, newest))
        first, elapsed = float(weights[0]), float((np.diff(times) * weights[1:]).sum())
    for told, arrays in found:
        by = half_life.fading((0, told["newest"]), (0, newest)) if half_life and half_life.timed else 1.0
        seen, filters = seen + by * told["seen"], filters + by * arrays["filters"]
    counted = {name: float(filters[number]) for number, name in _named(opened).items()}
    count = sum(told["count"] for told, _ in found)
    traffic = Traffic(seen, counted, seen - first, elapsed)
    return opened.model._like(known={}, traffic=traffic, now=(count, max(0, newest)))


def _named(opened: Opened) -> Mapping[int, str]:
    """Return what stands for each filter in a model, by its number."""
    whole = opened.whole
    used = [(told.pattern, name) for told in whole.watched for name in told.pattern.used()]
    return {whole._filters[pattern[name].filter]: filter_key(pattern, name) for pattern, name in used}
