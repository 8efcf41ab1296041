"""Warnings about bare words: which comparisons give one, where it points, and how many come at once."""

import pickle
import warnings

import pyarrow as pa
import pytest
from hypothesis import given

import tidings as td
from tidings.concepts import Vocabulary
from tidings.lang import parse_pattern, parse_stored, read_patterns
from tidings.lang.filters.ambiguities import MAX_WARNINGS
from tidings.matcher.loading import text_load
from tidings.model import Compare, Comparison, Test, TextOp, TextTest
from tidings.testing.strategies import filters

DOUBTFUL = [
    ("make = ford", [(7, 11)]),
    ("posted > today", [(9, 14)]),
    ("price<list_price", [(6, 16)]),
    ("a.b != c.d and x = 'y'", [(7, 10)]),
    ("x = 'y' and (a >= b or not any(c) != d)", [(18, 19), (37, 38)]),
    ("items has (qty > least)", [(17, 22)]),
    ("a = # a comment\n b", [(17, 18)]),
    ("ä = ö", [(4, 5)]),
]
PLAIN = [
    "make = `ford`",
    "make = 'ford'",
    "make = true",
    "a = 'b = c'",
    "a < `b` and c = 1",
    "age(a) < 5 s",
    "a > 5 GB",
]


def doubts(source, **keywords):
    warnings_found = []
    td.parse(source, warnings=warnings_found, **keywords)
    return [(doubt.start, doubt.end) for doubt in warnings_found]


@pytest.mark.parametrize(("text", "places"), DOUBTFUL)
def test_a_bare_word_gives_a_warning_at_its_place(text, places):
    assert doubts(text) == places
    with pytest.warns(td.FilterWarning) as given_out:
        td.parse(text)
    for warning, (start, end) in zip(given_out, places, strict=True):
        word = text[start:end]
        assert f"'{word}'" in str(warning.message)
        assert f"`{word}`" in str(warning.message)
        assert warning.filename == __file__


