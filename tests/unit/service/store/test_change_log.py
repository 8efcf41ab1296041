"""The change log of a database: nothing is missed, whatever the order of commits, restores and restarts."""

import shutil
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.service.store.writing import NOW, SECOND, create, draft, read_ids, remove

from tidings.service.store.base import OwnerRules, Write
from tidings.service.store.opening import open_store


def follow(store, position, seen):
    """Read what is new and add it to what was seen."""
    running, _, position = read_ids(store, position)
    seen.update(running)
    return position


def test_a_reader_misses_nothing_when_two_commit_in_another_order_than_they_began(store_url):
    """An import begins first and commits last; while it waits, others write, and a reader reads."""
    store, seen, began, go_on = open_store(store_url), set(), threading.Event(), threading.Event()

    def wait_between():
        yield draft("first")
        began.set()
        assert go_on.wait(30)
        yield draft("last")

    slow = threading.Thread(
        target=lambda: store.subscriptions.write_many("slow", wait_between(), actor="t", at=NOW), daemon=True
    )
    slow.start()
    assert began.wait(30)
    store.subscriptions.write([create("quick", owner="quick")])
    position = follow(store, None, seen)
    assert seen == {"quick/quick"}
    go_on.set()
    slow.join(30)
    store.subscriptions.write([create("quick again", owner="quick")])
    follow(store, position, seen)
    assert seen == {"quick/quick", "quick/quick again", "slow/first", "slow/last"}
    store.close()


def test_a_transaction_that_is_open_when_others_commit_is_read_after_them(clean_url):
    """In PostgreSQL: a writer that holds its rows, but has no number yet, commits after another that began later."""
    store, seen = open_store(clean_url), set()
    database = store._database  # noqa: SLF001 - the moment between its rows and their number is not to be had otherwise
    from tidings.service.store.rows import begin_subscription
    from tidings.service.store.sql.codec import encode_subscription
    from tidings.service.store.sql.writing import INSERT, LogRecords

    write = create("early", owner="early")
    with database.write(["early"]) as transaction:
        transaction.insert_rows(INSERT, [encode_subscription(begin_subscription(write.draft, write))])
        store.subscriptions.write([create("late", owner="late")])
        position = follow(store, None, seen)
        LogRecords(0, [("early", "early", None)]).append_to(transaction)
        assert follow(store, position, seen) == position
    follow(store, position, seen)
    assert seen == {"late/late", "early/early"}
    store.close()


def test_a_reader_misses_nothing_while_many_write(store_url):
    store, other, seen, errors = open_store(store_url), open_store(store_url), set(), []

    def write(number):
        try:
            for count in range(20):
                (store, other)[number % 2].subscriptions.write([create(f"{number}-{count}", owner=f"o{number % 3}")])
        except Exception as error:  # noqa: BLE001 - the test's own thread reports it
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    position = None
    while any(thread.is_alive() for thread in threads):
        position = follow(store, position, seen)
    follow(store, position, seen)
    assert not errors
    assert seen == {f"o{number % 3}/{number}-{count}" for number in range(4) for count in range(20)}
    assert store.log.read_head().sequence == 80
    store.close()
    other.close()


def test_a_position_of_a_store_that_was_restored_and_went_on_means_a_reload(sqlite_url, tmp_path):
    store, path = open_store(sqlite_url), Path(sqlite_url.removeprefix("sqlite:///"))
    store.subscriptions.write([create("kept")])
    with sqlite3.connect(path) as source, sqlite3.connect(tmp_path / "backup.db") as target:
        source.backup(target)
    source.close(), target.close()
    at_backup = store.log.read_head()
    store.subscriptions.write([create("lost 1"), create("lost 2")])
    behind, ahead = store.log.read_head(), store.log.read_head()
    store.close()
    for name in ("store.db-wal", "store.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", path)

    store = open_store(sqlite_url)
    with store.log.read(ahead) as changes:  # its number is not in the log
        assert changes.reload
    store.subscriptions.write([create(f"new {count}") for count in range(5)])
    with store.log.read(behind) as changes:  # its number is, with another mark
        assert changes.reload
        assert "ann/lost 1" not in {row.engine_id for row in changes.running}
    with store.log.read(at_backup) as changes:  # what it has is in the backup too
        assert not changes.reload
        assert len(list(changes.running)) == 5
    store.close()


def test_a_restored_database_is_noticed(postgres, postgres_url):
    store = open_store(postgres_url)
    store.subscriptions.write([create("kept")])
    store.close()
    backup = postgres.make_database(postgres_url)
    store, restored = open_store(postgres_url), open_store(backup)
    store.subscriptions.write([create("lost")])
    restored.subscriptions.write([create("other")])
    with restored.log.read(store.log.read_head()) as changes:
        assert changes.reload
    store.close()
    restored.close()
    postgres.drop_database(backup)


def test_a_reader_that_fell_behind_the_compacted_log_is_told_to_reload(store):
    store.subscriptions.write([create("a")])
    old = store.log.read_head()
    store.subscriptions.write([create("b", at=NOW + SECOND), create("c", at=NOW + SECOND)])
    newest = store.log.read_head()
    assert store.log.compact(NOW + SECOND) == 2  # of the empty store, and of a
    with store.log.read(old) as changes:
        assert changes.reload
        assert len(list(changes.running)) == 3
    assert store.log.compact(NOW + 9 * SECOND) == 1
    assert read_ids(store, newest) == ([], [], newest)


