"""`detect_followed`: the detections, dead letters and counts of a stream, for patterns that change while it runs.

The stream is one pass over the events (`followed_step`), one shuffle to buckets and one stateful operator. Nothing of
it depends on the patterns: columns of output, buckets and shards are fixed when the query starts, so patterns may come
and go between micro-batches, each of which uses the version that it claimed (`followed_plan`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tidings.errors import BadFrame
from tidings.patterns.run.variable_values import to_dictionary
from tidings.spark.detect.bucket import REPORTED
from tidings.spark.detect.bucket_processor import MILLISECOND, PACKED, BucketProcessor, make_unpacker
from tidings.spark.detect.bucketing import BUCKET_PACKETS, select_numbered_columns
from tidings.spark.detect.followed.followed_plan import SEGMENTS
from tidings.spark.detect.followed.followed_step import PASSING, FollowedColumns, FollowedStep, complete_rows
from tidings.spark.detect.worker_plan import build_output_schema
from tidings.spark.schema import find_arrow_type, require_columns
from tidings.spark.state_store import require_rocksdb

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidings.spark.detect.bucket import Bucket
    from tidings.spark.detect.bucket_processor import BucketStatus
    from tidings.spark.detect.followed.followed_plan import FollowedPlan

ADDED_FIELDS = (
    StructField("event", StringType()),
    StructField("reason", StringType()),
    StructField("row", StringType()),
    StructField("seen", LongType()),
)
"""The columns of dead letters, and the number of events that a row of kind `tally` stands for."""


def detect_followed(events: DataFrame, plan: FollowedPlan, columns: FollowedColumns) -> DataFrame:
    """Return the output rows of a stream with a watermark, by their `kind`.

    A `match`, a `forecast` and a `late` event are those of `detect`, a `letter` is a dead letter. A `tally` has in
    `seen` a number of events and in `at` the newest time that they move the stream to. A `due` has in `at` the time
    that the watermark must come to for a bucket to go on: of a waiting event, or the deadline of an absence. A `heavy`
    names a pattern that holds too many partial matches.
    """
    require_rocksdb(events.sparkSession)
    require_columns([plan.time, columns.id, columns.moves, columns.reason], events.schema, why="the patterns")
    names = [field.name for field in events.schema if find_arrow_type(field.dataType) is not None]
    own = {columns.reason, columns.raw, columns.tick, *columns.hidden}
    read = (
        (plan.time,)
        if plan.document is not None
        else tuple(name for name in names if name not in own or name == plan.time)
    )
    if missing := [name for name in plan.keep if name not in names]:
        msg = f"keep: the column `{missing[0]}` is of a type that Arrow cannot carry"
        raise BadFrame(msg)
    schema, arrow_schema = build_rows_schema(events.schema, plan)
    step = FollowedStep(plan, tuple(names), read, columns, arrow_schema)
    packets = select_numbered_columns(events, names).mapInArrow(step, BUCKET_PACKETS)
    processor = FollowedProcessor(plan, arrow_schema)
    packed = packets.groupBy("bucket").transformWithState(processor, PACKED, "append", "eventTime")
    return packed.mapInArrow(make_unpacker(), schema)


def build_rows_schema(events: StructType, plan: FollowedPlan) -> tuple[StructType, pa.Schema]:
    """Return the columns of all output rows, as Spark's and as Arrow's; each may be null in some rows."""
    fields = [*build_output_schema(events, plan).fields, *ADDED_FIELDS]
    schema = StructType([StructField(field.name, field.dataType) for field in fields])
    return schema, pa.schema([(field.name, find_arrow_type(field.dataType)) for field in schema])


class FollowedProcessor(BucketProcessor):
    """Spark's stateful operator for patterns that change; rows of `PASSING` leave as they are."""

    def __init__(self, plan: FollowedPlan, schema: pa.Schema) -> None:
        super().__init__(plan, takes_newest=True, passing=PASSING)
        self._plan: FollowedPlan = plan
        self._schema, self._most_partials = schema, plan.most_partials

    def _select(self, fresh: pa.Table) -> pa.Table:
        """Return rows without those of an id that another task of this batch has too."""
        if SEGMENTS not in self._plan.read_facts():
            return fresh
        ids = to_dictionary(fresh.column(REPORTED + self._plan.event_id))
        codes = ids.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        first = np.unique(codes, return_index=True)[1]
        return fresh.take(np.union1d(first, np.flatnonzero(codes < 0)))

    def _inspect(self, bucket: Bucket) -> list[pa.Table]:
        heavy = bucket.find_heavy_patterns(self._most_partials)
        return [pa.table({"kind": ["heavy"] * len(heavy), "pattern": heavy})] if heavy else []

    def _finish_answers(self, answers: list[pa.Table], status: BucketStatus) -> list[pa.Table]:
        times = [time // MILLISECOND * MILLISECOND for time in status.chunks.values()]
        times += [] if status.deadline is None else [status.deadline]
        if times:
            at = pa.array([min(times)], pa.int64()).cast(pa.timestamp("us", "UTC"))
            answers = [*answers, pa.table({"kind": ["due"], "at": at})]
        return [
            complete_rows(dict(zip(answer.column_names, answer.columns, strict=True)), self._schema)
            for answer in answers
        ]
