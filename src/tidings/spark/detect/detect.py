"""`detect`: a DataFrame of events in, a DataFrame of patterns that happened out; the same call for batch and stream.

Events are matched against all filters first, where they lie and without state; what the patterns need of them goes to
buckets of keys (`dealing`), and each bucket's detector takes its rows in the order of time (`detecting`). A batch is
sorted whole; a stream waits for its watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import StringType, StructField, StructType

from tidings.concepts import Ontology
from tidings.errors import BadFrame
from tidings.forecast.predicting.forecaster import ForecastPlan as Foretelling
from tidings.spark.detect.bucket_forecasts import Foresight
from tidings.spark.detect.bucket_processor import PACKED, Buckets, Whole, unpacking
from tidings.spark.detect.bucketing import DEALT, Deal, Letters
from tidings.spark.detect.pattern_source import attributes_read, detector_of
from tidings.spark.detect.worker_plan import Plan, output
from tidings.spark.schema import (
    arrow_type_of,
    to_column,
    find_columns,
    cast_for_arrow,
    find_names_read,
    require_columns,
    require_frame,
    make_unused_name,
)
from tidings.spark.query_context import QueryContext, to_schema, check_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from pyspark.sql import DataFrame

    from tidings.concepts import Regions
    from tidings.forecast import Model
    from tidings.patterns import Detector
    from tidings.spark.detect.pattern_source import Patterns
    from tidings.spark.query_context import SchemaLike, Unknown

BUCKETS, BATCH_BUCKETS, SHARDS = 32, 64, 8
"""How many buckets of keys a stream and a batch have, and shards of patterns without keys. A stream's stay as they
are, whatever the cluster: its checkpoint depends on them.
"""


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
    Events of one time are in the order of the DataFrame. Events that cannot be read take no part; `bad_events` tells.

    With a `model` (`train`, or the path of one) and a `horizon` (`10` events, `"10 own events"` of the key, `"5 min"`)
    there are rows of kind `forecast`: `events` is the one event that gave rise to it, `at` its time, and `probability`,
    `horizon` (as text) and `estimator` are filled. `threshold`, `tell` and `step` are those of `td.Detector.add`. A
    detector with a model brings that and its own horizons; here it does not learn. On a stream, where an event of a key
    stands among those of other keys is known about, by how many came to its bucket and how many to all: a horizon in
    the stream's events or in time is then an estimate, and one in the key's `own` events is not.

    `buckets` is among how many states the keys are dealt, `shards` among how many the patterns without a key; for a
    stream both are part of the checkpoint. Unchanged patterns keep their state when a query starts again with others.
    A pattern that names what no column has is refused, with the nearest names; `unknown="absent"` lets those be absent.
    """
    require_frame(events, "the events")
    given = QueryContext(to_schema(schema), ontology, regions, unknown=check_unknown(unknown))
    detector = detector_of(events, patterns, given, time=time, key=key)
    _check_told(events.schema, event_id, keep)
    asked = Foretelling.of(horizon=horizon, threshold=threshold, tell=tell, step=step)
    foresight = Foresight.of(patterns, detector, model=model, asked=asked)
    plan = Plan.of(
        detector,
        buckets=number_of("buckets", buckets, BUCKETS if events.isStreaming else BATCH_BUCKETS),
        shards=number_of("shards", shards, SHARDS),
        event_id=event_id,
        keep=keep or (),
        model=foresight.model if foresight.plans else None,
        plans=foresight.plans,
    )
    schema_out = output(events.schema, plan)
    if not events.isStreaming:
        dealt = _dealt(events, plan, detector, clock=True, in_order=foresight.by_share(detector))
        return dealt.groupBy("bucket").applyInArrow(_whole(plan, schema_out), schema_out)
    _require_watermark(events, time)
    _require_store(events)
    dealt = _dealt(events, plan, detector, clock=False, in_order=False)
    found = dealt.groupBy("bucket").transformWithState(Buckets(plan), PACKED, "append", "eventTime")
    return found.mapInArrow(unpacking(), schema_out)


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
    require_frame(events, "the events")
    given = QueryContext(to_schema(schema), ontology, regions, unknown=check_unknown(unknown))
    detector = detector_of(events, patterns, given, time=time, key=key)
    if event_id is not None:
        require_columns([event_id], events.schema, why="event_id")
    frame = cast_for_arrow(events)
    names = tuple(dict.fromkeys(events.columns))
    require_columns(names, frame.schema, why="the events")
    reason = make_unused_name("reason", names)
    plan = Plan.of(detector, buckets=1, shards=1, event_id=event_id or time, keep=())
    fields = [StructField(f"_{place}", frame.schema[name].dataType) for place, name in enumerate(names)]
    plain = frame.select(*(to_column(name).alias(f"_{place}") for place, name in enumerate(names)))
    letters = Letters(plan, names, columns_asked(events, detector))
    bad = plain.mapInArrow(letters, StructType([*fields, StructField(reason, StringType(), nullable=False)]))
    bad = bad.select(*(to_column(f"_{place}").alias(name) for place, name in enumerate(names)), reason)
    row = F.to_json(F.struct(*map(to_column, names)), {"ignoreNullFields": "false"})
    event = [] if event_id is None else [to_column(event_id).alias("event")]
    return bad.select(*event, to_column(reason).alias("reason"), row.alias("row"))


