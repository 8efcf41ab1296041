"""Durations, from text to whole microseconds and back: `5 min`, `1 h 30 min`, `-250 ms`.

Amounts are computed as fractions, so `0.1 s` is exactly 100,000 microseconds; what is finer than a microsecond
is refused, never rounded.
"""

from __future__ import annotations

import re
from fractions import Fraction

from tidings.lang.filters.value_text import DURATIONS
from tidings.lang.patterns.tokens import PatternReadError, TokenCursor, TokenKind, tokenize_expression
from tidings.lang.source_map import SourceSpan

_SECOND = 1_000_000
_SHOWN = {"day": 86_400 * _SECOND, "h": 3_600 * _SECOND, "min": 60 * _SECOND, "s": _SECOND, "ms": 1_000, "us": 1}
_SIZES = {unit: round(seconds * _SECOND) for unit, seconds in DURATIONS.items()}
_SIZES |= dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1)
_PLAIN = re.compile(r"\d{1,18}(\.\d{1,18})?")

LIMIT = 10_000 * 366 * 86_400 * _SECOND
"""The longest duration in microseconds, about ten thousand years: no two times are further apart."""


def read_duration(cursor: TokenCursor) -> tuple[int, SourceSpan]:
    """Take a duration from the cursor: amounts with their units, perhaps after a sign; return it with its span."""
    start = cursor.peek().start
    sign = -1 if cursor.take_if("-") else 1
    if cursor.peek().kind is not TokenKind.NUMBER:
        raise cursor.make_error(wanted="a duration such as `5 min`")
    total, end = Fraction(0), start
    while cursor.peek().kind is TokenKind.NUMBER:
        amount, end = _read_amount(cursor)
        total += amount
    span = SourceSpan(start, end)
    if total.denominator != 1:
        raise PatternReadError(span, "times are exact to the microsecond, and this is finer")
    if total > LIMIT:
        raise PatternReadError(span, "a duration is at most ten thousand years")
    return sign * int(total), span


def _read_amount(cursor: TokenCursor) -> tuple[Fraction, int]:
    number, unit = cursor.take(), cursor.peek()
    if not _PLAIN.fullmatch(number.text):
        msg = f"`{number.text[:30]}` is not an amount of time; write it as `1500 ms` or `1.5 s`"
        raise PatternReadError(number.span, msg)
    if unit.kind is not TokenKind.WORD or unit.is_one_of("and", "or", "within", "for"):
        msg = f"a duration has its unit: `{number.text} s`"
        raise PatternReadError(number.span, msg)
    size = _SIZES.get(unit.text) or _SIZES.get(unit.text.lower())
    if size is None:
        msg = f"`{unit.text}` is not a unit of time; use one of us, ms, s, min, h, days, weeks"
        raise PatternReadError(unit.span, msg)
    return Fraction(number.text) * size, cursor.take().end


def parse_duration(text: str) -> int:
    """Return a duration's microseconds; any other text raises `PatternReadError`."""
    cursor = TokenCursor(tokenize_expression(text), len(text))
    duration, _ = read_duration(cursor)
    if cursor.peek().kind is not TokenKind.END:
        raise cursor.make_error(wanted="the end of the duration")
    return duration


def format_duration(duration: int) -> str:
    """Return a duration in the largest unit that divides it.

    >>> format_duration(300_000_000), format_duration(-1_500_000), format_duration(172_800_000_000)
    ('5 min', '-1500 ms', '2 days')
    """
    unit = next((name for name, size in _SHOWN.items() if duration and duration % size == 0), "s")
    count = abs(duration) // _SHOWN[unit]
    plural = "s" if unit == "day" and count != 1 else ""
    return f"{'-' if duration < 0 else ''}{count} {unit}{plural}"
