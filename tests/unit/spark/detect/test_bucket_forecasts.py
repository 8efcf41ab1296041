"""Forecasts in the buckets of a stream are those of the local detector with the same model."""

import random
from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.unit.spark.detect.forecast_cases import (
    PATTERN_TEXTS,
    START,
    as_events,
    count_forecasts,
    count_forecasts_locally,
    in_order,
    log,
    watch_patterns,
    watch_with_model,
)
from tests.unit.spark.detect.pattern_cases import BucketStream, disorder_rows

import tidings as td
from tidings.spark.detect.bucket_forecasts import DEFAULT_PLAN, choose_forecasts
from tidings.spark.detect.worker_plan import DetectPlan


@pytest.fixture(scope="module")
def model():
    return td.train(watch_patterns(PATTERN_TEXTS), in_order(log(600, seed=9)), horizons=["4 s"])


def build_plan(detector, *, buckets=3):
    model, forecasts = choose_forecasts(detector, detector, model=None, plan=DEFAULT_PLAN)
    plain = td.Detector(time="ts")
    plain.add_many(written.to_written() for written in detector.patterns)
    return DetectPlan.of(plain, buckets=buckets, shards=2, event_id="id", keep=(), model=model, forecasts=forecasts)


def test_a_stream_foretells_what_a_batch_does(model):
    rows, rng, newest = log(150, seed=3), random.Random(4), START
    arriving = disorder_rows(rows, bound=4)
    expected = count_forecasts_locally(
        watch_with_model(model, own=True), as_events(sorted(arriving, key=lambda row: row[1]))
    )
    stream = BucketStream(build_plan(watch_with_model(model, own=True)))
    while arriving:
        size = rng.randrange(1, 30)
        some, arriving = arriving[:size], arriving[size:]
        stream.batch(some, pieces=rng.choice((1, 3)))
        newest = max(newest, *(row[1] for row in some))
        stream.passes(newest - timedelta(seconds=4))
    stream.passes(newest)
    assert count_forecasts(stream.rows) == expected


def test_a_streams_buckets_reckon_where_their_events_stand(model):
    """With one bucket, and a key in every event, they know; of several, each takes others to be as quick as itself."""
    rows = [row for row in log(300, seed=6) if row[3] is not None]
    patterns = {
        "soon": PATTERN_TEXTS["next"],
        "late": PATTERN_TEXTS["then"],
        "all": PATTERN_TEXTS["soon"],
    }  # the third is told at every event
    expected = count_forecasts_locally(watch_with_model(model, patterns), as_events(rows))

    def stream_buckets(buckets):
        stream = BucketStream(build_plan(watch_with_model(model, patterns), buckets=buckets))
        for start in range(0, len(rows), 40):
            stream.batch(rows[start : start + 40])
            stream.passes(rows[min(start + 39, len(rows) - 1)][1])
        return count_forecasts(stream.rows)

    assert stream_buckets(1) == expected
    mine = {(pattern, event): chance for pattern, _, _, event, chance, _ in stream_buckets(3)}
    theirs = {(pattern, event): chance for pattern, _, _, event, chance, _ in expected}
    both = mine.keys() & theirs.keys()
    assert len(both) > 50
    assert sum(abs(mine[key] - theirs[key]) for key in both) / len(both) < 0.1
