"""`tidings run`: the query is started, watched, and stopped after its batch; what is lost with the process is nothing.

All that must outlive it is in the checkpoint: Spark's offsets, the versions of the subscriptions, and which of them a
batch uses. So stopping is only a matter of manners: a wish to stop (SIGTERM, Ctrl-C) waits for the batch that is being
worked on, and a process that is killed is started again and goes on.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from queue import Empty
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.utils import is_remote
from rich.console import Console

from tidings.errors import BadPipeline, PipelineFailed, SparkUnavailable, TidingsError
from tidings.spark.pipeline.analysis import check_on_spark
from tidings.spark.pipeline.batches import ARRIVED, REFUSED, Batches, Sinks, path
from tidings.spark.pipeline.checks import missing_source
from tidings.spark.pipeline.following import live_of
from tidings.spark.pipeline.outputs import output_of
from tidings.spark.pipeline.progress import duplicates_of, lag_of
from tidings.spark.pipeline.reach import require_brokers
from tidings.spark.pipeline.shown import watch_of
from tidings.spark.pipeline.sources import events_of
from tidings.spark.pipeline.state import Checkpoint
from tidings.spark.pipeline.stopping import Stopping
from tidings.spark.pipeline.trouble import SPARKS, words
from tidings.spark.schema import column
from tidings.spark.session import is_submitted
from tidings.spark.session import session as ts_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidings.spark.pipeline.config import Pipeline
    from tidings.spark.pipeline.report import Report, Watch

MASTER = "local[*,4]"
"""All cores of this machine; a task whose worker dies is tried again, which `local[*]` alone does not do."""

OFTEN = 0.1
"""Seconds between two looks at the query."""

SETTLING, SHORTLY = 30.0, 0.01
"""Seconds that a batch, done, may take to be noted in Spark's checkpoint; and between two looks there."""

PATIENCE = 3.0
"""Seconds a report waits for Spark's own, which knows the lag."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pipeline did until it ended."""

    batches: int
    events: int
    matches: int
    dead_letters: int
    stopped: bool  # by a wish, and not because all was read


def run(
    pipeline: Pipeline,
    *,
    console: Console | None = None,
    started: Callable[[SparkSession], object] | None = None,
) -> Outcome:
    """Run a pipeline until all is read, or somebody wishes it to stop; `started` is told when Spark is there."""
    console = console or Console(highlight=False)
    with ExitStack() as stack:
        stopping = stack.enter_context(Stopping())
        _refuse(missing_source(pipeline.source))
        checkpoint = Checkpoint.opened(pipeline.checkpoint)
        stack.enter_context(checkpoint.alone())
        watch = watch_of(pipeline.shown, name=pipeline.name, console=console)
        stack.callback(watch.close)
        watch.status("starting Spark")
        session = _session(pipeline)
        stopping.take()  # Spark has just put its own handler in place
        if started is not None:
            started(session)
        stack.enter_context(_in_one_line())
        _refuse(check_on_spark(session, pipeline))
        require_brokers(pipeline)
        batches = _batches(session, pipeline, checkpoint, watch, stack, console)
        if stopping.asked.is_set():
            return Outcome(0, 0, 0, 0, stopped=True)
        query = _started(session, pipeline, checkpoint, batches)
        stack.callback(_ended, query)
        _followed(query, batches, watch, stopping)
        return Outcome(**batches.totals, stopped=stopping.asked.is_set())


def _refuse(mistakes: list[str]) -> None:
    if mistakes:
        raise BadPipeline("\n".join(mistakes), mistakes=tuple(mistakes))


def _session(pipeline: Pipeline) -> SparkSession:
    if "SPARK_REMOTE" in os.environ or is_remote():
        msg = "`tidings run` drives Spark itself and cannot do so through Spark Connect; unset SPARK_REMOTE"
        raise SparkUnavailable(msg)
    master = pipeline.master or (None if is_submitted() else MASTER)
    return ts_session(pipeline.name, master=master, kafka=pipeline.kafka, jars=pipeline.jars, config=pipeline.spark)


def _batches(
    session: SparkSession,
    pipeline: Pipeline,
    checkpoint: Checkpoint,
    watch: Watch,
    stack: ExitStack,
    console: Console,
) -> Batches:
    made = "event" if pipeline.source.id is not None else None
    key = [name for name in (None if pipeline.matching.per == "event" else "subscription", made) if name]
    outputs = [output_of(sink, key=key, owner=checkpoint.id, console=console) for sink in pipeline.sinks]
    letters = output_of(pipeline.dead_letters, key=[made] if made else [], owner=checkpoint.id, console=console)
    for output in (*outputs, letters):
        stack.callback(output.close)
    watch.status("reading the subscriptions")
    live = live_of(session, pipeline, checkpoint)
    batches = Batches(pipeline, live=live, checkpoint=checkpoint, sinks=Sinks(outputs, letters), watch=watch)
    batches.heard(live.sync())
    watch.status(f"{len(live):,} subscriptions; waiting for events")
    return batches


