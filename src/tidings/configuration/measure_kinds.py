"""The kinds of values that are numbers: counts, chances, durations, sizes, and times."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf

from tidings.configuration.environment import mask
from tidings.configuration.value_kinds import FileContext, ValueKind, WrongValue, expand_text, make_text_kind, reject
from tidings.lang.filters.value_text import parse_number, to_seconds
from tidings.model.values import Quantity

_MEASURE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")

UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
"""The units of a size, in bytes."""

# Numbers -----------------------------------------------------------------------------------------


def make_count_kind(largest: int | None = None) -> ValueKind:
    """Return the kind of whole numbers from one up to a bound."""
    words = "a whole number"

    def convert(value: object, _: FileContext) -> int:
        if type(value) is not int:
            raise reject(words, value)
        if value < 1 or (largest is not None and value > largest):
            raise reject("at least 1" if value < 1 else f"at most {largest}", str(value))
        return value

    bound = {} if largest is None else {"maximum": largest}
    return ValueKind(words, convert, {"type": "integer", "minimum": 1, **bound})


def _convert_chance(value: object, _: FileContext) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise reject(CHANCE.words, str(value) if type(value) in (int, float) else value)
    return float(value)


def _convert_rate(value: object, _: FileContext) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        raise reject(RATE.words, str(value) if type(value) in (int, float) else value)
    return float(value)


COUNT = make_count_kind()
PORT = make_count_kind(65535)
RATE = ValueKind("a number above zero", _convert_rate, {"type": "number", "exclusiveMinimum": 0})
CHANCE = ValueKind("a probability from 0 to 1", _convert_chance, {"type": "number", "minimum": 0, "maximum": 1})


# Durations, sizes and times ----------------------------------------------------------------------


def parse_duration(text: str, *, zero: bool = False) -> timedelta:
    """Return a duration: `10 minutes`, in the units that filters know; above zero, unless `zero` allows it.

    >>> parse_duration("90 s")
    datetime.timedelta(seconds=90)
    """
    measure = _MEASURE.fullmatch(text)
    if not measure:
        raise reject(DURATION.words, text)
    try:
        length = timedelta(seconds=to_seconds(Quantity(parse_number(measure[1]), measure[2])))
    except (ValueError, OverflowError):  # a unit that filters do not know, or more than Python counts
        raise reject(DURATION.words, text) from None
    if not length and not zero:
        wanted = "longer than nothing"
        raise reject(wanted, text)
    return length


def parse_size(text: str) -> int:
    """Return a number of bytes, at least one: `8 MB`.

    >>> parse_size("1.5 MB"), parse_size("200 kB")
    (1500000, 200000)
    """
    measure = _MEASURE.fullmatch(text)
    factor = {unit.lower(): factor for unit, factor in UNITS.items()}.get(measure[2].lower()) if measure else None
    if measure is None or factor is None:
        msg = f"must be {SIZE.words}, not `{mask(text)}`; the units are {', '.join(UNITS)}"
        raise WrongValue(msg)
    size = int(Decimal(measure[1]) * factor)
    if size < 1:
        wanted = "above zero"
        raise reject(wanted, text)
    return size


def make_size_kind(largest: int, reason: str) -> ValueKind:
    """Return the kind of sizes up to a bound, which messages give with its reason."""

    def convert(text: str, _: FileContext) -> int:
        if (size := parse_size(text)) > largest:
            wanted = f"at most {format_size(largest)}: {reason}"
            raise reject(wanted, text)
        return size

    return make_text_kind(SIZE.words, convert)


def format_size(size: int) -> str:
    """Return a size in the notation of settings files where it is a round number, else in bytes.

    >>> format_size(8_000_000), format_size(1_500), format_size(123_456_789)
    ('8 MB', '1.5 kB', '123,456,789 bytes')
    """
    for unit, factor in reversed(UNITS.items()):
        if size >= factor and size * 10 % factor == 0:
            return f"{size / factor:g} {unit}"
    return f"{size:,} bytes"


def _convert_moment(value: object, context: FileContext) -> datetime:
    # TOML has times of its own, and a datetime is a date.
    text = value.isoformat() if isinstance(value, date) else expand_text(value, context, wanted=MOMENT.words)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise reject(MOMENT.words, text) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _convert_idle(text: str, _: FileContext) -> timedelta | None:
    return None if text == "never" else parse_duration(text)


def _check_duration(text: str, _: FileContext) -> str:
    parse_duration(text)
    return text


DURATION = make_text_kind('a duration such as "10 minutes"', lambda text, _: parse_duration(text))
WAIT = make_text_kind(DURATION.words, lambda text, _: parse_duration(text, zero=True))
IDLE = make_text_kind('a duration such as "5 s", or "never"', _convert_idle)
DURATION_TEXT = make_text_kind(DURATION.words, _check_duration)
SIZE = make_text_kind('a size such as "8 MB"', lambda text, _: parse_size(text))
MOMENT = ValueKind("a time such as 2024-07-01T12:00:00Z", _convert_moment, {"type": "string"})
