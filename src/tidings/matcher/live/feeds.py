"""Where changes of subscriptions come from: a folder of change files, or a file that is watched.

A feed is asked with the position that the newest version was made at, and answers with every change since, in order,
and the new position. It folds nothing: a change that is refused must leave the one before it in force, and a feed
cannot know what is refused. It keeps nothing that is not in the position: another process may ask next. A change file
has a row for each subscription, as JSON lines, CSV or Parquet: `id` and `filter` (and `notation`); without a filter
the id is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tidings.errors import FileError, TidingsError
from tidings.matcher.admission import is_id
from tidings.matcher.live.change_rounds import ChangeStep
from tidings.matcher.loading.row_files import RowFile

ENDINGS = (".jsonl", ".json", ".csv", ".parquet")
"""What change files are called; each may have `.gz` behind it."""

NO_ID = "there is no `id` of text or an integer; a change has `id`, and `filter` unless it removes"


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes since a position in their order, also those that cannot be read, and the position after them."""

    steps: list[ChangeStep]
    position: Mapping[str, Any]


class Feed(Protocol):
    """A source of changes."""

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:
        """Return what has changed since a position; `current` are the ids in force."""
        ...


def open_feed(path: str | Path) -> Feed:
    """Return the feed of a path: a folder of change files, or one file that holds all subscriptions."""
    path = Path(path)
    return FileFeed(str(path)) if path.is_file() else FolderFeed(str(path))


@dataclass(frozen=True, slots=True)
class FolderFeed:
    """A folder to which change files are added, and applied once each, in the order of their names.

    A file must be complete when it gets its name: write it beside, with a dot in front, and rename it. It is read
    once. A bad row is refused and reported once, a broken file as a whole; all other rows and files are in force. To
    mend a file, add another one.
    """

    folder: str
    notation: str = "text"

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:  # noqa: ARG002 - a feed's shape
        """Read the files that have not been read."""
        read_names = set(position.get("files", ()))
        names = sorted(path.name for path in _list_files(Path(self.folder)))
        unread = (Path(self.folder, name) for name in names if name not in read_names)
        steps = [step for path in unread for step in _read(path, self.notation)]
        return Changes(steps, {"files": names} if names else {})


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
            status = Path(self.path).stat()
        except OSError as problem:  # gone for a moment, while somebody replaces it: what was read stays in force
            missing = FileError(f"cannot read `{self.path}`: {problem.strerror}")
            return Changes([ChangeStep(None, problem=missing)], position)
        new_position = {"file": [status.st_mtime_ns, status.st_size, status.st_ino]}
        if position.get("file") == new_position["file"]:
            return Changes([], position)
        steps = list(_read(Path(self.path), self.notation))
        mentioned = {step.id for step in steps if step.problem is None}
        if not mentioned:  # what was read before stays in force
            empty = FileError(f"`{self.path}` holds no subscription; what was read before stays in force")
            return Changes(steps or [ChangeStep(None, problem=empty)], new_position)
        whole = all(step.problem is None for step in steps)  # else what cannot be read may be any of them
        gone = [ChangeStep(id, removes=True) for id in current if id not in mentioned] if whole else []
        return Changes([*gone, *steps], new_position)


def _list_files(folder: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            name = path.name.removesuffix(".gz")
            if not path.name.startswith((".", "_")) and name.endswith(ENDINGS) and path.is_file():
                yield path


def _read(path: Path, notation: str) -> Iterator[ChangeStep]:
    """Yield a change for each row of a file, in order; a row that cannot be read is one with a problem."""
    try:
        with RowFile(path) as file:
            for row in (row for batch in file for row in batch):
                if row.values is None or not is_id(row.values.get("id")):
                    why = row.problem if row.values is None else NO_ID
                    yield ChangeStep(None, problem=FileError(f"{path.name}, {row.place}: {why}"))
                    continue
                text = row.values.get("filter")
                removes = text is None or text == ""
                yield ChangeStep(row.values["id"], text, row.values.get("notation") or notation, removes=removes)
    except TidingsError as error:
        yield ChangeStep(None, problem=error)
