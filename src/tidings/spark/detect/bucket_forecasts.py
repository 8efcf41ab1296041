"""Forecasts on Spark: the model and the plan of each pattern, and observers that forecast in buckets.

Probabilities depend on the model and the horizon alone, so all buckets of a portion share the tables of one forecaster;
the states of the patterns are each bucket's own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast import Detector, Model
from tidings.forecast.courses.streams import KeyGaps
from tidings.forecast.predicting.forecaster import ForecastPlan
from tidings.forecast.predicting.probability_table import require_times
from tidings.patterns.run.machine import is_keyed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidings.forecast.courses.streams import StreamEntries
    from tidings.kernels.array_types import FloatArray, IntArray
    from tidings.patterns.run.portions import Portion
    from tidings.spark.detect.pattern_source import Patterns

DEFAULT_PLAN = ForecastPlan()
"""The plan of `detect` without any keyword about forecasts."""


def choose_forecasts(
    patterns: Patterns, names: Iterable[str], *, model: object, plan: ForecastPlan
) -> tuple[Model | None, dict[str, ForecastPlan]]:
    """Return the model and the forecast plan of each pattern that `detect` asks for; without plans, no model.

    Without the argument `model` it is the model that a detector brings.
    """
    loaded = Model.load(Path(model)) if isinstance(model, str | os.PathLike) else model
    if loaded is not None and not isinstance(loaded, Model):
        msg = f"model is a td.Model, or the path of one that was saved, not `{model!r}`"
        raise TidingsError(msg)
    if isinstance(patterns, Detector):
        if plan != DEFAULT_PLAN:
            own = "a detector brings its own horizons"
            msg = f"{own}: say them in add(..., horizon=10), or pass the patterns themselves"
            raise TidingsError(msg)
        loaded, plans = patterns.model if loaded is None else loaded, dict(patterns.plans)
    elif loaded is None and plan != DEFAULT_PLAN:
        msg = "forecasts need a model: model=ts.train(events, patterns)"
        raise TidingsError(msg)
    else:
        plans = {} if loaded is None else dict.fromkeys(names, plan)
    horizons = [plan.horizon for plan in plans.values() if plan.horizon is not None]
    if model is not None and not horizons:
        msg = "a model needs a horizon to forecast for: horizon=10, or `5 min`; of a detector, in add(...)"
        raise TidingsError(msg)
    for horizon in horizons:
        if horizon.unit == "time" and loaded is not None:
            require_times(horizon, loaded.traffic)  # raises here, before any job runs
    return loaded if plans else None, plans


def needs_stream_positions(plans: Mapping[str, ForecastPlan], detector: Detector) -> bool:
    """Tell whether a forecast depends on how often a key occurs in the whole stream."""
    keyed = {compiled.name for compiled in detector.patterns if is_keyed(compiled.pattern)}
    horizons = [plan.horizon for name, plan in plans.items() if name in keyed]
    return any(horizon is not None and horizon.unit != "own" for horizon in horizons)


# In a worker ------------------------------------------------------------------------------------------


class PositionedGaps(KeyGaps):
    """The gaps between events of a key, where a bucket has only some events of the stream but knows their positions.

    They continue the gaps `before`; `positions` are the stream's, of the bucket's events from its `first` on.
    """

    def __init__(self, positions: IntArray, first: int, before: KeyGaps) -> None:
        super().__init__(keyed=before.is_keyed)
        self.last, self.mean, self.count = before.last, before.mean, before.count
        self._positions, self._first = positions, first

    def take(self, entries: StreamEntries, times: IntArray, position: int) -> FloatArray:
        """Return the mean gaps at entries; `position` is that of their first event among those of the bucket."""
        return self.update_gaps(entries, self._positions[position - self._first + entries.event], times[entries.event])


def find_owned(portion: Portion, number: int, keys: IntArray, values: Sequence[Any]) -> IntArray:
    """Return the rows whose keys, numbers of `values`, belong to a bucket.

    An event that has two keys is in the bucket of each. Events of the other key are not all in this bucket, so what it
    says of that key may be wrong; the key's own bucket has them all.
    """
    if len(portion.ways) == 1:
        return np.arange(len(keys))
    numbers, places = np.unique(keys, return_inverse=True)
    mine = [portion.find_bucket(values[key]) == number for key in numbers.tolist()]
    return np.flatnonzero(np.array(mine, bool)[places.reshape(-1)])
