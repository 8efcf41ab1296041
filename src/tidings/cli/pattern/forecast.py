"""`tidings pattern forecast`: alarms as events come, and at the end how likely each pattern is.

With `--learn` the model is written at the end, or when Ctrl-C stops the run between two batches.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.pattern.event_stream import EventStream, SavePoint, open_events, run_stream
from tidings.cli.pattern.model_files import check_model_target, load_model, save_model, warn_of_uncounted
from tidings.cli.pattern.rows import is_table, make_forecast_writer, standing_to_json, standing_to_table
from tidings.cli.pattern.tally import EventTally

if TYPE_CHECKING:
    from tidings.cli.pattern.pattern_origin import PatternOrigin
    from tidings.forecast import Detector
    from tidings.forecast.forecasts import EventForecast


@dataclass(frozen=True, slots=True)
class Forecasting:
    """What `forecast` has of its own: when forecasts are written, whether it learns, and how many keys end it."""

    tell: str
    step: float
    learn: bool
    save: Path | None
    keys: int


def run(origin: PatternOrigin, events: str, task: Forecasting) -> None:
    """Forecast the patterns, print alarms and final probabilities, and save what was learned."""
    started, options = time.perf_counter(), origin.options
    with open_events(events, options) as (file, letters):
        if task.save is not None:
            check_model_target(task.save)
        detector = _open_detector(origin, task)
        writer = make_forecast_writer(detector, as_json=options.as_json)
        stream = EventStream(detector, writer, EventTally(letters), find_records=lambda _: detector.latest_forecasts)
        save_point = None
        if task.save is not None:
            save_point = SavePoint(partial(_save_learned, detector, task.save), f"what was learned is in `{task.save}`")
        run_stream(stream, file, lambda: stream.pass_time(detector.latest_time), save_point)
    stream.tally.warn(detector, options.dead_letters)
    _print_standing(detector, task.keys, as_json=options.as_json)
    if not options.quiet:
        suffix = f"; the model is in `{task.save}`" if task.save else ""
        _note_summary(stream, time.perf_counter() - started, suffix)


def _open_detector(origin: PatternOrigin, task: Forecasting) -> Detector:
    options = origin.options
    model = None if options.model is None else load_model(options.model)
    plan = {"horizon": options.horizon, "threshold": options.threshold, "tell": task.tell, "step": task.step}
    detector = origin.build_detector(model=model, learn=task.learn, **plan)
    if model is not None and not task.learn:
        warn_of_uncounted(model, detector)
    return detector


def _print_standing(detector: Detector, keys: int, *, as_json: bool) -> None:
    """Print how likely each pattern is after the last event."""
    format_standing = standing_to_table if is_table(as_json=as_json) else standing_to_json
    for name in detector:
        *started, others = detector.forecast(name)  # keys with a partial match, then all others
        likeliest = sorted(started, key=lambda forecast: -forecast.probability)[:keys]
        for line in format_standing([*likeliest, others], len(started) - len(likeliest)):
            render.write(line)


def _save_learned(detector: Detector, path: Path) -> None:
    assert detector.model is not None
    save_model(detector.model, path)


def _note_summary(stream: EventStream[EventForecast], seconds: float, suffix: str) -> None:
    tally, forecasts = stream.tally, stream.writer.count
    counts = f"{forecasts:,} forecasts told, {tally.detections:,} detections, {tally.losses} ({seconds:.1f} s){suffix}"
    render.note(f"{tally.events:,} events, {len(stream.detector):,} patterns: {counts}")
