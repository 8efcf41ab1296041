"""Whatever is typed, a parser reads it or refuses it with our own error, and does so soon."""

import contextlib
import json
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.bench.workloads import CAR_SCHEMA
from tidings.lang.filters.fast_text import parse_fast
from tidings.lang.filters.parse_text import parse_text
from tidings.testing.strategies import filters

ALL = ("text", "json", "url")
SCHEMAS = (
    None,
    td.Schema(CAR_SCHEMA),
    td.Schema({"a": "number", "b": "several text", "posted": "time", "ip": "ip"}, closed=False),
)


WORDS = (
    "a", "b.c", "`odd one`", "price", "and", "or", "not", "AND", "in", "is", "is a", "is null", "null", "exists",
    "has", "any(", "all(", "none(", "age(", "between", "like", "matches", "contains", "starts with", "ends with",
    "ignoring case", "within", "near", "true", "false", "=", "!=", "<", "<=", ">", ">=", "(", ")", "[", "]", ",",
    "..", "1", "-2.5", "1e9", "1e999", "99999999999999999999", "007", "'x'", '"y"', "'", '"', "`", "\\", "'\\u12'",
    "'\\q'", "/a+/", "/(/", "/", "//", "POLYGON((0 0, 1 0, 1 1, 0 0))", "POLYGON((0 0, 1 1))", "POLYGON",
    "MULTIPOLYGON(((", "@home", "@", "km", "days", "USD", "GB", "10.0.0.0/8", "10.0.0.1/8", "::1", "::/200",
    "2024-01-01", "2024-13-45", "2024-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "#", "--", "\n", "\x00",
    "\ud800", "ß", "%", "*",
)  # fmt: skip

SURPRISES = (
    "", " ", "(", ")", "((", "a = ", "= 1", "a = 1 1", "a in ()", "a in (1,)", "a in [..]", "a in [1 .. 'x']",
    "a in [2 .. 1]", "a in (1, 'x')", "not", "not not", "a = 'unclosed", 'a = "unclosed', "`unclosed = 1",
    "`` = 1", "a..b = 1", ".a = 1", "a = 1 and", "any(a = 1", "age(a) = 5 days", "age(a) < 5",
    "age(a) < 5 furlongs", "a near (0, 0) 5", "a near (200, 0) 5 km", "a near (0, 0) -5 km", "a matches /[/",
    "a matches /(?=x)/", "a matches //", "a within POLYGON((0 0, 1 0))", "a in 10.0.0.1/8", "a = 0000-00-00",
    "a within POLYGON((0 0, 1 1, 0 1, 1 0, 0 0))", "a = 1e999", "a = 99999999999999999999", "a = '\\ud800'",
    "a < true", "a is a 5", "exists", "all(a) exists", "a has (", "a has ()", "\ud800 = 1", "a = '\ud800'",
    "a\x00 = 1", "a = 1 # comment", "a = 1 -- comment", "a not in (1)", "a = b = c", "a like '\\'", "a = '\\U00110000'",
)  # fmt: skip


def accepts_or_refuses(source, notation):
    """Parse with each schema; anything but a filter or our own error fails the test, and so does dawdling."""
    for schema in SCHEMAS:
        start = time.process_time()
        try:
            tree = td.parse(source, notation=notation, schema=schema)
        except td.TidingsError as problem:
            assert_is_clear(problem, source)
        else:
            assert td.parse(td.render(tree, notation="json"), notation="json") == tree
        assert time.process_time() - start < 2


def assert_is_clear(problem, source):
    """The error says something, and points inside the text."""
    assert str(problem)
    for mistake in getattr(problem, "mistakes", ()):
        assert mistake.message
        if isinstance(source, str) and mistake.start is not None:
            end = mistake.start if mistake.end is None else mistake.end
            assert 0 <= mistake.start <= end <= len(source) + 1


def soup(words=WORDS, joint=" "):
    return st.lists(st.sampled_from(words), max_size=14).map(joint.join)


