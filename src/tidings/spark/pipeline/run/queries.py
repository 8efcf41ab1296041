"""The queries of a running pipeline: matching, pattern detection, or both.

Each query has a folder of its own in the checkpoint, and reports each micro-batch that is done. When a query fails, or
a stop is requested, all of them end after their current batch: none is interrupted. The exception of a failed batch is
kept as it was raised.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidings.spark.pipeline.monitor.batch_report import compute_lag, count_duplicates, find_newest_file
from tidings.spark.pipeline.run.failures import SPARK_ERRORS, FailureReport
from tidings.spark.pipeline.sinks.sinks import Sink

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import ExitStack

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tidings.spark.pipeline.config.settings import Pipeline
    from tidings.spark.pipeline.monitor.batch_report import BatchReport, Monitor
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.stopping import StopSignal

POLL_SECONDS = 0.1
"""Seconds between two polls of the queries."""

SETTLE_SECONDS, SETTLE_POLL_SECONDS = 30.0, 0.01
"""Seconds that Spark may take to commit a finished batch; and between two polls of its checkpoint."""

PROGRESS_SECONDS = 3.0
"""Seconds that a report waits for Spark's own, which has the lag."""

WAITING = "Waiting for "
"""How Spark's words begin for a query that waits: for data to arrive, or the next trigger."""

SUMMED_FIELDS = ("events", "matches", "dead_letters", "detections", "late")
"""Fields of a report that are summed over a run."""


class QueryClosed(Exception):
    """Raised to Spark for a batch that begins after the query was closed; the next run processes it."""


@dataclass(frozen=True, slots=True)
class BatchSinks:
    """The open sinks of a query."""

    results: Sequence[Sink]
    dead_letters: Sink


class PipelineQuery(ABC):
    """A query of a pipeline; once it is started, Spark calls it with each micro-batch.

    `folder` is the query's own in the checkpoint, `suffix` what its name adds to that of the pipeline. Of timed batches
    none begins within `least_seconds` after another.
    """

    folder: str
    suffix = ""
    least_seconds = 0.0
    spark_query: StreamingQuery

    def __init__(self, pipeline: Pipeline, checkpoint: Checkpoint, sinks: BatchSinks) -> None:
        self._pipeline, self._checkpoint, self._sinks = pipeline, checkpoint, sinks
        self._lock, self._closed = threading.Lock(), False  # locked during a batch
        self._last_batch: int | None = None
        self._has_started = False
        self._waiting: deque[tuple[float, BatchReport]] = deque()  # from Spark's thread to that of `report`
        self.failure: BaseException | None = None
        self.totals: Counter[str] = Counter()

    def start(self, events: DataFrame) -> None:
        """Start the query on a stream of events."""
        writer = events.writeStream.foreachBatch(self).queryName(self._pipeline.name + self.suffix)
        # A URI: on this file system, whatever Spark's default is.
        writer = writer.option("checkpointLocation", f"file://{self._checkpoint.folder}/{self.folder}")
        trigger = self._pipeline.trigger
        if trigger.available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger.every is not None:
            seconds = max(trigger.every.total_seconds(), self.least_seconds)
            writer = writer.trigger(processingTime=f"{int(seconds * 1000)} milliseconds")
        self.spark_query = writer.start()
        self._has_started = True

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Process a micro-batch; an exception is kept, since Spark turns it into text."""
        with self._lock:
            if self._closed:
                raise QueryClosed
            started, start = datetime.now(UTC), time.monotonic()
            try:
                report = self._process(frame, batch, started)
            except BaseException as problem:
                self.failure = problem
                raise
            self._last_batch = batch
            if report is not None:
                self.totals["batches"] += 1
                self.totals.update({name: report.count_for_total(name) for name in SUMMED_FIELDS})
                now = time.monotonic()
                self._waiting.append((now, replace(report, seconds=now - start)))

    def close(self) -> None:
        """Wait for the current batch; none begins after that.

        Spark waits for the current batch before it stops a query, so a batch must never wait for the thread that stops.
        """
        with self._lock:
            self._closed = True

    def stop(self) -> None:
        """Stop the query at once, whatever becomes of its batch."""
        with suppress(*SPARK_ERRORS):
            self.spark_query.stop()

    @property
    def is_active(self) -> bool:
        """Whether Spark still runs the query."""
        return self.spark_query.isActive

    @property
    def is_waiting(self) -> bool:
        """Whether the query has taken all that there is, and waits for more."""
        status = self.spark_query.status
        return bool(status["message"].startswith(WAITING) and not status["isDataAvailable"])

    @property
    def has_begun(self) -> bool:
        """Whether it has done a batch, or has looked and waits for events: all that a batch needs has started."""
        return self._has_started and (self._last_batch is not None or self.is_waiting)

    @property
    def ends_by_itself(self) -> bool:
        """Whether the query ends when it has read all that is there."""
        return self._pipeline.trigger.available_now

    @property
    def problem(self) -> BaseException | None:
        """The exception that ended the query, if one did."""
        return None if self.is_active else self.failure or self.spark_query.exception()

    @property
    def is_idle(self) -> bool:
        """Whether Spark has committed the last batch, there was none, or the query has ended."""
        is_done = self._last_batch is None or self._checkpoint.is_done(self._last_batch, self.folder)
        return is_done or not self.is_active

    def report(self, monitor: Monitor, *, last: bool = False) -> None:
        """Pass on reports, each once Spark's own report of the batch is there, which has the lag, or takes too long."""
        progress = self._read_progress() if self._waiting else {}
        while self._waiting:
            since, report = self._waiting[0]
            is_complete = report.batch <= max(progress, default=-1)
            if not (last or is_complete or time.monotonic() - since > PROGRESS_SECONDS):
                break
            self._waiting.popleft()
            if (spark := progress.get(report.batch)) is not None:
                lag, newest = compute_lag(spark), find_newest_file(spark)
                report = replace(report, lag=lag, duplicates=count_duplicates(spark), read_up_to=newest)
            monitor.report(report)

    def _read_progress(self) -> dict[int, dict[str, Any]]:
        """Return Spark's reports of its last batches by number, without those of waiting for events."""
        with suppress(*SPARK_ERRORS):
            batches = [json.loads(batch.json) for batch in self.spark_query.recentProgress]
            return {batch["batchId"]: batch for batch in batches if "addBatch" in batch.get("durationMs", ())}
        return {}

    @abstractmethod
    def _process(self, frame: DataFrame, batch: int, started: datetime) -> BatchReport | None:
        """Do the work of a batch, and report it; its duration is filled in. None: there was nothing to do."""


