"""Derived attributes: expressions over an event's values."""

import pickle
from datetime import UTC, datetime

import pytest

from tidings.concepts import Derived
from tidings.errors import BadEvent, OntologyError
from tidings.model import Kind

NOW = datetime(2024, 6, 1, 14, 30, tzinfo=UTC)


def value(text, /, **attributes):
    return Derived.parse("x", text).value(attributes.get, NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("7 / 2", 3.5),
        ("-2 - -3", 1),
        ("9223372036854775807", 2**63 - 1),
        ("1.5e2", 150.0),
        ("year(now) - 2015", 9),
        ("month(now) + day(now)", 7),
        ("hour(now) * 100 + minute(now)", 1430),
        ("weekday(now)", 6),
        ("abs(-3)", 3),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(2.345, 2)", 2.35),
        ("round(1234, -2)", 1200),
        ("floor(-1.5)", -2),
        ("ceil(1.2)", 2),
        ("min(3, 1, 2)", 1),
        ("max('b', 'a')", "b"),
        ("lower('ÄB')", "äb"),
        ("Upper('ß')", "SS"),
        ("length('日本')", 2),
        ("concat('a', 1, \" it's\")", "a1 it's"),
        (r"'it\'s'", "it's"),
        ("days(172800)", 2.0),
        ("years(31557600)", 1.0),
    ],
)
def test_expression_gives(text, expected):
    result = value(text)
    assert result == expected
    assert type(result) is type(expected)


def test_attributes_are_dotted_or_in_backticks():
    attributes = {"price.value": 450, "list price": 500, "now": 3, "a b.c": 7}
    derived = Derived.parse("x", "`list price` - price.value + `now` * `a b`.c")
    assert derived.inputs == ("list price", "price.value", "now", "a b.c")
    assert derived.value(attributes.get, NOW) == 71


def test_time_minus_time_is_seconds():
    derived = Derived.parse("experience", "now - graduated")
    assert derived.unit == "second"
    assert derived.kind is Kind.NUMBER
    assert derived.wants == {"graduated": Kind.TIME}
    without_zone = datetime(2024, 6, 1, 14, 29, 59, 500_000)  # noqa: DTZ001 - such a time is UTC
    assert derived.value({"graduated": without_zone}.get, NOW) == 0.5
    assert derived.value({"graduated": datetime(2024, 5, 31, 14, 30, tzinfo=UTC)}.get, NOW) == 86_400


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("now - a", "second"),
        ("a - now", "second"),
        ("abs(now - a)", "second"),
        ("(now - a) * 2 + 3", "second"),
        ("max(now - a, 5)", "second"),
        ("(now - a) / (now - b)", None),
        ("years(now - a)", None),
        ("year(now) - year(a)", None),
    ],
)
def test_seconds_keep_their_unit_as_far_as_they_are_seconds(text, unit):
    assert Derived.parse("x", text).unit == unit


def test_kinds_that_are_asked_for_are_told():
    derived = Derived.parse("x", "concat(lower(name), year(born)) ")
    assert derived.wants == {"name": Kind.TEXT, "born": Kind.TIME}
    assert derived.kind is Kind.TEXT
    assert Derived.parse("x", "coalesce(a, b, 0)").wants == {"a": Kind.NUMBER, "b": Kind.NUMBER}
    assert Derived.parse("x", "a - b").kind is None


def test_absent_input_makes_the_result_absent():
    assert value("a + 1") is None
    assert value("min(a, 1)") is None
    assert value("coalesce(a, b, 7)", b=5) == 5
    assert value("coalesce(a + 1, 7)") == 7
    assert value("coalesce(a, b)") is None


@pytest.mark.parametrize(
    ("text", "attributes", "reason"),
    [
        ("a / b", {"a": 1, "b": 0}, "division by zero"),
        ("now - a", {"a": 2015}, r"write year\(now\) - graduated instead of now - graduated"),
        ("a + 1", {"a": "x"}, "the text `x` \\+ the number 1 has no meaning; concat"),
        ("lower(a)", {"a": 3}, r"lower\(\) takes a text, not the number 3"),
        ("min(a, b)", {"a": 3, "b": "x"}, "different kinds"),
        ("a * a", {"a": 2**40}, "beyond 64-bit integers"),
        ("a * a", {"a": 1e200}, "not a finite number"),
        ("a", {"a": [1, 2]}, "`a` is a list"),
        ("a", {"a": True}, "`a` is a bool"),
        ("round(a, b)", {"a": 1, "b": 400}, "between -15 and 15"),
        ("a - b", {"a": datetime(2024, 1, 1, tzinfo=UTC), "b": 3}, "has no meaning"),
    ],
)
def test_values_that_do_not_fit_make_the_event_bad(text, attributes, reason):
    with pytest.raises(BadEvent, match=reason) as error:
        value(text, **attributes)
    assert error.value.attribute == "x"
    assert "derived attribute `x`" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a + * 2", "expected a value", 4),
        ("a +", "expected a value, but the expression ends", 3),
        ("", "expected a value, but the expression ends", 0),
        ("a b", "expected an operator or the end", 2),
        ("(a", r"expected an operator or `\)`, but the expression ends", 2),
        ("a ? b", "not the character `\\?`", 2),
        ("'open", "not the character `'`", 0),
        ("yaer(now)", "unknown function `yaer`; did you mean `year`", 0),
        ("1 + abs()", r"abs\(\) takes 1 value, not 0", 4),
        ("min(1)", r"min\(\) takes 2 to 100 values, not 1", 0),
        ("lower(now)", r"`lower\(\)` takes a text here, and this is a time", 6),
        ("now - 5", r"takes a time here, and this is a number; if it is a year, write year\(now\) - graduated", 6),
        ("now + 5", "two times can be subtracted", 0),
        ("'a' + b", r"concat\(\) joins texts", 0),
        ("1e999", "out of range", 0),
        ("9" * 20, "out of range", 0),
        ("-" * 60 + "a", "deeper than 50 levels", 51),
    ],
)
def test_mistakes_point_at_their_place(text, message, column):
    with pytest.raises(OntologyError, match=message) as error:
        Derived.parse("x", text)
    *_, line, caret = str(error.value).split("\n")
    assert line == f"  {text}"
    assert caret == "  " + " " * column + "^"


def test_place_is_found_in_the_right_line():
    with pytest.raises(OntologyError) as error:
        Derived.parse("x", "year(now)\n  - yaer(now)")
    assert str(error.value).endswith("\n    - yaer(now)\n      ^")


def test_known_kinds_are_held_against_the_expression():
    with pytest.raises(OntologyError, match=r"this is a number; if it is a year, write year\(now\)"):
        Derived.parse("x", "now - graduated", kinds={"graduated": Kind.NUMBER}.get)
    with pytest.raises(OntologyError, match="`spot` is a place"):
        Derived.parse("x", "spot + 1", kinds={"spot": Kind.PLACE}.get)
    with pytest.raises(OntologyError, match="takes a time here, and this is a number"):
        Derived.parse("x", "a * 2 + year(a)")


def test_long_expressions_are_refused():
    with pytest.raises(OntologyError, match="at most 2,000"):
        Derived.parse("x", "1 + " * 1000 + "1")


def test_derived_pickles():
    derived = Derived.parse("x", "coalesce(a, 1) + year(now)")
    assert pickle.loads(pickle.dumps(derived)) == derived
    assert pickle.loads(pickle.dumps(derived)).value({}.get, NOW) == 2025
