"""What the API counts of itself, for Prometheus: requests by operation and status, how long they took, and events.

No label is made by those who ask: operations and statuses are ours, and what an owner writes is never one. Each process
counts for itself; of several behind one port a scrape hears one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tidings.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tidings.service.store.base import StatusReport
    from tidings.service.subscription import SubscriptionStatus

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The form of the metrics, as Prometheus reads it."""

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
"""Seconds up to which requests are counted."""

PIPELINE_FACTS = {
    "lag_seconds": ("lag_seconds", "How old the newest file of events was when the last batch was done."),
    "behind": ("behind_records", "Records of the topic beyond the last batch."),
    "late": ("late_events", "Events that came too late for patterns, since the pipeline started."),
}
"""What the pipeline reports of itself, by the names that it has there."""


class ApiMetrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        words = "Requests by operation and status."
        self._requests = Counter("tidings_api_requests", words, ["operation", "status"], registry=self._registry)
        self._seconds = Histogram(
            "tidings_api_request_seconds",
            "How long requests took.",
            ["operation"],
            registry=self._registry,
            buckets=BUCKETS,
        )
        words = "Subscriptions by status."
        self._subscriptions = Gauge("tidings_subscriptions", words, ["status"], registry=self._registry)
        words = "Seconds since a process of the service last reported."
        self._reports = Gauge("tidings_report_age_seconds", words, ["process"], registry=self._registry)
        words = "Events that were accepted."
        self._events = Counter("tidings_events_accepted", words, registry=self._registry)
        words = "Bytes of events in the folder that wait for the pipeline."
        self._waiting = Gauge("tidings_events_waiting_bytes", words, registry=self._registry)
        self._pipeline = {
            fact: Gauge(f"tidings_pipeline_{name}", words, registry=self._registry)
            for fact, (name, words) in PIPELINE_FACTS.items()
        }
        version = Gauge("tidings_api_info", "The version.", ["version"], registry=self._registry)
        version.labels(__version__).set(1)
        self._request_children: dict[tuple[str, int], Counter] = {}
        self._second_children: dict[str, Histogram] = {}

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        child = self._request_children.get((operation, status))
        if child is None:
            child = self._request_children[operation, status] = self._requests.labels(operation, str(status))
            self._second_children[operation] = self._seconds.labels(operation)
        child.inc()
        self._second_children[operation].observe(seconds)

    def count_events(self, count: int) -> None:
        """Count events that were accepted."""
        self._events.inc(count)

    def render(
        self,
        counts: Mapping[SubscriptionStatus, int],
        reports: Sequence[StatusReport],
        *,
        waiting: int,
        now: datetime,
    ) -> bytes:
        """Return all metrics as text, with what the store says now, and how many bytes of events wait."""
        self._waiting.set(waiting)
        for status, count in counts.items():
            self._subscriptions.labels(status).set(count)
        self._reports.clear()
        for report in reports:
            self._reports.labels(report.name).set(max(0.0, (now - report.at).total_seconds()))
            for fact, gauge in self._pipeline.items():
                if isinstance(value := report.facts.get(fact), int | float):
                    gauge.set(value)
        return generate_latest(self._registry)
