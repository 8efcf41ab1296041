"""A stream of events through a detector, in batches: each is written out before the next is read.

Memory stays small and pipes flow. A bad event never stops the rest. Where something is saved, the run ends between two
batches, whatever ends it: then the saved file has exactly the events whose rows are out. So Ctrl-C waits: while the
command waits for input no batch is half done, and it stops at once; at any other moment the signal is remembered until
the batch is through. A second signal stops it at once, and nothing is saved then.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from tidings.cli import render
from tidings.cli.pattern.detector_input import DetectorInput
from tidings.cli.render import Record, RowWriter
from tidings.forecast import Detector
from tidings.matcher.loading.row_readers import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from types import FrameType

    from tidings.matcher.loading.row_files import RowFile
    from tidings.matcher.loading.row_readers import Row
    from tidings.patterns import Detections


@dataclass(slots=True)
class EventStream(Generic[Record]):
    """Takes batches of rows; writes the records that `find_records` returns for each."""

    detector: Detector
    writer: RowWriter[Record]
    reader: DetectorInput
    find_records: Callable[[Any], Iterable[Record]]

    def take(self, batch: list[Row]) -> None:
        """Take a batch; when this returns, all its records are written."""
        events, before = self.reader.read(batch), self.detector.latest_time
        detections: Detections = self.detector.detect_many(events, on_error="collect")
        self.writer.write(self.find_records(detections))
        self.reader.count(detections, before)

    def pass_time(self, *moments: datetime | None) -> None:
        """Let time pass to the latest of these moments; those that are None do not count."""
        times = [moment for moment in moments if moment is not None]
        if times:
            detections = self.detector.on_time(max(times))
            self.reader.detections += len(detections)
            self.writer.write(self.find_records(detections))

    def run(
        self, file: RowFile, finish: Callable[[], None], save: Callable[[], None] | None = None, hint: str = ""
    ) -> None:
        """Take all batches of a file, then `finish`, then `save`.

        Ctrl-C saves too, if it comes between two batches, and gives the hint.
        """
        with (
            catch_interrupts(gently=save is not None) as interrupts,
            render.show_progress(file, "events", beside_output=True) as batches,
        ):
            try:
                for batch in batches:
                    self.take(batch)
                    interrupts.check()
                finish()
            except KeyboardInterrupt:
                # A second Ctrl-C may have struck in the middle of a batch: then the file that is there is the true one.
                if save is not None and interrupts.between_batches:
                    save()
                    render.note(f"stopped after {self.reader.events:,} events; {hint}")
                raise
            if save is not None:
                save()

    def note_summary(self, results: str, started: float, suffix: str) -> None:
        """Print how many events, patterns and results there were, and the time since `started`."""
        counts = f"{results}, {self.reader.losses} ({time.perf_counter() - started:.1f} s){suffix}"
        render.note(f"{self.reader.events:,} events, {len(self.detector):,} patterns: {counts}")


# Signals ----------------------------------------------------------------------------------------


class Interrupts:
    """Signals so far; `between_batches` says whether the last one came while no batch was half done."""

    def __init__(self) -> None:
        self.pending = False
        self.between_batches = True

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if a signal is pending: called between two batches."""
        if self.pending:
            raise KeyboardInterrupt

    def handle(self, _signal: int, frame: FrameType | None) -> None:
        """Handle a signal: raise while input is waited for and at the second one, else wait for the batch."""
        waiting = frame is not None and frame.f_code is Lines.read_chunk.__code__
        self.between_batches = waiting or not self.pending
        if waiting or self.pending:
            raise KeyboardInterrupt
        self.pending = True


@contextmanager
def catch_interrupts(*, gently: bool) -> Iterator[Interrupts]:
    """Handle Ctrl-C and SIGTERM inside the block; without `gently` they keep their usual effect."""
    interrupts = Interrupts()
    if not gently or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
