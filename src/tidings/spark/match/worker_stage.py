"""The stage that matches: which columns go into Python, which come back, and in how many tasks.

Where subscriptions lie in shards, every event is copied for each shard, and the copies go to tasks of one shard each,
in the order of the shards, so that a worker reads one shard after the other and not all at once. Events go round robin
and subscriptions by a hash of their ids, never by content: a frequent kind of event and a large group of similar
subscriptions are spread over all tasks alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import StructField, StructType

from tidings.spark.bad_values import build_bad_value_reason
from tidings.spark.match.shard_plan import ShardPlan
from tidings.spark.match.worker_matcher import DocumentPlaces, MatchStep, RowBuilder, StepColumns
from tidings.spark.schema import find_arrow_type, find_columns, find_names_read, require_columns, to_column
from tidings.spark.subscriptions.compile_frame import count_tasks_per_shard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from tidings.spark.subscriptions.subscription_source import SubscriptionHandle


@dataclass(frozen=True, slots=True)
class WorkerStage:
    """What comes back from the workers: event columns, under new names, and the columns that a row builder adds.

    Of `added`, the first is that of subscription ids where there are matches. `refused` names a column with the reason
    why the source could not read a row. With `whole_events` all columns go to the workers, and rows that are no match
    come back too. Where `document` names the column of whole documents, these are the events, and of the other columns
    filters see those `beside` it.
    """

    kept: tuple[str, ...]
    names: tuple[str, ...]
    build: RowBuilder
    added: tuple[StructField, ...]
    plan: ShardPlan
    refused: str | None = None
    whole_events: bool = False
    document: str | None = None
    beside: tuple[str, ...] = ()

    @property
    def id_column(self) -> str:
        """The name of the column of subscription ids."""
        return self.added[0].name

    def with_column(self, name: str) -> WorkerStage:
        """Return the stage that also carries this column through."""
        return replace(self, kept=(*self.kept, name), names=(*self.names, name))

    def build_output_schema(self, events: StructType) -> StructType:
        """Return the columns that come back for events of these columns."""
        fields = [
            StructField(name, field.dataType, field.nullable or self.whole_events, field.metadata)
            for name, field in zip(self.names, (events[column] for column in self.kept), strict=True)
        ]
        return StructType([*fields, *self.added])

    def find_read_columns(self, events: StructType, subscriptions: SubscriptionHandle) -> tuple[str, ...]:
        """Return the columns that filters read; all that Arrow carries where the next change may read any of them."""
        if subscriptions.is_live or self.whole_events:
            fields = (field for field in events if field.name != self.refused)
            read = [field.name for field in fields if find_arrow_type(field.dataType) is not None]
        else:
            read = find_columns(find_names_read(subscriptions.needs, subscriptions.ontology), events.names)
        require_columns(read, events, why="the filters")
        return tuple(read)

    def find_documents(self, needed: Sequence[str]) -> DocumentPlaces | None:
        """Return where documents are among these columns, if events are documents."""
        if self.document is None:
            return None
        return DocumentPlaces(needed.index(self.document), {name: needed.index(name) for name in self.beside})

    def build_step(self, subscriptions: SubscriptionHandle, columns: StepColumns) -> MatchStep:
        """Return the function that workers run over rows of these columns."""
        store, id_type = subscriptions.store, subscriptions.arrow_id_type
        return MatchStep(store, self.build, columns, id_type, limit=self.plan.worker_limit, judge=self.plan.judge)


def match_in_workers(
    events: DataFrame, subscriptions: SubscriptionHandle, stage: WorkerStage, now: datetime | None
) -> DataFrame:
    """Send what is read and what is kept, and no other column, through the matcher."""
    read = stage.find_read_columns(events.schema, subscriptions)
    needed = tuple(dict.fromkeys([*stage.kept, *read, *([stage.refused] if stage.refused else ())]))
    columns = [to_column(name) for name in needed]
    refused = needed.index(stage.refused) if stage.refused else None
    declared = subscriptions.declared_columns - {stage.refused}
    bad_value = build_bad_value_reason(events.schema, declared, subscriptions.checked_attributes)
    if bad_value is not None:
        columns.append(bad_value if refused is None else F.coalesce(columns[refused], bad_value))
        refused = len(columns) - 1
    moment = now or subscriptions.now or len(columns)
    if needs_clock(moment, len(columns)):
        columns.append(F.current_timestamp())
    # By place and under plain names: mapInArrow would take a dot in a column's name for a field of a struct.
    rows = events.select(*(column.alias(f"_{place}") for place, column in enumerate(columns)))
    rows, shard = distribute_rows(rows, stage.plan.copies, stage.plan.spread)
    places = StepColumns(
        read=tuple(map(needed.index, read)),
        names=read,
        kept=tuple(map(needed.index, stage.kept)),
        now=moment,
        shard=shard,
        refused=refused,
        documents=stage.find_documents(needed),
    )
    return rows.mapInArrow(stage.build_step(subscriptions, places), stage.build_output_schema(events.schema))


def needs_clock(moment: datetime | int, columns: int) -> bool:
    """Tell whether Spark's clock goes along as a column: as the time, or since Arrow loses the rows of no columns."""
    return not isinstance(moment, datetime) or not columns


def distribute_rows(rows: DataFrame, shards: int, spread: int | None) -> tuple[DataFrame, int | None]:
    """Copy the rows for each shard, and spread them over tasks; return also the place of the shard's column."""
    if shards == 1:
        return rows if spread is None else rows.repartition(spread), None
    tasks = spread or count_tasks_per_shard(rows.sparkSession, shards)
    place, copies = len(rows.columns), F.explode(F.array(*map(F.lit, range(shards))))
    # Round robin before rows are copied. Spark makes that repeatable: a task that runs again sends the same rows to the
    # same tasks. Numbers of rows would differ after a shuffle, and rows would be lost or come twice.
    rows = rows if tasks == 1 else rows.repartition(shards * tasks)
    turn = F.lit(0) if tasks == 1 else F.pmod(F.spark_partition_id(), F.lit(tasks))
    copied = rows.withColumn(f"_{place}", copies)
    task = to_column(f"_{place}") * tasks + turn
    return copied.repartitionById(shards * tasks, task.cast("int")), place
