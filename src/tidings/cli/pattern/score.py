"""`tidings pattern score`: how good forecasts are on a history, beside the base rate and the paper's formulas."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import reduce
from math import isnan
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.cli import render
from tidings.cli.input_files import open_events
from tidings.cli.pattern.detector_input import DetectorInput
from tidings.cli.pattern.saved_files import load_model, warn_of_uncounted
from tidings.cli.pattern.train import build_model
from tidings.errors import TidingsError
from tidings.forecast import score
from tidings.forecast.prequential import BASE, prequential
from tidings.forecast.scoring.reliability import draw, load_figure, measure_reliability
from tidings.forecast.scoring.scores import AlarmTimes, compare_skill
from tidings.kernels.array_types import BoolArray, FloatArray
from tidings.matcher.plan import Sheet

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.pattern.options import PatternOptions
    from tidings.cli.pattern.pattern_origin import PatternOrigin
    from tidings.forecast import Detector
    from tidings.forecast.prequential import Trial
    from tidings.forecast.scoring.scores import Score
    from tidings.matcher.loading.row_files import RowFile
    from tidings.model import Event

COLUMNS = ("", "brier", "skill", "log loss", "auc", "precision", "recall", "f1", "mcc", "lead", "false")
"""`lead` is in events, `false` counts false alarms in 1,000 events."""

MAX_TABLES = 12
"""Patterns that have a table each; more have one table for all of them, and JSON has each."""


@dataclass(frozen=True, slots=True, eq=False)
class PatternScores:
    """Forecasts of one pattern, or of all, by estimator, with their outcomes and how matches were announced."""

    name: str
    y: BoolArray
    p: dict[str, FloatArray]
    matches: int
    unknown: int
    warnings: dict[str, AlarmTimes]


def run(origin: PatternOrigin, events: str, *, learn: bool, all_estimators: bool, plot: Path | None) -> None:
    """Score the forecasts, print tables or JSON, and draw the plot; with `all_estimators`, each is scored."""
    started, options = time.perf_counter(), origin.options
    if plot is not None:
        load_figure()  # refuses a plot without matplotlib before hours of work
    with open_events(events, form=options.form, dead_letters=options.dead_letters) as (files, letters):
        model = build_model(options) if options.model is None else load_model(options.model)
        detector = origin.build_detector()
        if not learn:
            warn_of_uncounted(model, detector)
        reader = DetectorInput(detector, letters)
        readable = _read_events(detector, reader, files)
        if not readable:
            msg = f"there is no event to score on; {reader.losses}"
            raise TidingsError(msg)
    reader.warn(options.dead_letters)
    # The model's own first, the paper's formulas as printed last.
    own = model.settings.estimator if model.settings.estimator != "printed" else "both"
    estimators = list(dict.fromkeys([own, *(("chain", "direct") if all_estimators else ()), "printed"]))
    note = (lambda name: render.note(f"forecasts by `{name}`")) if sys.stderr.isatty() else None
    trials = prequential(
        detector, readable, horizon=options.horizon, estimators=estimators, model=model, learn=learn, progress=note
    )
    scores = [_collect_scores(trial, options.threshold) for trial in trials]
    _print_scores(scores, options, list(dict.fromkeys([own, BASE, "printed", *estimators])))
    if plot is not None:
        _draw(_pool(scores), plot, options)
    if not options.quiet:
        patterns = f"{len(scores):,} pattern{'s' * (len(scores) != 1)}"
        seconds = time.perf_counter() - started
        render.note(f"{reader.events:,} events, {patterns}, {reader.losses} ({seconds:.1f} s)")


def _read_events(detector: Detector, reader: DetectorInput, files: list[RowFile]) -> list[Event]:
    """Return the events that the detector can read, after a first pass over all of them."""
    readable: list[Event] = []
    for events in reader.read_files(files, show_names=False):
        before = detector.latest_time
        detections = detector.detect_many(events, on_error="collect")
        reader.count(detections, before)
        dead = {letter.index for letter in detections.dead_letters}
        readable += [event for index, event in enumerate(events) if index not in dead]
    return readable


def _collect_scores(trial: Trial, threshold: float) -> PatternScores:
    judged = trial.decided
    p = {name: probabilities[judged] for name, probabilities in trial.p.items()}
    warnings = {name: trial.warnings(name, threshold) for name in trial.p}
    return PatternScores(trial.pattern, trial.y[judged], p, trial.matches, int((~judged).sum()), warnings)


def _pool(scores: list[PatternScores]) -> PatternScores:
    if len(scores) == 1:
        return scores[0]
    names = scores[0].p
    return PatternScores(
        f"all {len(scores):,} patterns",
        np.concatenate([pattern.y for pattern in scores]),
        {name: np.concatenate([pattern.p[name] for pattern in scores]) for name in names},
        sum(pattern.matches for pattern in scores),
        sum(pattern.unknown for pattern in scores),
        {name: reduce(add, (pattern.warnings[name] for pattern in scores)) for name in names},
    )


# Output -----------------------------------------------------------------------------------------


def _print_scores(scores: list[PatternScores], options: PatternOptions, names: list[str]) -> None:
    if options.as_json:
        for pattern in scores:
            render.write_json(_to_dict(pattern, options, names))
        return
    tables = [*(scores if len(scores) <= MAX_TABLES else []), *([_pool(scores)] if len(scores) > 1 else [])]
    for index, pattern in enumerate(tables):
        if index:
            render.write("")
        render.print_sheet(_build_sheet(pattern, options, names))


def _build_sheet(pattern: PatternScores, options: PatternOptions, names: list[str]) -> Sheet:
    rate = f"{pattern.y.mean():.3f} came true" if len(pattern.y) else "none came true"
    rest = f", {pattern.unknown:,} not known yet" if pattern.unknown else ""
    counts = f"{len(pattern.y):,} forecasts, {rate}{rest}; {pattern.matches:,} matches"
    rows = tuple(
        _build_row(name, score(pattern.p[name], pattern.y, options.threshold), pattern.warnings[name]) for name in names
    )
    return Sheet(f"{_format_title(pattern, options)}: {counts}", COLUMNS, rows, frozenset(range(1, len(COLUMNS))))


def _format_title(pattern: PatternScores, options: PatternOptions) -> str:
    return f"{pattern.name}, within {options.horizon}{'' if ' ' in options.horizon else ' events'}"


def _build_row(name: str, scores: Score, warnings: AlarmTimes) -> tuple[str, ...]:
    four_digits = [f"{value:.4f}" for value in (scores.brier, scores.skill, scores.log_loss, scores.auc)]
    three_digits = [f"{value:.3f}" for value in (scores.precision, scores.recall, scores.f1, scores.mcc)]
    one_digit = [f"{value:.1f}" for value in (warnings.lead, warnings.false_per_1000)]
    return name, *(("-" if text == "nan" else text) for text in [*four_digits, *three_digits, *one_digit])


def _to_dict(pattern: PatternScores, options: PatternOptions, names: list[str]) -> dict[str, Any]:
    scores = {name: _collect_figures(pattern, name, options.threshold) for name in names}
    counts = {"forecasts": len(pattern.y), "unknown": pattern.unknown, "matches": pattern.matches}
    question = {"pattern": pattern.name, "horizon": options.horizon, "threshold": options.threshold}
    return {**question, **counts, "scores": scores}


def _collect_figures(pattern: PatternScores, name: str, threshold: float) -> dict[str, Any]:
    warnings, p = pattern.warnings[name], pattern.p
    announced = {"lead": warnings.lead, "warned": warnings.share, "false_per_1000": warnings.false_per_1000}
    comparisons = {other: compare_skill(p[name], p[other], pattern.y) for other in (BASE, "printed") if other != name}
    return {
        **score(p[name], pattern.y, threshold).to_dict(),
        "skill_against": {other: None if isnan(value) else value for other, value in comparisons.items()},
        **{key: None if isnan(value) else value for key, value in announced.items()},
    }


def _draw(pattern: PatternScores, path: Path, options: PatternOptions) -> None:
    curves = {name: measure_reliability(p, pattern.y) for name, p in pattern.p.items() if name != BASE}
    draw(path, curves, title=_format_title(pattern, options))
    render.note(f"wrote `{path}`")
