"""Patterns on streams: rows wait for the watermark, late ones are told, and a restart goes on exactly.

`TwsTester` is Spark's stateful operator without Spark: most of this needs no session.
"""

import json
import os
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester
from tests.spark.test_detect import COLUMNS, LOGIN, START, TOLD, at, found_locally, found_on, log

import tidings as td
from tidings import spark as ts
from tidings.errors import BadFrame, CheckpointError
from tidings.lang import WrittenPattern, parse_pattern
from tidings.spark.detect.bucket_processor import Buckets, unpacking
from tidings.spark.detect.bucketing import Deal
from tidings.spark.detect.worker_plan import Plan

NAMES = tuple(column.split()[0] for column in COLUMNS.split(","))
TYPES = [pa.int64(), pa.timestamp("us", "UTC"), pa.string(), pa.int32(), pa.float64()]


def planned(told, *, buckets=3, shards=2, keep=()):
    detector = td.Detector(time="ts")
    detector.add_many(told)
    return Plan.of(detector, buckets=buckets, shards=shards, event_id="id", keep=keep)


def text(name, pattern, mode="restart"):
    return WrittenPattern(name, parse_pattern(pattern), mode)


class Stream:
    """A stream without Spark: micro-batches are dealt to buckets, and a watermark moves when it is told to."""

    def __init__(self, plan):
        self._plan, self._names = plan, set()
        self._tester = TwsTester(Buckets(plan), timeMode="EventTime", eventTimeExtractor=lambda _: 1 << 60)
        self._watermark, self.rows = 0, []

    def restarted(self, plan):
        """Go on with other patterns, as from a checkpoint."""
        self._plan, self._tester.processor = plan, Buckets(plan)
        self._tester.processor.init(self._tester.handle)

    def batch(self, rows, *, pieces=1):
        """Take a micro-batch, in several pieces that come in any order."""
        each = -(-len(rows) // pieces) or 1
        columns = [
            [list(column) for column in zip(*rows[start : start + each], strict=True)]
            for start in range(0, len(rows), each)
        ]
        deal, values = Deal(self._plan, NAMES, NAMES), {}
        batches = [
            pa.RecordBatch.from_arrays([pa.array(c, t) for c, t in zip(one, TYPES, strict=True)], list(NAMES))
            for one in columns
        ]
        for place, batch in enumerate(batches):
            for dealt in deal(iter([batch])):
                for row in dealt.to_pylist():
                    values.setdefault(row["bucket"], []).append(Row(**row | {"arrived": place}))
        for bucket, given in values.items():
            self._told(self._tester.test(bucket, given[::-1]))

    def passes(self, moment):
        """Let the watermark come to a time."""
        watermark = round(moment.timestamp() * 1000)
        if watermark > self._watermark:
            self._watermark = watermark
            self._told(self._tester.setWatermark(watermark))

    def _told(self, rows):
        packed = pa.RecordBatch.from_arrays([pa.array([row.rows for row in rows], pa.binary())], ["rows"])
        for batch in unpacking()(iter([packed])):
            self.rows += batch.to_pylist()

    def matches(self):
        return Counter((row["pattern"], row["at"], tuple(row["events"])) for row in self.rows if row["kind"] == "match")

    def late(self):
        return sorted((row["events"][0], row["at"]) for row in self.rows if row["kind"] == "late")


def disordered(rows, *, bound, seed=3):
    """Return rows that come up to a bound of seconds late."""
    rng = random.Random(seed)
    moved = [(row[1] + timedelta(seconds=rng.uniform(0, bound)), row) for row in rows]
    return [row for _, row in sorted(moved, key=lambda one: one[0])]


def test_generated_patterns_over_micro_batches_are_found_as_in_one():
    rows, rng = log(), random.Random(4)
    arriving, stream, newest = disordered(rows, bound=4), Stream(planned(TOLD)), START
    in_order = sorted(arriving, key=lambda row: row[1])
    while arriving:
        size = rng.randrange(1, 30)
        some, arriving = arriving[:size], arriving[size:]
        stream.batch(some, pieces=rng.choice((1, 3)))
        newest = max(newest, *(row[1] for row in some))
        stream.passes(newest - timedelta(seconds=4))
    stream.passes(newest)
    assert stream.matches() == found_locally(in_order, TOLD)
    assert stream.late() == []


def test_what_is_behind_the_watermark_is_told_once_and_not_taken():
    told = [
        text("one", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b"),
        text("other", "a = kind = 'a' and other = $x\nb = kind = 'b' and other = $x\na ; b"),
        text("unkeyed", "a = kind = 'a'\nb = kind = 'b'\na , b"),
    ]
    stream = Stream(planned(told))
    stream.batch([(1, at(10), "a", 1, 1.0)])
    stream.passes(at(10))
    stream.batch([(2, at(9), "b", 1, 1.0), (3, at(10), "b", 1, 1.0)])  # of one time with the watermark: not late
    stream.passes(at(11))
    assert stream.late() == [(2, at(9))]
    assert stream.matches() == Counter({(name, at(10), (1, 3)): 1 for name in ("one", "other", "unkeyed")})


def test_an_absence_is_reported_when_the_watermark_reaches_its_deadline_without_any_row():
    stream = Stream(
        planned([text("silent", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; not b for 1 min")])
    )
    stream.batch([(1, at(0), "a", 1, None), (2, at(0), "a", 2, None), (3, at(59), "b", 2, None)])
    stream.passes(at(59.999))
    assert stream.rows == []
    stream.passes(at(60))
    assert stream.matches() == Counter({("silent", at(60), (1,)): 1})


def test_partial_matches_that_came_too_late_go_without_any_row():
    stream = Stream(
        planned([text("pair", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b within 1 min")])
    )
    stream.batch([(n, at(n), "a", n, None) for n in range(30)])
    stream.passes(at(30))
    sizes = [stream._tester.peekValueState("bucket", f'[["key"]]#{n}/3') for n in range(3)]
    stream.passes(at(200))
    after = [stream._tester.peekValueState("bucket", f'[["key"]]#{n}/3') for n in range(3)]
    assert all(len(new[1]) < len(old[1]) for old, new in zip(sizes, after, strict=True))
    assert all(json.loads(new[0])[-1] is None for new in after)  # nothing is due any more


def test_unchanged_patterns_keep_their_state_and_waiting_rows_when_others_change():
    stays = text("stays", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b")
    goes = text("goes", "x = kind = 'x' and key = $x\nb = kind = 'b' and key = $x\nx ; b")
    lone = text("lone", "b = kind = 'b' and other = $o\nb ; b2:b")
    comes = text("comes", "c = kind = 'c' and key = $x\nb = kind = 'b' and key = $x\nb ; c")
    stream = Stream(planned([goes, stays, lone], keep=["kind"]))
    stream.batch([(1, at(0), "a", 1, 1.0), (2, at(1), "x", 1, 1.0), (3, at(20), "b", 1, 1.0)])
    stream.passes(at(10))  # the third row waits
    stream.restarted(planned([comes, stays], keep=["kind"]))
    stream.batch([(4, at(21), "c", 1, 1.0)])
    stream.passes(at(30))
    found = [(row["pattern"], [one["id"] for one in row["events"]]) for row in stream.rows]
    assert sorted(found) == [("comes", [3, 4]), ("stays", [1, 3])]


def test_another_number_of_buckets_is_refused():
    told = [text("silent", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; not b for 1 min")]
    stream = Stream(planned(told))
    stream.batch([(1, at(0), "a", 1, None)])
    stream.restarted(planned(told, buckets=4))
    with pytest.raises(CheckpointError, match="3 buckets, not 4; say buckets=3"):
        stream.passes(at(100))


# On Spark -----------------------------------------------------------------------------------------


def written(folder, batches):
    """Write a file for each micro-batch; the times of files are the order in which Spark takes them."""
    folder.mkdir(exist_ok=True)
    first = len([*folder.iterdir()])
    for number, rows in enumerate(batches, first):
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True)), default=str) + "\n" for row in rows))
        os.utime(path, (1.7e9 + number, 1.7e9 + number))


def streamed(spark, folder, told, **options):
    """Read the files to their end, one in a micro-batch, and return all that was found so far."""
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    found = ts.detect(stream.withWatermark("ts", "4 seconds"), told, **options)
    query = found.writeStream.format("json").option("checkpointLocation", str(folder / "state"))
    query.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    return spark.read.schema(found.schema).json(str(folder / "out"))


def test_a_stream_finds_what_a_batch_finds_and_goes_on_from_its_checkpoint(spark, tmp_path):
    rows = log(90)
    last = (999, rows[-1][1] + timedelta(hours=1), "x", 9, 9.0)
    arriving = disordered(rows, bound=4)
    in_order = sorted(arriving, key=lambda row: row[1])
    written(tmp_path / "in", [arriving[:40]])
    streamed(spark, tmp_path, TOLD, buckets=2, shards=1)
    written(tmp_path / "in", [[*arriving[40:], (500, at(-100), "a", 1, 1.0), last]])
    found = streamed(spark, tmp_path, TOLD[1:], buckets=2, shards=1)  # the first pattern is gone
    expected = found_locally(in_order, TOLD, until=last[1])
    mine = Counter({one: count for one, count in found_on(found).items() if one[0] != "p0"})
    assert mine == Counter({one: count for one, count in expected.items() if one[0] != "p0"})
    [late] = found.where("kind = 'late'").collect()
    assert (late.pattern, late.key, late.events) == (None, None, [500])
    assert late.at.replace(tzinfo=UTC) == at(-100)
    assert isinstance(late.at, datetime)


def test_a_stream_without_a_watermark_is_refused(spark, tmp_path):
    columns = "id BIGINT, ts TIMESTAMP, status STRING, ip STRING"
    stream = spark.readStream.schema(columns).json(str(tmp_path))
    with pytest.raises(BadFrame, match=r"needs a watermark on `ts`: events.withWatermark\('ts', '10 minutes'\)"):
        ts.detect(stream, {"intrusion": LOGIN})
