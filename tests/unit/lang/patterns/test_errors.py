"""Patterns that are refused: what the message says, and where it points."""

import pytest

from tidings import lang
from tidings.errors import PatternError

NAMED = "a = kind = 'a'\nb = kind = 'b'\nc = kind = 'c'\n"


def mistakes(text, **keywords):
    with pytest.raises(PatternError) as caught:
        lang.parse_pattern(text, **keywords)
    return caught.value


OTHER_EVENTS = [
    # (the definition of `b`, the expression, the words that are refused)
    ("b.price > a.price", "a ; b", ["b.price", "a.price"]),
    ("price > a.price", "a ; b", ["a.price"]),
    ("kind = 'b' and f.price > 5", "a ; f:b", ["f.price"]),
    ("kind = 'b' and a.ip = $x", "a ; b", ["a.ip"]),
    ("items has (f.qty > 1) or not f.a.b exists", "f:a ; b", ["f.qty", "f.a.b"]),
]


@pytest.mark.parametrize(("filter_", "expression", "words"), OTHER_EVENTS)
def test_an_attribute_of_another_step_is_refused_and_backticks_mean_the_events_own(filter_, expression, words):
    text = f"a = kind = 'a' and ip = $x\nb = {filter_}\n{expression}"
    refusals = [mistake for mistake in mistakes(text).mistakes if "cannot compare events yet" in mistake.message]
    assert [text[mistake.start : mistake.end] for mistake in refusals] == words
    assert all(f"`{word}`" in mistake.message for word, mistake in zip(words, refusals, strict=True))
    for word in words:
        text = text.replace(word, f"`{word}`")
    pattern = lang.parse_pattern(text)
    assert lang.parse_pattern(lang.render_pattern(pattern)) == pattern
    assert lang.parse_pattern(lang.render_pattern(pattern, "json"), notation="json") == pattern


def test_a_dotted_attribute_whose_first_part_is_no_step_needs_no_backticks():
    pattern = lang.parse_pattern("a = car.make = 'ford'\nb = x.b = 1 and f = 2\na ; f:b")
    assert [name.filter.attribute for name in pattern.filters[:1]] == ["car.make"]
    assert "`" not in lang.render_pattern(pattern)


