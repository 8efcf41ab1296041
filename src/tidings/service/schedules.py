"""When matches are delivered: at once, every so often, or at the times of a cron expression in a time zone.

Five fields as cron has them: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday). Each is `*`,
a number or a name, a range `1-5`, a step `*/15`, or a list of those parted by commas.
"""

from __future__ import annotations

import zoneinfo
from typing import Any, NamedTuple

from tidings.errors import TidingsError
from tidings.lang.patterns.durations import parse_duration
from tidings.lang.patterns.tokens import PatternReadError

IMMEDIATE = "immediate"
"""The schedule of a delivery that names none."""

LEAST_SECONDS, MOST_DAYS = 1, 366
"""The shortest and the longest time between two deliveries."""

MAX_LENGTH = 200
"""Characters of a schedule at most."""


class CronField(NamedTuple):
    """A field of a cron expression: its name, its range, and the names that its numbers have."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

CRON_FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day of the month", 1, 31),
    CronField("month", 1, 12, MONTHS),
    CronField("day of the week", 0, 7, DAYS),
)
"""The fields of a cron expression, in order."""


def check_schedule(value: Any) -> Any:
    """Return a schedule; one that cannot be followed raises `TidingsError`.

    >>> check_schedule("every 5 min"), check_schedule({"cron": "0 8 * * mon-fri"})
    ('every 5 min', {'cron': '0 8 * * mon-fri', 'zone': 'UTC'})
    """
    if isinstance(value, dict):
        return _check_cron_object(value)
    if value == IMMEDIATE:
        return value
    if isinstance(value, str) and value.startswith("every ") and len(value) <= MAX_LENGTH:
        check_interval(value.removeprefix("every "))
        return value
    msg = 'a schedule is `immediate`, `every 5 min`, or {"cron": "0 8 * * *", "zone": "Europe/Zurich"}'
    raise TidingsError(msg)


def check_interval(text: str) -> int:
    """Return the microseconds of a span of time between two deliveries."""
    try:
        microseconds = parse_duration(text)
    except PatternReadError:
        msg = f"`{text:.80}` is no span of time; write it as in `every 5 min`"
        raise TidingsError(msg) from None
    if not LEAST_SECONDS * 10**6 <= microseconds <= MOST_DAYS * 86400 * 10**6:
        msg = f"`{text:.80}` is not from {LEAST_SECONDS} s to {MOST_DAYS} days"
        raise TidingsError(msg)
    return microseconds


def _check_cron_object(value: dict[str, Any]) -> dict[str, str]:
    cron, zone = value.get("cron"), value.get("zone", "UTC")
    if set(value) - {"cron", "zone"} or not isinstance(cron, str) or not isinstance(zone, str):
        msg = "a cron schedule has `cron` and `zone`, both text, and nothing else"
        raise TidingsError(msg)
    check_cron(cron)
    if len(zone) > MAX_LENGTH or zone not in zoneinfo.available_timezones():
        msg = f"`{zone:.80}` is no time zone; write it as in `Europe/Zurich`"
        raise TidingsError(msg)
    return {"cron": cron, "zone": zone}


def check_cron(text: str) -> None:
    """Refuse what is no cron expression, naming the field."""
    parts = text.split()
    if len(parts) != len(CRON_FIELDS) or len(text) > MAX_LENGTH:
        names = ", ".join(field.name for field in CRON_FIELDS)
        msg = f"`{text:.80}` is no cron expression; it has five fields: {names}"
        raise TidingsError(msg)
    for part, field in zip(parts, CRON_FIELDS, strict=True):
        if not all(_is_cron_item(item, field) for item in part.lower().split(",")):
            msg = f"`{part:.40}` is no {field.name} of a cron expression: `*`, or from {field.low} to {field.high}"
            raise TidingsError(msg)


def _is_cron_item(item: str, field: CronField) -> bool:
    span, slash, step = item.partition("/")
    if slash and not (_is_number(step) and 1 <= int(step) <= field.high):
        return False
    if span == "*":
        return True
    low, dash, high = span.partition("-")
    ends = [_read_cron_number(end, field) for end in ((low, high) if dash else (low,))]
    return None not in ends and ends == sorted(end for end in ends if end is not None)


def _read_cron_number(text: str, field: CronField) -> int | None:
    if text in field.names:
        return field.names.index(text) + field.low
    return int(text) if _is_number(text) and field.low <= int(text) <= field.high else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 3
