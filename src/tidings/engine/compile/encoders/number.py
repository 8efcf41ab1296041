"""Numbers: ranges with open, closed or no ends, equality and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.law.typed_attribute import resolve_attribute, strip_unit
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import HIGH_OPEN, LOW_OPEN, EncodedPredicate, make_interval, make_point
from tidings.model import In, Is, Kind, Range

if TYPE_CHECKING:
    from tidings.engine.compile.encoders.base import Span
    from tidings.model import Condition


def encode_number(attribute: str, condition: Condition) -> EncodedPredicate | None:
    """Return the intervals of a condition on numbers."""
    unit = resolve_attribute(attribute, condition).unit or None
    column = Column(attribute, View.NUMBER, kind=Kind.NUMBER, unit=unit)
    return EncodedPredicate(column, to_spans(strip_unit(condition) if unit else condition), Kind.NUMBER)


def to_spans(condition: Condition) -> tuple[Span, ...]:
    """Return intervals of plain values: of a range, of one value, of a set."""
    match condition:
        case Range(low, high, low_open, high_open):
            return (make_interval(low, high, low_open * LOW_OPEN | high_open * HIGH_OPEN),)
        case Is(value):
            return (make_point(value),)
        case In(values):
            return tuple(map(make_point, values))
    raise TypeError(condition)
