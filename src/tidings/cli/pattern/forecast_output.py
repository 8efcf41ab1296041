"""How forecasts are written: JSON lines, or, to a terminal, the columns of a table."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from tidings.cli import render
from tidings.cli.pattern.detection_output import AT, at_text, plain, printed
from tidings.lang.patterns.durations import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidings.forecast import Detector, Forecast
    from tidings.forecast.forecasts import EventForecast

QUANTILES = (0.25, 0.5, 0.75)
"""Of the waiting time: those that a terminal shows."""


class Told(Protocol):
    """A way to write forecasts."""

    def head(self) -> list[str]:
        """Return what stands above the first that an event gave rise to."""

    def line(self, found: EventForecast) -> str:
        """Return such a forecast as a line."""

    def standing(self, found: list[Forecast], more: int) -> list[str]:
        """Return how a pattern stands: of its keys, of all others last; of `more` keys nothing is shown."""


def told(detector: Detector, *, as_json: bool) -> Told:
    """Return the table for a terminal, and JSON for everybody else."""
    return AsJson() if as_json or not sys.stdout.isatty() else AsTable(detector)


def rounded(probability: float) -> float:
    """Return a probability in four digits: no history knows it better."""
    return float(f"{probability:.4g}")


class AsJson:
    """An object a line: of `kind` forecast where an event gave rise to it, of `kind` now at the end."""

    def head(self) -> list[str]:
        """Return nothing: objects name their parts."""
        return []

    def line(self, found: EventForecast) -> str:
        """Return a forecast as a line of JSON."""
        at = {"at": at_text(found.at), "event": plain(found.event)}
        return render.as_json({"kind": "forecast", **_parts(found.forecast, at)})

    def standing(self, found: list[Forecast], more: int) -> list[str]:
        """Return a line for each; the last has no key, and says of how many keys there is none."""
        lines = [{"kind": "now", **_parts(one, {}), "waiting": _waiting(one.waiting)} for one in found]
        if more:
            lines[-1]["more_keys"] = more
        return [render.as_json(line) for line in lines]


class AsTable:
    """When, which pattern, for which key, at which event, how likely."""

    def __init__(self, detector: Detector) -> None:
        """Make the columns as wide as the names."""
        self._width = max([len("pattern"), *(len(printed(name)) for name in detector)])
        self._first = True

    def head(self) -> list[str]:
        """Return the columns' names."""
        return [f"{'at':<{AT}}  {'pattern':<{self._width}}      p  key, event"]

    def line(self, found: EventForecast) -> str:
        """Return a forecast as a row."""
        one = found.forecast
        key = "" if one.key is None else f"{_key(one.key)}, "
        name = f"{printed(one.pattern):<{self._width}}"
        return f"{at_text(found.at) or '-':<{AT}}  {name}  {one.probability:.3f}  {key}{printed(plain(found.event))}"

    def standing(self, found: list[Forecast], more: int) -> list[str]:
        """Return the pattern's rows, under a headline of its own."""
        horizon = found[0].horizon
        within = (
            _span(horizon) if isinstance(horizon, timedelta) else f"{horizon} events".replace("events events", "events")
        )
        lines = [f"{printed(found[0].pattern)}, within {within}:"]
        keyed = len(found) > 1
        for one in found:
            key = _key(one.key) if one.key is not None else "nothing begun" if keyed else ""
            waits = ", ".join(_quantile(one.waiting, share) for share in QUANTILES)
            lines.append(
                "  ".join(part for part in (f"  {one.probability:.3f}", key, f"[{waits}]", one.estimator) if part)
            )
        if more:
            lines.insert(-1, f"  and {more:,} keys that are less likely")
        return lines


def _parts(one: Forecast, at: dict[str, Any]) -> dict[str, Any]:
    horizon = _span(one.horizon) if isinstance(one.horizon, timedelta) else one.horizon
    chance = {"probability": rounded(one.probability), "horizon": horizon, "estimator": one.estimator}
    key = [plain(part) for part in one.key] if isinstance(one.key, tuple) else plain(one.key)
    return {"pattern": one.pattern, "key": key, **at, **chance}


def _waiting(waiting: Mapping[float, int | timedelta | None] | None) -> dict[str, int | str | None]:
    """Return the quantiles by their names; nothing stands for what lies beyond all that is looked at."""
    return {f"{share:g}": _span(one) if isinstance(one, timedelta) else one for share, one in (waiting or {}).items()}


def _quantile(waiting: Mapping[float, int | timedelta | None] | None, share: float) -> str:
    one = (waiting or {}).get(share)
    told = "later" if one is None else _span(one) if isinstance(one, timedelta) else f"{one:,}"
    return f"{share:.0%} {told}"


def _span(span: timedelta) -> str:
    """Return a span in words; of one longer than a second, whole seconds."""
    microseconds = span // timedelta(microseconds=1)
    return format_duration(round(microseconds, -6) if microseconds > 1_000_000 else microseconds)


def _key(key: Any) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    return " ".join(printed(plain(part)) for part in parts)
