"""Text notation: what is read, what is refused, and where the error points."""

import pytest

import tidings as td
from tidings.lang.diagnostics import MAX_DEPTH, MAX_LENGTH
from tidings.lang.filters.fast_text import parse_fast
from tidings.lang.filters.parse_text import parse_text
from tidings.model import Compare, Comparison, In, Is, Not, Quantifier, Range, Test

SAME = [
    ("a in [1 .. 5]", "a between 1 and 5"),
    ("a in [2000..5000)", "a in [ 2000 .. 5000 )"),
    ("year in [2015 ..]", "year >= 2015"),
    ("a in (.. 5)", "a < 5"),
    ("a != 1", "none(a) = 1"),
    ("a not in (1, 2)", "none(a) in (1, 2)"),
    ("a = 'x'", 'a = "x"'),
    ("A AND NOT b IN (1,2)".replace("A ", "a exists "), "a exists and not b in (1, 2)"),
    ("any(a) = 1", "a = 1"),
    ("all(a) != 1", "none(a) = 1"),
    ("none(a) != 1", "all(a) = 1"),
    ("any(a) != 1", "a exists and not all(a) = 1"),
    ("all(a) not in (1, 2)", "none(a) in (1, 2)"),
    ("age(p) < 1 week", "age(p) < 7 days"),
    ("spot near (1, 2) 5 km", "spot near (1, 2) 5000 m"),
    ("ip = 10.0.0.1", "ip in 10.0.0.1/32"),
    ("ip in ::ffff:10.0.0.0/104", "ip in 10.0.0.0/8"),
    ("t > 2024-01-01", "t > 2024-01-01T02:00:00+02:00"),
    ("a = 1 # comment\n and b = 2 -- more", "a = 1 and b = 2"),
    ("`a` = 1", "a = 1"),
    ("a < `now`", "`a` < `now`"),
    ("n in (1, 1)", "n = 1"),
    ("a < 2 and b < 3 or c < 4", "(a < 2 and b < 3) or c < 4"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_two_spellings_are_one_tree(first, second):
    assert td.parse(first) == td.parse(second)


def test_a_comma_is_a_set_and_dots_are_a_range():
    assert td.parse("n in (1, 5)") == Test("n", In((1, 5)))
    assert td.parse("n in (1 .. 5)") == Test("n", Range(1, 5, low_open=True, high_open=True))


def test_true_and_one_are_different_values():
    assert td.parse("a = true") != td.parse("a = 1")
    assert td.parse("a = true") == Test("a", Is(True))


def test_a_bare_word_is_another_attribute():
    assert td.parse("price < list_price") == Test("price", Compare(Comparison.LT, "list_price"))


def test_an_attribute_may_be_called_age_any_or_a():
    assert td.parse("age > 30 and any = 1 and a = 2").parts[0] == Test("age", Range(low=30, low_open=True))


def test_not_binds_tighter_than_and():
    left = td.parse("not a = 1 and b = 2").parts[0]
    assert left == Not(Test("a", Is(1)))


def test_large_integers_stay_exact():
    assert td.parse("n = 9223372036854775807").condition.value == 2**63 - 1


REFUSED = [
    ("price <", 7, "expected an attribute, a number"),
    ("like = 3", 0, "backticks"),
    ("a == 3", 3, "equality is written `=`"),
    ("a <> 3", 3, "unequal is written `!=`"),
    ("a = 1 && b = 2", 6, "`and` and `or`"),
    ("a is not null", 2, "write `a exists`"),
    ("a = 'x", 4, "quote"),
    ("a = 'it''s'", 8, "backslash"),
    ("a in [5 .. 2]", 5, "above its high end"),
    ("a in ()", 6, "expected"),
    ("a in [..]", 5, "at least one end"),
    ("a in (1, 'x')", 6, "one kind"),
    ("a matches /(/", 10, "RE2 refuses"),
    ("a within POLYGON((0 0, 1 1, 2 2, 0 0, 1 0))", 9, "not closed"),
    ("a within POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))", 9, "not valid"),
    ("a within POLYGON((0 0, 120 0, -120 0, 0 0, 0 0))", 9, "pole"),
    ("a near (1, 95) 5 km", 8, "latitude"),
    ("a near (1, 5) 5 GB", 8, "distance"),
    ("age(a) < 5", 9, "duration"),
    ("age(a) exists", 4, "duration"),
    ("a = 1e999", 4, "finite"),
    ("a = 99999999999999999999", 4, "64-bit"),
    ("a = 2024-13-01", 4, "not a date"),
    ("a in 10.0.0.1/8", 5, "the block is `10.0.0.0/8`"),
    ("a = '\\q'", 4, "unknown escape"),
    ("a = '\\ud800'", 4, "surrogate"),
    ("2 < a", 0, "the attribute comes first"),
    ("a > 2 < 5", 6, "(2 .. 5)"),
    ("a < 9,000", 5, "without separators"),
    ("posted > now", 9, "age(posted)"),
    ("a not exists", 6, "no quantifier"),
    ("a > true", 4, "two numbers"),
    ("", 0, "expected"),
    ("a = 1)", 5, "expected"),
    ("(a = 1", 6, "expected"),
]


@pytest.mark.parametrize(("text", "at", "words"), REFUSED)
def test_a_mistake_is_refused_at_its_place(text, at, words):
    with pytest.raises(td.FilterError, match=r"\S") as refused:
        td.parse(text)
    (mistake, *_) = refused.value.mistakes
    assert words in mistake.message
    assert mistake.start == at


def test_several_mistakes_are_reported_together():
    with pytest.raises(td.FilterError) as refused:
        td.parse("price < and (make == 3 or c in [1 2]) and d in [9 .. 1]")
    assert [mistake.start for mistake in refused.value.mistakes] == [8, 19, 34, 47]
    with pytest.raises(td.FilterError) as refused:
        td.parse("d in [9 .. 1] and x = '\\q'")
    assert len(refused.value.mistakes) == 2


def test_the_error_shows_the_line_with_a_caret():
    with pytest.raises(td.FilterError) as refused:
        td.parse("temp > 20 and cty = 'Bern'", schema=td.Schema({"temp": "number", "city": "text"}))
    assert str(refused.value).splitlines() == [
        "unknown attribute `cty`; did you mean `city`?",
        "  temp > 20 and cty = 'Bern'",
        "                ^^^",
    ]


def test_length_and_depth_are_limited_by_name():
    with pytest.raises(td.FilterError, match=f"{MAX_LENGTH:,}"):
        td.parse("a = '" + "x" * MAX_LENGTH + "'")
    for deep in ("(" * 5000 + "a = 1" + ")" * 5000, "not " * 5000 + "a = 1", "a has (" * 500 + "b = 1" + ")" * 500):
        with pytest.raises(td.FilterError, match=str(MAX_DEPTH)):
            td.parse(deep)


def test_depth_up_to_the_limit_is_read_alike_by_both_ways():
    deep = "(" * (MAX_DEPTH - 2) + "a = 1" + ")" * (MAX_DEPTH - 2)
    assert td.parse(deep) == parse_text(deep)[0] == Test("a", Is(1))
    wide = " and ".join(f"not (a = {i})" for i in range(300))
    assert td.parse(wide) == parse_text(wide)[0]


def test_a_schema_gives_text_literals_their_kind():
    schema = td.Schema({"t": "time", "ip": "ip", "n": "number"})
    assert td.parse("t > '2024-01-01'", schema=schema) == td.parse("t > 2024-01-01")
    assert td.parse("ip in ('10.0.0.1', '::1')", schema=schema) == td.parse("ip in (10.0.0.1, ::1)")
    with pytest.raises(td.FilterError, match="without quotes"):
        td.parse("n < '5'", schema=schema)
    with pytest.raises(td.FilterError, match="declared number"):
        td.parse("n starts with 'x'", schema=schema)


def test_inside_has_names_are_the_elements_own():
    schema = td.Schema({"items": "several record", "items.sku": "several text", "items.qty": "several number"})
    td.parse("items has (sku = 'x' and qty > 2)", schema=schema)
    with pytest.raises(td.FilterError, match=r"`items\.sq`; did you mean `items\.sku`"):
        td.parse("items has (sq = 'x')", schema=schema)


@pytest.mark.parametrize(
    "text", ["a = 'x' and b in [1 .. 2)", "not (a = 1 or b exists)", "age(p) < 7 days", "n in (1, 2)"]
)
def test_the_quick_way_and_the_grammar_agree(text):
    assert parse_fast(text) == parse_text(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "in = 3",
        "a in [5 .. 2]",
        "a = 5 in",
        "a > 'x' ignoring case",
        "a = 5 ignoring case",
        "none(a) != 1",
        "age(a) = 1",
        "a=1)",
    ],
)
def test_the_quick_way_leaves_mistakes_to_the_grammar(text):
    assert parse_fast(text) is None


FOLDED = [
    ("a = 'x' ignoring case", "a in ('x', 'X') ignoring case"),
    ("a != 'x' ignoring case", "none(a) = 'x' ignoring case"),
    ("a not in ('x', 'y') ignoring case", "none(a) in ('x', 'y') ignoring case"),
    ("all(a) != 'x' Ignoring\n Case", "none(a) = 'x' ignoring case"),
    ("any(a) != 'x' ignoring case", "a exists and not all(a) = 'x' ignoring case"),
]


@pytest.mark.parametrize(("first", "second"), FOLDED)
def test_equality_and_sets_take_ignoring_case(first, second):
    assert td.parse(first) == td.parse(second) == parse_text(first)[0]
    assert "ignoring case" in td.render(td.parse(first))


def test_ignoring_case_in_json_is_a_flag():
    node = {"attr": "a", "op": "in", "values": ["x", "Y"], "ignoring_case": True}
    assert td.parse(node, notation="json") == td.parse("a in ('x', 'Y') ignoring case")
    unequal = {"attr": "a", "op": "!=", "value": "x", "ignoring_case": True}
    assert td.parse(unequal, notation="json") == td.parse("a != 'x' ignoring case")
    plain = {"attr": "a", "op": "=", "value": "x", "ignoring_case": False}
    assert td.parse(plain, notation="json") == td.parse("a = 'x'")
    with pytest.raises(td.NotExpressible, match="ignoring case"):
        td.render(td.parse("a = 'x' ignoring case"), notation="url")


@pytest.mark.parametrize(
    "text", ["a = 5 ignoring case", "a < 'x' ignoring case", "a in (1, 2) ignoring case", "a = `b` ignoring case"]
)
def test_ignoring_case_is_for_text_that_is_compared_for_equality(text):
    with pytest.raises(td.FilterError, match="`ignoring case` goes with text behind") as refused:
        td.parse(text)
    assert "`ignoring case`" not in refused.value.mistakes[0].message.partition(", found")[0]


@pytest.mark.parametrize("node", [{"op": "=", "value": 5}, {"op": "in", "values": ["x", 5]}, {"op": "<", "value": "x"}])
def test_ignoring_case_in_json_is_for_text(node):
    with pytest.raises(td.FilterError, match=r"compares text|unknown key `ignoring_case`"):
        td.parse({"attr": "a", "ignoring_case": True, **node}, notation="json")


def test_quantifiers_are_kept():
    assert td.parse("all(a) > 3").quantifier is Quantifier.ALL
    assert td.render(td.parse("all(age(p)) > 3 h")) == "all(age(p)) > 3 h"
