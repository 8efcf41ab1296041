"""The values that attributes hold and filters name: numbers, text, truth values, times, places, ranges.

Values are of Python's own types (`int`, `float`, `str`, `bool`, `datetime`) where these exist, else of small frozen
classes. Invariants are checked here, once: no value is a NaN, an integer beyond 64 bits, a time without a zone or text
that cannot be encoded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, TypeAlias

from tidings.errors import BadValue

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
"""Integers are exact within 64 bits; beyond them they are refused, never rounded."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Microseconds are counted from here."""


class Kind(StrEnum):
    """The kind of an attribute's values."""

    NUMBER = "number"
    TEXT = "text"
    BOOL = "bool"
    TIME = "time"
    PLACE = "place"
    CONCEPT = "concept"
    IP = "ip"
    RECORD = "record"
    OPAQUE = "opaque"

    __hash__ = str.__hash__  # that of `Enum` is Python's, and this is in every key of an index

    @property
    def has_order(self) -> bool:
        """Whether one value comes before another."""
        return self in (Kind.NUMBER, Kind.TEXT, Kind.CONCEPT, Kind.TIME)


@dataclass(frozen=True, slots=True)
class Point:
    """A place, in degrees."""

    lon: float
    lat: float

    def __post_init__(self) -> None:
        if not (-180 <= self.lon <= 180 and -90 <= self.lat <= 90):
            msg = f"({self.lon}, {self.lat}) is not (longitude, latitude) within -180..180 and -90..90"
            raise BadValue(msg)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit, as it was written; the ontology converts it."""

    amount: int | float
    unit: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a value that Python cannot represent: a time in the year 12345, text that is not UTF-8."""

    reason: str


EventValue: TypeAlias = Any
"""A value as an event brings it: a scalar, a list, a nested mapping, or another library's own class.

Nothing is known of it until `algebra.law.coerce` reads it as the kind that some filter asks for.
"""

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Scalar: TypeAlias = int | float | str | bool | datetime | date | Point | Quantity
Ordered: TypeAlias = int | float | str | datetime | date | Quantity


@dataclass(frozen=True, slots=True)
class Range:
    """The values between two ends, each open or closed; `None` is no end.

    In a filter it is a condition; in an event it is a value that is itself a range.

    >>> Range(2000, 5000, high_open=True)
    Range(low=2000, high=5000, low_open=False, high_open=True)
    """

    low: Ordered | None = None
    high: Ordered | None = None
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            value = getattr(self, end)
            if value is None:
                object.__setattr__(self, f"{end}_open", False)
            else:
                object.__setattr__(self, end, check_value(value))
        kinds = {get_kind(end) for end in (self.low, self.high) if end is not None}
        if len(kinds) > 1 or not all(kind.has_order for kind in kinds):
            msg = f"the ends of a range are two numbers, two texts or two times, not {' and '.join(sorted(kinds))}"
            raise BadValue(msg)
        low, high = self.low, self.high
        if low is None or high is None or isinstance(low, Quantity) or isinstance(high, Quantity):
            return
        if low > high:  # type: ignore[operator]
            msg = "the low end of the range is above its high end"
            raise BadValue(msg)

    @property
    def kind(self) -> Kind | None:
        """The kind of the ends, or None when there is no end."""
        end = self.low if self.low is not None else self.high
        return None if end is None else get_kind(end)


KIND_BY_TYPE: dict[type, Kind] = {
    bool: Kind.BOOL,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.TEXT,
    datetime: Kind.TIME,
    Point: Kind.PLACE,
}
"""The kinds of values without a unit."""


def get_kind(value: Scalar) -> Kind:
    """Return the kind a literal has by itself."""
    kind = Kind.NUMBER if type(value) is Quantity else KIND_BY_TYPE.get(type(value))
    if kind is None:
        msg = f"a {type(value).__name__} is not a value of a filter"
        raise BadValue(msg)
    return kind


def check_value(value: Scalar) -> Scalar:
    """Return the value, in its one form, or raise `BadValue` with what is wrong with it."""
    match value:
        case bool() | Point():
            return value
        case int():
            return check_int(value)
        case float():
            return check_float(value)
        case str():
            return check_text(value)
        case datetime():
            return to_utc(value)
        case date():  # its midnight
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case Quantity(amount=amount):
            check_value(amount)
            return value
    get_kind(value)
    return value


def check_int(value: int) -> int:
    """Refuse an integer beyond 64 bits."""
    if not INT_MIN <= value <= INT_MAX:
        msg = f"{value} is beyond 64-bit integers"
        raise BadValue(msg)
    return value


def check_float(value: float) -> float:
    """Refuse NaN and the infinities."""
    if not math.isfinite(value):
        msg = f"{value} is not a finite number"
        raise BadValue(msg)
    return value


def check_text(value: str) -> str:
    """Refuse lone surrogates: they cannot be stored, sent or matched by RE2."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            msg = "the text holds half of a surrogate pair"
            raise BadValue(msg) from None
    return value


def to_utc(value: datetime) -> datetime:
    """Return the time in UTC; without a zone it is UTC already."""
    if type(value) is not datetime:  # a pandas Timestamp, say: keep what Python's own class can hold
        value = datetime.fromisoformat(value.isoformat(timespec="microseconds"))
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except (OverflowError, ValueError):
        msg = f"{value} is outside the years 1 to 9999"
        raise BadValue(msg) from None


def to_microseconds(moment: datetime) -> int:
    """Return a time as whole microseconds since 1970."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def to_datetime(value: int) -> datetime:
    """Return the time of so many microseconds since 1970."""
    return EPOCH + timedelta(microseconds=value)
