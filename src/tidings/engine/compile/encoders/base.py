"""What an encoder gives: the column a predicate looks at, and intervals of that column's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from tidings.engine.compile.columns import Column, View
from tidings.model import Kind

LOW_OPEN, HIGH_OPEN, NO_LOW, NO_HIGH = 1, 2, 4, 8
"""What is said of an interval's ends."""

Span: TypeAlias = tuple[Any, Any, int]
"""Low end, high end (numbers or bytes, whatever the column holds; anything where there is no end), and flags."""


@dataclass(frozen=True, slots=True)
class EncodedPredicate:
    """A predicate as intervals of one column; several intervals are disjoint."""

    column: Column
    spans: tuple[Span, ...]
    kind: Kind


def make_point(value: Any) -> Span:
    """Return the interval of one value."""
    return value, value, 0


def make_interval(low: Any, high: Any, flags: int) -> Span:
    """Return an interval whose missing ends are marked."""
    if low is None:
        flags |= NO_LOW
        low = high
    elif high is None:
        flags |= NO_HIGH
        high = low
    return low, high, flags


EVERYTHING = NO_LOW | NO_HIGH
"""An interval without ends: any value that is there."""


def present(attribute: str, view: View, kind: Kind, *, low: Any) -> EncodedPredicate:
    """Return the interval that any value satisfies; `low` is some value, which the ends of the column will hold."""
    return EncodedPredicate(Column(attribute, view), ((low, low, EVERYTHING),), kind)
