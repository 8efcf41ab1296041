"""The columns of events that patterns read, laid out for the workers that put them into buckets.

Shared by `detect` and `train`, which must read the same columns in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.spark.detect.bucketing import BUCKET_VALUES, BucketStep
from tidings.spark.detect.pattern_source import find_variable_attributes
from tidings.spark.schema import find_columns, find_names_read, require_columns, to_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from tidings.forecast import Detector
    from tidings.spark.detect.bucketing import TallyBuilder
    from tidings.spark.detect.worker_plan import DetectPlan

BUCKETS, BATCH_BUCKETS, SHARDS = 32, 64, 8
"""Default numbers of key buckets of a stream and of a batch, and of shards of patterns without a key.

Those of a stream do not depend on the cluster: its checkpoint does on them.
"""


def find_columns_read(events: DataFrame, detector: Detector) -> tuple[str, ...]:
    """Return the columns that filters read, those that give variables their values, and the time."""
    compiled = detector.compile()
    names = find_names_read(compiled.matcher.needs(), compiled.vocabulary.ontology)
    names |= {detector.time, *find_variable_attributes(detector)}
    read = tuple(find_columns(names, events.columns))
    require_columns(read, events.schema, why="the patterns")
    return read


def select_by_place(events: DataFrame, names: Sequence[str], *, time: str | None = None) -> DataFrame:
    """Return these columns, renamed `_0`, `_1`, ...; with `time`, rows in the order of that column.

    Rows of equal time keep their order in the DataFrame.
    """
    # mapInArrow would take a dot in a column's name for a field of a struct.
    columns = [to_column(name).alias(f"_{place}") for place, name in enumerate(names)]
    if time is None:
        return events.select(*columns)
    row = "row"  # the name of no place
    rows = events.select(*columns, F.monotonically_increasing_id().alias(row))
    return rows.orderBy(f"_{list(names).index(time)}", row).drop(row)


def send_to_buckets(
    events: DataFrame,
    plan: DetectPlan,
    detector: Detector,
    *,
    clock: bool,
    in_order: bool,
    tally: TallyBuilder | None = None,
) -> DataFrame:
    """Return the values for buckets; only columns that are read or reported cross into Python."""
    read = find_columns_read(events, detector)
    names = tuple(dict.fromkeys([*read, *plan.reported_columns]))
    rows = select_by_place(events, names, time=plan.time if in_order else None)
    return rows.mapInArrow(BucketStep(plan, names, read, clock, in_order, tally), BUCKET_VALUES)
