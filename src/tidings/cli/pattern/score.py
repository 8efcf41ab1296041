"""`tidings pattern score`: how good forecasts are on a history, beside the base rate and the paper's formulas."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import reduce
from math import isnan
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.cli import render
from tidings.cli.pattern.history import Batches, Careful, History
from tidings.cli.pattern.model_files import read, warn_of_unknown
from tidings.errors import MissingExtra, TidingsError
from tidings.forecast import Model, score
from tidings.forecast.prequential import BASE, prequential
from tidings.forecast.scoring.reliability import draw, reliability
from tidings.forecast.scoring.scores import Warnings, skill_against
from tidings.matcher.plan import Sheet

if TYPE_CHECKING:
    from tidings.cli.options import FileForm
    from tidings.cli.pattern.pattern_origin import Source
    from tidings.cli.pattern.tally import Tally
    from tidings.forecast.prequential import Trial
    from tidings.forecast.scoring.scores import Score
    from tidings.model import Event

HEAD = ("", "brier", "skill", "log loss", "auc", "precision", "recall", "f1", "mcc", "lead", "false")
"""The columns: `lead` in events, `false` alarms in 1,000 events."""

MOST = 12
"""Patterns that have a table each; of more, there is one of all, and JSON has each."""


@dataclass(frozen=True, slots=True)
class Trying:
    """What is tried: how far ahead, above which threshold, with which counts and estimators."""

    horizon: str
    threshold: float
    model: Path | None
    learn: bool
    every: bool
    counting: dict[str, Any]

    def begun(self) -> Model:
        """Return the model to begin with."""
        return Model(**self.counting) if self.model is None else read(self.model)


@dataclass(frozen=True, slots=True)
class Ends:
    """What is left of the run."""

    plot: Path | None
    dead_letters: Path | None
    quiet: bool


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One pattern, or all: forecasts by estimator with what came of them, and how matches were announced."""

    name: str
    y: np.ndarray
    p: dict[str, np.ndarray]
    matches: int
    unknown: int
    warnings: dict[str, Warnings]


def run(source: Source, events: str, trying: Trying, ends: Ends, *, form: FileForm | None, as_json: bool) -> None:
    """Score, print tables or JSON, and draw the plot."""
    started = time.perf_counter()
    if ends.plot is not None:
        _check_drawing()
    with History((events,), form, ends.dead_letters).opened() as (files, tally):
        model = trying.begun()
        detector = source.new(Careful)
        if not trying.learn:
            warn_of_unknown(model, detector)
        taken = _taken(detector, Batches(detector, tally), files, tally)
    tally.warn(detector, ends.dead_letters)
    ours = model.settings.estimator if model.settings.estimator != "printed" else "both"
    tried = list(dict.fromkeys([ours, *(("chain", "direct") if trying.every else ()), "printed"]))
    trials = prequential(
        detector,
        taken,
        horizon=trying.horizon,
        estimators=tried,
        model=model,
        learn=trying.learn,
        progress=_say if sys.stderr.isatty() else None,
    )
    judged = [_judged(trial, trying.threshold) for trial in trials]
    names = list(dict.fromkeys([ours, BASE, "printed", *tried]))
    _tell(judged, trying, names, as_json=as_json)
    if ends.plot is not None:
        _draw(_pooled(judged), ends.plot, trying)
    if not ends.quiet:
        seconds = time.perf_counter() - started
        patterns = f"{len(judged):,} pattern{'s' * (len(judged) != 1)}"
        render.note(f"{tally.events:,} events, {patterns}, {tally.left} ({seconds:.1f} s)")


def _taken(detector: Careful, batches: Batches, files: Any, tally: Tally) -> list[Event]:
    """Return the events that can be read, after a first look at all of them."""
    taken: list[Event] = []
    for events in batches.of(files, named=False):
        lost = {letter.index for letter in detector.detect_many(events).dead_letters}
        taken += [event for place, event in enumerate(events) if place not in lost]
    if not taken:
        msg = f"there is no event to score on; {tally.left}"
        raise TidingsError(msg)
    return taken