def _dealt(events: DataFrame, plan: Plan, detector: Detector, *, clock: bool, in_order: bool) -> DataFrame:
    """Send what is read and what is told, and no other column, to the buckets."""
    read = columns_asked(events, detector)
    names = tuple(dict.fromkeys([*read, *plan.told]))
    plain = laid_out(events, names, time=plan.time if in_order else None)
    return plain.mapInArrow(Deal(plan, names, read, clock, placed=in_order), DEALT)


def laid_out(events: DataFrame, names: Sequence[str], *, time: str | None) -> DataFrame:
    """Return columns by their places; with `time`, rows in its order over all partitions; of one time, as they lie."""
    columns = [to_column(name).alias(f"_{place}") for place, name in enumerate(names)]
    if time is None:
        return events.select(*columns)
    at = "at"  # no place's name
    rows = events.select(*columns, F.monotonically_increasing_id().alias(at))
    return rows.orderBy(f"_{list(names).index(time)}", at).drop(at)


def columns_asked(events: DataFrame, detector: Detector) -> tuple[str, ...]:
    """Return the columns that are read: what filters look at, what gives variables their values, and the time."""
    asked = find_names_read(detector._matcher.needs(), detector._matcher.ontology or Ontology())
    asked |= {detector.time, *attributes_read(detector)}
    read = tuple(find_columns(asked, events.columns))
    require_columns(read, events.schema, why="the patterns")
    return read


def _whole(plan: Plan, schema: StructType) -> Any:
    fields = [(field.name, arrow_type_of(field.dataType)) for field in schema]
    whole = Whole(plan, pa.schema(fields))

    def of_bucket(key: tuple[pa.Scalar, ...], dealt: pa.Table) -> pa.Table:
        return whole(key, dealt)

    return of_bucket  # Spark counts the arguments of a plain function


# Checks ---------------------------------------------------------------------------------------------------


def _check_told(frame: StructType, event_id: str, keep: Sequence[str] | None) -> None:
    if isinstance(keep, str):
        msg = f"keep is a list of columns: keep=[{keep!r}]"
        raise BadFrame(msg)
    told = [event_id, *(keep or ())]
    repeated = sorted({name for name in told if told.count(name) > 1})
    if repeated:
        msg = f"keep: `{repeated[0]}` is told twice; the id comes along by itself"
        raise BadFrame(msg)
    require_columns([event_id], frame, why="event_id")
    require_columns(keep or (), frame, why="keep")


def _require_watermark(events: DataFrame, time: str) -> None:
    if "spark.watermarkDelayMs" not in events.schema[time].metadata:
        way_out = f"events.withWatermark({time!r}, '10 minutes') says how long events may come late"
        msg = f"a stream of events needs a watermark on `{time}`: {way_out}"
        raise BadFrame(msg)


def _require_store(events: DataFrame) -> None:
    """Let the session's queries keep state in RocksDB: Spark has timers and several values there alone."""
    session, name = events.sparkSession, "spark.sql.streaming.stateStore.providerClass"
    if "RocksDB" not in (session.conf.get(name, "") or ""):
        session.conf.set(name, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")


def number_of(name: str, given: int | None, default: int) -> int:
    """Return how many there are to be, as given or by default."""
    if given is not None and (type(given) is not int or given < 1):
        msg = f"{name} is a number from 1 up, not {given!r}"
        raise BadFrame(msg)
    return given or default
