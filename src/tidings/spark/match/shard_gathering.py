"""What belongs to one event and came back from several shards, put together again.

Rows are numbered on the way in, since an id need not be unique. Streams have no such numbers: there, match inside
foreachBatch, whose frames are batches, as `tidings run` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.errors import BadFrame
from tidings.spark.match.worker_matcher import describe_excess
from tidings.spark.schema import to_column, make_unused_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from tidings.spark.match.output_columns import OutputColumns


def number_rows(events: DataFrame, wish: str) -> tuple[DataFrame, str]:
    """Return the rows with a number each, and the name of its column."""
    if events.isStreaming:
        msg = f"{wish} with several shards gathers rows of one event, which a stream cannot; match inside foreachBatch"
        raise BadFrame(msg)
    name = make_unused_name("row", events.columns)
    return events.withColumn(name, F.monotonically_increasing_id()), name


def drop_crowded(found: DataFrame, number: str, limit: int) -> DataFrame:
    """Leave out the events that more than `limit` subscriptions match."""
    counted = make_unused_name("count", found.columns)
    count = F.count(F.lit(1)).over(Window.partitionBy(to_column(number)))
    return found.withColumn(counted, count).where(to_column(counted) <= limit)


def split_crowded(
    found: DataFrame, events: DataFrame, number: str, *, limit: int, shape: OutputColumns, hidden: Sequence[str]
) -> tuple[DataFrame, DataFrame]:
    """Part the matches from the events that more than `limit` subscriptions match; those come with `reason` and `row`.

    `events` are the numbered rows, whose columns but for the `hidden` ones are shown.
    """
    counted = make_unused_name("count", events.columns)
    many = found.groupBy(to_column(number)).agg(F.count(F.lit(1)).alias(counted)).where(to_column(counted) > limit)
    reason = F.concat(F.format_number(to_column(counted), 0), F.lit(describe_excess(0, limit)[1:]))
    shown = [to_column(name) for name in events.columns if name not in (*hidden, number)]
    row = F.to_json(F.struct(*shown), {"ignoreNullFields": "false"})
    kept = [to_column(old).alias(name) for old, name in zip(shape.kept, shape.names, strict=True)]
    letters = events.join(many, number).select(*kept, reason.alias("reason"), row.alias("row"))
    return found.join(many.select(to_column(number)), number, "left_anti"), letters


def group_by_row(found: DataFrame, number: str, shape: OutputColumns) -> DataFrame:
    """Return a row for each event, with the ids of all shards."""
    kept = [F.first(to_column(name)).alias(name) for name in shape.names]
    return found.groupBy(to_column(number)).agg(*kept, F.collect_list(to_column(shape.id_column)).alias(shape.id_column))
