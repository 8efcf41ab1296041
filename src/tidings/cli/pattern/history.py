"""Histories: files of events that are read in batches, whose bad and late events are left out and told of."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.match.match import kept_letters
from tidings.cli.options import FileForm
from tidings.cli.pattern.event_rows import Read, Reading
from tidings.cli.pattern.tally import Tally
from tidings.errors import FileError
from tidings.forecast import Detector
from tidings.matcher.loading.row_files import Form, RowFile
from tidings.patterns.overview import latest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from tidings.model import Event
    from tidings.patterns import Detections


class Careful(Detector):
    """A detector that leaves bad events out and tells of them; so does what is forked of it, for training."""

    heard: Callable[[Detections, datetime | None], None] | None = None

    def detect_many(self, events: Any, *, on_error: str = "collect") -> Detections:  # noqa: ARG002
        """Take events; those that cannot be read are told to whoever listens."""
        before = latest(self)
        found = super().detect_many(events, on_error="collect")
        if self.heard is not None:
            self.heard(found, before)
        return found


@dataclass(frozen=True, slots=True)
class History:
    """Files of events: one stream in this order, or (`apart`) a stream each."""

    files: tuple[str, ...]
    form: FileForm | None
    dead_letters: Path | None
    apart: bool = False

    @contextmanager
    def opened(self) -> Iterator[tuple[list[RowFile], Tally]]:
        """Open all of it: a wrong name is told before anything is done."""
        with ExitStack() as stack:
            form = Form(self.form) if self.form else None
            files = [stack.enter_context(RowFile(name, form=form)) for name in self.files]
            letters = None
            if self.dead_letters is not None:
                for name in self.files[1:]:
                    _refuse_same(self.dead_letters, name)
                letters = stack.enter_context(kept_letters(self.dead_letters, self.files[0]))
            yield files, Tally(letters)


def _refuse_same(path: Path, events: str) -> None:
    if events != "-" and path.exists() and path.samefile(events):
        msg = f"`{path}` is a file of events; give the dead letters a file of their own"
        raise FileError(msg)


class Batches:
    """The events of files for a careful detector, which says of each batch what it did not take."""

    def __init__(self, detector: Careful, tally: Tally) -> None:
        """Listen to the detector."""
        self._reading, self._tally = Reading(detector), tally
        self._lateness = detector.lateness
        self._read = Read()
        detector.heard = self._hear

    def of(self, files: list[RowFile], *, named: bool) -> Iterator[list[Event]]:
        """Yield batches of events, one file after the other."""
        for file in files:
            self._tally.file = f"{file.name}, " if named else ""
            with render.progress(file, "events") as rows:
                for batch in rows:
                    self._read = self._reading.read(batch)
                    yield self._read.events

    def _hear(self, found: Detections, before: datetime | None) -> None:
        self._tally.take(self._read, found, before=before, lateness=self._lateness)
        self._tally.detections += len(found)
