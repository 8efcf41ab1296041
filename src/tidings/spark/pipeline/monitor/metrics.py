"""A pipeline's reports as metrics that Prometheus fetches from `http://HOST:PORT/metrics`.

The counts of a report are counters, such as `tidings_events_total`, which go up from 0 with the process, as Prometheus
expects. Every series has the label `pipeline`. The registry is our own, so a program that serves metrics itself is not
touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, start_http_server

from tidings.errors import CannotServe
from tidings.spark.pipeline.monitor.batch_report import COUNT_FIELDS

if TYPE_CHECKING:
    from threading import Thread
    from wsgiref.simple_server import WSGIServer

    from tidings.spark.pipeline.monitor.batch_report import BatchReport

GAUGE_HELP = {
    "batch": "Number of the last batch.",
    "subscriptions": "Subscriptions in force.",
    "version": "Version of the subscriptions.",
    "files_behind": "Files that wait to be read.",
}
"""Fields that are gauges, as `tidings_subscriptions`, and their help."""

PATTERN_GAUGE_HELP = {
    "patterns": "Patterns that are looked for.",
    "pattern_batch": "Number of the last batch of the patterns.",
}
"""The gauges of the detection query, which numbers its own batches."""

MAX_MISMATCH_SERIES = 100
"""Attributes with a series of mismatching values; a bound, since the names come from filters."""

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300)
"""Upper bounds of the histogram's buckets, finest around the usual duration of a batch."""


class Metrics:
    """Serves the metrics from a thread of its own until closed."""

    def __init__(self, address: str, *, name: str) -> None:
        """Serve at `HOST:PORT`; with port 0 a free one is taken, which is then in `port`."""
        registry, label = CollectorRegistry(), ("pipeline",)
        self._name = name
        self._counters = {
            key: Counter(f"tidings_{key}", text, label, registry=registry) for key, text in COUNT_FIELDS.items()
        }
        self._warnings = Counter("tidings_warnings", "Warnings given.", label, registry=registry)

        def make_gauge(key: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"tidings_{key}", text, (*label, *labels), registry=registry)

        self._gauges = {key: make_gauge(key, text) for key, text in {**GAUGE_HELP, **PATTERN_GAUGE_HELP}.items()}
        self._ended = make_gauge("last_batch_timestamp_seconds", "When it was done.")
        self._lag = make_gauge("lag_records", "Records of a Kafka partition not read yet.", "partition")
        mismatched = "Values of an attribute that are not of the kind that filters ask for."
        self._mismatched = make_gauge("mismatched_values", mismatched, "attribute", "asked")
        took = "Time a batch took."
        self._seconds = Histogram("tidings_batch_seconds", took, label, registry=registry, buckets=BUCKETS)
        self._partitions: set[str] = set()
        # From the start, so that a rate over the first batch is not missed.
        for counter in (*self._counters.values(), self._warnings):
            counter.labels(name)
        ProcessCollector(registry=registry)
        self._server, self._thread = _serve(address, registry)
        self.port = self._server.server_port

    def show_status(self, text: str) -> None:
        """Ignore it: no metric."""

    def report(self, report: BatchReport) -> None:
        """Add a batch."""
        for key, counter in self._counters.items():
            counter.labels(self._name).inc(report.count_for_total(key))
        gauges = {key: getattr(report, key) for key in GAUGE_HELP}
        if report.query == "patterns":
            gauges = {"patterns": report.patterns, "pattern_batch": report.batch}
        for key, value in gauges.items():
            # A version that is text has no number, and as a label each one would be a series for ever.
            if isinstance(value, int):
                self._gauges[key].labels(self._name).set(value)
        self._seconds.labels(self._name).observe(report.seconds)
        self._ended.labels(self._name).set(report.finished_at.timestamp())
        for mismatch in report.mismatches[:MAX_MISMATCH_SERIES]:
            self._mismatched.labels(self._name, mismatch["attribute"], mismatch["asked"]).set(mismatch["mismatched"])
        if not report.beside:  # both queries read the same partitions, and matching reports them
            self._show_lag(report)

    def warn(self, text: str) -> None:  # noqa: ARG002 - counted, not quoted
        """Count the warning."""
        self._warnings.labels(self._name).inc()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _show_lag(self, report: BatchReport) -> None:
        for partition, behind in report.lag.items():
            self._lag.labels(self._name, partition).set(behind)
        for gone in self._partitions - set(report.lag):
            self._lag.remove(self._name, gone)
        self._partitions = set(report.lag)


def _serve(address: str, registry: CollectorRegistry) -> tuple[WSGIServer, Thread]:
    """Start the server; an address that cannot be used is a `CannotServe`."""
    host, _, port = address.rpartition(":")
    try:
        return start_http_server(int(port), addr=host.strip("[]") or "127.0.0.1", registry=registry)
    except (OSError, ValueError, OverflowError) as problem:
        why = getattr(problem, "strerror", None) or problem
        msg = f"metrics cannot be served at `{address}`: {why}; give `metrics` another HOST:PORT"
        raise CannotServe(msg) from problem
