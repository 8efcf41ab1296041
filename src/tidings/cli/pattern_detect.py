"""`tidings pattern detect`: which patterns happen in a file of events, told as the events come.

Events go through in batches, each written out and flushed before the next is read, so memory stays small and pipes
flow. A bad event never stops the rest. With `--save-state` the run ends between two batches, whatever ends it:
then the state holds exactly the events whose detections are out.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tidings.cli import render
from tidings.cli.match import kept_letters
from tidings.cli.pattern_events import Reading
from tidings.cli.pattern_files import check_place, save
from tidings.cli.pattern_stop import stoppable
from tidings.cli.pattern_told import Told, told
from tidings.lang.patterns.durations import shown_duration
from tidings.matcher.files import Form, RowFile
from tidings.patterns import Detector
from tidings.patterns.overview import has_begun, latest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.cli.options import FileForm
    from tidings.cli.pattern_events import Left
    from tidings.cli.pattern_files import Source
    from tidings.matcher.rows import Row
    from tidings.patterns import Detection

SHOWN = 5
"""Bad and late events told in words, of each kind; all of them go to the file of `--dead-letters`."""

SECOND = 1_000_000
"""Microseconds."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What happens at the end, and what is left of the run."""

    until: datetime | None
    save_state: Path | None
    dead_letters: Path | None
    quiet: bool


@dataclass(slots=True)
class Tally:
    """What was done, for the closing words."""

    events: int = 0
    detections: int = 0
    dead: list[str] = field(default_factory=list)  # the first few of each, in words
    late: list[str] = field(default_factory=list)
    dead_count: int = 0
    late_count: int = 0
    behind: int = 0  # microseconds: the lateness that would have taken all


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
        work = Work(detector, Reading(detector), told(detector, as_json=as_json), letters)
        _through(work, stack, file, ends)
    _close(work, time.perf_counter() - started, ends)


@dataclass(slots=True)
class Work:
    """A run: events in, lines out."""

    detector: Detector
    reading: Reading
    told: Told
    letters: TextIO | None
    tally: Tally = field(default_factory=Tally)

    def take(self, batch: list[Row]) -> None:
        """Take a batch; when it is over, all that it completes is out."""
        read = self.reading.read(batch)
        before = latest(self.detector)
        found = self.detector.detect_many(read.events, on_error="collect")
        dead = sorted([*read.dead, *read.refused(found.dead_letters)], key=lambda left: left.row.number)
        self._tell(found)
        self.tally.events += len(batch)
        self.tally.dead_count += len(dead)
        self.tally.late_count += len(found.late)
        self._leave(dead, self.tally.dead)
        if found.late:
            lost = {letter.index for letter in found.dead_letters}
            late, behind = read.late(lost, before, self.detector.lateness)
            self.tally.behind = max(self.tally.behind, behind)
            self._leave(late, self.tally.late)

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

    def _leave(self, left: list[Left], first: list[str]) -> None:
        for one in left:
            if len(first) < SHOWN:
                first.append(f"{one.row.place}: {one.reason}")
            if self.letters is not None:
                letter = {"event": one.id, "reason": one.reason, "row": one.row.raw}
                self.letters.write(render.as_json(letter) + "\n")


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
    kept = f"they are in `{ends.dead_letters}`" if ends.dead_letters else "--dead-letters FILE keeps them all"
    if tally.dead_count:
        render.warning("\n".join([*_about(tally.dead, tally.dead_count, tally.events, "could not be read"), kept]))
    if tally.late_count:
        way_out = f"--lateness {_rounded(tally.behind)} would have put them in order"
        render.warning("\n".join([*_about(tally.late, tally.late_count, tally.events, "came late"), way_out]))
    for problem in _losses(detector):
        render.warning(problem)
    if not ends.quiet:
        words = f"{tally.detections:,} detections, {tally.late_count:,} late, {tally.dead_count:,} dead letters"
        saved = f"; the state is in `{ends.save_state}`" if ends.save_state else ""
        render.note(f"{tally.events:,} events, {len(detector):,} patterns: {words} ({seconds:.1f} s){saved}")


def _about(first: list[str], count: int, events: int, what: str) -> Iterator[str]:
    yield f"{count:,} of {events:,} events {what} and were not taken"
    yield from (f"  {reason}" for reason in first)
    if count > len(first):
        yield f"  and {count - len(first):,} more"


def _rounded(behind: int) -> str:
    """Return a span that may be typed as it stands, in whole seconds where it is longer than one."""
    whole = -(-behind // SECOND) * SECOND if behind > SECOND else behind
    return shown_duration(whole).replace(" ", "")


def _losses(detector: Detector) -> Iterator[str]:
    if detector.dropped:
        yield (
            f"{detector.dropped:,} partial matches were given up, the oldest of keys that had more than twice"
            f" {detector.partials:,} at one step; `within` bounds them, --partials keeps more"
        )
    if detector.cut:
        yield f"{detector.cut:,} times an event completed more matches than a pattern's limit, which cut them short"
