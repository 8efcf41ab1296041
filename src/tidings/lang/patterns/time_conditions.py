"""Time conditions in text notation: `t(b) - t(a) < 5 min`, `2 s < t(b) - t(a) <= 5 min`, `|t(a) - t(b)| < 1 h`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.errors import PatternError
from tidings.lang.filters.render_text import render_name
from tidings.lang.patterns.durations import format_duration, read_duration
from tidings.lang.patterns.tokens import PatternReadError, TokenKind
from tidings.lang.source_map import SourceSpan
from tidings.model import Comparison
from tidings.model.patterns import Elapsed, Moment, Which

if TYPE_CHECKING:
    from tidings.lang.patterns.tokens import TokenCursor
    from tidings.lang.source_map import SourceMap

_OPERATORS = ("<", "<=", ">", ">=")


def _add_bound(bounds: dict[str, Any], op: str, duration: int, span: SourceSpan) -> None:
    """Add the bound of `difference op duration` to the fields of a condition."""
    end, word = ("high", "upper") if op[0] == "<" else ("low", "lower")
    if end in bounds:
        raise PatternReadError(span, f"this condition has two {word} ends; turn one of its signs around")
    bounds |= {end: duration, f"{end}_open": len(op) == 1}


def read_conditions(cursor: TokenCursor, source_map: SourceMap) -> tuple[Elapsed, ...]:
    """Take one condition from the cursor, or several in parentheses joined by `and`."""
    if not cursor.take_if("("):
        return (_read_condition(cursor, source_map),)
    conditions = read_conditions(cursor, source_map)
    while not cursor.take_if(")"):
        if cursor.peek().is_one_of("or", "not"):
            msg = "time conditions are joined by `and` only"
            raise PatternReadError(cursor.peek().span, msg)
        cursor.expect("`and` or `)`", "and")
        conditions += read_conditions(cursor, source_map)
    return conditions


def _read_condition(cursor: TokenCursor, source_map: SourceMap) -> Elapsed:
    start = cursor.peek().start
    bounds: dict[str, Any] = {}
    if cursor.peek().kind is TokenKind.NUMBER or cursor.peek().is_one_of("-"):
        duration, span = read_duration(cursor)
        op = cursor.expect("`<`, `<=`, `>` or `>=`", *_OPERATORS).text
        _add_bound(bounds, Comparison(op).mirror, duration, span)
    absolute = cursor.take_if("|") is not None
    late, first = _read_moment(cursor)
    cursor.expect("`-` and another moment: `t(b) - t(a)`", "-")
    early, second = _read_moment(cursor)
    if absolute:
        cursor.expect("`|`", "|")
    if not bounds or cursor.peek().is_one_of(*_OPERATORS):
        op = cursor.expect("`<`, `<=`, `>` or `>=`", *_OPERATORS).text
        duration, span = read_duration(cursor)
        _add_bound(bounds, op, duration, span)
    whole = SourceSpan(start, cursor.tokens[cursor.index - 1].end)
    try:
        condition = Elapsed(late, early, absolute=absolute, **bounds)
    except PatternError as problem:
        raise PatternReadError(whole, str(problem)) from None
    if is_unsatisfiable(condition):
        raise PatternReadError(whole, NEVER)
    source_map.record(condition, whole, first, second)
    return condition


def _read_moment(cursor: TokenCursor) -> tuple[Moment, SourceSpan]:
    if not (cursor.peek().text == "t" and cursor.peek(1).is_one_of("(")):
        raise cursor.make_error(wanted="a moment such as `t(a)`")
    cursor.take()
    cursor.take()
    which = Which.LAST
    if cursor.peek().is_one_of("first", "last") and not cursor.peek(1).is_one_of(")"):
        which = Which(cursor.take().text.lower())
    label, span = cursor.take_name("a step's label")
    cursor.expect("`)`", ")")
    return Moment(label, which), span


NEVER = "this condition never holds: its ends leave no time between them"
"""The message for `5 s < t(b) - t(a) < 2 s`."""


def is_unsatisfiable(condition: Elapsed) -> bool:
    """Tell whether no difference satisfies both bounds; an absolute difference is never negative."""
    low, low_open = condition.low, condition.low_open
    if condition.absolute and (low is None or low < 0):
        low, low_open = 0, False
    if low is None or condition.high is None:
        return False
    return condition.high < low or (condition.high == low and (low_open or condition.high_open))


# Writing ------------------------------------------------------------------------------------------


def render_condition(condition: Elapsed) -> str:
    """Return a condition in text notation."""
    difference = f"{_render_moment(condition.late)} - {_render_moment(condition.early)}"
    text = f"|{difference}|" if condition.absolute else difference
    if condition.low is not None and condition.high is not None:
        low = "<" if condition.low_open else "<="
        text = f"{format_duration(condition.low)} {low} {text}"
    elif condition.low is not None:
        return f"{text} {'>' if condition.low_open else '>='} {format_duration(condition.low)}"
    assert condition.high is not None
    return f"{text} {'<' if condition.high_open else '<='} {format_duration(condition.high)}"


def _render_moment(moment: Moment) -> str:
    return f"t({'first ' if moment.which is Which.FIRST else ''}{render_label(moment.label)})"


def render_label(name: str) -> str:
    """Return a name of a filter or a label, in backticks when it needs them."""
    return f"`{name}`" if name.lower() in ("for", "pattern") else render_name(name)
