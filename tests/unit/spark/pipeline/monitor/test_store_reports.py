"""What a pipeline says of itself in a store."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.kafka.broker import wait_for

from tidings.service.store.base import StoreError
from tidings.service.store.memory import MemoryStore
from tidings.spark.pipeline.monitor import store_reports
from tidings.spark.pipeline.monitor.batch_report import BatchReport
from tidings.spark.pipeline.monitor.store_reports import StoreReports

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
FILE = f"{int(NOON.timestamp()) * 10**9:020}-0123abcd.jsonl"


def report(query="matching", **about):
    return BatchReport("service", 3, NOON, **{"seconds": 2.0, "events": 5, "query": query, **about})


def test_sums_and_the_last_batch_are_there_and_the_file_that_every_query_has_read(monkeypatch):
    monkeypatch.setattr(store_reports, "LEAST_SECONDS", 0.0)
    board = MemoryStore().statuses
    reports = StoreReports(board, read={"matching": None, "patterns": None}, now=lambda: NOON)
    wait_for(board.list, 30)
    reports.report(report(matches=4, version=9, sequence=17, subscriptions=8, read_up_to=FILE))
    wait_for(lambda: board.list()[0].facts["events"] == 5, 30)
    facts = board.list()[0].facts
    assert facts["events_read"] is None, "the patterns may be behind"
    reports.report(report(matches=2, version=9, sequence=17, subscriptions=8, read_up_to=f"{FILE}x"))
    reports.report(report("patterns", beside=True, detections=1, late=2, dead_letters=2, read_up_to=FILE))
    reports.warn("mind this")
    reports.close()
    (status,) = board.list()
    facts = status.facts
    assert (status.name, status.at, facts["doing"], facts["warning"]) == ("pipeline", NOON, "stopped", "mind this")
    assert (facts["events"], facts["matches"], facts["detections"], facts["late"]) == (10, 6, 1, 2)
    assert (facts["batch"], facts["version"], facts["sequence"], facts["subscriptions"]) == (3, 9, 17, 8)
    assert (facts["lag_seconds"], facts["events_read"]) == (2.0, FILE)


class DeadBoard:
    def write(self, _):
        msg = "gone"
        raise StoreError(msg)


def test_a_store_that_is_gone_harms_nobody():
    reports = StoreReports(DeadBoard(), read={"matching": FILE})
    reports.show_status("matching")
    reports.close()
