"""Matching as a whole: the worker stage, and after it the rows of one event put together from several shards.

`ShardPlan` decides whether anything is to be put together. Rows of events are numbered before they go to the workers,
since ids need not be unique. A stream cannot number its rows: match inside foreachBatch, whose frames are batches, as
`tidings run` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.errors import BadFrame
from tidings.spark.match.worker_matcher import describe_excess
from tidings.spark.match.worker_stage import WorkerStage, match_in_workers
from tidings.spark.schema import make_unused_name, to_column, to_json_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame

    from tidings.spark.subscriptions.subscription_source import SubscriptionHandle


def match_events(
    events: DataFrame, subscriptions: SubscriptionHandle, stage: WorkerStage, now: datetime | None
) -> DataFrame:
    """Return the matches of the events, a row for each pair or, where they are grouped, for each event.

    Spark's clock counts where `now` is null.
    """
    plan = stage.plan
    if not plan.needs_gathering:
        return match_in_workers(events, subscriptions, stage, now)
    events, number = number_rows(events, "grouped=True or limit=")
    matches = match_in_workers(events, subscriptions, stage.with_column(number), now)
    if plan.limit is not None:
        name = make_unused_name("count", matches.columns)
        count = F.count(F.lit(1)).over(Window.partitionBy(to_column(number)))
        matches = matches.withColumn(name, count).where(to_column(name) <= plan.limit)
    return _group_by_row(matches, number, stage) if plan.grouped else matches


def match_tagged_events(
    events: DataFrame,
    subscriptions: SubscriptionHandle,
    stage: WorkerStage,
    now: datetime,
    *,
    hidden: Sequence[str],
    keep: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """Return matches, dead letters and tallies as one frame, as `worker_matcher.TaggedRows` builds them.

    An event over the limit becomes a dead letter. `hidden` columns are not shown in it. `keep` persists a frame that is
    read more than once.
    """
    plan, id_column = stage.plan, to_column(stage.id_column)
    if not plan.needs_gathering:
        return match_in_workers(events, subscriptions, stage, now)
    events, number = number_rows(events, "per = event or a limit")
    # With a limit the events are read again, under the same numbers, for the dead letters.
    events = events if plan.limit is None else keep(events)
    tagged = keep(match_in_workers(events, subscriptions, stage.with_column(number), now))
    matches = tagged.where(id_column.isNotNull())
    others = tagged.where(id_column.isNull()).drop(stage.id_column)
    if plan.limit is not None:
        count = make_unused_name("count", events.columns)
        counts = matches.groupBy(to_column(number)).agg(F.count(F.lit(1)).alias(count))
        crowded = counts.where(to_column(count) > plan.limit)
        kept = [to_column(column).alias(name) for column, name in zip(stage.kept, stage.names, strict=True)]
        reason = F.concat(F.format_number(to_column(count), 0), F.lit(describe_excess(plan.limit)))
        row = to_json_row(name for name in events.columns if name not in (*hidden, number))
        letters = events.join(crowded, number).select(*kept, reason.alias("reason"), row.alias("row"))
        matches = matches.join(crowded.select(to_column(number)), number, "left_anti")
        others = others.unionByName(letters, allowMissingColumns=True)
    matches = _group_by_row(matches, number, stage) if plan.grouped else matches
    return others.unionByName(matches, allowMissingColumns=True).drop(number)


def number_rows(events: DataFrame, option: str) -> tuple[DataFrame, str]:
    """Return the rows with a number each, and the name of its column; `option` names what asks for it."""
    if events.isStreaming:
        way_out = "match inside foreachBatch"
        msg = f"{option} with several shards gathers rows of one event, which a stream cannot; {way_out}"
        raise BadFrame(msg)
    name = make_unused_name("row", events.columns)
    return events.withColumn(name, F.monotonically_increasing_id()), name


def _group_by_row(matches: DataFrame, number: str, stage: WorkerStage) -> DataFrame:
    """Return a row for each event, with the ids of all shards."""
    kept = [F.first(to_column(name)).alias(name) for name in stage.names]
    ids = F.collect_list(to_column(stage.id_column)).alias(stage.id_column)
    return matches.groupBy(to_column(number)).agg(*kept, ids)
