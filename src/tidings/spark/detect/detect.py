"""`detect`: a DataFrame of events in, a DataFrame of detected patterns out; the same call for batch and stream.

Events are first matched against all filters, where they lie and without state. What the patterns need of them goes to
buckets of keys (`bucketing`), and each bucket's `Run` takes its rows in the order of time (`bucket_processor`). A
batch is sorted as a whole; a stream waits for its watermark.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from tidings.errors import BadFrame
from tidings.forecast.predicting.forecaster import ForecastPlan
from tidings.spark import schema as frames
from tidings.spark.detect import bucketing
from tidings.spark.detect.bucket_forecasts import choose_forecasts, needs_stream_positions
from tidings.spark.detect.bucket_processor import PACKED, BucketProcessor, make_batch_processor, make_unpacker
from tidings.spark.detect.bucketing import find_columns_read, list_bad_events, select_numbered_columns, send_to_buckets
from tidings.spark.detect.pattern_source import build_detector
from tidings.spark.detect.worker_plan import DetectPlan, build_output_schema
from tidings.spark.query_context import QueryContext
from tidings.spark.state_store import require_rocksdb

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from pyspark.sql import DataFrame

    from tidings.concepts import Ontology, Regions
    from tidings.forecast import Detector, Model
    from tidings.spark.detect.pattern_source import Patterns
    from tidings.spark.query_context import SchemaLike, Unknown


def detect(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
    events: DataFrame,
    patterns: Patterns,
    *,
    time: str = "ts",
    event_id: str = "id",
    key: str | None = None,
    model: Model | str | PathLike[str] | None = None,
    horizon: Any = None,
    threshold: float = 0.5,
    tell: str = "crossing",
    step: float = 0.1,
    keep: Sequence[str] | None = None,
    schema: SchemaLike | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    buckets: int | None = None,
    shards: int | None = None,
    unknown: Unknown = "error",
) -> DataFrame:
    """Return which patterns happened, or may: `kind`, `pattern`, `key`, `at`, `events`, and columns of forecasts.

    `events` is a batch or a streaming DataFrame; `patterns` a `td.Detector` (its patterns; what it has seen stays
    with it), a mapping or pairs of names and texts, what `lang.read_patterns` gives, or the path of a pattern file.
    `time` and `event_id` name columns. A row of kind `match` has the pattern's name, the key's value as text (several
    as a JSON list, null where the pattern has no key), when it was complete, and `events`: the ids in the order of the
    steps. With `keep`, `events` is an array of records: the id under its column's name, and the kept columns.

    `key` names a column that parts the stream: it is as if every filter of a pattern that has no key of its own said
    `column = $key`. Patterns whose operands all share a variable have one, and are left as they are.

    A batch is put in order of time, and time passes to its newest event: an absence whose deadline lies later is not
    reported. A stream needs `withWatermark` on the time column: events wait until the watermark has passed them. One
    that comes behind the watermark of its micro-batch is a row of kind `late`: `at` its time, `events` its id alone.
    Events of one time keep the DataFrame's order. Events that cannot be read are left out; `bad_events` lists them.

    With a `model` (`train`, or the path of one) and a `horizon` (`10` events, `"10 own events"` of the key, `"5 min"`)
    there are rows of kind `forecast`: `events` is the one event that gave rise to it, `at` its time, and `probability`,
    `horizon` (as text) and `estimator` are filled. `threshold`, `tell` and `step` are those of `td.Detector.add`. A
    detector with a model brings that and its own horizons; here it does not learn. On a stream, the place of a key's
    event among those of other keys is approximated by the share of events that came to its bucket: a horizon in the
    stream's events or in time is then an estimate, and one in the key's `own` events is not.

    `buckets` is the number of states that keys are hashed to, `shards` the number of groups of patterns without a key;
    for a stream both are part of the checkpoint. Unchanged patterns keep their state when a query starts again with
    others. A pattern that names what no column has is refused, with the nearest names; `unknown="absent"` lets those be
    absent.
    """
    frames.require_frame(events, "the events")
    context = QueryContext.of(schema, ontology, regions, unknown=unknown)
    detector = build_detector(events, patterns, context, time=time, key=key)
    _check_columns(events.schema, event_id, keep)
    forecast = ForecastPlan.of(horizon=horizon, threshold=threshold, tell=tell, step=step)
    chosen, forecasts = choose_forecasts(patterns, detector, model=model, plan=forecast)
    frames.check_counts(buckets=buckets, shards=shards)
    plan = DetectPlan.of(
        detector,
        buckets=buckets or (bucketing.BUCKETS if events.isStreaming else bucketing.BATCH_BUCKETS),
        shards=shards or bucketing.SHARDS,
        event_id=event_id,
        keep=keep or (),
        model=chosen,
        forecasts=forecasts,
    )
    columns = build_output_schema(events.schema, plan)
    if events.isStreaming:
        return _detect_stream(events, detector, plan, columns)
    # Each bucket sorts its own rows; a sort of all events is paid for only where their positions in the batch count.
    positions = needs_stream_positions(forecasts, detector)
    rows = send_to_buckets(events, plan, detector, clock=True, needs_stream_positions=positions)
    arrow_columns = pa.schema([(field.name, frames.find_arrow_type(field.dataType)) for field in columns])
    return rows.groupBy("bucket").applyInArrow(make_batch_processor(plan, arrow_columns), columns)


def _detect_stream(events: DataFrame, detector: Detector, plan: DetectPlan, columns: StructType) -> DataFrame:
    """Return the detections of a stream, which must have a watermark; its buckets keep their state in RocksDB."""
    if "spark.watermarkDelayMs" not in events.schema[plan.time].metadata:
        way_out = f"events.withWatermark({plan.time!r}, '10 minutes') says how long events may come late"
        msg = f"a stream of events needs a watermark on `{plan.time}`: {way_out}"
        raise BadFrame(msg)
    require_rocksdb(events.sparkSession)
    rows = send_to_buckets(events, plan, detector, clock=False, needs_stream_positions=False)
    packed = rows.groupBy("bucket").transformWithState(BucketProcessor(plan), PACKED, "append", "eventTime")
    return packed.mapInArrow(make_unpacker(), columns)


def bad_events(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
    events: DataFrame,
    patterns: Patterns,
    *,
    time: str = "ts",
    event_id: str | None = None,
    key: str | None = None,
    schema: SchemaLike | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    unknown: Unknown = "error",
) -> DataFrame:
    """Return the events that `detect` could not read: `event`, `reason`, and `row`, the raw row as JSON.

    It is what `dead_letters` is for `match`, and takes the same patterns and keywords as `detect`. Those without a time
    are among them: nothing else puts the rows of a DataFrame in order. Which events are bad depends on the columns,
    the schema and the ontology, never on the patterns. Without `event_id` there is no column `event`.
    """
    frames.require_frame(events, "the events")
    context = QueryContext.of(schema, ontology, regions, unknown=unknown)
    detector = build_detector(events, patterns, context, time=time, key=key)
    if event_id is not None:
        frames.require_columns([event_id], events.schema, why="event_id")
    frame = frames.cast_for_arrow(events)
    names = tuple(dict.fromkeys(events.columns))
    reason = StructField(frames.make_unused_name("reason", names), StringType(), nullable=False)
    plan = DetectPlan.of(detector, buckets=1, shards=1, event_id=event_id or time, keep=())
    fields = [StructField(f"_{number}", frame.schema[name].dataType) for number, name in enumerate(names)]
    letters = partial(list_bad_events, plan=plan, names=names, read=find_columns_read(events, detector))
    bad = select_numbered_columns(frame, names).mapInArrow(letters, StructType([*fields, reason]))
    bad = bad.select(*(frames.to_column(f"_{number}").alias(name) for number, name in enumerate(names)), reason.name)
    return frames.select_letters(bad, names, event_id=event_id, reason=reason.name)


def _check_columns(frame: StructType, event_id: str, keep: Sequence[str] | None) -> None:
    frames.check_keep(keep)
    names = [event_id, *(keep or ())]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        msg = f"keep: `{repeated[0]}` is named twice; the id comes along by itself"
        raise BadFrame(msg)
    frames.require_columns([event_id], frame, why="event_id")
    frames.require_columns(keep or (), frame, why="keep")
