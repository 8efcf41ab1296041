"""A pattern set as jobs carry it to the workers, which open it once and keep it, and the columns of its output.

A job carries the detector's snapshot (patterns and vocabulary) and a model, where there is one. A worker compiles each
portion when its first bucket arrives; all buckets of a portion share the compiled patterns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, DoubleType, StringType, StructField, StructType, TimestampType

from tidings.errors import CheckpointError
from tidings.forecast import Model
from tidings.forecast.model import make_filter_key
from tidings.forecast.predicting.forecast_observer import ForecastObserver
from tidings.forecast.predicting.forecaster import Forecaster, ForecastPlan
from tidings.forecast.tuning import ForecastTuning
from tidings.patterns.run.portions import Portion, split_patterns
from tidings.patterns.state.graph_bytes import unpack_state
from tidings.patterns.state.run_bytes import load_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tidings.forecast import Detector
    from tidings.patterns import PatternSet
    from tidings.spark.detect.base import WorkerPlan

KEYS = 1 << 14
"""Keys without a partial match that the state of a bucket keeps; of more, those with most events."""


class OpenPatterns:
    """A pattern set in a worker: all patterns, to read events with, and the portions that process them.

    `split` is asked for the portions when the first of them is needed. `model` is decoded then too. Of the patterns in
    `only_forecasts` forecasts are reported and nothing else.
    """

    def __init__(
        self,
        patterns: PatternSet,
        split: Callable[[], Sequence[Portion]],
        *,
        model: bytes | None = None,
        forecasts: Mapping[str, ForecastPlan] | None = None,
        only_forecasts: Collection[str] = (),
    ) -> None:
        self.patterns, self.only_forecasts = patterns, frozenset(only_forecasts)
        self._split, self._model, self._forecasts = split, model, forecasts or {}
        self._forecasters: dict[str, Forecaster] = {}  # one for each portion: its buckets share the probabilities

    @cached_property
    def portions(self) -> Sequence[Portion]:
        """The portions, compiled."""
        return self._split()

    @cached_property
    def model(self) -> Model | None:
        """The model of the plan, if it has one."""
        return None if self._model is None else Model.from_bytes(self._model)

    @cached_property
    def _portion_of(self) -> dict[str, Portion]:
        return {portion.name: portion for portion in self.portions}

    @cached_property
    def filter_keys(self) -> dict[int, str]:
        """The key of each filter in a model, by the filter's number."""
        patterns = [compiled.pattern for compiled in self.patterns.patterns]
        used = [(pattern, name) for pattern in patterns for name in pattern.list_filters()]
        return {self.patterns.filters[pattern[name].filter]: make_filter_key(pattern, name) for pattern, name in used}

    def has_forecasts(self, portion: Portion) -> bool:
        """Tell whether a portion's patterns are forecast: then every event counts."""
        return bool(self._find_horizon_units(portion))

    def needs_stream_positions(self, portion: Portion) -> bool:
        """Tell whether its forecasts depend on the shares that keys have of the whole stream."""
        return portion.has_keys and bool(self._find_horizon_units(portion) - {"own"})

    def _find_horizon_units(self, portion: Portion) -> set[str]:
        """Return the units of the horizons of a portion's patterns."""
        plans = self._list_plans(portion).values()
        return {plan.horizon.unit for plan in plans if plan.horizon is not None}

    def _list_plans(self, portion: Portion) -> dict[str, ForecastPlan]:
        return {name: self._forecasts[name] for name in portion.patterns.names if name in self._forecasts}

    def build_observer(self, portion: Portion) -> ForecastObserver | None:
        """Return an observer that forecasts a portion's patterns in one bucket; None where none are forecast."""
        if self.model is None or not self.has_forecasts(portion):
            return None
        plans = self._list_plans(portion)
        if portion.name not in self._forecasters:
            self._forecasters[portion.name] = Forecaster(self.model, portion.patterns, plans, learns=False)
        tuning, forecaster = ForecastTuning(idle_keys=KEYS), self._forecasters[portion.name].copy_without_learner()
        return ForecastObserver(self.model, plans=plans, tuning=tuning, forecaster=forecaster)

    def resolve_bucket(self, bucket: str) -> tuple[Portion, int] | None:
        """Return the portion and the number of a bucket by its name, or None when its patterns are gone."""
        name, _, address = bucket.rpartition("#")
        number, _, count = address.partition("/")
        portion = self._portion_of.get(name)
        if portion is None:
            return None
        if int(count) != portion.buckets:
            msg = f"the checkpoint has {count} buckets, not {portion.buckets}; say buckets={count}, or start anew"
            raise CheckpointError(msg)
        return portion, int(number)


@dataclass(frozen=True, slots=True)
class DetectPlan:
    """A pattern set as bytes inside a job, its numbers of buckets and shards, reported columns and forecasts.

    The digest stands for the bytes and the forecasts where plans are compared.
    """

    state: bytes = field(compare=False)
    digest: str
    buckets: int
    shards: int
    time: str
    event_id: str | None
    keep: tuple[str, ...]
    model: bytes | None = field(default=None, compare=False)
    forecasts: Mapping[str, ForecastPlan] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        detector: Detector,
        *,
        buckets: int,
        shards: int,
        event_id: str | None,
        keep: Sequence[str],
        model: Model | None = None,
        forecasts: Mapping[str, ForecastPlan] | None = None,
    ) -> DetectPlan:
        """Pack a detector; changes made to it later do not reach the job."""
        state, packed, plans = detector.snapshot(), None if model is None else model.to_bytes(), dict(forecasts or {})
        digest = hashlib.blake2b(state, digest_size=16)
        digest.update(repr((packed, plans)).encode())
        return cls(state, digest.hexdigest(), buckets, shards, detector.time, event_id, tuple(keep), packed, plans)

    def open(self) -> OpenPatterns:
        """Return the patterns, decoded once in this process."""
        return _open_patterns(self)

    @property
    def reported_columns(self) -> tuple[str, ...]:
        """The columns of its events that a detection has: the id, then those of `keep`."""
        return self.keep if self.event_id is None else (self.event_id, *self.keep)


@lru_cache(maxsize=6)
def _open_patterns(plan: DetectPlan) -> OpenPatterns:
    patterns = load_patterns(*unpack_state(plan.state)).compile()
    split = partial(split_patterns, patterns, buckets=plan.buckets, shards=plan.shards)
    return OpenPatterns(patterns, split, model=plan.model, forecasts=plan.forecasts)


def build_output_schema(frame: StructType, plan: WorkerPlan) -> StructType:
    """Return the columns of detections for events of these columns."""
    fields = [StructField(name, frame[name].dataType) for name in plan.reported_columns]
    events = StructType(fields) if plan.keep else fields[0].dataType
    return StructType(
        [
            StructField("kind", StringType(), nullable=False),
            StructField("pattern", StringType()),
            StructField("key", StringType()),
            StructField("at", TimestampType(), nullable=False),
            StructField("events", ArrayType(events), nullable=False),
            StructField("probability", DoubleType()),
            StructField("horizon", StringType()),
            StructField("estimator", StringType()),
        ]
    )
