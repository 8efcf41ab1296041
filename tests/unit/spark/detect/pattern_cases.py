"""Generated patterns and events for the tests of `ts.detect`, and a stream without Spark to run them on.

`TwsTester` is Spark's stateful operator without a session.
"""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

import tidings as td
from tidings.lang import WrittenPattern
from tidings.model.patterns import Mode
from tidings.spark.detect.bucket_processor import BucketProcessor, make_unpacker
from tidings.spark.detect.bucketing import BucketStep
from tidings.testing.strategies.patterns import patterns

START = datetime(2024, 7, 1, tzinfo=UTC)


COLUMNS = "id BIGINT, ts TIMESTAMP, kind STRING, key INT, other DOUBLE"


LOGIN = """
    fail  = status = 'denied'  and ip = $x
    enter = status = 'success' and ip = $x
    fail{2,} ; enter within 5 min
"""


def at(seconds):
    return START + timedelta(seconds=seconds)


def log(count=120, *, seed=1, gap=2):
    """Return events in the order of time; two of `key` and `other` are the same numbers of different types."""
    rng, now, rows = random.Random(seed), 0, []
    for number in range(count):
        now += rng.choice((0, 0, 1, gap))
        values = (rng.choice((None, 1, 2, 3)), rng.choice((None, 1.0, 2.0, 2.5)))
        rows.append((number, at(now), rng.choice("abcx"), *values))
    return rows


def count_detections_locally(rows, patterns, *, until=None, **options):
    """Return what the local detector says of rows in order."""
    detector = td.Detector(time="ts", **options)
    detector.add_many(patterns)
    names = [column.split()[0] for column in COLUMNS.split(",")]
    events = [dict(zip(names, row, strict=True)) for row in rows]
    detections = [*detector.detect_many(events), *detector.on_time(until or rows[-1][1])]
    return Counter((detection.pattern, detection.at, detection.events) for detection in detections)


def draw_patterns(count, **taste):
    """Return generated patterns, always the same ones."""
    made = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(patterns(most_steps=4, **taste))
    def draw(pattern):
        made.append(pattern)

    draw()
    return made


def in_all_modes(detections):
    modes = [Mode.RESTART, Mode.OVERLAP, Mode.NEXT, Mode.ANY]
    return [WrittenPattern(f"p{n}", pattern, modes[n % 4]) for n, pattern in enumerate(detections)]


PATTERN_TEXTS = in_all_modes(
    [*draw_patterns(16, variables="joins"), *draw_patterns(12, variables=True), *draw_patterns(16)]
)


NAMES = tuple(column.split()[0] for column in COLUMNS.split(","))


TYPES = [pa.int64(), pa.timestamp("us", "UTC"), pa.string(), pa.int32(), pa.float64()]


class BucketStream:
    """A stream without Spark: micro-batches are dealt to buckets, and a watermark moves when it is told to."""

    def __init__(self, plan):
        self._plan, self._names = plan, set()
        self._tester = TwsTester(BucketProcessor(plan), timeMode="EventTime", eventTimeExtractor=lambda _: 1 << 60)
        self._watermark, self.rows = 0, []

    def restart(self, plan):
        """Go on with other patterns, as from a checkpoint."""
        self._plan, self._tester.processor = plan, BucketProcessor(plan)
        self._tester.processor.init(self._tester.handle)

    def batch(self, rows, *, pieces=1):
        """Take a micro-batch, in several pieces that come in any order."""
        each = -(-len(rows) // pieces) or 1
        columns = [
            [list(column) for column in zip(*rows[start : start + each], strict=True)]
            for start in range(0, len(rows), each)
        ]
        deal, values = BucketStep(self._plan, NAMES, NAMES), {}
        batches = [
            pa.RecordBatch.from_arrays([pa.array(c, t) for c, t in zip(column, TYPES, strict=True)], list(NAMES))
            for column in columns
        ]
        for place, batch in enumerate(batches):
            for bucket_batch in deal(iter([batch])):
                for row in bucket_batch.to_pylist():
                    values.setdefault(row["bucket"], []).append(Row(**row | {"arrival_order": place}))
        for bucket, dealt_rows in values.items():
            self._collect_rows(self._tester.test(bucket, dealt_rows[::-1]))

    def peek_state(self, name, bucket):
        """Return a value of a bucket's state."""
        return self._tester.peekValueState(name, bucket)

    def passes(self, moment):
        """Let the watermark come to a time."""
        watermark = round(moment.timestamp() * 1000)
        if watermark > self._watermark:
            self._watermark = watermark
            self._collect_rows(self._tester.setWatermark(watermark))

    def _collect_rows(self, rows):
        packed = pa.RecordBatch.from_arrays([pa.array([row.rows for row in rows], pa.binary())], ["rows"])
        for batch in make_unpacker()(iter([packed])):
            self.rows += batch.to_pylist()

    def matches(self):
        return Counter((row["pattern"], row["at"], tuple(row["events"])) for row in self.rows if row["kind"] == "match")

    def late(self):
        return sorted((row["events"][0], row["at"]) for row in self.rows if row["kind"] == "late")


def disorder_rows(rows, *, bound, seed=3):
    """Return rows that come up to a bound of seconds late."""
    rng = random.Random(seed)
    moved = [(row[1] + timedelta(seconds=rng.uniform(0, bound)), row) for row in rows]
    return [row for _, row in sorted(moved, key=lambda pair: pair[0])]
