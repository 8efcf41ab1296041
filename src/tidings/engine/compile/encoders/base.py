"""What encoders return: the column that a predicate tests, and the intervals of values that it accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from tidings.engine.compile.columns import Column
from tidings.model import Kind

LOW_OPEN, HIGH_OPEN, NO_LOW, NO_HIGH = 1, 2, 4, 8
"""Flags of an interval's ends."""

Span: TypeAlias = tuple[Any, Any, int]
"""Low end and high end (numbers or bytes, like the column's values; any value for a missing end), and flags."""


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
    """Return an interval; an end that is None is missing, and flagged so."""
    if low is None:
        flags |= NO_LOW
        low = high
    elif high is None:
        flags |= NO_HIGH
        high = low
    return low, high, flags


EVERYTHING = NO_LOW | NO_HIGH
"""The flags of an interval without ends: it accepts any value."""
