"""The queries of a running pipeline: started one by one, watched together, and ended together.

There is one that matches, one that looks for patterns, or both, each with a folder of the checkpoint of its own. When
one of them fails, or somebody wishes to stop, all of them end after the batch that they are working on.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery

from tidings.spark.pipeline.monitor.spark_progress import duplicates_of, lag_of
from tidings.spark.pipeline.run.microbatch import Turns
from tidings.spark.pipeline.run.trouble import SPARKS, Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from tidings.spark.pipeline.config.values import Trigger
    from tidings.spark.pipeline.monitor.report import Report, Watch
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.stopping import Stopping

OFTEN = 0.1
"""Seconds between two looks at the queries."""

SETTLING, SHORTLY = 30.0, 0.01
"""Seconds that a batch, done, may take to be noted in Spark's checkpoint; and between two looks there."""

PATIENCE = 3.0
"""Seconds a report waits for Spark's own, which knows the lag."""


@dataclass(frozen=True, slots=True)
class Running:
    """A query that has been started, and who takes its batches."""

    query: StreamingQuery
    turns: Turns

    @property
    def problem(self) -> BaseException | None:
        """What went wrong, if the query ended by it."""
        return None if self.query.isActive else self.turns.failure or self.query.exception()

    @property
    def settled(self) -> bool:
        """Whether nothing of the last batch is open."""
        return self.turns.is_done() or not self.query.isActive

    def end(self) -> None:
        """Stop the query, whatever becomes of its batch."""
        with suppress(*SPARKS):
            self.query.stop()


def start(events: DataFrame, turns: Turns, *, name: str, checkpoint: Checkpoint, trigger: Trigger) -> Running:
    """Start a query on events."""
    writer = events.writeStream.foreachBatch(turns).queryName(name)
    writer = writer.option("checkpointLocation", checkpoint.query(turns.folder))
    if trigger.available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger.every is not None:
        writer = writer.trigger(processingTime=f"{int(trigger.every.total_seconds() * 1000)} milliseconds")
    return Running(writer.start(), turns)


def follow(running: Sequence[Running], watch: Watch, stopping: Stopping, trouble: Trouble) -> None:
    """Hand on reports until all queries end; end them after their batches when one fails or somebody wishes that."""
    tellings = [_Telling(one, watch) for one in running]
    while _go_on(running) and not stopping.wait(OFTEN):
        for telling in tellings:
            telling.look()
    # Before the others are ended: those then say that they were, which is no reason.
    problem = None if stopping.asked.is_set() else _first(one.problem for one in running)
    if any(one.query.isActive for one in running):
        watch.status("stopping after this batch")
        _end(running)
    for telling in tellings:
        telling.look(last=True)
    problem = problem or _first(one.turns.failure for one in running)
    if problem is not None:
        raise trouble.told(problem)


def _go_on(running: Sequence[Running]) -> bool:
    """Tell whether one of them runs and none has failed; one that has read all there is may be done before another."""
    return any(one.query.isActive for one in running) and _first(one.problem for one in running) is None


def _first(problems: Any) -> BaseException | None:
    return next((problem for problem in problems if problem is not None), None)


def _end(running: Sequence[Running]) -> None:
    for one in running:
        one.turns.close()
    _wait(lambda: all(one.settled for one in running), SETTLING)
    for one in running:
        one.query.stop()


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for Spark to note that a batch is done: the next run would do it again, and send its records again."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(SHORTLY)


class _Telling:
    """Puts together our report on a batch and Spark's, which comes a little later and knows the lag."""

    def __init__(self, running: Running, watch: Watch) -> None:
        self._query, self._turns, self._watch = running.query, running.turns, watch
        self._waiting: list[tuple[float, Report]] = []

    def look(self, *, last: bool = False) -> None:
        """Hand on the reports that are complete, or have waited long enough."""
        with suppress(Empty):
            while True:
                self._waiting.append((time.monotonic(), self._turns.done.get_nowait()))
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
