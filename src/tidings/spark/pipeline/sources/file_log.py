"""Which files of a folder are the events of which batch: numbered entries, and every file in exactly one of them.

Spark's own file source remembers every name for ever, and rewrites all of them now and then. Here a file that was read
may go away, and its name goes with it: the log is as long as the folder is full. An entry is written and flushed before
anybody hears of its number; so whoever asks for its files later, also after a crash, gets the same. One process writes
at a time: the one that has the checkpoint's lock.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from tidings.engine.persist.mapped_arrays import write_atomically
from tidings.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

LOG_FORMAT = 1
"""The format of the log's file; a newer one is refused by its number."""

SLACK = 1_000
"""Entries that nobody needs and that stay, so that the log is not rewritten with each batch."""


class FileLog:
    """The entries of a folder's files, in a file of JSON lines: the format, then an entry on each line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[int, tuple[str, ...]] = {}
        self._newest = 0
        self._size = 0  # of the file, as far as its lines are whole
        if path.exists():
            self._read()

    @property
    def newest(self) -> int:
        """The number of the newest entry; 0 where there is none."""
        return self._newest

    def get(self, number: int) -> tuple[str, ...]:
        """Return the names of an entry."""
        try:
            return self._entries[number]
        except KeyError:
            msg = f"`{self._path}` has no entry {number}: it is not the one of this checkpoint; copy both back together"
            raise CheckpointError(msg) from None

    def collect_names(self) -> set[str]:
        """Return the names of all entries."""
        return {name for names in self._entries.values() for name in names}

    def append(self, names: Sequence[str]) -> int:
        """Write a new entry, flush it to the disk, and return its number."""
        number = self._newest + 1
        if not self._size:
            self._replace({number: tuple(names)}, number)
            return number
        with self._path.open("r+b") as file:
            file.truncate(self._size)  # what a crash left half written
            file.seek(self._size)
            file.write(line := _render(number, names))
            file.flush()
            os.fsync(file.fileno())
        self._size += len(line)
        self._entries[number], self._newest = tuple(names), number
        return number

    def forget(self, done: int, existing: Collection[str]) -> None:
        """Drop entries up to the number `done` of which no file exists any more, now and then."""
        needed = {
            number: names
            for number, names in self._entries.items()
            if number >= done or any(name in existing for name in names)
        }
        if len(self._entries) > 2 * len(needed) + SLACK:
            self._replace(needed, self._newest)

    def _read(self) -> None:
        content = self._path.read_bytes()
        self._size = content.rfind(b"\n") + 1
        lines = content[: self._size].splitlines()
        try:
            head = json.loads(lines[0])
            if head["format"] > LOG_FORMAT:
                msg = f"`{self._path}` has format {head['format']}; this version reads up to {LOG_FORMAT}"
                raise CheckpointError(msg)
            self._entries = dict(map(_parse, lines[1:]))
            self._newest = max(self._entries, default=head["newest"])
        except (ValueError, LookupError, TypeError) as problem:
            msg = f"`{self._path}` cannot be read: {problem!r}; copy it back, or begin with a new checkpoint"
            raise CheckpointError(msg) from problem

    def _replace(self, entries: dict[int, tuple[str, ...]], newest: int) -> None:
        """Replace the file; the number of its newest entry goes on where it was."""
        head = json.dumps({"format": LOG_FORMAT, "newest": newest}).encode() + b"\n"
        lines = [head, *(_render(number, names) for number, names in sorted(entries.items()))]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, iter(lines))
        self._entries, self._newest, self._size = dict(entries), newest, sum(map(len, lines))


def read_entries(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the numbered entries of a log, without changing it: for whoever looks at it from outside."""
    log = FileLog(path)
    yield from ((number, log.get(number)) for number in sorted(log._entries))  # noqa: SLF001 - of this module


def _render(number: int, names: Sequence[str]) -> bytes:
    return json.dumps({"n": number, "files": list(names)}).encode() + b"\n"


def _parse(line: bytes) -> tuple[int, tuple[str, ...]]:
    entry = json.loads(line)
    return int(entry["n"]), tuple(map(str, entry["files"]))
