"""`train`: a DataFrame of events in, a model of patterns out.

Counts add up. So events are sorted and sent to buckets as `detect` does with a batch, each bucket counts its own
(`bucket_training`), and the driver adds the counts: the model is the one that `td.train` makes of the same rows in
order.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tidings.errors import BadFrame
from tidings.forecast import Detector, Horizon, Model
from tidings.forecast.learning.learner import Learner
from tidings.forecast.model import make_pattern_key
from tidings.spark.detect.bucketing import BATCH_BUCKETS, SHARDS, send_to_buckets
from tidings.spark.detect.pattern_source import build_detector
from tidings.spark.detect.worker_plan import DetectPlan
from tidings.spark.query_context import QueryContext
from tidings.spark.schema import check_counts, require_columns, require_frame
from tidings.spark.train.bucket_training import MODEL_ROWS, TRAFFIC, build_tally, make_trainer

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
    `bad_events` lists them. `event_id` may be given, as to `detect`; nothing is done with it.
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
    own_horizons = patterns.horizons().values() if isinstance(patterns, Detector) else ()
    spans = {horizon.amount for horizon in [*map(Horizon.of, horizons), *own_horizons] if horizon.unit == "time"}
    base = Learner(model, detector.compile(), spans=spans).build_model()
    check_counts(buckets=buckets, shards=shards)
    plan = DetectPlan.of(
        detector, buckets=buckets or BATCH_BUCKETS, shards=shards or SHARDS, event_id=None, keep=(), model=base
    )
    tally = partial(build_tally, base.settings.half_life)
    packets = send_to_buckets(events, plan, detector, clock=True, needs_stream_positions=True, tally=tally)
    rows = packets.groupBy("bucket").applyInArrow(make_trainer(plan), MODEL_ROWS).collect()
    return _merge_models(base, {row.bucket: Model.from_bytes(bytes(row.model)) for row in rows})


def _merge_models(base: Model, models: dict[str, Model]) -> Model:
    """Add the models of the buckets; numbers of the whole stream come from the bucket of tallies alone."""
    if not models:
        return base
    whole = models.pop(TRAFFIC)
    merged = base
    for name in sorted(models):
        merged = models[name].merge(merged)  # this way round, patterns keep their order
    traffic = replace(whole.traffic, own=merged.traffic.own)
    return merged.with_counts(patterns=merged.patterns, traffic=traffic, now=whole.now)


def _remove_duplicates(detector: Detector) -> None:
    """Remove patterns that equal an earlier one under another name: a model counts them once."""
    seen: set[str] = set()
    for pattern in detector.patterns:
        key = make_pattern_key(pattern.pattern, pattern.mode)
        if key in seen:
            detector.remove(pattern.name)
        seen.add(key)
