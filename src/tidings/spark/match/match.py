"""`match` and `dead_letters`: a DataFrame of events in, a DataFrame of who must hear of them out.

Both are one `mapInArrow` between two selections (`crossing`), so the same call serves a batch and a stream, and Spark
Connect: nothing here reaches into the JVM. Only the columns that filters read and the output keeps cross into Python.
The time that `age` is reckoned against is Spark's own `current_timestamp()`, carried as a column: one moment for a
whole batch query, one for each micro-batch of a stream, whatever the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tidings.errors import BadFrame
from tidings.matcher import Live
from tidings.spark.match.output_columns import shape_of
from tidings.spark.match.shard_gathering import grouped_again, limited, numbered
from tidings.spark.match.worker_matcher import letters, lists, pairs
from tidings.spark.match.worker_stage import Crossing, crossed
from tidings.spark.schema import column, crossable, require_columns, require_frame, schema_of, unused
from tidings.spark.subscriptions.subscription_source import refused_of, subscribed
from tidings.spark.query_context import Surroundings, schema_given, unknown_given

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame

    from tidings.concepts import Ontology, Regions
    from tidings.spark.subscriptions.subscription_source import Subscriptions
    from tidings.spark.query_context import Declared, Unknown


def match(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    event_id: str | None = None,
    keep: Sequence[str] | None = None,
    grouped: bool = False,
    schema: Declared | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
    shards: int | None = None,
    spread: int | None = None,
    limit: int | None = None,
    unknown: Unknown = "error",
) -> DataFrame:
    """Return who must hear of which event: a row for each pair of an event and a subscription it satisfies.

    `events` is a batch or a streaming DataFrame; `subscriptions` a DataFrame with columns `id` and `filter` (and
    `notation`), pairs, a `td.Matcher`, the path of a snapshot or of what `compile` made, or a `td.Live`, whose changes
    are in force in the first micro-batch that starts after them. With `event_id` the columns are `event` (that column's
    value) and `subscription`; without it, all columns of the event and `subscription`. `keep` names columns to carry
    along. `grouped=True` gives one row for each event that matched, with the array `subscriptions`.

    `shards` splits the subscriptions, and sends every event to each shard: for more than a machine holds. `spread`
    deals the events to so many tasks, where few partitions come in or one of them is hot. `limit` leaves out events
    that more subscriptions match, and `dead_letters` with the same limit lists them.

    Events that do not fit their attributes' kinds match nothing; `dead_letters` says which and why. A filter that
    is not well formed, asks a column for another kind than it has, or names what no column has is refused here, before
    any job runs; in a `td.Live` it is left out, and `refused` lists it. With `unknown="absent"`, names that no column
    has are absent. `schema` wins over the DataFrame's own types, and may be Spark's `StructType` or an Arrow schema
    too; `now` is what `age` is reckoned against, by default the time of the query or micro-batch.
    """
    require_frame(events, "the events")
    shape = shape_of(events.schema, event_id=event_id, keep=keep, grouped=grouped)
    given = Surroundings(schema_given(schema), ontology, regions, now, unknown_given(unknown))
    _check_numbers(spread=spread, limit=limit)
    found = subscribed(events.sparkSession, subscriptions, schema_of(events.schema), given, shards=shards)
    ids = found.id_type
    apart = found.place.shards > 1 and (grouped or limit is not None)
    made = StructField(shape.made, ArrayType(ids, containsNull=False) if grouped and not apart else ids, nullable=False)
    crossing = Crossing(shape.kept, shape.names, lists if grouped and not apart else pairs, (made,), spread=spread)
    if not apart:
        result = crossed(events, found, crossing.limited(limit), now)
        return result.select(*map(column, shape.output))
    # What belongs to one event comes from several shards: rows are numbered first, and gathered by number.
    frame, number = numbered(events, "grouped=True or limit=")
    result = crossed(frame, found, crossing.carrying(number), now)
    result = result if limit is None else limited(result, number, limit)
    result = grouped_again(result, number, shape) if grouped else result
    return result.select(*map(column, shape.output))


def dead_letters(  # noqa: PLR0913 - the public face: keywords, each of its own meaning
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    event_id: str | None = None,
    schema: Declared | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
    limit: int | None = None,
    unknown: Unknown = "error",
) -> DataFrame:
    """Return the events that `match` could not read: `event`, `reason`, and `row`, the raw row as JSON.

    Take the same subscriptions as for `match`: they say what an event must fit. With a `limit`, events that more
    subscriptions match are among them. Without `event_id` there is no column `event`.
    """
    require_frame(events, "the events")
    names = tuple(dict.fromkeys(events.columns))
    if event_id is not None:
        require_columns([event_id], events.schema, why="event_id")
    _check_numbers(limit=limit)
    given = Surroundings(schema_given(schema), ontology, regions, now, unknown_given(unknown))
    found = subscribed(events.sparkSession, subscriptions, schema_of(events.schema), given, shards=None)
    if limit is not None and found.place.shards > 1:
        msg = "dead_letters(limit=) counts the matches of an event in one place, and these subscriptions are in shards"
        raise BadFrame(msg)
    made = StructField(unused("reason", events.columns), StringType(), nullable=False)
    frame = crossable(events)
    require_columns(names, frame.schema, why="the events")
    bad = crossed(frame, found, Crossing(names, names, letters, (made,), judge=limit is None).limited(limit), now)
    # Rendered on the way out, where only bad rows are left.
    row = F.to_json(F.struct(*map(column, names)), {"ignoreNullFields": "false"})
    event = [] if event_id is None else [column(event_id).alias("event")]
    return bad.select(*event, column(made.name).alias("reason"), row.alias("row"))


def refused(events: DataFrame, subscriptions: Live, *, unknown: Unknown = "error") -> DataFrame:
    """Return the subscriptions of a `td.Live` that `match` leaves out for these events: `subscription` and `reason`.

    They ask a column for another kind than it has or, unless `unknown` is `"absent"`, name what no column has. It is
    what the newest version says now. Of subscriptions in any other form a bad one is an error of `match` itself.
    """
    require_frame(events, "the events")
    if not isinstance(subscriptions, Live):
        msg = f"ts.refused takes a td.Live, not `{type(subscriptions).__name__}`; of others ts.match tells itself"
        raise BadFrame(msg)
    around = Surroundings(unknown=unknown_given(unknown))
    found, ids = refused_of(subscriptions, around.held(schema_of(events.schema)))
    kind = LongType() if pa.types.is_integer(ids) else StringType()
    fields = [StructField("subscription", kind, nullable=False), StructField("reason", StringType(), nullable=False)]
    rows = [(id, str(problem)) for id, problem in found]
    return events.sparkSession.createDataFrame(rows, StructType(fields))


def _check_numbers(**given: int | None) -> None:
    for name, number in given.items():
        if number is not None and (type(number) is not int or number < 1):
            msg = f"{name} is a number from 1 up, not {number!r}"
            raise BadFrame(msg)
