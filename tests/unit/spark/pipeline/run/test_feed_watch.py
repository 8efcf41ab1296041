"""A thread that follows a store between batches."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.kafka.broker import wait_for
from tests.unit.service.test_store_feed import LostLog, put

import tidings as td
from tidings.service.store.memory import MemoryStore
from tidings.service.store_feed import FeedTuning, StoreFeed
from tidings.spark.pipeline.run import feed_watch
from tidings.spark.pipeline.run.feed_watch import FeedWatch


def test_a_change_is_in_force_without_a_batch_also_after_the_store_was_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(feed_watch, "PAUSE_SECONDS", 0.01)
    store, changes, warnings = MemoryStore(), [], []
    store.log = log = LostLog(store.log)
    live = td.Live(tmp_path, follow=StoreFeed(store, tuning=FeedTuning(retry_seconds=0)))
    live.sync()
    with FeedWatch(live, log, on_change=changes.append, warn=warnings.append):
        put(store, "a", "price < 5")
        wait_for(lambda: list(live) == ["ann/a"], 30)
        log.is_lost = True
        put(store, "b", "price < 5")
        wait_for(lambda: any(change.refused for change in changes), 30)
        log.is_lost = False
        wait_for(lambda: len(live) == 2, 30)
    put(store, "c", "price < 5")
    assert sorted(live) == ["ann/a", "ann/b"], "it has ended"
    assert sum(len(change.refused) for change in changes) == 1
    assert warnings == []


def test_a_disk_that_is_full_for_a_while_does_not_end_it(tmp_path, monkeypatch):
    monkeypatch.setattr(feed_watch, "PAUSE_SECONDS", 0.01)
    store, warnings = MemoryStore(), []
    live = td.Live(tmp_path, follow=StoreFeed(store))
    live.sync()
    sync, problems = live.sync, [OSError(28, "No space left on device"), OSError(28, "No space left on device")]

    def sync_later():
        if problems:
            raise problems.pop()
        return sync()

    live.sync = sync_later
    with FeedWatch(live, store.log, on_change=lambda _: None, warn=warnings.append):
        put(store, "a", "price < 5")
        wait_for(lambda: list(live) == ["ann/a"], 30)
    assert warnings == ["[Errno 28] No space left on device"]
