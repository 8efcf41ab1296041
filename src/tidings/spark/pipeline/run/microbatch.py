"""The common part of both queries' batch handlers.

A request to stop never interrupts a batch, the exception of a failed batch is kept as it was raised, and each finished
batch is reported.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import ExitStack

    from pyspark.sql import DataFrame

    from tidings.spark.pipeline.monitor.report import BatchReport
    from tidings.spark.pipeline.run.checkpoint import Checkpoint

SUMMED_FIELDS = ("events", "matches", "dead_letters", "detections", "late")
"""Fields of a report that are summed over a run."""


class QueryClosed(Exception):
    """Raised to Spark for a batch that begins after the query was closed; the next run processes it."""


class BatchHandler(ABC):
    """Processes the micro-batches of a query; Spark calls it with each."""

    def __init__(self, checkpoint: Checkpoint, folder: str) -> None:
        """Take the checkpoint, and the name of the query's folder in it."""
        self._checkpoint, self.folder = checkpoint, folder
        self._lock, self._closed = threading.Lock(), False  # locked during a batch
        self._last_batch: int | None = None
        self.failure: BaseException | None = None
        self.reports: SimpleQueue[BatchReport] = SimpleQueue()
        self.totals: Counter[str] = Counter()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Process a micro-batch; an exception is kept, since Spark turns it into text."""
        with self._lock:
            if self._closed:
                raise QueryClosed
            try:
                self._process(frame, batch)
                self._last_batch = batch
            except BaseException as problem:
                self.failure = problem
                raise

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
    def _process(self, frame: DataFrame, batch: int) -> None:
        """Do the work of a batch."""

    def _report(self, report: BatchReport) -> None:
        self.totals["batches"] += 1
        self.totals.update({name: report.count_for_total(name) for name in SUMMED_FIELDS})
        self.reports.put(report)


def persist_frame(frame: DataFrame, stack: ExitStack) -> DataFrame:
    """Persist a frame, on disk where memory is short, until the stack is closed."""
    stack.callback(frame.persist().unpersist)
    return frame
