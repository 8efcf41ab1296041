"""Training on batches: the model is the one that `td.train` makes of the same rows in order, however they lie."""

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.unit.spark.detect.forecast_cases import COLUMNS, PATTERN_TEXTS, PLAIN, at, in_order, log, watch_patterns

import tidings as td
from tidings import spark as ts
from tidings.errors import BadFrame, TidingsError


def lying(spark, rows):
    """Return rows as a frame of three partitions, whose times go back and forth."""
    mixed = sorted(rows, key=lambda row: (row[0] % 3, row[0]))
    third = -(-len(rows) // 3)
    frame, *others = [
        spark.createDataFrame(mixed[at : at + third], COLUMNS).coalesce(1) for at in range(0, len(rows), third)
    ]
    for other in others:
        frame = frame.union(other)
    return frame


def assert_same(mine, theirs, *, exactly=True):
    near = {} if exactly else {"rtol": 1e-9}
    same = np.testing.assert_array_equal if exactly else np.testing.assert_allclose
    assert list(mine) == list(theirs)
    assert mine.settings == theirs.settings
    assert mine.now == theirs.now
    for pattern, other in zip(mine.patterns.values(), theirs.patterns.values(), strict=True):
        same(pattern.counts.moves, other.counts.moves, **near, err_msg=pattern.name)
        same(pattern.counts.waits, other.counts.waits, **near, err_msg=pattern.name)
        if pattern.name == "silent":  # where a deadline stands in the stream, a bucket knows only nearly
            laws = [counts.later.sum(axis=0).cumsum() / counts.later.sum() for counts in (pattern.counts, other.counts)]
            assert pattern.counts.later.sum() == pytest.approx(other.counts.later.sum())
            assert abs(laws[0] - laws[1]).max() < 0.1
        else:
            same(pattern.counts.later, other.counts.later, **near, err_msg=pattern.name)
        assert pattern.counts.spans.keys() == other.counts.spans.keys()
        for span, of in pattern.counts.spans.items():
            same(of, other.counts.spans[span], **near, err_msg=pattern.name)
        assert other.counts.moves.sum() > 0
    if exactly:
        assert mine.traffic == theirs.traffic
        return
    for name in ("seen", "gaps", "elapsed"):
        assert getattr(mine.traffic, name) == pytest.approx(getattr(theirs.traffic, name))
    assert mine.traffic.filters == pytest.approx(theirs.traffic.filters)
    assert mine.traffic.own == pytest.approx(theirs.traffic.own)
    assert mine.traffic.asked == pytest.approx(theirs.traffic.asked)


def test_the_model_is_the_one_of_the_same_rows_in_order(spark):
    rows, detector = log(), watch_patterns(PATTERN_TEXTS)
    mine = ts.train(lying(spark, rows), detector, horizons=["4 s", 10], buckets=3, shards=2)
    theirs = td.train(watch_patterns(PATTERN_TEXTS), in_order(rows), horizons=["4 s", 10])
    assert_same(mine, theirs)
    assert [pattern.counts.spans.keys() for pattern in mine.patterns.values()] == [{4_000_000}] * (
        len(PATTERN_TEXTS) - 1
    )


def test_counts_fade_as_they_do_locally(spark):
    rows = log(200)
    frame = lying(spark, rows)
    options = {"half_life": "40 s", "horizons": ["4 s"], "context": 1}
    assert_same(
        ts.train(frame, watch_patterns(PATTERN_TEXTS), buckets=3, shards=2, **options),
        td.train(watch_patterns(PATTERN_TEXTS), in_order(rows), **options),
        exactly=False,
    )
    options = {"half_life": 50, "estimator": "chain"}  # events of the whole stream, also where there are keys
    assert_same(
        ts.train(frame, watch_patterns(PATTERN_TEXTS), buckets=3, shards=2, **options),
        td.train(watch_patterns(PATTERN_TEXTS), in_order(rows), **options),
        exactly=False,
    )


def test_the_same_key_lets_a_model_know_its_patterns_again(spark):
    rows = log(100)
    model = ts.train(lying(spark, rows), {"pair": f"{PLAIN}a ; b ; c"}, key="key", context=0)
    local = td.train(watch_patterns({"pair": PAIR}), in_order(rows), context=0)
    assert model.traffic == local.traffic
    np.testing.assert_array_equal(model["pair"].counts.moves, local["pair"].counts.moves)


PAIR = """
    a = kind = 'a' and key = $key
    b = kind = 'b' and key = $key
    c = kind = 'c' and key = $key
    a ; b ; c
"""


def test_bad_events_take_no_part_and_no_events_give_a_model_of_nothing(spark):
    twice = {"twice": "p = price > 1\np , q:p"}
    columns = "ts TIMESTAMP, price STRING"
    frame = spark.createDataFrame([(at(0), "5"), (at(1), "call me"), (None, "5"), (at(2), "6")], columns)
    declared = {"price": "number"}
    assert ts.train(frame, twice, schema=declared).now == (2, round(at(2).timestamp() * 1e6))
    empty = ts.train(frame.limit(0), twice, schema=declared)
    assert (list(empty), empty.now, empty["twice"].counts.moves.sum()) == (["twice"], (0, 0), 0)


@pytest.mark.parametrize(
    ("problem", "words", "options"),
    [
        (TidingsError, "an estimator is one of", {"estimator": "best"}),
        (TidingsError, "context is how many", {"context": -1}),
        (TidingsError, "a horizon is", {"horizons": ["soon"]}),
        (BadFrame, "no column `when`", {"time": "when"}),
        (BadFrame, "no column `nr`", {"event_id": "nr"}),
        (BadFrame, "shards is a number from 1 up, not 0", {"shards": 0}),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_job(spark, problem, words, options):
    frame = spark.createDataFrame(log(3), COLUMNS)
    with pytest.raises(problem, match=words):
        ts.train(frame, PATTERN_TEXTS, **options)


def test_a_stream_is_refused(spark, tmp_path):
    stream = spark.readStream.schema(COLUMNS).json(str(tmp_path))
    with pytest.raises(BadFrame, match=r"trained on a batch, and these events are a stream; .*`spark.read`"):
        ts.train(stream, PATTERN_TEXTS)
