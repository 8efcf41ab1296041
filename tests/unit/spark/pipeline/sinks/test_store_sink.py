"""Rows of matches and detections as rows of a store."""

from datetime import UTC, date, datetime

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.errors import SinkError
from tidings.service.store.base import StoreBusy
from tidings.spark.pipeline.sinks import store_sink
from tidings.spark.pipeline.sinks.store_sink import RowReader, StoreTable

AT = datetime(2026, 7, 1, tzinfo=UTC)
NOON = datetime(2026, 6, 30, 12, tzinfo=UTC)


def read(*rows, time="time"):
    return list(RowReader(time, AT).read(rows))


def test_an_event_is_a_row_for_each_of_its_subscriptions_with_its_whole_document():
    text = '{"time": "2026-06-30T12:00:00Z", "price": 5, "data_base64": "AA=="}'
    first, second = read({"event": "e1", "subscriptions": ["ann/s/1", "bob/s"], "document": text})
    assert (first.owner, first.subscription, second.owner, second.subscription) == ("ann", "s/1", "bob", "s")
    assert (first.kind, first.event, first.at, second.at) == ("match", "e1", NOON, NOON)
    assert first.values == {"time": "2026-06-30T12:00:00Z", "price": 5, "data_base64": "AA=="}


def test_a_pair_has_what_was_kept_and_without_a_time_that_of_the_batch():
    (row,) = read({"event": 7, "subscription": "ann/s", "price": 5, "day": date(2026, 7, 1), "gone": None})
    assert (row.event, row.at, row.values) == ("7", AT, {"price": 5, "day": "2026-07-01"})


def test_a_detection_names_its_events_and_says_what_was_kept_of_them():
    records = [{"event": "e1", "document": '{"a": 1}'}, {"event": "e2", "document": '{"a": 2}'}]
    columns = {"kind": "match", "pattern": "ann/p", "key": '"k"', "at": NOON, "events": records}
    (row,) = read(columns)
    assert (row.kind, row.subscription, row.events, row.at) == ("detection", "p", ("e1", "e2"), NOON)
    assert row.values == {"key": '"k"', "events": [{"a": 1}, {"a": 2}]}
    forecast = {**columns, "kind": "forecast", "events": ["e1"], "probability": 0.5, "horizon": "5", "key": None}
    (row,) = read(forecast)
    assert (row.kind, row.events, row.probability, row.values) == ("forecast", ("e1",), 0.5, {"horizon": "5"})


class BusyStore:
    """A store that does not answer the first few times."""

    def __init__(self, failures):
        self.failures, self.written = failures, []

    @property
    def matches(self):
        return self

    def write(self, query, batch, rows, *, keep, **_):
        rows = list(rows)
        if self.failures:
            self.failures -= 1
            msg = "the store is busy"
            raise StoreBusy(msg)
        self.written.append((query, batch, [row.event for row in rows], keep))


def test_a_store_that_does_not_answer_is_asked_again_with_all_rows(monkeypatch):
    monkeypatch.setattr(store_sink, "PAUSE", 0.0)
    store = BusyStore(failures=3)
    StoreTable(store, "q", 10).write_rows([{"event": "e1", "subscription": "ann/s"}], 4)
    assert store.written == [("q", 4, ["e1"], 10)]
    monkeypatch.setattr(store_sink, "PATIENCE", 0.0)
    with pytest.raises(SinkError, match="does not take batch 5 of matches: the store is busy"):
        StoreTable(BusyStore(failures=99), "q", 10).write_rows([{"event": "e1", "subscription": "ann/s"}], 5)
