"""`match` and `dead_letters`: a DataFrame of events in, a DataFrame of who must hear of them out.

Both are one `mapInArrow` between two selections, so the same call serves a batch and a stream, and Spark Connect:
nothing here reaches into the JVM. Only the columns that filters read and the output keeps cross into Python. The
time that `age` is reckoned against is Spark's own `current_timestamp()`, carried as a column: one moment for a
whole batch query, one for each micro-batch of a stream, whatever the partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tidings.concepts import Ontology
from tidings.model import Schema
from tidings.spark.codec import Build, Shipment, Step, letters, lists, pairs
from tidings.spark.schema import arrow_type, columns_read, names_read, require_columns, schema_of
from tidings.spark.shape import shape_of
from tidings.spark.subscriptions import Surroundings, id_type, judge_of, matcher_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

    from tidings.concepts import Regions
    from tidings.matcher import Matcher
    from tidings.spark.subscriptions import Subscriptions


def match(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    event_id: str | None = None,
    keep: Sequence[str] | None = None,
    grouped: bool = False,
    schema: Schema | Mapping[str, str] | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> DataFrame:
    """Return who must hear of which event: a row for each pair of an event and a subscription it satisfies.

    `events` is a batch or a streaming DataFrame; `subscriptions` a DataFrame with columns `id` and `filter` (and
    `notation`), pairs, a `td.Matcher` or the path of a snapshot. With `event_id` the columns are `event` (that
    column's value) and `subscription`; without it, all columns of the event and `subscription`. `keep` names
    columns to carry along. `grouped=True` gives one row for each event that matched, with the array
    `subscriptions`.

    Events that do not fit their attributes' kinds match nothing; `dead_letters` says which and why. A filter that
    is not well formed is refused here, before any job runs. `schema` wins over the DataFrame's own types; `now`
    is what `age` is reckoned against, by default the time of the query or micro-batch.
    """
    shape = shape_of(events.schema, event_id=event_id, keep=keep, grouped=grouped)
    given = Surroundings(_schema(schema), ontology, regions, now)
    matcher = matcher_of(subscriptions, schema_of(events.schema), given)
    ids = id_type(matcher)
    spark_ids = LongType() if pa.types.is_integer(ids) else StringType()
    made = StructField(shape.made, ArrayType(spark_ids, containsNull=False) if grouped else spark_ids, nullable=False)
    crossing = _Crossing(shape.kept, shape.names, lists if grouped else pairs, made, ids)
    return _crossed(events, matcher, crossing, now).select(*map(_column, shape.output))


def dead_letters(
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    event_id: str | None = None,
    schema: Schema | Mapping[str, str] | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> DataFrame:
    """Return the events that `match` could not read: `event`, `reason`, and `row`, the raw row as JSON.

    Take the same subscriptions as for `match`: they say what an event must fit. Without `event_id` there is no
    column `event`.
    """
    names = dict.fromkeys(events.columns)
    if event_id is not None:
        require_columns([event_id], events.schema, why="event_id")
    given = Surroundings(_schema(schema), ontology, regions, now)
    matcher = matcher_of(subscriptions, schema_of(events.schema), given)
    made = StructField(_unused("reason", events.columns), StringType(), nullable=False)
    crossing = _Crossing(tuple(names), tuple(names), letters, made, pa.string())
    frame = _crossable(events)
    require_columns(names, frame.schema, why="the events")
    bad = _crossed(frame, judge_of(matcher), crossing, now)
    # Rendered on the way out, where only bad rows are left.
    row = F.to_json(F.struct(*map(_column, names)), {"ignoreNullFields": "false"})
    event = [] if event_id is None else [_column(event_id).alias("event")]
    return bad.select(*event, _column(made.name).alias("reason"), row.alias("row"))


@dataclass(frozen=True, slots=True)
class _Crossing:
    """What comes back from Python: columns kept, under their new names, and one that is made there."""

    kept: tuple[str, ...]
    names: tuple[str, ...]
    build: Build
    made: StructField
    ids: pa.DataType

    def schema(self, events: StructType) -> StructType:
        kept = zip(self.kept, self.names, strict=True)
        fields = [
            StructField(name, events[old].dataType, events[old].nullable, events[old].metadata) for old, name in kept
        ]
        return StructType([*fields, self.made])


def _crossed(events: DataFrame, matcher: Matcher, crossing: _Crossing, now: datetime | None) -> DataFrame:
    """Send what is read and what is kept, and no other column, through the matcher."""
    read = tuple(columns_read(names_read(matcher.needs(), matcher.ontology or Ontology()), events.columns))
    needed = tuple(dict.fromkeys([*crossing.kept, *read]))
    require_columns(read, events.schema, why="the filters")
    columns = [_column(name) for name in needed]
    moment = now or matcher.now or len(columns)
    if isinstance(moment, int) or not columns:  # Arrow would lose the number of rows without a column
        columns.append(F.current_timestamp())
    step = Step(
        Shipment.of(matcher),
        crossing.build,
        read=tuple(map(needed.index, read)),
        names=read,
        kept=tuple(map(needed.index, crossing.kept)),
        ids=crossing.ids,
        now=moment,
    )
    # By place and under plain names: mapInArrow would take a dot in a column's name for a field of a struct.
    plain = [column.alias(f"_{place}") for place, column in enumerate(columns)]
    return events.select(*plain).mapInArrow(step, crossing.schema(events.schema))


def _schema(given: Schema | Mapping[str, str] | None) -> Schema | None:
    return given if given is None or isinstance(given, Schema) else Schema(given)


def _crossable(events: DataFrame) -> DataFrame:
    """Return the frame with columns that Arrow cannot carry written as text, which is what JSON makes of them."""
    stuck = {
        field.name: _column(field.name).cast("string") for field in events.schema if arrow_type(field.dataType) is None
    }
    return events.withColumns(stuck) if stuck else events


def _column(name: str) -> Column:
    """Return the column of exactly this name, dots and backticks included."""
    return F.col("`" + name.replace("`", "``") + "`")


def _unused(name: str, columns: Sequence[str]) -> str:
    taken = {column.lower() for column in columns}
    name = f"__tidings_{name}"
    while name in taken:
        name += "_"
    return name
