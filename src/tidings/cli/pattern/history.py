"""Histories: files of events read in batches for training and scoring; bad and late events are left out."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.match.dead_letters import open_dead_letters
from tidings.cli.options import FileForm
from tidings.cli.pattern.event_rows import EventRowReader, RowBatch
from tidings.cli.pattern.tally import EventTally
from tidings.matcher.loading.row_files import Form, RowFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tidings.forecast import Detector
    from tidings.model import Event
    from tidings.patterns import Detections


@dataclass(frozen=True, slots=True)
class History:
    """Files of events: one stream in this order, or (`apart`) a stream each."""

    files: tuple[str, ...]
    form: FileForm | None
    dead_letters: Path | None
    apart: bool = False

    @contextmanager
    def open(self) -> Iterator[tuple[list[RowFile], EventTally]]:
        """Open all files before any work, so that a wrong name is told at once."""
        with ExitStack() as stack:
            form = Form(self.form) if self.form else None
            files = [stack.enter_context(RowFile(name, form=form)) for name in self.files]
            letters = None
            if self.dead_letters is not None:
                letters = stack.enter_context(open_dead_letters(self.dead_letters, *self.files))
            yield files, EventTally(letters)


class HistoryReader:
    """Reads the events of files in batches, and counts those that a detector did not take."""

    def __init__(self, detector: Detector, tally: EventTally) -> None:
        """Read the events of a detector; it, or a run over its patterns, takes them."""
        self._reader, self._lateness = EventRowReader(detector), detector.lateness
        self._tally, self._batch = tally, RowBatch()

    def read_batches(self, files: list[RowFile], *, show_names: bool) -> Iterator[list[Event]]:
        """Yield batches of events, one file after the other; with `show_names` messages name the file."""
        for file in files:
            self._tally.file = f"{file.name}, " if show_names else ""
            with render.show_progress(file, "events") as batches:
                for batch in batches:
                    self._batch = self._reader.read(batch)
                    yield self._batch.events

    def count(self, detections: Detections, before: datetime | None) -> None:
        """Count the latest batch, which gave these detections; `before` is the latest time before it."""
        self._tally.take(self._batch, detections, before=before, lateness=self._lateness)
        self._tally.detections += len(detections)
