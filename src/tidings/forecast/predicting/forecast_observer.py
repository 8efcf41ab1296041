"""Forecasts as an observer of a run: builds the forecaster of the run's patterns and gathers its forecasts.

A forecaster is built when the run first needs it, and anew when the patterns are others; patterns that are in both
sets go on where they stood.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError
from tidings.forecast.model import Model
from tidings.forecast.predicting.forecaster import Forecaster, ForecastPlan
from tidings.forecast.predicting.forecaster_state import carry_over, dump_forecaster, load_forecaster
from tidings.forecast.tuning import ForecastTuning
from tidings.patterns.observer import NO_KEYS, Observer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.forecast.forecasts import Forecast, ForecastBatch
    from tidings.forecast.horizon import Horizon
    from tidings.kernels.array_types import IntArray
    from tidings.patterns.detections import ReportBatch
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.run import Run
    from tidings.patterns.state.graph_bytes import Arrays, Header, State


class ForecastObserver(Observer):
    """Forecasts with a model; with `learns`, the events are counted into it after they were forecast.

    `plans` tells by pattern which forecasts are emitted. `stream_share`: see `Forecaster`.
    A `forecaster` that is built for the run's patterns already may be passed.
    """

    def __init__(
        self,
        model: Model,
        *,
        learns: bool = False,
        plans: Mapping[str, ForecastPlan] | None = None,
        stream_share: float = 1.0,
        tuning: ForecastTuning | None = None,
        forecaster: Forecaster | None = None,
    ) -> None:
        self.base_model, self.learns, self.stream_share = model, learns, stream_share
        self.plans = dict(plans or {})
        self.tuning = tuning or ForecastTuning()
        self.forecaster = forecaster
        self._batches: list[ForecastBatch] = []

    @property
    def model(self) -> Model:
        """The model; where events are learned, with everything that was taken so far."""
        learner = None if self.forecaster is None else self.forecaster.learner
        return self.base_model if learner is None else learner.build_model()

    def make_fresh(self) -> ForecastObserver:
        """Return an observer with the same model and plans and no state."""
        return ForecastObserver(
            self.base_model, learns=self.learns, plans=self.plans, stream_share=self.stream_share, tuning=self.tuning
        )

    def collect(self) -> list[ForecastBatch]:
        """Return the forecasts that were emitted since this was last called."""
        batches, self._batches = self._batches, []
        return batches

    def forecast(self, name: str, horizon: Horizon | None) -> list[Forecast]:
        """Return the forecasts of a pattern from the current state; the run must be prepared."""
        assert self.forecaster is not None
        assert self.run is not None
        return self.forecaster.list_forecasts(name, horizon, self.run.value_numbers.values, self.run.latest)

    def dump_observer(self) -> State:
        """Return model and plans, which `load_observer` reads."""
        plans = [
            [name, None if plan.horizon is None else str(plan.horizon), plan.threshold, plan.tell, plan.step]
            for name, plan in self.plans.items()
        ]
        has_patterns = self.run is not None and len(self.run.patterns) > 0
        # A learner's counts are in the observer's state: the model is the one that probabilities were computed from.
        model = self.forecaster.model if self.forecaster is not None and has_patterns else self.base_model
        return {"plans": plans, "learn": self.learns, "part": self.stream_share}, {"model": model.to_bytes()}

    def on_patterns(self, run: Run) -> None:
        """Build the forecaster of the run's patterns, unless it is there."""
        self.run = run
        before = self.forecaster
        if before is not None and before.pattern_set is run.patterns:
            return
        if before is not None:
            self.base_model = self.model
        share, tuning = self.stream_share, self.tuning
        self.forecaster = Forecaster(
            self.base_model, run.patterns, self.plans, learns=self.learns, stream_share=share, tuning=tuning
        )
        if before is not None:
            carry_over(before, self.forecaster)

    def on_batch(self, events: EncodedEvents, reports: Sequence[ReportBatch]) -> None:
        """Forecast at the events, and then learn from them."""
        assert self.forecaster is not None
        assert self.run is not None
        self._batches += self.forecaster.take(events, reports, self.run.position, self.run.value_numbers)

    def find_used_keys(self) -> IntArray:
        """Return the keys that have begun something, and the busiest of the others."""
        if self.forecaster is None or self.run is None or not len(self.run.patterns):
            return NO_KEYS
        return self.forecaster.find_used_keys(self.run.latest, self.tuning.idle_keys)

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`."""
        if self.forecaster is not None:
            self.forecaster.renumber_keys(kept)

    def dump(self, kept: IntArray) -> State:
        """Return the forecaster's state; empty where there are no patterns."""
        if self.forecaster is None or self.run is None or not len(self.run.patterns):
            return {}, {}
        return dump_forecaster(self.forecaster, kept, list(self.run.patterns.filters))

    def load(self, header: Header, arrays: Arrays) -> None:
        """Continue from such a state, where there is one."""
        if self.forecaster is not None and self.run is not None and "followings" in header:
            load_forecaster(self.forecaster, header, arrays, self.run.patterns.filters)


def open_observer(model: Any, learn: bool, tuning: ForecastTuning) -> ForecastObserver | None:
    """Return the observer of a model as users give it; `None` without a model, unless it is to be learned."""
    if model is not None and not isinstance(model, Model | str | Path):
        msg = f"a model is a td.Model or the path of one that was saved, not `{model!r}`"
        raise TidingsError(msg)
    opened = Model.load(model) if isinstance(model, str | Path) else model
    if opened is None and not learn:
        return None
    return ForecastObserver(Model() if opened is None else opened, learns=learn, tuning=tuning)


def load_observer(header: Header, arrays: Arrays) -> ForecastObserver:
    """Return the observer whose model and plans `dump_observer` wrote."""
    plans = {}
    for name, horizon, threshold, tell, step in header["plans"]:
        plans[name] = ForecastPlan.of(horizon=horizon, threshold=threshold, tell=tell, step=step)
    model = Model.from_bytes(arrays["model"])
    return ForecastObserver(model, learns=header["learn"], plans=plans, stream_share=header["part"])
