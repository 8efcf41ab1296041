"""Time conditions in text: `t(b) - t(a) < 5 min`, `2 s < t(b) - t(a) <= 5 min`, `|t(a) - t(b)| < 1 h`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidings.errors import PatternError
from tidings.lang.filters.render_text import shown_name
from tidings.lang.patterns.durations import read_duration, shown_duration
from tidings.lang.patterns.source_positions import Place
from tidings.lang.patterns.tokens import Sort, Stop
from tidings.model.patterns import Elapsed, Moment, Which

if TYPE_CHECKING:
    from tidings.lang.patterns.source_positions import Places
    from tidings.lang.patterns.tokens import Cursor

_OPERATORS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class _Ends:
    """The bounds of a difference as they are gathered from both of its sides."""

    low: int | None = None
    high: int | None = None
    low_open: bool = False
    high_open: bool = False

    def bounded(self, op: str, span: int, place: Place) -> _Ends:
        """Return these ends with one more: the difference stands on the left of `op`."""
        below, opened = op[0] == "<", len(op) == 1
        if (self.high if below else self.low) is not None:
            msg = f"this condition has two {'upper' if below else 'lower'} ends; turn one of its signs around"
            raise Stop(place, msg)
        if below:
            return replace(self, high=span, high_open=opened)
        return replace(self, low=span, low_open=opened)


def read_conditions(cursor: Cursor, places: Places) -> tuple[Elapsed, ...]:
    """Take one condition, or several in parentheses joined by `and`."""
    if not cursor.takes("("):
        return (_condition(cursor, places),)
    found = read_conditions(cursor, places)
    while not cursor.takes(")"):
        if cursor.peek().says("or", "not"):
            msg = "time conditions are joined by `and` only"
            raise Stop(cursor.peek().place, msg)
        cursor.need("`and` or `)`", "and")
        found += read_conditions(cursor, places)
    return found


def _condition(cursor: Cursor, places: Places) -> Elapsed:
    start, ends = cursor.peek().start, _Ends()
    if cursor.peek().sort is Sort.NUMBER or cursor.peek().says("-"):
        span, place = read_duration(cursor)
        op = cursor.need("`<`, `<=`, `>` or `>=`", *_OPERATORS).text
        ends = ends.bounded(_turned(op), span, place)
    absolute = cursor.takes("|") is not None
    late, first = _moment(cursor)
    cursor.need("`-` and another moment: `t(b) - t(a)`", "-")
    early, second = _moment(cursor)
    if absolute:
        cursor.need("`|`", "|")
    if ends == _Ends() or cursor.peek().says(*_OPERATORS):
        op = cursor.need("`<`, `<=`, `>` or `>=`", *_OPERATORS).text
        span, place = read_duration(cursor)
        ends = ends.bounded(op, span, place)
    whole = Place(start, cursor.tokens[cursor.at - 1].end)
    made = _elapsed(late, early, ends, absolute=absolute, place=whole)
    places.note(made, whole, first, second)
    return made


def _turned(op: str) -> str:
    return {"<": ">", ">": "<"}[op[0]] + op[1:]


def _moment(cursor: Cursor) -> tuple[Moment, Place]:
    if not (cursor.peek().text == "t" and cursor.peek(1).says("(")):
        raise cursor.stop(wanted="a moment such as `t(a)`")
    cursor.take()
    cursor.take()
    which = Which.LAST
    if cursor.peek().says("first", "last") and not cursor.peek(1).says(")"):
        which = Which(cursor.take().text.lower())
    label, place = cursor.name("a step's label")
    cursor.need("`)`", ")")
    return Moment(label, which), place


def _elapsed(late: Moment, early: Moment, ends: _Ends, *, absolute: bool, place: Place) -> Elapsed:
    try:
        made = Elapsed(late, early, ends.low, ends.high, ends.low_open, ends.high_open, absolute)
    except PatternError as problem:
        raise Stop(place, str(problem)) from None
    if never_holds(made):
        raise Stop(place, NEVER)
    return made


NEVER = "this condition never holds: its ends leave no time between them"
"""What is wrong with `5 s < t(b) - t(a) < 2 s`."""


def never_holds(condition: Elapsed) -> bool:
    """Tell whether no difference lies between the ends; one without its sign is never below zero."""
    low, low_open = condition.low, condition.low_open
    if condition.absolute and (low is None or low < 0):
        low, low_open = 0, False
    if low is None or condition.high is None:
        return False
    return condition.high < low or (condition.high == low and (low_open or condition.high_open))


# Writing ------------------------------------------------------------------------------------------


def shown_condition(condition: Elapsed) -> str:
    """Return a condition in text notation."""
    apart = f"{_shown_moment(condition.late)} - {_shown_moment(condition.early)}"
    shown = f"|{apart}|" if condition.absolute else apart
    if condition.low is not None and condition.high is not None:
        low = "<" if condition.low_open else "<="
        shown = f"{shown_duration(condition.low)} {low} {shown}"
    elif condition.low is not None:
        return f"{shown} {'>' if condition.low_open else '>='} {shown_duration(condition.low)}"
    assert condition.high is not None
    return f"{shown} {'<' if condition.high_open else '<='} {shown_duration(condition.high)}"


def _shown_moment(moment: Moment) -> str:
    return f"t({'first ' if moment.which is Which.FIRST else ''}{shown_label(moment.label)})"


def shown_label(name: str) -> str:
    """Return a name of a filter or a label, in backticks when it needs them."""
    return f"`{name}`" if name.lower() in ("for", "pattern") else shown_name(name)
