"""The shapes that `match` and `dead_letters` give back, and what they refuse."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

import tidings as td
from tidings import spark as ts
from tidings.errors import BadFrame, BadSubscriptions, KindConflict
from tidings.model import Is, Test

SEARCHES = [("cheap", "price < 9000"), ("ford", "make = 'ford'"), ("red", "make = 'red'")]


@pytest.fixture(scope="module")
def ads(spark):
    rows = [(1, "ford", 8500, "a"), (2, "ford", 12000, "b"), (3, "opel", 20000, "c")]
    return spark.createDataFrame(rows, "id bigint, make string, price int, url string").cache()


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_with_an_event_id_the_columns_are_event_and_subscription(ads):
    pairs = ts.match(ads, SEARCHES, event_id="id")
    assert pairs.columns == ["event", "subscription"]
    assert rows(pairs) == [(1, "cheap"), (1, "ford"), (2, "ford")]


def test_the_event_keeps_the_type_of_its_column(ads):
    typed = ts.match(ads, [(7, "price > 0")], event_id="url")
    assert typed.schema.simpleString() == "struct<event:string,subscription:bigint>"
    assert rows(typed) == [("a", 7), ("b", 7), ("c", 7)]


def test_without_an_event_id_all_columns_come_back(ads):
    wide = ts.match(ads, SEARCHES)
    assert wide.columns == [*ads.columns, "subscription"]
    assert rows(wide)[0] == (1, "ford", 8500, "a", "cheap")


def test_keep_carries_columns_along(ads):
    kept = ts.match(ads, SEARCHES, event_id="id", keep=["url", "price"])
    assert kept.columns == ["event", "subscription", "url", "price"]
    assert rows(kept)[2] == (2, "ford", "b", 12000)


def test_keep_alone_replaces_the_event_columns(ads):
    kept = ts.match(ads, SEARCHES, keep=["url"])
    assert kept.columns == ["url", "subscription"]
    assert rows(kept) == [("a", "cheap"), ("a", "ford"), ("b", "ford")]


def test_grouped_gives_a_row_for_each_event_that_matched(ads):
    lists = ts.match(ads, SEARCHES, event_id="id", grouped=True, keep=["url"])
    assert lists.columns == ["event", "subscriptions", "url"]
    subscriptions = {row.event: sorted(row.subscriptions) for row in lists.collect()}
    assert subscriptions == {1: ["cheap", "ford"], 2: ["ford"]}


def test_only_needed_columns_cross_into_python(ads):
    plan = ts.match(ads, [("ford", "make = 'ford'")], event_id="id")
    with_junk = ads.withColumn("junk", F.expr("interval 1 month"))
    assert rows(ts.match(with_junk, [("ford", "make = 'ford'")], event_id="id")) == rows(plan)


def test_an_event_column_called_subscription_needs_event_id_or_keep(ads):
    frame = ads.withColumnRenamed("url", "Subscription")
    with pytest.raises(BadFrame, match="a column `subscription` themselves; say event_id= or keep="):
        ts.match(frame, SEARCHES)
    assert ts.match(frame, SEARCHES, event_id="Subscription").count() == 3
    assert ts.match(frame, SEARCHES, keep=["price"]).count() == 3


def test_names_with_dots_and_backticks_are_just_names(spark):
    frame = spark.createDataFrame([(1, "ford", "x")], "`the id` int, `car.make` string, `odd``name` string")
    searches = [("a", "car.make = 'ford'"), ("b", Test("odd`name", Is("x")))]
    assert rows(ts.match(frame, searches, event_id="the id", keep=["odd`name"])) == [(1, "a", "x"), (1, "b", "x")]
    assert len(rows(ts.match(frame, searches))) == 2


def test_a_filter_may_name_a_column_that_is_not_there_where_that_is_asked_for(ads):
    searches = [("none", "town = 'bern'"), ("not", "not town = 'bern'")]
    assert rows(ts.match(ads, searches, event_id="id", unknown="absent")) == [(1, "not"), (2, "not"), (3, "not")]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"grouped": True}, "grouped=True .* needs event_id"),
        ({"event_id": "idd"}, "event_id: the DataFrame has no column `idd`; did you mean `id`?"),
        ({"event_id": "id", "keep": ["prize", "urn"]}, "no column `prize`(.|\n)*no column `urn`"),
        ({"keep": "url"}, r"keep is a list of columns: keep=\['url'\]"),
        ({"keep": ["url", "url"]}, "`url` is named twice"),
    ],
)
def test_what_does_not_fit_the_columns_is_refused(ads, asked, message):
    with pytest.raises(BadFrame, match=message):
        ts.match(ads, SEARCHES, **asked)


@pytest.mark.parametrize("name", ["event", "Subscription"])
def test_keep_cannot_take_the_name_of_an_output_column(ads, name):
    with pytest.raises(BadFrame, match=f"keep: `{name}` is a column of the output already"):
        ts.match(ads.withColumnRenamed("url", name), SEARCHES, event_id="id", keep=[name])


def test_two_columns_of_one_name_are_refused_where_they_matter(ads):
    doubled = ads.select("id", "make", "price", F.col("url").alias("price"))
    with pytest.raises(BadFrame, match="2 columns called `price`"):
        ts.match(doubled, SEARCHES)
    assert rows(ts.match(doubled, SEARCHES[1:2], event_id="id")) == [(1, "ford"), (2, "ford")]
    assert rows(ts.match(doubled, [("all", "id > 0")], event_id="make")) == [
        ("ford", "all"),
        ("ford", "all"),
        ("opel", "all"),
    ]


def test_a_column_that_arrow_cannot_carry_is_refused_by_name(ads):
    with pytest.raises(BadFrame, match="`month` is interval"):
        ts.match(ads.withColumn("month", F.expr("interval 1 month")), SEARCHES)


def test_a_filter_that_contradicts_a_column_is_refused_before_any_job(ads):
    with pytest.raises(BadSubscriptions, match="`s`: `price` is declared number, and this is text"):
        ts.match(ads, [("s", "price = 'cheap'")])


def test_a_matcher_that_contradicts_a_column_is_refused_too(ads):
    matcher = td.Matcher()
    matcher.add("s", "price = 'cheap'")
    with pytest.raises(KindConflict, match="`price` is number in the DataFrame, but is used as text"):
        ts.match(ads, matcher)


def test_the_callers_schema_wins_over_the_frames(spark):
    frame = spark.createDataFrame([(1, [8.5, 47.4])], "id int, spot array<double>")
    near = [("near", "spot near (8.5, 47.4) 1 km")]
    with pytest.raises(td.TidingsError, match="`spot` is declared number, and this is place"):
        ts.match(frame, near, event_id="id")
    assert rows(ts.match(frame, near, event_id="id", schema={"spot": "place"})) == [(1, "near")]


def test_the_callers_schema_finds_misspelt_attributes(ads):
    with pytest.raises(td.TidingsError, match="unknown attribute `mkae`; did you mean `make`"):
        ts.match(ads, [("s", "mkae = 'ford'")], schema={"price": "number"})


def test_the_callers_schema_holds_events_to_what_it_says_and_to_no_other_column(spark):
    nan, ddl = float("nan"), "id int, price string, weight double"
    frame = spark.createDataFrame([(1, "10", nan), (2, "ten", 1.0), (3, "30", 1.0)], ddl)
    about = {"event_id": "id", "schema": {"id": "number", "price": "number"}}
    assert rows(ts.match(frame, [("all", "id > 0")], **about)) == [(1, "all"), (3, "all")]
    assert [row.event for row in ts.dead_letters(frame, [("all", "id > 0")], **about).collect()] == [2]


def test_now_is_an_argument(spark):
    frame = spark.createDataFrame([(1, datetime(2024, 4, 28, tzinfo=UTC))], "id int, posted timestamp")
    week = [("week", "age(posted) < 7 days")]
    assert ts.match(frame, week, event_id="id", now=datetime(2024, 5, 1, tzinfo=UTC)).count() == 1
    assert ts.match(frame, week, event_id="id").count() == 0


def test_now_is_the_time_of_the_query_unless_it_is_given(spark):
    frame = spark.range(1000).select("id", F.current_timestamp().alias("posted"))
    fresh = [("fresh", "age(posted) <= 0 s and age(posted) >= 0 s")]
    assert ts.match(frame, fresh, event_id="id").count() == 1000


def test_a_matcher_with_its_own_now_keeps_it(spark):
    frame = spark.createDataFrame([(1, datetime(2024, 4, 28, tzinfo=UTC))], "id int, posted timestamp")
    matcher = td.Matcher(now=datetime(2024, 5, 1, tzinfo=UTC))
    matcher.add("week", "age(posted) < 7 days")
    assert ts.match(frame, matcher, event_id="id").count() == 1


def test_dead_letters_say_which_event_why_and_what_it_was(spark):
    ddl = "id int, price string, size double, note string"
    good, words, infinite = (1, "10", 1.0, None), (2, "ten", 2.0, None), (3, "30", float("inf"), "x")
    frame = spark.createDataFrame([good, words, infinite], ddl)
    searches, about = [("s", "price < 20 or size > 1")], {"event_id": "id", "schema": {"price": "number"}}
    letters = {row.event: row for row in ts.dead_letters(frame, searches, **about).collect()}
    assert letters.keys() == {2, 3}
    assert letters[2].reason == "`price`: 'ten' is not a number"
    assert "`size`" in letters[3].reason
    assert json.loads(letters[2].row) == {"id": 2, "price": "ten", "size": 2.0, "note": None}
    assert rows(ts.match(frame, searches, **about)) == [(1, "s")]


@pytest.mark.parametrize("asked", ["id > 0", "size > 0 or id > 0"])
def test_nan_is_null_and_an_infinity_is_bad_whether_a_filter_looks_or_not(spark, asked):
    frame = spark.createDataFrame([(1, float("nan")), (2, float("inf")), (3, 1.0)], "id int, size double")
    assert rows(ts.match(frame, [("s", asked)], event_id="id")) == [(1, "s"), (3, "s")]
    letters = ts.dead_letters(frame, [("s", asked)], event_id="id").collect()
    assert [(row.event, row.reason.split(":")[0]) for row in letters] == [(2, "`size`")]


@pytest.mark.parametrize("asked", ["id > 0", "s.a > 0", "s.b > 0 or id > 0", "t.c > 0", "p.lon > 0", "s exists"])
def test_fields_that_no_filter_asks_for_are_held_to_their_types_too(spark, asked):
    fields = "s struct<a: double, b: double>, t array<struct<c: double, d: date>>, p struct<lon: double, lat: double>"
    whole, inf, point = [(1.0, None)], float("inf"), (8.0, 47.0)
    rows_ = [
        (1, (1.0, 1.0), whole, point),
        (2, (1.0, inf), whole, point),
        (3, (1.0, 1.0), [*whole, None, (inf, None)], point),
        (4, (1.0, 1.0), whole, (200.0, 47.0)),
    ]
    frame = spark.createDataFrame(rows_, f"id int, {fields}")
    assert rows(ts.match(frame, [("x", asked)], event_id="id")) == [(1, "x")]
    letters = {
        row.event: row.reason.split(":")[0] for row in ts.dead_letters(frame, [("x", asked)], event_id="id").collect()
    }
    assert letters == {2: "`s.b`", 3: "`t.c`", 4: "`p`"}


def test_nan_satisfies_is_null_and_no_comparison(spark):
    frame = spark.createDataFrame([(1, float("nan")), (2, None), (3, 1.0)], "id int, size double")
    searches = [("null", "size is null"), ("there", "size exists"), ("less", "size < 2"), ("not", "size != 2")]
    expected = [(1, "null"), (2, "null"), (3, "less"), (3, "not"), (3, "there")]
    assert rows(ts.match(frame, searches, event_id="id")) == expected


# A column of strings is text ---------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["price < 20", "price > 2024-01-01", "price = true", "price near (8, 47) 1 km"])
def test_a_column_of_strings_is_not_asked_as_a_number_a_time_a_bool_or_a_place(spark, asked):
    frame = spark.createDataFrame([(1, "10")], "id int, price string")
    with pytest.raises(BadSubscriptions, match="`s`: `price` is declared text, and this is"):
        ts.match(frame, [("s", asked)], event_id="id")
    matcher = td.Matcher()
    matcher.add("s", asked)
    with pytest.raises(KindConflict, match="`price` is string in the DataFrame, but is used as"):
        ts.match(frame, matcher, event_id="id")


def test_a_column_of_strings_is_asked_as_text_a_concept_and_an_address_side_by_side(spark):
    frame = spark.createDataFrame([(1, "10.0.0.7"), (2, "fridge"), (3, "10.0.0")], "id int, what string")
    searches = [("text", "what starts with '10'"), ("net", "what in 10.0.0.0/8"), ("kind", "what is a 'appliance'")]
    ontology = td.Ontology.from_dict({"trees": {"goods": {"outline": "appliance\n  fridge"}}})
    about = {"event_id": "id", "ontology": ontology}
    assert rows(ts.match(frame, searches, **about)) == [(1, "net"), (1, "text"), (2, "kind"), (3, "text")]
    assert ts.dead_letters(frame, searches, **about).count() == 0


SCHEMAS = [
    {"price": "number", "at": "time"},
    td.Schema({"price": "number", "at": "time"}),
    StructType().add("price", "double").add("at", "timestamp"),
    pa.schema({"price": pa.float64(), "at": pa.timestamp("us", "UTC")}),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=["mapping", "td.Schema", "StructType", "Arrow"])
def test_a_column_of_strings_takes_the_kind_that_the_schema_gives_it(spark, schema):
    ddl = "id int, price string, at string"
    frame = spark.createDataFrame([(1, "9", "2024-05-01"), (2, "10", "2023-05-01"), (3, "dear", None)], ddl)
    searches = [("cheap", "price < 9.5"), ("new", "at > 2024-01-01")]
    about = {"event_id": "id", "schema": schema}
    assert rows(ts.match(frame, searches, **about)) == [(1, "cheap"), (1, "new")]
    assert [row.event for row in ts.dead_letters(frame, searches, **about).collect()] == [3]
    with pytest.raises(BadSubscriptions, match="`price` is declared number, and this is text"):
        ts.match(frame, [("text", "price starts with '9'")], **about)


def test_dead_letters_without_an_event_id_have_no_column_event(spark):
    frame = spark.createDataFrame([("ten",)], "price string")
    letters = ts.dead_letters(frame, [("s", "price < 20")], schema={"price": "number"})
    assert letters.columns == ["reason", "row"]
    assert letters.first().row == '{"price":"ten"}'


def test_dead_letters_of_a_frame_with_awkward_columns(spark):
    frame = spark.createDataFrame([(1, "ten", "x")], "reason int, price string, __tidings_reason string")
    frame = frame.withColumn("month", F.expr("interval 1 month")).withColumn("raw", F.lit("x").cast("binary"))
    letter = ts.dead_letters(frame, [("s", "price < 20")], event_id="reason", schema={"price": "number"}).first()
    assert letter.event == 1
    assert json.loads(letter.row)["reason"] == 1
    assert json.loads(letter.row)["month"] == "INTERVAL '1' MONTH"


def test_a_time_that_python_cannot_hold_is_a_dead_letter(spark):
    times = "(1, timestamp'+12345-01-01'), (2, timestamp'2024-01-01'), (3, timestamp'-0044-03-15')"
    frame = spark.sql(f"SELECT * FROM VALUES {times} AS t(id, at)")
    searches = [("all", "not at = 2000-01-01"), ("late", "at > 2000-01-01")]
    assert rows(ts.match(frame, searches, event_id="id")) == [(2, "all"), (2, "late")]
    letters = ts.dead_letters(frame, searches, event_id="id").orderBy("event").collect()
    assert [letter.event for letter in letters] == [1, 3]
    assert all(letter.reason.startswith("`at`: ") for letter in letters)
    assert "+12345-01-01" in letters[0].row


@pytest.mark.parametrize("asked", ["name ends with 'A'", "id > 0"])
def test_text_that_is_not_utf8_is_a_dead_letter_whether_a_filter_looks_or_not(spark, asked):
    frame = spark.sql("SELECT 1 AS id, CAST(X'FF41' AS STRING) AS name UNION ALL SELECT 2, 'A'")
    searches = [("a", asked)]
    assert rows(ts.match(frame, searches, event_id="id")) == [(2, "a")]
    letter = ts.dead_letters(frame, searches, event_id="id").first()
    assert (letter.event, letter.reason.split(":")[0]) == (1, "`name`")


def test_no_column_at_all_need_cross(ads):
    now = datetime(2024, 5, 1, tzinfo=UTC)
    frame = ts.match(ads, [("all", "not town = 'bern'")], keep=[], now=now, unknown="absent")
    assert rows(frame) == [("all",)] * 3


def test_an_empty_frame_and_no_subscriptions_give_no_rows(ads):
    assert ts.match(ads.where("false"), SEARCHES).count() == 0
    assert ts.match(ads, []).count() == 0
    assert ts.dead_letters(ads, []).count() == 0


@pytest.mark.parametrize("zone", ["America/New_York", "GMT+2", "+01:00", "Z"])
def test_frames_of_other_time_zones_hold_the_same_moments(spark, zone):
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    ddl = "id int, at timestamp, past array<timestamp>, when struct<at: timestamp>, log map<string, timestamp>"
    frame = spark.createDataFrame([(1, at, [None, at], (at,), {"a": at})], ddl)
    noon = "= 2024-05-01T12:00:00Z"
    searches = list(enumerate([f"{name} {noon}" for name in ("at", "past", "when.at", "log.a")]))
    searches.append((4, "age(at) < 100000 days"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert rows(ts.match(frame, searches, event_id="id")) == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
