"""`tidings pattern forecast`: alarms as events come, and at the end how likely each pattern is.

Events go through in batches, as they do in `detect`: what a batch gives rise to is out before the next is read. With
`--learn` the model is written at the end, or when Ctrl-C stops the run between two batches.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.match.match import kept_letters
from tidings.cli.pattern.event_rows import Reading
from tidings.cli.pattern.forecast_output import Told, told
from tidings.cli.pattern.interrupt import stoppable
from tidings.cli.pattern.model_files import check_place, read, warn_of_unknown, write
from tidings.cli.pattern.tally import Tally
from tidings.forecast import Detector
from tidings.matcher.loading.row_files import Form, RowFile
from tidings.patterns.overview import latest

if TYPE_CHECKING:
    from tidings.cli.options import FileForm
    from tidings.cli.pattern.pattern_origin import Source
    from tidings.forecast import Forecasts
    from tidings.matcher.loading.row_readers import Row


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is foretold and with which model, and what is left of the run."""

    plan: dict[str, Any]
    model: Path | None
    learn: bool
    save: Path | None
    keys: int
    dead_letters: Path | None
    quiet: bool


def run(source: Source, events: str, wanted: Wanted, *, form: FileForm | None, as_json: bool) -> None:
    """Forecast, print alarms and how things stand, and save what was learned."""
    started = time.perf_counter()
    with ExitStack() as stack:
        file = stack.enter_context(RowFile(events, form=Form(form) if form else None))
        letters = stack.enter_context(kept_letters(wanted.dead_letters, events)) if wanted.dead_letters else None
        if wanted.save is not None:
            check_place(wanted.save)
        model = None if wanted.model is None else read(wanted.model)
        detector = source.new(partial(Detector, model=model, learn=wanted.learn), **wanted.plan)
        if model is not None and not wanted.learn:
            warn_of_unknown(model, detector)
        work = Work(detector, told(detector, as_json=as_json), Tally(letters))
        _through(work, stack, file, wanted)
    work.tally.warn(detector, wanted.dead_letters)
    work.standing(wanted.keys)
    _close(work, time.perf_counter() - started, wanted)


@dataclass(slots=True)
class Work:
    """A run: events in, lines out."""

    detector: Detector
    told: Told
    tally: Tally
    alarms: int = 0
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        """Look at what the detector asks of events."""
        self.reading = Reading(self.detector)

    def take(self, batch: list[Row]) -> None:
        """Take a batch; when it is over, all that is told of it is out."""
        read = self.reading.read(batch)
        before = latest(self.detector)
        found = self.detector.detect_many(read.events, on_error="collect")
        self._tell(found.forecasts)
        self.tally.detections += len(found)
        self.tally.take(read, found, before=before, lateness=self.detector.lateness)

    def end(self) -> None:
        """Take the events that wait for their turn, and let time pass to the last one."""
        moment = latest(self.detector)
        if moment is not None:
            self.tally.detections += len(self.detector.on_time(moment))
            self._tell(self.detector.foretold)

    def standing(self, keys: int) -> None:
        """Tell how likely each pattern is after the last event."""
        for name in self.detector:
            found = self.detector.forecast(name)
            begun, others = found[:-1], found[-1]  # keys that have begun something, then all others
            likeliest = sorted(begun, key=lambda one: -one.probability)[:keys]
            for line in self.told.standing([*likeliest, others], len(begun) - len(likeliest)):
                render.out(line)

    def _tell(self, forecasts: Forecasts) -> None:
        lines = [self.told.line(one) for one in forecasts]
        if lines:
            render.out("\n".join([*(self.told.head() if not self.alarms else []), *lines]))
        self.alarms += len(lines)


def _through(work: Work, stack: ExitStack, file: RowFile, wanted: Wanted) -> None:
    stop = stack.enter_context(stoppable(gently=wanted.save is not None))
    batches = stack.enter_context(render.progress(file, "events", beside_output=True))
    try:
        for batch in batches:
            work.take(batch)
            stop.check()
        work.end()
    except KeyboardInterrupt:
        if wanted.save is not None and stop.between_batches:
            _save(work, wanted.save)
            render.note(f"stopped after {work.tally.events:,} events; what was learned is in `{wanted.save}`")
        raise
    if wanted.save is not None:
        _save(work, wanted.save)


def _save(work: Work, path: Path) -> None:
    model = work.detector.model
    assert model is not None
    write(model, path)


def _close(work: Work, seconds: float, wanted: Wanted) -> None:
    if wanted.quiet:
        return
    tally = work.tally
    saved = f"; the model is in `{wanted.save}`" if wanted.save else ""
    words = f"{work.alarms:,} forecasts told, {tally.detections:,} detections, {tally.left} ({seconds:.1f} s){saved}"
    render.note(f"{tally.events:,} events, {len(work.detector):,} patterns: {words}")
