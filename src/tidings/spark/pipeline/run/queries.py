"""The queries of a running pipeline: matching, pattern detection, or both.

Each query has a folder of its own in the checkpoint, and a handler of its micro-batches, which reports each that is
done. When a query fails, or a stop is requested, all of them end after their current batch: none is interrupted. The
exception of a failed batch is kept as it was raised.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery

from tidings.spark.pipeline.monitor.batch_report import compute_lag, count_duplicates
from tidings.spark.pipeline.run.trouble import SPARK_ERRORS, FailureReport
from tidings.spark.pipeline.sinks.sinks import Sink

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import ExitStack

    from pyspark.sql import DataFrame

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

SUMMED_FIELDS = ("events", "matches", "dead_letters", "detections", "late")
"""Fields of a report that are summed over a run."""


class QueryClosed(Exception):
    """Raised to Spark for a batch that begins after the query was closed; the next run processes it."""


@dataclass(frozen=True, slots=True)
class BatchSinks:
    """The open sinks of a query."""

    results: Sequence[Sink]
    dead_letters: Sink


class BatchHandler(ABC):
    """Processes the micro-batches of a query; Spark calls it with each.

    `folder` is the query's own in the checkpoint, `suffix` what its name adds to that of the pipeline.
    """

    folder: str
    suffix = ""

    def __init__(self, pipeline: Pipeline, checkpoint: Checkpoint, sinks: BatchSinks) -> None:
        self._pipeline, self._checkpoint, self._sinks = pipeline, checkpoint, sinks
        self._lock, self._closed = threading.Lock(), False  # locked during a batch
        self._last_batch: int | None = None
        self.failure: BaseException | None = None
        self.reports: SimpleQueue[BatchReport] = SimpleQueue()
        self.totals: Counter[str] = Counter()

    def start(self, events: DataFrame) -> RunningQuery:
        """Start the query on a stream of events."""
        writer = events.writeStream.foreachBatch(self).queryName(self._pipeline.name + self.suffix)
        writer = writer.option("checkpointLocation", self._checkpoint.query_uri(self.folder))
        trigger = self._pipeline.trigger
        if trigger.available_now:
            writer = writer.trigger(availableNow=True)
        elif trigger.every is not None:
            writer = writer.trigger(processingTime=f"{int(trigger.every.total_seconds() * 1000)} milliseconds")
        return RunningQuery(writer.start(), self)

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
                self.reports.put(replace(report, seconds=time.monotonic() - start))

    def close(self) -> None:
        """Wait for the current batch; none begins after that.

        Spark waits for the current batch before it stops a query, so a batch must never wait for the thread that stops.
        """
        with self._lock:
            self._closed = True

    def is_done(self) -> bool:
        """Tell whether Spark has committed the last batch, or there was none."""
        return self._last_batch is None or self._checkpoint.is_done(self._last_batch, self.folder)

    @abstractmethod
    def _process(self, frame: DataFrame, batch: int, started: datetime) -> BatchReport | None:
        """Do the work of a batch, and report it; its duration is filled in. None: there was nothing to do."""


def persist_frame(frame: DataFrame, stack: ExitStack) -> DataFrame:
    """Persist a frame, on disk where memory is short, until the stack is closed."""
    stack.callback(frame.persist().unpersist)
    return frame


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A started query, and the handler of its batches."""

    query: StreamingQuery
    handler: BatchHandler

    @property
    def problem(self) -> BaseException | None:
        """The exception that ended the query, if one did."""
        return None if self.query.isActive else self.handler.failure or self.query.exception()

    @property
    def is_idle(self) -> bool:
        """Whether the last batch is committed, or the query has ended."""
        return self.handler.is_done() or not self.query.isActive

    def stop(self) -> None:
        """Stop the query at once, whatever becomes of its batch."""
        with suppress(*SPARK_ERRORS):
            self.query.stop()


def follow_queries(
    running: Sequence[RunningQuery], monitor: Monitor, stopping: StopSignal, trouble: FailureReport
) -> None:
    """Pass on reports until all queries end; stop them after their batches when one fails or a stop is requested."""
    joiners = [_ReportJoiner(query, monitor) for query in running]
    # One query may have read everything before another, but none may have failed.
    while any(query.query.isActive for query in running) and _find_first(query.problem for query in running) is None:
        if stopping.wait(POLL_SECONDS):
            break
        for joiner in joiners:
            joiner.poll()
    # Read before the others are stopped: stopping is an exception of theirs, but not the cause.
    problem = None if stopping.requested.is_set() else _find_first(query.problem for query in running)
    if any(query.query.isActive for query in running):
        monitor.show_status("stopping after this batch")
        _stop_all(running)
    for joiner in joiners:
        joiner.poll(last=True)
    problem = problem or _find_first(query.handler.failure for query in running)
    if problem is not None:
        raise trouble.explain(problem)


def _find_first(problems: Iterable[BaseException | None]) -> BaseException | None:
    return next((problem for problem in problems if problem is not None), None)


def _stop_all(running: Sequence[RunningQuery]) -> None:
    for query in running:
        query.handler.close()
    # Without Spark's commit of a finished batch, the next run would write its rows again.
    until = time.monotonic() + SETTLE_SECONDS
    while not all(query.is_idle for query in running) and time.monotonic() < until:
        time.sleep(SETTLE_POLL_SECONDS)
    for query in running:
        query.query.stop()


class _ReportJoiner:
    """Joins our report of a batch with Spark's, which comes a little later and has the lag."""

    def __init__(self, running: RunningQuery, monitor: Monitor) -> None:
        self._query, self._handler, self._monitor = running.query, running.handler, monitor
        self._waiting: list[tuple[float, BatchReport]] = []

    def poll(self, *, last: bool = False) -> None:
        """Pass on the reports that are complete, or have waited long enough."""
        with suppress(Empty):
            while True:
                self._waiting.append((time.monotonic(), self._handler.reports.get_nowait()))
        progress = self._read_progress() if self._waiting else {}
        while self._waiting:
            since, report = self._waiting[0]
            is_complete = report.batch <= max(progress, default=-1)
            if not (last or is_complete or time.monotonic() - since > PROGRESS_SECONDS):
                break
            self._waiting.pop(0)
            if (spark := progress.get(report.batch)) is not None:
                report = replace(report, lag=compute_lag(spark), duplicates=count_duplicates(spark))
            self._monitor.report(report)

    def _read_progress(self) -> dict[int, dict[str, Any]]:
        """Return Spark's reports of its last batches by number, without those of waiting for events."""
        with suppress(*SPARK_ERRORS):
            batches = [json.loads(batch.json) for batch in self._query.recentProgress]
            return {batch["batchId"]: batch for batch in batches if "addBatch" in batch.get("durationMs", ())}
        return {}
