"""Subscriptions in shards, compiled by executors, give what one matcher gives, and nothing hot serialises the job."""

from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.match.test_equal import DDL, KINDS, Rows, declare_kinds, local_pairs, searches

import tidings as td
from tidings import spark as ts
from tidings.bench.workloads import NOW
from tidings.errors import BadFrame, BadSubscriptions, SnapshotError
from tidings.matcher.live.sharded_store import compute_shard
from tidings.matcher.live.versions import load_version, read_version
from tidings.spark.match.worker_stage import distribute_rows
from tidings.spark.schema import schema_of
from tidings.spark.subscriptions.compile_frame import build_part_column

BAD = [{"x": float("inf")}, {"priced": "dear"}, {"spot": {"lon": 200.0, "lat": 0.0}}]


@pytest.fixture(scope="module")
def world(spark):
    """Events of every kind of column, subscriptions of every kind of test, and what one local matcher says."""
    rows = [Rows(number).row(number) for number in range(150)]
    for number, bad in enumerate(BAD):
        rows[number * 40] = {**rows[number * 40], **bad}
    wanted = searches(5, 40)
    events = spark.createDataFrame(rows, DDL).repartition(3).cache()
    pairs, letters = local_pairs(declare_kinds(events), wanted, rows)
    subscriptions = spark.createDataFrame(wanted, "id bigint, filter string").repartition(3).cache()
    return {
        "rows": rows,
        "wanted": wanted,
        "events": events,
        "pairs": pairs,
        "letters": letters,
        "frame": subscriptions,
    }


@pytest.fixture(scope="module")
def folder(world, tmp_path_factory):
    """What `ts.compile` makes, in five shards; understood by the events' own schema."""
    path = tmp_path_factory.mktemp("compiled") / "five"
    version = ts.compile(world["frame"], path, shards=5, schema=declare_kinds(world["events"]))
    assert version.count == len(world["wanted"])
    return path


@pytest.fixture(scope="module")
def live(world, tmp_path_factory):
    made = td.Live(tmp_path_factory.mktemp("live") / "three", shards=3, schema=declare_kinds(world["events"]))
    made.add_many(world["wanted"])
    return made


def pairs_of(frame):
    pairs = [tuple(row) for row in frame.collect()]
    assert len(pairs) == len(set(pairs))
    return set(pairs)


# The same as unsharded -----------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "shards"), [("frame", 1), ("wanted", 2), ("frame", 5)])
def test_pairs_of_any_number_of_shards_are_those_of_one_matcher(world, form, shards):
    matches = ts.match(
        world["events"], world[form], event_id="id", schema=KINDS, now=NOW, unknown="absent", shards=shards
    )
    assert pairs_of(matches) == world["pairs"]


def test_a_compiled_folder_and_a_live_one_match_alike(world, folder, live):
    for place in (folder, live):
        matches = ts.match(world["events"], place, event_id="id", now=NOW, unknown="absent", spread=3)
        assert pairs_of(matches) == world["pairs"]
        letters = ts.dead_letters(world["events"], place, event_id="id", now=NOW, unknown="absent").collect()
        assert {(row.event, row.reason) for row in letters} == world["letters"]
        assert len(letters) == len(world["letters"]) == 3


def test_lists_wide_rows_and_kept_columns_come_together_from_all_shards(world, live):
    about = {"event_id": "id", "keep": ["who", "x"], "grouped": True, "now": NOW, "unknown": "absent"}
    single = ts.match(world["events"], world["wanted"], schema=KINDS, **about)
    several = ts.match(world["events"], live, **about)
    assert several.columns == single.columns
    assert [field.dataType for field in several.schema] == [field.dataType for field in single.schema]
    assert list_matches(several) == list_matches(single)
    few = [(1, "tiny in [1 .. 4)"), (2, "flag = true"), (3, "name = 'ford'"), (4, "items.qty > 3")]
    wide = [ts.match(world["events"], few, now=NOW, unknown="absent", shards=shards) for shards in (1, 2)]
    assert wide[0].schema == wide[1].schema
    assert Counter(map(str, wide[0].collect())) == Counter(map(str, wide[1].collect()))


def list_matches(frame):
    rows = frame.collect()
    lists = {row.event: (row.who, row.x, sorted(row.subscriptions)) for row in rows}
    assert len(lists) == len(rows)
    return {event: str(fields) for event, fields in lists.items()}


