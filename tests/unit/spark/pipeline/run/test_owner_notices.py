"""Owners hear from the audit log what a pipeline refuses, and no more than they need."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("sqlalchemy", reason="needs tidings[service]")

from tests.unit.spark.detect.followed_cases import FollowedStream, Subscribers

from tidings.errors import TidingsError
from tidings.service.store.base import StoreError
from tidings.service.store.memory import MemoryStore
from tidings.spark.pipeline.run.owner_notices import MOST_CHARACTERS, MOST_RECORDS, OwnerNotices, shorten_reason

WRONG = TidingsError("`price`: 'cheap' is not a number\n  price = 'cheap'")


def list_notices(store, owner=None):
    records = store.audit.list(owner=owner, limit=1000)
    return [(record.owner, record.id, record.actor) for record in records if record.action == "refuse"]


def test_each_owner_hears_of_the_own_ones_and_no_value_of_them_is_kept():
    store = MemoryStore()
    problem = StoreError("the store cannot be read")
    OwnerNotices(store).tell([("b/2", WRONG), ("a/x/y", TidingsError("no")), (None, problem)])
    assert list_notices(store, "a") == [("a", "x/y", "pipeline: no")]
    assert list_notices(store, "b") == [("b", "2", "pipeline: `price`: '...' is not a number")]
    assert len(list_notices(store)) == 2


def test_many_are_counted():
    store = MemoryStore()
    OwnerNotices(store).tell([*((f"a/{number:03}", WRONG) for number in range(500)), ("b/1", WRONG)])
    ids = [id for _, id, _ in list_notices(store, "a")]
    assert (len(ids), ids[0], ids[-1]) == (MOST_RECORDS + 1, "000", f"{500 - MOST_RECORDS} subscriptions")
    assert len(list_notices(store, "b")) == 1


def test_what_was_said_before_is_not_said_again_until_it_is_refused_once_more():
    store = MemoryStore()
    notices = OwnerNotices(store, {"a/1": str(WRONG), "a/2": "another reason"})
    notices.tell([("a/1", WRONG), ("a/2", WRONG)])
    assert [id for _, id, _ in list_notices(store)] == ["2"]
    notices.tell([("a/1", WRONG)])
    assert [id for _, id, _ in list_notices(store)] == ["2", "1"]


def test_a_store_that_does_not_take_it_stops_nobody(monkeypatch):
    store = MemoryStore()

    def refuse(record):
        msg = "locked"
        raise StoreError(msg)

    monkeypatch.setattr(store.audit, "append", refuse)
    OwnerNotices(store).tell([("a/1", WRONG)])


def test_a_reason_is_one_line_and_short():
    assert shorten_reason("x" * 1000 + "\ny") == "x" * MOST_CHARACTERS
    assert shorten_reason("expected \"a\" and 'b'") == "expected '...' and '...'"


def test_the_owner_of_a_pattern_that_is_refused_hears_of_it(tmp_path, monkeypatch):
    stream = FollowedStream(Subscribers(), tmp_path, monkeypatch)
    stream.subscribers.put("broken", "a = kind = 'a'\na ; ; b")
    stream.claim()
    ((owner, id, actor),) = list_notices(stream.subscribers.store)
    assert (owner, id) == ("o", "broken")
    assert actor.startswith("pipeline: expected ")
    assert stream.subscribers.store.subscriptions.get("o", "broken").status == "active"
