"""`tidings pattern train`: a model of patterns from files of events."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.pattern.history import Batches, Careful, History
from tidings.cli.pattern.model_files import check_place, read, write
from tidings.forecast import Model
from tidings.forecast.learning.training import extend_model
from tidings.matcher.plan import Sheet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.cli.pattern.pattern_origin import Source
    from tidings.forecast.model import CountedPattern
    from tidings.matcher.loading.row_files import RowFile

__all__ = ["History", "Wanted", "run"]

HEAD = ("pattern", "mode", "states", "cells", "counted", "how")
"""The columns."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where the model goes and begins, how it counts, and what is said of it."""

    output: Path
    start: Path | None
    counting: dict[str, Any]
    horizons: tuple[str, ...]
    quiet: bool
    as_json: bool


def run(source: Source, history: History, wanted: Wanted) -> None:
    """Train, write the model, and say what it knows."""
    started = time.perf_counter()
    with history.opened() as (files, tally):
        check_place(wanted.output)
        model = Model(**wanted.counting) if wanted.start is None else read(wanted.start)
        detector = source.new(Careful)
        batches = Batches(detector, tally)
        for stream in _streams(files, apart=history.apart):
            events = batches.of(stream, named=len(files) > 1)
            model = extend_model(model, detector, events, horizons=wanted.horizons)
    size = write(model, wanted.output)
    tally.warn(detector, history.dead_letters)
    if wanted.as_json:
        render.out_json(_summary(model, tally.events, size))
    elif not wanted.quiet:
        render.sheet(_sheet(model))
        words = f"{tally.events:,} events, {tally.left} ({time.perf_counter() - started:.1f} s)"
        render.note(f"{words}; the model is in `{wanted.output}`, {size:,} bytes")


def _streams(files: list[RowFile], *, apart: bool) -> Iterator[list[RowFile]]:
    if apart:
        yield from ([file] for file in files)
    else:
        yield files


def _sheet(model: Model) -> Sheet:
    rows = tuple(_row(one) for one in model.patterns.values())
    title = f"{len(model):,} pattern{'s' * (len(model) != 1)} counted over {model.now[0]:,} events"
    return Sheet(title, HEAD, rows, frozenset({2, 3, 4}))


def _row(one: CountedPattern) -> tuple[str, ...]:
    course = one.course
    how = "approximate" if course.approximate else f"exact, last {course.depth} events" if course.depth else "exact"
    return one.name, str(one.mode), f"{len(course.states):,}", f"{course.cells:,}", f"{_counted(one):,.0f}", how


def _counted(one: CountedPattern) -> float:
    """Return how many events were counted for a pattern: of a key each, where it has one."""
    return float(one.counts.moves.sum())


def _summary(model: Model, events: int, size: int) -> dict[str, Any]:
    patterns = [
        {
            "pattern": one.name,
            "mode": str(one.mode),
            "states": len(one.course.states),
            "cells": one.course.cells,
            "counted": _counted(one),
            "approximate": one.course.approximate,
        }
        for one in model.patterns.values()
    ]
    return {"patterns": patterns, "events": events, "events_of_the_model": model.now[0], "bytes": size}
