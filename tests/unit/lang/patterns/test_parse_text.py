"""Patterns in text: what is read, and as which tree."""

import pytest

import tidings as td
from tidings import lang
from tidings.errors import PatternError, TidingsError
from tidings.lang.diagnostics import MAX_LENGTH
from tidings.lang.patterns.check import MAX_LEVELS
from tidings.model import TRUE
from tidings.model.patterns import (
    Absence,
    Conjunction,
    Disjunction,
    Elapsed,
    Gap,
    Joint,
    Moment,
    Repeat,
    Sequence,
    Step,
    Timed,
    Which,
)

NAMES = ("a", "b", "c", "d")
SECOND = 1_000_000
MINUTE = 60 * SECOND
A, B, C, D = map(Step, NAMES)
NEXT, LATER = Joint(Gap.NEXT), Joint(Gap.LATER)


def parse_expression(expression):
    """The pattern of an expression over `a` to `d`, each defined when it is used."""
    words = set("".join(char if char.isalnum() else " " for char in expression).split())
    lines = [f"{name} = kind = '{name}'" for name in NAMES if name in words]
    return lang.parse_pattern("\n".join([*lines, expression]))


def sequence(*parts):
    return Sequence(parts, (LATER,) * (len(parts) - 1))


TREES = [
    ("a", A),
    ("(a)", A),
    ("a ; b", sequence(A, B)),
    ("a , b ; c", Sequence((A, B, C), (NEXT, LATER))),
    ("a,b;c", Sequence((A, B, C), (NEXT, LATER))),
    ("a ; (b ; c)", sequence(A, sequence(B, C))),
    ("a ; b and c ; d", Conjunction((sequence(A, B), sequence(C, D)))),
    ("a ; b AND c ; d", Conjunction((sequence(A, B), sequence(C, D)))),
    ("a and b or c and d", Disjunction((Conjunction((A, B)), Conjunction((C, D))))),
    ("a and (b or c) and d", Conjunction((A, Disjunction((B, C)), D))),
    ("a ; (b and c) , d", Sequence((A, Conjunction((B, C)), D), (LATER, NEXT))),
    ("x:a ; y:a", sequence(Step("a", "x"), Step("a", "y"))),
    ("a{3,} ; b{2,5} ; c{3}", sequence(Repeat(A, 3), Repeat(B, 2, 5), Repeat(C, 3, 3))),
    ("f:a{ 2 , }", Repeat(Step("a", "f"), 2)),
    ("a ; not b ; c", Sequence((A, C), (Joint(Gap.LATER, ("b",)),))),
    ("a ; not b ; not d ; c", Sequence((A, C), (Joint(Gap.LATER, ("b", "d")),))),
    ("a ; b within 10 min", Timed(sequence(A, B), within=10 * MINUTE)),
    ("(a ; b) within 10 min", Timed(sequence(A, B), within=10 * MINUTE)),
    ("(a ; b) within 10 min ; c", sequence(Timed(sequence(A, B), within=10 * MINUTE), C)),
    ("c ; ((a ; b) within 10 min)", sequence(C, Timed(sequence(A, B), within=10 * MINUTE))),
    ("a and b within 0 s", Timed(Conjunction((A, B)), within=0)),
    ("a ; (b{2,}) within 1 s ; c", sequence(A, Timed(Repeat(B, 2), within=SECOND), C)),
    ("a # first\n; b -- then\n", sequence(A, B)),
    ("a ;\nb\n;c", sequence(A, B, C)),
]


@pytest.mark.parametrize(("expression", "tree"), TREES)
def test_an_expression_is_this_tree(expression, tree):
    pattern = parse_expression(expression)
    assert pattern.root == tree
    assert lang.parse_pattern(lang.render_pattern(pattern)) == pattern


CONDITIONS = [
    ("t(b) - t(a) < 5 min", {"high": 5 * MINUTE, "high_open": True}),
    ("t(b) - t(a) <= 5min", {"high": 5 * MINUTE}),
    ("t(b) - t(a) > -5 s", {"low": -5 * SECOND, "low_open": True}),
    ("t(b) - t(a) >= 1 h 30 min", {"low": 90 * MINUTE}),
    ("5 min > t(b) - t(a)", {"high": 5 * MINUTE, "high_open": True}),
    ("2 s < t(b) - t(a) <= 5 min", {"low": 2 * SECOND, "high": 5 * MINUTE, "low_open": True}),
    ("5 min >= t(b) - t(a) > 2 s", {"low": 2 * SECOND, "high": 5 * MINUTE, "low_open": True}),
    ("|t(b) - t(a)| < 1 ms", {"high": 1000, "high_open": True, "absolute": True}),
    ("0 s <= t(b) - t(a) <= 0 s", {"low": 0, "high": 0}),
    ("t(b) - t(a) < 1.5 s", {"high": 1_500_000, "high_open": True}),
    ("t(b) - t(a) < 0.1 ms", {"high": 100, "high_open": True}),
    ("t(b) - t(a) < 3 us", {"high": 3, "high_open": True}),
    ("t(b) - t(a) < 1 week 1 day", {"high": 8 * 24 * 60 * MINUTE, "high_open": True}),
    ("t(b) - t(a) < 2 Hours", {"high": 120 * MINUTE, "high_open": True}),
]