@st.composite
def break_source(draw, notation):
    """A valid filter, cut short, doubled, or with a few characters changed."""
    source = draw(filters(depth=2).map(lambda tree: td.render(tree, notation=notation)))
    at, to = sorted((draw(st.integers(0, len(source))), draw(st.integers(0, len(source)))))
    way = draw(st.sampled_from(("cut", "without", "swapped", "insert", "twice")))
    if way == "cut":
        return source[:at]
    if way == "without":
        return source[:at] + source[to:]
    if way == "swapped":
        return source[to:] + source[:at]
    if way == "insert":
        return source[:at] + draw(st.sampled_from(WORDS)) + source[at:]
    return source + source


# --- text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("notation", ALL)
@given(source=st.text(max_size=60))
def test_arbitrary_text_is_read_or_refused(notation, source):
    accepts_or_refuses(source, notation)


@pytest.mark.parametrize("notation", ALL)
@given(source=st.text(st.characters(codec=None, categories=["Cs", "Cc", "Ll", "Nd", "Po"]), max_size=20))
@examples(50)
def test_halves_of_surrogates_and_control_characters_are_read_or_refused(notation, source):
    accepts_or_refuses(source, notation)


@given(soup())
@examples(300)
def test_a_soup_of_tokens_is_read_or_refused(source):
    accepts_or_refuses(source, "text")


@given(soup(joint=""))
@examples(150)
def test_tokens_without_spaces_are_read_or_refused(source):
    accepts_or_refuses(source, "text")


@pytest.mark.parametrize("source", SURPRISES)
def test_likely_mistakes_are_read_or_refused(source):
    accepts_or_refuses(source, "text")


@pytest.mark.parametrize("notation", ["text", "json"])
@given(data=st.data())
@examples(150)
def test_broken_filters_are_read_or_refused(notation, data):
    accepts_or_refuses(data.draw(break_source(notation)), notation)


# --- URL ------------------------------------------------------------------------------------------

URL_WORDS = (
    "a", "a_from", "a_to", "_from", "_to", "=", "==", "&", "&&", "?", "%", "%4", "%41", "%ff", "%ED%A0%80", "+", "1",
    "x", "price", ".", "posted", "ip", "2024", "\ud800",
)  # fmt: skip


@given(soup(URL_WORDS, joint=""))
@examples(300)
@example("a_from=2&a_to=1")
@example("a_from=1&a_from=2")
@example("posted_from=x")
@example("ip=10.0.0.1/8")
def test_url_soup_is_read_or_refused(source):
    accepts_or_refuses(source, "url")


# --- JSON -----------------------------------------------------------------------------------------

JSON_KEYS = (
    "attr", "op", "value", "values", "low", "high", "low_open", "high_open", "quantifier", "and", "or", "not", "other",
    "filter", "geometry", "region", "networks", "lon", "lat", "metres", "number", "unit", "time", "type",
    "coordinates", "ignoring_case", "odd",
)  # fmt: skip
JSON_WORDS = (
    "a", "=", "!=", "<", "in", "range", "has", "age", "near", "within", "in networks", "is a", "exists", "is null",
    "like", "matches", "(", "any", "none", "Polygon", "MultiPolygon", "10.0.0.0/8", "2024-01-01", "\ud800", "",
)  # fmt: skip

objects = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.sampled_from(JSON_WORDS),
        st.just({"attr": "a", "op": "=", "value": 1}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(JSON_KEYS), inner, max_size=5),
        st.fixed_dictionaries(
            {"attr": st.sampled_from(("a", "price", "", ".", 5)), "op": st.sampled_from(JSON_WORDS)},
            optional=dict.fromkeys(JSON_KEYS[2:], inner),
        ),
    ),
    max_leaves=12,
)


@given(objects)
@examples(300)
@example({"attr": "a", "op": "!=", "quantifier": {}})
@example({"attr": "a", "op": {}})
@example({"attr": [], "op": "="})
@example({"attr": "a", "op": {1, 2}, "quantifier": b"any"})
@example({"attr": "a", "op": "=", "value": object()})
def test_random_json_objects_are_read_or_refused(node):
    accepts_or_refuses(node, "json")


@given(objects, filters(depth=2), st.data())
@examples(150)
def test_a_part_replaced_by_another_object_is_read_or_refused(node, tree, data):
    whole = json.loads(td.render(tree, notation="json"))
    assume(isinstance(whole, dict))
    whole[data.draw(st.sampled_from(sorted(whole)))] = node
    accepts_or_refuses(whole, "json")


