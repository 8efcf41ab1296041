"""What runs in the workers that train a model: each bucket counts its own keys or patterns, one counts the stream.

Events come in the order of time, over all tasks. Every event counts, also one that satisfies no filter, and a bucket of
keys knows the positions of its events in the whole stream. Numbers of the whole stream (how many events, how fast, how
many satisfied each filter) are tallied where the events lie, and added up in a bucket of their own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidings.forecast.courses.streams import EventKinds
from tidings.forecast.learning.counts import Traffic
from tidings.forecast.learning.group_counter import HalfLife, count_traffic
from tidings.forecast.learning.learner import Learner, LearningObserver
from tidings.forecast.model import make_pattern_key
from tidings.patterns import Run
from tidings.spark.detect.bucket import STREAM_POSITION, concat_rows, encode_rows, list_packets, read_tables, sort_rows
from tidings.spark.detect.bucket_forecasts import PositionedGaps, find_owned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidings.forecast import Model
    from tidings.forecast.learning.group_counter import PendingWaits
    from tidings.kernels.array_types import IntArray
    from tidings.patterns.detections import ReportBatch
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.portions import Portion
    from tidings.patterns.run.variable_values import ValueNumbers
    from tidings.spark.detect.worker_plan import DetectPlan, OpenPatterns

TRAFFIC = "traffic"
"""The bucket of the tallies; no portion has this name."""

MODEL_ROWS = "bucket STRING, model BINARY"
"""The output: the model of each bucket, in the format of model files."""

PIECE = 1 << 16
"""Events that a bucket processes at once; a learner counts what it has when twice as many have come."""


# In tasks of events -----------------------------------------------------------------------------------


def build_tally(half_life: HalfLife | None, opened: OpenPatterns, events: EncodedEvents) -> tuple[str, bytes]:
    """Count events, which are in order, and those that satisfy each filter; a half-life weighs them from the end."""
    times, kinds, weights = events.times, EventKinds(), np.ones(len(events))
    first, last = int(times[0]), int(times[-1])
    if half_life is not None:
        weights = half_life.compute_weights(np.arange(len(events)), times, (len(events), max(0, last)))
    traffic = count_traffic(kinds.number_kinds(events), times, None, weights, opened.filter_keys, kinds)
    counts = {"count": len(events), "first": first, "last": last, "weight": float(weights[0])}
    return TRAFFIC, json.dumps({"traffic": asdict(traffic), **counts}).encode()


def merge_tallies(tallies: Iterable[bytes], model: Model) -> Model:
    """Return a model without patterns that has the counts of the whole stream, from tallies in order."""
    half_life, traffic, now, last = model.settings.half_life, Traffic(), (0, 0), None
    for tally in map(json.loads, tallies):
        then, now = now, (now[0] + tally["count"], max(now[1], tally["last"]))
        more = Traffic(**tally["traffic"])
        if last is not None:  # the gap between two pieces
            more = more.plus(Traffic(gaps=tally["weight"], elapsed=(tally["first"] - last) * tally["weight"]))
        if half_life is not None:
            traffic = traffic.scale(half_life.compute_fading(then, now))
        traffic, last = traffic.plus(more), tally["last"]
    return model.with_counts(patterns={}, traffic=traffic, now=now)


# Buckets ----------------------------------------------------------------------------------------------


def make_trainer(plan: DetectPlan) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    """Return the function that counts all rows of a bucket, in the order of time, into a row of `MODEL_ROWS`."""

    # A plain function: Spark counts its arguments.
    def train(key: tuple[pa.Scalar, ...], packets: pa.Table) -> pa.Table:
        name, opened = key[0].as_py(), plan.open()
        schema = pa.schema([("bucket", pa.string()), ("model", pa.binary())])
        assert opened.model is not None
        if name == TRAFFIC:
            model = merge_tallies([tally for _, tally in list_packets(packets)], opened.model)
        elif tables := read_tables(packets):
            address = opened.resolve_bucket(name)
            assert address is not None
            end = int(packets.column("seen").to_numpy().sum()), int(packets.column("newest").to_numpy().max())
            model = train_bucket(*address, sort_rows(concat_rows(tables)), end, opened)
        else:  # it has closing packets only
            return schema.empty_table()
        return pa.table({"bucket": [name], "model": [model.to_bytes()]}, schema=schema)

    return train


def train_bucket(portion: Portion, number: int, rows: pa.Table, end: tuple[int, int], opened: OpenPatterns) -> Model:
    """Return the model of a bucket's rows, which are in order; `end` is the number of all events and the last time."""
    assert opened.model is not None
    keys = [make_pattern_key(compiled.pattern, compiled.mode) for compiled in portion.patterns.patterns]
    patterns = {key: opened.model.patterns[key] for key in keys}
    learner = Learner(opened.model.with_counts(patterns=patterns, traffic=Traffic(), now=(0, 0)), portion.patterns)
    observer = LearningObserver(learner)
    if portion.has_keys:
        observer = BucketLearningObserver(learner, portion, number, rows.column(STREAM_POSITION).to_numpy())
    run = Run(portion.patterns, observers=[observer], detects=learner.needs_reports)
    events = encode_rows(rows, 0, portion, run.value_numbers)
    for start in range(0, len(events), PIECE):
        # Fed, but not tidied up after: the learner counts keys by the numbers that they have here.
        run.feed(events.slice(start, min(start + PIECE, len(events))))
    learner.now = (end[0], max(learner.now[1], end[1]))
    return learner.build_model()


