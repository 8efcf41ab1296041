"""Opening stores: what is in the way is told in one line, without a password, and with the way out."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.service.store.writing import create

from tidings.service.store.base import StoreBusy, StoreError
from tidings.service.store.memory import MemoryStore
from tidings.service.store.migrations import HEAD, VERSION_TABLE
from tidings.service.store.migrations.upgrading import StoreTooNew, list_revisions
from tidings.service.store.opening import open_store

SECRET = "s3cret-of-the-store"


def refuse(url, error=StoreError):
    """Return the words with which a store is refused."""
    with pytest.raises(error) as caught:
        open_store(url)
    words = str(caught.value)
    assert SECRET not in words
    assert "\n" not in words
    return words


def test_memory_is_a_store_too():
    assert isinstance(open_store("memory://"), MemoryStore)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"mysql://root:{SECRET}@host/x", "`mysql` is no kind of store"),
        (f"nonsense {SECRET}", "not well formed"),
        (f"postgresql+psycopg://u:{SECRET}@host:port/x", "not well formed"),
        ("sqlite://", "no kind of store"),
        ("sqlite:///:memory:", "no kind of store"),
        ("sqlite:////tmp/x.db?timeout=soon", "number of seconds"),
    ],
)
def test_a_url_that_is_none_is_refused(url, words):
    assert words in refuse(url)


def test_a_missing_folder_is_named(tmp_path):
    assert f"no folder `{tmp_path}/no`; make it first" in refuse(f"sqlite:///{tmp_path}/no/store.db")


def test_a_folder_is_no_store(tmp_path):
    assert "cannot be opened for writing: Is a directory" in refuse(f"sqlite:///{tmp_path}")


def test_a_file_that_may_not_be_written_is_refused(tmp_path, monkeypatch):
    def deny(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", deny)
    assert "cannot be opened for writing: Permission denied" in refuse(f"sqlite:///{tmp_path}/store.db")


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("these are notes, and no database, however long the file may be" * 100)
    assert "a file of something else" in refuse(f"sqlite:///{tmp_path}/notes.txt")


def test_a_database_of_something_else_is_refused_and_left_as_it_is(tmp_path):
    with sqlite3.connect(tmp_path / "photos.db") as database:
        database.execute("CREATE TABLE photos (id INTEGER)")
    database.close()
    before = (tmp_path / "photos.db").read_bytes()
    assert "a database of something else" in refuse(f"sqlite:///{tmp_path}/photos.db")
    assert (tmp_path / "photos.db").read_bytes() == before


def test_a_damaged_store_is_told(sqlite_url):
    store = open_store(sqlite_url)
    store.subscriptions.write([create(f"{count}", text="x" * 2_000) for count in range(200)])
    store.close()
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 4)
        file.write(b"\xff" * (size // 2))
    store = open_store(sqlite_url)
    with pytest.raises(StoreError, match="malformed; restore it from a backup"), store.log.read(None) as changes:
        list(changes.running)
    store.close()


def test_a_new_store_is_for_its_owners_eyes_only(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    store.subscriptions.write([create("a")])
    assert store.log.wait(store.log.read_head(), 0.001) is False
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert files == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600, "store.db.signals": 0o700}
    store.close()


@pytest.mark.parametrize("revision", ["0999", "of the future"])
def test_a_store_of_a_newer_program_is_refused_by_name(store_url, revision):
    store = open_store(store_url)
    with store._database.write() as transaction:  # noqa: SLF001 - as a newer program would have left it
        transaction.connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'")
    store.close()
    words = refuse(store_url, StoreTooNew)
    assert f"`{revision}`" in words
    assert HEAD in words


def test_the_newest_revision_is_the_one_that_opening_expects():
    assert next(iter(list_revisions())) == HEAD


def test_many_may_open_a_new_store_at_once(tmp_path, postgres):
    for url in (f"sqlite:///{tmp_path}/new.db", postgres.make_database()):
        stores, errors = [], []

        def open_one(url=url, stores=stores, errors=errors):
            try:
                stores.append(open_store(url))
            except StoreError as error:
                errors.append(error)

        threads = [threading.Thread(target=open_one) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert len({store.log.read_head() for store in stores}) == 1
        for store in stores:
            store.close()


def test_a_store_that_a_process_opens_twice_is_not_taken_away_from_it(sqlite_url):
    """A file that is closed ends all locks of its process; another one then took the log away, and the store broke."""
    store = open_store(sqlite_url)
    store.subscriptions.write([create("a")])
    second = open_store(sqlite_url)  # as the pipeline does
    program = f"from tidings.service.store.opening import open_store; store = open_store({sqlite_url!r})"
    subprocess.run([sys.executable, "-c", f"{program}; store.check(); store.close()"], check=True)
    assert Path(f"{sqlite_url.removeprefix('sqlite:///')}-wal").exists()
    store.subscriptions.write([create("b")])
    reading = f"{program}; assert store.subscriptions.get('ann', 'b')"
    subprocess.run([sys.executable, "-c", reading], check=True)
    for each in (store, second):
        each.close()


def test_a_locked_store_is_busy(sqlite_url):
    store = open_store(f"{sqlite_url}?timeout=0.05")
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match="locked by another process; try again"):
        store.subscriptions.write([create("a")])
    assert store.subscriptions.get("ann", "a") is None  # reading goes on
    store.check()
    other.execute("ROLLBACK")
    other.close()
    store.subscriptions.write([create("a")])
    store.close()


def test_a_disk_that_is_full_is_told_and_changes_nothing(sqlite_url):
    store = open_store(sqlite_url)
    with store._database.write() as transaction:  # noqa: SLF001 - the pool has this one connection
        transaction.connection.execute("PRAGMA max_page_count=1")
    with pytest.raises(StoreError, match="make room on the disk"):
        store.subscriptions.write([create(f"{count}", text="x" * 5_000) for count in range(100)])
    assert store.subscriptions.count() == {}
    store.close()


def test_a_row_that_a_database_refuses_is_not_quoted(store):
    columns = "owner, id, text, notation, status, created_at, changed_at, revision, token, delivery"
    row = f"'ann', 'a', 'a = 1', 'text', 'active', 0, 0, 1, 0, '{SECRET}'"
    with (
        pytest.raises(StoreError, match="kind") as caught,
        store._database.write() as transaction,  # noqa: SLF001 - no way of ours leads there
    ):
        transaction.connection.execute(f"INSERT INTO subscriptions ({columns}) VALUES ({row})")
    assert SECRET not in str(caught.value)


def test_a_wrong_password_is_refused_without_it(postgres, postgres_url):
    postgres.execute("DROP ROLE IF EXISTS guarded")
    postgres.execute("CREATE ROLE guarded LOGIN PASSWORD 'the right one'")
    words = refuse(postgres.make_url("postgres", "guarded", SECRET))
    assert "password authentication failed" in words
    assert "guarded:***@" in words


def test_a_server_that_is_not_there_is_named(tmp_path):
    assert "cannot be used: connection" in refuse(f"postgresql+psycopg://u:{SECRET}@/x?host={tmp_path}")
    assert "Connection refused" in refuse(f"postgresql+psycopg://u:{SECRET}@127.0.0.1:1/x")


def test_a_database_that_is_not_utf8_is_refused(postgres):
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    assert "keeps text as LATIN1" in refuse(postgres.make_url("latin"))


def test_a_closed_store_says_so(store):
    store.close()
    with pytest.raises(StoreError, match="closed; open it again"):
        store.subscriptions.get("ann", "a")
    with pytest.raises(StoreError, match="closed"):
        store.check()


def test_a_store_opens_without_alembic_when_it_is_up_to_date(sqlite_url):
    program = f"""
import sys
from tidings.service.store.opening import open_store
open_store({sqlite_url!r}).close()
assert "alembic" not in sys.modules
open_store("memory://")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_the_service_imports_needs_no_database():
    program = "import sys, tidings.service.store.opening; assert 'sqlalchemy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_store_can_be_checked(store):
    store.check()
    assert store.log.read_head().sequence == 0
    assert store.audit.list() == []
