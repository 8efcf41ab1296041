"""Rows of a file as a detector's events: when each happened, what it is called, and why one cannot be taken."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tidings.cli.match.match import id_of
from tidings.errors import BadEvent
from tidings.lang.patterns.durations import format_duration
from tidings.matcher.loading.row_readers import Row
from tidings.model import Event
from tidings.patterns.run.event_times import NO_TIME, datetime_of, look_up, time_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.model import DeadLetter
    from tidings.patterns import Detector

# CSV has nothing but text. Eight digits are a date; any other number is seconds, also where it would pass for a time.
_SECONDS = re.compile(r"(?!\d{8}$)[+-]?\d{1,18}(\.\d{1,18})?")


@dataclass(frozen=True, slots=True)
class Left:
    """A row that was not taken, and why."""

    id: object
    reason: str
    row: Row


@dataclass(slots=True)
class Read:
    """The rows of a batch that are events, and those that are not."""

    rows: list[Row] = field(default_factory=list)
    ids: list[object] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    dead: list[Left] = field(default_factory=list)

    def refused(self, letters: Iterable[DeadLetter]) -> list[Left]:
        """Return the rows of a detector's dead letters."""
        return [Left(self.ids[one.index], one.reason, self.rows[one.index]) for one in letters]

    def late(self, lost: set[int], before: datetime | None, lateness: int) -> tuple[list[Left], int]:
        """Return the rows that came late, and by how many microseconds the latest of them did.

        This is the detector's own reckoning once more, because it names late events by ids, and people look for lines.
        """
        found, most = [], 0
        for place, event in enumerate(self.events):
            if place in lost or event.time is None:
                continue
            behind = timedelta() if before is None else before - event.time
            before = event.time if before is None else max(before, event.time)
            if behind > timedelta(microseconds=lateness):
                found.append(Left(self.ids[place], _lateness(event.time, lateness), self.rows[place]))
                most = max(most, behind // timedelta(microseconds=1))
        return found, most


def _lateness(time: datetime, lateness: int) -> str:
    how = f"more than {format_duration(lateness)} " if lateness else ""
    return f"its time, {moment_text(time)}, lies {how}behind that of an event before"


def moment_text(moment: datetime) -> str:
    """Return a time as ISO writes it."""
    return moment.isoformat().removesuffix("+00:00") + "Z"


class Reading:
    """How a detector's events are read from rows."""

    def __init__(self, detector: Detector) -> None:
        """Look at what the detector calls the time and the id."""
        self._detector = detector

    def read(self, batch: list[Row]) -> Read:
        """Return the rows as events; those that cannot be are told apart."""
        read = Read()
        for row in batch:
            id: object = row.number
            try:
                id = id_of(row, self._detector.event_id or None)
                event = self._event(row.values or {}, id)
            except BadEvent as problem:
                read.dead.append(Left(id, str(problem), row))
            else:
                read.rows.append(row)
                read.ids.append(id)
                read.events.append(event)
        return read

    def _event(self, values: dict[str, Any], id: object) -> Event:
        time = self._time(values)
        if isinstance(id, str | int) and type(id) is not bool:
            return Event(id, time, values)
        return Event(None, time, {**values, self._detector.event_id: id})

    def _time(self, values: dict[str, Any]) -> datetime | None:
        value = look_up(values, self._detector.time)
        if isinstance(value, str) and _SECONDS.fullmatch(value.strip()):
            value = float(value) if "." in value else int(value)
        at = time_of(value)
        return None if at == NO_TIME else datetime_of(at)
