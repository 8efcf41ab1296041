"""Spans of time between text and whole microseconds: `5 min`, `1 h 30 min`, `-250 ms`.

Amounts are reckoned as fractions, so `0.1 s` is exactly 100,000 microseconds; what is finer than a microsecond
is refused, never rounded.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tidings.lang.patterns.source_positions import Place
from tidings.lang.patterns.tokens import Cursor, Sort, Stop, expression_tokens

_SECOND = 1_000_000
_SHOWN = {"day": 86_400 * _SECOND, "h": 3_600 * _SECOND, "min": 60 * _SECOND, "s": _SECOND, "ms": 1_000, "us": 1}
_SIZES = {
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), _SECOND),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60 * _SECOND),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600 * _SECOND),
    **dict.fromkeys(("d", "day", "days"), 86_400 * _SECOND),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400 * _SECOND),
}
_PLAIN = re.compile(r"\d{1,18}(\.\d{1,18})?")

LIMIT = 10_000 * 366 * 86_400 * _SECOND
"""The longest span in microseconds, about ten thousand years: no two times lie further apart."""


def read_duration(cursor: Cursor) -> tuple[int, Place]:
    """Take a duration: amounts with their units, perhaps with a sign before them."""
    start = cursor.peek().start
    sign = -1 if cursor.takes("-") else 1
    if cursor.peek().sort is not Sort.NUMBER:
        raise cursor.stop(wanted="a duration such as `5 min`")
    total, end = Fraction(0), start
    while cursor.peek().sort is Sort.NUMBER:
        amount, end = _amount(cursor)
        total += amount
    return _whole(sign * total, Place(start, end)), Place(start, end)


def _amount(cursor: Cursor) -> tuple[Fraction, int]:
    number, unit = cursor.take(), cursor.peek()
    if not _PLAIN.fullmatch(number.text):
        msg = f"`{number.text[:30]}` is not an amount of time; write it as `1500 ms` or `1.5 s`"
        raise Stop(number.place, msg)
    if unit.sort is not Sort.WORD or unit.says("and", "or", "within", "for"):
        msg = f"a duration has its unit: `{number.text} s`"
        raise Stop(number.place, msg)
    size = _SIZES.get(unit.text) or _SIZES.get(unit.text.lower())
    if size is None:
        msg = f"`{unit.text}` is not a unit of time; use one of us, ms, s, min, h, days, weeks"
        raise Stop(unit.place, msg)
    return Fraction(number.text) * size, cursor.take().end


def _whole(span: Fraction, place: Place) -> int:
    if span.denominator != 1:
        msg = "times are exact to the microsecond, and this is finer"
        raise Stop(place, msg)
    if abs(span) > LIMIT:
        msg = "a duration is at most ten thousand years"
        raise Stop(place, msg)
    return int(span)


def duration_of(text: str) -> int:
    """Return the microseconds of a duration's text; `Stop` says what is wrong with it."""
    cursor = Cursor(expression_tokens(text), len(text))
    span, _ = read_duration(cursor)
    if cursor.peek().sort is not Sort.END:
        raise cursor.stop(wanted="the end of the duration")
    return span


def shown_duration(span: int) -> str:
    """Return a span in the largest unit that divides it.

    >>> shown_duration(300_000_000), shown_duration(-1_500_000), shown_duration(172_800_000_000)
    ('5 min', '-1500 ms', '2 days')
    """
    unit = next((name for name, size in _SHOWN.items() if span and span % size == 0), "s")
    count = abs(span) // _SHOWN[unit]
    plural = "s" if unit == "day" and count != 1 else ""
    return f"{'-' if span < 0 else ''}{count} {unit}{plural}"
