"""`tidings pattern detect`: which patterns happen in a file of events, reported as the events come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.pattern.event_stream import EventStream, SavePoint, open_events, run_stream
from tidings.cli.pattern.pattern_origin import check_target, save_state
from tidings.cli.pattern.rows import make_detection_writer
from tidings.cli.pattern.tally import EventTally

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from tidings.cli.pattern.pattern_origin import PatternOrigin
    from tidings.forecast import Detector
    from tidings.patterns import Detection


def run(origin: PatternOrigin, events: str, *, until: datetime | None, save_to: Path | None) -> None:
    """Detect the patterns, print the detections, and save the state."""
    started, options = time.perf_counter(), origin.options
    with open_events(events, options) as (file, letters):
        if save_to is not None:
            check_target(save_to)
        detector = origin.open_detector()
        _warn_of_lines(detector)
        writer = make_detection_writer(detector, as_json=options.as_json)
        stream = EventStream(detector, writer, EventTally(letters), find_records=list)
        save_point = None if save_to is None else _make_save_point(detector, save_to)

        def finish() -> None:
            # A stream that is saved is not over: time passes no further than it was asked to.
            stream.pass_time(until, None if save_point else detector.latest_time)

        run_stream(stream, file, finish, save_point)
    stream.tally.warn(detector, options.dead_letters)
    if not options.quiet:
        suffix = f"; the state is in `{save_to}`" if save_to else ""
        _note_summary(stream, time.perf_counter() - started, suffix)


def _make_save_point(detector: Detector, path: Path) -> SavePoint:
    return SavePoint(lambda: save_state(detector, path), f"go on with: --state {path}")


def _warn_of_lines(detector: Detector) -> None:
    if detector.has_begun and not detector.event_id:
        render.warn(
            "events are called by their lines, and so were those before; --event-id FIELD would tell them apart"
        )


def _note_summary(stream: EventStream[Detection], seconds: float, suffix: str) -> None:
    tally = stream.tally
    counts = f"{tally.detections:,} detections, {tally.losses} ({seconds:.1f} s){suffix}"
    render.note(f"{tally.events:,} events, {len(stream.detector):,} patterns: {counts}")
