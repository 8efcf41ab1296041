"""What becomes of files of events after the pipeline has read them: kept for a while, folded together, removed.

A file that is read still serves those who look back (`recent`). Many small files make listing the folder slow, for the
pipeline too, so beyond `TidyTuning.most` of them the older ones are put together in `.read`, where the pipeline does
not look. Several processes may tidy at once; a lock lets one of them do it. A crash between folding files and removing
them leaves some events twice in what is looked back at, and nowhere else.
"""

from __future__ import annotations

import fcntl
import logging
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.service.events.backlog import READ_MARGIN
from tidings.service.events.event_files import EventFile, get_number, list_files, write_file
from tidings.service.events.recent import FOLDED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta
    from pathlib import Path

    from tidings.service.store.base import StatusBoard

PIPELINE, NEWEST = "pipeline", "events_read"
"""The name of the pipeline's report, and of the fact that has the newest file of its committed batches."""

WAY_OUT = "let the user of the service write there (chown, chmod u+rwx)"
"""What is to be done about a folder that cannot be written to."""

LOGGER = logging.getLogger("tidings.service")
"""Where it is said."""

_LOCK = ".lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class TidyTuning:
    """How many files that were read may lie in the folder, and how large one that others were folded into becomes."""

    most: int = 5_000
    left: int = 1_000
    folded_size: int = 64_000_000
    abandoned_seconds: float = 3600.0


def find_read(statuses: StatusBoard, *, margin: int = READ_MARGIN) -> int:
    """Return the number up to which all files were surely read; 0 where the pipeline has not said.

    Without a margin, it is that of the newest file that was read.
    """
    for report in statuses.list():
        if report.name == PIPELINE:
            number = get_number(str(report.facts.get(NEWEST) or ""))
            return 0 if number is None else max(0, number - margin)
    return 0


class FileKeeper:
    """The folder of events, as housekeeping sees it."""

    def __init__(self, folder: Path, *, kept: timedelta, tuning: TidyTuning | None = None) -> None:
        self._folder, self._kept, self._tuning = folder, kept, tuning or TidyTuning()

    def tidy(self, read: int, now: datetime) -> int:
        """Remove and fold files up to the number `read`; return how many files went away.

        A folder that cannot be written to is reported, and tidied another time: other things are to be tidied too.
        """
        if not self._folder.is_dir():
            return 0
        try:
            with self._take_turn() as is_ours:
                return self._tidy(read, now) if is_ours else 0
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            LOGGER.warning("cannot tidy the folder of events `%s`: %s; %s", self._folder, reason, WAY_OUT)
            return 0

    def _tidy(self, read: int, now: datetime) -> int:
        oldest = int((now - self._kept).timestamp() * 1e9)
        done = sorted(file for file in list_files(self._folder) if file.number <= read)
        old = [file for file in done if file.number < oldest]
        self._remove(old)
        self._fold(done[len(old) :])
        self._sweep(now)
        return len(old)

    def _remove(self, files: list[EventFile]) -> None:
        for file in files:
            (self._folder / file.name).unlink(missing_ok=True)

    def _fold(self, files: list[EventFile]) -> None:
        """Put the older ones of too many files together."""
        if len(files) <= self._tuning.most:
            return
        folded = self._folder / FOLDED
        folded.mkdir(exist_ok=True)
        group: list[EventFile] = []
        size = 0
        for file in files[: -self._tuning.left]:
            if group and size + file.size > self._tuning.folded_size:
                self._fold_group(folded, group)
                group, size = [], 0
            group.append(file)
            size += file.size
        self._fold_group(folded, group)

    def _fold_group(self, folded: Path, group: list[EventFile]) -> None:
        contents = []
        for file in group:
            with suppress(FileNotFoundError):
                contents.append((self._folder / file.name).read_bytes())
        write_file(folded, group[0].name, contents)
        self._remove(group)

    def _sweep(self, now: datetime) -> None:
        """Remove folded files that are old, and what writers that were killed left behind."""
        seconds = {self._folder: self._tuning.abandoned_seconds, self._folder / FOLDED: self._kept.total_seconds()}
        for folder, age in seconds.items():
            for path in folder.glob("*" if folder.name == FOLDED else ".*.jsonl"):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < now.timestamp() - age:
                        path.unlink()

    @contextmanager
    def _take_turn(self) -> Iterator[bool]:
        """Tell whether no other process tidies now."""
        with (self._folder / _LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
