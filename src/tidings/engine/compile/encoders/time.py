"""Times: microseconds since 1970, exact; ages: seconds before now, reckoned once for a batch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import Encoded
from tidings.engine.compile.encoders.number import spans
from tidings.model import Age, Kind

if TYPE_CHECKING:
    from tidings.model import Condition

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""What microseconds are counted from."""

MICROSECOND = timedelta(microseconds=1)


def encoded(attribute: str, condition: Condition) -> Encoded | None:
    """Return the intervals of a condition on times, or of an age."""
    if isinstance(condition, Age):
        return Encoded(Column(attribute, View.AGE, kind=Kind.TIME), spans(condition.seconds), Kind.TIME)
    whole = tuple((microseconds(low), microseconds(high), flags) for low, high, flags in spans(condition))
    return Encoded(Column(attribute, View.NUMBER, kind=Kind.TIME), whole, Kind.TIME)


def microseconds(moment: datetime) -> int:
    """Return a time as whole microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def moment(value: int) -> datetime:
    """Return the time of so many microseconds since 1970."""
    return EPOCH + timedelta(microseconds=value)