@pytest.mark.parametrize("large", ["1" + "0" * 400, "1e400", "-1e308", "9" * 5000])
def test_numbers_beyond_all_bounds_are_refused_in_json(large):
    ring = f"[[[{large}, 0], [1, 0], [1, 1], [{large}, 1]]]"
    for message in (
        f'"op": "within", "geometry": {{"type": "Polygon", "coordinates": {ring}}}',
        f'"op": "near", "lon": {large}, "lat": 0, "metres": 1',
        f'"op": "=", "value": {{"lon": {large}, "lat": 0}}',
        f'"op": "age", "low": {large}, "low_open": 5',
    ):
        with pytest.raises(td.TidingsError):
            td.parse(f'{{"attr": "a", {message}}}', notation="json")


@pytest.mark.parametrize("notation", ALL)
@pytest.mark.parametrize("source", [None, 5, b"a = 1", b"\xff", ["a"], {"a": 1}, {1: 2}, object(), float("nan"), ()])
def test_what_is_not_a_filter_at_all_is_refused(notation, source):
    accepts_or_refuses(source, notation)


# --- long and deep --------------------------------------------------------------------------------

LARGE = {
    "parentheses": "(" * 5000 + "a = 1" + ")" * 5000,
    "unclosed parentheses": "(" * 50_000,
    "not": "not " * 20_000 + "a = 1",
    "has": "a has (" * 3000 + "b = 1" + ")" * 3000,
    "a long chain": " and ".join(["a = 1"] * 30_000),
    "a long set": "a in (" + ", ".join(map(str, range(100_000))) + ")",
    "a long text": "a = '" + "x" * 10_000_000 + "'",
    "a long name": "a" * 1_000_000 + " = 1",
    "many quotes": "'" * 20_001,
    "many dots": "a" + ".a" * 50_000 + " = 1",
    "a wide polygon": "a within POLYGON((" + ", ".join(["0 0"] * 50_000) + "))",
    "open polygon": "a within POLYGON(" + "(" * 20_000,
    "a long expression": "a matches /" + "(a|b)" * 20_000 + "/",
    "a counted expression": "a matches /((a{1000}){1000}){1000}/",
    "digits": "a = " + "9" * 100_000,
    "nearly a time": "a = 2024-01-01T00:00:00." + "0" * 100_000,
    "spaces": " " * 200_000 + "a" + " " * 200_000 + "=" + " " * 200_000,
}


@pytest.mark.parametrize("source", LARGE.values(), ids=LARGE)
def test_length_and_depth_are_limited(source):
    start = time.process_time()
    message = ""
    try:
        td.parse(source)
    except td.TidingsError as problem:
        message = str(problem)
    assert len(message) < 5000
    assert time.process_time() - start < 5


DEEP_JSON = ["[" * 100_000, '{"not":' * 50_000, '{"and":[' * 2000 + "true" + "]}" * 2000, "1" * 100_000]


@pytest.mark.parametrize("source", DEEP_JSON, ids=lambda source: source[:8])
def test_length_and_depth_of_json_are_limited(source):
    with pytest.raises(td.TidingsError):
        td.parse(source, notation="json")


def test_depth_of_a_decoded_object_is_limited():
    node = True
    for _ in range(50_000):
        node = {"not": node}
    with pytest.raises(td.TidingsError):
        td.parse(node, notation="json")


def test_length_of_a_url_is_limited():
    start = time.process_time()
    with contextlib.suppress(td.TidingsError):
        td.parse("&".join(f"a{n}={n}" for n in range(200_000)), notation="url")
    assert time.process_time() - start < 5


# --- the quick way and the grammar are one --------------------------------------------------------


def assert_one_reading(source):
    quick = parse_fast(source)
    assert quick is None or quick == parse_text(source)[0]


@given(soup())
@examples(400)
def test_the_quick_way_accepts_nothing_the_grammar_refuses(source):
    assert_one_reading(source)


@given(break_source("text"))
@examples(200)
def test_the_quick_way_and_the_grammar_agree_on_broken_filters(source):
    assert_one_reading(source)