def test_equal_rows_stay_apart_when_their_lists_are_gathered(spark):
    events = spark.createDataFrame([(1, "ford")] * 3, "id int, make string")
    searches_ = [(n, "make = 'ford'") for n in range(20)]
    rows = ts.match(events, searches_, event_id="id", grouped=True, shards=4).collect()
    assert [(row.event, sorted(row.subscriptions)) for row in rows] == [(1, list(range(20)))] * 3


def test_a_limit_counts_the_matches_of_all_shards(world, live):
    limit = 60
    counts = Counter(event for event, _ in world["pairs"])
    assert any(count > limit for count in counts.values())
    few = {(event, id_) for event, id_ in world["pairs"] if counts[event] <= limit}
    for options in (
        {"subscriptions": live},
        {"subscriptions": world["wanted"], "schema": KINDS, "shards": 2},
        {"subscriptions": world["wanted"], "schema": KINDS},
    ):
        assert (
            pairs_of(ts.match(world["events"], event_id="id", now=NOW, unknown="absent", limit=limit, **options)) == few
        )
    grouped = ts.match(
        world["events"], live, event_id="id", now=NOW, unknown="absent", limit=limit, grouped=True
    ).collect()
    assert {row.event: len(row.subscriptions) for row in grouped} == dict(Counter(event for event, _ in few))
    over = ts.dead_letters(
        world["events"], world["wanted"], event_id="id", schema=KINDS, now=NOW, unknown="absent", limit=limit
    ).collect()
    assert {row.event for row in over} == {e for e, n in counts.items() if n > limit} | {e for e, _ in world["letters"]}


@settings(max_examples=3)
@given(
    st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["a < 5", "b = 'x'", "a > b1", "not a = 3"])),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["x", "y", None])), max_size=20),
    st.integers(1, 4),
)
def test_generated_sets_of_any_size_match_alike(spark, subscriptions, events, shards):
    rows = [(number, *event, 4) for number, event in enumerate(events)]
    frame = spark.createDataFrame(rows, "id int, a int, b string, b1 int")
    local = td.Matcher(schema=schema_of(frame.schema))
    local.add_many(subscriptions.items())
    expected = {(row[0], id_) for row in rows for id_ in local.match({"a": row[1], "b": row[2], "b1": 4})}
    searches_frame = spark.createDataFrame(list(subscriptions.items()), "id bigint, filter string")
    assert pairs_of(ts.match(frame, searches_frame, event_id="id", shards=shards)) == expected


# Parts ---------------------------------------------------------------------------------------------


def test_sql_deals_ids_to_the_parts_that_python_does(spark):
    text = [
        "",
        "s1",
        "ä",
        "日本語",
        "e\u0301",
        "a b",
        "'",
        "0",
        "-1",
        "x" * 300,
        "👩‍👩‍👧",
        *(f"s{n}" for n in range(300)),
    ]
    numbers = [0, -1, 2**63 - 1, -(2**63), *range(300)]
    for ids, kind in ((text, "string"), (numbers, "bigint")):
        frame = spark.createDataFrame([(id_,) for id_ in ids], f"id {kind}")
        parts = (1, 2, 3, 7, 64)
        rows = frame.select("id", *(build_part_column("id", number).alias(f"p{number}") for number in parts)).collect()
        assert len(rows) == len(ids)
        for row in rows:
            assert [row[f"p{number}"] for number in parts] == [compute_shard(row.id, number) for number in parts]


def test_shards_are_opened_and_changed_by_live_afterwards(spark, tmp_path):
    rows = [(f"s{n}", f"price < {n}", None) for n in range(200)]
    version = ts.compile(
        spark.createDataFrame(rows, "id string, filter string, notation string"), tmp_path / "c", shards=3
    )
    assert (version.number, version.count, version.ids) == (1, 200, "text")
    assert [len(shard["segments"]) for shard in version.shards] == [1, 1, 1]
    live = td.Live(tmp_path / "c", shards=3)
    live.change([("s5", "price > 100"), ("new", "price = 7")], ["s6"])
    assert sorted(live.open().match({"price": 198.5})) == ["s199", "s5"]
    live.add("t", "price = 'much'")  # nobody declared the price: it hinders nobody
    assert live.open().match({"price": "much"}) == ["t"]
    events = spark.createDataFrame([(1, 7.0)], "id int, price double")
    assert [row.subscription for row in ts.refused(events, live).collect()] == ["t"]
    assert {row.subscription for row in ts.match(events, live, event_id="id").collect()} == {"new"} | {
        f"s{n}" for n in range(8, 200)
    }
    assert len(load_version(tmp_path / "c", read_version(tmp_path / "c", 1)).backend) == 200


