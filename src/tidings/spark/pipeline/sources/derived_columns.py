"""Derived columns: Spark SQL over an event's columns; a row on which an expression fails is refused.

Spark 4 throws at `1/0`, at a bad cast, at an index out of bounds, and one such row would stop the query. Turning that
off for the session would not do: numbers would overflow in silence, and `raise_error`, `url_decode` or a bad
regular expression throw all the same. So every expression is tried first: Spark's `try_to_binary` gives null
for whatever its argument throws (tests/spark/test_sources.py checks that), and only where that succeeds is the value
computed. An expression is computed twice, which for the usual ones is little beside decoding the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.spark.pipeline.sources.json_decode import to_exact_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

HIDDEN = ("_refused", "_raw")


def add_derived_columns(frame: DataFrame, derived: Mapping[str, str]) -> DataFrame:
    """Add the derived columns, each of which may use the earlier ones; `_refused` and `_raw` stay last."""
    for name, sql in derived.items():
        frame = _add_column(frame, name, sql)
    return frame


def _add_column(frame: DataFrame, name: str, sql: str) -> DataFrame:
    tried = frame.withColumn("_went_well", F.when(F.col("_refused").isNull(), _can_compute(F.expr(sql))))
    value = F.when(F.col("_went_well"), F.expr(sql)).alias(name)
    failed = F.when(~F.col("_went_well"), F.lit(f"derived `{name}` cannot be computed from this row"))
    columns = [to_exact_column(column) for column in frame.columns if column not in HIDDEN]
    return tried.select(*columns, value, F.coalesce("_refused", failed).alias("_refused"), "_raw")


def _can_compute(expression: Column) -> Column:
    """Return whether the expression can be computed, by computing it.

    The size of an array needs its elements but not their values. The partition's number is no constant to Spark, so
    this is not merged with the projection that computes the value: merged, Spark may compute the common part
    first, outside of the try.
    """
    size = F.size(F.array(expression)).cast("string")
    return F.try_to_binary(size, F.lit("utf-8")).isNotNull() & (F.spark_partition_id() >= 0)
