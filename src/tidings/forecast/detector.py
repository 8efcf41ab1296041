"""The façade of patterns, the twin of `Matcher`: which patterns happen in a stream, and how likely they are to happen.

A detector puts parts together: a catalog of patterns, a run over what the catalog compiles, and, with a model, an
observer that forecasts. It adds one thing of its own: a lock, so that several threads may use it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

from tidings.concepts.vocabulary import Vocabulary
from tidings.errors import TidingsError
from tidings.forecast.forecasts import Forecast, Forecasts
from tidings.forecast.horizon import Horizon, HorizonLike
from tidings.forecast.predicting.forecast_observer import ForecastObserver, load_observer, open_observer
from tidings.forecast.predicting.forecaster import ForecastPlan
from tidings.forecast.predicting.probability_table import require_times
from tidings.forecast.tuning import ForecastTuning
from tidings.forks import Level, guard, with_lock
from tidings.lang import WrittenPattern, render_pattern
from tidings.lang.patterns.notations import read_pattern
from tidings.matcher.admission import check_on_error
from tidings.model.patterns import Pattern
from tidings.patterns import Detection, Detections, PatternCatalog, PatternSet, Run, StreamSettings
from tidings.patterns.pattern_set import check_pattern, parse_lateness
from tidings.patterns.run.event_times import parse_moment, to_datetime
from tidings.patterns.run.graph_run import MOST_PARTIALS
from tidings.patterns.state.graph_bytes import pack_state, unpack_state
from tidings.patterns.state.run_bytes import dump_patterns, dump_run, load_patterns, load_run
from tidings.patterns.tuning import DetectorTuning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime, timedelta
    from pathlib import Path

    from tidings.concepts import Ontology, Regions
    from tidings.forecast.model import Model
    from tidings.model import EventLike, Schema
    from tidings.patterns.compile.graph import CompiledPattern
    from tidings.patterns.run.event_reader import Events
    from tidings.patterns.run.mismatch_counts import PatternMismatch


@dataclass(frozen=True, slots=True)
class DetectorParts:
    """What a detector is made of, where it does not begin anew: a fork, or one that is resumed."""

    catalog: PatternCatalog
    forecasting: ForecastObserver | None
    forecast_tuning: ForecastTuning


class Detector:
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
    >>> [detection] = attacks.on_event({"id": 3, "time": 9, "status": "success", "ip": "10.0.0.1"})
    >>> detection.pattern, detection.events, detection.bindings
    ('intrusion', (0, 1, 2, 3), {'x': '10.0.0.1'})

    Events come in the order of time; one that is more than `lateness` behind the latest is not taken, and listed in
    `Detections.late`. With a lateness, events wait until it has passed and are put in order. One without a time stands
    where it came, and takes no part in patterns that ask for times (`mismatches` counts). `time` and `event_id` name
    the fields of mappings and Arrow tables; `keep` names fields that detections carry. `partials` bounds the partial
    matches that one key may have at one step: of more, the newest stay, and `dropped` counts the others.

    With a `model` (`td.train`, or the path of one that was saved) it forecasts: `forecast` tells how likely a pattern
    is to complete, and patterns added with a `horizon` put forecasts beside the detections (`Detections.forecasts`).
    With `learn`, the events it takes are counted too: it predicts first and learns then; `model` is what it knows.
    """

    def __init__(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
        self,
        *,
        model: Model | str | Path | None = None,
        learn: bool = False,
        schema: Schema | None = None,
        ontology: Ontology | None = None,
        regions: Regions | None = None,
        time: str = "time",
        event_id: str = "id",
        keep: Iterable[str] = (),
        lateness: timedelta | str | None = None,
        partials: int = MOST_PARTIALS,
        tuning: DetectorTuning | None = None,
        forecast_tuning: ForecastTuning | None = None,
        parts: DetectorParts | None = None,
    ) -> None:
        """Start without patterns; with `parts`, of a fork or a state, the other arguments are ignored."""
        if parts is None:
            waits, tuning = parse_lateness(lateness), tuning or DetectorTuning()
            settings = StreamSettings(time, event_id, tuple(keep), waits, partials, tuning)
            catalog = PatternCatalog(Vocabulary.of(schema, ontology, regions), settings)
            forecast_tuning = forecast_tuning or ForecastTuning()
            parts = DetectorParts(catalog, open_observer(model, learn, forecast_tuning), forecast_tuning)
        self._catalog, self._forecasting = parts.catalog, parts.forecasting
        self.forecast_tuning = parts.forecast_tuning
        self._run = Run(self._catalog.compile(), observers=[self._forecasting] if self._forecasting else ())
        self.latest_forecasts = Forecasts()  # of the latest events: for those that come one by one
        self.lock = RLock()
        guard(self, Level.DETECTOR)

    # Patterns ----------------------------------------------------------------------------------

    def add(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
        self,
        name: str,
        pattern: str | Pattern | dict[str, Any],
        *,
        mode: str = "restart",
        limit: int | None = None,
        notation: str = "text",
        horizon: HorizonLike | None = None,
        threshold: float = 0.5,
        tell: str = "crossing",
        step: float = 0.1,
    ) -> None:
        """Add a pattern, or replace the one of this name; it sees the events that come from now on.

        Where events wait for their turn (`lateness`), it sees those that are later than all that came so far.
        `mode` is `restart`, `overlap`, `next` or `any`; `limit` is how many embeddings `any` reports at one event.

        With a `horizon` (`10` events, `"10 own events"` of the key, `"5 min"`) the pattern is forecast: when its
        probability rises strictly above `threshold` (`tell="crossing"`), only once until it matches or its beginnings
        are gone (`"episode"`), when it has changed by more than `step` (`"change"`), or at every event (`"every"`).
        """
        if isinstance(pattern, Pattern):  # built by hand: the notation's checks are the only ones
            pattern, notation = render_pattern(pattern, "json"), "json"
        parsed = read_pattern(pattern, self.vocabulary, notation=notation)
        written = check_pattern(name, parsed, mode, limit)
        self.add_many([written], horizon=horizon, threshold=threshold, tell=tell, step=step)

    @with_lock
    def add_many(self, patterns: Iterable[WrittenPattern], **plan: Any) -> None:
        """Add many, as `lang.read_patterns` reads them from a file; all of them or, where one is refused, none.

        `horizon`, `threshold`, `tell` and `step` hold for all of them: see `add`.
        """
        written = list(patterns)
        common = ForecastPlan.of(**({"horizon": None, "threshold": 0.5, "tell": "crossing", "step": 0.1} | plan))
        self._check_horizon(common.horizon, written)
        # Without a plan a pattern that is replaced loses its own.
        planned = [pattern.name for pattern in written if plan or pattern.name in self]
        self._catalog.add_many(written, born=self._run.position, since=self._run.new_patterns_after)
        if self._forecasting is not None:
            self._forecasting.plans |= dict.fromkeys(planned, common)

    def _check_horizon(self, horizon: Horizon | None, patterns: list[WrittenPattern]) -> None:
        """Refuse a horizon without a model, and a span of time with a model that knows no times."""
        if horizon is None:
            return
        if self._forecasting is None:
            names = ", ".join(f"`{pattern.name}`" for pattern in patterns[:3])
            msg = f"forecasts need a model: td.Detector(model=td.train(...)), or learn=True to begin without; {names}"
            raise TidingsError(msg)
        if not self._forecasting.learns:
            require_times(horizon, self._forecasting.base_model.traffic)

    @with_lock
    def remove(self, name: str) -> None:
        """Remove a pattern; `UnknownPattern`, a `KeyError`, if it is not there."""
        self._catalog.remove(name)
        if self._forecasting is not None:
            self._forecasting.plans.pop(name, None)

    def __len__(self) -> int:
        return len(self._catalog)

    def __contains__(self, name: object) -> bool:
        return name in self._catalog

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog)

    def __getitem__(self, name: str) -> Pattern:
        return self._catalog[name]

    @property
    def patterns(self) -> tuple[CompiledPattern, ...]:
        """The patterns with their modes, in the order they were added."""
        return self._catalog.patterns

    @property
    def vocabulary(self) -> Vocabulary:
        """Schema, ontology and regions: what names in patterns and events mean."""
        return self._catalog.vocabulary

    def compile(self) -> PatternSet:
        """Return the patterns as a set that runs go through."""
        return self._catalog.compile()

    @with_lock
    def share_patterns(self) -> PatternSet:
        """Return the set of the patterns for another stream; it stays as it is when this detector changes."""
        return self._catalog.fork().compile()

    # Events ------------------------------------------------------------------------------------

    @property
    def run(self) -> Run:
        """The run over the patterns that are there now."""
        # Here, not in `add`: patterns that are added one by one are compiled together.
        self._run.patterns = self._catalog.compile()
        return self._run

    def on_event(self, event: EventLike) -> list[Detection]:
        """Take one event and return what it completes; `BadEvent` when it cannot be read."""
        return list(self.detect_many([event]))

    @with_lock
    def detect_many(self, events: Events, *, on_error: Literal["raise", "collect"] = "raise") -> Detections:
        """Take a list of events, an Arrow table or a `td.EventBatch`, and return what they complete.

        A bad event raises `BadEvent` before any event is taken; with `on_error="collect"` it goes to `.dead_letters`.
        """
        check_on_error(on_error)
        detections = self.run.detect_many(events, collect=on_error == "collect")
        detections.forecasts = self._collect_forecasts()
        return detections

    @with_lock
    def on_time(self, now: datetime | float | str) -> list[Detection]:
        """Let time pass: absences complete, waiting events are taken, and partial matches that came too late go.

        What comes later with an earlier time is late. Forecasts of events that waited are in `latest_forecasts`.
        """
        detections = self.run.pass_time(parse_moment(now))
        self._collect_forecasts()
        return list(detections)

    def _collect_forecasts(self) -> Forecasts:
        self.latest_forecasts = Forecasts(self._forecasting.collect() if self._forecasting is not None else ())
        return self.latest_forecasts

    def next_deadline(self) -> datetime | None:
        """Return when the earliest absence may complete; `None` when no pattern waits for one."""
        deadline = self.run.next_deadline
        return None if deadline is None else to_datetime(deadline)

    @property
    def dropped(self) -> int:
        """How many partial matches were given up because a key had too many."""
        return self.run.dropped_count

    @property
    def cut(self) -> int:
        """How many times the limit of a pattern in the mode `any` cut its reports short."""
        return self.run.cut_count

    @property
    def late(self) -> int:
        """How many events came too late to be taken."""
        return self.run.late_count

    @property
    def transitions(self) -> int:
        """How many steps were served by events so far."""
        return self.run.transitions

    @property
    def has_begun(self) -> bool:
        """Whether any event has arrived."""
        return self._run.arrived > 0

    @property
    def latest_time(self) -> datetime | None:
        """The watermark plus the lateness; `None` before the first event that has a time."""
        return self._run.latest_time

    def mismatches(self) -> tuple[PatternMismatch, ...]:
        """Return what patterns could not use of the events so far, and which patterns that is about.

        Values that filters cannot read as the kind they ask for, values that no variable takes (several, records),
        and events without a time where patterns ask for times. None of it makes an event bad, or touches others.
        """
        return self.compile().list_mismatches()

    # Settings ----------------------------------------------------------------------------------

    @property
    def time(self) -> str:
        """The field that has an event's time."""
        return self._catalog.settings.time

    @property
    def event_id(self) -> str:
        """The field that has an event's id."""
        return self._catalog.settings.event_id

    @property
    def keep(self) -> tuple[str, ...]:
        """The fields that detections carry."""
        return self._catalog.settings.keep

    @property
    def lateness(self) -> int:
        """How far, in microseconds, an event may be behind the latest."""
        return self._catalog.settings.lateness

    @property
    def partials(self) -> int:
        """How many partial matches one key may have at one step."""
        return self._catalog.settings.partials

    @with_lock
    def rename_fields(self, time: str, event_id: str) -> None:
        """Read the time and the id of the events from now on from other fields."""
        self._catalog.change_settings(replace(self._catalog.settings, time=time, event_id=event_id))

    # Forecasts ---------------------------------------------------------------------------------

    @with_lock
    def forecast(self, name: str, *, horizon: HorizonLike | None = None) -> list[Forecast]:
        """Return how likely a pattern is to complete within the horizon, from the current state.

        Of a pattern with a key: one forecast for each key that has begun something, and one (`key` nothing) for those
        that have not. Of any other pattern: exactly one.
        """
        self[name]  # raises where there is none
        parsed_horizon = None if horizon is None else Horizon.of(horizon)
        return self.prepare_forecasting().forecast(name, parsed_horizon)

    @with_lock
    def prepare_forecasting(self) -> ForecastObserver:
        """Return the observer that forecasts, with the probabilities of the patterns that are there now."""
        if self._forecasting is None:
            msg = "forecasts need a model: td.Detector(model=td.train(detector, history))"
            raise TidingsError(msg)
        self.run.prepare()
        return self._forecasting

    @property
    def model(self) -> Model | None:
        """The model; of a detector that learns, with everything it has taken so far."""
        return None if self._forecasting is None else self._forecasting.model

    @property
    def plans(self) -> Mapping[str, ForecastPlan]:
        """Which forecasts are emitted of the patterns that were added with a horizon or are forecast on demand."""
        return {} if self._forecasting is None else self._forecasting.plans

    def horizons(self) -> dict[str, Horizon]:
        """Return how far ahead each pattern is forecast, of those that are."""
        return {name: plan.horizon for name, plan in self.plans.items() if plan.horizon is not None}

    # States ------------------------------------------------------------------------------------

    @with_lock
    def snapshot(self) -> bytes:
        """Return patterns, partial matches and model as bytes."""
        header, arrays = dump_patterns(self.compile())
        run_header, run_arrays = dump_run(self.run)
        if self._forecasting is not None:
            model_header, model_arrays = self._forecasting.dump_observer()
            header, arrays = header | model_header, arrays | model_arrays
        return pack_state(header | run_header, arrays | run_arrays)

    @classmethod
    def resume(cls, state: bytes) -> Detector:
        """Return the detector of a snapshot, which continues exactly; `StateError` when the bytes are not one."""
        header, arrays = unpack_state(state)
        forecasting = load_observer(header, arrays) if "model" in arrays else None
        detector = cls(parts=DetectorParts(load_patterns(header, arrays), forecasting, ForecastTuning()))
        load_run(detector.run, header, arrays)
        return detector

    @with_lock
    def fork(self) -> Detector:
        """Return a detector of the same patterns before its first event; compiled parts are shared."""
        forecasting = None if self._forecasting is None else self._forecasting.make_fresh()
        return Detector(parts=DetectorParts(self._catalog.fork(), forecasting, self.forecast_tuning))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).resume, (self.snapshot(),)

    def __repr__(self) -> str:
        return f"<Detector: {len(self):,} patterns>"
