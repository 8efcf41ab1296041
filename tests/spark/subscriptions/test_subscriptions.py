"""Subscriptions in each of their forms, and what is wrong with them."""

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings import spark as ts
from tidings.errors import BadFrame, BadSubscriptions, SnapshotError, TidingsError

PAIRS = [("cheap", "price < 9000"), ("ford", "make = 'ford'")]


@pytest.fixture(scope="module")
def ads(spark):
    return spark.createDataFrame([(1, "ford", 8500), (2, "ford", 12000)], "id bigint, make string, price int").cache()


def matcher(pairs=PAIRS, **options):
    made = td.Matcher(**options)
    made.add_many(pairs)
    return made


def match_pairs(ads, subscriptions, **options):
    return sorted(tuple(row) for row in ts.match(ads, subscriptions, event_id="id", **options).collect())


EXPECTED = [(1, "cheap"), (1, "ford"), (2, "ford")]


def test_pairs(ads):
    assert match_pairs(ads, PAIRS) == EXPECTED
    assert match_pairs(ads, iter(PAIRS)) == EXPECTED


def test_parsed_filters(ads):
    assert match_pairs(ads, [(id_, td.parse(text)) for id_, text in PAIRS]) == EXPECTED


def test_an_arrow_table(ads):
    assert match_pairs(ads, pa.table({"id": ["cheap", "ford"], "filter": [text for _, text in PAIRS]})) == EXPECTED


def test_a_matcher(ads):
    assert match_pairs(ads, matcher()) == EXPECTED


def test_the_path_of_a_snapshot(ads, tmp_path):
    matcher().save(tmp_path / "searches")
    assert match_pairs(ads, tmp_path / "searches") == EXPECTED
    assert match_pairs(ads, str(tmp_path / "searches")) == EXPECTED


def test_a_path_that_is_no_snapshot_is_refused(ads, tmp_path):
    with pytest.raises(SnapshotError, match="is not a snapshot"):
        ts.match(ads, tmp_path)


def test_a_dataframe(spark, ads):
    assert match_pairs(ads, spark.createDataFrame(PAIRS, "id string, filter string")) == EXPECTED


def test_a_dataframe_with_notations_and_more_columns(spark, ads):
    rows = [(1, "make=ford", "url", "x"), (2, "price < 9000", None, "y")]
    frame = spark.createDataFrame(rows, "id int, filter string, notation string, owner string")
    assert match_pairs(ads, frame) == [(1, 1), (1, 2), (2, 1)]


def test_an_empty_dataframe_of_integers_keeps_its_type(spark, ads):
    pairs = ts.match(ads, spark.createDataFrame([], "id int, filter string"), event_id="id")
    assert pairs.collect() == []


def test_the_same_row_twice_is_one_subscription(spark, ads):
    assert match_pairs(ads, spark.createDataFrame([*PAIRS, PAIRS[0]], "id string, filter string")) == EXPECTED


def test_two_filters_under_one_id_of_a_dataframe_are_refused(spark, ads):
    frame = spark.createDataFrame([*PAIRS, ("ford", "price > 0")], "id string, filter string")
    with pytest.raises(BadSubscriptions, match=r"`ford`: it has several filters"):
        ts.match(ads, frame)


def test_every_bad_filter_is_listed_by_its_id(spark, ads):
    rows = [("good", "price < 1"), ("bad", "price <"), ("worse", "price = 'x'")]
    with pytest.raises(BadSubscriptions) as caught:
        ts.match(ads, spark.createDataFrame(rows, "id string, filter string"))
    assert sorted(id_ for id_, _ in caught.value.errors) == ["bad", "worse"]
    assert "`bad`" in str(caught.value)
    assert "`worse`" in str(caught.value)


@pytest.mark.parametrize(
    ("ddl", "row", "message"),
    [
        ("id string, filtre string", ("a", "b"), "no column `filter`; did you mean `filtre`"),
        ("id double, filter string", (1.5, "b"), "`id` is double; it must be text or integers"),
        ("id string, filter int", ("a", 1), "`filter` is int; it must be text"),
        ("id string, filter string", (None, "a = 1"), "`id` is null in 1 rows"),
        ("id string, filter string", ("a", None), "`filter` is null in 1 rows"),
    ],
)
def test_a_dataframe_of_another_form_is_refused(spark, ads, ddl, row, message):
    with pytest.raises(BadFrame, match=message):
        ts.match(ads, spark.createDataFrame([row], ddl))


def test_a_stream_of_subscriptions_is_refused(spark, ads):
    with pytest.raises(BadFrame, match=r"read them with session\.read"):
        ts.match(ads, spark.readStream.format("rate").load())


def test_a_matcher_brings_its_own_surroundings(ads):
    with pytest.raises(TidingsError, match="a matcher brings its own `schema`"):
        ts.match(ads, matcher(), schema={"price": "number"})


def test_text_and_integers_do_not_mix(ads):
    with pytest.raises(BadSubscriptions, match="all text or all integers"):
        ts.match(ads, [("a", "price > 0"), (1, "price > 0")])
