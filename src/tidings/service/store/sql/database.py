"""Connections and transactions: a pool of the driver's own connections, and errors that are the store's own.

`read` is a transaction that sees one state of the database; `write` one that may change it, and takes locks for
the owners whose subscriptions it changes; `fetch_one` and `fetch_all` are single reads, at the cost of no transaction.

Connections are kept for the next call, whichever thread makes it. One that turns out to be dead before anything was
done on it is replaced without a word; a fork's child forgets those of its parent and opens its own.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidings import forks
from tidings.service.store.base import StoreBusy, StoreError
from tidings.service.store.sql.statements import StatementCache

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy.sql import Executable

    from tidings.service.store.sql.backend import DatabaseBackend
    from tidings.service.store.sql.signals import Waiter

_inherited: list[Any] = []
"""Connections of a parent process: never closed here, as that would end them there."""


class Transaction:
    """A connection in a transaction; ends with its block."""

    def __init__(self, connection: Any, database: Database) -> None:
        self.connection = connection
        self.statements = database.statements
        self._backend = database.backend

    def fetch_all(self, statement: Executable, **values: Any) -> list[tuple[Any, ...]]:
        """Return all rows."""
        text = self.statements.get(statement)
        rows: list[tuple[Any, ...]] = self.connection.execute(text.sql, text.bind(values)).fetchall()
        return rows

    def fetch_one(self, statement: Executable, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row."""
        text = self.statements.get(statement)
        row: tuple[Any, ...] | None = self.connection.execute(text.sql, text.bind(values)).fetchone()
        return row

    def run(self, statement: Executable, **values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        text = self.statements.get(statement)
        return int(self.connection.execute(text.sql, text.bind(values)).rowcount)

    def run_many(self, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement for each of many rows of names and values."""
        if rows:
            text = self.statements.get(statement)
            self.connection.cursor().executemany(text.sql, [text.bind(row) for row in rows])

    def merge_rows(self, statement: Executable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run an INSERT that says what a conflict is, for tuples whose values are in the order of its columns."""
        if rows:
            self.connection.cursor().executemany(self.statements.get(statement).sql, rows)

    def insert_rows(self, statement: Executable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert tuples whose values are in the order of the columns of a plain INSERT, in whatever way is fastest."""
        if rows:
            self._backend.insert_rows(self.connection, self.statements.get(statement), rows)


class Database:
    """A pool of connections to one database."""

    def __init__(self, backend: DatabaseBackend) -> None:
        self.backend = backend
        self.statements = StatementCache(backend.dialect)
        self.is_closed = False
        self._open_pool()
        forks.listen(self)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Yield a transaction in which nothing changes."""
        with self._run_transaction(self.backend.begin_reading) as transaction:
            yield transaction

    @contextmanager
    def write(self, owners: Iterable[str] = ()) -> Iterator[Transaction]:
        """Yield a transaction that is committed with its block, or undone with an error."""
        with self.backend.queue_writer(), self._run_transaction(self.backend.begin_writing) as transaction:
            self.backend.lock_owners(transaction, owners)
            yield transaction

    @contextmanager
    def connect(self) -> Iterator[Any]:
        """Yield a connection that is not of the pool, for what leaves something behind on it."""
        connection = None
        try:
            connection = self.backend.connect()
            yield connection
        except self.backend.driver_error as error:
            raise self.backend.translate(error) from error
        finally:
            self._discard(connection)

    @contextmanager
    def write_on(self, connection: Any, owners: Iterable[str]) -> Iterator[Transaction]:
        """Yield a writing transaction on such a connection; what is not committed ends with the connection."""
        with self.backend.queue_writer():
            connection.execute(self.backend.begin_writing)
            transaction = Transaction(connection, self)
            self.backend.lock_owners(transaction, owners)
            yield transaction
            connection.execute("COMMIT")

    def fetch_one(self, statement: Executable, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row of a read."""
        rows = self.fetch_all(statement, **values)
        return rows[0] if rows else None

    def fetch_all(self, statement: Executable, **values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a read."""
        text = self.statements.get(statement)
        connection, cursor = self._run_first(text.sql, text.bind(values))
        try:
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        except self.backend.driver_error as error:
            raise self.backend.translate(error) from error
        finally:
            self._release(connection)
        return rows

    @contextmanager
    def listen(self) -> Iterator[Waiter]:
        """Yield what waits for changes; signals count from now on."""
        try:
            with self.backend.listen() as waiter:
                yield waiter
        except self.backend.driver_error as error:
            raise self.backend.translate(error) from error

    def close(self) -> None:
        """Close the connections; those at work when they come back."""
        self.is_closed = True
        self._drop_idle()

    def after_fork(self) -> None:
        """Forget the parent's connections."""
        _inherited.extend(self._idle)
        _inherited.extend(self.backend.forget_parent())
        self._open_pool()

    def _open_pool(self) -> None:
        self._idle: deque[Any] = deque()
        self._slots = threading.BoundedSemaphore(self.backend.connections)

    @contextmanager
    def _run_transaction(self, begin: str) -> Iterator[Transaction]:
        connection, _ = self._run_first(begin, ())
        try:
            yield Transaction(connection, self)
            connection.execute("COMMIT")
        except self.backend.driver_error as error:
            self._undo(connection)
            raise self.backend.translate(error) from error
        except BaseException:
            self._undo(connection)
            raise
        self._release(connection)

    def _run_first(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, Any]:
        """Run the first statement on a connection; once more on a new one where the idle one was dead."""
        self._take_slot()
        connection: Any = None
        try:
            connection, is_new = self._take_idle()
            try:
                return connection, connection.execute(sql, values)
            except self.backend.driver_error:
                if is_new or self.backend.is_usable(connection):
                    raise
            self._discard(connection)
            self._drop_idle()
            connection = self.backend.connect()
            return connection, connection.execute(sql, values)
        except self.backend.driver_error as error:
            self._discard(connection)
            self._slots.release()
            raise self.backend.translate(error) from error
        except BaseException:
            self._discard(connection)
            self._slots.release()
            raise

    def _take_slot(self) -> None:
        if self.is_closed:
            msg = "the store is closed; open it again"
            raise StoreError(msg)
        if not self._slots.acquire(timeout=self.backend.wait_s):
            msg = f"all {self.backend.connections} connections of this process are at work; try again"
            raise StoreBusy(msg)

    def _take_idle(self) -> tuple[Any, bool]:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was quicker
                break
            if self.backend.is_usable(connection):
                return connection, False
            self._discard(connection)
        return self.backend.connect(), True

    def _undo(self, connection: Any) -> None:
        try:
            connection.execute("ROLLBACK")
        except self.backend.driver_error:
            self._discard(connection)
            self._slots.release()
        else:
            self._release(connection)

    def _release(self, connection: Any) -> None:
        if self.is_closed or not self.backend.is_usable(connection):
            self._discard(connection)
        else:
            self._idle.append(connection)
        self._slots.release()

    def _drop_idle(self) -> None:
        while self._idle:
            self._discard(self._idle.pop())

    def _discard(self, connection: Any) -> None:
        if connection is not None:
            try:
                connection.close()
            except self.backend.driver_error:
                return
