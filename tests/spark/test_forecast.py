"""Forecasts on Spark: what the local detector foretells with the same model, on batches and on streams."""

import random
from collections import Counter
from datetime import UTC, timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.spark.test_detect import START
from tests.spark.test_detect_stream import Stream, disordered, streamed, written
from tests.spark.test_train import COLUMNS, NAMES, TOLD, in_order, log, lying, watching

import tidings as td
from tidings import spark as ts
from tidings.errors import FileError, TidingsError
from tidings.spark.forecasting import Foresight
from tidings.spark.plan import Plan

TELLS = ("crossing", "episode", "every", "change")


@pytest.fixture(scope="module")
def model():
    return td.train(watching(TOLD), in_order(log(600, seed=9)), horizons=["4 s"])


def foreseeing(model, told=TOLD, **same):
    """Return a detector of the patterns; what a bucket cannot know exactly, the share of a key, is not asked for."""
    detector = td.Detector(model=model, time="ts")
    for number, (name, pattern) in enumerate(told.items()):
        horizon = "4 own events" if "$x" in pattern else ("4 s" if name == "late" else 6)
        options = {"horizon": horizon, "threshold": 0.3, "tell": TELLS[number % 4], "step": 0.2} | same
        detector.add(name, pattern, mode="overlap" if name == "then" else "restart", **options)
    return detector


def told_locally(detector, events):
    found = detector.detect_many(events)
    rows = found.forecasts.to_arrow().to_pylist()
    return Counter(
        (row["pattern"], row["key"], row["at"], row["event"], round(row["probability"], 9), row["horizon"])
        for row in rows
    )


def told_by(rows):
    return Counter(
        (
            row["pattern"],
            row["key"],
            row["at"].replace(tzinfo=UTC),
            *row["events"],
            round(row["probability"], 9),
            row["horizon"],
        )
        for row in rows
        if row["kind"] == "forecast"
    )


def test_a_batch_foretells_what_the_local_detector_does(spark, model):
    rows = log(200, seed=2)
    found = [row.asDict() for row in ts.detect(lying(spark, rows), foreseeing(model), buckets=3, shards=2).collect()]
    expected = told_locally(foreseeing(model), in_order(rows))
    assert told_by(found) == expected
    assert {pattern for pattern, *_ in expected} == TOLD.keys()
    assert {key for _, key, *_ in expected} >= {None, "1", "2"}
    forecasts = [row for row in found if row["kind"] == "forecast"]
    assert {row["estimator"] for row in forecasts} >= {"both", "approximate both"}
    assert all(row["probability"] is None for row in found if row["kind"] == "match")
    assert sum(row["kind"] == "match" for row in found) == len(foreseeing(model).detect_many(in_order(rows)))


def test_a_stream_foretells_what_a_batch_does(model):
    rows, rng, newest = log(150, seed=3), random.Random(4), START
    arriving = disordered(rows, bound=4)
    expected = told_locally(foreseeing(model), as_events(sorted(arriving, key=lambda row: row[1])))
    stream = Stream(planned(foreseeing(model)))
    while arriving:
        size = rng.randrange(1, 30)
        some, arriving = arriving[:size], arriving[size:]
        stream.batch(some, pieces=rng.choice((1, 3)))
        newest = max(newest, *(row[1] for row in some))
        stream.passes(newest - timedelta(seconds=4))
    stream.passes(newest)
    assert told_by(stream.rows) == expected


def as_events(rows):
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def planned(detector, *, buckets=3, shards=2):
    foresight = Foresight.of(detector, detector, model=None, asked=ts_nothing())
    plain = td.Detector(time="ts")
    plain.add_many(told_of(detector))
    return Plan.of(
        plain, buckets=buckets, shards=shards, event_id="id", keep=(), model=foresight.model, plans=foresight.plans
    )


def ts_nothing():
    from tidings.spark.forecasting import NOTHING_SAID

    return NOTHING_SAID


def told_of(detector):
    from tidings.patterns.stream import written as as_written

    return map(as_written, detector.watched)
