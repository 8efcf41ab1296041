"""The kinds of values that only `pipeline.toml` has: triggers, horizons, sizes of events, settings of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidings.configuration.measure_kinds import make_size_kind, parse_duration
from tidings.configuration.value_kinds import (
    FileContext,
    ValueKind,
    WrongValue,
    expand_text,
    make_settings_kind,
    make_text_kind,
    reject,
)
from tidings.errors import TidingsError
from tidings.forecast import Horizon

MAX_EVENT_BYTES = 10**9
"""Upper bound of `largest`; Java's arrays end at twice as many bytes."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a micro-batch starts: every so often, right after the last one (no field set), or until all is read."""

    every: timedelta | None = None
    available_now: bool = False


def _convert_trigger(text: str, _: FileContext) -> Trigger:
    if text == "available now":
        return Trigger(available_now=True)
    if text == "as soon as possible":
        return Trigger()
    try:
        return Trigger(every=parse_duration(text))
    except WrongValue:
        raise reject(TRIGGER.words, text) from None


def _convert_horizon(value: object, context: FileContext) -> int | str:
    horizon: int | str = value if type(value) is int else expand_text(value, context, wanted=HORIZON.words)
    try:
        Horizon.of(horizon)
    except TidingsError:
        raise reject(HORIZON.words, horizon if isinstance(horizon, str) else str(horizon)) from None
    return horizon


EVENT_SIZE = make_size_kind(MAX_EVENT_BYTES, "Java's heap holds an event several times")
TRIGGER = make_text_kind('"1 second", "available now" or "as soon as possible"', _convert_trigger)
HORIZON = ValueKind('a number of events, "10 own events" or "5 min"', _convert_horizon, {"type": ["integer", "string"]})

_GIVEN_BY_KEYS = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "topic",
    "subscribePattern": "topic",
    "assign": "topic",
    "topic": "topic",
    "path": "path",
    "host": "host",
    "port": "port",
    "checkpointLocation": "checkpoint",
}

OPTIONS = make_settings_kind(_GIVEN_BY_KEYS)
