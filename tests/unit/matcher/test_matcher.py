"""The façade: what the contract checks do not say already."""

import pickle
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import tidings as td
from tidings.errors import BadSubscriptions, KindConflict, UnknownMatcher

NOW = datetime(2024, 5, 1, tzinfo=UTC)


def test_three_notations_go_in():
    searches = td.Matcher()
    searches.add("text", "a = 1")
    searches.add("url", "a=1", notation="url")
    searches.add("json", {"attr": "a", "op": "=", "value": 1})
    searches.add("tree", td.parse("a = 1"))
    assert sorted(searches.match({"a": 1})) == ["json", "text", "tree", "url"]


def test_an_arrow_table_brings_ids_filters_and_notations():
    table = pa.table({"id": [1, 2], "filter": ["a = 1", "a=1"], "notation": [None, "url"]})
    searches = td.Matcher()
    assert searches.add_many(table) == []
    assert sorted(searches.match({"a": 1})) == [1, 2]
    with pytest.raises(td.TidingsError, match="lacks the column `filter`"):
        searches.add_many(pa.table({"id": [1]}))


@pytest.mark.parametrize(
    "subscriptions", [pa.array([1]), pa.scalar(1), pa.schema([("id", pa.int64()), ("a", pa.int64())]), "a"]
)
def test_what_is_no_table_is_refused_with_what_is_taken(subscriptions):
    with pytest.raises(td.TidingsError, match=r"add_many takes pairs of id and filter, or an Arrow table"):
        td.Matcher().add_many(subscriptions)


def test_one_bad_filter_among_many_adds_none_and_names_every_bad_one():
    searches = td.Matcher()
    searches.add("old", "a = 1")
    with pytest.raises(BadSubscriptions) as refused:
        searches.add_many([("x", "a = 2"), ("y", "a ="), ("old", "b = 1"), ("z", "a is a")])
    assert [id for id, _ in refused.value.errors] == ["y", "z"]
    assert "`y`" in str(refused.value)
    assert "`z`" in str(refused.value)
    assert list(searches) == ["old"]
    assert searches["old"] == td.parse("a = 1")
    assert list(searches.needs()) == ["a"]  # what the refused batch asked of `b` is forgotten


def test_collecting_adds_the_good_ones():
    searches = td.Matcher()
    errors = searches.add_many([("x", "a = 2"), ("y", "a ="), ("x", "a ?")], on_error="collect")
    assert [id for id, _ in errors] == ["y", "x"]
    assert searches.match({"a": 2}) == ["x"]


def test_filters_of_different_kinds_live_side_by_side():
    searches = td.Matcher()
    searches.add_many([("s1", "price < 9000"), ("s2", "price = 'cheap'"), ("s3", "price < 9000 km")])
    assert [searches.match({"price": price}) for price in (5, "cheap", "5 km", True)] == [["s1"], ["s2"], ["s3"], []]
    assert [need.kind for need in searches.needs()["price"]] == ["number", "number", "text"]
    searches.remove("s1")
    assert [need.unit for need in searches.needs()["price"]] == ["meter", None]


@pytest.mark.parametrize(
    ("asked", "way_out"),
    [
        ("price = 'cheap'", "declared number.*`eve` uses it as text; ask for number, or change the declaration"),
        ("price < 9000 m", "declared number without a unit.*write the number alone, or declare the unit of `price`"),
        ("size < 5 kg", "kilogram|kg"),
    ],
)
def test_what_a_declaration_does_not_have_is_refused_with_the_way_out(asked, way_out):
    ontology = td.Ontology.from_dict({"attributes": {"size": {"unit": "GB"}}})
    searches = td.Matcher(schema=td.Schema({"price": "number"}, closed=False), ontology=ontology)
    searches.add("ann", "price < 9000")
    with pytest.raises(td.TidingsError, match=way_out):
        searches.add("eve", td.parse(asked))
    assert searches.match({"price": 5}) == ["ann"]


