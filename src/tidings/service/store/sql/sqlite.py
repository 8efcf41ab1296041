"""SQLite: one file, one writer at a time, readers who are never in its way (WAL), and commits that reach the disk.

Writers of one process queue at a lock of ours, which is fair and wakes at once; those of several at SQLite's.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import LargeBinary, cast, func, text
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from tidings.service.store.base import StoreBusy, StoreError
from tidings.service.store.migrations import VERSION_TABLE
from tidings.service.store.sql.backend import DatabaseBackend
from tidings.service.store.sql.signals import SocketSignals, Waiter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlalchemy.sql import Executable

    from tidings.service.store.sql.database import Database, Transaction
    from tidings.service.store.sql.pairs import PairStatement, ValuePairs
    from tidings.service.store.sql.statements import PreparedText

WAIT_S = 30.0
"""How long a call waits for other writers, unless the URL says `?timeout=SECONDS`."""

PRAGMAS = (
    "PRAGMA synchronous=FULL",  # a commit is on the disk before it is acknowledged
    "PRAGMA cache_size=-16384",
    "PRAGMA journal_size_limit=67108864",  # the log of an import does not keep the size that it had
    "PRAGMA wal_autocheckpoint=4000",  # pages that change with every commit are copied into the file once for many
)
"""Settings of each connection."""

WAY_OUT = "this user must be able to write the file and its folder, or name another one with --store"
"""What is to be done about a file that cannot be written."""

OLDEST_SQLITE = (3, 35)
"""The first that returns rows of an UPDATE."""

_CREATION = threading.Lock()
"""Lets no thread connect to a file that another one has made and not closed yet."""


class SqliteBackend(DatabaseBackend):
    """A file of SQLite."""

    driver_error = sqlite3.Error
    begin_reading, begin_writing = "BEGIN", "BEGIN IMMEDIATE"
    is_local = True
    connections = 1_000  # a connection is a few pages of memory; threads are the bound

    def __init__(self, path: Path, *, wait_s: float = WAIT_S) -> None:
        self.path, self.wait_s = path, wait_s
        self.dialect = SQLiteDialect_pysqlite()
        self.signals = SocketSignals(path.with_name(path.name + ".signals"))
        self._turn = threading.Lock()

    def connect(self) -> sqlite3.Connection:
        """Open the file."""
        connection = sqlite3.connect(
            self.path, timeout=self.wait_s, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            for pragma in PRAGMAS:
                connection.execute(pragma)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def is_usable(self, connection: sqlite3.Connection) -> bool:
        """Tell that a connection does not wear out."""
        return not connection.in_transaction

    def translate(self, error: Exception) -> StoreError:
        """Return the store's error."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreBusy(f"the store `{self.path}` is locked by another process; try again")
        return StoreError(f"the store `{self.path}` cannot be used: {error}{_hint_at(code)}")

    @contextmanager
    def queue_writer(self) -> Iterator[None]:
        """Wait for one's turn."""
        if not self._turn.acquire(timeout=self.wait_s):
            msg = f"the store `{self.path}` is being written for more than {self.wait_s:g} s; try again"
            raise StoreBusy(msg)
        try:
            yield
        finally:
            self._turn.release()

    def lock_owners(self, transaction: Transaction, owners: Iterable[str]) -> None:
        """Do nothing: there is one writer."""

    def lock_matches(self, transaction: Transaction) -> None:
        """Do nothing: there is one writer."""

    def fetch_pairs(
        self, transaction: Transaction, statement: PairStatement, pairs: ValuePairs
    ) -> list[tuple[Any, ...]]:
        """Return the rows of many pairs."""
        prepared, execute = transaction.statements.get(statement.for_one), transaction.connection.execute
        return [row for pair in _order_pairs(prepared, pairs) for row in execute(prepared.sql, pair)]

    def run_pairs(self, transaction: Transaction, statement: PairStatement, pairs: ValuePairs) -> None:
        """Change the rows of many pairs."""
        prepared = transaction.statements.get(statement.for_one)
        transaction.connection.executemany(prepared.sql, _order_pairs(prepared, pairs))

    def stream(self, transaction: Transaction, statement: Executable, **values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows as they are read."""
        prepared = transaction.statements.get(statement)
        rows: Iterator[tuple[Any, ...]] = transaction.connection.execute(prepared.sql, prepared.bind(values))
        return rows

    def insert_rows(
        self, connection: sqlite3.Connection, statement: PreparedText, rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert many rows."""
        connection.executemany(statement.sql, rows)

    def stage(self, connection: sqlite3.Connection, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Put rows into the temporary table `staged`, which no other connection sees and no lock guards."""
        places = ",".join("?" * len(columns))
        connection.execute("PRAGMA temp.cache_size=-65536")
        connection.execute(f"CREATE TEMP TABLE staged ({', '.join(columns)})")
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO staged VALUES ({places})", rows)  # noqa: S608 - question marks
        connection.execute("CREATE INDEX temp.staged_by_id ON staged (id)")
        connection.execute(
            "DELETE FROM staged AS a WHERE EXISTS (SELECT 1 FROM staged b WHERE b.id = a.id AND b.place > a.place)"
        )
        connection.execute("COMMIT")

    find_version_table = f"SELECT max(name) FROM sqlite_master WHERE name = '{VERSION_TABLE}'"  # noqa: S608 - our own constant

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Let readers and the writer not be in each other's way; what is no store is refused."""
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            oldest = ".".join(map(str, OLDEST_SQLITE))
            msg = f"this Python has SQLite {sqlite3.sqlite_version}, and a store needs {oldest}: install a newer one"
            raise StoreError(msg)
        until = time.monotonic() + self.wait_s
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self._check_is_store(connection)
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:  # another process opens it too: SQLite does not wait here
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def lock_structure(self, connection: sqlite3.Connection) -> None:
        """Do nothing: there is one writer."""

    def _check_is_store(self, connection: sqlite3.Connection) -> None:
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and connection.execute(self.find_version_table).fetchone()[0] is None:
            msg = f"`{self.path}` is a database of something else; name a file that is not there yet"
            raise StoreError(msg)

    def holds_text(self, column: Any, wanted: Any) -> Any:
        """Return the condition that a column holds a text in lower case, as far as ASCII goes."""
        return func.instr(func.lower(column), wanted) > 0

    def count_bytes(self, value: Any) -> Any:
        """Return how many bytes a text has in UTF-8."""
        return func.length(cast(value, LargeBinary))

    def notify_in(self, transaction: Transaction) -> None:
        """Do nothing: who waits is told after the commit."""

    def notify(self) -> None:
        """Wake who waits for changes."""
        self.signals.notify()

    def stop_waiting(self) -> None:
        """Wake who waits, here and, without harm, elsewhere."""
        self.signals.notify()

    def listen(self) -> AbstractContextManager[Waiter]:
        """Yield what waits for a signal."""
        return self.signals.listen()

    def close(self) -> None:
        """Do nothing: all connections are the pool's."""

    def forget_parent(self) -> Sequence[Any]:
        """Forget whose turn it was."""
        self._turn = threading.Lock()
        return ()

    def check(self, database: Database) -> None:
        """Tell whether the file can be written, as far as can be said without writing."""
        _ = database
        if not os.access(self.path, os.R_OK | os.W_OK) or not os.access(self.path.parent, os.W_OK):
            msg = f"the store `{self.path}` cannot be written{_hint_at(sqlite3.SQLITE_READONLY)}"
            raise StoreError(msg)

    delete_old_labels = text("""
        DELETE FROM subscription_labels WHERE (label, owner, id) IN (
            SELECT labels.value, s.owner, s.id FROM staged
            JOIN subscriptions s ON s.owner = :owner AND s.id = staged.id, json_each(s.labels) AS labels)""")
    insert_new_labels = text("""
        INSERT OR IGNORE INTO subscription_labels (label, owner, id)
        SELECT labels.value, :owner, staged.id FROM staged, json_each(staged.labels) AS labels
        WHERE staged.labels IS NOT NULL""")


def create_file(path: Path) -> None:
    """Make sure that the file is there, for its owner's eyes only where it is new: it holds secrets of deliveries.

    One that is there is never opened here: closing it would end the locks of all connections that this process has to
    it (POSIX locks go with the first descriptor), and another process would take its log away from under them.
    """
    try:
        with _CREATION:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if reason := _find_obstacle(path):
            msg = f"the store `{path}` cannot be opened for writing: {reason}; {WAY_OUT}"
            raise StoreError(msg) from None
    except FileNotFoundError:
        msg = f"the store `{path}` cannot be created: there is no folder `{path.parent}`; make it first"
        raise StoreError(msg) from None
    except OSError as error:
        msg = f"the store `{path}` cannot be opened for writing: {error.strerror}; {WAY_OUT}"
        raise StoreError(msg) from None


def _find_obstacle(path: Path) -> str | None:
    """Return why what lies at a path cannot be written, if it cannot."""
    if path.is_dir():
        return os.strerror(errno.EISDIR)
    return None if os.access(path, os.R_OK | os.W_OK) else os.strerror(errno.EACCES)


def _order_pairs(prepared: PreparedText, pairs: ValuePairs) -> Iterable[tuple[Any, Any]]:
    """Return pairs in the order in which the SQL has them."""
    return pairs if prepared.names == ("first", "second") else [(second, first) for first, second in pairs]


def _hint_at(code: int | None) -> str:
    """Return the way out, for errors that have one."""
    match code and code & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return "; it is a file of something else, name another one"
        case sqlite3.SQLITE_CORRUPT:
            return "; restore it from a backup"
        case sqlite3.SQLITE_FULL:
            return "; make room on the disk"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return "; this user must be able to write the file and its folder"
        case _:
            return ""
