"""`tidings pattern detect`: which patterns happen in a file of events, reported as the events come."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.input_files import open_events
from tidings.cli.pattern.detector_input import DetectorInput
from tidings.cli.pattern.event_stream import EventStream
from tidings.cli.pattern.rows import make_detection_writer
from tidings.cli.pattern.saved_files import check_target, save_state

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from tidings.cli.pattern.pattern_origin import PatternOrigin


def run(origin: PatternOrigin, events: str, *, until: datetime | None, save_to: Path | None) -> None:
    """Detect the patterns, print the detections, and save the state."""
    started, options = time.perf_counter(), origin.options
    with open_events(events, form=options.form, dead_letters=options.dead_letters) as ([file], letters):
        if save_to is not None:
            check_target(save_to, "detector's state")
        detector = origin.open_detector()
        if detector.has_begun and not detector.event_id:
            reason = "events have no ids and are named by line number, as in the saved state, so the numbers repeat"
            render.warn(f"{reason}; --event-id FIELD would tell them apart")
        writer = make_detection_writer(detector, as_json=options.as_json)
        stream = EventStream(detector, writer, DetectorInput(detector, letters), find_records=list)

        def finish() -> None:
            # A stream that is saved is not over: time passes no further than it was asked to.
            stream.pass_time(until, None if save_to else detector.latest_time)

        save = None if save_to is None else partial(save_state, detector, save_to)
        stream.run(file, finish, save, f"go on with: --state {save_to}")
    stream.reader.warn(options.dead_letters)
    if not options.quiet:
        suffix = f"; the state is in `{save_to}`" if save_to else ""
        stream.note_summary(f"{stream.reader.detections:,} detections", started, suffix)
