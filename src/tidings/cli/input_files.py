"""Files that commands read: text, events, and the events among them that cannot be taken, kept as dead letters."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tidings.algebra.law.raw_values import iterate_leaves
from tidings.cli import render
from tidings.errors import BadEvent, FileError
from tidings.matcher.loading.row_files import RowFile
from tidings.matcher.loading.row_readers import Row, refuse_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.cli.options import FileForm

MAX_SHOWN = 5
"""Rejected events that a warning names; all of them go to the file of `--dead-letters`."""


def read_text(path: str, name: str) -> str:
    """Return the text of a file, or with `-` of standard input; `name` is what an error calls it."""
    with refuse_failure(f"read {name}", ValueError):
        if path == "-" and sys.stdin is None:
            raise OSError("it is closed")  # noqa: EM101 - becomes the reason
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        msg = f"cannot read {name}: it is not UTF-8 text (byte {problem.start})"
        raise FileError(msg) from problem


# Events -----------------------------------------------------------------------------------------


@contextmanager
def open_events(
    *events: str, form: FileForm | None, dead_letters: Path | None
) -> Iterator[tuple[list[RowFile], TextIO | None]]:
    """Open files of events and that of dead letters: before anything is compiled, so that a wrong name is refused."""
    with ExitStack() as stack:
        files = [stack.enter_context(RowFile(name, form=form)) for name in events]
        yield files, None if dead_letters is None else stack.enter_context(_open_dead_letters(dead_letters, events))


@contextmanager
def _open_dead_letters(path: Path, events: tuple[str, ...]) -> Iterator[TextIO]:
    try:
        for name in events:
            if name != "-" and path.exists() and path.samefile(name):
                article = "the" if name == events[0] else "a"
                msg = f"`{path}` is {article} file of events; give the dead letters a file of their own"
                raise FileError(msg)
        with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as problem:
        msg = f"cannot write the dead letters to `{path}`: {problem.strerror}"
        raise FileError(msg) from problem


def read_event_id(row: Row, event_id: str | None) -> object:
    """Return the event's id: the value of the field `event_id`, or without such a field the number of its line."""
    if row.values is None:
        raise BadEvent(row.problem, attribute=None)
    if event_id is None:
        return row.number
    values = list(iterate_leaves(row.values, tuple(event_id.split("."))))
    # An id is what JSON writes as a scalar.
    is_id = len(values) == 1 and not isinstance(values[0], dict | list | None)
    if not is_id or (isinstance(values[0], float) and not isfinite(values[0])):
        msg = f"the event has no single value `{event_id}`, which --event-id names"
        raise BadEvent(msg, attribute=event_id)
    return values[0]


# Rejected events --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """An event that was not taken, and why."""

    id: object
    reason: str
    row: Row


@dataclass(slots=True)
class Rejections:
    """Events that were not taken for one `problem`: their number and the first few; all are written to `letters`."""

    problem: str
    letters: TextIO | None
    count: int = 0
    first: list[str] = field(default_factory=list)

    def record(self, rows: Iterable[RejectedRow], *, file: str = "") -> None:
        """Count the rows; `file` is the prefix of line numbers where there are several files."""
        for rejected in sorted(rows, key=lambda rejected: rejected.row.number):
            self.count += 1
            if len(self.first) < MAX_SHOWN:
                self.first.append(f"{file}{rejected.row.place}: {rejected.reason}")
            if self.letters is not None:
                letter = {"event": rejected.id, "reason": rejected.reason, "row": rejected.row.raw}
                self.letters.write(render.to_json(letter) + "\n")

    def warn(self, events: int, hint: str) -> None:
        """Warn of the rows, if there are any, among so many events: the first of them, and what to do."""
        if self.count:
            lines = [f"{self.count:,} of {events:,} events {self.problem}", *(f"  {reason}" for reason in self.first)]
            if self.count > len(self.first):
                lines.append(f"  and {self.count - len(self.first):,} more")
            render.warn("\n".join([*lines, hint]))


def describe_kept(dead_letters: Path | None) -> str:
    """Return where the dead letters are, or how to keep them."""
    return f"they are in `{dead_letters}`" if dead_letters else "--dead-letters FILE keeps them all"
