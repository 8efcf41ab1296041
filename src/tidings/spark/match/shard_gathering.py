"""Matching as a whole: the worker stage, and after it the rows of one event put together from several shards.

`ShardPlan` decides whether anything is to be put together. Rows of events are numbered before they go to the workers,
since ids need not be unique. A stream cannot number its rows: match inside foreachBatch, whose frames are batches, as
`tidings run` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.errors import BadFrame
from tidings.spark.match.output_columns import OutputColumns
from tidings.spark.match.worker_matcher import describe_excess
from tidings.spark.match.worker_stage import WorkerStage, match_in_workers
from tidings.spark.schema import make_unused_name, to_column, to_json_row
from tidings.spark.subscriptions.subscription_source import SubscriptionHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """Everything that matching a frame of events takes but the events; `now` is null where Spark's clock counts."""

    subscriptions: SubscriptionHandle
    stage: WorkerStage
    columns: OutputColumns
    now: datetime | None

    def match_events(self, events: DataFrame) -> DataFrame:
        """Return the matches of the events, a row for each pair or, where they are grouped, for each event."""
        plan = self.stage.plan
        if not plan.needs_gathering:
            return match_in_workers(events, self.subscriptions, self.stage, self.now)
        events, number = number_rows(events, "grouped=True or limit=")
        matches = match_in_workers(events, self.subscriptions, self.stage.with_column(number), self.now)
        if plan.limit is not None:
            name = make_unused_name("count", matches.columns)
            count = F.count(F.lit(1)).over(Window.partitionBy(to_column(number)))
            matches = matches.withColumn(name, count).where(to_column(name) <= plan.limit)
        return _group_by_row(matches, number, self.columns) if plan.grouped else matches

    def match_tagged_events(
        self, events: DataFrame, *, hidden: Sequence[str], keep: Callable[[DataFrame], DataFrame]
    ) -> DataFrame:
        """Return matches, dead letters and tallies as one frame, as `worker_matcher.TaggedRows` builds them.

        An event over the limit becomes a dead letter. `hidden` columns are not shown in it. `keep` persists a frame
        that is read more than once.
        """
        plan, id_column = self.stage.plan, to_column(self.columns.id_column)
        if not plan.needs_gathering:
            return match_in_workers(events, self.subscriptions, self.stage, self.now)
        events, number = number_rows(events, "per = event or a limit")
        # With a limit the events are read again, under the same numbers, for the dead letters.
        events = events if plan.limit is None else keep(events)
        tagged = keep(match_in_workers(events, self.subscriptions, self.stage.with_column(number), self.now))
        matches = tagged.where(id_column.isNotNull())
        others = tagged.where(id_column.isNull()).drop(self.columns.id_column)
        if plan.limit is not None:
            count = make_unused_name("count", events.columns)
            counts = matches.groupBy(to_column(number)).agg(F.count(F.lit(1)).alias(count))
            crowded = counts.where(to_column(count) > plan.limit)
            visible = [name for name in events.columns if name not in (*hidden, number)]
            letters = self._report_crowded(events.join(crowded, number), plan.limit, count=count, visible=visible)
            matches = matches.join(crowded.select(to_column(number)), number, "left_anti")
            others = others.unionByName(letters, allowMissingColumns=True)
        matches = _group_by_row(matches, number, self.columns) if plan.grouped else matches
        return others.unionByName(matches, allowMissingColumns=True).drop(number)

    def _report_crowded(self, events: DataFrame, limit: int, *, count: str, visible: Sequence[str]) -> DataFrame:
        """Return a dead letter for each of these events; the column `count` says how many subscriptions match it."""
        reason = F.concat(F.format_number(to_column(count), 0), F.lit(describe_excess(limit)))
        pairs = zip(self.columns.kept, self.columns.names, strict=True)
        kept = [to_column(column).alias(name) for column, name in pairs]
        return events.select(*kept, reason.alias("reason"), to_json_row(visible).alias("row"))


def number_rows(events: DataFrame, option: str) -> tuple[DataFrame, str]:
    """Return the rows with a number each, and the name of its column; `option` names what asks for it."""
    if events.isStreaming:
        way_out = "match inside foreachBatch"
        msg = f"{option} with several shards gathers rows of one event, which a stream cannot; {way_out}"
        raise BadFrame(msg)
    name = make_unused_name("row", events.columns)
    return events.withColumn(name, F.monotonically_increasing_id()), name


def _group_by_row(matches: DataFrame, number: str, columns: OutputColumns) -> DataFrame:
    """Return a row for each event, with the ids of all shards."""
    kept = [F.first(to_column(name)).alias(name) for name in columns.names]
    ids = F.collect_list(to_column(columns.id_column)).alias(columns.id_column)
    return matches.groupBy(to_column(number)).agg(*kept, ids)
