"""Convert one raw value of an event to an attribute kind, or raise a `ValueError` that says why not.

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

from tidings.model import values
from tidings.model.values import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable


_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DIGITS = 19  # of the largest 64-bit integer


def coerce(raw: Any, kind: values.Kind | None) -> Any:
    """Return the value converted to a kind; without a kind, normalized by its own Python type."""
    if isinstance(raw, values.Range):
        return _check_range(raw, kind)
    if isinstance(raw, Unreadable) and kind not in (None, values.Kind.OPAQUE):
        raise ValueError(raw.reason)
    if hasattr(raw, "dtype") and hasattr(raw, "item"):  # a NumPy scalar
        raw = raw.item()
    return raw if kind is values.Kind.OPAQUE else _READERS[kind](raw)


UNSURE, UNFIT = object(), object()
"""Results of a plain reader: the value needs `coerce` to decide; the kind certainly cannot read the value."""

PLAIN = frozenset((int, float, str, bool))
"""The Python types of nearly all event values; none of them is a list, a record or (except NaN) a null."""


def select_plain_reader(kind: values.Kind | None) -> Callable[[Any], Any]:
    """Return a fast reader for values of the `PLAIN` types: it returns the value, `UNFIT` or `UNSURE`.

    It agrees with `coerce` and never raises: where filters ask for different kinds, most values are unfit for one of
    them, and an exception costs more than everything else here.
    """
    return _PLAIN_READERS.get(kind, lambda _: UNSURE)


def _read_plain_number(raw: Any) -> Any:
    type_of_raw = type(raw)
    if type_of_raw is int:
        return raw if values.INT_MIN <= raw <= values.INT_MAX else UNSURE
    if type_of_raw is float:
        return raw if -_LARGEST_FLOAT <= raw <= _LARGEST_FLOAT else UNSURE
    return UNSURE if type_of_raw is str and _NUMBER.fullmatch(raw.strip()) else UNFIT


def _read_plain_text(raw: Any) -> Any:
    if type(raw) is str:
        return raw if raw.isascii() else UNSURE
    return UNSURE if raw != raw else UNFIT  # noqa: PLR0124 - NaN is nothing


def _read_plain_time(raw: Any) -> Any:
    return UNSURE if type(raw) is str or raw != raw else UNFIT  # noqa: PLR0124 - NaN is nothing


def _read_plain_truth(raw: Any) -> Any:
    return raw if type(raw) is bool else _read_plain_time(raw)


_PLAIN_READERS: dict[values.Kind | None, Callable[[Any], Any]] = {
    values.Kind.NUMBER: _read_plain_number,
    values.Kind.TEXT: _read_plain_text,
    values.Kind.CONCEPT: _read_plain_text,
    values.Kind.BOOL: _read_plain_truth,
    values.Kind.TIME: _read_plain_time,
}
_LARGEST_FLOAT = sys.float_info.max


def to_number(raw: Any) -> int | float:
    """Read a number: an integer within 64 bits, a finite float, a decimal, or text that reads as one."""
    if isinstance(raw, bool):
        raise _make_error(raw, "a number")
    if isinstance(raw, int):
        return values.check_int(raw)
    if isinstance(raw, float):
        return values.check_float(raw)
    if isinstance(raw, Decimal):
        whole = raw.is_finite() and raw == raw.to_integral_value() and values.INT_MIN <= raw <= values.INT_MAX
        return int(raw) if whole else values.check_float(float(raw))
    if isinstance(raw, str) and _NUMBER.fullmatch(raw.strip()):
        return _parse_number(raw.strip())
    raise _make_error(raw, "a number")


def _parse_number(text: str) -> int | float:
    digits = text.lstrip("+-")
    if not digits.isdigit():
        return values.check_float(float(text))
    if len(digits.lstrip("0")) > _DIGITS:  # before int(), which is quadratic in the number of digits
        msg = f"{text[:_DIGITS]}... is beyond 64-bit integers"
        raise ValueError(msg)
    return values.check_int(int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1))


def to_text(raw: Any) -> str:
    """Read text."""
    if not isinstance(raw, str):
        raise _make_error(raw, "text")
    return values.check_text(raw)


def to_truth(raw: Any) -> bool:
    """Read a truth value, or the words true and false."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
        return raw.strip().lower() == "true"
    raise _make_error(raw, "true or false")


def to_time(raw: Any) -> datetime:
    """Read a time, a date (its midnight), or ISO text of either; without a zone it is UTC."""
    if isinstance(raw, date):
        return values.check_value(raw)  # type: ignore[return-value]
    if isinstance(raw, str):
        try:
            return values.to_utc(datetime.fromisoformat(raw.strip()))
        except ValueError:
            pass
    raise _make_error(raw, "a time")


def to_place(raw: Any) -> values.Point:
    """Read (lon, lat), or a mapping with those names."""
    if isinstance(raw, values.Point):
        return raw
    if isinstance(raw, Mapping) and {"lon", "lat"} <= raw.keys():
        raw = [raw["lon"], raw["lat"]]
    if isinstance(raw, list | tuple) and len(raw) == 2:
        lon, lat = raw
        if not any(isinstance(part, str | bool) for part in raw):
            return values.Point(float(to_number(lon)), float(to_number(lat)))
    raise _make_error(raw, "a place (lon, lat)")


def to_address(raw: Any) -> values.Address:
    """Read an IP address; an IPv4 address inside IPv6 is that IPv4 address."""
    if isinstance(raw, str):
        try:
            raw = ip_address(raw.strip())
        except ValueError:
            raise _make_error(raw, "an IP address") from None
    if isinstance(raw, IPv6Address):
        return raw.ipv4_mapped or raw
    if isinstance(raw, IPv4Address):
        return raw
    raise _make_error(raw, "an IP address")


def to_natural(raw: Any) -> Any:
    """Normalize a value of a known Python type; any other value is kept, and only `exists` can see it."""
    match raw:
        case bool() | values.Point():
            return raw
        case int() | float() | Decimal():
            return to_number(raw)
        case str():
            return values.check_text(raw)
        case date():
            return to_time(raw)
    return raw


def _check_range(raw: values.Range, kind: values.Kind | None) -> values.Range:
    if (
        raw.kind is values.Kind.TEXT
        or kind not in (None, values.Kind.NUMBER, values.Kind.TIME)
        or (raw.kind or kind) is not (kind or raw.kind)
    ):
        msg = f"a range of {raw.kind} is not {kind}; event ranges are of numbers or of times"
        raise ValueError(msg)
    if isinstance(raw.low, values.Quantity) or isinstance(raw.high, values.Quantity):
        msg = "the range has a unit, and no filter or ontology says in which unit the attribute is"
        raise ValueError(msg)
    if raw.low is not None and raw.low == raw.high and (raw.low_open or raw.high_open):
        msg = "the range is empty"
        raise ValueError(msg)
    return raw


def _make_error(raw: Any, wanted: str) -> ValueError:
    try:
        text = repr(raw)
    except RecursionError:  # nested beyond what repr can show
        text = f"a {type(raw).__name__}"
    return ValueError(f"{text if len(text) <= 60 else text[:57] + '...'} is not {wanted}")


_READERS = {
    values.Kind.NUMBER: to_number,
    values.Kind.TEXT: to_text,
    values.Kind.CONCEPT: to_text,
    values.Kind.BOOL: to_truth,
    values.Kind.TIME: to_time,
    values.Kind.PLACE: to_place,
    values.Kind.IP: to_address,
    None: to_natural,
}
