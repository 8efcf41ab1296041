"""Habits of other languages: each is refused at its place, with the real form; and what is expected is legal there."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lark.exceptions import UnexpectedInput
from tests.examples import examples

import tidings as td
from tidings.lang.filters.parse_text import load_grammar

HABITS = [
    # (the text, the place, part of the message)
    ("make in ['ford','opel']", ",", "a set stands in parentheses: `make in ('ford','opel')`"),
    ("make not in ['ford','opel']", ",", "`make not in ('ford','opel')`"),
    ("make in {'ford', 'opel'}", "{", "`make in ('ford', 'opel')`"),
    ("make in 'ford'", "'ford'", "a set stands in parentheses: `make in ('ford')`"),
    ("a in 5", "5", "`a in (5)`"),
    ("a in 1..5", "1", "a range stands in brackets: `a in [1 .. 5]`"),
    ("ip in '10.0.0.0/8'", "'10.0.0.0/8'", "an address or block stands without quotes: `ip in 10.0.0.0/8`"),
    ("make matches 'fo.*'", "'fo.*'", "an expression stands between slashes: /fo.*/"),
    ("tags has 'abs'", "'abs'", "for one of several values write `tags = 'abs'`"),
    ("items has sku = 'x'", "sku", "`items has (sku = 'x')`"),
    ("x = 'a' or 'b'", "'b'", "write `x in ('a', 'b')`"),
    ("x = 1 or 2", "2", "write `x in (1, 2)`"),
    ("date '2024-01-01'", "'2024-01-01'", "a date stands alone: 2024-01-01"),
    ("posted > date '2024-01-01'", "'2024-01-01'", "a date stands alone: 2024-01-01"),
    ("posted > timestamp '2024-01-01T10:00:00Z'", "'2024-01-01T10:00:00Z'", "a date stands alone: 2024-01-01T10:00"),
    ("price = null", "null", "write `price is null`"),
    ("price != null", "null", "write `price exists`"),
    ("a is not null", "is", "write `a exists`"),
    ("a not null", "null", "write `a exists`"),
    ("a is missing", "is missing", "write `not (a exists)`"),
    ("price = (1,2,3)", ",3", "a set is written `price in (1,2,3)`"),
    ("price = ('a', 'b')", "'a'", "a set is written `price in ('a', 'b')`"),
    ("posted > 01/02/2024", "/02/", "a date is written year, month, day: 2024-12-31"),
    ("posted > 1.2.2024", ".2024", "a date is written year, month, day: 2024-12-31"),
    ("posted > 2024-1-2", "-1", "a date has two digits for month and day: 2024-01-02"),
    ("posted > now - 7 days", "-", "`age(posted) < 7 days`"),
    ("posted <= now() - interval '7 days'", "(", "`age(posted) >= 7 days`"),
    ("posted > now()", "(", "`age(posted) > 0 s` is the past"),
    ("make ILIKE 'ford'", "ILIKE", "`make like 'x*' ignoring case`"),
    ("make startswith 'fo'", "startswith", "write `make starts with 'fo'`"),
    ("make.startswith('fo')", "(", "write `make starts with 'fo'`"),
    ("startswith(make, 'fo')", "(", "write `make starts with 'fo'`"),
    ("make endswith 'd'", "endswith", "write `make ends with 'd'`"),
    ("lower(make) = 'ford'", "(", "`make = 'x' ignoring case`"),
    ("make ~ 'fo.*'", "~", "`make matches /x.*/`"),
    ("make regexp 'fo.*'", "regexp", "`make matches /x.*/`"),
    ("x is true", "is", "write `x = true`"),
    ("x is not FALSE", "is", "write `x != false`"),
    ("x is 'a'", "is", "write `x = 'a'`"),
    ("sold", "", "write `sold = true`, or `sold exists`"),
    ("not sold", "", "write `sold = true`, or `sold exists`"),
    ("sold and a = 1", "and", "write `sold = true`, or `sold exists`"),
    ("(a = 1 or `is sold`) and b = 1", ") and b", "write `` `is sold` = true".replace("`` ", "`")),
    ("$9000", "$9000", "write the number alone, 9000, or with its unit behind it: 9000 USD"),
    ("price < $9000", "$9000", "9000 USD"),
    ("price < €9000", "€9000", "9000 EUR"),
    ("price < EUR 9000", "9000", "the unit comes last: 9000 EUR"),
    ("price < 9,000", ",", "without separators"),
    ("price < 9 000", "000", "without separators"),
    ("a = 1 && b = 2", "&&", "connectives are written `and` and `or`"),
    ("a = 1 || b = 2", "||", "connectives are written `and` and `or`"),
    ("a = 1, b = 2", ",", "tests are joined by `and`"),
    ("a = 1; b = 2", ";", "tests are joined by `and`"),
    ("exists a", "exists", "`a exists`"),
    ("make contains ford", "ford", "text goes in quotes: 'ford'"),
    ("kind is a computer", "computer", "text goes in quotes: 'computer'"),
    ("spot within 5 km of (8, 47)", "5", "`spot near (8.5, 47.4) 5 km`"),
    ("len(make) > 3", "(", "no functions"),
    ("price > cost + 5", "+", "no arithmetic"),
    ("where a = 1", "a", "a filter is the condition alone"),
    ("a = 'it''s'", "'s'", "takes a backslash"),
    ("a = 'x", "'x", "a quote is not closed"),
]


def first_mistake(text, **keywords):
    with pytest.raises(td.FilterError) as refused:
        td.parse(text, warnings=[], **keywords)
    return refused.value.mistakes[0]


@pytest.mark.parametrize(("text", "at", "words"), HABITS, ids=[text for text, _, _ in HABITS])
def test_a_habit_is_refused_with_the_real_form(text, at, words):
    mistake = first_mistake(text)
    assert words in mistake.message
    assert mistake.start == (text.rindex(at) if at else len(text))
    assert "quote is not closed" not in mistake.message or text.count("'") % 2


@pytest.mark.parametrize("text", [text for text, _, _ in HABITS])
def test_the_real_form_is_read(text):
    """What a message proposes in backticks as a whole test is a filter."""
    for proposed in re.findall(
        r"write `([^`]+)`|parentheses: `([^`]+)`|written `([^`]+ [^`]+)`", first_mistake(text).message
    ):
        td.parse(next(filter(None, proposed)))


SCHEMA = td.Schema({"price": "number", "posted": "time"})
CHECKED = [
    ("price = (1,2)", {"schema": SCHEMA}, "a set is written `price in (1, 2)`"),
    ("price < 9000 EUR", {"ontology": td.Ontology()}, "a table [currencies] with rates = { EUR = "),
    ("posted > '1 Jan 2024'", {"schema": SCHEMA}, "write 2024-01-01"),
    ("posted in ('January 1, 2024', '2024-01-01')", {"schema": SCHEMA}, "write 2024-01-01"),
    ("posted > '01/02/2024'", {"schema": SCHEMA}, "write 2024-12-31 or 2024-12-31T23:59:59Z"),
]


@pytest.mark.parametrize(("text", "keywords", "words"), CHECKED)
def test_what_only_a_schema_can_refuse_has_its_way_out(text, keywords, words):
    assert words in first_mistake(text, **keywords).message


def test_iso_text_on_a_declared_time_is_read():
    for text in ("2024-01-01", "2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "20240101"):
        assert td.parse(f"posted > '{text}'", schema=SCHEMA) == td.parse("posted > 2024-01-01")


QUERIES = [
    ("price_to=9,000", "9000"),
    ("price_from=1,000.50", "1000.50"),
    ("price_from=1.000,50", "1000.50"),
    ("price_to=1%27000%27000", "1000000"),
    ("price_to=9+000", "9000"),
    ("make=ford&price_to=9,000", "9000"),
]


@pytest.mark.parametrize(("query", "number"), QUERIES)
def test_separators_in_the_ends_of_a_range_are_refused_in_a_query(query, number):
    for keywords in ({}, {"schema": td.Schema({"price": "number", "make": "text"})}):
        with pytest.raises(td.FilterError, match=f"without separators: {re.escape(number)}"):
            td.parse(query, notation="url", **keywords)


def test_text_with_commas_stays_text_where_it_is_declared_or_no_end():
    assert td.parse("code_to=9,000", notation="url", schema=td.Schema({"code": "text"})).condition.high == "9,000"
    assert td.parse("title=9,000", notation="url").condition.value == "9,000"
    with pytest.raises(td.NotExpressible):
        td.render(td.parse("code <= '9,000'"), notation="url")


# What is expected is legal --------------------------------------------------------------------------

SAMPLES = {
    "an attribute": "zz",
    "a number": "7",
    "quoted text": "'x'",
    "a date": "2024-01-01",
    "an address": "10.0.0.1",
    "an expression such as /a.*b/": "/x/",
    "POLYGON((lon lat, ...))": "POLYGON((0 0, 9 0, 9 9, 0 0))",
    "a region such as @downtown": "@downtown",
    "a unit": "km",
    "the end": "",
    "an operator (=, <, in, like, ...)": "=",
}


def can_follow(text, sample):
    """Tell whether the grammar takes the text and then the sample, whatever must come behind that."""
    parser = load_grammar().parse_interactive(f"{text} {sample} ")
    try:
        parser.exhaust_lexer()
        if not sample:
            parser.feed_eof()
    except UnexpectedInput:
        return False
    return True


def suggestions(message):
    listed = message.split(", found ")[0].removeprefix("expected ")
    for name in SAMPLES:
        listed = listed.replace(name, name.replace(", ", "\0").replace(" or ", "\1"))
    parts = re.split(", | or ", listed)
    return [part.replace("\0", ", ").replace("\1", " or ") for part in parts]


def check_suggestions(text):
    try:
        td.parse(text, warnings=[])
    except td.FilterError as refused:
        mistake = refused.mistakes[0]
        if (
            mistake.message.startswith("expected ")
            and ", found " in mistake.message
            and "such as `" not in mistake.message
        ):
            for suggestion in suggestions(mistake.message):
                sample = SAMPLES.get(suggestion, suggestion.strip("`"))
                assert can_follow(text[: mistake.start], sample), (text, suggestion)


WORDS = [
    "a",
    "b.c",
    "=",
    "!=",
    "<",
    "and",
    "or",
    "not",
    "(",
    ")",
    "[",
    "]",
    ",",
    "..",
    "'x'",
    "5",
    "5 km",
    "in",
    "like",
]
WORDS += [
    "between",
    "2024-01-01",
    "10.0.0.0/8",
    "matches",
    "/x/",
    "is",
    "null",
    "is a",
    "exists",
    "has",
    "near",
    "within",
]
WORDS += [
    "@home",
    "ignoring case",
    "any(",
    "age(",
    "true",
    "starts with",
    "contains",
    "$5",
    "&&",
    "~",
    "now",
    "`q`",
    "'",
]


@given(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join))
@example("a = (5")
@example("x is true")
@examples(500)
def test_what_is_expected_is_legal_there(text):
    check_suggestions(text)


@pytest.mark.parametrize("text", [text for text, _, _ in HABITS])
def test_what_is_expected_of_a_habit_is_legal_there(text):
    check_suggestions(text)
