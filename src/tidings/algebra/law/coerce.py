"""One raw value of an event as a value of its attribute's kind, or a `ValueError` that says why not.

Nothing is guessed: only text is parsed, and only as the kind that is asked for.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any

from tidings.model.events import Unreadable
from tidings.model.values import (
    INT_MAX,
    INT_MIN,
    Kind,
    Point,
    Quantity,
    Range,
    check_value,
    checked_float,
    checked_int,
    check_text,
    utc,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.model.values import Address

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DIGITS = 19  # of the largest 64-bit integer


def coerce(raw: Any, kind: Kind | None) -> Any:
    """Return the value as the kind asks; of no kind, as it is by itself."""
    if isinstance(raw, Range):
        return _range(raw, kind)
    if isinstance(raw, Unreadable) and kind not in (None, Kind.OPAQUE):
        raise ValueError(raw.reason)
    if hasattr(raw, "dtype") and hasattr(raw, "item"):  # a NumPy scalar
        raw = raw.item()
    return _READERS[kind](raw)


UNSURE, UNFIT = object(), object()
"""What a `plain_reader` says of a value that takes a closer look, and of one that the kind surely cannot read."""

PLAIN = frozenset((int, float, str, bool))
"""The types of nearly all values of events; none of them is a list, a record or (but for NaN) a null."""


def plain_reader(kind: Kind | None) -> Callable[[Any], Any]:
    """Return what reads values of the `PLAIN` types as `coerce` does, at a glance: a value, `UNFIT` or `UNSURE`.

    No exception is raised and nothing is said: where kinds are mixed, most values are unfit for somebody.
    """
    return _PLAIN_READERS.get(kind, _unsure) if kind is not None else _unsure


def _plain_number(raw: Any) -> Any:
    given = type(raw)
    if given is int:
        return raw if INT_MIN <= raw <= INT_MAX else UNSURE
    if given is float:
        return raw if -_FINITE <= raw <= _FINITE else UNSURE
    return UNSURE if given is str and _NUMBER.fullmatch(raw.strip()) else UNFIT


def _plain_text(raw: Any) -> Any:
    if type(raw) is str:
        return raw if raw.isascii() else UNSURE
    return UNSURE if raw != raw else UNFIT  # noqa: PLR0124 - NaN is nothing


def _plain_truth(raw: Any) -> Any:
    if type(raw) is bool:
        return raw
    return UNSURE if type(raw) is str or raw != raw else UNFIT  # noqa: PLR0124 - NaN is nothing


def _plain_time(raw: Any) -> Any:
    return UNSURE if type(raw) is str or raw != raw else UNFIT  # noqa: PLR0124 - NaN is nothing


def _unsure(raw: Any) -> Any:  # noqa: ARG001 - one of a family
    return UNSURE


_PLAIN_READERS = {
    Kind.NUMBER: _plain_number,
    Kind.TEXT: _plain_text,
    Kind.CONCEPT: _plain_text,
    Kind.BOOL: _plain_truth,
    Kind.TIME: _plain_time,
}
_FINITE = sys.float_info.max


def number(raw: Any) -> int | float:
    """Read a number: an integer within 64 bits, a finite float, a decimal, or text that reads as one."""
    if isinstance(raw, bool):
        raise _unfit(raw, "a number")
    if isinstance(raw, int):
        return checked_int(raw)
    if isinstance(raw, float):
        return checked_float(raw)
    if isinstance(raw, Decimal):
        return _decimal(raw)
    if isinstance(raw, str) and _NUMBER.fullmatch(raw.strip()):
        return _number_text(raw.strip())
    raise _unfit(raw, "a number")


def _decimal(raw: Decimal) -> int | float:
    if raw.is_finite() and raw == raw.to_integral_value() and INT_MIN <= raw <= INT_MAX:
        return int(raw)
    return checked_float(float(raw))


def _number_text(text: str) -> int | float:
    digits = text.lstrip("+-")
    if not digits.isdigit():
        return checked_float(float(text))
    if len(digits.lstrip("0")) > _DIGITS:  # before int(), which takes its time with a megabyte of them
        msg = f"{text[:_DIGITS]}... is beyond 64-bit integers"
        raise ValueError(msg)
    return checked_int(int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1))


def text(raw: Any) -> str:
    """Read text."""
    if not isinstance(raw, str):
        raise _unfit(raw, "text")
    return check_text(raw)


def truth(raw: Any) -> bool:
    """Read a truth value, or the words true and false."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
        return raw.strip().lower() == "true"
    raise _unfit(raw, "true or false")


def moment(raw: Any) -> datetime:
    """Read a time, a date (its midnight), or ISO text of either; without a zone it is UTC."""
    if isinstance(raw, date):
        return check_value(raw)  # type: ignore[return-value]
    if isinstance(raw, str):
        try:
            return utc(datetime.fromisoformat(raw.strip()))
        except ValueError:
            pass
    raise _unfit(raw, "a time")


def place(raw: Any) -> Point:
    """Read (lon, lat), or a mapping with those names."""
    if isinstance(raw, Point):
        return raw
    if isinstance(raw, Mapping) and {"lon", "lat"} <= raw.keys():
        raw = [raw["lon"], raw["lat"]]
    if isinstance(raw, list | tuple) and len(raw) == 2:
        lon, lat = raw
        if not any(isinstance(part, str | bool) for part in raw):
            return Point(float(number(lon)), float(number(lat)))
    raise _unfit(raw, "a place (lon, lat)")


def address(raw: Any) -> Address:
    """Read an IP address; an IPv4 address inside IPv6 is that IPv4 address."""
    if isinstance(raw, str):
        try:
            raw = ip_address(raw.strip())
        except ValueError:
            raise _unfit(raw, "an IP address") from None
    if isinstance(raw, IPv6Address):
        return raw.ipv4_mapped or raw
    if isinstance(raw, IPv4Address):
        return raw
    raise _unfit(raw, "an IP address")


def natural(raw: Any) -> Any:
    """Keep a value of a known Python type in its one form; anything else only exists."""
    match raw:
        case bool() | Point():
            return raw
        case int() | float() | Decimal():
            return number(raw)
        case str():
            return check_text(raw)
        case date():
            return moment(raw)
    return raw


def _opaque(raw: Any) -> Any:
    return raw


def _range(raw: Range, kind: Kind | None) -> Range:
    if (
        raw.kind is Kind.TEXT
        or kind not in (None, Kind.NUMBER, Kind.TIME)
        or (raw.kind or kind) is not (kind or raw.kind)
    ):
        msg = f"a range of {raw.kind} is not {kind}; event ranges are of numbers or of times"
        raise ValueError(msg)
    if isinstance(raw.low, Quantity) or isinstance(raw.high, Quantity):
        msg = "the range has a unit, and no filter or ontology says in which unit the attribute is"
        raise ValueError(msg)
    if raw.low is not None and raw.low == raw.high and (raw.low_open or raw.high_open):
        msg = "the range is empty"
        raise ValueError(msg)
    return raw


def _unfit(raw: Any, wanted: str) -> ValueError:
    try:
        shown = repr(raw)
    except RecursionError:  # records in records, beyond what Python shows
        shown = f"a {type(raw).__name__}"
    return ValueError(f"{shown if len(shown) <= 60 else shown[:57] + '...'} is not {wanted}")


_READERS = {
    Kind.NUMBER: number,
    Kind.TEXT: text,
    Kind.CONCEPT: text,
    Kind.BOOL: truth,
    Kind.TIME: moment,
    Kind.PLACE: place,
    Kind.IP: address,
    Kind.OPAQUE: _opaque,
    None: natural,
}
