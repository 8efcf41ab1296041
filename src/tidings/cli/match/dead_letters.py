"""Events that cannot be taken: the file that keeps them with the reason, and the ids that name them."""

from __future__ import annotations

from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING

from tidings.algebra.law.event_reading import iterate_leaves
from tidings.cli import render
from tidings.errors import BadEvent, FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

    from tidings.matcher.loading.row_readers import Row

MAX_SHOWN = 5
"""Rejected events that a warning names; all of them go to the file of `--dead-letters`."""


@contextmanager
def open_dead_letters(path: Path, *events: str) -> Iterator[TextIO]:
    """Open the file of dead letters for writing; it must be none of the files of events that are read."""
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


def write_dead_letter(letters: TextIO, event: object, reason: str, row: Row) -> None:
    """Write an event that was not taken, as a line of JSON."""
    letters.write(render.to_json({"event": event, "reason": reason, "row": row.raw}) + "\n")


def describe_rejected(first: list[str], count: int, events: int, problem: str, hint: str) -> str:
    """Return the warning about `count` events of `events`: the problem, the first of them, and what to do."""
    lines = [f"{count:,} of {events:,} events {problem}", *(f"  {reason}" for reason in first)]
    if count > len(first):
        lines.append(f"  and {count - len(first):,} more")
    return "\n".join([*lines, hint])


def describe_kept(path: Path | None) -> str:
    """Return where the dead letters are, or how to keep them."""
    return f"they are in `{path}`" if path else "--dead-letters FILE keeps them all"


def read_event_id(row: Row, event_id: str | None) -> object:
    """Return the event's id: the value of the field `event_id`, or without such a field the number of its line."""
    if row.values is None:
        raise BadEvent(row.problem, attribute=None)
    if event_id is None:
        return row.number
    values = list(iterate_leaves(row.values, tuple(event_id.split("."))))
    if len(values) != 1 or not _is_id(values[0]):
        msg = f"the event has no single value `{event_id}`, which --event-id names"
        raise BadEvent(msg, attribute=event_id)
    return values[0]


def _is_id(value: object) -> bool:
    """Tell whether JSON writes the value as a scalar."""
    return not (value is None or isinstance(value, dict | list) or (isinstance(value, float) and not isfinite(value)))