class BucketLearningObserver(LearningObserver):
    """Gives a learner the positions of events in the whole stream, and leaves out keys of other buckets.

    `stream_positions` are those of all events that will come.
    """

    def __init__(self, learner: Learner, portion: Portion, number: int, stream_positions: IntArray) -> None:
        super().__init__(learner)
        self._portion, self._number, self._stream_positions = portion, number, stream_positions
        for counter in learner.counters:
            counter.key_gaps = PositionedGaps(stream_positions, 0, counter.key_gaps)

    def on_batch(self, events: EncodedEvents, reports: Sequence[ReportBatch]) -> None:
        """Count events with what they completed."""
        assert self.run is not None
        learner, positions, base = self.learner, self._stream_positions, self.run.position
        counts = [[len(rows) for rows in counter.reports] for counter in learner.counters]
        super().on_batch(events, reports)
        learner.gathered = 0  # counted here: a learner by itself would take a bucket's events for all
        now = (int(positions[base + len(events) - 1]) + 1, learner.now[1])
        for counter, before in zip(learner.counters, counts, strict=True):
            for member, rows, count in zip(counter.group.tracked, counter.reports, before, strict=True):
                new = rows[count:]
                between = member.pattern.absence is not None
                new[:, 1] = self._locate_deadlines(new, events.times, base) if between else positions[new[:, 1]]
            counter.fresh = [self._keep_owned(fresh, self.run.value_numbers) for fresh in counter.fresh]
            counter.count_pending(learner.kinds, now)

    def _locate_deadlines(self, reports: IntArray, times: IntArray, base: int) -> IntArray:
        """Return approximate positions of deadlines, interpolated between the bucket's events before and after them."""
        after = np.minimum(reports[:, 1], base + len(times) - 1)
        before = np.maximum(after - 1, base)
        first, last = times[before - base], times[after - base]
        part = np.clip((reports[:, 2] - first) / np.maximum(last - first, 1), 0, 1)
        low, high = self._stream_positions[before], self._stream_positions[after]
        return np.asarray(low + np.ceil(part * (high - low)).astype(np.int64))

    def _keep_owned(self, fresh: PendingWaits, names: ValueNumbers) -> PendingWaits:
        fresh = replace(fresh, at=self._stream_positions[fresh.at])
        return fresh.select(find_owned(self._portion, self._number, fresh.key, names.values))
