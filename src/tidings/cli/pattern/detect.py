"""`tidings pattern detect`: which patterns happen in a file of events, told as the events come.

Events go through in batches, each written out and flushed before the next is read, so memory stays small and pipes
flow. A bad event never stops the rest. With `--save-state` the run ends between two batches, whatever ends it:
then the state holds exactly the events whose detections are out.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.match.match import kept_letters
from tidings.cli.pattern.detection_output import Told, told
from tidings.cli.pattern.event_rows import Reading
from tidings.cli.pattern.interrupt import stoppable
from tidings.cli.pattern.pattern_origin import check_place, save
from tidings.cli.pattern.tally import Tally
from tidings.forecast import Detector
from tidings.matcher.loading.row_files import Form, RowFile
from tidings.patterns.overview import has_begun, latest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.cli.options import FileForm
    from tidings.cli.pattern.pattern_origin import Source
    from tidings.matcher.loading.row_readers import Row
    from tidings.patterns import Detection


@dataclass(frozen=True, slots=True)
class Ends:
    """What happens at the end, and what is left of the run."""

    until: datetime | None
    save_state: Path | None
    dead_letters: Path | None
    quiet: bool


def run(source: Source, events: str, ends: Ends, *, form: FileForm | None, as_json: bool) -> None:
    """Detect, print what is found, and save the state."""
    started = time.perf_counter()
    with ExitStack() as stack:
        # The events are opened first: a wrong name is told before anything is compiled.
        file = stack.enter_context(RowFile(events, form=Form(form) if form else None))
        letters = stack.enter_context(kept_letters(ends.dead_letters, events)) if ends.dead_letters else None
        if ends.save_state is not None:
            check_place(ends.save_state)
        detector = source.detector()
        _warn_of_lines(detector)
        work = Work(detector, Reading(detector), told(detector, as_json=as_json), Tally(letters))
        _through(work, stack, file, ends)
    _close(work, time.perf_counter() - started, ends)


@dataclass(slots=True)
class Work:
    """A run: events in, lines out."""

    detector: Detector
    reading: Reading
    told: Told
    tally: Tally

    def take(self, batch: list[Row]) -> None:
        """Take a batch; when it is over, all that it completes is out."""
        read = self.reading.read(batch)
        before = latest(self.detector)
        found = self.detector.detect_many(read.events, on_error="collect")
        self._tell(found)
        self.tally.take(read, found, before=before, lateness=self.detector.lateness)

    def pass_time(self, until: datetime | None, *, over: bool) -> None:
        """Let time pass to where it was asked to; when the stream is over, at least to its last event."""
        moments = [moment for moment in (until, latest(self.detector) if over else None) if moment is not None]
        if moments:
            self._tell(self.detector.on_time(max(moments)))

    def _tell(self, found: Iterable[Detection]) -> None:
        lines = [self.told.line(one) for one in found]
        if lines:
            render.out("\n".join([*(self.told.head() if not self.tally.detections else []), *lines]))
        self.tally.detections += len(lines)


def _through(work: Work, stack: ExitStack, file: RowFile, ends: Ends) -> None:
    saving = ends.save_state is not None
    stop = stack.enter_context(stoppable(gently=saving))
    batches = stack.enter_context(render.progress(file, "events", beside_output=True))
    try:
        for batch in batches:
            work.take(batch)
            stop.check()
        work.pass_time(ends.until, over=not saving)
    except KeyboardInterrupt:
        # A second Ctrl-C may have struck in the middle of a batch: then the old state is the true one.
        if ends.save_state is not None and stop.between_batches:
            save(work.detector, ends.save_state)
            render.note(f"stopped after {work.tally.events:,} events; go on with: --state {ends.save_state}")
        raise
    if ends.save_state is not None:
        save(work.detector, ends.save_state)


# Words ------------------------------------------------------------------------------------------


def _warn_of_lines(detector: Detector) -> None:
    if has_begun(detector) and not detector.event_id:
        render.warning(
            "events are called by their lines, and so were those before; --event-id FIELD would tell them apart"
        )


def _close(work: Work, seconds: float, ends: Ends) -> None:
    tally, detector = work.tally, work.detector
    tally.warn(detector, ends.dead_letters)
    if not ends.quiet:
        saved = f"; the state is in `{ends.save_state}`" if ends.save_state else ""
        words = f"{tally.detections:,} detections, {tally.left} ({seconds:.1f} s){saved}"
        render.note(f"{tally.events:,} events, {len(detector):,} patterns: {words}")
