"""When events happened, in microseconds since 1970: from datetimes, dates, ISO text and seconds, one or a column.

An event may have no time, or none that can be read; then its time is `NO_TIME`, and patterns
with time conditions do not see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from tidings.algebra.law.raw_values import is_missing
from tidings.errors import BadEvent
from tidings.model.arrow_types import to_rows
from tidings.model.values import EPOCH

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray
    from tidings.model.values import EventValue

MICROSECONDS = 1_000_000
"""How many there are in a second."""

NO_TIME = -(1 << 63)
"""Stands for a time that an event does not have."""

EARLIEST = int(datetime.min.replace(tzinfo=UTC).timestamp()) * MICROSECONDS
"""The first moment that a datetime can express; the time of events without one, where no event came before."""

LATEST = int(datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()) * MICROSECONDS
"""The last one, to the second: a later number of seconds is most likely one of milliseconds."""


def read_time(raw: EventValue) -> int:
    """Return an event's time in microseconds; `NO_TIME` when it has none, or none that can be read."""
    if is_missing(raw):
        return NO_TIME
    try:
        return parse_moment(raw)
    except BadEvent:
        return NO_TIME


def parse_moment(time: EventValue) -> int:
    """Return a time in microseconds: a datetime (without a zone: UTC), a date, ISO text, or seconds since 1970."""
    match time:
        case datetime():
            apart = (time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH
            return (apart.days * 86_400 + apart.seconds) * MICROSECONDS + apart.microseconds
        case date():
            return parse_moment(datetime(time.year, time.month, time.day, tzinfo=UTC))
        case bool():
            pass
        case int() | np.integer() if EARLIEST <= int(time) * MICROSECONDS <= LATEST:
            return int(time) * MICROSECONDS
        case float() if EARLIEST <= time * MICROSECONDS <= LATEST:
            return round(time * MICROSECONDS)
        case str():
            try:
                return parse_moment(datetime.fromisoformat(time.strip()))
            except ValueError:
                pass
    msg = f"an event's time is a datetime, ISO text or seconds since 1970, not `{time!r}`"
    raise BadEvent(msg)


def to_datetime(moment: int) -> datetime:
    """Return a time in microseconds as a datetime in UTC."""
    try:
        return EPOCH + timedelta(microseconds=int(moment))
    except OverflowError:  # an absence that lasts longer than Python's calendar
        return datetime.max.replace(tzinfo=UTC)


def read_times(table: pa.Table, name: str) -> IntArray:
    """Return the times of a table's events in microseconds; `NO_TIME` where there is none that can be read."""
    head = name if name in table.column_names else name.partition(".")[0]
    if head not in table.column_names:
        return np.full(table.num_rows, NO_TIME, np.int64)
    column = table.column(head)
    if t.is_integer(column.type):
        seconds = column.fill_null(0).to_numpy()
        sound = (seconds >= EARLIEST // MICROSECONDS) & (seconds <= LATEST // MICROSECONDS)
        sound &= ~np.asarray(column.is_null())
        return np.where(sound, np.where(sound, seconds, 0).astype(np.int64) * MICROSECONDS, NO_TIME)
    if t.is_timestamp(column.type) or t.is_date(column.type):
        kind = pa.timestamp("us", column.type.tz if t.is_timestamp(column.type) else None)
        finer = t.is_timestamp(column.type) and column.type.unit == "ns"  # what is finer is cut off
        try:
            moments = column.cast(kind, safe=not finer).cast(pa.int64()).fill_null(NO_TIME).to_numpy()
            return np.where((moments < EARLIEST) | (moments >= LATEST + MICROSECONDS), NO_TIME, moments)
        except pa.ArrowInvalid:
            pass  # one by one: some lie beyond what microseconds can tell
    rows = to_rows(table.select([head]))
    return np.array([read_time(look_up(row, name)) for row in rows])


def look_up(values: Mapping[str, EventValue], name: str) -> EventValue:
    """Return an attribute's value; a dotted name looks into records."""
    if name in values:
        return values[name]
    head, _, rest = name.partition(".")
    inner = values.get(head)
    return look_up(inner, rest) if rest and isinstance(inner, Mapping) else None