EXPRESSIONS = [
    # (the expression over a, b and c, what the mistake stands at, part of its message)
    ("a ; b ; d", "d", "no filter is called `d`"),
    ("a ; b ; not d ; c", "d", "no filter is called `d`"),
    ("f:a ; f:b ; c", "f", "two steps are labelled `f`"),
    ("a ; b ; c @ t(x) - t(a) < 5 s", "x", "no step is called `x`"),
    ("one:a ; b ; c @ t(c) - t(on) < 5 s", "on", "did you mean `one`?"),
    ("f:a ; b ; c @ t(c) - t(a) < 5 s", "a", "with that filter there is `f`"),
    ("a ; a ; b ; c @ t(c) - t(a) < 5 s", "a", "`a` means 2 steps; label the one that is meant"),
    ("not b ; a ; c", "not", "`not` stands between two steps"),
    ("a ; c ; not b", "not b", "at the end of a pattern it needs a time"),
    ("a ; (b ; not c) ; a", "not c", "at the end of a pattern it needs a time"),
    ("a ; c ; not b within 5 min", "not b", "at the end of a pattern it needs a time"),
    ("a ; c , not b for 5 min", ",", "an absence follows `;`"),
    ("a ; not b for 5 min ; c", "for", "an absence ends the pattern"),
    ("a and c ; not b for 5 min", "for", "(a and b) ; not c for 5 min"),
    ("a ; not b for 5 min or c", "for", "(a and b) ; not c for 5 min"),
    ("(a ; not b for 5 min) ; c", "for", "outside parentheses"),
    ("a ; b ; not c for 0 s", "0 s", "longer than nothing"),
    ("a ; b ; not c for", "", "expected a duration such as `5 min`, found the end"),
    ("a ; c ; not b for 5 min within 9 min", "within", "`within` goes before an absence"),
    ("a , not b ; c", "not b ;", "`not` stands between two `;`"),
    ("a ; not b , c", "not b ,", "`not` stands between two `;`"),
    ("a ; not (b ; c) ; c", "(", "expected a filter's name after `not`"),
    ("a ; not x:b ; c", ":", "`not` takes one filter's name"),
    ("a ; not b{2} ; c", "{", "`not` takes one filter's name"),
    ("a ; b c", "c", "expected `;`, `,`, `and`, `or` or `@`, found `c`"),
    ("a -> b ; c", "->", "a later event is written `;`"),
    ("a && b ; c", "&&", "connectives are written `and` and `or`"),
    ("a ; !b ; c", "!", "negation is written `not`"),
    ("a+ ; b ; c", "+", "once or more is written `{1,}`"),
    ("a: = kind ; b ; c", "=", "expected a filter's name, found `=`"),
    ("a:b = c", "=", "a named filter is written `name = filter`"),
    ("a ; ; b ; c", ";", "expected a step, found `;`"),
    ("a ; within ; b ; c", "within", "as a name `within` goes in backticks"),
    ("a ; 'b' ; c", "'b'", "expected a step"),
    ("pattern p\na ; b ; c", "pattern", "`pattern NAME` begins a pattern in a file"),
    ("a ; b within 5 min ; c", "within", "put what `within` bounds in parentheses"),
    ("(a ; b within 5 min) ; c", "within", "put what `within` bounds in parentheses"),
    ("c ; (a ; b) within 5 min", "within", "these parentheses or the whole pattern?"),
    ("(a ; b) and (c ; a) within 5 min", "within", "these parentheses or the whole pattern?"),
    ("(a ; b ; c) within 5 min within 3 s", "within", "has a `within` already"),
    ("a ; b ; c within 5", "5", "a duration has its unit: `5 s`"),
    ("a ; b ; c within -5 s", "-5 s", "from zero on"),
    ("a ; b ; c within five min", "five", "expected a duration such as `5 min`"),
    ("a ; b ; c within 1e3 s", "1e3", "not an amount of time"),
    ("a ; b ; c within 99999999999 days", "99999999999 days", "at most ten thousand years"),
    ("a{3,2} ; b ; c", "{3,2}", "upper end lies below"),
    ("a{0,} ; b ; c", "{0,}", "at least once"),
    ("a{,5} ; b ; c", "{", "a lower end: `{1,5}`"),
    ("a{x} ; b ; c", "x", "how many times"),
    ("a{2.5} ; b ; c", "2.5", "how many times"),
    ("a{2 ; b ; c", ";", "expected `}`"),
    ("(a ; b){3} ; c", "{", "only a step is repeated"),
    ("a ; b @ t(b) - t(a) < 3 ; c", "3", "a duration has its unit: `3 s`"),
    ("a ; b @ t(b) - t(a) < 0.5 us ; c", "0.5 us", "exact to the microsecond"),
    ("a ; b @ t(b) - t(a) < 5 m ; c", "m", "use one of us, ms, s, min, h, days, weeks"),
    ("a ; b @ t(b) - t(a) = 5 s ; c", "=", "expected `<`, `<=`, `>` or `>=`, found `=`"),
    ("a ; b @ t(b) - t(b) < 5 s ; c", "t(b) - t(b) < 5 s", "two different moments"),
    ("a ; b @ t(b) < 5 s ; c", "<", "another moment"),
    ("a ; b @ tb - ta < 5 s ; c", "tb", "a moment such as `t(a)`"),
    ("a ; b @ |t(b) - t(a) < 5 s ; c", "<", "expected `|`"),
    ("a ; b @ 5 s < t(b) - t(a) < 2 s ; c", "5 s < t(b) - t(a) < 2 s", "never holds"),
    ("a ; b @ |t(a) - t(b)| < 0 s ; c", "|t(a) - t(b)| < 0 s", "never holds"),
    ("a ; b @ 5 s < t(b) - t(a) > 2 s ; c", "2 s", "two lower ends"),
    ("a ; b @ t(b) - t(a) < 5 s and t(b) - t(a) > 2 s ; c", "t", "several conditions go in parentheses"),
    ("a ; b @ (t(b) - t(a) < 5 s or t(c) - t(a) < 1 s) ; c", "or", "joined by `and` only"),
    ("a ; b ; c @", "", "a moment such as `t(a)`, found the end"),
    ("(a ; b ; c", "(", "this parenthesis is not closed"),
    ("a ; b ; c)", ")", "this parenthesis closes nothing"),
    ("a ; b ; c ;", "", "expected a step, found the end"),
    ("a ; b ; c\nd = kind = 'd'", "d", "named filters come before the pattern expression"),
    ("a ; `b\\q` ; c", "`b\\q`", "unknown escape"),
]


@pytest.mark.parametrize(("expression", "at", "message"), EXPRESSIONS)
def test_an_expression_is_refused_at_its_place(expression, at, message):
    problem = mistakes(NAMED + expression)
    (mistake,) = problem.mistakes
    assert message in mistake.message
    assert problem.text[mistake.start : mistake.end] == at
    assert mistake.start >= len(NAMED)
    assert "^" in str(problem)


