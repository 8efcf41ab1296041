"""Names that no column has: refused with the nearest names, told together, and absent where somebody asks for that."""

import json

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.sql.types import StructType

import tidings as td
from tidings import spark as ts
from tidings.errors import BadFrame, BadPipeline, BadSubscriptions, PatternError, SchemaError, UnknownAttributes
from tidings.spark.query_context import to_schema

DDL = "id INT, make STRING, price DOUBLE, seller STRUCT<kind: STRING>, tags MAP<STRING, STRING>"
ROWS = [(1, "ford", 5.0, ("dealer",), {"abs": "yes"}), (2, "opel", 7.0, None, None)]
GOOD = [("fords", "make = 'ford'"), ("dealers", "seller.kind = 'dealer'"), ("abs", "tags.abs = 'yes'")]
BAD = [*GOOD, ("cheap", "pirce < 9"), ("kinds", "not seller.knd = 'x'")]


@pytest.fixture(scope="module")
def events(spark):
    return spark.createDataFrame(ROWS, DDL).cache()


def pairs(frame):
    return sorted((row["event"], row["subscription"]) for row in frame.collect())


# ts.match ----------------------------------------------------------------------------------------------


def forms(spark, tmp_path, wanted):
    """The same subscriptions in each of their forms, and what refuses them."""
    matcher = td.Matcher()
    matcher.add_many(wanted)
    matcher.save(tmp_path / "snapshot")
    yield wanted, BadSubscriptions
    yield spark.createDataFrame(wanted, "id STRING, filter STRING"), BadSubscriptions
    yield matcher, UnknownAttributes
    yield str(tmp_path / "snapshot"), UnknownAttributes


def test_every_misspelt_name_is_an_error_with_the_nearest_name_in_every_form(spark, events, tmp_path):
    for subscriptions, error in forms(spark, tmp_path, BAD):
        with pytest.raises(error) as refused:
            ts.match(events, subscriptions, event_id="id")
        assert "unknown attribute `pirce`; did you mean `price`?" in str(refused.value)
        assert "unknown attribute `seller.knd`; did you mean `seller.kind`?" in str(refused.value)
        with pytest.raises(error):
            ts.dead_letters(events, subscriptions)


def test_absent_opens_the_world_in_every_form(spark, events, tmp_path):
    expected = [(1, "abs"), (1, "dealers"), (1, "fords"), (1, "kinds"), (2, "kinds")]
    for subscriptions, _ in forms(spark, tmp_path, BAD):
        assert pairs(ts.match(events, subscriptions, event_id="id", unknown="absent")) == expected
        assert ts.dead_letters(events, subscriptions, unknown="absent").count() == 0


def test_names_below_structs_and_maps_and_of_an_ontology_are_known(events):
    ontology = td.Ontology.from_dict({"attributes": {"make": {"synonyms": ["brand"]}}})
    wanted = [*GOOD, ("brands", "brand = 'opel'")]
    expected = [(1, "abs"), (1, "dealers"), (1, "fords"), (2, "brands")]
    assert pairs(ts.match(events, wanted, event_id="id", ontology=ontology)) == expected


def test_what_a_matcher_declares_is_known_though_no_column_has_it(events):
    matcher = td.Matcher(schema=td.Schema({"colour": "text", "price": "number"}))
    matcher.add("red", "colour = 'red' or price > 6")
    assert pairs(ts.match(events, matcher, event_id="id")) == [(2, "red")]


def test_unknown_is_one_of_two_words(events):
    with pytest.raises(BadFrame, match='unknown is "error" or "absent", not \'ignore\''):
        ts.match(events, GOOD, unknown="ignore")


# Patterns ----------------------------------------------------------------------------------------------


def test_a_pattern_that_names_no_column_is_refused_or_absent(spark):
    events = spark.createDataFrame([(1, 10, "a"), (2, 20, "b")], "id INT, at BIGINT, make STRING")
    wrong = {"misspelt": "a = mak = 'a'\nb = make = 'b'\na ; b"}
    with pytest.raises(PatternError, match="unknown attribute `mak`; did you mean `make`"):
        ts.detect(events, wrong, time="at", event_id="id")
    assert ts.detect(events, wrong, time="at", event_id="id", unknown="absent").count() == 0
    joined = {"joined": "a = make = 'a' and mak = $x\nb = make = 'b' and mak = $x\na ; b"}
    with pytest.raises((BadFrame, PatternError), match="unknown attribute `mak`; did you mean `make`"):
        ts.detect(events, joined, time="at", event_id="id")


