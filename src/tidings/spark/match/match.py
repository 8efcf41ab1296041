"""`match` and `dead_letters`: a DataFrame of events in, a DataFrame of matches or of unreadable events out.

Both are one `mapInArrow` between two selections (`worker_stage`), so the same call serves a batch and a stream, and
Spark Connect: nothing here reaches into the JVM. Only the columns that filters read and the output keeps cross into
Python. The time that `age` is measured against is Spark's own `current_timestamp()`, carried as a column: one moment
for a whole batch query, one for each micro-batch of a stream, whatever the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import LongType, StringType, StructField, StructType

from tidings.errors import BadFrame
from tidings.matcher import Live
from tidings.spark import schema as frames
from tidings.spark.match.output_columns import choose_columns
from tidings.spark.match.shard_gathering import match_events
from tidings.spark.match.shard_plan import ShardPlan
from tidings.spark.match.worker_matcher import build_letters
from tidings.spark.match.worker_stage import WorkerStage, match_in_workers
from tidings.spark.query_context import QueryContext, check_unknown
from tidings.spark.subscriptions.refusals import remove_refused
from tidings.spark.subscriptions.subscription_source import open_subscriptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame

    from tidings.concepts import Ontology, Regions
    from tidings.spark.query_context import SchemaLike, Unknown
    from tidings.spark.subscriptions.subscription_source import Subscriptions


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
    """Return the matches: a row for each pair of an event and a subscription that it satisfies.

    `events` is a batch or a streaming DataFrame; `subscriptions` a DataFrame with columns `id` and `filter` (and
    `notation`), pairs, a `td.Matcher`, the path of a snapshot or of what `compile` made, or a `td.Live`, whose changes
    are in force in the first micro-batch that starts after them. With `event_id` the columns are `event` (that column's
    value) and `subscription`; without it, all columns of the event and `subscription`. `keep` names columns to carry
    along. `grouped=True` gives one row for each event that matched, with the array `subscriptions`.

    `shards` splits the subscriptions, and sends every event to each shard: for more than a machine holds. `spread`
    distributes the events over this many tasks, where there are few input partitions or one of them is large. `limit`
    leaves out events that more subscriptions match, and `dead_letters` with the same limit lists them.

    Events that do not fit their attributes' kinds match nothing; `dead_letters` says which and why. A filter that
    is not well formed, asks a column for another kind than it has, or names what no column has is refused here, before
    any job runs; in a `td.Live` it is left out, and `refused` lists it. With `unknown="absent"`, names that no column
    has are absent. `schema` wins over the DataFrame's own types, and may be Spark's `StructType` or an Arrow schema
    too; `now` is the time that `age` is measured against, by default the time of the query or micro-batch.
    """
    frames.require_frame(events, "the events")
    columns = choose_columns(events.schema, event_id=event_id, keep=keep, grouped=grouped)
    context = QueryContext.of(schema, ontology, regions, now=now, unknown=unknown)
    frames.check_counts(spread=spread, limit=limit)
    handle = open_subscriptions(
        events.sparkSession, subscriptions, frames.schema_of(events.schema), context, shards=shards
    )
    plan = ShardPlan(handle.store.shards, grouped=grouped, limit=limit, spread=spread)
    ids = plan.build_id_field(columns.id_column, handle.spark_id_type, nullable=False)
    stage = WorkerStage(columns.kept, columns.names, plan.row_builder, (ids,), plan)
    return match_events(events, handle, stage, now).select(*map(frames.to_column, columns.output))


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

    Pass the same subscriptions as to `match`: their vocabulary decides what is readable. With a `limit`, events that
    more subscriptions match are among them. Without `event_id` there is no column `event`.
    """
    frames.require_frame(events, "the events")
    names = tuple(dict.fromkeys(events.columns))
    if event_id is not None:
        frames.require_columns([event_id], events.schema, why="event_id")
    frames.check_counts(limit=limit)
    context = QueryContext.of(schema, ontology, regions, now=now, unknown=unknown)
    handle = open_subscriptions(
        events.sparkSession, subscriptions, frames.schema_of(events.schema), context, shards=None
    )
    # With a limit, events must be matched to count their subscriptions; without one, reading them is enough.
    plan = ShardPlan(handle.store.shards, limit=limit, judge=limit is None)
    if plan.needs_gathering:
        msg = "dead_letters(limit=) counts the matches of an event in one place, and these subscriptions are in shards"
        raise BadFrame(msg)
    reason = StructField(frames.make_unused_name("reason", events.columns), StringType(), nullable=False)
    frame = frames.cast_for_arrow(events)
    letters = match_in_workers(frame, handle, WorkerStage(names, names, build_letters, (reason,), plan), now)
    return frames.select_letters(letters, names, event_id=event_id, reason=reason.name)


def refused(events: DataFrame, subscriptions: Live, *, unknown: Unknown = "error") -> DataFrame:
    """Return the subscriptions of a `td.Live` that `match` leaves out for these events: `subscription` and `reason`.

    They read a column as another kind than it has or, unless `unknown` is `"absent"`, name what no column has. The
    newest version counts. Of subscriptions in any other form a bad one is an error of `match` itself.
    """
    frames.require_frame(events, "the events")
    if not isinstance(subscriptions, Live):
        way_out = "for subscriptions in any other form ts.match raises the error"
        msg = f"ts.refused takes a td.Live, not `{type(subscriptions).__name__}`; {way_out}"
        raise BadFrame(msg)
    context = QueryContext(unknown=check_unknown(unknown))
    subscriptions.sync()
    version = subscriptions.version
    columns = context.close_schema(frames.schema_of(events.schema))
    refusals = remove_refused(subscriptions.open(version.number), columns)
    id_type = LongType() if version.ids == "integer" else StringType()
    fields = [StructField("subscription", id_type, nullable=False), StructField("reason", StringType(), nullable=False)]
    rows = [(id, str(problem)) for id, problem in refusals]
    return events.sparkSession.createDataFrame(rows, StructType(fields))
