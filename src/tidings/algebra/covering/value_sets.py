r"""Conditions as sets of ordered values, and such sets as conditions again.

Numbers, times, truth, text (equality, ranges, prefixes), addresses and named places have an order of their
own; conditions without one (substrings, expressions, areas, unresolved units) have no value set. Cuts are tuples:
`(value, 0)` before a number and `(value, 1)` after it; for text only `(0, text)`, before it, since after
`s` is before `s + "\0"`, the next text there is; for addresses `(4 | 6, integer)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidings.algebra.covering.globs import to_glob
from tidings.algebra.covering.spans import Cut, Spans, intersect, unite
from tidings.model import Age, In, InNetworks, Is, Kind, Point, Quantity, Range, TextTest, one_of
from tidings.model.values import to_datetime, to_microseconds

if TYPE_CHECKING:
    from tidings.model import Condition, Scalar

PER_SECOND = 10**6

EXACT_AGE_S = 2**33
"""Ages are floats of seconds: below 272 years, no two microseconds share one."""

MAPPED = (0xFFFF << 32, 0x10000 << 32)
"""IPv4-mapped IPv6 addresses: those of events are read as IPv4, so no value lies here."""


class Space(StrEnum):
    """The order that a set of values belongs to."""

    NUMBER = "number"
    TIME = "time"
    AGE = "age"
    TRUTH = "truth"
    TEXT = "text"
    PLACE = "place"
    ADDRESS = "address"


_WHOLE_LINE: Spans = (((-math.inf, 0), (math.inf, 0)),)

EVERYTHING: dict[Space, Spans] = {
    Space.NUMBER: _WHOLE_LINE,
    Space.TIME: _WHOLE_LINE,
    Space.AGE: _WHOLE_LINE,
    Space.TRUTH: (((False, 0), (False, 1)), ((True, 0), (True, 1))),
    Space.TEXT: (((0, ""), (1, "")),),
    Space.PLACE: (((-math.inf, 0, 0), (math.inf, 0, 0)),),
    Space.ADDRESS: (((4, 0), (4, 2**32)), ((6, 0), (6, MAPPED[0])), ((6, MAPPED[1]), (6, 2**128))),
}
"""All values of each space."""

_SPACES = {
    Kind.NUMBER: Space.NUMBER,
    Kind.TIME: Space.TIME,
    Kind.BOOL: Space.TRUTH,
    Kind.TEXT: Space.TEXT,
    Kind.PLACE: Space.PLACE,
}


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A condition as the set of values of one space that satisfy it."""

    space: Space
    spans: Spans


def to_value_set(condition: Condition, now: datetime | None = None) -> ValueSet | None:
    """Return the values that satisfy a condition, or `None` if they have no order."""
    match condition:
        case Is(value=Quantity()) | Range(low=Quantity()) | Range(high=Quantity()):
            return None
        case Is(value, kind=kind):
            return ValueSet(_SPACES[kind], (_to_point_span(value),))
        case In(values, kind=kind):
            if any(isinstance(value, Quantity) for value in values):
                return None
            return ValueSet(_SPACES[kind], unite((_to_point_span(value),) for value in values))
        case Range(kind=Kind() as kind):
            return ValueSet(_SPACES[kind], _to_range_spans(condition))
        case Age(seconds):
            return _to_age_set(seconds, now)
        case TextTest():
            return _to_text_set(condition)
        case InNetworks(networks):
            blocks = [(((n.version, int(n[0])), (n.version, int(n[-1]) + 1)),) for n in networks]
            return ValueSet(Space.ADDRESS, intersect(unite(blocks), EVERYTHING[Space.ADDRESS]))
    return None


def to_conditions(space: Space, spans: Spans) -> list[Range | Is | In]:
    """Return conditions that together accept exactly these values: at most one set, and ranges."""
    values: list[Scalar] = []
    ranges: list[Range | Is | In] = []
    for low, high in spans:
        value = _read_cut(low, space)
        if value is not None and (low, high) == _to_point_span(value):
            values.append(value)
        elif space is Space.TEXT:
            ranges.append(_to_text_range(low, high))
        else:
            ends = _read_cut(low, space), _read_cut(high, space)
            ranges.append(Range(*ends, low_open=low[1] == 1, high_open=high[1] == 0))
    return [one_of(values), *ranges] if values else ranges


