"""`tidings_match` and `tidings_dead_letters`: matching in SQL, by the step that `match` runs.

    SELECT * FROM tidings_match(TABLE(events), 'snapshot', event_id => 'id')

When Spark plans the query it calls `analyze` for the columns that come back: there the snapshot is opened, arguments
are checked, and the columns are chosen that cross into Python. The resulting `MatchStep` is pickled into the query, and
the workers only run it, an Arrow batch at a time. An unpartitioned TABLE argument keeps the partitions it has, so the
call is as parallel as its input. A table function cannot send copies of a row to several tasks, so where subscriptions
lie in shards each task matches its rows against all of them in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql.functions import udtf
from pyspark.sql.types import StringType, StructField, StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, SelectedColumn
from pyspark.util import PythonEvalType

from tidings.errors import BadFrame, TidingsError
from tidings.spark.match.output_columns import choose_columns
from tidings.spark.match.shard_plan import ShardPlan
from tidings.spark.match.worker_matcher import MatchStep, StepColumns, build_letters
from tidings.spark.match.worker_stage import WorkerStage, needs_clock
from tidings.spark.query_context import QueryContext
from tidings.spark.schema import find_arrow_type, quote_name, require_columns, schema_of
from tidings.spark.subscriptions.subscription_source import SubscriptionHandle, open_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    session.udtf.register(match, _make_function(MatchFunction))
    session.udtf.register(dead_letters, _make_function(DeadLetterFunction))


def _make_function(handler: type[TableFunction]) -> UserDefinedTableFunction:
    function = cast("UserDefinedTableFunction", udtf(handler, useArrow=True))
    # `arrow_udtf` itself refuses a class with `analyze`, and without it columns could not follow the events and the ids
    # (SPARK-53286). Spark's planner and its workers can do both; only the decorator asks. Row by row, which is what
    # `udtf` would be without this line, took 3 to 5 times as long (10k `ranges`, 200k events).
    function.evalType = PythonEvalType.SQL_ARROW_UDTF
    return function.asDeterministic()


@dataclass
class CallPlan(AnalyzeResult):
    """The plan of a call: Spark reads which columns go in and out, and hands the rest to the workers unchanged."""

    step: MatchStep | None = None  # never null; but a field after Spark's own, which have defaults, must have one too
    order: tuple[int, ...] = ()


class TableFunction:
    """What Spark instantiates for each partition of the events, with the plan that `analyze` returned."""

    def __init__(self, plan: CallPlan) -> None:
        self._plan = plan

    def eval(self, events: pa.RecordBatch, *_: pa.Array, **__: pa.Array) -> Iterator[pa.RecordBatch]:
        """Yield the output of a batch of events; the constant arguments are already in the plan."""
        step, names = self._plan.step, self._plan.schema.names
        assert step is not None
        shards = [] if step.columns.shard is None else range(step.store.shards)
        copies = [
            events.append_column("shard", pa.repeat(pa.scalar(shard, pa.int32()), len(events))) for shard in shards
        ]
        for rows in step(iter(copies or [events])):
            yield pa.RecordBatch.from_arrays([rows.column(place) for place in self._plan.order], names)


class MatchFunction(TableFunction):
    """The table function `tidings_match`."""

    @staticmethod
    def analyze(
        events: AnalyzeArgument,
        snapshot: AnalyzeArgument,
        event_id: AnalyzeArgument | None = None,
        keep: AnalyzeArgument | None = None,
    ) -> AnalyzeResult:
        """Plan a call."""
        return _plan_or_refuse(lambda: _plan_matching(_check_arguments(events, snapshot, event_id, keep)))


class DeadLetterFunction(TableFunction):
    """The table function `tidings_dead_letters`."""

    @staticmethod
    def analyze(
        events: AnalyzeArgument, snapshot: AnalyzeArgument, event_id: AnalyzeArgument | None = None
    ) -> AnalyzeResult:
        """Plan a call."""
        return _plan_or_refuse(lambda: _plan_judging(_check_arguments(events, snapshot, event_id, None)))


def _plan_or_refuse(plan: Callable[[], CallPlan]) -> CallPlan:
    """Run the planner; a refusal is raised without our inner frames, which Spark would print before it."""
    try:
        return plan()
    except TidingsError as refusal:
        bare = refusal.with_traceback(None)
    raise bare from None


# Arguments --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The checked arguments of a call: the columns of the events, and the constants."""

    frame: StructType
    path: str
    event_id: str | None
    keep: tuple[str, ...] | None

    def open_subscriptions(self) -> SubscriptionHandle:
        """Open the snapshot for these columns; names that no column has are absent."""
        return open_stored(self.path, schema_of(self.frame), QueryContext(unknown="absent"), None)