@pytest.mark.parametrize("text", PLAIN)
def test_backticks_quotes_and_literals_give_none(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        td.parse(text)


@given(filters())
def test_what_is_rendered_gives_none(tree):
    assert doubts(td.render(tree)) == []


def test_a_bare_word_and_one_in_backticks_are_the_same_tree():
    assert td.parse("a < b", warnings=[]) == td.parse("a < `b`") == Test("a", Compare(Comparison.LT, "b"))


def test_a_schema_that_knows_the_word_gives_none():
    kinds = {"price": "number", "list_price": "number", "items": "several record", "items.qty": "several number"}
    for closed in (True, False):
        schema = td.Schema({**kinds, "items.least": "several number"}, closed=closed)
        assert doubts("price < list_price", schema=schema) == []
        assert doubts("items has (qty > least)", schema=schema) == []
    assert doubts("price < other", schema=td.Schema(kinds, closed=False)) == [(8, 13)]
    assert doubts("price < other", ontology=td.Ontology()) == [(8, 13)]
    with pytest.raises(td.FilterError, match="unknown attribute `other`"):
        td.parse("price < other", schema=td.Schema(kinds))


def test_trees_and_queries_give_none():
    assert doubts({"attr": "a", "op": "<", "other": "b"}, notation="json") == []
    assert doubts("make=ford", notation="url") == []


def test_a_matcher_names_the_subscription():
    searches = td.Matcher()
    with pytest.warns(td.FilterWarning, match="subscription `s1`: `ford` is read as another attribute") as given_out:
        searches.add("s1", "make = ford")
    assert [warning.filename for warning in given_out] == [__file__]
    assert searches.match({"make": "x", "ford": "x"}) == ["s1"]


@pytest.mark.parametrize(
    "form", [list, lambda pairs: pa.table({"id": [i for i, _ in pairs], "filter": [f for _, f in pairs]})]
)
def test_thousands_of_bare_words_give_a_few_warnings(form):
    count = 3 * text_load.MIN_KERNEL_ROWS
    pairs = [(f"s{n}", f"price < {n}" if n % 3 else f"price < w{n % 9}") for n in range(count)]
    searches = td.Matcher()
    with pytest.warns(td.FilterWarning) as given_out:
        searches.add_many(form(pairs))
    assert len(given_out) == MAX_WARNINGS + 1
    assert f"{count // 3 - MAX_WARNINGS:,} more" in str(given_out[-1].message)
    assert len(searches) == count


@pytest.mark.parametrize("count", [1, 3 * text_load.MIN_KERNEL_ROWS])
def test_where_warnings_are_errors_nothing_is_added(count):
    searches = td.Matcher()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(td.FilterWarning):
            searches.add_many([(f"s{n}", f"price < {n}") for n in range(1, count)] + [("s0", "make = ford")])
    assert len(searches) == 0
    assert searches.match({"price": "cheap", "make": 5}) == []


def test_a_subscription_is_warned_of_once_not_when_it_is_read_again(tmp_path):
    searches = td.Matcher()
    with pytest.warns(td.FilterWarning):
        searches.add("s1", "price < list_price and not x like 'a*b'")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert searches["s1"] == td.parse("price < `list_price` and not x like 'a*b'")
        searches.save(tmp_path / "kept")
        assert td.Matcher.open(tmp_path / "kept")["s1"] == searches["s1"]
        searches.remove("s1")


def test_patterns_warn_at_the_place_in_their_text():
    text = "a = kind = start\nb = kind = 'b' and ip = $x and  size > least\na ; b"
    with pytest.warns(td.FilterWarning) as given_out:
        parse_pattern(text)
    assert [text[warning.message.start : warning.message.end] for warning in given_out] == ["start", "least"]
    file = f"pattern first\n  a = kind = 'a'\n  a\npattern second\n{text}"
    with pytest.warns(td.FilterWarning) as given_out:
        read_patterns(file)
    assert [file[warning.message.start : warning.message.end] for warning in given_out] == ["start", "least"]
    warnings_found = []
    parse_pattern(text, warnings=warnings_found)
    assert len(warnings_found) == 2


def test_a_warning_survives_pickling():
    warnings_found = []
    td.parse("make = ford", warnings=warnings_found)
    again = pickle.loads(pickle.dumps(warnings_found[0]))
    assert (str(again), again.start, again.end, again.text) == (str(warnings_found[0]), 7, 11, "make = ford")


# `%` in `like` --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at"),
    [("make like 'fo%'", 13), ("a = 1 and make not like '%' ignoring case", 25), (r"a like '\%50%'", 12)],
)
def test_a_bare_percent_sign_in_like_is_refused_with_the_way_out(text, at):
    with pytest.raises(td.FilterError) as refused:
        td.parse(text)
    (mistake,) = refused.value.mistakes
    assert (mistake.start, mistake.end) == (at, at + 1)
    assert all(way in mistake.message for way in ("`*`", "`?`", "`\\%`"))


def test_an_escaped_percent_sign_is_itself():
    assert td.parse(r"a like '50\%'").condition == TextTest(TextOp.LIKE, "50%")
    assert td.parse(r"a = '50\%'") == td.parse("a = '50%'")
    assert td.parse("a contains '50%'").condition == TextTest(TextOp.CONTAINS, "50%")
    assert td.render(td.parse(r"a like '50\%'")) == r"a like '50\%'"


@pytest.mark.parametrize("pattern", ["50%", r"50\%", r"50\\%", "%", r"\*%", r"\u0025", "%%\n'"])
def test_any_pattern_survives_the_text_notation(pattern):
    tree = td.parse({"attr": "a", "op": "like", "value": pattern}, notation="json")
    assert td.parse(td.render(tree)) == tree


def test_what_is_stored_opens_as_before():
    tree = td.parse({"attr": "a", "op": "like", "value": "50%"}, notation="json")
    assert parse_stored("a like '50%'", Vocabulary()) == tree
    assert parse_stored("a like '50%' and b = c", Vocabulary()).parts[0] == tree
    assert parse_stored("a like '50%'", Vocabulary(td.Schema({"a": "text"}))) == tree