def persist_frame(frame: DataFrame, stack: ExitStack) -> DataFrame:
    """Persist a frame, on disk where memory is short, until the stack is closed."""
    stack.callback(frame.persist().unpersist)
    return frame


def start_queries(
    queries: Sequence[tuple[DataFrame, PipelineQuery]], monitor: Monitor, stopping: StopSignal, stack: ExitStack
) -> list[PipelineQuery]:
    """Start each query when the one before has begun; return those that were started: all, unless one fails or ends.

    A start takes several new Python processes, to each of which Spark gives ten seconds: started together, queries
    keep each other waiting for longer than that on a busy machine.
    """
    started: list[PipelineQuery] = []
    for events, query in queries:
        query.start(events)
        stack.callback(query.stop)
        started.append(query)
        if not query.ends_by_itself and not _await_first_batch(started, monitor, stopping):
            break
    return started


def _await_first_batch(running: Sequence[PipelineQuery], monitor: Monitor, stopping: StopSignal) -> bool:
    """Pass on reports until the newest query has begun; False where it ended, or a stop is requested."""
    while running[-1].is_active and not running[-1].has_begun:
        if stopping.wait(POLL_SECONDS):
            return False
        for query in running:
            query.report(monitor)
    return running[-1].is_active


def follow_queries(
    running: Sequence[PipelineQuery], monitor: Monitor, stopping: StopSignal, failure_report: FailureReport
) -> None:
    """Pass on reports until all queries end; stop them after their batches when one fails or a stop is requested."""
    # One query may have read everything before another, but none may have failed.
    while any(query.is_active for query in running) and _find_first(query.problem for query in running) is None:
        if stopping.wait(POLL_SECONDS):
            break
        for query in running:
            query.report(monitor)
    # Read before the others are stopped: stopping is an exception of theirs, but not the cause.
    problem = None if stopping.requested else _find_first(query.problem for query in running)
    if any(query.is_active for query in running):
        monitor.show_status("stopping after this batch")
        _stop_all(running)
    for query in running:
        query.report(monitor, last=True)
    problem = problem or _find_first(query.failure for query in running)
    if problem is not None:
        raise failure_report.explain(problem)


def _find_first(problems: Iterable[BaseException | None]) -> BaseException | None:
    return next((problem for problem in problems if problem is not None), None)


def _stop_all(running: Sequence[PipelineQuery]) -> None:
    for query in running:
        query.close()
    # Without Spark's commit of a finished batch, the next run would write its rows again.
    until = time.monotonic() + SETTLE_SECONDS
    while not all(query.is_idle for query in running) and time.monotonic() < until:
        time.sleep(SETTLE_POLL_SECONDS)
    for query in running:
        query.spark_query.stop()