def test_an_import_is_one_change_that_names_each_id_once(store):
    begin = store.log.read_head()
    store.subscriptions.write_many("ann", [draft(id) for id in "abcd"], actor="t", at=NOW)
    store.subscriptions.write([remove("a"), replace(create("b"), action="replace")])
    store.subscriptions.write_many("ann", [draft("c", status="paused")], actor="t", at=NOW)
    running, removed, _ = read_ids(store, begin)
    assert (running, removed) == (["ann/b", "ann/d"], ["ann/a", "ann/c"])


def test_new_rules_of_an_owner_change_all_that_is_theirs(store):
    store.subscriptions.write([create("a"), create("b", owner="bob"), create("c", status="paused")])
    begin = store.log.read_head()
    store.owners.set([OwnerRules(owner="ann", only="x = 1", subscriptions=5)], actor="t", at=NOW)
    with store.log.read(begin) as changes:
        assert [(row.engine_id, row.only) for row in changes.running] == [("ann/a", "x = 1")]
        assert changes.removed == ["ann/c"]
    same = store.log.read_head()
    store.owners.set([OwnerRules(owner="ann", only="x = 1", subscriptions=6)], actor="t", at=NOW)
    assert store.log.read_head() == same


def test_an_owner_that_is_not_named_keeps_its_rules_and_one_with_empty_rules_loses_them(store):
    store.subscriptions.write([create("a"), create("b", owner="bob")])
    bounded = [OwnerRules(owner="ann", only="x = 1", subscriptions=5), OwnerRules(owner="bob", only="x = 2")]
    assert store.owners.set(bounded, actor="t", at=NOW) == []
    begin = store.log.read_head()
    assert store.owners.set([], actor="t", at=NOW) == ["ann", "bob"]
    assert store.owners.set([OwnerRules(owner="eve", subscriptions=1)], actor="t", at=NOW) == ["ann", "bob"]
    assert [store.owners.get(name) for name in ("ann", "bob")] == bounded
    with store.log.read(begin) as changes:
        assert list(changes.running) == []
    assert store.owners.set([OwnerRules(owner="ann", subscriptions=5)], actor="t", at=NOW) == ["bob", "eve"]
    assert store.owners.get("ann") == OwnerRules(owner="ann", subscriptions=5)
    with store.log.read(begin) as changes:
        assert [(row.engine_id, row.only) for row in changes.running] == [("ann/a", None)]
    assert store.owners.set([OwnerRules(owner="bob")], actor="t", at=NOW) == ["ann", "eve"]
    assert store.owners.set([], actor="t", at=NOW) == ["ann", "eve"], "empty rules are none"


def test_an_id_of_another_kind_is_among_the_removed(store):
    store.subscriptions.write([create("a")])
    _, _, position = read_ids(store, kinds=["filter"])
    store.subscriptions.write([replace(create("a", kind="pattern"), action="put")])
    assert read_ids(store, position, kinds=["filter"])[:2] == ([], ["ann/a"])
    assert read_ids(store, position, kinds=["pattern"])[:2] == (["ann/a"], [])
    assert read_ids(store, position, kinds=[])[:2] == ([], ["ann/a"])


def test_a_reading_does_not_see_what_is_written_meanwhile(store):
    store.subscriptions.write([create(f"{count}") for count in range(50)])
    with store.log.read(None) as changes:
        rows = iter(changes.running)
        next(rows)
        store.subscriptions.write([create("later"), remove("1")])
        assert len(list(rows)) == 49
    assert changes.position.sequence == 50


def test_a_writer_wakes_who_waits(store_url):
    store, other = open_store(store_url), open_store(store_url)
    before, results = store.log.read_head(), []
    thread = threading.Thread(target=lambda: results.append((store.log.wait(before, 30), time.monotonic())))
    thread.start()
    other.subscriptions.write([create("a")])
    written = time.monotonic()
    thread.join(30)
    (changed, woken) = results[0]
    assert changed
    assert woken - written < 5
    assert not store.log.wait(store.log.read_head(), 0.01)
    store.close()
    other.close()


def test_closing_a_store_wakes_who_waits(store_url):
    store, results = open_store(store_url), []
    before = store.log.read_head()
    waiting = [threading.Thread(target=lambda: results.append(store.log.wait(before, 60))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    store.close()
    for thread in waiting:
        thread.join(20)
    assert results == [False] * 3


@pytest.mark.parametrize("mark", ["", "\0", "' OR 1=1 --", "f" * 10_000])
def test_a_forged_position_means_a_reload(store, mark):
    store.subscriptions.write([create("a")])
    position = replace(store.log.read_head(), mark=mark)
    with store.log.read(position) as changes:
        assert changes.reload


def test_a_status_change_and_expiry_are_changes(store):
    store.subscriptions.write([create("a", expires_at=NOW + SECOND), create("b")])
    begin = store.log.read_head()
    pause = Write(action="status", owner="ann", id="b", actor="t", at=NOW, status="paused")
    store.subscriptions.write([pause])
    assert store.subscriptions.expire(NOW) == 0
    assert store.subscriptions.expire(NOW + SECOND) == 1
    assert read_ids(store, begin)[:2] == ([], ["ann/a", "ann/b"])
    assert store.subscriptions.get("ann", "a").revision == 2