# Schemas -----------------------------------------------------------------------------------------------


def test_a_schema_may_be_sparks_or_arrows(events):
    wanted = [("late", "make > '2024-01-01'")]
    for schema in (
        StructType.fromDDL("make STRING, colour STRING"),
        pa.schema([("make", pa.string()), ("colour", pa.string())]),
        {"make": "text", "colour": "text"},
    ):
        assert "colour" in to_schema(schema)
        assert pairs(ts.match(events, [*wanted, ("red", "colour = 'red'")], event_id="id", schema=schema)) == [
            (1, "late"),
            (2, "late"),
        ]


def test_what_is_no_schema_is_refused_with_the_forms_that_are(events):
    with pytest.raises(
        SchemaError, match=r"schema= takes a td\.Schema, a mapping of names to kinds, Spark's StructType"
    ):
        ts.match(events, GOOD, schema=["make"])


def test_schema_of_takes_a_frame_or_its_schema_and_says_so(events):
    assert ts.schema_of(events) == ts.schema_of(events.schema)
    for wrong in ({"a": "number"}, pa.schema([]), "a INT", None):
        with pytest.raises(BadFrame, match=f"takes a DataFrame or Spark's StructType, not `{type(wrong).__name__}`"):
            ts.schema_of(wrong)


# Pipelines ---------------------------------------------------------------------------------------------


def test_a_misspelt_column_in_a_pipeline_refuses_that_subscription_alone(pipe):
    pipe.searches("1", good="price > 1", misspelt="pirce > 1", unlike="price = 'x'", open="not pirce > 1")
    pipe.events({"id": 1, "price": 5})
    outcome = pipe.toml().run()
    assert pipe.matches() == [(0, 1, "good")]
    refused = {row["id"]: row["reason"] for row in pipe.read_refused()}
    assert set(refused) == {"misspelt", "open", "unlike"}
    assert "unknown attribute `pirce`; did you mean `price`?" in refused["misspelt"]
    assert any("subscription `misspelt` refused: unknown attribute `pirce`" in text for text in pipe.warnings)
    assert [report["refused_subscriptions"] for report in pipe.reports] == [3]
    assert (outcome.refused_subscriptions, outcome.dead_letters) == (3, 0)
    assert "3 changes of subscriptions were refused" in (pipe.folder / "lines.jsonl").read_text().splitlines()[-1]


def test_refusals_are_told_before_the_first_event_comes(pipe):
    pipe.searches("1", misspelt="pirce > 1")
    outcome = pipe.toml().run()
    assert outcome.refused_subscriptions == 1
    assert [row["batch"] for row in pipe.read_refused()] == [None]
    assert len(pipe.warnings) == 1


def test_a_pipeline_may_have_names_that_are_absent(pipe):
    pipe.searches("1", good="price > 1", misspelt="pirce > 1", open="not pirce > 1")
    pipe.events({"id": 1, "price": 5})
    pipe.toml(top='unknown = "absent"').run()
    assert pipe.matches() == [(0, 1, "good"), (0, 1, "open")]
    assert pipe.read_refused() == []


def test_a_misspelt_column_in_a_change_is_refused_while_the_stream_runs(pipe):
    pipe.searches("1", good="price > 1")
    pipe.events({"id": 1, "price": 5})
    pipe.events({"id": 2, "price": 6})
    pipe.during(0, lambda: pipe.searches("2", misspelt="pirce > 1", more="price > 2"))
    pipe.toml().run()
    assert pipe.matches() == [(0, 1, "good"), (1, 2, "good"), (1, 2, "more")]
    assert [(row["id"], row["batch"]) for row in pipe.read_refused()] == [("misspelt", 1)]


def test_patterns_that_name_no_column_are_a_mistake_at_the_start(pipe):
    (pipe.folder / "attacks.patterns").write_text("pattern twice\n  a = mak = 'ford'\n  x:a ; y:a\n")
    pipe.searches("1", good="price > 1")
    pipe.events({"id": 1, "price": 5, "posted": "2024-01-01T00:00:00Z"})
    more = '[patterns]\nfile = "attacks.patterns"\nlateness = "1 minute"\n[[detections]]\nkind = "json"\npath = "found"'
    with pytest.raises(BadPipeline, match="unknown attribute `mak`; did you mean `make`"):
        pipe.toml(more=more).run()
    pipe.toml(more=more, top='unknown = "absent"').run()
    assert [json.loads(letter["row"]) for letter in pipe.letters()] == []
