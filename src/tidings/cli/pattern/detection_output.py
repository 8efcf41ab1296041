"""How detections are written: JSON lines, or, to a terminal, the columns of a table."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Protocol

from tidings.cli import render
from tidings.cli.pattern.event_rows import moment_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidings.patterns import Detection, Detector

AT = len("2024-07-01T12:00:00Z")
"""The width of most times; parts of a second make a row wider."""

NO_TIME = datetime.min.replace(tzinfo=UTC)
"""When events happened before one with a time came."""


class Told(Protocol):
    """A way to write detections."""

    def head(self) -> list[str]:
        """Return what stands above the first."""

    def line(self, found: Detection) -> str:
        """Return a detection as a line."""


def told(detector: Detector, *, as_json: bool) -> Told:
    """Return the table for a terminal, and JSON for everybody else."""
    return AsJson(fields=bool(detector.keep)) if as_json or not sys.stdout.isatty() else AsTable(detector)


class AsJson:
    """An object a line: `pattern`, `at`, `events`, `bindings`, and `fields` where some are kept."""

    def __init__(self, *, fields: bool) -> None:
        """Say whether there are fields."""
        self._fields = fields

    def head(self) -> list[str]:
        """Return nothing: objects name their parts."""
        return []

    def line(self, found: Detection) -> str:
        """Return a detection as a line of JSON."""
        bindings = {name: plain(value) for name, value in found.bindings.items()}
        events = [plain(id) for id in found.events]
        line = {"pattern": found.pattern, "at": at_text(found.at), "events": events, "bindings": bindings}
        if self._fields:
            line["fields"] = [{name: plain(value) for name, value in row.items()} for row in found.fields]
        return render.as_json(line)


class AsTable:
    """When, what, with which values, and through which events."""

    def __init__(self, detector: Detector) -> None:
        """Make the columns as wide as the names."""
        self._width = max([len("pattern"), *(len(printed(name)) for name in detector)])

    def head(self) -> list[str]:
        """Return the columns' names."""
        return [f"{'at':<{AT}}  {'pattern':<{self._width}}  events"]

    def line(self, found: Detection) -> str:
        """Return a detection as a row; ids end where the next column begins, for they may be many."""
        ids = ", ".join(printed(plain(id)) for id in found.events)
        bound = _pairs(found.bindings)
        kept = "; ".join(_pairs(row) for row in found.fields)
        parts = [f"{at_text(found.at) or '-':<{AT}}", f"{printed(found.pattern):<{self._width}}", ids, bound, kept]
        return "  ".join(part for part in parts if part)


def at_text(at: datetime) -> str | None:
    """Return a time as ISO writes it; nothing before an event with a time came."""
    return None if at == NO_TIME else moment_text(at)


def _pairs(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={printed(plain(value))}" for name, value in values.items())


def printed(value: Any) -> str:
    """Return a value on one line, without what a terminal would obey."""
    return "".join(sign if sign.isprintable() else "?" for sign in str(value))


def plain(value: Any) -> Any:
    """Return a value as JSON keeps it; what it has no form for is written out there as text."""
    match value:
        case datetime():
            return moment_text(value) if value.tzinfo else value.isoformat()
        case date():
            return value.isoformat()
    return value
