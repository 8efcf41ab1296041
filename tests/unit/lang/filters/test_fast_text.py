"""The quick way: it reads what the grammar reads, the first time and every time after."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.concepts import Vocabulary
from tidings.lang.diagnostics import MAX_DEPTH, MAX_LENGTH
from tidings.lang.filters import notations
from tidings.lang.filters.fast_text import FAST_PARSER, FastParser, parse_fast
from tidings.lang.filters.parse_text import parse_text
from tidings.model import And, Is, Not, Or, Test

PREDICATES = [
    "a = 1",
    "b != 'x'",
    "c between 1 and 5",
    "c between 'a' and 'b'",
    "d in [1 .. 2)",
    "e in (.. 5]",
    "f in ('x', 'y and z')",
    "g = 'p or q'",
    "h contains ':('",
    "i starts with 'not ' ignoring case",
    "none(j) = 'x'",
    "k < 5 km",
    "age(l) < 7 days",
    "m near (1.5, 2) 5 km",
    "n within POLYGON((0 0, 1 0, 1 1, 0 0))",
    "n within @home",
    "o is a 'cat'",
    "p exists",
    "q is null",
    "r = s.t",
]
JOINTS = [" and ", " or ", "  and  ", "\nand ", " and\tnot ", " and not ", " or not "]


def naive(text):
    """What the grammar reads, or nothing when it refuses."""
    try:
        tree, spots = parse_text(text)
    except td.FilterError:
        return None
    return None if spots.mistakes else tree


def nest_tests(inner):
    return st.one_of(
        st.builds(
            lambda parts, joint: joint.join(parts), st.lists(inner, min_size=2, max_size=4), st.sampled_from(JOINTS)
        ),
        st.builds("({})".format, inner),
        st.builds("not ({})".format, inner),
        st.builds(" ( {} )".format, inner),
    )


texts = st.recursive(st.sampled_from(PREDICATES), nest_tests, max_leaves=6)


@given(texts)
@examples(300)
def test_plain_filters_are_read_as_the_grammar_reads_them_and_none_is_left_over(text):
    first = parse_fast(text)
    assert first == naive(text)
    assert first is not None
    assert parse_fast(text) == first


fragments = st.sampled_from(
    [*PREDICATES, *JOINTS, "(", ")", "'", " ", "not ", "# ", "--", "\n", '"', "[", "`", "between", "\\"]
)


@given(st.lists(fragments, max_size=9).map("".join))
@examples(400)
def test_what_is_put_together_at_random_is_read_alike_or_left(text):
    warm = parse_fast(text)
    assert warm is None or warm == naive(text)
    FAST_PARSER.cache.clear()
    assert parse_fast(text) == warm


def test_equal_predicates_are_one_object():
    first, second = parse_fast("a = 1 and b = 2"), parse_fast("b = 2 and not a = 1")
    assert first.parts[0] is second.parts[1].part
    assert first.parts[1] is second.parts[0]


def test_and_binds_tighter_than_or_wherever_it_is_cut():
    a, b, c = (Test(name, Is(1)) for name in "abc")
    assert parse_fast("a = 1 and b = 1 or c = 1") == Or((And((a, b)), c))
    assert parse_fast("a = 1 or b = 1 and c = 1") == Or((a, And((b, c))))
    assert parse_fast("(a = 1 or b = 1) and c = 1") == And((Or((a, b)), c))
    assert parse_fast("not a = 1 or b = 1") == Or((Not(a), b))


@pytest.mark.parametrize("level", ["not {}", "({})", "not ({})", "({} and b = 2)"])
def test_what_is_known_does_not_hide_a_level_too_many(level):
    text = "a = 1"
    for _ in range(MAX_DEPTH + 5):
        text = level.format(text)
        read = parse_fast(text)
        assert read == naive(text) or (read is None and text.count("(") + text.count("not") >= MAX_DEPTH - 1)


def test_a_full_cache_is_emptied():
    parser = FastParser(limit=10)
    for number in range(50):
        assert parser.parse(f"a = {number} and not b = {number}") == naive(f"a = {number} and not b = {number}")
        assert len(parser.cache) <= 10


def test_long_predicates_are_not_kept():
    text = f"a in ({', '.join(map(str, range(1000)))})"
    assert parse_fast(text) == naive(text)
    assert text not in FAST_PARSER.cache


@pytest.mark.parametrize("text", ["(" + " and ".join(["a = 1"] * 15_000) + ")", "a = '" + " and ' or '" * 15_000])
def test_long_filters_take_no_longer_than_their_length(text):
    assert len(text) < MAX_LENGTH
    start = time.process_time()
    parse_fast(text)
    assert time.process_time() - start < 2


SCHEMA = td.Schema({"t": "time", "n": "number", "make": "text", "ip": "ip"})


def test_with_a_schema_text_takes_the_kind_and_the_rest_stays_the_same_object():
    plain, kinded = td.parse("n = 1 and make = 'x'"), td.parse("n = 1 and make = 'x'", schema=SCHEMA)
    assert all(first is second for first, second in zip(plain.parts, kinded.parts, strict=True))
    for _ in range(2):
        assert td.parse("not t > '2024-01-01'", schema=SCHEMA) == td.parse("not t > 2024-01-01")


def test_a_mistake_is_reported_each_time_and_with_each_schema():
    for _ in range(2):
        with pytest.raises(td.FilterError, match="did you mean `make`") as refused:
            td.parse("n = 1 and mke = 'x'", schema=SCHEMA)
        assert refused.value.mistakes[0].start == 10
        assert td.parse("n = 1 and mke = 'x'", schema=td.Schema({"mke": "text", "n": "number"}))
        assert td.parse("n = 1 and make = 'x'", schema=SCHEMA)


def test_surroundings_of_the_wrong_sort_are_refused_each_time():
    for _ in range(2):
        with pytest.raises(td.TidingsError, match="schema= takes"):
            td.parse("n = 1", schema={"n": "number"})


def test_matchers_of_one_schema_share_what_was_checked():
    schema = td.Schema({"price": "number"})
    first, second = Vocabulary(schema), Vocabulary(schema)
    checker = notations._find_fast_checker(first)  # noqa: SLF001 - a cache shows nowhere else
    assert notations._find_fast_checker(second) is checker  # noqa: SLF001
    assert notations._find_fast_checker(Vocabulary(td.Schema({"price": "number"}))) is not checker  # noqa: SLF001
