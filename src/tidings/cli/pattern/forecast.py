"""`tidings pattern forecast`: alarms as events come, and at the end how likely each pattern is.

With `--learn` the model is written at the end, or when Ctrl-C stops the run between two batches.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.input_files import open_events
from tidings.cli.pattern.detector_input import DetectorInput
from tidings.cli.pattern.event_stream import EventStream
from tidings.cli.pattern.rows import format_standing_json, format_standing_rows, is_table, make_forecast_writer
from tidings.cli.pattern.saved_files import check_target, load_model, save_model, warn_of_uncounted

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.pattern.pattern_origin import PatternOrigin
    from tidings.forecast import Detector


def run(origin: PatternOrigin, events: str, *, learn: bool, save_to: Path | None, keys: int, **rule: Any) -> None:
    """Forecast the patterns, print alarms and final probabilities, and save what was learned.

    `rule` says when a forecast is written: `tell` and `step`.
    """
    started, options = time.perf_counter(), origin.options
    with open_events(events, form=options.form, dead_letters=options.dead_letters) as ([file], letters):
        if save_to is not None:
            check_target(save_to, "model")
        detector = _build_detector(origin, learn=learn, **rule)
        writer, reader = make_forecast_writer(detector, as_json=options.as_json), DetectorInput(detector, letters)
        stream = EventStream(detector, writer, reader, find_records=lambda _: detector.latest_forecasts)
        save = None if save_to is None else partial(_save_learned, detector, save_to)
        hint = f"what was learned is in `{save_to}`"
        stream.run(file, lambda: stream.pass_time(detector.latest_time), save, hint)
    reader.warn(options.dead_letters)
    _print_standing(detector, keys, as_json=options.as_json)
    if not options.quiet:
        suffix = f"; the model is in `{save_to}`" if save_to else ""
        results = f"{writer.count:,} forecasts told, {reader.detections:,} detections"
        stream.note_summary(results, started, suffix)


def _build_detector(origin: PatternOrigin, *, learn: bool, **rule: Any) -> Detector:
    options = origin.options
    model = None if options.model is None else load_model(options.model)
    plan = {"horizon": options.horizon, "threshold": options.threshold, **rule}
    detector = origin.build_detector(model=model, learn=learn, **plan)
    if model is not None and not learn:
        warn_of_uncounted(model, detector)
    return detector


def _save_learned(detector: Detector, path: Path) -> None:
    assert detector.model is not None
    save_model(detector.model, path)


def _print_standing(detector: Detector, keys: int, *, as_json: bool) -> None:
    """Print how likely each pattern is after the last event."""
    format_standing = format_standing_rows if is_table(as_json=as_json) else format_standing_json
    for name in detector:
        *started, others = detector.forecast(name)  # keys with a partial match, then all others
        likeliest = sorted(started, key=lambda forecast: -forecast.probability)[:keys]
        for line in format_standing([*likeliest, others], len(started) - len(likeliest)):
            render.write(line)
