"""A pattern set as it goes to the workers, which open it once and keep it, and what comes back of it.

What travels is the detector's snapshot: patterns, schema, ontology and regions; and a model, where there is one. A
worker compiles each portion when the first of its buckets comes along; buckets share what is compiled.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidings.errors import CheckpointError
from tidings.forecast import Model
from tidings.forecast.predicting.forecaster import ForecastPlan as Foretelling
from tidings.patterns.run.portions import Portion, split_patterns
from tidings.patterns.state.graph_bytes import unpack_state
from tidings.patterns.state.run_bytes import load_patterns
from tidings.spark.detect.bucket_forecasts import PortionForecaster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.forecast import Detector
    from tidings.forecast.predicting.observer import ForecastObserver

KEPT = 6
"""Pattern sets that a worker keeps open."""

_open: OrderedDict[tuple[str, int, int], Opened] = OrderedDict()


class Opened:
    """A pattern set in a worker: the whole, to read events with, and the portions that take them."""

    def __init__(self, plan: Plan) -> None:
        """Read the patterns."""
        self.whole = load_patterns(*unpack_state(plan.state)).compile()
        self._plan = plan
        self._forecasters: dict[str, PortionForecaster] = {}

    @cached_property
    def portions(self) -> list[Portion]:
        """All portions."""
        return split_patterns(self.whole, buckets=self._plan.buckets, shards=self._plan.shards)

    @cached_property
    def model(self) -> Model | None:
        """The model that was given."""
        return None if self._plan.model is None else Model.from_bytes(self._plan.model)

    def has_forecasts(self, portion: Portion) -> bool:
        """Tell whether forecasts are asked of a portion's patterns: then every event counts."""
        return bool(self._horizons(portion))

    def needs_positions(self, portion: Portion) -> bool:
        """Tell whether its forecasts depend on the shares that keys have of the whole stream."""
        return portion.is_keyed and bool(self._horizons(portion) - {"own"})

    def _horizons(self, portion: Portion) -> set[str]:
        """Return in which units a portion's patterns look ahead."""
        plans = [self._plan.plans[name] for name in portion.patterns.names if name in self._plan.plans]
        return {plan.horizon.unit for plan in plans if plan.horizon is not None}

    def build_observer(self, portion: Portion) -> ForecastObserver | None:
        """Return what forecasts a portion's patterns in one of its buckets; nothing where no forecast is asked."""
        if self.model is None or not self.has_forecasts(portion):
            return None
        if portion.name not in self._forecasters:
            self._forecasters[portion.name] = PortionForecaster(portion, self.model, self._plan.plans)
        return self._forecasters[portion.name].build_observer()

    def portion(self, bucket: str) -> tuple[Portion, int] | None:
        """Return the portion of a bucket's name, and the bucket's number; nothing when its patterns are gone."""
        name, _, place = bucket.rpartition("#")
        number, _, count = place.partition("/")
        for portion in self.portions:
            if portion.name == name:
                if int(count) != portion.buckets:
                    msg = (
                        f"the checkpoint has {count} buckets, not {portion.buckets}; say buckets={count}, or start anew"
                    )
                    raise CheckpointError(msg)
                return portion, int(number)
        return None


@dataclass(frozen=True, slots=True)
class Plan:
    """A pattern set as bytes inside the job, how it is dealt, the columns that detections tell, what is foretold."""

    state: bytes
    digest: str
    buckets: int
    shards: int
    time: str
    event_id: str | None
    keep: tuple[str, ...]
    model: bytes | None = None
    plans: Mapping[str, Foretelling] = field(default_factory=dict)

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
        plans: Mapping[str, Foretelling] | None = None,
    ) -> Plan:
        """Pack a detector; changes made to it later do not travel."""
        state, known, told = detector.snapshot(), None if model is None else model.to_bytes(), dict(plans or {})
        digest = hashlib.blake2b(state, digest_size=16)
        digest.update(repr((known, told)).encode())
        return cls(state, digest.hexdigest(), buckets, shards, detector.time, event_id, tuple(keep), known, told)

    def open(self) -> Opened:
        """Return the patterns, read once in this process."""
        key = (self.digest, self.buckets, self.shards)
        found = _open.pop(key, None)
        _open[key] = Opened(self) if found is None else found
        while len(_open) > KEPT:
            _open.popitem(last=False)
        return _open[key]

    @property
    def told(self) -> tuple[str, ...]:
        """The columns that a detection tells of its events."""
        return self.keep if self.event_id is None else (self.event_id, *self.keep)


def output(frame: StructType, plan: Plan) -> StructType:
    """Return the columns of what comes back."""
    fields = [StructField(name, frame[name].dataType) for name in plan.told]
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
