"""The one way of events into Python and back: what goes in, what comes out, and in how many tasks.

Subscriptions in shards: every event is copied for each shard, and the copies are dealt to tasks of one shard each, in
the order of the shards, so that a worker reads one shard after the other and not all at once. Events are dealt by
turns and not by what they say, and subscriptions by a hash of their ids: a hot kind of event and a huge group
of like subscriptions are spread over all tasks alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import StructField, StructType

from tidings.concepts import Ontology
from tidings.spark.match.worker_matcher import RowBuilder, MatchStep
from tidings.spark.schema import arrow_type_of, build_bad_value_reason, to_column, find_columns, find_names_read, require_columns
from tidings.spark.subscriptions.shared_folder import count_tasks_per_shard

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from tidings.spark.subscriptions.subscription_source import SubscriptionHandle


@dataclass(frozen=True, slots=True)
class WorkerStage:
    """What comes back from Python: columns kept, under their new names, and those that are made there."""

    kept: tuple[str, ...]
    names: tuple[str, ...]
    build: RowBuilder
    added: tuple[StructField, ...]
    spread: int | None = None
    limit: int | None = None
    judge: bool = False
    refused: str | None = None
    whole_events: bool = False

    def with_limit(self, limit: int | None) -> WorkerStage:
        """Leave out events that more subscriptions match."""
        return replace(self, limit=limit)

    def with_column(self, name: str) -> WorkerStage:
        """Keep one column more."""
        return replace(self, kept=(*self.kept, name), names=(*self.names, name))

    def output_schema(self, events: StructType) -> StructType:
        """Return the columns that come back; where the whole event goes, rows that are no match come back too."""
        kept = zip(self.kept, self.names, strict=True)
        fields = [
            StructField(name, events[old].dataType, events[old].nullable or self.whole_events, events[old].metadata)
            for old, name in kept
        ]
        return StructType([*fields, *self.added])


def match_in_workers(events: DataFrame, found: SubscriptionHandle, crossing: WorkerStage, now: datetime | None) -> DataFrame:
    """Send what is read and what is kept, and no other column, through the matcher."""
    read = _read(events, found, crossing)
    needed = tuple(dict.fromkeys([*crossing.kept, *read, *([crossing.refused] if crossing.refused else ())]))
    require_columns(read, events.schema, why="the filters")
    columns = [to_column(name) for name in needed]
    refused = needed.index(crossing.refused) if crossing.refused else None
    broken = build_bad_value_reason(events.schema, found.declared_columns - {crossing.refused}, found.checked_attributes)
    if broken is not None:
        columns.append(broken if refused is None else F.coalesce(columns[refused], broken))
        refused = len(columns) - 1
    moment: datetime | int = now or (found.now if found.now is not None else len(columns))
    if isinstance(moment, int) or not columns:  # Arrow would lose the number of rows without a column
        columns.append(F.current_timestamp())
    # By place and under plain names: mapInArrow would take a dot in a column's name for a field of a struct.
    plain = events.select(*(one.alias(f"_{place}") for place, one in enumerate(columns)))
    plain, shard = distribute_rows(plain, found.store.shards, crossing.spread)
    step = MatchStep(
        found.store,
        crossing.build,
        read=tuple(map(needed.index, read)),
        names=read,
        kept=tuple(map(needed.index, crossing.kept)),
        ids=found.arrow_id_type,
        now=moment,
        shard=shard,
        refused=refused,
        limit=crossing.limit,
        judge=crossing.judge,
    )
    return plain.mapInArrow(step, crossing.output_schema(events.schema))


def _read(events: DataFrame, found: SubscriptionHandle, crossing: WorkerStage) -> tuple[str, ...]:
    """Return the columns that matching reads: all that can cross, where the next change may ask for any of them."""
    if found.is_live or crossing.whole_events:
        return tuple(
            field.name
            for field in events.schema
            if field.name != crossing.refused and arrow_type_of(field.dataType) is not None
        )
    return tuple(find_columns(find_names_read(found.needs, found.ontology or Ontology()), events.columns))


def distribute_rows(plain: DataFrame, shards: int, spread: int | None) -> tuple[DataFrame, int | None]:
    """Copy the rows for each shard, and deal them to tasks; return the place of the column that says which shard."""
    if shards == 1:
        return plain if spread is None else plain.repartition(spread), None
    tasks = spread or count_tasks_per_shard(plain.sparkSession, shards)
    place, copies = len(plain.columns), F.explode(F.array(*map(F.lit, range(shards))))
    # By turns before they are copied. Spark deals so that a task that is run again deals the same rows the same way;
    # numbers of rows would not be the same after a shuffle, and rows would be lost or come twice.
    dealt = plain if tasks == 1 else plain.repartition(shards * tasks)
    turn = F.lit(0) if tasks == 1 else F.pmod(F.spark_partition_id(), F.lit(tasks))
    copied = dealt.withColumn(f"_{place}", copies)
    task = to_column(f"_{place}") * tasks + turn
    return copied.repartitionById(shards * tasks, task.cast("int")), place
