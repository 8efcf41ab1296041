"""The queries of a running pipeline: matching, pattern detection, or both.

Each query has a folder of its own in the checkpoint. When one of them fails, or a stop is requested, all of them end
after their current batch.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery

from tidings.spark.pipeline.monitor.spark_progress import compute_lag, count_duplicates
from tidings.spark.pipeline.run.microbatch import BatchHandler
from tidings.spark.pipeline.run.trouble import SPARK_ERRORS, FailureReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from tidings.spark.pipeline.config.values import Trigger
    from tidings.spark.pipeline.monitor.report import BatchReport, Monitor
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.stopping import StopSignal

POLL_SECONDS = 0.1
"""Seconds between two polls of the queries."""

SETTLE_SECONDS, SETTLE_POLL_SECONDS = 30.0, 0.01
"""Seconds that Spark may take to commit a finished batch; and between two polls of its checkpoint."""

PROGRESS_SECONDS = 3.0
"""Seconds that a report waits for Spark's own, which has the lag."""


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


def start_query(
    events: DataFrame, handler: BatchHandler, *, name: str, checkpoint: Checkpoint, trigger: Trigger
) -> RunningQuery:
    """Start a query on a stream of events."""
    writer = events.writeStream.foreachBatch(handler).queryName(name)
    writer = writer.option("checkpointLocation", checkpoint.query_uri(handler.folder))
    if trigger.available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger.every is not None:
        writer = writer.trigger(processingTime=f"{int(trigger.every.total_seconds() * 1000)} milliseconds")
    return RunningQuery(writer.start(), handler)


def follow_queries(
    running: Sequence[RunningQuery], watch: Monitor, stopping: StopSignal, trouble: FailureReport
) -> None:
    """Pass on reports until all queries end; stop them after their batches when one fails or a stop is requested."""
    joiners = [_ReportJoiner(query, watch) for query in running]
    while _is_running(running) and not stopping.wait(POLL_SECONDS):
        for joiner in joiners:
            joiner.poll()
    # Read before the others are stopped: stopping is an exception of theirs, but not the cause.
    problem = None if stopping.requested.is_set() else _find_first(query.problem for query in running)
    if any(query.query.isActive for query in running):
        watch.status("stopping after this batch")
        _stop_all(running)
    for joiner in joiners:
        joiner.poll(last=True)
    problem = problem or _find_first(query.handler.failure for query in running)
    if problem is not None:
        raise trouble.explain(problem)


def _is_running(running: Sequence[RunningQuery]) -> bool:
    """Tell whether some query runs and none has failed; one may have read everything before another."""
    return any(query.query.isActive for query in running) and _find_first(query.problem for query in running) is None


def _find_first(problems: Any) -> BaseException | None:
    return next((problem for problem in problems if problem is not None), None)


def _stop_all(running: Sequence[RunningQuery]) -> None:
    for query in running:
        query.handler.close()
    _wait(lambda: all(query.is_idle for query in running), SETTLE_SECONDS)
    for query in running:
        query.query.stop()


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for Spark to commit a batch; without the commit, the next run would write its rows again."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(SETTLE_POLL_SECONDS)


class _ReportJoiner:
    """Joins our report of a batch with Spark's, which comes a little later and has the lag."""

    def __init__(self, running: RunningQuery, watch: Monitor) -> None:
        self._query, self._handler, self._watch = running.query, running.handler, watch
        self._waiting: list[tuple[float, BatchReport]] = []

    def poll(self, *, last: bool = False) -> None:
        """Pass on the reports that are complete, or have waited long enough."""
        with suppress(Empty):
            while True:
                self._waiting.append((time.monotonic(), self._handler.reports.get_nowait()))
        progress = self._read_progress() if self._waiting else {}
        while self._waiting and (last or self._waiting[0][1].batch <= max(progress, default=-1) or self._is_old()):
            report = self._waiting.pop(0)[1]
            self._watch.report(_complete_report(report, progress.get(report.batch)))

    def _is_old(self) -> bool:
        return time.monotonic() - self._waiting[0][0] > PROGRESS_SECONDS

    def _read_progress(self) -> dict[int, dict[str, Any]]:
        """Return Spark's reports of its last batches by number, without those of waiting for events."""
        with suppress(*SPARK_ERRORS):
            batches = [json.loads(batch.json) for batch in self._query.recentProgress]
            return {batch["batchId"]: batch for batch in batches if "addBatch" in batch.get("durationMs", ())}
        return {}


def _complete_report(report: BatchReport, progress: dict[str, Any] | None) -> BatchReport:
    if progress is None:
        return report
    return replace(report, lag=compute_lag(progress), duplicates=count_duplicates(progress))
