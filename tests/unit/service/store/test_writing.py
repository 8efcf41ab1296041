"""Writing a database: groups, quotas and answers while others write, and imports that are all or nothing."""

import os
import signal
import threading
import tracemalloc

import pytest
from tests.unit.service.store.writing import NOW, create, draft, read_ids, remove

from tidings.errors import TidingsError
from tidings.service.store.base import (
    Idempotency,
    Imported,
    QuotaExceeded,
    StoreError,
    SubscriptionQuery,
    UnstorableText,
    Written,
)
from tidings.service.store.opening import open_store


def run_together(*works):
    """Run functions in threads of their own, and return what they return."""
    results = [None] * len(works)

    def run(place):
        results[place] = works[place]()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_a_quota_holds_while_many_create(store_url):
    stores = [open_store(store_url) for _ in range(4)]

    def fill(number):
        writes = [create(f"{number}-{count}", most=10) for count in range(8)]
        return [result for write in writes for result in stores[number].subscriptions.write([write])]

    results = [result for part in run_together(*(lambda n=n: fill(n) for n in range(4))) for result in part]
    assert sum(isinstance(result, Written) for result in results) == 10
    assert {result.limit for result in results if isinstance(result, QuotaExceeded)} == {10}
    assert stores[0].subscriptions.count("ann") == {"active": 10}
    for store in stores:
        store.close()


def test_a_quota_holds_within_a_group(store):
    group = [create("a", most=2), create("a", most=2), create("b", most=2), create("c", most=2), remove("a")]
    results = store.subscriptions.write([*group, create("d", most=2), create("e", most=2)])
    names = [type(result).__name__ for result in results]
    assert names == ["Written", "IdTaken", "Written", "QuotaExceeded", "Written", "Written", "QuotaExceeded"]
    assert store.subscriptions.count("ann") == {"active": 2}


def test_one_of_many_requests_with_one_key_creates(store_url):
    stores = [open_store(store_url) for _ in range(4)]
    write = create("a", idempotency=Idempotency("key", "digest"))
    results = run_together(*(lambda store=store: store.subscriptions.write([write])[0] for store in stores))
    assert sorted(result.repeated for result in results) == [False, True, True, True]
    assert {result.subscription.revision for result in results} == {1}
    for store in stores:
        store.close()


def test_a_write_that_is_refused_leaves_the_others(store):
    results = store.subscriptions.write([create("a"), create("a"), create("nul", text="\0"), remove("no"), create("b")])
    names = [type(result).__name__ for result in results]
    assert names == ["Written", "IdTaken", "UnstorableText", "UnknownId", "Written"]
    assert read_ids(store)[0] == ["ann/a", "ann/b"]


def test_an_empty_group_does_nothing(store):
    assert store.subscriptions.write([]) == []
    assert isinstance(store.subscriptions.write([create("x", text="\ud800")])[0], UnstorableText)
    assert store.log.read_head().sequence == 0


def test_a_subscription_may_be_created_and_removed_in_one_group(store):
    store.subscriptions.write([create("a"), remove("a"), create("a", labels=("x",)), remove("a"), create("b")])
    assert store.subscriptions.count() == {"active": 1}
    assert store.log.read_head().sequence == 5


class Unreadable(TidingsError):
    """The line cannot be read."""


def test_an_import_whose_source_fails_changes_nothing(store):
    def fail():
        yield draft("a")
        raise Unreadable

    with pytest.raises(Unreadable):
        store.subscriptions.write_many("ann", fail(), actor="t", at=NOW)
    with pytest.raises(UnstorableText):
        store.subscriptions.write_many("ann", [draft("a"), draft("b", "\0")], actor="t", at=NOW)
    with pytest.raises(QuotaExceeded):
        store.subscriptions.write_many("ann", [draft("a"), draft("b")], actor="t", at=NOW, most=1)
    assert store.log.read_head().sequence == 0
    assert store.subscriptions.count() == {}
    assert store.subscriptions.write_many("ann", [], actor="t", at=NOW) == Imported(0)


