"""The façade: a detector that also says how likely its patterns are to complete, with a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError, UnknownPattern
from tidings.forecast.forecasts import Forecasts
from tidings.forecast.horizon import Horizon
from tidings.forecast.model import Model
from tidings.forecast.predicting.forecaster import Forecaster, ForecastPlan
from tidings.forecast.predicting.forecaster_state import load_forecaster, dump_forecaster
from tidings.forecast.predicting.handover import carry_over
from tidings.forecast.predicting.probability_table import require_times
from tidings.forks import locked
from tidings.patterns.detector import Detector as PatternDetector
from tidings.patterns.pattern_input import check_pattern
from tidings.patterns.run.graph_run import LONG_AGO

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    import numpy as np

    from tidings.forecast.forecasts import ForecastBatch, Forecast
    from tidings.forecast.learning.learner import Learner
    from tidings.lang import WrittenPattern
    from tidings.model import DeadLetter
    from tidings.model.patterns import Pattern
    from tidings.patterns.detections import Detection, Detections
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.machine import Machine
    from tidings.patterns.run.graph_run import GraphRun


IDLE = 1 << 16
"""Keys that have begun nothing and are kept: their last events and their pace count in what comes next."""


class Detector(PatternDetector):
    """Which patterns happen in a stream of events, and how likely they are to happen next.

    >>> import tidings as td
    >>> attacks = Detector()
    >>> attacks.add("intrusion", '''
    ...     fail  = status = 'denied'  and ip = $x
    ...     enter = status = 'success' and ip = $x
    ...     fail{3,} ; enter within 5 min
    ... ''')
    >>> log = [{"id": n, "time": n, "status": "denied", "ip": "10.0.0.1"} for n in range(3)]
    >>> attacks.detect_many(log)
    <Detections: 0, 0 late, 0 dead letters>
    >>> [found] = attacks.on_event({"id": 3, "time": 9, "status": "success", "ip": "10.0.0.1"})
    >>> found.pattern, found.events, found.bindings
    ('intrusion', (0, 1, 2, 3), {'x': '10.0.0.1'})

    Events come in the order of time; one that is more than `lateness` behind the latest is not taken, and listed in
    `Detections.late`. With a lateness, events wait until it has passed and are put in order. `time` and `event_id` name
    the fields of mappings and Arrow tables; `keep` names fields that detections carry. `partials` bounds the partial
    matches that one key may have at one step: of more, the newest stay, and `dropped` counts the others.

    With a `model` (`td.train`, or the path of one that was saved) it forecasts: `forecast` tells how likely a pattern
    is to complete, and patterns added with a `horizon` put forecasts beside the detections (`Detections.forecasts`).
    With `learn`, the events it takes are counted too: it predicts first and learns then; `model` is what it knows.
    """

    _idle = IDLE

    def __init__(self, *, model: Model | str | Path | None = None, learn: bool = False, **settings: Any) -> None:
        """Start without patterns."""
        super().__init__(**settings)
        if model is not None and not isinstance(model, Model | str | Path):
            msg = f"a model is a td.Model or the path of one that was saved, not `{model!r}`"
            raise TidingsError(msg)
        self._given = Model.load(model) if isinstance(model, str | Path) else model
        self._learn, self._part = learn, 1.0
        if learn and self._given is None:
            self._given = Model()
        self._plans: dict[str, ForecastPlan] = {}
        self._forecaster: Forecaster | None = None
        self._before: Forecaster | None = None  # of the patterns before they changed
        self._listener: tuple[Learner, bool] | None = None
        self._told: list[ForecastBatch] = []
        self.foretold = Forecasts()  # what the latest events gave rise to: for those that come one by one
        self.keep_fed: list[tuple[EncodedEvents, list[Any]]] | None = None  # what was taken and reported, for judges

    # Patterns ----------------------------------------------------------------------------------

    def add(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
        self,
        name: str,
        pattern: str | Pattern | dict[str, Any],
        *,
        mode: str = "restart",
        limit: int | None = None,
        notation: str = "text",
        horizon: Any = None,
        threshold: float = 0.5,
        tell: str = "crossing",
        step: float = 0.1,
    ) -> None:
        """Add a pattern, or replace the one of this name; it sees the events that come from now on.

        Where events wait for their turn (`lateness`), it sees those that are later than all that came so far.
        `mode` is `restart`, `overlap`, `next` or `any`; `limit` is how many embeddings `any` reports at one event.

        With a `horizon` (`10` events, `"10 own events"` of the key, `"5 min"`) the pattern is foretold: when its
        probability rises strictly above `threshold` (`tell="crossing"`), only once until it matches or its beginnings
        are gone (`"episode"`), when it has changed by more than `step` (`"change"`), or at every event (`"every"`).
        """
        given = check_pattern(name, self._parsed(pattern, notation), mode, limit)
        self.add_many([given], horizon=horizon, threshold=threshold, tell=tell, step=step)

    @locked
    def add_many(self, patterns: Iterable[WrittenPattern], **plan: Any) -> None:
        """Add many, as `lang.read_patterns` reads them from a file; all of them or, where one is refused, none.

        `horizon`, `threshold`, `tell` and `step` hold for all of them: see `add`.
        """
        given = list(patterns)
        told = ForecastPlan.of(**({"horizon": None, "threshold": 0.5, "tell": "crossing", "step": 0.1} | plan))
        if told.horizon is not None and self._given is None:
            names = ", ".join(f"`{one.name}`" for one in given[:3])
            msg = f"forecasts need a model: td.Detector(model=td.train(...)), or learn=True to begin without; {names}"
            raise TidingsError(msg)
        if told.horizon is not None and self._given is not None and not self._learn:
            require_times(told.horizon, self._given.traffic)
        # Without a plan one that is replaced loses its own; one that is resumed has its plans before its patterns.
        planned = [one.name for one in given if plan or one.name in self]
        super().add_many(given)
        self._plans |= dict.fromkeys(planned, told)

    @locked
    def remove(self, name: str) -> None:
        """Remove a pattern; `UnknownPattern`, a `KeyError`, if it is not there."""
        super().remove(name)
        self._plans.pop(name, None)

    def horizons(self) -> dict[str, Horizon]:
        """Return how far ahead each pattern is foretold, of those that are."""
        return {name: plan.horizon for name, plan in self._plans.items() if plan.horizon is not None}

    # Forecasts ---------------------------------------------------------------------------------

    @locked
    def forecast(self, name: str, *, horizon: Any = None) -> list[Forecast]:
        """Return how likely a pattern is to complete within the horizon, as things stand now.

        Of a pattern with a key: one forecast for each key that has begun something, and one (`key` nothing) for those
        that have not. Of any other pattern: exactly one.
        """
        if name not in self:
            msg = f"no pattern is called `{name}`"
            raise UnknownPattern(msg)
        told = None if horizon is None else Horizon.of(horizon)
        return self._foretelling().forecasts(name, told, self._names, self._latest)

    @property
    def model(self) -> Model | None:
        """The model; of a detector that learns, with everything it has taken so far."""
        last = self._forecaster or self._before
        return self._given if last is None or last.learner is None else last.learner.model()

    def _foretelling(self) -> Forecaster:
        self._runs()  # what waits is told of new patterns first
        if self._forecaster is None:
            if self._given is None:
                msg = "forecasts need a model: td.Detector(model=td.train(detector, history))"
                raise TidingsError(msg)
            self._forecaster = Forecaster(
                self._given,
                self.watched,
                self._filters,
                self._plans,
                learn=self._learn,
                part=self._part,
                **self._around,
            )
            if self._before is not None:
                carry_over(self._before, self._forecaster)
                self._before = None
        return self._forecaster

    # Events ------------------------------------------------------------------------------------

    @locked
    def take(self, events: EncodedEvents, *, dead_letters: tuple[DeadLetter, ...] = ()) -> Detections:
        """Take events that were read before; `detect_many` reads them first."""
        found = super().take(events, dead_letters=dead_letters)
        found.forecasts = self.foretold = Forecasts(self._told)
        self._told = []
        return found

    @locked
    def on_time(self, now: datetime | float | str) -> list[Detection]:
        """Let time pass: absences complete, waiting events are taken, and partial matches that came too late go.

        What comes later with an earlier time is late. Forecasts of events that waited are in `foretold`.
        """
        found = super().on_time(now)
        self.foretold, self._told = Forecasts(self._told), []
        return found

    def listen(self, learner: Learner, *, reports: bool) -> None:
        """Let a learner hear all events; without `reports` nothing is detected meanwhile."""
        self._listener = (learner, reports)

    @locked
    def close(self) -> None:
        """Take the events that still wait for their turn."""
        if self._waiting is not None:
            self._taken(self._released(self._latest), self._runs())

    def _fed(self, piece: EncodedEvents, runs: list[tuple[Machine, GraphRun]], *, until: int = LONG_AGO) -> list[Any]:
        if self._listener is not None:
            learner, reports = self._listener
            parts = super()._fed(piece, runs, until=until) if reports else []
            learner.take(piece, parts, self._seq, self._names)
            return parts
        if self._given is not None:
            self._foretelling()  # what is wrong with it is said before any event is taken
        parts = super()._fed(piece, runs, until=until)
        if self.keep_fed is not None:
            self.keep_fed.append((piece, parts))
        if self._given is not None:
            self._told += self._foretelling().take(piece, parts, self._seq, self._names)
        return parts

    def _held(self) -> list[np.ndarray]:
        if self._listener is not None:
            return self._listener[0].keys_in_use()
        if self._given is None or not len(self):
            return []
        return self._foretelling().keys_in_use(self._latest, self._idle)

    def _renamed(self, known: np.ndarray) -> None:
        if self._listener is not None:
            self._listener[0].renumber_keys(known)
        if self._forecaster is not None:
            self._forecaster.renumber_keys(known)

    def _changed(self) -> None:
        super()._changed()
        if self._forecaster is not None:  # where unchanged patterns stand is taken over when it is needed
            self._given = self.model
            self._before, self._forecaster = self._forecaster, None

    def forked(self) -> Detector:
        """Return a detector of the same patterns that has seen nothing; what was compiled is shared."""
        made = super().forked()
        assert isinstance(made, Detector)
        made._plans, made._told, made._forecaster = dict(self._plans), [], None
        made._listener = made._before = None
        return made

    # Keeping -----------------------------------------------------------------------------------

    def _kept(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if self._given is None:
            return {}, {}
        plans = [[name, *plan.to_tuple()] for name, plan in self._plans.items()]
        told = self._given if not len(self) else self._foretelling().model  # as probabilities were last reckoned
        return {"plans": plans, "learn": self._learn, "part": self._part}, {"model": told.to_bytes()}

    def _take_back(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        if "model" in arrays:
            self._given, self._learn, self._part = Model.from_bytes(arrays["model"]), header["learn"], header["part"]
            for name, horizon, threshold, tell, step in header["plans"]:
                self._plans[name] = ForecastPlan.of(horizon=horizon, threshold=threshold, tell=tell, step=step)

    def _standing(self, held: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
        if self._given is None or not len(self):
            return {}, {}
        return dump_forecaster(self._foretelling(), held, list(self._filters))

    def _stand(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        if self._given is not None and "followings" in header:
            load_forecaster(self._foretelling(), header, arrays, dict(self._filters))
