"""Patterns on streams: rows wait for the watermark, late ones are reported, and other patterns keep the state."""

import json
import random
from collections import Counter
from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.unit.spark.detect.pattern_cases import (
    PATTERN_TEXTS,
    START,
    BucketStream,
    at,
    count_detections_locally,
    disorder_rows,
    log,
)

import tidings as td
from tidings.errors import CheckpointError
from tidings.lang import WrittenPattern, parse_pattern
from tidings.spark.detect.worker_plan import DetectPlan


def build_plan(patterns, *, buckets=3, shards=2, keep=()):
    detector = td.Detector(time="ts")
    detector.add_many(patterns)
    return DetectPlan.of(detector, buckets=buckets, shards=shards, event_id="id", keep=keep)


def text(name, pattern, mode="restart"):
    return WrittenPattern(name, parse_pattern(pattern), mode)


def test_generated_patterns_over_micro_batches_are_found_as_in_one():
    rows, rng = log(), random.Random(4)
    arriving, stream, newest = disorder_rows(rows, bound=4), BucketStream(build_plan(PATTERN_TEXTS)), START
    in_order = sorted(arriving, key=lambda row: row[1])
    while arriving:
        size = rng.randrange(1, 30)
        some, arriving = arriving[:size], arriving[size:]
        stream.batch(some, pieces=rng.choice((1, 3)))
        newest = max(newest, *(row[1] for row in some))
        stream.passes(newest - timedelta(seconds=4))
    stream.passes(newest)
    assert stream.matches() == count_detections_locally(in_order, PATTERN_TEXTS)
    assert stream.late() == []


def test_what_is_behind_the_watermark_is_told_once_and_not_taken():
    rows = [
        text("one", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b"),
        text("other", "a = kind = 'a' and other = $x\nb = kind = 'b' and other = $x\na ; b"),
        text("unkeyed", "a = kind = 'a'\nb = kind = 'b'\na , b"),
    ]
    stream = BucketStream(build_plan(rows))
    stream.batch([(1, at(10), "a", 1, 1.0)])
    stream.passes(at(10))
    stream.batch([(2, at(9), "b", 1, 1.0), (3, at(10), "b", 1, 1.0)])  # of one time with the watermark: not late
    stream.passes(at(11))
    assert stream.late() == [(2, at(9))]
    assert stream.matches() == Counter({(name, at(10), (1, 3)): 1 for name in ("one", "other", "unkeyed")})


def test_an_absence_is_reported_when_the_watermark_reaches_its_deadline_without_any_row():
    stream = BucketStream(
        build_plan([text("silent", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; not b for 1 min")])
    )
    stream.batch([(1, at(0), "a", 1, None), (2, at(0), "a", 2, None), (3, at(59), "b", 2, None)])
    stream.passes(at(59.999))
    assert stream.rows == []
    stream.passes(at(60))
    assert stream.matches() == Counter({("silent", at(60), (1,)): 1})


def test_partial_matches_that_came_too_late_go_without_any_row():
    stream = BucketStream(
        build_plan([text("pair", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b within 1 min")])
    )
    stream.batch([(n, at(n), "a", n, None) for n in range(30)])
    stream.passes(at(30))
    sizes = [stream.peek_state("bucket", f'[["key"]]#{n}/3') for n in range(3)]
    stream.passes(at(200))
    after = [stream.peek_state("bucket", f'[["key"]]#{n}/3') for n in range(3)]
    assert all(len(new[1]) < len(old[1]) for old, new in zip(sizes, after, strict=True))
    assert all(json.loads(new[0])[-1] is None for new in after)  # nothing is due any more


def test_unchanged_patterns_keep_their_state_and_waiting_rows_when_others_change():
    stays = text("stays", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b")
    goes = text("goes", "x = kind = 'x' and key = $x\nb = kind = 'b' and key = $x\nx ; b")
    lone = text("lone", "b = kind = 'b' and other = $o\nb ; b2:b")
    comes = text("comes", "c = kind = 'c' and key = $x\nb = kind = 'b' and key = $x\nb ; c")
    stream = BucketStream(build_plan([goes, stays, lone], keep=["kind"]))
    stream.batch([(1, at(0), "a", 1, 1.0), (2, at(1), "x", 1, 1.0), (3, at(20), "b", 1, 1.0)])
    stream.passes(at(10))  # the third row waits
    stream.restart(build_plan([comes, stays], keep=["kind"]))
    stream.batch([(4, at(21), "c", 1, 1.0)])
    stream.passes(at(30))
    events_by_pattern = [(row["pattern"], [event["id"] for event in row["events"]]) for row in stream.rows]
    assert sorted(events_by_pattern) == [("comes", [3, 4]), ("stays", [1, 3])]


def test_another_number_of_buckets_is_refused():
    patterns = [text("silent", "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; not b for 1 min")]
    stream = BucketStream(build_plan(patterns))
    stream.batch([(1, at(0), "a", 1, None)])
    stream.restart(build_plan(patterns, buckets=4))
    with pytest.raises(CheckpointError, match="3 buckets, not 4; say buckets=3"):
        stream.passes(at(100))
