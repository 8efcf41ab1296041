"""`match` and `dead_letters`: a DataFrame of events in, a DataFrame of who must hear of them out.

Both are one `mapInArrow` between two selections (`crossing`), so the same call serves a batch and a stream, and Spark
Connect: nothing here reaches into the JVM. Only the columns that filters read and the output keeps cross into Python.
The time that `age` is reckoned against is Spark's own `current_timestamp()`, carried as a column: one moment for a
whole batch query, one for each micro-batch of a stream, whatever the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tidings.errors import BadFrame
from tidings.matcher import Live
from tidings.spark.match.output_columns import choose_columns
from tidings.spark.match.shard_gathering import group_by_row, drop_crowded, number_rows
from tidings.spark.match.worker_matcher import build_letters, build_lists, build_pairs
from tidings.spark.match.worker_stage import WorkerStage, match_in_workers
from tidings.spark.schema import to_column, cast_for_arrow, require_columns, require_frame, schema_of, make_unused_name
from tidings.spark.subscriptions.subscription_source import list_refused, open_subscriptions
from tidings.spark.query_context import QueryContext, to_schema, check_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame

    from tidings.concepts import Ontology, Regions
    from tidings.spark.subscriptions.subscription_source import Subscriptions
    from tidings.spark.query_context import SchemaLike, Unknown


def match(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    event_id: str | None = None,
    keep: Sequence[str] | None = None,
    grouped: bool = False,
    schema: SchemaLike | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
    shards: int | None = None,
    spread: int | None = None,
    limit: int | None = None,
    unknown: Unknown = "error",
) -> DataFrame:
    """Return who must hear of which event: a row for each pair of an event and a subscription it satisfies.

    `events` is a batch or a streaming DataFrame; `subscriptions` a DataFrame with columns `id` and `filter` (and
    `notation`), pairs, a `td.Matcher`, the path of a snapshot or of what `compile` made, or a `td.Live`, whose changes
    are in force in the first micro-batch that starts after them. With `event_id` the columns are `event` (that column's
    value) and `subscription`; without it, all columns of the event and `subscription`. `keep` names columns to carry
    along. `grouped=True` gives one row for each event that matched, with the array `subscriptions`.

    `shards` splits the subscriptions, and sends every event to each shard: for more than a machine holds. `spread`
    deals the events to so many tasks, where few partitions come in or one of them is hot. `limit` leaves out events
    that more subscriptions match, and `dead_letters` with the same limit lists them.

    Events that do not fit their attributes' kinds match nothing; `dead_letters` says which and why. A filter that
    is not well formed, asks a column for another kind than it has, or names what no column has is refused here, before
    any job runs; in a `td.Live` it is left out, and `refused` lists it. With `unknown="absent"`, names that no column
    has are absent. `schema` wins over the DataFrame's own types, and may be Spark's `StructType` or an Arrow schema
    too; `now` is what `age` is reckoned against, by default the time of the query or micro-batch.
    """
    require_frame(events, "the events")
    shape = choose_columns(events.schema, event_id=event_id, keep=keep, grouped=grouped)
    given = QueryContext(to_schema(schema), ontology, regions, now, check_unknown(unknown))
    _check_numbers(spread=spread, limit=limit)
    found = open_subscriptions(events.sparkSession, subscriptions, schema_of(events.schema), given, shards=shards)
    ids = found.spark_id_type
    apart = found.store.shards > 1 and (grouped or limit is not None)
    made = StructField(shape.id_column, ArrayType(ids, containsNull=False) if grouped and not apart else ids, nullable=False)
    crossing = WorkerStage(shape.kept, shape.names, build_lists if grouped and not apart else build_pairs, (made,), spread=spread)
    if not apart:
        result = match_in_workers(events, found, crossing.with_limit(limit), now)
        return result.select(*map(to_column, shape.output))
    # What belongs to one event comes from several shards: rows are numbered first, and gathered by number.
    frame, number = number_rows(events, "grouped=True or limit=")
    result = match_in_workers(frame, found, crossing.with_column(number), now)
    result = result if limit is None else drop_crowded(result, number, limit)
    result = group_by_row(result, number, shape) if grouped else result
    return result.select(*map(to_column, shape.output))


def dead_letters(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    event_id: str | None = None,
    schema: SchemaLike | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
    limit: int | None = None,
    unknown: Unknown = "error",
) -> DataFrame:
    """Return the events that `match` could not read: `event`, `reason`, and `row`, the raw row as JSON.

    Take the same subscriptions as for `match`: they say what an event must fit. With a `limit`, events that more
    subscriptions match are among them. Without `event_id` there is no column `event`.
    """
    require_frame(events, "the events")
    names = tuple(dict.fromkeys(events.columns))
    if event_id is not None:
        require_columns([event_id], events.schema, why="event_id")
    _check_numbers(limit=limit)
    given = QueryContext(to_schema(schema), ontology, regions, now, check_unknown(unknown))
    found = open_subscriptions(events.sparkSession, subscriptions, schema_of(events.schema), given, shards=None)
    if limit is not None and found.store.shards > 1:
        msg = "dead_letters(limit=) counts the matches of an event in one place, and these subscriptions are in shards"
        raise BadFrame(msg)
    made = StructField(make_unused_name("reason", events.columns), StringType(), nullable=False)
    frame = cast_for_arrow(events)
    require_columns(names, frame.schema, why="the events")
    bad = match_in_workers(frame, found, WorkerStage(names, names, build_letters, (made,), judge=limit is None).with_limit(limit), now)
    # Rendered on the way out, where only bad rows are left.
    row = F.to_json(F.struct(*map(to_column, names)), {"ignoreNullFields": "false"})
    event = [] if event_id is None else [to_column(event_id).alias("event")]
    return bad.select(*event, to_column(made.name).alias("reason"), row.alias("row"))


def refused(events: DataFrame, subscriptions: Live, *, unknown: Unknown = "error") -> DataFrame:
    """Return the subscriptions of a `td.Live` that `match` leaves out for these events: `subscription` and `reason`.

    They ask a column for another kind than it has or, unless `unknown` is `"absent"`, name what no column has. It is
    what the newest version says now. Of subscriptions in any other form a bad one is an error of `match` itself.
    """
    require_frame(events, "the events")
    if not isinstance(subscriptions, Live):
        msg = f"ts.refused takes a td.Live, not `{type(subscriptions).__name__}`; of others ts.match tells itself"
        raise BadFrame(msg)
    around = QueryContext(unknown=check_unknown(unknown))
    found, ids = list_refused(subscriptions, around.close_schema(schema_of(events.schema)))
    kind = LongType() if pa.types.is_integer(ids) else StringType()
    fields = [StructField("subscription", kind, nullable=False), StructField("reason", StringType(), nullable=False)]
    rows = [(id, str(problem)) for id, problem in found]
    return events.sparkSession.createDataFrame(rows, StructType(fields))


def _check_numbers(**given: int | None) -> None:
    for name, number in given.items():
        if number is not None and (type(number) is not int or number < 1):
            msg = f"{name} is a number from 1 up, not {number!r}"
            raise BadFrame(msg)
