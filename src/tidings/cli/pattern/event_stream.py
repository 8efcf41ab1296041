"""A stream of events through a detector, in batches: each is written out before the next is read.

Memory stays small and pipes flow. A bad event never stops the rest. Where something is saved, the run ends between two
batches, whatever ends it: then the saved file has exactly the events whose rows are out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from tidings.cli import render
from tidings.cli.match.dead_letters import open_dead_letters
from tidings.cli.pattern.event_rows import EventRowReader
from tidings.cli.pattern.interrupt import catch_interrupts
from tidings.cli.pattern.tally import EventTally
from tidings.cli.row_writer import Record, RowWriter
from tidings.forecast import Detector
from tidings.matcher.loading.row_files import Form, RowFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from tidings.cli.pattern.options import PatternOptions
    from tidings.matcher.loading.row_readers import Row
    from tidings.patterns import Detections


@contextmanager
def open_events(events: str, options: PatternOptions) -> Iterator[tuple[RowFile, TextIO | None]]:
    """Open the file of events and that of dead letters: before anything is compiled, so that a wrong name is told."""
    with ExitStack() as stack:
        file = stack.enter_context(RowFile(events, form=Form(options.form) if options.form else None))
        letters = options.dead_letters
        yield file, None if letters is None else stack.enter_context(open_dead_letters(letters, events))


@dataclass(slots=True)
class EventStream(Generic[Record]):
    """Takes batches of rows; writes the records that `find_records` returns for each."""

    detector: Detector
    writer: RowWriter[Record]
    tally: EventTally
    find_records: Callable[[Any], Iterable[Record]]

    def take(self, batch: list[Row]) -> None:
        """Take a batch; when this returns, all its records are written."""
        read = EventRowReader(self.detector).read(batch)
        before = self.detector.latest_time
        detections: Detections = self.detector.detect_many(read.events, on_error="collect")
        self._write(detections)
        self.tally.take(read, detections, before=before, lateness=self.detector.lateness)

    def pass_time(self, *moments: Any) -> None:
        """Let time pass to the latest of these moments; those that are None do not count."""
        reached = [moment for moment in moments if moment is not None]
        if reached:
            self._write(self.detector.on_time(max(reached)))

    def _write(self, detections: Any) -> None:
        self.tally.detections += len(detections)
        self.writer.write(self.find_records(detections))


@dataclass(frozen=True, slots=True)
class SavePoint:
    """How a run is saved: what writes it, and what to say when Ctrl-C stops it."""

    save: Callable[[], None]
    hint: str


def run_stream(
    stream: EventStream[Any], file: RowFile, finish: Callable[[], None], save_point: SavePoint | None
) -> None:
    """Take all batches of a file, then `finish`, then save; Ctrl-C saves too, if it comes between two batches."""
    with (
        catch_interrupts(gently=save_point is not None) as interrupts,
        render.show_progress(file, "events", beside_output=True) as batches,
    ):
        try:
            for batch in batches:
                stream.take(batch)
                interrupts.check()
            finish()
        except KeyboardInterrupt:
            # A second Ctrl-C may have struck in the middle of a batch: then the file that is there is the true one.
            if save_point is not None and interrupts.between_batches:
                save_point.save()
                render.note(f"stopped after {stream.tally.events:,} events; {save_point.hint}")
            raise
        if save_point is not None:
            save_point.save()
