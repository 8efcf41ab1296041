"""Forecasts on Spark: what is to be foretold, detectors of buckets that start with a model, and what they tell.

Probabilities depend on the model and the horizon alone, so all buckets of a portion share the tables of one forecaster;
where the patterns stand is each bucket's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast import Detector, Model
from tidings.forecast.forecaster import Plan
from tidings.forecast.forecasts import Forecasts
from tidings.forecast.tables import mixing
from tidings.patterns import Detector as PatternDetector
from tidings.patterns.stream import written

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from tidings.forecast.forecaster import Forecaster
    from tidings.forecast.forecasts import Batch
    from tidings.patterns.stream import Portion


KEYS = 1 << 14
"""Keys with nothing begun that the state of a bucket has room for; of more, those with most events stay."""

NOTHING_SAID = Plan()
"""How forecasts are told unless it is said otherwise."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """A model, and what is to be foretold of each pattern; nothing where there is no model."""

    model: Model | None
    plans: Mapping[str, Plan]

    @classmethod
    def of(cls, patterns: Any, names: Iterable[str], *, model: Any, asked: Plan) -> Foresight:
        """Understand what was given: a detector brings its own model and horizons, and another model may be given."""
        known = Model.load(Path(model)) if isinstance(model, str | os.PathLike) else model
        if known is not None and not isinstance(known, Model):
            msg = f"model is a td.Model, or the path of one that was saved, not `{model!r}`"
            raise TidingsError(msg)
        if isinstance(patterns, PatternDetector):
            made = cls._brought(patterns, known, asked)
        elif known is None and asked != NOTHING_SAID:
            msg = "forecasts need a model: model=ts.train(events, patterns)"
            raise TidingsError(msg)
        else:
            made = cls(known, dict.fromkeys(names, asked) if known is not None else {})
        made._check(explicit=model is not None)
        return made

    @classmethod
    def _brought(cls, detector: PatternDetector, model: Model | None, asked: Plan) -> Foresight:
        if asked != NOTHING_SAID:
            msg = (
                "a detector brings its own horizons: say them in add(..., horizon=10), or pass the patterns themselves"
            )
            raise TidingsError(msg)
        if not isinstance(detector, Detector):
            return cls(model, {})
        return cls(detector.model if model is None else model, dict(detector._plans))

    def _check(self, *, explicit: bool) -> None:
        told = [plan.horizon for plan in self.plans.values() if plan.horizon is not None]
        if explicit and not told:
            msg = "a model needs a horizon to forecast for: horizon=10, or `5 min`; of a detector, in add(...)"
            raise TidingsError(msg)
        for horizon in told:
            if horizon.unit == "time" and self.model is not None:
                mixing(horizon, keyed=False, traffic=self.model.traffic)  # refused here, before any job runs


# In a worker ------------------------------------------------------------------------------------------


class Foreseer(Detector):
    """A detector of a bucket: its state has the keys that have nothing begun too, as far as there is room.

    Their last events and their shares count in what comes next, and a bucket's state is laid down after every call.
    """

    def _held(self) -> list[np.ndarray]:
        held = super()._held()
        for following in self._forecaster.followings if self._forecaster else ():
            if following.group.keyed:
                seen = np.flatnonzero(following.own)
                most = np.argsort(-following.own[seen], kind="stable")[:KEYS]
                held.append(seen[most])
        return held


def foreseeing(portion: Portion, model: Model | None = None) -> Foreseer:
    """Return a detector of a portion's patterns that can forecast; its filters have the numbers they have there."""
    plain = portion.detector
    made = Foreseer(model=model, time=plain.time, partials=plain.partials, **plain._around)
    made.add_many(map(written, plain.watched))
    return made


class Started:
    """A portion's patterns with a model, made ready once in a worker."""

    def __init__(self, portion: Portion, model: Model, plans: Mapping[str, Plan]) -> None:
        """Reckon what is foretold."""
        self._first = foreseeing(portion, model)
        self._first._plans = {name: plans[name] for name in portion.detector if name in plans}
        if portion.keyed:  # a bucket sees so much of the stream, as far as keys are spread evenly
            self._first._part = 1 / portion.buckets
        self._ready = self._first._foretelling()
        for following in self._ready.followings:  # and so many of the keys that are expected
            following.spread = max(1.0, following.spread * following.part)

    def detector(self) -> Foreseer:
        """Return a detector that has seen nothing."""
        made = self._first.forked()
        made._forecaster = _afresh(self._ready)
        return made


def _afresh(ready: Forecaster) -> Forecaster:
    """Return a forecaster with the tables of one that has seen nothing; where its patterns stand is its own."""
    made = copy(ready)
    made.followings = [copy(following) for following in ready.followings]
    for following in made.followings:
        following.own, following.cells = following.own.copy(), following.cells.copy()
        following.last, following.late = following.last.copy(), [late.copy() for late in following.late]
        following.states = [states.copy() for states in following.states]
    return made


def told_by(detector: Any) -> list[Batch]:
    """Return what a detector has foretold since it was asked last."""
    if not isinstance(detector, Detector):
        return []
    found, detector._told = detector._told, []
    return found


def owned(batch: Batch, portion: Portion, number: int) -> np.ndarray:
    """Return the rows whose keys are of a bucket; of others it has not seen all events."""
    if len(portion.ways) == 1:
        return np.arange(len(batch.rows))
    known, places = np.unique(batch.rows.key, return_inverse=True)
    mine = [portion.bucket_of(batch.values[key]) == number for key in known.tolist()]
    return np.flatnonzero(np.array(mine, bool)[places.reshape(-1)])


def columns_of(batch: Batch) -> pa.Table:
    """Return pattern, key, time, event, probability, horizon and estimator of forecasts."""
    return Forecasts([batch]).to_arrow()
