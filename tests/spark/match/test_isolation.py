"""On Spark, too, no subscription changes what another one hears, or which events are bad."""

import random

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings import spark as ts

DDL = "id int, n double, t string, b boolean, at timestamp_ntz, s struct<x: double, y: string>, m map<string, string>"
VALUES = {
    "n": [1.0, 2.5, float("nan"), float("inf"), None],
    "t": ["x", "1", "10.0.0.1", None, ""],
    "x": [1.0, float("-inf"), None],
    "m": [{"a": "1", "k": "x"}, {"a": "2 km"}, {}, None],
}
FILTERS = [
    *("n < 2", "none(n) > 1", "n exists", "n is null", "not (n = 1)", "all(n) < 9", "n = 'x'", "n > 1 km"),
    *("t = 'x'", "t in 10.0.0.0/8", "t contains '1'", "t > 5", "t != '1'", "t = `m.k`", "t < `n`", "t is a 'x'"),
    *("b = true", "b = 1", "s.x > 0", "s has (x > 0)", "s.x = 'y'", "s.z = 1", "nobody = 1", "not (nobody = 1)"),
    *("m.a = 1", "m.a = '1'", "m.a > 1 km", "m.a > 2024-01-01", "m.a exists", "none(m.a) < 5", "m.a in ('1', '2')"),
    *("m.k near (1, 2) 5 km", "m.b is null", "at > 2024-01-01", "at > 5", "age(at) > 1 day"),
]


def events(spark, rng):
    from datetime import datetime

    rows = [
        (
            number,
            rng.choice(VALUES["n"]),
            rng.choice(VALUES["t"]),
            rng.choice([True, False, None]),
            rng.choice([datetime(2024, 6, 1), datetime(2020, 1, 1), None]),  # noqa: DTZ001 - a column without a zone
            rng.choice([(rng.choice(VALUES["x"]), "y"), None]),
            rng.choice(VALUES["m"]),
        )
        for number in range(40)
    ]
    return spark.createDataFrame(rows, DDL)


def answers(frame, subscriptions, among):
    matches = ts.match(frame, subscriptions, event_id="id", **UNKNOWN).collect()
    letters = ts.dead_letters(frame, subscriptions, event_id="id", **UNKNOWN).collect()
    pairs = sorted((row["event"], row["subscription"]) for row in matches if row["subscription"] in among)
    return pairs, sorted(row["event"] for row in letters)


UNKNOWN = {"unknown": "absent"}


def select_accepted(frame, wanted):
    """Those that the frame's types do not refuse."""
    good = []
    for id, text in wanted:
        try:
            ts.match(frame, [(id, text)], event_id="id", **UNKNOWN)
        except td.TidingsError:
            continue
        good.append((id, text))
    return good


@pytest.mark.parametrize("seed", range(2))
def test_others_change_nothing_in_a_batch_nor_in_a_live_folder(spark, tmp_path, seed):
    rng = random.Random(seed)
    frame = events(spark, rng).cache()
    wanted = [(f"s{at}", text) for at, text in enumerate(rng.sample(FILTERS, 14))]
    good = select_accepted(frame, wanted)
    first = good[: len(good) // 2]
    ids = {id for id, _ in first}
    alone = answers(frame, first, ids)
    assert alone[1], "some events break the types of columns"
    assert answers(frame, good, ids) == alone
    live = td.Live(tmp_path / "live")
    live.add_many(first)
    before = answers(frame, live, ids)
    # A folder of others is not held to the columns' types: there an infinity is nobody's, and makes no event bad.
    assert [pair for pair in before[0] if pair[0] not in alone[1]] == alone[0]
    live.add_many(wanted, on_error="collect")  # those that the columns refuse too: they are left out
    assert answers(frame, live, ids) == before
    live.change([], [id for id in live.open(live.version.number) if id not in ids])
    assert answers(frame, live, ids) == before


def test_an_infinity_is_bad_for_patterns_whether_one_asks_for_its_column_or_not(spark):
    rows = [(1, 1.0, "a", 1.0), (2, 2.0, "a", float("inf")), (3, 3.0, "b", 1.0)]
    frame = spark.createDataFrame(rows, "id int, at double, kind string, size double")
    frame = frame.selectExpr("id", "timestamp_seconds(at) AS at", "kind", "size")
    plain = "a = kind = 'a'\nb = kind = 'b'\na ; b"
    sized = "a = kind = 'a' and size > 0\nb = kind = 'b'\na ; b"
    for patterns in ({"plain": plain}, {"plain": plain, "sized": sized}):
        detections = ts.detect(frame, patterns, time="at", event_id="id").where("kind = 'match'").collect()
        assert {(row["pattern"], tuple(row["events"])) for row in detections} == {(name, (1, 3)) for name in patterns}
        assert [row["event"] for row in ts.bad_events(frame, patterns, time="at", event_id="id").collect()] == [2]
