"""Forecasts in a bucket: detectors that start with a model, and the rows of the output that their forecasts become.

Probabilities depend on the model and the horizon alone, so all buckets of a portion share the tables of one forecaster;
where the patterns stand is each bucket's own.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.forecast import Detector
from tidings.forecast.following import Following
from tidings.forecast.forecasts import Forecasts
from tidings.patterns.stream import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from tidings.forecast import Model
    from tidings.forecast.forecaster import Forecaster, Plan
    from tidings.forecast.forecasts import Batch
    from tidings.patterns.stream import Portion


def foreseeing(portion: Portion, model: Model | None = None) -> Detector:
    """Return a detector of a portion's patterns that can forecast; its filters have the numbers they have there."""
    plain = portion.detector
    made = Detector(model=model, time=plain.time, partials=plain.partials, **plain._around)
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

    def detector(self) -> Detector:
        """Return a detector that has seen nothing."""
        made = self._first.forked()
        made._forecaster = _afresh(self._ready)
        return made


def _afresh(ready: Forecaster) -> Forecaster:
    """Return a forecaster that has seen nothing, with the tables of another."""
    made = copy(ready)
    made.followings = []
    for told in ready.followings:
        following = Following(told.group)
        following.arrange(told.asked, told.tables, keys=told.spread, part=told.part)
        made.followings.append(following)
    return made


def told_by(detector: Any) -> list[Batch]:
    """Return what a detector has foretold since it was asked last."""
    if not isinstance(detector, Detector):
        return []
    found, detector._told = detector._told, []
    return found


def owned(batch: Batch, portion: Portion, number: int) -> np.ndarray:
    """Return the rows whose keys are of a bucket; of others it has not seen all events."""
    rows = np.arange(len(batch.rows))
    if len(portion.ways) == 1:
        return rows
    known, places = np.unique(batch.rows.key, return_inverse=True)
    mine = [portion.bucket_of(batch.values[key]) == number for key in known.tolist()]
    return rows[np.array(mine, bool)[places.reshape(-1)]]


def columns_of(batch: Batch) -> pa.Table:
    """Return pattern, key, time, event, probability, horizon and estimator of forecasts."""
    return Forecasts([batch]).to_arrow()
