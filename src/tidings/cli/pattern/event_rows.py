"""Rows of a file as a detector's events, with their times and ids; rows that are no events, with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tidings.cli.match.dead_letters import read_event_id
from tidings.errors import BadEvent
from tidings.lang.patterns.durations import format_duration
from tidings.matcher.loading.row_readers import Row
from tidings.model import Event
from tidings.patterns.run.event_times import NO_TIME, datetime_of, look_up, time_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.forecast import Detector
    from tidings.model import DeadLetter

# CSV has nothing but text. Eight digits are a date; any other number is seconds, also where it would pass for a time.
_SECONDS = re.compile(r"(?!\d{8}$)[+-]?\d{1,18}(\.\d{1,18})?")


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that the detector did not take, and why."""

    id: object
    reason: str
    row: Row


@dataclass(slots=True)
class RowBatch:
    """The rows of a batch that are events, with their ids, and those that are not."""

    rows: list[Row] = field(default_factory=list)
    ids: list[object] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    dead: list[RejectedRow] = field(default_factory=list)

    def find_dead(self, letters: Iterable[DeadLetter]) -> list[RejectedRow]:
        """Return the rows of a detector's dead letters."""
        return [RejectedRow(self.ids[letter.index], letter.reason, self.rows[letter.index]) for letter in letters]

    def find_late(self, dead: set[int], before: datetime | None, lateness: int) -> tuple[list[RejectedRow], int]:
        """Return the rows that came late, and the microseconds by which the latest of them did.

        `before` is the time of the latest event before the batch, `dead` the indexes of dead letters. The detector
        decides the same; it names late events by id, and a message must name the line.
        """
        late, most = [], 0
        for index, event in enumerate(self.events):
            if index in dead or event.time is None:
                continue
            behind = timedelta() if before is None else before - event.time
            before = event.time if before is None else max(before, event.time)
            if behind > timedelta(microseconds=lateness):
                late.append(RejectedRow(self.ids[index], _explain_late(event.time, lateness), self.rows[index]))
                most = max(most, behind // timedelta(microseconds=1))
        return late, most


def _explain_late(time: datetime, lateness: int) -> str:
    how = f"more than {format_duration(lateness)} " if lateness else ""
    return f"its time, {format_moment(time)}, lies {how}behind that of an event before"


def format_moment(moment: datetime) -> str:
    """Return a time of UTC in ISO form."""
    return moment.isoformat().removesuffix("+00:00") + "Z"


class EventRowReader:
    """Reads a detector's events from rows."""

    def __init__(self, detector: Detector) -> None:
        """Read the time and the id from the fields that the detector names."""
        self._detector = detector

    def read(self, batch: list[Row]) -> RowBatch:
        """Return the rows as events; those that are none are in `dead`."""
        read = RowBatch()
        for row in batch:
            id: object = row.number
            try:
                id = read_event_id(row, self._detector.event_id or None)
                event = self._build_event(row.values or {}, id)
            except BadEvent as problem:
                read.dead.append(RejectedRow(id, str(problem), row))
            else:
                read.rows.append(row)
                read.ids.append(id)
                read.events.append(event)
        return read

    def _build_event(self, values: dict[str, Any], id: object) -> Event:
        time = self._read_time(values)
        if isinstance(id, str | int) and type(id) is not bool:
            return Event(id, time, values)
        return Event(None, time, {**values, self._detector.event_id: id})

    def _read_time(self, values: dict[str, Any]) -> datetime | None:
        value = look_up(values, self._detector.time)
        if isinstance(value, str) and _SECONDS.fullmatch(value.strip()):
            value = float(value) if "." in value else int(value)
        at = time_of(value)
        return None if at == NO_TIME else datetime_of(at)
