"""Where changes of subscriptions come from: a folder of change files, or a file that is watched.

A feed is asked with the position that the newest version was made at, and answers with what has changed since and the
new position. It keeps nothing that is not in the position: another process may ask next. A change file has a row for
each subscription, as JSON lines, CSV or Parquet: `id` and `filter` (and `notation`); without a filter the id is
removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tidings.errors import FileError, TidingsError
from tidings.matcher.admission import is_id
from tidings.matcher.files import RowFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.matcher.rows import Row

ENDINGS = (".jsonl", ".json", ".csv", ".parquet")
"""What change files are called; each may have `.gz` behind it."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a feed has to say: triples of id, filter and notation, ids to remove, and where it has read to."""

    added: list[tuple[Any, Any, str]]
    removed: list[Any]
    position: Mapping[str, Any]
    refused: list[tuple[Any, TidingsError]] = field(default_factory=list)


class Feed(Protocol):
    """A source of changes."""

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:
        """Return what has changed since a position; `current` are the ids in force."""
        ...


def feed_of(path: str | Path) -> Feed:
    """Return the feed of a path: a folder of change files, or one file that holds all subscriptions."""
    path = Path(path)
    return FileFeed(str(path)) if path.is_file() else FolderFeed(str(path))


@dataclass(frozen=True, slots=True)
class FolderFeed:
    """A folder to which change files are added, and applied once each, in the order of their names.

    A file must be complete when it gets its name: write it beside, with a dot in front, and rename it. It is read
    once: what it has of bad rows, or all of it when it is broken, is refused and told once, the other rows and files
    are in force. To mend it, add another file.
    """

    folder: str
    notation: str = "text"

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:  # noqa: ARG002 - a feed's shape
        """Read the files that have not been read."""
        seen = set(position.get("files", ()))
        there = sorted(path.name for path in _listed(Path(self.folder)))
        last: dict[Any, tuple[Any, str] | None] = {}
        refused: list[tuple[Any, TidingsError]] = []
        for name in there:
            if name not in seen:
                refused += _read(Path(self.folder, name), last, self.notation)
        return told_of(last, {"files": there} if there else {}, refused)


@dataclass(frozen=True, slots=True)
class FileFeed:
    """One file that holds all subscriptions: when it is another, those that it lacks are removed.

    A file of which something cannot be read removes nothing, and one without a row changes nothing: somebody may be
    writing it. Replace the file by a rename.
    """

    path: str
    notation: str = "text"

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:
        """Read the file if it is not the one that was read."""
        try:
            told = Path(self.path).stat()
        except OSError as problem:  # gone for a moment, while somebody replaces it: what was read stays in force
            return Changes([], [], position, [(None, FileError(f"cannot read `{self.path}`: {problem.strerror}"))])
        at = {"file": [told.st_mtime_ns, told.st_size, told.st_ino]}
        if position.get("file") == at["file"]:
            return Changes([], [], position)
        last: dict[Any, tuple[Any, str] | None] = {}
        refused = _read(Path(self.path), last, self.notation)
        if not last:  # what was read before stays in force
            empty: list[tuple[Any, TidingsError]] = [
                (None, FileError(f"`{self.path}` holds no subscription; what was read before stays in force"))
            ]
            return Changes([], [], at, refused or empty)
        found = told_of(last, at, refused)
        gone = found.removed if refused else [id for id in current if last.get(id) is None]
        return Changes(found.added, gone, at, refused)


def _listed(folder: Path) -> Iterator[Path]:
    try:
        for path in folder.iterdir():
            name = path.name.removesuffix(".gz")
            if not path.name.startswith((".", "_")) and name.endswith(ENDINGS) and path.is_file():
                yield path
    except FileNotFoundError:
        return


def _read(path: Path, last: dict[Any, Any], notation: str) -> list[tuple[Any, TidingsError]]:
    """Take a file's rows, of which later ones win; return those that are none."""
    refused: list[tuple[Any, TidingsError]] = []
    try:
        with RowFile(path) as file:
            for row in (row for batch in file for row in batch):
                problem = _problem(row)
                if problem is not None:
                    refused.append((None, FileError(f"{path.name}, {row.place}: {problem}")))
                else:
                    _take(row.values or {}, last, notation)
    except TidingsError as problem:
        refused.append((None, problem))
    return refused


def _take(values: Mapping[str, Any], last: dict[Any, Any], notation: str) -> None:
    id, text = values["id"], values.get("filter")
    last.pop(id, None)  # so that the order is that of the last word on each
    last[id] = None if text is None or text == "" else (text, values.get("notation") or notation)


def _problem(row: Row) -> str | None:
    if row.values is None:
        return row.problem
    if not is_id(row.values.get("id")):
        return "there is no `id` of text or an integer; a change has `id`, and `filter` unless it removes"
    return None


def told_of(last: Mapping[Any, Any], position: Mapping[str, Any], refused: list[tuple[Any, TidingsError]]) -> Changes:
    """Return the last word on each id as changes: a filter and its notation, or nothing, which removes."""
    added = [(id, *one) for id, one in last.items() if one is not None]
    return Changes(added, [id for id, one in last.items() if one is None], position, refused)