def test_an_import_that_fills_up_the_quota_takes_what_fits_in_its_order(store):
    store.subscriptions.write([create("a"), create("b")])
    rows = [draft("z"), None, draft("b"), draft("y"), draft("x"), draft("z"), draft("a"), draft("w")]
    imported = store.subscriptions.write_many("ann", rows, actor="t", at=NOW, most=4, fill=True)
    assert imported == Imported(4, 2, ((5, "z"), (7, "w")))  # the last line of an id is the one that counts
    assert [row.id for row in store.subscriptions.list(SubscriptionQuery(owner="ann"))] == ["a", "b", "x", "y"]
    imported = store.subscriptions.write_many("ann", [draft("q"), draft("a")], actor="t", at=NOW, most=1, fill=True)
    assert imported == Imported(1, 1, ((0, "q"),))
    assert store.subscriptions.write_many("ann", [draft("q")], actor="t", at=NOW, most=4, fill=True).count == 0
    rows = [draft(f"{number}") for number in range(200)]
    imported = store.subscriptions.write_many("ann", rows, actor="t", at=NOW, most=14, fill=True)
    assert (imported.count, imported.left_out) == (10, 190)
    assert imported.first_left_out == tuple((number, f"{number}") for number in range(10, 60))


def test_nobody_has_more_than_the_quota_however_many_fill_it_up_at_once(store):
    def fill(name):
        rows = [draft(f"{name}-{number}") for number in range(30)]
        return lambda: store.subscriptions.write_many("ann", rows, actor="t", at=NOW, most=50, fill=True)

    def create_many():
        writes = [create(f"one by one {number}", most=50) for number in range(30)]
        return sum(isinstance(store.subscriptions.write([write])[0], Written) for write in writes)

    *imports, created = run_together(fill("a"), fill("b"), fill("c"), create_many)
    assert sum(imported.count for imported in imports) + created == 50
    assert sum(imported.left_out for imported in imports) == 90 - (50 - created)
    assert store.subscriptions.count() == {"active": 50}


def test_others_write_while_an_import_is_read(store):
    def read_and_write():
        for count in range(3):
            store.subscriptions.write([create(f"between {count}")])
            yield draft(f"{count}")

    store.subscriptions.write_many("ann", read_and_write(), actor="t", at=NOW)
    assert store.subscriptions.count() == {"active": 6}


def test_an_import_is_never_in_memory_as_a_whole(store):
    tracemalloc.start()
    rows = (draft(f"{count}", text="x" * 2_000) for count in range(10_000))
    store.subscriptions.write_many("ann", rows, actor="t", at=NOW)
    with store.log.read(None) as changes:
        assert sum(1 for _ in changes.running) == 10_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000 if store.is_local else peak < 30_000_000  # a cursor of PostgreSQL brings 10,000 at once


def test_labels_of_an_import_replace_those_that_were(store):
    def count(label):
        return len(store.subscriptions.list(SubscriptionQuery(owner=None, label=label)))

    store.subscriptions.write([create("a", labels=("old", "same"))])
    store.subscriptions.write_many("ann", [draft("a", labels=("new", "same", "new"))], actor="t", at=NOW)
    assert [count(label) for label in ("old", "same", "new")] == [0, 1, 1]
    store.subscriptions.write([remove("a")])
    assert count("same") == 0


def test_a_forked_child_opens_connections_of_its_own(store):
    store.subscriptions.write([create("a")])
    before = store.log.read_head()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            store.subscriptions.write([create("child")])
            code = 0 if store.subscriptions.get("ann", "a") else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.log.wait(before, 10)
    assert store.subscriptions.get("ann", "child") is not None


def test_a_killed_writer_leaves_all_or_nothing(sqlite_url):
    """What was acknowledged is there after a kill; the group that was under way is there as a whole, or not at all."""
    store = open_store(sqlite_url)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        for group in range(10_000):
            store.subscriptions.write([create(f"{group}-{count}") for count in range(3)])
            os.write(writer, b".")
        os._exit(0)
    os.close(writer)
    acknowledged = sum(len(os.read(reader, 1)) for _ in range(20))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while data := os.read(reader, 1_000):
        acknowledged += len(data)
    os.close(reader)
    count = sum(store.subscriptions.count().values())
    assert count in (3 * acknowledged, 3 * acknowledged + 3)
    assert len(read_ids(store)[0]) == count
    assert store.log.read_head().sequence == count
    store.close()


def test_a_server_that_went_away_and_came_back_is_used_again(postgres):
    from tests.service.postgres import PostgresServer, find_programs

    server = PostgresServer(find_programs(), durable=True)
    store = open_store(server.make_database())
    store.subscriptions.write([create("a")])
    head = store.log.read_head()
    store.log.wait(head, 0.01)
    server.crash()
    for call in (lambda: store.subscriptions.get("ann", "a"), lambda: store.log.wait(head, 5), store.check):
        with pytest.raises(StoreError) as caught:
            call()
        assert "cannot be used" in str(caught.value)
    server.start()
    assert store.subscriptions.get("ann", "a") is not None
    store.subscriptions.write([create("b")])
    assert store.log.wait(head, 5)
    store.close()
    server.stop()