DEFINITIONS = [
    ("a = ip != $x\na", "$x", "variables compare with `=` only"),
    ("a = ip = $x or s = 1\na", "$x", "put the `or` in parentheses"),
    ("a = s = 1\n  and ip = $x\n  or u = 2\na", "$x", "put the `or` in parentheses"),
    ("a = s = 1 and (ip = $x)\na", "$x", "outside parentheses and `not`"),
    ("a = not ip = $x\na", "$x", "outside parentheses and `not`"),
    ("a = any(ip) = $x\na", "$x", "a variable is given as `attribute = $x`"),
    ("a = $x = ip\na", "$x", "a variable is given as `attribute = $x`"),
    ("a = ip in ($x, 5)\na", "$x", "a variable is given as `attribute = $x`"),
    ("ip = $x\nip", "$x", "a variable is given as `attribute = $x`"),
    ("a = ip = $\na", "$", "a variable has a name"),
    ("a = ip = $x and port = $x\na", "$x", "`$x` has a value already"),
    ("a = s = 'x\nb = s = 'y'\na ; b", "'", "a quote is not closed"),
    ("a = (s = 'x'\nb = s = 'y'\na ; b", "(", "this parenthesis is not closed"),
    ("a = s = 1\na = s = 2\na", "a", "two filters are called `a`"),
    ("a, b = s = 1\na", "b", "`b` is never used"),
    ("a = s = 1", "", "the pattern expression is missing"),
    ("", "", "the pattern expression is missing"),
    ("a = s == 1\na", "=", "equality is written `=`"),
    ("a = s < 1 and\n    u >> 2\na", ">", "expected"),
    ("a ; b", "a", "no filter is called `a`; name it first, on a line of its own"),
    ("fail = s = 1\nfial", "fial", "did you mean `fail`?"),
]


@pytest.mark.parametrize(("text", "at", "message"), DEFINITIONS)
def test_a_named_filter_is_refused_at_its_place(text, at, message):
    problem = mistakes(text)
    mistake = problem.mistakes[0]
    assert message in mistake.message
    assert text[mistake.start : mistake.end] == at


def test_mistakes_of_filters_and_of_the_expression_are_reported_together_in_order():
    problem = mistakes("a = s << 1\nb = ip > $x\nc = u = 'v'\nf:a ; f:b ; ; d @ t(f) - t(g) < 3")
    assert [mistake.message.split("`")[0] for mistake in problem.mistakes] == [
        "expected an attribute, a number, quoted text, a date, an address or ",
        "variables compare with ",
        "two steps are labelled ",
        "expected a step, found ",
        "a duration has its unit: ",
    ]


def test_the_message_shows_the_line_and_the_place():
    problem = mistakes("fail = status = 'denied'\nenter = status = 'success'\nfail ; entr")
    assert str(problem) == "no filter is called `entr`; did you mean `enter`?\n  fail ; entr\n         ^^^^"


GUARDED = [
    ("a ; not c ; b", True),
    ("b ; not c ; a", False),
    ("(a or b) ; not c ; a", True),
    ("(a and b) ; not c ; a", False),
    ("b ; (a ; not c ; a)", False),
    ("(b and (a ; not c ; a))", True),
    ("b ; (a or (a ; not c ; a))", False),
    ("b{2,} ; not c ; a", False),
    ("a ; not c for 5 s ", True),
    ("b ; a ; not c for 5 s", False),
    ("(a or b) ; not c for 5 s", True),
]


@pytest.mark.parametrize(("expression", "refused"), GUARDED)
def test_what_must_not_come_needs_its_variables_bound_before(expression, refused):
    named = {"a": "k = 1", "b": "k = 2 and u = $y", "c": "k = 3 and u = $y"}
    text = "\n".join([*(f"{name} = {body}" for name, body in named.items() if name in expression), expression])
    if refused:
        (mistake,) = mistakes(text).mistakes
        assert mistake.message.startswith("`$y` of `c` has no value yet" if "b" in expression else "`$y` of `c`")
        assert text[mistake.start : mistake.end] == "c"
    else:
        assert lang.parse_pattern(text).guards() == ("c",)


def test_a_key_variable_needs_no_step_before():
    text = "a = k = 1 and ip = $x\nb = k = 2 and ip = $x\n(a or x:a) ; not b ; y:a"
    assert lang.parse_pattern(text).key_variables() == ("x",)


def test_a_variable_of_one_operand_alone_is_allowed():
    assert lang.parse_pattern("a = k = 1 and ip = $x\nb = k = 2\na ; b").key_variables() == ()