@pytest.mark.parametrize(("written", "ends"), CONDITIONS)
def test_a_condition_means_these_ends(written, ends):
    expected = Elapsed(Moment("b"), Moment("a"), **ends)
    for expression in (f"a ; b @ {written}", f"a ; b @({written})", f"a ; b @ (({written}))"):
        pattern = parse_expression(expression)
        assert pattern.root.parts[1] == Timed(B, (expected,))
        assert lang.parse_pattern(lang.render_pattern(pattern)) == pattern


def test_several_conditions_stand_in_parentheses_or_follow_each_other():
    together = parse_expression("a ; b ; c @ (t(c) - t(a) < 6 s and t(c) - t(b) > 3 s)")
    apart = parse_expression("a ; b ; c @ (t(c) - t(a) < 6 s) @ t(c) - t(b) > 3 s")
    assert together == apart
    assert len(together.root.parts[2].conditions) == 2


def test_conditions_and_within_of_one_part_are_one_node():
    condition = Elapsed(Moment("b"), Moment("a"), high=SECOND)
    assert parse_expression("(a ; b) @ t(b) - t(a) <= 1 s within 5 s").root == Timed(
        sequence(A, B), (condition,), 5 * SECOND
    )
    assert parse_expression("(a ; b) within 5 s @ t(b) - t(a) <= 1 s").root == Timed(
        sequence(A, B), (condition,), 5 * SECOND
    )


def test_within_at_the_end_bounds_the_whole_pattern_and_never_the_last_step():
    root = parse_expression("a ; b ; c @ t(c) - t(a) < 2 s within 5 min").root
    assert isinstance(root, Timed)
    assert isinstance(root.part, Sequence)
    assert root.within == 5 * MINUTE


def test_a_repeated_step_has_a_first_and_a_last_moment():
    root = parse_expression("f:a{2,} @ t(f) - t(first f) < 5 s").root
    assert root.conditions[0].late == Moment("f", Which.LAST)
    assert root.conditions[0].early == Moment("f", Which.FIRST)
    assert root == parse_expression("f:a{2,} @ t(last f) - t(first f) < 5 s").root


def test_first_may_be_a_label():
    assert parse_expression("first:a ; b @ t(b) - t(first) < 5 s").root.parts[1].conditions[0].early == Moment("first")


def test_an_absence_is_the_end_of_the_pattern():
    pattern = parse_expression("a ; not b for 5 min")
    assert pattern.root == A
    assert pattern.absence == Absence(("b",), 5 * MINUTE)
    assert parse_expression("a ; d ; not b ; not c for 1 s").absence == Absence(("b", "c"), SECOND)
    assert parse_expression("(a and d) ; not b for 1 s").root == Conjunction((A, D))
    assert parse_expression("(a ; d) within 5 s ; not b for 1 s").root == Timed(sequence(A, D), within=5 * SECOND)


def test_a_filter_keeps_its_tree_and_gives_its_variables():
    text = "x = status = 'denied' and ip = $x and port in (22, 2222) and `user name` = $u\nx"
    (named,) = lang.parse_pattern(text).filters
    assert named.filter == td.parse("status = 'denied' and port in (22, 2222)")
    assert named.variables == (("ip", "x"), ("user name", "u"))


@pytest.mark.parametrize("body", ["ip = $x", "ip=$x and dst = $y", "true and ip = $x", "ip = $x # all of them"])
def test_a_filter_of_variables_alone_accepts_everything(body):
    (named,) = lang.parse_pattern(f"any = {body}\nany").filters
    assert named.filter == TRUE
    assert named.variables[0] == ("ip", "x")


def test_a_dollar_behind_a_number_is_a_unit():
    (named,) = lang.parse_pattern("cheap = price < 400 $ and ip = $x\ncheap").filters
    assert named.filter == td.parse("price < 400 $")
    assert named.variables == (("ip", "x"),)


def test_a_dollar_inside_quotes_is_text():
    assert lang.parse_pattern("a = note = 'ip = $x'\na").filters[0].variables == ()


CONTINUED = [
    "x = status = 'denied' and\n    ip = $x\nx",
    "x = status = 'denied'\n    and ip = $x\nx",
    "x = (status\n  = 'denied')\n  and ip = $x\n\nx",
    "x =\n  status = 'denied' and ip = $x\nx",
    "x = status = 'denied'  # why\n# and so on\n\n  and ip = $x\nx",
    "x = status =\n 'denied' and ip = $x\n(x)",
    "x = status\n = 'denied' and ip =\n $x\n(x)",
    "\r\nx = status = 'denied' and ip = $x\r\nx\r\n",
]


@pytest.mark.parametrize("text", CONTINUED)
def test_a_named_filter_goes_on_where_its_line_waits_or_the_next_goes_on(text):
    assert lang.parse_pattern(text) == lang.parse_pattern("x = status = 'denied' and ip = $x\nx")