def find_sole_value(space: Space, low: Cut, high: Cut) -> Any:
    """Return the only value between two cuts of text or places, or `None` if there are more."""
    if space is Space.TEXT and high == (0, low[1] + "\0"):
        return low[1]
    if space is Space.PLACE and low[:2] == high[:2]:
        return Point(low[0], low[1])
    return None


def find_shared_prefix(low: Cut, high: Cut) -> str:
    """Return the longest prefix that all texts between two cuts share."""
    prefix: str = low[1]
    while prefix and to_prefix_span(prefix)[1] < high:
        prefix = prefix[:-1]
    return prefix


def to_prefix_span(prefix: str) -> tuple[Cut, Cut]:
    """Return the cuts around all texts with a prefix; the high one is before the next prefix of the same length."""
    last = prefix.rstrip(chr(0x10FFFF))
    if not last:
        return (0, prefix), (1, "")
    following = ord(last[-1]) + 1
    return (0, prefix), (0, last[:-1] + chr(0xE000 if following == 0xD800 else following))


def cut_before(value: Any) -> Cut:
    """Return the cut before a value."""
    match value:
        case str():
            return (0, value)
        case datetime():
            return (to_microseconds(value), 0)
        case Point(lon, lat):
            return (lon, lat, 0)
    return (value, 0)


def cut_after(value: Any) -> Cut:
    """Return the cut after a value."""
    return (0, value + "\0") if isinstance(value, str) else (*cut_before(value)[:-1], 1)


def _to_point_span(value: Any) -> tuple[Cut, Cut]:
    return cut_before(value), cut_after(value)


def _to_range_spans(span: Range) -> Spans:
    (bottom, _), (_, top) = (EVERYTHING[_SPACES[span.kind or Kind.NUMBER]][index] for index in (0, -1))
    low = bottom if span.low is None else (cut_after if span.low_open else cut_before)(span.low)
    high = top if span.high is None else (cut_before if span.high_open else cut_after)(span.high)
    return ((low, high),) if low < high else ()


def _to_text_set(test: TextTest) -> ValueSet | None:
    glob = to_glob(test)
    if glob is None or glob.ignores_case or glob.split_at_stars is None:
        return None
    free_start, text, free_end = glob.split_at_stars
    if free_start and text:  # without text it is `*` alone, the prefix of every text
        return None
    return ValueSet(Space.TEXT, (to_prefix_span(text) if free_end else _to_point_span(text),))


def _to_age_set(seconds: Range, now: datetime | None) -> ValueSet | None:
    """Return an age condition as a set of ages or, if `now` is given, of times."""
    ends: list[Any] = [seconds.high, seconds.low]
    if any(end is not None and abs(end) >= EXACT_AGE_S for end in ends):
        return None
    if now is None:
        return ValueSet(Space.AGE, _to_range_spans(seconds))
    low, high = (None if end is None else _to_ticks(end, now) for end in ends)
    bottom, top = _WHOLE_LINE[0]
    start = bottom if low is None else (low, int(seconds.high_open))
    end = top if high is None else (high, int(not seconds.low_open))
    return ValueSet(Space.TIME, ((start, end),) if start < end else ())


def _to_ticks(seconds: int | float, now: datetime) -> int | Fraction:
    """Return the microsecond whose age is exactly this float, else the fraction between two microseconds."""
    ticks = round(Fraction(seconds) * PER_SECOND)
    since = to_microseconds(now)
    return since - ticks if ticks / PER_SECOND == seconds else since - Fraction(seconds) * PER_SECOND


def _read_cut(cut: Cut, space: Space) -> Any:
    if space is Space.TEXT:
        return cut[1]
    if isinstance(cut[0], float) and math.isinf(cut[0]):
        return None
    match space:
        case Space.TIME:
            return to_datetime(cut[0])
        case Space.PLACE:
            return Point(cut[0], cut[1])
    return cut[0]


def _to_text_range(low: Cut, high: Cut) -> Range:
    r"""Convert text cuts to a range, writing the cut before `s + "\0"` as an open end after `s`."""
    start, low_open = (low[1][:-1], True) if low[1].endswith("\0") else (low[1] or None, False)
    if high == (1, ""):
        return Range(start or "", None, low_open=low_open)  # `a >= ''` accepts all texts, and a range needs an end
    end, high_open = (high[1][:-1], False) if high[1].endswith("\0") else (high[1], True)
    return Range(start, end, low_open=low_open, high_open=high_open)
