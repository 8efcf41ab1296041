"""Detections and forecasts as rows of output: JSON lines or, on a terminal, the columns of a table.

Each record has two functions that format it, one for each form; a `RowWriter` writes the rows as they come.
"""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.pattern.detector_input import format_moment
from tidings.cli.render import RowWriter
from tidings.lang.diagnostics import to_printable
from tidings.lang.patterns.durations import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidings.forecast import Detector, Forecast
    from tidings.forecast.forecasts import EventForecast
    from tidings.patterns import Detection

TIME_WIDTH = len("2024-07-01T12:00:00Z")
"""The width of most times; fractions of a second make a row wider."""

NO_TIME = datetime.min.replace(tzinfo=UTC)
"""The time of a detection before any event had one."""

FORECAST_COLUMNS = "    p  key, event"
"""The heading of a forecast's own columns."""

QUANTILES = (0.25, 0.5, 0.75)
"""Quantiles of the waiting time that a terminal shows."""


def make_detection_writer(detector: Detector, *, as_json: bool) -> RowWriter[Detection]:
    """Return a writer of detections: a table for a terminal, JSON otherwise."""
    if is_table(as_json=as_json):
        table = PatternTable(detector)
        return RowWriter(table.format_detection, table.format_heading("events"))
    has_fields = bool(detector.keep)
    return RowWriter(partial(format_detection_json, has_fields=has_fields))


def make_forecast_writer(detector: Detector, *, as_json: bool) -> RowWriter[EventForecast]:
    """Return a writer of forecasts: a table for a terminal, JSON otherwise."""
    if is_table(as_json=as_json):
        table = PatternTable(detector)
        return RowWriter(table.format_forecast, table.format_heading(FORECAST_COLUMNS))
    return RowWriter(format_forecast_json)


def is_table(*, as_json: bool) -> bool:
    """Tell whether rows are a table for people: on a terminal, unless JSON is asked for."""
    return not as_json and sys.stdout.isatty()


# JSON -------------------------------------------------------------------------------------------


def format_detection_json(detection: Detection, *, has_fields: bool) -> str:
    """Return a detection as a line; `fields` are the values kept of each event, where some are kept."""
    line = {
        "pattern": detection.pattern,
        "at": format_time(detection.at),
        "events": [to_json_value(id) for id in detection.events],
        "bindings": {name: to_json_value(value) for name, value in detection.bindings.items()},
    }
    if has_fields:
        line["fields"] = [{name: to_json_value(value) for name, value in row.items()} for row in detection.fields]
    return render.to_json(line)


def format_forecast_json(forecast: EventForecast) -> str:
    """Return a forecast at an event as a line of `kind` forecast."""
    at = {"at": format_time(forecast.at), "event": to_json_value(forecast.event)}
    return render.to_json({"kind": "forecast", **_forecast_to_dict(forecast.forecast, at)})


def format_standing_json(forecasts: list[Forecast], hidden_keys: int) -> list[str]:
    """Return a pattern's final forecasts as lines of `kind` now; the last one, without a key, counts hidden keys."""
    lines = []
    for forecast in forecasts:
        quantiles = {  # None is a quantile beyond all that is computed
            f"{share:g}": _format_span(wait) if isinstance(wait, timedelta) else wait
            for share, wait in (forecast.waiting or {}).items()
        }
        lines.append({"kind": "now", **_forecast_to_dict(forecast, {}), "waiting": quantiles})
    if hidden_keys:
        lines[-1]["more_keys"] = hidden_keys
    return [render.to_json(line) for line in lines]


def _forecast_to_dict(forecast: Forecast, at: dict[str, object]) -> dict[str, object]:
    horizon = _format_span(forecast.horizon) if isinstance(forecast.horizon, timedelta) else forecast.horizon
    chance = {
        "probability": float(f"{forecast.probability:.4g}"),  # no history knows more digits
        "horizon": horizon,
        "estimator": forecast.estimator,
    }
    key = forecast.key
    key = [to_json_value(part) for part in key] if isinstance(key, tuple) else to_json_value(key)
    return {"pattern": forecast.pattern, "key": key, **at, **chance}


