"""Events as the definition sees them: when, which named filters they satisfy, and the values they bind to variables.

Written for reading, apart from how detectors read events, which are held to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from tidings.algebra import evaluate
from tidings.algebra.law.coerce import coerce
from tidings.algebra.law.raw_values import flatten, is_missing, iterate_leaves
from tidings.concepts import parse_now
from tidings.model import Event, EventLike, Schema, get_values
from tidings.model.values import EPOCH

if TYPE_CHECKING:
    from tidings.model.patterns import Pattern
    from tidings.model.values import EventValue

BoundValue: TypeAlias = "str | bool | int | float | Decimal | datetime"
"""A value that a variable takes."""

EARLIEST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
"""The time of events without one, where none with a time came before."""


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """One event as a pattern sees it: the named filters it satisfies, variables aside, and its attributes' values."""

    time: int
    names: frozenset[str]
    values: Mapping[str, BoundValue]
    timed: bool = True  # or else `time` is that of the latest event before it


def judge_events(
    pattern: Pattern,
    events: Iterable[EventLike],
    *,
    time: str = "time",
    schema: Schema | None = None,
    until: int = EARLIEST,
) -> list[SeenEvent]:
    """Judge events by the pattern's named filters; numbers as times are microseconds.

    A variable takes one text, number, truth value or time, as the schema declares it or else as it is; from anything
    else it takes nothing. An event without a time has that of the latest before it, `until` at first.
    """
    rows = []
    for event in events:
        at = _read_time(event, time)
        until = until if at is None else max(until, at)
        names = frozenset(named.name for named in pattern.filters if evaluate(named.filter, event, schema=schema))
        values = _read_values(pattern, get_values(event), schema)
        rows.append(SeenEvent(until if at is None else at, names, values, timed=at is not None))
    return rows


def _read_time(event: EventLike, name: str) -> int | None:
    """Return an event's time, if it has one that can be read; a datetime without a zone is in UTC."""
    own_time = event.time if isinstance(event, Event) else None
    value = get_values(event).get(name) if own_time is None else own_time
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, date) or is_missing(value):
        return None
    return ((parse_now(value) or EPOCH) - EPOCH) // timedelta(microseconds=1)


def _read_values(pattern: Pattern, fields: Mapping[str, EventValue], schema: Schema | None) -> dict[str, BoundValue]:
    """Return the values of the attributes that variables take; a dotted name reaches into records."""
    attributes = {attribute for named in pattern.filters for attribute, _ in named.variables}
    all_values = {attribute: _find_values(fields, attribute) for attribute in attributes}
    single = {attribute: values[0] for attribute, values in all_values.items() if len(values) == 1}
    readings = {attribute: _read_declared(attribute, value, schema) for attribute, value in single.items()}
    return {attribute: value for attribute, value in readings.items() if value is not None}


def _find_values(fields: Mapping[str, EventValue], attribute: str) -> list[EventValue]:
    """Return the values of an attribute; null and an empty record are none."""
    values = [value for leaf in iterate_leaves(fields, tuple(attribute.split("."))) for value in flatten(leaf)]
    return [value for value in values if not is_missing(value) and value != {}]


def _read_declared(attribute: str, value: EventValue, schema: Schema | None) -> BoundValue | None:
    """Return a value read as the schema declares it; `None` for a value that no variable can take."""
    kind = None if schema is None or attribute not in schema else schema[attribute].kind
    value = value if kind is None else coerce(value, kind)
    if isinstance(value, date):
        return parse_now(value)
    if isinstance(value, float) and math.isinf(value):
        return None
    return value if isinstance(value, str | bool | int | float | Decimal) else None
