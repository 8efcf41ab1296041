"""Numbers: ranges with open, closed or no ends, equality and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.law.typed_attribute import typed, without_unit
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import HIGH_OPEN, LOW_OPEN, Encoded, interval, point
from tidings.model import In, Is, Kind, Range

if TYPE_CHECKING:
    from tidings.engine.compile.encoders.base import Span
    from tidings.model import Condition


def encoded(attribute: str, condition: Condition) -> Encoded | None:
    """Return the intervals of a condition on numbers."""
    unit = typed(attribute, condition).unit or None
    column = Column(attribute, View.NUMBER, kind=Kind.NUMBER, unit=unit)
    return Encoded(column, spans(without_unit(condition) if unit else condition), Kind.NUMBER)


def spans(condition: Condition) -> tuple[Span, ...]:
    """Return intervals of plain values: of a range, of one value, of a set."""
    match condition:
        case Range(low, high, low_open, high_open):
            return (interval(low, high, low_open * LOW_OPEN | high_open * HIGH_OPEN),)
        case Is(value):
            return (point(value),)
        case In(values):
            return tuple(map(point, values))
    raise TypeError(condition)
