"""`train`: a DataFrame of events in, a model of patterns out.

Counts add up. So events are sorted and sent to buckets as `detect` does with a batch, each bucket counts its own
(`bucket_training`), and the driver adds the counts: the model is the one that `td.train` makes of the same rows in
order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidings.errors import BadFrame
from tidings.forecast import Detector, Horizon, Model
from tidings.forecast.learning.learner import Learner
from tidings.forecast.model import pattern_key
from tidings.spark.detect.bucketing import BUCKET_VALUES
from tidings.spark.detect.event_rows import BATCH_BUCKETS, SHARDS, check_count, find_columns_read, select_by_place
from tidings.spark.detect.pattern_source import build_detector
from tidings.spark.detect.worker_plan import DetectPlan
from tidings.spark.query_context import QueryContext
from tidings.spark.schema import require_columns, require_frame
from tidings.spark.train.bucket_training import MODEL_ROWS, TRAFFIC, BucketTrainer, TrainingStep

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from tidings.concepts import Ontology, Regions
    from tidings.spark.detect.pattern_source import Patterns
    from tidings.spark.query_context import SchemaLike, Unknown


def train(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
    events: DataFrame,
    patterns: Patterns,
    *,
    time: str = "ts",
    event_id: str | None = None,
    key: str | None = None,
    context: int = 3,
    smoothing: float = 0.5,
    half_life: timedelta | str | int | None = None,
    estimator: str = "both",
    horizons: Iterable[Any] = (),
    schema: SchemaLike | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    buckets: int | None = None,
    shards: int | None = None,
    unknown: Unknown = "error",
) -> Model:
    """Return a model of the patterns, counted over a batch of events: what `td.train` makes of the same rows in order.

    `patterns`, `time`, `key`, `schema`, `ontology`, `regions`, `buckets`, `shards` and `unknown` are those of `detect`;
    give both the same `key`, and the model knows the patterns again. `context`, `smoothing`, `half_life`, `estimator`
    and `horizons` are those of `td.train`. Events are put in order of time; those that cannot be read take no part, and
    `bad_events` tells of them. `event_id` may be given, as to `detect`; nothing is done with it.
    """
    require_frame(events, "the events")
    if events.isStreaming:
        msg = "a model is trained on a batch, and these events are a stream; read its history with `spark.read`"
        raise BadFrame(msg)
    names = QueryContext.of(schema, ontology, regions, unknown=unknown)
    detector = build_detector(events, patterns, names, time=time, key=key)
    if event_id is not None:
        require_columns([event_id], events.schema, why="event_id")
    _remove_duplicates(detector)
    model = Model(context=context, smoothing=smoothing, half_life=half_life, estimator=estimator)
    base = Learner(model, detector.compile(), spans=_find_time_spans(horizons, patterns)).model()
    plan = DetectPlan.of(
        detector,
        buckets=check_count("buckets", buckets, BATCH_BUCKETS),
        shards=check_count("shards", shards, SHARDS),
        event_id=None,
        keep=(),
        model=base,
    )
    return _merge_models(base, _train_buckets(events, plan, detector))


def _train_buckets(events: DataFrame, plan: DetectPlan, detector: Detector) -> dict[str, Model]:
    """Count in the workers, and return the model of each bucket."""
    assert plan.model is not None
    read, half_life = find_columns_read(events, detector), Model.from_bytes(plan.model).settings.half_life
    rows = select_by_place(events, read, time=plan.time)
    values = rows.mapInArrow(
        TrainingStep(plan, read, read, clock=True, with_places=True, half_life=half_life), BUCKET_VALUES
    )
    train_bucket = BucketTrainer(plan, pa.schema([("bucket", pa.string()), ("model", pa.binary())]))

    def train_rows(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        return train_bucket(key, rows)  # Spark counts the arguments of a plain function

    models = values.groupBy("bucket").applyInArrow(train_rows, MODEL_ROWS).collect()
    return {row.bucket: Model.from_bytes(bytes(row.model)) for row in models}


def _merge_models(base: Model, models: dict[str, Model]) -> Model:
    """Add the models of the buckets; numbers of the whole stream come from the bucket of tallies alone."""
    if not models:
        return base
    whole = models.pop(TRAFFIC)
    merged = base
    for name in sorted(models):
        merged = models[name].merge(merged)  # this way round, patterns keep their order
    shared = whole.traffic
    traffic = replace(shared, own=merged.traffic.own)
    return merged.with_counts(patterns=merged.patterns, traffic=traffic, now=whole.now)


# Patterns ---------------------------------------------------------------------------------------------


def _remove_duplicates(detector: Detector) -> None:
    """Remove patterns that equal an earlier one under another name: a model counts them once."""
    seen: set[str] = set()
    for pattern in detector.patterns:
        key = pattern_key(pattern.pattern, pattern.mode)
        if key in seen:
            detector.remove(pattern.name)
        seen.add(key)


def _find_time_spans(horizons: Iterable[Any], patterns: Patterns) -> set[int]:
    """Return the horizons that are times, in microseconds, those of a detector's patterns included."""
    own = patterns.horizons().values() if isinstance(patterns, Detector) else ()
    return {horizon.amount for horizon in [*map(Horizon.of, horizons), *own] if horizon.unit == "time"}
