"""PostgreSQL: many writers at once, each of whom locks the owners it is about; rows in bulk travel by COPY.

Owners are locked by advisory locks, in ascending order and before anything else; the matches by another; the head of
the log last of all. So nobody waits in a circle.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy import func, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from tidings.service.store.base import StoreBusy, StoreError
from tidings.service.store.migrations import VERSION_TABLE
from tidings.service.store.sql.backend import DatabaseBackend
from tidings.service.store.sql.codec import compute_owner_key
from tidings.service.store.sql.notifications import CHANNEL, NotificationListeners

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import URL
    from sqlalchemy.sql import Executable

    from tidings.service.store.sql.database import Database, Transaction
    from tidings.service.store.sql.pairs import PairStatement, ValuePairs
    from tidings.service.store.sql.signals import Waiter
    from tidings.service.store.sql.statements import PreparedText

MATCHES_LOCK = 0x7469_6469_6E67_7301
"""The advisory lock of those who write matches."""

STRUCTURE_LOCK = MATCHES_LOCK + 1
"""The advisory lock of those who make tables or change them."""

WAIT_S = 30.0
"""How long a call waits for a lock or a connection, unless the URL's `options` say `-clock_timeout=...`."""

CONNECT_S = 10
"""How long a server may take to answer, unless the URL says otherwise."""

COPIED_FROM = 10
"""So many rows are inserted faster by COPY than one by one."""

STREAMED_AT_ONCE = 10_000
"""Rows that a cursor of the server sends together."""


_make_dialect: Any = PGDialect_psycopg  # SQLAlchemy's dialects have no types


