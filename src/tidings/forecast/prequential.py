"""How good forecasts are on a history: each is made before what it foretells is counted, and judged once that is known.

Forecasts whose horizon reaches beyond the end are left out, whether a match came or not: a match that is known early
would otherwise count and its absence not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast.horizon import Horizon, HorizonLike
from tidings.forecast.learning.group_counter import select_reports
from tidings.forecast.model import Model
from tidings.forecast.predicting.forecast_observer import ForecastObserver
from tidings.forecast.predicting.forecaster import ForecastPlan
from tidings.forecast.predicting.probability_table import require_times
from tidings.forecast.scoring.scores import AlarmTimes, Score, score
from tidings.kernels.array_types import BoolArray, FloatArray, IntArray
from tidings.lang import WrittenPattern
from tidings.patterns import PatternCatalog, PatternSet, Run
from tidings.patterns.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidings.forecast.detector import Detector
    from tidings.forecast.forecasts import ForecastBatch
    from tidings.patterns.compile.graph import CompiledPattern
    from tidings.patterns.detections import ReportBatch
    from tidings.patterns.run.event_reader import EncodedEvents, Events

BASE = "base rate"
"""The forecast that says the same at every event: the share of all that was known by then."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One pattern's forecasts at every event of its streams, by estimator, and what came of them.

    Arrays have one value for each forecast: `y` whether a match came within the horizon, `decided` whether the history
    goes on for so long, `ahead` how many of the key's own events lie before the next match (-1: none came).
    """

    pattern: str
    horizon: Horizon
    event: IntArray
    key: IntArray
    y: BoolArray
    decided: BoolArray
    ahead: IntArray
    p: dict[str, FloatArray] = field(default_factory=dict)
    matches: int = 0

    def score(self, name: str, threshold: float = 0.5) -> Score:
        """Return the scores of one estimator; `base rate` is one too."""
        return score(self.p[name][self.decided], self.y[self.decided], threshold)

    def warnings(self, name: str, threshold: float = 0.5) -> AlarmTimes:
        """Return how matches were announced: leads are in the key's own events, from the first alarm of each match."""
        alarm = np.clip(self.p[name], 0, 1) > threshold
        order = np.lexsort((self.event, self.key))
        alarm, key = alarm[order], self.key[order]
        y, decided, ahead = self.y[order], self.decided[order], self.ahead[order]
        first = np.append(True, key[1:] != key[:-1])
        rising = alarm & (first | ~np.append(False, alarm[:-1]))
        # The events of one key before one match are told apart by where that match lies.
        warned = np.flatnonzero(alarm & y)
        matches = np.column_stack([key, np.arange(len(key)) + ahead])[warned]
        leads = ahead[warned[np.unique(matches, axis=0, return_index=True)[1]]].tolist()
        leads += [None] * max(0, self.matches - len(leads))
        judged = int(np.count_nonzero(decided))
        false = int(np.count_nonzero(rising & decided & ~y))
        return AlarmTimes(tuple(leads), int(rising.sum()), false, int((rising & ~decided).sum()), judged)


def prequential(
    detector: Detector,
    events: Events,
    *,
    horizon: HorizonLike,
    estimators: Sequence[str] = ("both", "printed"),
    model: Model | None = None,
    learn: bool = True,
    progress: Callable[[str], object] | None = None,
) -> list[Trial]:
    """Return a trial for each of the detector's patterns: forecasts at every event, made before it is learned.

    `model` is where to begin; without one, with nothing. With `learn=False` it stays as it is. The base rate is of what
    was known before each event.
    """
    parsed_horizon = Horizon.of(horizon)
    if not len(detector):
        msg = "the detector has no patterns to score; add them first"
        raise TidingsError(msg)
    trials: dict[str, Trial] = {}
    for estimator in estimators:
        if progress is not None:
            progress(estimator)
        forecasting = ForecastObserver((model or Model()).using(estimator=estimator), learns=learn)
        run = _forecast_all(detector, events, forecasting, parsed_horizon)
        batches, times = forecasting.collect(), np.concatenate(run.times)
        for place, compiled in enumerate(run.patterns):
            event, key, p = _collect_columns(batches, compiled.name)
            if compiled.name not in trials:
                reports = _select_matches(run.reports, place, times, compiled)
                trial = _judge_forecasts(compiled.name, parsed_horizon, event, key, reports, times)
                trial.p[BASE] = _compute_base_rate(trial, times)
                trials[compiled.name] = trial
            trials[compiled.name].p[estimator] = p
    return [trials[name] for name in detector]