def to_json_value(value: object) -> object:
    """Return a value for JSON: times in ISO form, any other as it is."""
    match value:
        case datetime():
            return format_moment(value) if value.tzinfo else value.isoformat()
        case date():
            return value.isoformat()
    return value


# Tables -----------------------------------------------------------------------------------------


class PatternTable:
    """Rows of detections and forecasts in columns: time, pattern, and then what the row has."""

    def __init__(self, detector: Iterable[str]) -> None:
        self._width = max([len("pattern"), *(len(to_printable(name)) for name in detector)])

    def format_heading(self, columns: str) -> str:
        """Return the names of the first two columns, and of the others."""
        return f"{'at':<{TIME_WIDTH}}  {'pattern':<{self._width}}  {columns}"

    def format_detection(self, detection: Detection) -> str:
        """Return a detection as a row; its ids come without padding, since they may be many."""
        ids = ", ".join(to_printable(to_json_value(id)) for id in detection.events)
        bound = _format_pairs(detection.bindings)
        kept = "; ".join(_format_pairs(row) for row in detection.fields)
        return "  ".join(
            part for part in (self._format_start(detection.at, detection.pattern), ids, bound, kept) if part
        )

    def format_forecast(self, forecast: EventForecast) -> str:
        """Return a forecast as a row."""
        chance = forecast.forecast
        key = "" if chance.key is None else f"{_format_key(chance.key)}, "
        start = self._format_start(forecast.at, chance.pattern)
        return f"{start}  {chance.probability:.3f}  {key}{to_printable(to_json_value(forecast.event))}"

    def _format_start(self, at: datetime, pattern: str) -> str:
        return f"{format_time(at) or '-':<{TIME_WIDTH}}  {to_printable(pattern):<{self._width}}"


def format_standing_rows(forecasts: list[Forecast], hidden_keys: int) -> list[str]:
    """Return a pattern's final forecasts as rows under a heading; the last one is of all other keys."""
    horizon = forecasts[0].horizon
    if isinstance(horizon, timedelta):
        within = _format_span(horizon)
    else:
        within = f"{horizon} events".replace("events events", "events")
    lines = [f"{to_printable(forecasts[0].pattern)}, within {within}:"]
    others = "nothing begun" if len(forecasts) > 1 else ""
    for forecast in forecasts:
        key = others if forecast.key is None else _format_key(forecast.key)
        waits = ", ".join(_format_quantile(forecast.waiting, share) for share in QUANTILES)
        parts = (f"  {forecast.probability:.3f}", key, f"[{waits}]", forecast.estimator)
        lines.append("  ".join(part for part in parts if part))
    if hidden_keys:
        lines.insert(-1, f"  and {hidden_keys:,} keys that are less likely")
    return lines


def _format_quantile(waiting: Mapping[float, int | timedelta | None] | None, share: float) -> str:
    wait = (waiting or {}).get(share)
    text = "later" if wait is None else _format_span(wait) if isinstance(wait, timedelta) else f"{wait:,}"
    return f"{share:.0%} {text}"


def _format_pairs(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={to_printable(to_json_value(value))}" for name, value in values.items())


def _format_key(key: object) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    return " ".join(to_printable(to_json_value(part)) for part in parts)


# Times ------------------------------------------------------------------------------------------


def format_time(at: datetime) -> str | None:
    """Return a time in ISO form; None before any event had a time."""
    return None if at == NO_TIME else format_moment(at)


def _format_span(span: timedelta) -> str:
    """Return a duration in words; one longer than a second in whole seconds."""
    microseconds = span // timedelta(microseconds=1)
    return format_duration(round(microseconds, -6) if microseconds > 1_000_000 else microseconds)