class PostgresBackend(DatabaseBackend):
    """A database of PostgreSQL."""

    driver_error = psycopg.Error
    begin_reading, begin_writing = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN"
    connections, is_local, wait_s = 10, False, WAIT_S

    def __init__(self, url: URL) -> None:
        self.dialect: Any = _make_dialect(paramstyle="format")
        self._name = url.render_as_string(hide_password=True)
        _, options = self.dialect.create_connect_args(url)
        self._options = {
            "connect_timeout": CONNECT_S,
            "application_name": "tidings",
            "options": f"-clock_timeout={int(WAIT_S * 1000)}",
            **options,
        }
        self._listeners = NotificationListeners(self.connect)

    def connect(self) -> psycopg.Connection[Any]:
        """Connect to the server."""
        return psycopg.connect(**self._options, autocommit=True)

    def is_usable(self, connection: psycopg.Connection[Any]) -> bool:
        """Tell whether a connection is alive, as far as is known without asking."""
        return connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE

    def translate(self, error: Exception) -> StoreError:
        """Return the store's error: what the server says first, since its details quote rows, and so secrets."""
        diagnosis = getattr(error, "diag", None)
        words = " ".join(str((diagnosis and diagnosis.message_primary) or error).split())
        busy = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
        if isinstance(error, busy):
            return StoreBusy(f"the store `{self._name}` is busy: {words}; try again")
        return StoreError(f"the store `{self._name}` cannot be used: {words}")

    @contextmanager
    def queue_writer(self) -> Iterator[None]:
        """Let everybody write."""
        yield

    def lock_owners(self, transaction: Transaction, owners: Iterable[str]) -> None:
        """Take an advisory lock for each owner."""
        keys = sorted({compute_owner_key(owner) for owner in owners})
        if keys:
            transaction.connection.execute(
                "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key", (keys,)
            )

    def lock_matches(self, transaction: Transaction) -> None:
        """Take the lock of those who write matches."""
        transaction.connection.execute("SELECT pg_advisory_xact_lock(%s)", (MATCHES_LOCK,))

    def check(self, database: Database) -> None:
        """Ask whether the server takes changes."""
        with database.read() as transaction:
            (is_standby,) = transaction.connection.execute("SELECT pg_is_in_recovery()").fetchone()
        if is_standby:
            msg = f"the store `{self._name}` is a standby, which takes no changes; name the primary"
            raise StoreError(msg)

    def fetch_pairs(
        self, transaction: Transaction, statement: PairStatement, pairs: ValuePairs
    ) -> list[tuple[Any, ...]]:
        """Return the rows of many pairs, by one statement."""
        rows: list[tuple[Any, ...]] = self._run_pairs(transaction, statement, pairs).fetchall() if pairs else []
        return rows

    def run_pairs(self, transaction: Transaction, statement: PairStatement, pairs: ValuePairs) -> None:
        """Change the rows of many pairs, by one statement."""
        if pairs:
            self._run_pairs(transaction, statement, pairs)

    def _run_pairs(self, transaction: Transaction, statement: PairStatement, pairs: ValuePairs) -> psycopg.Cursor[Any]:
        prepared = transaction.statements.get(statement.for_many)
        values = {"first": [first for first, _ in pairs], "second": [second for _, second in pairs]}
        cursor: psycopg.Cursor[Any] = transaction.connection.execute(prepared.sql, prepared.bind(values))
        return cursor

    def stream(self, transaction: Transaction, statement: Executable, **values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows as the server sends them."""
        prepared = transaction.statements.get(statement)
        with transaction.connection.cursor(name="stream") as cursor:
            cursor.itersize = STREAMED_AT_ONCE
            yield from cursor.execute(prepared.sql, prepared.bind(values))

    def insert_rows(
        self, connection: psycopg.Connection[Any], statement: PreparedText, rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert few rows by their statement, many by COPY."""
        if len(rows) < COPIED_FROM:
            connection.cursor().executemany(statement.sql, rows)
        else:
            _copy(connection, str(statement.table), statement.names, rows)

    def stage(
        self, connection: psycopg.Connection[Any], columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
    ) -> None:
        """Put rows into a temporary table by COPY, and leave the last of each id."""
        names = ", ".join(f"0::bigint AS {name}" if name == "place" else name for name in columns)
        connection.execute(f"CREATE TEMPORARY TABLE staged AS SELECT {names} FROM subscriptions LIMIT 0")  # noqa: S608
        _copy(connection, "staged", columns, rows)
        connection.execute("CREATE INDEX ON staged (id, place)")
        connection.execute("ANALYZE staged")
        connection.execute("DELETE FROM staged a USING staged b WHERE a.id = b.id AND a.place < b.place")

    find_version_table = f"SELECT to_regclass('{VERSION_TABLE}')"

    def prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Refuse a database whose text is not UTF-8."""
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            msg = f"the database `{self._name}` keeps text as {encoding}; create it with ENCODING 'UTF8'"
            raise StoreError(msg)

    def lock_structure(self, connection: psycopg.Connection[Any]) -> None:
        """Take the lock of those who change tables."""
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (STRUCTURE_LOCK,))

    def holds_text(self, column: Any, wanted: Any) -> Any:
        """Return the condition that a column holds a text in lower case, as far as ASCII goes."""
        return func.strpos(func.lower(column.collate("C")), wanted) > 0

    def count_bytes(self, value: Any) -> Any:
        """Return how many bytes a text has in UTF-8."""
        return func.octet_length(value)

    def notify_in(self, transaction: Transaction) -> None:
        """Notify with the commit."""
        transaction.connection.execute(f"NOTIFY {CHANNEL}")

    def notify(self) -> None:
        """Do nothing: the commit has done it."""

    def stop_waiting(self) -> None:
        """Wake who waits in this process."""
        self._listeners.stop_waiting()

    def listen(self) -> AbstractContextManager[Waiter]:
        """Yield what waits for a notification."""
        return self._listeners.listen()

    def close(self) -> None:
        """Close the connections that listen."""
        self._listeners.close()

    def forget_parent(self) -> Sequence[Any]:
        """Give up the connections that listen."""
        return self._listeners.forget()

    delete_old_labels = text("""
        DELETE FROM subscription_labels l
        USING staged, subscriptions s, json_array_elements_text(s.labels::json) AS label
        WHERE s.owner = :owner AND s.id = staged.id AND s.labels IS NOT NULL
            AND l.label = label AND l.owner = s.owner AND l.id = s.id""")
    insert_new_labels = text("""
        INSERT INTO subscription_labels (label, owner, id)
        SELECT label, :owner, staged.id FROM staged, json_array_elements_text(staged.labels::json) AS label
        WHERE staged.labels IS NOT NULL ON CONFLICT DO NOTHING""")


def _copy(
    connection: psycopg.Connection[Any], table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Copy rows into a table."""
    sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(sql) as copy:
        for row in rows:
            copy.write_row(row)