class _Recorder(Observer):
    """Keeps the patterns of a run, the times of the events that it takes, and its reports."""

    def __init__(self, patterns: PatternSet) -> None:
        self.patterns = patterns.patterns
        self.times: list[IntArray] = [np.empty(0, np.int64)]
        self.reports: list[ReportBatch] = []

    def on_batch(self, events: EncodedEvents, reports: Sequence[ReportBatch]) -> None:
        self.times.append(events.times)
        self.reports += reports


def _forecast_all(detector: Detector, events: Events, forecasting: ForecastObserver, horizon: Horizon) -> _Recorder:
    """Let an observer forecast every pattern at every event of its streams, and return what happened.

    The patterns are compiled anew: what is counted of them does not count in the detector.
    """
    if not forecasting.learns:
        require_times(horizon, forecasting.base_model.traffic)
    catalog = PatternCatalog(detector.vocabulary, replace(detector.compile().settings, keep=()))
    catalog.add_many(WrittenPattern(pattern.name, pattern.pattern, pattern.mode, None) for pattern in detector.patterns)
    patterns = catalog.compile()
    forecasting.plans = dict.fromkeys(patterns.names, ForecastPlan(horizon, tell="every"))
    recorder = _Recorder(patterns)
    run = Run(patterns, observers=[forecasting, recorder])
    run.detect_many(events)
    run.close()
    return recorder


def _collect_columns(batches: Sequence[ForecastBatch], name: str) -> tuple[IntArray, IntArray, FloatArray]:
    """Return events, keys and probabilities of a pattern's forecasts."""
    columns = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for batch in batches:
        if name in batch.names:
            rows = batch.rows
            mine = rows.member == batch.names.index(name)
            columns.append((rows.event[mine] + batch.base, rows.key[mine], rows.probability[mine]))
    event, key, probability = zip(*columns, strict=True)
    return np.concatenate(event), np.concatenate(key), np.concatenate(probability)


def _select_matches(parts: Sequence[ReportBatch], place: int, times: IntArray, compiled: CompiledPattern) -> IntArray:
    """Return keys, events and times of a pattern's matches."""
    reports = select_reports(parts, place)
    if compiled.pattern.absence is not None:  # a deadline counts from the first event that comes after it
        reports[:, 1] = np.searchsorted(times, reports[:, 2])
    return reports


def _judge_forecasts(
    name: str, horizon: Horizon, event: IntArray, key: IntArray, reports: IntArray, times: IntArray
) -> Trial:
    y, decided = np.zeros(len(event), bool), np.zeros(len(event), bool)
    ahead = np.full(len(event), -1, np.int64)
    last = len(times) - 1
    for mine in _split_by_key(key):
        at = event[mine]
        matched = np.unique(reports[reports[:, 0] == key[mine[0]], 1])
        following = np.append(matched, -1)[np.searchsorted(matched, at, side="right")]
        own = np.searchsorted(at, following) - np.arange(len(at))
        is_followed = following >= 0
        ahead[mine[is_followed]] = own[is_followed]
        match horizon.unit:
            case "events":
                waited, is_decided = following - at, at + horizon.amount <= last
            case "own":
                waited, is_decided = own, np.arange(len(at)) + horizon.amount < len(at)
            case "time":
                waited = times[np.maximum(following, 0)] - times[at]
                is_decided = times[at] + horizon.amount <= times[last]
        y[mine], decided[mine] = is_followed & (waited <= horizon.amount), is_decided
    return Trial(name, horizon, event, key, y, decided, ahead, matches=len(np.unique(reports[:, :2], axis=0)))


def _split_by_key(key: IntArray) -> list[IntArray]:
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(key) else []


def _compute_base_rate(trial: Trial, times: IntArray) -> FloatArray:
    """Return, for each forecast, the share of matches among those that were decided before its event."""
    amount, decided = trial.horizon.amount, np.full(len(trial.event), len(times))
    match trial.horizon.unit:
        case "events":
            decided = trial.event + amount
        case "time":
            decided = np.searchsorted(times, times[trial.event] + amount)
        case "own":  # so many of the key's own events later
            for mine in _split_by_key(trial.key):
                decided[mine[:-amount]] = trial.event[mine[amount:]]
    hits = np.append(0, np.cumsum(trial.y[np.argsort(decided, kind="stable")]))
    count = np.searchsorted(np.sort(decided), trial.event, side="right")
    return np.asarray((hits[count] + 0.5) / (count + 1))
