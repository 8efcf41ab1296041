"""The newest events that were published: what `:estimate` counts matches of, and where `why` finds an event.

Files are read from the newest backwards until there are enough events or bytes. The number of a file is when it was
begun, so the span of the sample is known without asking the events for their own times, which may be of last year.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from tidings.matcher.loading.documents import BadDocument, find_value, parse_document, to_id
from tidings.service.events.event_files import list_files
from tidings.service.events.json_bodies import has_long_number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDED = ".read"
"""The folder of old events that were put together, in the folder of events."""


@dataclass(frozen=True, slots=True)
class RecentTuning:
    """How far to look back."""

    events: int = 20_000
    size: int = 32_000_000
    searched: int = 64_000_000
    """Bytes in which an event is looked for."""


@dataclass(frozen=True, slots=True)
class RecentSample:
    """The newest events, newest first, that came between two times without a gap."""

    events: list[dict[str, Any]] = field(default_factory=list)
    begin: datetime | None = None
    end: datetime | None = None

    @property
    def span(self) -> timedelta:
        """How long it took for these events to come."""
        return self.end - self.begin if self.begin is not None and self.end is not None else timedelta()


class RecentEvents(Protocol):
    """Looks back at the events of a place."""

    def sample(self, now: datetime) -> RecentSample:
        """Return the newest events; `now` is the end of the span in which they came."""

    def find(self, id: str, name: str) -> dict[str, Any] | None:
        """Return the newest event whose field `name` is an id; None where it is not among the last."""


class RecentFiles:
    """The events in the files of a folder; those older than `kept` do not count."""

    def __init__(self, folder: Path, *, kept: timedelta, tuning: RecentTuning | None = None) -> None:
        self._folder, self._kept, self._tuning = folder, kept, tuning or RecentTuning()

    def sample(self, now: datetime) -> RecentSample:
        """Return the newest events."""
        events: list[dict[str, Any]] = []
        begin, size = None, 0
        oldest = int((now - self._kept).timestamp() * 1e9)
        for number, path in self._list_newest_first():
            if number < oldest or len(events) >= self._tuning.events or size >= self._tuning.size:
                break
            lines = read_lines(path)
            if events and len(events) + len(lines) > self._tuning.events:
                break  # files count whole: the span begins with the oldest of them
            size += sum(map(len, lines))
            events += islice(decode_lines(reversed(lines)), self._tuning.events - len(events))
            begin = datetime.fromtimestamp(number / 1e9, UTC)
        return RecentSample(events, begin, now)

    def find(self, id: str, name: str) -> dict[str, Any] | None:
        """Return the newest event of an id, where the newest bytes have it."""
        needle, size = id.encode(errors="replace"), 0
        for _, path in self._list_newest_first():
            data = read_whole(path)
            lines = data.split(b"\n") if needle in data or b"\\" in data else []
            for event in decode_lines(line for line in reversed(lines) if needle in line or b"\\" in line):
                with suppress(ValueError):
                    if to_id(find_value(event, name)) == id:
                        return event
            size += len(data)
            if size >= self._tuning.searched:
                return None
        return None

    def _list_newest_first(self) -> Iterator[tuple[int, Path]]:
        folders = (self._folder, self._folder / FOLDED)
        files = sorted((file.number, folder / file.name) for folder in folders for file in list_files(folder))
        return reversed(files)


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a file; of one that is gone, none."""
    return read_whole(path).split(b"\n")[:-1]


def read_whole(path: Path) -> bytes:
    """Return the bytes of a file; of one that is gone, none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def decode_lines(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the events of lines that we wrote."""
    for line in lines:
        event: Any = None
        if not has_long_number(line):
            with suppress(ValueError):
                event = orjson.loads(line)
        if event is None:
            event = parse_document(line.decode(errors="replace"))
        if not isinstance(event, BadDocument) and isinstance(event, dict):
            yield event