def test_values_that_filters_cannot_read_are_counted_and_told():
    searches = td.Matcher()
    searches.add_many([("ann", "make = 'ford' and price < 9000"), ("bob", "year >= 2015"), ("eve", "model > 5")])
    ads = [{"make": "ford", "price": 1, "year": 2020, "model": "focus" if at < 483 else 500} for at in range(500)]
    searches.match_many(ads)
    (mismatch,) = searches.mismatches()
    assert str(mismatch) == "model: 483 of 500 values are text, asked as numbers by 1 subscription (eve)"
    assert str(mismatch) in str(searches.explain())
    assert searches.explain().to_dict()["mismatches"][0]["ids"] == ["eve"]
    searches.remove("eve")
    assert searches.mismatches() == ()


def test_mismatches_of_a_table_are_counted_as_those_of_its_rows():
    rows = [{"a": value, "b": "x"} for value in ("1", "x", "y", None, "2 km")]
    counted = []
    for events in (rows, pa.Table.from_pylist(rows)):
        searches = td.Matcher()
        searches.add_many([(f"s{at}", f"a > {at}") for at in range(20)] + [("far", "a > 1 km"), ("t", "b = 5")])
        searches.match_many(events)
        counted.append([mismatch.to_dict() for mismatch in searches.mismatches()])
    assert counted[0] == counted[1]
    assert [
        (mismatch["attribute"], mismatch["asked"], mismatch["mismatched"], mismatch["values"])
        for mismatch in counted[0]
    ] == [
        ("b", "number", 5, 5),
        ("a", "number", 3, 4),
        ("a", "number", 3, 4),
    ]


def test_a_refused_replacement_leaves_the_old_one():
    searches = td.Matcher()
    searches.add_many([("a", "x = 1"), ("b", "x = 2")])
    with pytest.raises(td.TidingsError):
        searches.add("a", "x =")
    assert searches.match({"x": 1}) == ["a"]


@pytest.mark.parametrize("id_", [None, 1.5, True, b"x", ("a",)])
def test_ids_are_text_or_integers(id_):
    with pytest.raises(td.TidingsError, match="id"):
        td.Matcher().add(id_, "a = 1")


def test_ids_are_not_mixed():
    searches = td.Matcher()
    searches.add(1, "a = 1")
    with pytest.raises(td.TidingsError, match="all text or all integers"):
        searches.add("1", "a = 1")
    assert "1" not in searches
    assert True not in searches
    searches.remove(1)
    searches.add("1", "a = 1")


def test_now_is_the_matchers_or_the_calls():
    event = {"posted": NOW - timedelta(days=3)}
    searches = td.Matcher(now=NOW)
    searches.add("new", "age(posted) < 7 days")
    assert searches.match(event) == ["new"]
    assert searches.match(event, now=NOW + timedelta(days=9)) == []
    assert len(searches.match_many([event], now=NOW + timedelta(days=9))) == 0


def test_matches_carry_arrays_lists_and_arrow():
    searches = td.Matcher()
    searches.add_many([("s1", "a = 1"), ("s2", "a exists")])
    matches = searches.match_many([{"a": 1}, {}, {"a": 5}])
    assert sorted(matches) == [(0, "s1"), (0, "s2"), (2, "s2")]
    assert matches.event_index.dtype == "int64"
    assert [sorted(ids) for ids in matches.by_event()] == [["s1", "s2"], [], ["s2"]]
    assert matches.to_arrow().schema.names == ["event", "subscription"]
    assert searches.match_many([]).to_arrow().num_rows == 0


def test_bad_events_raise_or_are_collected_with_their_index():
    searches = td.Matcher(schema=td.Schema({"a": "number"}))
    searches.add("s1", "a < 5")
    with pytest.raises(td.BadEvent, match="event 1"):
        searches.match_many([{"a": 1}, {"a": "x"}])
    matches = searches.match_many([{"a": 1}, {"a": "x"}, 7, {"a": 2}], on_error="collect")
    assert matches.by_event() == [["s1"], [], [], ["s1"]]
    assert [letter.index for letter in matches.dead_letters] == [1, 2]
    assert "'x' is not a number" in matches.dead_letters[0].reason


