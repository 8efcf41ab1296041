"""The micro-batches of a query, taken one after the other, until somebody wishes it to stop.

What matching and looking for patterns have in common: a batch is never left half done by a wish to stop, what went
wrong in it is kept as it was raised, and each batch that is done is reported.
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

    from tidings.spark.pipeline.monitor.report import Report
    from tidings.spark.pipeline.run.checkpoint import Checkpoint

SUMMED_FIELDS = ("events", "matches", "dead_letters", "detections", "late")
"""Fields of a report that are summed up until the pipeline ends."""


class QueryClosed(Exception):
    """Raised to Spark for a batch that would begin after the pipeline was asked to stop; the next run begins it."""


class BatchHandler(ABC):
    """Takes the micro-batches of a query; Spark calls it with each."""

    def __init__(self, checkpoint: Checkpoint, folder: str) -> None:
        """Take the checkpoint, and the name of the query's own folder in it."""
        self._checkpoint, self.folder = checkpoint, folder
        self._lock, self._closed = threading.Lock(), False  # held while a batch is being worked on
        self._last_batch: int | None = None
        self.failure: BaseException | None = None
        self.reports: SimpleQueue[Report] = SimpleQueue()
        self.totals: Counter[str] = Counter()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Take a micro-batch; what goes wrong is kept, since Spark makes one long text of it."""
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
        """Wait for the batch that is being worked on; none begins after that.

        Spark waits for a batch that has begun before it stops a query. So a batch must not wait for whoever stops it.
        """
        with self._lock:
            self._closed = True

    def is_done(self) -> bool:
        """Tell whether Spark has noted that the last batch is done, or there was none."""
        return self._last_batch is None or self._checkpoint.is_done(self._last_batch, self.folder)

    @abstractmethod
    def _process(self, frame: DataFrame, batch: int) -> None:
        """Do the work of a batch."""

    def _report(self, report: Report) -> None:
        self.totals["batches"] += 1
        self.totals.update({name: report.count_for_total(name) for name in SUMMED_FIELDS})
        self.reports.put(report)


def persist_frame(frame: DataFrame, stack: ExitStack) -> DataFrame:
    """Keep a frame's rows, on disk where memory is short, until the batch is done."""
    stack.callback(frame.persist().unpersist)
    return frame
