"""What a newcomer gets wrong first: every slip is answered by our error, at once, with the way out."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

import tidings as td
from tidings.concepts import parse_now

CITY = td.Schema({"city": "text", "price": "number", "posted": "time"})


def starts(text, **keywords):
    with pytest.raises(td.FilterError) as refused:
        td.parse(text, **keywords)
    return [mistake.start for mistake in refused.value.mistakes]


@pytest.mark.parametrize("word", ["schema", "ontology", "regions"])
@pytest.mark.parametrize(
    "take", [td.Matcher, lambda **keywords: td.parse("a = 1", **keywords)], ids=["Matcher", "parse"]
)
def test_surroundings_of_another_type_are_refused_with_the_way_to_make_one(word, take):
    with pytest.raises(td.TidingsError, match=rf"{word}= takes td\.{word.capitalize()}.*not a `dict`"):
        take(**{word: {"a": "number"}})


def test_now_is_a_time_and_without_a_zone_it_is_utc():
    with pytest.raises(td.TidingsError, match="now= takes a datetime, not `'today'`"):
        td.Matcher(now="today")
    assert parse_now(datetime(2024, 5, 1)) == parse_now(date(2024, 5, 1)) == datetime(2024, 5, 1, tzinfo=UTC)  # noqa: DTZ001
    assert parse_now(None) is None


def test_an_event_of_another_type_is_bad_in_a_batch_too():
    searches = td.Matcher()
    searches.add("s", "a = 1")
    with pytest.raises(td.BadEvent, match="event 1: an event is a mapping") as refused:
        searches.match_many([{"a": 1}, 5])
    assert refused.value.index == 1
    assert refused.value.attribute is None


def test_match_many_knows_the_words_of_on_error():
    with pytest.raises(td.TidingsError, match="on_error is `raise` or `collect`, not `ignore`"):
        td.Matcher().match_many([], on_error="ignore")


@pytest.mark.parametrize("value", ["a = 1", None, 5, {"attr": "a"}])
@pytest.mark.parametrize("notation", ["text", "json", "url"])
def test_only_a_parsed_filter_is_rendered(value, notation):
    with pytest.raises(td.FilterError, match=r"parsed filter.*td\.parse makes one"):
        td.render(value, notation=notation)


@pytest.mark.parametrize(
    ("low", "high", "words"), [(10, 1, "above"), (1, "b", "two numbers"), (float("nan"), 1, "nan")]
)
def test_a_range_that_is_none_is_our_error(low, high, words):
    with pytest.raises(td.TidingsError, match=words):
        td.Range(low, high)


def test_the_ends_of_a_range_may_be_dates():
    stay = td.Range(date(2024, 1, 1), date(2024, 2, 1))
    assert stay.high == datetime(2024, 2, 1, tzinfo=UTC)
    assert td.evaluate(td.parse("stay > 2024-01-15"), {"stay": stay})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"id": {"a": 1}}, r"id is text or an integer \(what it says goes in values="),
        ({"id": True}, "id is text or an integer"),
        ({"values": 5}, "values are a mapping"),
        ({"time": "noon"}, "time is a datetime"),
        ({"payload": "x"}, "payload is bytes"),
    ],
)
def test_what_cannot_be_an_event_is_refused_where_it_is_made(value, words):
    with pytest.raises(td.BadEvent, match=words):
        td.Event(**value)


def test_a_schema_is_a_mapping_of_names(tmp_path):
    for value in ("price", ["price"], {5: "text"}):
        with pytest.raises(td.TidingsError, match=r"a schema is a mapping|name is text"):
            td.Schema(value)
    (tmp_path / "schema.toml").write_text("attributes = 5\n")
    with pytest.raises(td.TidingsError, match="a schema is a mapping"):
        td.Schema.load(tmp_path / "schema.toml")


def test_an_arrow_table_is_as_good_as_its_schema():
    table = pa.table({"a": [1]})
    assert td.Schema.from_arrow(table) == td.Schema.from_arrow(table.schema) == td.Schema({"a": "number"})
    with pytest.raises(td.TidingsError, match="from_arrow takes an Arrow schema or table, not int"):
        td.Schema.from_arrow(5)


def test_unknown_names_are_reported_together_with_mistakes_of_writing():
    assert starts("price == 1 and cty = 'x' and posted > 2024-13-01", schema=CITY) == [7, 15, 38]
    assert starts("cty=1&prce=5&price=x", notation="url", schema=CITY) == [0, 6, 13]
    source = {"and": [{"attr": "cty", "op": "=", "value": "x"}, {"attr": "price", "op": "zz"}]}
    with pytest.raises(td.FilterError) as refused:
        td.parse(source, notation="json", schema=CITY)
    assert [mistake.path for mistake in refused.value.mistakes] == ["$.and[0]", "$.and[1].op"]


def test_a_mistake_is_reported_once():
    """A stand-in for a value that could not be read does not fit the attribute; that is no second mistake."""
    assert starts("posted in [2024-13-01 .. 2024-02-01]", schema=CITY) == [11]
    assert starts("posted > 2024-13-01 and city = 'x'", schema=CITY) == [9]


def test_the_opposite_of_exists_is_shown():
    with pytest.raises(td.FilterError, match=r"`not \(a exists\)`"):
        td.parse("a not exists")


@pytest.mark.parametrize("source", ["a = 1", None, {"attr": "a", "op": "exists"}, 5])
def test_what_is_not_parsed_yet_is_refused_by_everything_that_takes_a_filter(source):
    tree = td.parse("a = 1")
    for use in (
        lambda: td.evaluate(source, {"a": 1}),
        lambda: td.simplify(source),
        lambda: td.normal_form(source),
        lambda: td.covers(tree, source),
        lambda: td.covers(source, tree),
        lambda: td.overlaps(source, tree),
        lambda: td.infer_schema([source]),
        lambda: td.render(source),
    ):
        with pytest.raises(td.FilterError, match=r"td\.parse makes one"):
            use()


def test_surroundings_of_another_type_are_refused_by_the_algebra_too():
    tree = td.parse("a = 1")
    for use in (
        lambda **value: td.evaluate(tree, {"a": 1}, **value),
        lambda **value: td.covers(tree, tree, **value),
        lambda **value: td.overlaps(tree, tree, **value),
        lambda **value: td.simplify(tree, **value),
    ):
        for value in ({"schema": {"a": "number"}}, {"ontology": "x.toml"}, {"regions": 5}, {"now": "today"}):
            with pytest.raises(td.TidingsError, match=next(iter(value))):
                use(**value)


def test_a_time_without_a_zone_is_utc_for_now_as_well():
    tree = td.parse("age(p) < 3 days")
    assert td.evaluate(tree, {"p": "2024-04-28"}, now=datetime(2024, 4, 30))  # noqa: DTZ001 - the case
    assert not td.evaluate(tree, {"p": "2024-04-28"}, now=date(2024, 5, 1))
