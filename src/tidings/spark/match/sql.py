"""`tidings_match` and `tidings_dead_letters`: matching for who writes SQL, by the step that `match` runs.

    SELECT * FROM tidings_match(TABLE(events), 'snapshot', event_id => 'id')

When Spark plans the query it asks `analyze` what comes back: here the snapshot is opened, arguments are checked, and
the columns are chosen that cross into Python. What it found (a `codec.Step`) travels with the query, and the workers
only run it, an Arrow batch at a time. An unpartitioned TABLE argument keeps the partitions it has, so the call
is as parallel as its input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql.functions import udtf
from pyspark.sql.types import StringType, StructField, StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, SelectedColumn
from pyspark.util import PythonEvalType

from tidings.concepts import Ontology
from tidings.errors import BadFrame, TidingsError
from tidings.spark.match.output_columns import choose_columns
from tidings.spark.match.worker_matcher import MatchStep, build_letters, build_pairs
from tidings.spark.match.worker_stage import WorkerStage
from tidings.spark.schema import arrow_type_of, find_columns, find_names_read, quote_name, require_columns, schema_of
from tidings.spark.subscriptions.subscription_source import SubscriptionHandle, open_stored
from tidings.spark.query_context import QueryContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession
    from pyspark.sql.udtf import UserDefinedTableFunction


def register(
    session: SparkSession, *, match: str = "tidings_match", dead_letters: str = "tidings_dead_letters"
) -> None:
    """Give a session's SQL the table functions `tidings_match` and `tidings_dead_letters`, under these names.

    Both take `TABLE(events)`, the path of a snapshot or of what `compile` made, and, if wanted, `event_id`, the name
    of a column; `tidings_match` also `keep`, an array of names. All but the table are constants. The columns that come
    back are those of `match` and `dead_letters`. They are functions of this session: each new one registers anew.
    """
    session.udtf.register(match, _function(Matching))
    session.udtf.register(dead_letters, _function(Judging))


def _function(handler: type[Handler]) -> UserDefinedTableFunction:
    made = cast("UserDefinedTableFunction", udtf(handler, useArrow=True))
    # `arrow_udtf` itself refuses a class with `analyze`, and without it columns could not follow the events and the ids
    # (SPARK-53286). Spark's planner and its workers can do both; only the decorator asks. Row by row, which is what
    # `udtf` would be without this line, took 3 to 5 times as long (10k `ranges`, 200k events).
    made.evalType = PythonEvalType.SQL_ARROW_UDTF
    return made.asDeterministic()


@dataclass
class Planned(AnalyzeResult):
    """What a call comes to: Spark reads which columns go in and out, and hands the rest to the workers as it is."""

    step: MatchStep | None = None  # never: but fields that follow Spark's own, which may be left out, must as well
    order: tuple[int, ...] = ()


class Handler:
    """What Spark makes for each partition of the events, of what was planned."""

    def __init__(self, planned: Planned) -> None:
        self._planned = planned

    def eval(self, events: pa.RecordBatch, *_: pa.Array, **__: pa.Array) -> Iterator[pa.RecordBatch]:
        """Yield what comes of a batch of events; the constants were read when the call was planned."""
        step, names = self._planned.step, self._planned.schema.names
        assert step is not None
        for made in step(_copies(events, 1 if step.shard is None else step.place.shards)):
            yield pa.RecordBatch.from_arrays([made.column(at) for at in self._planned.order], names)


def _copies(events: pa.RecordBatch, shards: int) -> Iterator[pa.RecordBatch]:
    """Yield the events for each shard in turn: a task asks all of them, since a call cannot deal copies to tasks."""
    if shards == 1:
        yield events
        return
    for shard in range(shards):
        yield events.append_column("shard", pa.repeat(pa.scalar(shard, pa.int32()), events.num_rows))


class Matching(Handler):
    """The table function `tidings_match`."""

    @staticmethod
    def analyze(
        events: AnalyzeArgument,
        snapshot: AnalyzeArgument,
        event_id: AnalyzeArgument | None = None,
        keep: AnalyzeArgument | None = None,
    ) -> AnalyzeResult:
        """Plan a call."""
        return _told(lambda: _matching(_asked(events, snapshot, event_id, keep)))


class Judging(Handler):
    """The table function `tidings_dead_letters`."""

    @staticmethod
    def analyze(
        events: AnalyzeArgument, snapshot: AnalyzeArgument, event_id: AnalyzeArgument | None = None
    ) -> AnalyzeResult:
        """Plan a call."""
        return _told(lambda: _judging(_asked(events, snapshot, event_id, None)))


def _told(plan: Callable[[], Planned]) -> Planned:
    """Plan; a refusal goes out without our inner frames, which Spark would print before it."""
    try:
        return plan()
    except TidingsError as refused:
        again = refused.with_traceback(None)
    raise again from None


# What was asked for -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of a call, checked: the columns of the events, and the constants."""

    frame: StructType
    path: str
    event_id: str | None
    keep: tuple[str, ...] | None