def test_several_names_share_one_filter():
    pattern = lang.parse_pattern("s1, s2, s3 = status = 'denied'\ns1 ; s2 ; s3")
    assert [named.name for named in pattern.filters] == ["s1", "s2", "s3"]
    assert len({named.filter for named in pattern.filters}) == 1
    assert lang.render_pattern(pattern) == "s1, s2, s3 = status = 'denied'\ns1 ; s2 ; s3"


def test_keywords_name_filters_in_backticks():
    pattern = lang.parse_pattern("`not`, `for` = a = 1\n`not` ; x:`for` ; y:`not` @ t(y) - t(x) < 1 s")
    assert [step.filter for step in pattern.steps()] == ["not", "for", "not"]


def test_a_schema_is_asked_about_filters_and_variables():
    schema = td.Schema({"status": "text", "seen": "time", "ip": "ip"})
    pattern = lang.parse_pattern("a = seen > '2024-01-01' and ip = $x\na", schema=schema)
    assert pattern.filters[0].filter == td.parse("seen > 2024-01-01")
    with pytest.raises(PatternError) as caught:
        lang.parse_pattern("a = statu = 'x' and ipp = $x\na", schema=schema)
    assert [mistake.message for mistake in caught.value.mistakes] == [
        "unknown attribute `statu`; did you mean `status`?",
        "unknown attribute `ipp`; did you mean `ip`?",
    ]
    assert [mistake.start for mistake in caught.value.mistakes] == [4, 20]


# The paper's own ------------------------------------------------------------------------------------

INTRUSION = """
    s1, s2, s3 = IP = $x and STATUS = 'denied'
    s4         = IP = $x and STATUS = 'success'
    s1; s2; s3@(t(s3) - t(s1) < 5min); s4
"""
COMPROMISED = """
    s1, s2 = IP = $x and STATUS = 'denied'
    s3, s4 = IP = $x and STATUS = 'success'
    s5     = IP = $x and STATUS = 'passwd'
    s6     = IP = $x and STATUS = 'logoff'
    s1; ((s2; s3@(t(s3) - t(s1) < 5 min)) or
         (s4, s5)); s6
"""


def test_the_intrusion_of_the_paper_is_written_nearly_as_printed():
    pattern = lang.parse_pattern(INTRUSION)
    s1, s2, s3, s4 = (Step(f"s{i}") for i in range(1, 5))
    soon = Elapsed(Moment("s3"), Moment("s1"), high=5 * MINUTE, high_open=True)
    assert pattern.root == sequence(s1, s2, Timed(s3, (soon,)), s4)
    assert pattern.key_variables() == ("x",)


def test_the_compromise_of_the_paper_is_written_nearly_as_printed():
    pattern = lang.parse_pattern(COMPROMISED)
    s1, s2, s3, s4, s5, s6 = (Step(f"s{i}") for i in range(1, 7))
    soon = Elapsed(Moment("s3"), Moment("s1"), high=5 * MINUTE, high_open=True)
    either = Disjunction((sequence(s2, Timed(s3, (soon,))), Sequence((s4, s5), (NEXT,))))
    assert pattern.root == sequence(s1, either, s6)
    assert pattern.key_variables() == ("x",)
    assert lang.parse_pattern(lang.render_pattern(pattern)) == pattern


def test_figure_seven_of_the_paper_is_written_nearly_as_printed():
    text = "s1, s2, s3 = kind = 's'\ns1; s2@(t(s2) - t(s1) < 3 s); s3@(t(s3) - t(s1) < 6 s)@(t(s3) - t(s2) > 3 s)"
    first, second = lang.parse_pattern(text).root.parts[1:]
    assert [condition.high for condition in first.conditions] == [3 * SECOND]
    assert [(c.low, c.high) for c in second.conditions] == [(None, 6 * SECOND), (3 * SECOND, None)]


# Limits ---------------------------------------------------------------------------------------------


def test_nesting_has_a_limit():
    deep = MAX_LEVELS
    assert parse_expression("(" * deep + "a" + ")" * deep).root == A
    with pytest.raises(PatternError, match="nested more than 50 levels"):
        parse_expression("(" * (deep + 1) + "a" + ")" * (deep + 1))


def test_length_has_a_limit():
    with pytest.raises(PatternError, match="the limit is 200,000"):
        lang.parse_pattern("a = x = 1\n" + "a ; " * MAX_LENGTH)


def test_a_long_pattern_is_read_in_time():
    pattern = lang.parse_pattern("a = kind = 'a'\n" + " ; ".join(["a"] * 5000))
    assert len(pattern.steps()) == 5000


def test_only_text_is_text():
    with pytest.raises(PatternError, match="text, not dict"):
        lang.parse_pattern({})


def test_there_are_two_notations():
    with pytest.raises(TidingsError, match="the notations are text, json"):
        lang.parse_pattern("a", notation="url")
    with pytest.raises(TidingsError, match="the notations are text, json"):
        lang.render_pattern(parse_expression("a"), "yaml")
    with pytest.raises(PatternError, match="str is not a pattern"):
        lang.render_pattern("a")