def _judged(trial: Trial, threshold: float) -> Judged:
    known = trial.known
    p = {name: of[known] for name, of in trial.p.items()}
    warnings = {name: trial.warnings(name, threshold) for name in trial.p}
    return Judged(trial.pattern, trial.y[known], p, trial.matches, int((~known).sum()), warnings)


def _pooled(judged: list[Judged]) -> Judged:
    """Return all patterns as one."""
    if len(judged) == 1:
        return judged[0]
    names = judged[0].p
    return Judged(
        f"all {len(judged):,} patterns",
        np.concatenate([one.y for one in judged]),
        {name: np.concatenate([one.p[name] for one in judged]) for name in names},
        sum(one.matches for one in judged),
        sum(one.unknown for one in judged),
        {name: reduce(add, (one.warnings[name] for one in judged)) for name in names},
    )


# Words ------------------------------------------------------------------------------------------


def _tell(judged: list[Judged], trying: Trying, names: list[str], *, as_json: bool) -> None:
    if as_json:
        for one in judged:
            render.out_json(_plain(one, trying, names))
        return
    shown = [*(judged if len(judged) <= MOST else []), *([_pooled(judged)] if len(judged) > 1 else [])]
    for place, one in enumerate(shown):
        if place:
            render.out("")
        render.sheet(_sheet(one, trying, names))


def _sheet(one: Judged, trying: Trying, names: list[str]) -> Sheet:
    scores = {name: score(one.p[name], one.y, trying.threshold) for name in names}
    ahead = f"within {trying.horizon}{'' if ' ' in trying.horizon else ' events'}"
    rate = f"{one.y.mean():.3f} came true" if len(one.y) else "none came true"
    left = f", {one.unknown:,} not known yet" if one.unknown else ""
    title = f"{one.name}, {ahead}: {len(one.y):,} forecasts, {rate}{left}; {one.matches:,} matches"
    rows = tuple(_row(name, scores[name], one.warnings[name]) for name in names)
    return Sheet(title, HEAD, rows, frozenset(range(1, len(HEAD))))


def _row(name: str, scored: Score, warned: Warnings) -> tuple[str, ...]:
    small = [f"{value:.4f}" for value in (scored.brier, scored.skill, scored.log_loss, scored.auc)]
    rest = [f"{value:.3f}" for value in (scored.precision, scored.recall, scored.f1, scored.mcc)]
    whole = [f"{value:.1f}" for value in (warned.lead, warned.false_per_1000)]
    return name, *(("-" if text == "nan" else text) for text in [*small, *rest, *whole])


def _plain(one: Judged, trying: Trying, names: list[str]) -> dict[str, Any]:
    by = {name: _scores(one, name, trying.threshold) for name in names}
    counts = {"forecasts": len(one.y), "unknown": one.unknown, "matches": one.matches}
    return {"pattern": one.name, "horizon": trying.horizon, "threshold": trying.threshold, **counts, "scores": by}


def _scores(one: Judged, name: str, threshold: float) -> dict[str, Any]:
    warned = one.warnings[name]
    told = {"lead": warned.lead, "warned": warned.share, "false_per_1000": warned.false_per_1000}
    against = {other: skill_against(one.p[name], one.p[other], one.y) for other in (BASE, "printed") if other != name}
    return {
        **score(one.p[name], one.y, threshold).to_dict(),
        "skill_against": {other: _number(value) for other, value in against.items()},
        **{key: _number(value) for key, value in told.items()},
    }


def _number(value: float) -> float | None:
    return None if isnan(value) else value


def _check_drawing() -> None:
    """Refuse a plot that nothing can draw before hours of work."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as problem:
        msg = "plots need matplotlib; install it with `pip install 'tidings[bench]'`"
        raise MissingExtra(msg) from problem


def _draw(one: Judged, path: Path, trying: Trying) -> None:
    curves = {name: reliability(told, one.y) for name, told in one.p.items() if name != BASE}
    ahead = f"within {trying.horizon}{'' if ' ' in trying.horizon else ' events'}"
    draw(path, curves, title=f"{one.name}, {ahead}")
    render.note(f"wrote `{path}`")


def _say(estimator: str) -> None:
    render.note(f"forecasts by `{estimator}`")
