"""A detector's events from the rows of files, and counts of the rows that it did not take, for the closing messages."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.input_files import RejectedRow, Rejections, describe_kept, read_event_id
from tidings.errors import BadEvent
from tidings.lang.patterns.durations import format_duration
from tidings.model import Event
from tidings.patterns.run.event_times import NO_TIME, look_up, read_time, to_datetime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from tidings.forecast import Detector
    from tidings.matcher.loading.row_files import RowFile
    from tidings.matcher.loading.row_readers import Row
    from tidings.patterns import Detections

SECOND = 1_000_000
"""Microseconds."""

# CSV has nothing but text. Eight digits are a date; any other number is seconds, also where it would pass for a time.
_SECONDS = re.compile(r"(?!\d{8}$)[+-]?\d{1,18}(\.\d{1,18})?")


def format_moment(moment: datetime) -> str:
    """Return a time of UTC in ISO form."""
    return moment.isoformat().removesuffix("+00:00") + "Z"


class DetectorInput:
    """Reads the events of one detector, batch by batch, and counts those that it, or a run of its patterns, took."""

    def __init__(self, detector: Detector, letters: TextIO | None) -> None:
        self._detector = detector
        self._rows: list[tuple[object, Row]] = []  # of the latest batch: the ids and rows of its events
        self._events: list[Event] = []
        self._unread: list[RejectedRow] = []
        self._file = ""  # prefix of line numbers where there are several files
        self._dead = Rejections("could not be read and were not taken", letters)
        self._late = Rejections("came late and were not taken", letters)
        self._behind = 0  # microseconds: with this lateness no event would have been late
        self.events = self.detections = 0

    def read(self, batch: list[Row]) -> list[Event]:
        """Return the events of a batch of rows; rows that are none are kept for `count`."""
        self._rows, self._events, self._unread = [], [], []
        for row in batch:
            id: object = row.number
            try:
                id = read_event_id(row, self._detector.event_id or None)
                event = self._build_event(row.values or {}, id)
            except BadEvent as problem:
                self._unread.append(RejectedRow(id, str(problem), row))
            else:
                self._rows.append((id, row))
                self._events.append(event)
        return self._events

    def read_files(self, files: list[RowFile], *, show_names: bool) -> Iterator[list[Event]]:
        """Yield batches of events, one file after the other; with `show_names` messages name the file."""
        for file in files:
            self._file = f"{file.name}, " if show_names else ""
            with render.show_progress(file, "events") as batches:
                yield from map(self.read, batches)

    def count(self, detections: Detections, before: datetime | None) -> None:
        """Count the latest batch, which gave these detections; `before` is the latest time before it."""
        dead = {letter.index: letter.reason for letter in detections.dead_letters}
        self.events += len(self._events) + len(self._unread)
        self.detections += len(detections)
        refused = [RejectedRow(self._rows[index][0], reason, self._rows[index][1]) for index, reason in dead.items()]
        self._dead.record([*self._unread, *refused], file=self._file)
        if detections.late:
            self._late.record(self._find_late(dead, before), file=self._file)

    @property
    def losses(self) -> str:
        """How many events were not taken, in words."""
        return f"{self._late.count:,} late, {self._dead.count:,} dead letters"

    def warn(self, dead_letters: Path | None) -> None:
        """Warn of events that were not taken and of partial matches that the detector dropped."""
        self._dead.warn(self.events, describe_kept(dead_letters))
        # In whole seconds where it is longer than one.
        behind = -(-self._behind // SECOND) * SECOND if self._behind > SECOND else self._behind
        lateness = format_duration(behind).replace(" ", "")
        self._late.warn(self.events, f"--lateness {lateness} would have put them in order")
        detector = self._detector
        if detector.dropped:
            dropped = f"{detector.dropped:,} partial matches were given up, the oldest of keys that had more than twice"
            render.warn(f"{dropped} {detector.partials:,} at one step; `within` bounds them, --partials keeps more")
        if detector.cut:
            cut = f"{detector.cut:,} times an event completed more matches than a pattern's limit"
            render.warn(f"{cut}, which cut them short")
        for mismatch in detector.mismatches():
            render.warn(str(mismatch))

    def _build_event(self, values: dict[str, Any], id: object) -> Event:
        value = look_up(values, self._detector.time)
        if isinstance(value, str) and _SECONDS.fullmatch(value.strip()):
            value = float(value) if "." in value else int(value)
        at = read_time(value)
        time = None if at == NO_TIME else to_datetime(at)
        if isinstance(id, str | int) and type(id) is not bool:
            return Event(id, time, values)
        return Event(None, time, {**values, self._detector.event_id: id})

    def _find_late(self, dead: Iterable[int], before: datetime | None) -> Iterator[RejectedRow]:
        """Yield the rows of the latest batch that came late; `dead` are the indexes of its dead letters.

        The detector decides the same; it names late events by id, and a message must name the line.
        """
        lateness = self._detector.lateness
        excess = f"more than {format_duration(lateness)} " if lateness else ""
        for index, ((id, row), event) in enumerate(zip(self._rows, self._events, strict=True)):
            if index in dead or event.time is None:
                continue
            behind = timedelta() if before is None else before - event.time
            before = event.time if before is None else max(before, event.time)
            if behind > timedelta(microseconds=lateness):
                self._behind = max(self._behind, behind // timedelta(microseconds=1))
                reason = f"its time, {format_moment(event.time)}, lies {excess}behind that of an event before"
                yield RejectedRow(id, reason, row)
