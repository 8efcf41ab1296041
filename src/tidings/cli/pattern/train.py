"""`tidings pattern train`: a model of patterns from files of events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.input_files import open_events
from tidings.cli.pattern.detector_input import DetectorInput
from tidings.cli.pattern.saved_files import check_target, load_model, save_model
from tidings.forecast import Model
from tidings.forecast.learning.training import extend_model
from tidings.matcher.plan import Sheet

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.pattern.options import PatternOptions
    from tidings.cli.pattern.pattern_origin import PatternOrigin
    from tidings.forecast.learning.counts import CountedPattern

COLUMNS = ("pattern", "mode", "states", "cells", "counted", "how")


def run(
    origin: PatternOrigin,
    events: list[str],
    *,
    output: Path,
    start: Path | None,
    separate_streams: bool,
    horizons: list[str],
) -> None:
    """Train a model, write it, and print what it has counted.

    It begins with the model of `start`, or empty; `separate_streams` makes each file a stream of its own; `horizons`
    are the spans of time that are counted directly.
    """
    started, options = time.perf_counter(), origin.options
    with open_events(*events, form=options.form, dead_letters=options.dead_letters) as (files, letters):
        check_target(output, "model")
        model = build_model(options, estimator=options.estimator.value) if start is None else load_model(start)
        detector = origin.build_detector()
        reader = DetectorInput(detector, letters)
        for stream in [[file] for file in files] if separate_streams else [files]:
            batches = reader.read_files(stream, show_names=len(files) > 1)
            model = extend_model(model, detector, batches, horizons=horizons, listener=reader.count)
    size = save_model(model, output)
    reader.warn(options.dead_letters)
    if options.as_json:
        render.write_json(_summarize(model, reader.events, size))
    elif not options.quiet:
        render.print_sheet(_build_sheet(model))
        counts = f"{reader.events:,} events, {reader.losses} ({time.perf_counter() - started:.1f} s)"
        render.note(f"{counts}; the model is in `{output}`, {size:,} bytes")


def build_model(options: PatternOptions, **settings: Any) -> Model:
    """Return an empty model that counts as the options say."""
    return Model(context=options.context, smoothing=options.smoothing, half_life=options.half_life, **settings)


def _build_sheet(model: Model) -> Sheet:
    rows = tuple(_build_row(counted) for counted in model.patterns.values())
    title = f"{len(model):,} pattern{'s' * (len(model) != 1)} counted over {model.now[0]:,} events"
    return Sheet(title, COLUMNS, rows, frozenset({2, 3, 4}))


def _build_row(counted: CountedPattern) -> tuple[str, ...]:
    course = counted.course
    method = "approximate" if course.approximate else f"exact, last {course.depth} events" if course.depth else "exact"
    sizes = f"{len(course.states):,}", f"{course.cells:,}", f"{counted.counts.moves.sum():,.0f}"
    return counted.name, str(counted.mode), *sizes, method


def _summarize(model: Model, events: int, size: int) -> dict[str, Any]:
    patterns = [
        {
            "pattern": counted.name,
            "mode": str(counted.mode),
            "states": len(counted.course.states),
            "cells": counted.course.cells,
            "counted": float(counted.counts.moves.sum()),  # the events of each key separately
            "approximate": counted.course.approximate,
        }
        for counted in model.patterns.values()
    ]
    return {"patterns": patterns, "events": events, "events_of_the_model": model.now[0], "bytes": size}