def _asked(
    events: AnalyzeArgument, snapshot: AnalyzeArgument, event_id: AnalyzeArgument | None, keep: AnalyzeArgument | None
) -> Asked:
    path, id_, kept = _value(snapshot), _value(event_id), _value(keep)
    mistakes = [
        *([] if events.isTable else ["events: it is a table that is wanted: TABLE(events), or TABLE(SELECT ...)"]),
        *_mistakes("snapshot", snapshot, isinstance(path, str), "the path of a snapshot, as text"),
        *_mistakes("event_id", event_id, isinstance(id_, str | None), "the name of a column, as text"),
        *_mistakes("keep", keep, _is_names(kept), "names of columns: array('url', 'price')"),
    ]
    if mistakes or not isinstance(events.dataType, StructType):
        raise BadFrame("\n".join(mistakes))
    return Asked(events.dataType, path, id_, None if kept is None else tuple(kept))


def _value(given: AnalyzeArgument | None) -> Any:
    return None if given is None else given.value


def _is_names(given: object) -> bool:
    return given is None or (isinstance(given, list) and all(isinstance(name, str) for name in given))


def _mistakes(name: str, given: AnalyzeArgument | None, fits: bool, wanted: str) -> list[str]:
    if given is not None and not given.isConstantExpression:
        what = "a table" if given.isTable else "an expression of columns"
        return [f"{name}: it must be a constant, {wanted}; this is {what}"]
    if fits:
        return []
    assert given is not None
    return [f"{name}: `{given.value}` ({given.dataType.simpleString()}) is not {wanted}"]


# What it comes to -------------------------------------------------------------------------------------


def _matching(asked: Asked) -> Planned:
    shape = choose_columns(asked.frame, event_id=asked.event_id, keep=asked.keep, grouped=False)
    found = open_stored(asked.path, schema_of(asked.frame), QueryContext(unknown="absent"), None)
    crossing = WorkerStage(shape.kept, shape.names, build_pairs, (StructField(shape.id_column, found.spark_id_type, nullable=False),))
    step, columns = _step(asked.frame, found, crossing, [quote_name(name) for name in shape.kept])
    return _planned(step, columns, crossing.output_schema(asked.frame), shape.output)


def _judging(asked: Asked) -> Planned:
    wanted = () if asked.event_id is None else (asked.event_id,)
    require_columns(wanted, asked.frame, why="event_id")
    found = open_stored(asked.path, schema_of(asked.frame), QueryContext(unknown="absent"), None)
    made = (StructField("row", StringType()), StructField("reason", StringType(), nullable=False))
    crossing = WorkerStage(wanted, ("event",) * len(wanted), build_letters, made, judge=True)
    step, columns = _step(asked.frame, found, crossing, [*map(quote_name, wanted), _row(asked.frame)])
    return _planned(step, columns, crossing.output_schema(asked.frame), (*crossing.names, "reason", "row"))


def _step(
    frame: StructType, found: SubscriptionHandle, crossing: WorkerStage, kept: Sequence[str]
) -> tuple[MatchStep, tuple[str, ...]]:
    """Return the step, and the expressions of SQL that make its columns: what it keeps, what it reads, the time."""
    read = tuple(find_columns(find_names_read(found.needs, found.ontology or Ontology()), frame.names))
    require_columns(read, frame, why="the filters")
    columns = tuple(dict.fromkeys([*kept, *map(quote_name, read)]))
    moment: datetime | int = len(columns) if found.now is None else found.now
    if isinstance(moment, int) or not columns:  # Arrow would lose the number of rows without a column
        columns = (*columns, "current_timestamp()")
    apart = found.store.shards > 1 and not crossing.judge  # every shard judges alike
    step = MatchStep(
        found.store,
        crossing.build,
        read=tuple(columns.index(quote_name(name)) for name in read),
        names=read,
        kept=tuple(map(columns.index, kept)),
        ids=found.arrow_id_type,
        now=moment,
        shard=len(columns) if apart else None,
        judge=crossing.judge,
    )
    return step, columns


def _planned(step: MatchStep, columns: Sequence[str], made: StructType, output: Sequence[str]) -> Planned:
    select = [SelectedColumn(text, f"_{at}") for at, text in enumerate(columns)]
    order = tuple(map(made.names.index, output))
    # Nullable throughout: Spark's worker makes the batch of a call that gave nothing by this schema, and the others by
    # Arrow's default, and cannot write the two into one stream where they differ.
    schema = StructType([made[name] for name in output]).toNullable()
    return Planned(schema, select=select, step=step, order=order)


def _row(frame: StructType) -> str:
    """Return the event as JSON, as `dead_letters` shows it: what Arrow cannot carry is text."""
    names = dict.fromkeys(frame.names)
    require_columns([name for name in names if arrow_type_of(frame[name].dataType) is not None], frame, why="the events")
    return f"to_json(struct({', '.join(_shown(frame[name]) for name in names)}), map('ignoreNullFields', 'false'))"


def _shown(field: StructField) -> str:
    """Return a column as JSON takes it: what Arrow cannot carry, as text, as `dead_letters` does."""
    name = quote_name(field.name)
    return name if arrow_type_of(field.dataType) is not None else f"CAST({name} AS STRING) AS {name}"