# What compile refuses ------------------------------------------------------------------------------


def frame_of(spark, rows, parts=3):
    return spark.createDataFrame(rows, "id string, filter string").repartition(parts)


def test_refusals_of_all_parts_are_listed_together_and_the_folder_can_be_used_again(spark, tmp_path):
    good = [(f"g{n}", "price < 9") for n in range(50)]
    bad = [(f"b{n:02}", "price <") for n in range(20)]
    with pytest.raises(BadSubscriptions, match=r"^20 subscriptions were refused, so none was taken") as refusal:
        ts.compile(frame_of(spark, [*good, *bad]), tmp_path / "c", shards=4)
    assert [id_ for id_, _ in refusal.value.errors] == [id_ for id_, _ in bad]
    assert ts.compile(frame_of(spark, good), tmp_path / "c", shards=4).count == 50
    assert td.Matcher.open(tmp_path / "c", verify=True).match({"price": 3.0})


def test_filters_of_different_kinds_live_side_by_side_and_only_a_declaration_refuses_them(spark, tmp_path):
    rows = [(f"n{n}", "price < 9") for n in range(9)] + [("t", "price = 'much'")]
    assert ts.compile(frame_of(spark, rows), tmp_path / "c", shards=8).count == 10
    both = td.Matcher.open(tmp_path / "c")
    assert sorted(both.match({"price": 3})) == [f"n{n}" for n in range(9)]
    assert both.match({"price": "much"}) == ["t"]
    with pytest.raises(BadSubscriptions, match="`price` is declared number, and this is text") as refusal:
        ts.compile(frame_of(spark, rows), tmp_path / "d", shards=8, schema={"price": "number"})
    assert [id_ for id_, _ in refusal.value.errors] == ["t"]


def test_two_attributes_are_compared_whatever_others_ask_of_them_unless_their_kinds_are_declared(spark, tmp_path):
    rows = [("one", "a < b"), *((f"n{n}", "a > 1") for n in range(9)), *((f"t{n}", "b = 'x'") for n in range(9))]
    assert ts.compile(frame_of(spark, rows), tmp_path / "c", shards=8).count == 19
    matcher = td.Matcher.open(tmp_path / "c")
    assert sorted(matcher.match({"a": 2, "b": 3})) == [*(f"n{n}" for n in range(9)), "one"]
    assert sorted(matcher.match({"a": 0, "b": "x"})) == [f"t{n}" for n in range(9)]
    with pytest.raises(BadSubscriptions, match="`one`"):
        ts.compile(frame_of(spark, rows), tmp_path / "d", shards=8, schema={"a": "number", "b": "text"})


def test_nulls_several_filters_under_one_id_and_folders_that_hold_something_are_refused(spark, tmp_path):
    with pytest.raises(BadFrame, match=r"`id` is null in 1 rows.*`filter` is null in 2 rows"):
        ts.compile(
            frame_of(spark, [(None, "a = 1"), ("x", None), ("y", None), ("z", "a = 1")]), tmp_path / "a", shards=3
        )
    with pytest.raises(BadSubscriptions, match="`x`: it has several filters"):
        ts.compile(frame_of(spark, [("x", "a = 1"), ("x", "a = 2"), ("y", "a = 1")]), tmp_path / "b", shards=3)
    same = frame_of(spark, [("x", "a = 1"), ("x", "a = 1"), ("y", "a = 1")])
    assert ts.compile(same, tmp_path / "c", shards=3).count == 2
    with pytest.raises(SnapshotError, match="is not empty"):
        ts.compile(same, tmp_path / "c", shards=3)
    with pytest.raises(BadFrame, match="shards is 1 or more"):
        ts.compile(same, tmp_path / "d", shards=0)