def _started(session: SparkSession, pipeline: Pipeline, checkpoint: Checkpoint, batches: Batches) -> StreamingQuery:
    events = _once(events_of(session, pipeline.source, pipeline.derived), pipeline)
    writer = events.writeStream.foreachBatch(batches).queryName(pipeline.name)
    writer = writer.option("checkpointLocation", checkpoint.query)
    trigger = pipeline.trigger
    if trigger.available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger.every is not None:
        writer = writer.trigger(processingTime=f"{int(trigger.every.total_seconds() * 1000)} milliseconds")
    return writer.start()


def _once(events: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Leave out events whose id came before, by when they came: so none of them is too late to be looked at."""
    if pipeline.duplicates is None or pipeline.source.id is None:
        return events
    id = path(events, pipeline.source.id).cast("string")
    alone = F.concat(F.lit("?"), F.expr("uuid()"))  # what has no id, or could not be read, is nobody's double
    named = F.when(column(REFUSED).isNull() & id.isNotNull(), F.concat(F.lit("="), id)).otherwise(alone)
    within = f"{int(pipeline.duplicates.within.total_seconds() * 1000)} milliseconds"
    marked = events.withColumns({"_double": named, ARRIVED: F.current_timestamp()})
    return marked.withWatermark(ARRIVED, within).dropDuplicatesWithinWatermark(["_double"]).drop("_double")


# While it runs -------------------------------------------------------------------------------------


def _followed(query: StreamingQuery, batches: Batches, watch: Watch, stopping: Stopping) -> None:
    """Hand on reports until the query ends; stop it after its batch when somebody wishes that."""
    telling = _Telling(query, batches, watch)
    while query.isActive and not stopping.wait(OFTEN):
        telling.look()
    if query.isActive:
        watch.status("stopping after this batch")
        batches.close()
        _wait(lambda: batches.is_done() or not query.isActive, SETTLING)
        query.stop()
    telling.look(last=True)
    problem = batches.failure or (None if stopping.asked.is_set() else query.exception())
    if problem is not None:
        raise _failure(problem)


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for Spark to note that a batch is done: the next run would do it again, and send its records again."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(SHORTLY)


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Let Spark's own errors out as ours."""
    try:
        yield
    except SPARKS as problem:
        raise _failure(problem) from problem


def _failure(problem: BaseException) -> BaseException:
    """Return what went wrong, in one line where it is Spark's."""
    if isinstance(problem, TidingsError):
        return problem
    failed = PipelineFailed(f"the pipeline ended: {words(problem)}; what is done is kept, start it again to go on")
    failed.__cause__ = problem
    return failed


class _Telling:
    """Puts together our report on a batch and Spark's, which comes a little later and knows the lag."""

    def __init__(self, query: StreamingQuery, batches: Batches, watch: Watch) -> None:
        self._query, self._batches, self._watch = query, batches, watch
        self._waiting: list[tuple[float, Report]] = []

    def look(self, *, last: bool = False) -> None:
        """Hand on the reports that are complete, or have waited long enough."""
        with suppress(Empty):
            while True:
                self._waiting.append((time.monotonic(), self._batches.done.get_nowait()))
        known = self._progress() if self._waiting else {}
        while self._waiting and (last or self._waiting[0][1].batch <= max(known, default=-1) or self._is_old()):
            report = self._waiting.pop(0)[1]
            self._watch.report(_completed(report, known.get(report.batch)))

    def _is_old(self) -> bool:
        return time.monotonic() - self._waiting[0][0] > PATIENCE

    def _progress(self) -> dict[int, dict[str, Any]]:
        """Return what Spark tells of its last batches, by their numbers; while it waits for events it tells of none."""
        with suppress(*SPARKS):
            told = [json.loads(one.json) for one in self._query.recentProgress]
            return {one["batchId"]: one for one in told if "addBatch" in one.get("durationMs", ())}
        return {}


def _completed(report: Report, progress: dict[str, Any] | None) -> Report:
    if progress is None:
        return report
    return replace(report, lag=lag_of(progress), duplicates=duplicates_of(progress))


def _ended(query: StreamingQuery) -> None:
    with suppress(*SPARKS):
        query.stop()
