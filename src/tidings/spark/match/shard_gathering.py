"""What belongs to one event and came back from several shards, put together again.

Rows are numbered on the way in, since an id need not be unique. Streams have no such numbers: there, match inside
foreachBatch, whose frames are batches, as `tidings run` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.errors import BadFrame
from tidings.spark.match.worker_matcher import over
from tidings.spark.schema import column, unused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from tidings.spark.match.output_columns import Shape


def numbered(events: DataFrame, wish: str) -> tuple[DataFrame, str]:
    """Return the rows with a number each, and the name of its column."""
    if events.isStreaming:
        msg = f"{wish} with several shards gathers rows of one event, which a stream cannot; match inside foreachBatch"
        raise BadFrame(msg)
    name = unused("row", events.columns)
    return events.withColumn(name, F.monotonically_increasing_id()), name


def limited(found: DataFrame, number: str, limit: int) -> DataFrame:
    """Leave out the events that more than `limit` subscriptions match."""
    counted = unused("count", found.columns)
    count = F.count(F.lit(1)).over(Window.partitionBy(column(number)))
    return found.withColumn(counted, count).where(column(counted) <= limit)


def parted(
    found: DataFrame, events: DataFrame, number: str, *, limit: int, shape: Shape, hidden: Sequence[str]
) -> tuple[DataFrame, DataFrame]:
    """Part the matches from the events that more than `limit` subscriptions match; those come with `reason` and `row`.

    `events` are the numbered rows, whose columns but for the `hidden` ones are shown.
    """
    counted = unused("count", events.columns)
    many = found.groupBy(column(number)).agg(F.count(F.lit(1)).alias(counted)).where(column(counted) > limit)
    reason = F.concat(F.format_number(column(counted), 0), F.lit(over(0, limit)[1:]))
    shown = [column(name) for name in events.columns if name not in (*hidden, number)]
    row = F.to_json(F.struct(*shown), {"ignoreNullFields": "false"})
    kept = [column(old).alias(name) for old, name in zip(shape.kept, shape.names, strict=True)]
    letters = events.join(many, number).select(*kept, reason.alias("reason"), row.alias("row"))
    return found.join(many.select(column(number)), number, "left_anti"), letters


def grouped_again(found: DataFrame, number: str, shape: Shape) -> DataFrame:
    """Return a row for each event, with the ids of all shards."""
    kept = [F.first(column(name)).alias(name) for name in shape.names]
    return found.groupBy(column(number)).agg(*kept, F.collect_list(column(shape.made)).alias(shape.made))