def test_a_closed_schema_holds_filters_and_events_to_it(spark, tmp_path):
    closed = td.Schema({"price": "number", "make": "text"}, closed=True)
    with pytest.raises(BadSubscriptions, match="unknown attribute `prise`; did you mean `price`"):
        ts.compile(frame_of(spark, [("x", "prise < 9"), ("y", "price < 9")]), tmp_path / "a", shards=2, schema=closed)
    ts.compile(frame_of(spark, [("y", "price < 9"), ("z", "price > 3")]), tmp_path / "b", shards=2, schema=closed)
    opened = td.Live(tmp_path / "b").open()
    assert (opened.schema, set(opened.needs())) == (closed, {"price", "make"})
    rows = [(1, 5.0, "ford"), (2, float("inf"), "x"), (3, float("nan"), "x")]  # NaN is null
    events = spark.createDataFrame(rows, "id int, price double, make string")
    assert pairs_of(ts.match(events, tmp_path / "b", event_id="id")) == {(1, "y"), (1, "z")}
    assert [row.event for row in ts.dead_letters(events, tmp_path / "b", event_id="id").collect()] == [2]


def test_an_empty_frame_makes_empty_shards_that_can_be_filled(spark, tmp_path):
    version = ts.compile(frame_of(spark, []), tmp_path / "c", shards=3)
    assert (version.count, len(version.shards)) == (0, 3)
    events = spark.createDataFrame([(1, 5)], "id int, price int")
    assert ts.match(events, tmp_path / "c", event_id="id").count() == 0
    td.Live(tmp_path / "c").add("s", "price = 5")
    assert pairs_of(ts.match(events, tmp_path / "c", event_id="id")) == {(1, "s")}


def test_the_driver_sees_a_few_lines_of_each_part_and_no_subscription(spark, tmp_path, monkeypatch):
    from pyspark.sql.classic.dataframe import DataFrame

    seen = []
    for name in ("collect", "toArrow", "toPandas", "toLocalIterator", "take", "head"):
        real = getattr(DataFrame, name)

        def record_result(self, *arguments, real=real, **named):
            result = real(self, *arguments, **named)
            seen.append(result)
            return result

        monkeypatch.setattr(DataFrame, name, record_result)
    frame = spark.range(20_000).selectExpr("concat('secret-', id) AS id", "concat('price < ', id) AS filter")
    events = spark.createDataFrame([(1, 19_990)], "id int, price int")
    assert ts.match(events, frame, event_id="id", shards=2).count() == 9
    rows = [row for result in seen for row in result]
    assert rows
    assert len(rows) <= 8
    assert all("secret" not in row.report or len(row.report) < 20_000 for row in rows)
    assert sum(len(row.report) for row in rows) < 100_000


# Skew ----------------------------------------------------------------------------------------------


def rows_by_task(frame, shards, spread):
    """Count the rows that each task of the crossing is handed, and the shards that they are for."""
    copies, place = distribute_rows(frame, shards, spread)
    shard = F.lit(0) if place is None else F.col(copies.columns[place])
    rows = copies.groupBy(F.spark_partition_id().alias("task")).agg(
        F.count("*").alias("n"), F.collect_set(shard).alias("of")
    )
    tasks = rows.collect()
    assert all(len(row.of) == 1 for row in tasks)  # a task is for one shard
    return [row.n for row in tasks]


@pytest.mark.parametrize(("shards", "spread"), [(1, 4), (2, 2), (4, 4)])
def test_a_hot_kind_of_event_is_spread_over_all_tasks(spark, shards, spread):
    hot = spark.range(4000, numPartitions=2).selectExpr("if(id % 20 = 0, concat('make', id), 'ford') AS _0", "1 AS _1")
    counts = rows_by_task(hot, shards, spread)
    assert sum(counts) == 4000 * shards
    assert len(counts) == shards * spread
    assert max(counts) <= 2 * 4000 / spread


def test_a_huge_group_of_like_subscriptions_is_dealt_to_all_shards_alike(spark, tmp_path):
    filters = "if(id % 10 = 0, concat('price < ', id), concat('make = \\'ford\\' and price < ', id)) AS filter"
    frame = spark.range(6000).selectExpr("concat('s', id) AS id", filters)
    version = ts.compile(frame, tmp_path / "c", shards=4)
    counts = [shard["count"] for shard in version.shards]
    assert sum(counts) == 6000
    assert max(counts) <= 1.3 * 6000 / 4


# Crowds --------------------------------------------------------------------------------------------
