"""`tidings_match` and `tidings_dead_letters` in SQL give what `ts.match` and `ts.dead_letters` give."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.errors import AnalysisException
from tests.spark.match.test_equal import DDL, Rows, declare_kinds, searches

import tidings as td
from tidings import spark as ts
from tidings.bench.workloads import NOW

ADS = [(1, "ford", "8500", "a"), (2, "opel", "4200", None), (3, "ford", "15000", "c"), (4, "ford", "call me", "d")]
PRICED = td.Schema({"price": "number"}, closed=False)
"""The column of prices is text; who compares them as numbers says so."""

EXPECTED = [(1, "cheap"), (1, "fords"), (2, "cheap"), (3, "fords")]


@pytest.fixture(scope="module", autouse=True)
def table_functions(spark):
    ts.register(spark)


@pytest.fixture(scope="module", autouse=True)
def ads(spark):
    frame = spark.createDataFrame(ADS, "id INT, make STRING, price STRING, `u.rl` STRING").repartition(3)
    frame.createOrReplaceTempView("ads")
    yield frame
    spark.catalog.dropTempView("ads")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    wanted = [("cheap", "price < 9000"), ("fords", "make = 'ford'")]
    return save(tmp_path_factory.mktemp("ads") / "text", wanted, schema=PRICED)


def save(path, pairs, **about):
    matcher = td.Matcher(**about)
    matcher.add_many(pairs)
    matcher.save(path)
    return str(path)


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


@pytest.fixture(scope="module")
def events_and_snapshot(spark, tmp_path_factory):
    """Columns of every kind, four bad events among them, and filters on all of them."""
    events = [Rows(number).row(number) for number in range(200)]
    nowhere = {"lon": 200.0, "lat": 0.0}
    bad = [{"x": float("inf")}, {"priced": "dear"}, {"spots": [nowhere]}, {"spot": nowhere}]
    for number, fields in enumerate(bad):
        events[number * 40].update(fields)
    frame = spark.createDataFrame(events, DDL).repartition(3)
    frame.createOrReplaceTempView("generated")
    wanted = searches(4, 40)
    yield frame, save(tmp_path_factory.mktemp("all") / "ints", wanted, schema=declare_kinds(frame), now=NOW)
    spark.catalog.dropTempView("generated")


def test_every_kind_of_column_matches_as_it_does_in_a_dataframe(spark, events_and_snapshot):
    frame, path = events_and_snapshot
    matches = spark.sql(f"SELECT * FROM tidings_match(TABLE(generated), '{path}', event_id => 'id')")
    expected = rows(ts.match(frame, path, event_id="id", unknown="absent"))
    assert dict(matches.dtypes) == {"event": "int", "subscription": "bigint"}
    assert rows(matches) == expected
    assert len(expected) > 1000


def test_every_kind_of_column_comes_back_as_it_was(spark, events_and_snapshot):
    frame, path = events_and_snapshot
    matches = spark.sql(f"SELECT * FROM tidings_match(TABLE(generated), '{path}') WHERE id < 60")
    expected = ts.match(frame.where("id < 60"), path, unknown="absent")
    assert matches.dtypes == expected.dtypes
    assert by_pair(matches) == by_pair(expected)


def by_pair(frame):
    rows_by_pair = {(row.id, row.subscription): str(row) for row in frame.collect()}  # as text: NaN is not itself
    assert len(rows_by_pair) > 200
    return rows_by_pair


def test_bad_events_are_the_same_dead_letters(spark, events_and_snapshot):
    frame, path = events_and_snapshot
    letters = spark.sql(f"SELECT * FROM tidings_dead_letters(TABLE(generated), '{path}', 'id')")
    expected = ts.dead_letters(frame, path, event_id="id", unknown="absent")
    assert letters.columns == expected.columns == ["event", "reason", "row"]
    assert rows(letters) == rows(expected)
    assert len(rows(expected)) == 4
    nameless = spark.sql(f"SELECT * FROM tidings_dead_letters(TABLE(generated), '{path}')")
    assert rows(nameless) == rows(expected.drop("event"))


def test_ids_are_of_the_kind_that_the_snapshot_has(spark, snapshot):
    matches = spark.sql(f"SELECT * FROM tidings_match(TABLE(ads), '{snapshot}', 'id')")
    assert matches.dtypes == [("event", "int"), ("subscription", "string")]
    assert rows(matches) == EXPECTED


def test_kept_columns_follow(spark, snapshot, ads):
    matches = spark.sql(f"SELECT * FROM tidings_match(TABLE(ads), '{snapshot}', 'id', keep => array('u.rl', 'price'))")
    expected = ts.match(ads, snapshot, event_id="id", keep=["u.rl", "price"])
    assert matches.columns == expected.columns == ["event", "subscription", "u.rl", "price"]
    assert sorted(map(str, matches.collect())) == sorted(map(str, expected.collect()))


def test_a_table_keeps_its_partitions_unless_the_call_says_otherwise(spark, snapshot):
    spark.range(0, 900, 1, 3).selectExpr("id", "'ford' AS make", "id AS price").createOrReplaceTempView("many")
    query = "SELECT spark_partition_id() AS task, event, subscription FROM tidings_match(TABLE(many) {}, '{}', 'id')"
    spread, single, keyed = (
        spark.sql(query.format(clause, snapshot)).collect()
        for clause in ("", "WITH SINGLE PARTITION", "PARTITION BY (id % 7)")
    )
    assert len({row.task for row in spread}) == 3
    assert len({row.task for row in single}) == 1
    assert pairs(spread) == pairs(single) == pairs(keyed)
    assert len(spread) == len(single) == len(keyed) == 1800


def pairs(rows):
    return {(row.event, row.subscription) for row in rows}


def test_batches_that_match_nothing_stand_beside_those_that_do(spark, tmp_path):
    rare = save(tmp_path / "rare", [("one", "price = 555")])
    spark.range(0, 1000, 1, 2).selectExpr("id", "id AS price").createOrReplaceTempView("numbers")
    assert rows(spark.sql(f"SELECT * FROM tidings_match(TABLE(numbers), '{rare}', 'id')")) == [(555, "one")]
    assert rows(spark.sql(f"SELECT * FROM tidings_match(TABLE(numbers), '{rare}')")) == [(555, 555, "one")]
    none = spark.sql(f"SELECT * FROM tidings_match(TABLE(SELECT * FROM numbers WHERE id < 0), '{rare}')")
    assert none.columns == ["id", "price", "subscription"]
    assert none.collect() == []


def test_the_result_joins_the_events_and_makes_a_view(spark, snapshot):
    spark.sql(f"CREATE OR REPLACE TEMP VIEW told AS SELECT * FROM tidings_match(TABLE(ads), '{snapshot}', 'id')")
    joined = spark.sql("SELECT id, `u.rl`, subscription FROM ads JOIN told ON id = event WHERE `u.rl` IS NOT NULL")
    assert rows(joined) == [(1, "a", "cheap"), (1, "a", "fords"), (3, "c", "fords")]
    counted = spark.sql("SELECT event, count(*) AS many FROM told GROUP BY event HAVING many > 1")
    assert rows(counted) == [(1, 2)]
    chosen = f"SELECT * FROM tidings_match(TABLE(SELECT id, price FROM ads WHERE make = 'opel'), '{snapshot}')"
    assert rows(spark.sql(chosen)) == [(2, "4200", "cheap")]


def test_the_time_is_that_of_the_query(spark, tmp_path):
    path = save(tmp_path / "fresh", [("fresh", "age(at) < 1 hours"), ("old", "age(at) > 1 days")])
    spark.sql("SELECT 1 AS id, current_timestamp() AS at UNION ALL SELECT 2, TIMESTAMP '2001-01-01'").createTempView(
        "t"
    )
    assert rows(spark.sql(f"SELECT * FROM tidings_match(TABLE(t), '{path}', 'id')")) == [(1, "fresh"), (2, "old")]
    spark.catalog.dropTempView("t")


def test_subscriptions_in_shards_are_all_asked(spark, tmp_path, ads):
    folder = str(tmp_path / "sharded")
    wanted = spark.createDataFrame([(n, f"price < {n}") for n in range(4000, 16000, 500)], "id INT, filter STRING")
    ts.compile(wanted, folder, shards=3, schema=PRICED)
    matches = spark.sql(f"SELECT * FROM tidings_match(TABLE(ads), '{folder}', 'id')")
    assert rows(matches) == rows(ts.match(ads, folder, event_id="id"))
    letters = spark.sql(f"SELECT event, reason FROM tidings_dead_letters(TABLE(ads), '{folder}', 'id')")
    assert rows(letters) == [(4, "`price`: 'call me' is not a number")]


def test_a_stream_matches_in_sql_too(spark, snapshot, ads, tmp_path):
    ads.write.json(str(tmp_path / "in"))
    spark.readStream.schema(ads.schema).json(str(tmp_path / "in")).createOrReplaceTempView("arriving")
    matched = spark.sql(f"SELECT * FROM tidings_match(TABLE(arriving), '{snapshot}', 'id')")
    assert matched.isStreaming
    query = matched.writeStream.format("memory").queryName("in_sql").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert rows(spark.table("in_sql")) == EXPECTED


@pytest.mark.parametrize(
    ("call", "phrases"),
    [
        ("tidings_match(TABLE(ads), '/nowhere')", ["SnapshotError: `/nowhere` is not a snapshot"]),
        ("tidings_match(TABLE(ads), '{saved}', 'idd')", ["no column `idd`; did you mean `id`?"]),
        ("tidings_dead_letters(TABLE(ads), '{saved}', 'idd')", ["no column `idd`; did you mean `id`?"]),
        ("tidings_match(TABLE(ads), '{saved}', keep => array('maker'))", ["no column `maker`; did you mean `make`?"]),
        (
            "tidings_match(TABLE(SELECT *, 1 AS subscription FROM ads), '{saved}')",
            ["a column `subscription` themselves"],
        ),
        ("tidings_match('{saved}', TABLE(ads))", ["events: it is a table that", "snapshot: it must be a constant"]),
        (
            "tidings_match(TABLE(ads), 3, 4, 'url')",
            ["snapshot: `3` (int) is not", "event_id: `4` (int) is not", "keep: `url` (string) is not"],
        ),
        ("tidings_match(TABLE(ads), NULL)", ["snapshot: `None` (void) is not the path of a snapshot"]),
        ("ads a, LATERAL tidings_match(TABLE(ads), a.make)", ["snapshot: it must be a constant", "of columns"]),
        ("tidings_match(TABLE(SELECT id, id > 1 AS price FROM ads), '{saved}')", ["KindConflict: `price` is bool"]),
        ("tidings_match(TABLE(ads))", ["missing a required argument: 'snapshot'"]),
    ],
)
def test_a_bad_call_is_refused_before_it_runs(spark, snapshot, call, phrases):
    with pytest.raises(AnalysisException) as caught:
        spark.sql("SELECT * FROM " + call.format(saved=snapshot))
    assert all(part in str(caught.value) for part in phrases), str(caught.value)
    assert "shape.py" not in str(caught.value)  # where we found it is nobody's business


def test_the_functions_may_have_other_names(spark, snapshot):
    ts.register(spark, match="wanted", dead_letters="unreadable")
    assert rows(spark.sql(f"SELECT * FROM wanted(TABLE(ads), '{snapshot}', 'id')")) == EXPECTED
    assert spark.sql(f"SELECT * FROM unreadable(TABLE(ads), '{snapshot}', 'id')").count() == 1
