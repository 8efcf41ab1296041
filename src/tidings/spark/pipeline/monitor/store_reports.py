"""A pipeline's progress as a report in a store, for whoever asks the service how it is.

The report is one row, written after a batch and every few seconds without one, but never twice within `LEAST_SECONDS`:
a service of many small batches must not keep its store busy with them. A store that does not answer is asked again the
next time. Writing is the work of a thread: no batch waits for it.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from tidings.service.store.base import StatusReport, StoreError
from tidings.spark.pipeline.monitor.batch_report import get_utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from tidings.service.store.base import StatusBoard
    from tidings.spark.pipeline.monitor.batch_report import BatchReport

PIPELINE = "pipeline"
"""The name of the report."""

LEAST_SECONDS, MOST_SECONDS = 0.5, 3.0
"""Seconds between two reports."""

SUMMED = ("events", "matches", "detections", "dead_letters", "duplicates", "late")
"""Counts of batches that the report adds up, since the pipeline started."""


class StoreReports:
    """Writes the report of a pipeline until it is closed.

    Its facts: `doing`, in words; sums since the start (`SUMMED`); of the last batch `batch`, `seconds`, `version` and
    `subscriptions`; `sequence`, the change of the store that its subscriptions have; `lag_seconds`, how old its newest
    file was when it was done; `behind`, records that Kafka has beyond it; and `events_read`, the newest file of events
    that every query has read.
    """

    def __init__(
        self,
        board: StatusBoard,
        *,
        read: Mapping[str, str | None],
        now: Callable[[], datetime] = get_utc_now,
    ) -> None:
        """`read` has, for each query that reads the events, the newest file that it has read already."""
        self._board, self._queries, self._now = board, len(read), now
        self._sums: Counter[str] = Counter()
        self._facts: dict[str, Any] = {"doing": "starting"}
        self._read = {query: newest for query, newest in read.items() if newest is not None}
        self._lock, self._changed, self._closing = threading.Lock(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidings-reports", daemon=True)
        self._thread.start()

    def show_status(self, text: str) -> None:
        """Note what the pipeline is doing."""
        with self._lock:
            self._facts["doing"] = text
        self._changed.set()

    def report(self, report: BatchReport) -> None:
        """Add a batch."""
        with self._lock:
            self._sums.update({name: report.count_for_total(name) for name in SUMMED})
            if report.read_up_to is not None:
                self._read[report.query] = report.read_up_to
            if report.query == "matching":
                self._facts |= {
                    name: getattr(report, name) for name in ("batch", "seconds", "version", "subscriptions")
                }
                self._facts |= {"sequence": report.sequence, "behind": sum(report.lag.values())}
                self._facts["lag_seconds"] = report.compute_lag_seconds()
            self._facts |= {"doing": "matching", "batch_at": report.finished_at.isoformat()}
        self._changed.set()

    def warn(self, text: str) -> None:
        """Keep the last warning."""
        with self._lock:
            self._facts |= {"warning": text, "warning_at": self._now().isoformat()}
        self._changed.set()

    def close(self) -> None:
        """Write that the pipeline has stopped."""
        self.show_status("stopped")
        self._closing.set()
        self._thread.join()

    def collect_facts(self) -> dict[str, Any]:
        """Return the facts as they are now."""
        with self._lock:
            read = min(self._read.values()) if len(self._read) == self._queries else None
            return {**self._facts, **{name: self._sums[name] for name in SUMMED}, "events_read": read}

    def _run(self) -> None:
        while not self._closing.is_set():
            self._write()
            self._closing.wait(LEAST_SECONDS)
            self._changed.wait(MOST_SECONDS)
            self._changed.clear()
        self._write()

    def _write(self) -> None:
        try:
            self._board.write(StatusReport(PIPELINE, self._now(), self.collect_facts()))
        except StoreError:  # it is asked again soon
            return
