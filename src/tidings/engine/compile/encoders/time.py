"""Times: whole microseconds since 1970; ages: seconds before now, computed once for a batch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import EncodedPredicate
from tidings.engine.compile.encoders.number import to_spans
from tidings.model import Age, Kind

if TYPE_CHECKING:
    from tidings.model import Condition

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Microseconds are counted from here."""


def encode_time(attribute: str, condition: Condition) -> EncodedPredicate | None:
    """Return the intervals of a condition on times, or of an age."""
    if isinstance(condition, Age):
        return EncodedPredicate(Column(attribute, View.AGE, kind=Kind.TIME), to_spans(condition.seconds), Kind.TIME)
    whole = tuple((to_microseconds(low), to_microseconds(high), flags) for low, high, flags in to_spans(condition))
    return EncodedPredicate(Column(attribute, View.NUMBER, kind=Kind.TIME), whole, Kind.TIME)


def to_microseconds(moment: datetime) -> int:
    """Return a time as whole microseconds since 1970."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def to_datetime(value: int) -> datetime:
    """Return the time of so many microseconds since 1970."""
    return EPOCH + timedelta(microseconds=value)
