"""How far a forecast looks: so many events of the stream, of the key alone, or a span of time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from numbers import Integral
from typing import Literal, TypeAlias

from tidings.errors import TidingsError
from tidings.lang.patterns.durations import format_duration, parse_duration
from tidings.lang.patterns.tokens import PatternReadError

_EVENTS = re.compile(r"(\d+)(?:\s+(own))?(?:\s+events?)?")

HorizonLike: TypeAlias = "Horizon | int | str | timedelta"
"""A horizon as callers write it: see `Horizon.of`."""

MOST_EVENTS = 10_000
"""The farthest horizon in events."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """`amount` events of the stream, of the key's `own`, or microseconds of `time`."""

    amount: int
    unit: Literal["events", "own", "time"] = "events"

    @classmethod
    def of(cls, value: object) -> Horizon:
        """Read `10`, `"10 events"`, `"10 own events"`, `"5 min"` or a timedelta.

        >>> Horizon.of("10 own events"), Horizon.of("5 min").amount
        (Horizon(amount=10, unit='own'), 300000000)
        """
        horizon = value if isinstance(value, Horizon) else _parse(value)
        if horizon is None or horizon.amount < 1 or (horizon.unit != "time" and horizon.amount > MOST_EVENTS):
            events = f"a number of events from 1 to {MOST_EVENTS:,}, `10 own events` (of the key)"
            msg = f"a horizon is {events}, or a span such as `5 min`; not `{value}`"
            raise TidingsError(msg)
        return horizon

    @property
    def value(self) -> int | str | timedelta:
        """Return it as a forecast shows it: events as a number, a span as a timedelta."""
        if self.unit == "time":
            return timedelta(microseconds=self.amount)
        return self.amount if self.unit == "events" else str(self)

    def __str__(self) -> str:
        if self.unit == "time":
            return format_duration(self.amount)
        return str(self.amount) if self.unit == "events" else f"{self.amount} own events"


def _parse(value: object) -> Horizon | None:
    if isinstance(value, Integral) and not isinstance(value, bool):  # those of numpy too
        return Horizon(int(value))
    if isinstance(value, timedelta):
        return Horizon(value // timedelta(microseconds=1), "time")
    if not isinstance(value, str):
        return None
    events = _EVENTS.fullmatch(value.strip())
    if events:
        return Horizon(int(events[1]), "own" if events[2] else "events")
    try:
        return Horizon(parse_duration(value), "time")
    except PatternReadError:
        return None
