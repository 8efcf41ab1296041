"""How far a forecast looks: so many events of the stream, of the key alone, or a span of time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from numbers import Integral
from typing import Any, Literal

from tidings.errors import TidingsError
from tidings.lang.patterns.durations import format_duration, parse_duration
from tidings.lang.patterns.tokens import PatternReadError

_EVENTS = re.compile(r"(\d+)(?:\s+(own))?(?:\s+events?)?")

MOST_EVENTS = 10_000
"""The farthest horizon in events."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """`amount` events of the stream, of the key's `own`, or microseconds of `time`."""

    amount: int
    unit: Literal["events", "own", "time"] = "events"

    @classmethod
    def of(cls, value: Any) -> Horizon:
        """Read `10`, `"10 events"`, `"10 own events"`, `"5 min"` or a timedelta.

        >>> Horizon.of("10 own events"), Horizon.of("5 min").amount
        (Horizon(amount=10, unit='own'), 300000000)
        """
        horizon = value if isinstance(value, Horizon) else _read(value)
        if horizon is None or horizon.amount < 1 or (horizon.unit != "time" and horizon.amount > MOST_EVENTS):
            ways = (
                f"a number of events from 1 to {MOST_EVENTS:,}, `10 own events` (of the key), or a span such as `5 min`"
            )
            msg = f"a horizon is {ways}; not `{value}`"
            raise TidingsError(msg)
        return horizon

    @property
    def value(self) -> int | str | timedelta:
        """Return it as a forecast shows it: events as a number, a span as a timedelta."""
        match self.unit:
            case "events":
                return self.amount
            case "own":
                return str(self)
        return timedelta(microseconds=self.amount)

    def __str__(self) -> str:
        match self.unit:
            case "events":
                return str(self.amount)
            case "own":
                return f"{self.amount} own events"
        return format_duration(self.amount)


def _read(value: Any) -> Horizon | None:
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