def test_one_event_in_place_of_many_is_a_clear_error():
    with pytest.raises(td.TidingsError, match="match takes one event"):
        td.Matcher().match_many({"a": 1})


def test_why_and_why_not_show_what_decided():
    searches = td.Matcher()
    searches.add("s1", "make = 'ford' and (price < 9000 or not color = 'red')")
    seen = searches.why({"make": "ford", "price": 8500, "color": "red"}, "s1")
    assert seen.matched
    assert [(reason.test, reason.holds) for reason in seen.reasons] == [("make = 'ford'", True), ("price < 9000", True)]
    missed = searches.why_not({"make": "ford", "color": "red"}, "s1")
    assert not missed.matched
    assert [(reason.test, reason.seen) for reason in missed.reasons] == [
        ("price < 9000", ()),
        ("color = 'red'", ("red",)),
    ]
    assert "does not match" in str(missed)
    assert "saw nothing" in str(missed)
    with pytest.raises(KeyError):
        searches.why({}, "s9")


def test_of_many_reasons_the_first_are_given_and_the_others_counted():
    searches = td.Matcher()
    searches.add("s1", " or ".join(f"a = {number}" for number in range(20)))
    seen = searches.why({"a": -1}, "s1", most=3)
    assert ([reason.test for reason in seen.reasons], seen.more) == (["a = 0", "a = 1", "a = 2"], 17)
    assert str(seen).endswith("\n  and 17 more")
    everything = searches.why({"a": -1}, "s1")
    assert (len(everything.reasons), everything.more) == (20, 0)


def test_explain_prints_and_gives_plain_values():
    searches = td.Matcher(schema=td.Schema({"a": "number", "b": "several text"}))
    searches.add("s1", "a = 1")
    plan = searches.explain()
    assert plan.to_dict()["kind"] == "engine"
    assert plan.to_dict()["attributes"] == {"a": "number", "b": "several text"}
    assert str(plan).startswith("matcher engine: 1 subscription, ")


def test_brute_force_is_there_for_who_asks():
    searches = td.Matcher(kind="brute")
    searches.add("s1", "a = 1")
    assert searches.match({"a": 1}) == ["s1"]
    assert searches.explain().to_dict()["kind"] == "brute"
    assert "brute force" in str(searches.explain())


def test_an_unknown_kind_lists_the_known_ones():
    with pytest.raises(UnknownMatcher, match="brute"):
        td.Matcher(kind="magic")
    assert "brute" in td.matchers()


def test_a_closed_schema_refuses_unknown_attributes_even_in_trees():
    searches = td.Matcher(schema=td.Schema({"city": "text"}))
    with pytest.raises(td.FilterError, match="did you mean `city`"):
        searches.add("s1", "cty = 'x'")
    with pytest.raises(td.FilterError, match="did you mean `city`"):
        searches.add("s1", td.parse("cty = 'x'"))
    assert len(searches) == 0


def test_a_pickled_matcher_is_the_same_and_its_own():
    searches = td.Matcher(now=NOW)
    searches.add("s1", "age(a) < 1 day")
    copy = pickle.loads(pickle.dumps(searches))
    copy.remove("s1")
    assert searches.match({"a": NOW}) == ["s1"]
    assert copy.match({"a": NOW}) == []


def test_attributes_compared_may_be_asked_for_as_anything_elsewhere():
    searches = td.Matcher()
    searches.add_many([("s1", "a < `b`"), ("s2", "b < `c`"), ("s3", "c = 'x'"), ("s4", "a = 5")])
    assert sorted(searches.match({"a": 5, "b": "7", "c": "x"})) == ["s1", "s2", "s3", "s4"]
    with pytest.raises(KindConflict, match="no order"):
        td.Matcher(schema=td.Schema({"spot": "place"}, closed=False)).add("p", td.parse("spot < `home`"))


def test_removing_frees_what_an_open_schema_does_not_declare():
    searches = td.Matcher(schema=td.Schema({"a": "number"}, closed=False))
    searches.add("s1", "a = 1 and b = 2")
    searches.remove("s1")
    assert list(searches.needs()) == ["a"]  # events are held to it, whoever asks