def _check_arguments(
    events: AnalyzeArgument, snapshot: AnalyzeArgument, event_id: AnalyzeArgument | None, keep: AnalyzeArgument | None
) -> CallArguments:
    path = snapshot.value
    id_, kept = (None if argument is None else argument.value for argument in (event_id, keep))
    is_names = kept is None or (isinstance(kept, list) and all(isinstance(name, str) for name in kept))
    mistakes = [
        *([] if events.isTable else ["events: it is a table that is wanted: TABLE(events), or TABLE(SELECT ...)"]),
        *_find_mistakes("snapshot", snapshot, isinstance(path, str), "the path of a snapshot, as text"),
        *_find_mistakes("event_id", event_id, isinstance(id_, str | None), "the name of a column, as text"),
        *_find_mistakes("keep", keep, is_names, "names of columns: array('url', 'price')"),
    ]
    if mistakes or not isinstance(events.dataType, StructType):
        raise BadFrame("\n".join(mistakes))
    return CallArguments(events.dataType, str(path), id_, None if kept is None else tuple(kept))


def _find_mistakes(name: str, argument: AnalyzeArgument | None, fits: bool, wanted: str) -> list[str]:
    if argument is not None and not argument.isConstantExpression:
        form = "a table" if argument.isTable else "an expression of columns"
        return [f"{name}: it must be a constant, {wanted}; this is {form}"]
    if fits:
        return []
    assert argument is not None
    return [f"{name}: `{argument.value}` ({argument.dataType.simpleString()}) is not {wanted}"]


# Plans ------------------------------------------------------------------------------------------------


def _plan_matching(call: CallArguments) -> CallPlan:
    columns = choose_columns(call.frame, event_id=call.event_id, keep=call.keep, grouped=False)
    handle = call.open_subscriptions()
    plan = ShardPlan(handle.store.shards)
    ids = plan.build_id_field(columns.id_column, handle.spark_id_type, nullable=False)
    stage = WorkerStage(columns.kept, columns.names, plan.row_builder, (ids,), plan)
    return _build_plan(call.frame, handle, stage, [*map(quote_name, columns.kept)], columns.output)


def _plan_judging(call: CallArguments) -> CallPlan:
    kept = () if call.event_id is None else (call.event_id,)
    require_columns(kept, call.frame, why="event_id")
    handle = call.open_subscriptions()
    added = (StructField("row", StringType()), StructField("reason", StringType(), nullable=False))
    plan = ShardPlan(handle.store.shards, judge=True)
    stage = WorkerStage(kept, ("event",) * len(kept), build_letters, added, plan)
    expressions = [*map(quote_name, kept), _render_row(call.frame)]
    return _build_plan(call.frame, handle, stage, expressions, (*stage.names, "reason", "row"))


def _build_plan(
    frame: StructType, handle: SubscriptionHandle, stage: WorkerStage, kept: Sequence[str], output: Sequence[str]
) -> CallPlan:
    """Return the plan of a stage; its input columns are the SQL expressions `kept`, the columns it reads, the time."""
    read = stage.find_read_columns(frame, handle)
    inputs = list(dict.fromkeys([*kept, *map(quote_name, read)]))
    moment = handle.now or len(inputs)
    if needs_clock(moment, len(inputs)):
        inputs.append("current_timestamp()")
    places = StepColumns(
        read=tuple(inputs.index(quote_name(name)) for name in read),
        names=read,
        kept=tuple(map(inputs.index, kept)),
        now=moment,
        shard=len(inputs) if stage.plan.copies > 1 else None,
    )
    select = [SelectedColumn(text, f"_{place}") for place, text in enumerate(inputs)]
    rows = stage.build_output_schema(frame)
    order = tuple(map(rows.names.index, output))
    # Nullable throughout: Spark's worker makes the batch of a call that gave nothing by this schema, and the others by
    # Arrow's default, and cannot write the two into one stream where they differ.
    schema = StructType([rows[name] for name in output]).toNullable()
    return CallPlan(schema, select=select, step=stage.build_step(handle, places), order=order)


def _render_row(frame: StructType) -> str:
    """Return the SQL expression of an event as JSON, as `dead_letters` shows it: what Arrow cannot carry as text."""
    carried = {name: find_arrow_type(frame[name].dataType) is not None for name in frame.names}
    require_columns([name for name, fits in carried.items() if fits], frame, why="the events")
    quoted = [(quote_name(name), fits) for name, fits in carried.items()]
    columns = ", ".join(name if fits else f"CAST({name} AS STRING) AS {name}" for name, fits in quoted)
    return f"to_json(struct({columns}), map('ignoreNullFields', 'false'))"
