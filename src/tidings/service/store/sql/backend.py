"""What differs between databases; `sqlite.SqliteBackend` and `postgres.PostgresBackend` have it, nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy.engine import Dialect
    from sqlalchemy.sql import Executable

    from tidings.service.store.base import StoreError
    from tidings.service.store.sql.database import Database, Transaction
    from tidings.service.store.sql.pairs import PairStatement, ValuePairs
    from tidings.service.store.sql.signals import Waiter
    from tidings.service.store.sql.statements import PreparedText


class DatabaseBackend(Protocol):
    """A kind of database."""

    dialect: Dialect
    driver_error: type[Exception]
    begin_reading: str
    begin_writing: str
    connections: int
    is_local: bool
    wait_s: float  # how long a call waits for a connection, for its turn to write, or for a lock
    delete_old_labels: Executable
    insert_new_labels: Executable
    find_version_table: str

    # Connections and transactions

    def connect(self) -> Any:
        """Open a connection, in autocommit mode."""

    def is_usable(self, connection: Any) -> bool:
        """Tell whether an idle connection may still be used."""

    def translate(self, error: Exception) -> StoreError:
        """Return the store's error for a driver's."""

    def queue_writer(self) -> AbstractContextManager[None]:
        """Wait for one's turn among the writers of this process."""

    def lock_owners(self, transaction: Transaction, owners: Iterable[str]) -> None:
        """Keep other writers off the subscriptions of these owners, in ascending order, until the transaction ends."""

    def lock_matches(self, transaction: Transaction) -> None:
        """Keep other writers off the matches until the transaction ends."""

    def forget_parent(self) -> Sequence[Any]:
        """Return, in a fork's child, connections of the parent's that are not the pool's; start anew without them."""

    def prepare(self, connection: Any) -> None:
        """Make ready a database that is opened; refuse one that cannot be a store."""

    def lock_structure(self, connection: Any) -> None:
        """Keep others off the tables themselves until the transaction ends."""

    def check(self, database: Database) -> None:
        """Raise `StoreError` where nothing can be written."""

    # Reading and writing many rows

    def fetch_pairs(
        self, transaction: Transaction, statement: PairStatement, pairs: ValuePairs
    ) -> list[tuple[Any, ...]]:
        """Return the rows of many pairs."""

    def run_pairs(self, transaction: Transaction, statement: PairStatement, pairs: ValuePairs) -> None:
        """Change the rows of many pairs."""

    def stream(self, transaction: Transaction, statement: Executable, **values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows as they are read."""

    def insert_rows(self, connection: Any, statement: PreparedText, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert many rows, whose values are in the order of the statement's columns."""

    def stage(self, connection: Any, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Put rows into the temporary table `staged`; of several with one id, only the last is there."""

    def holds_text(self, column: Any, wanted: Any) -> Any:
        """Return the condition that a column holds a text in lower case, as far as ASCII goes."""

    def count_bytes(self, value: Any) -> Any:
        """Return how many bytes a text has in UTF-8."""

    # Signals

    def notify_in(self, transaction: Transaction) -> None:
        """Wake who waits for changes once the transaction commits."""

    def notify(self) -> None:
        """Wake who waits for changes: the transaction is committed."""

    def stop_waiting(self) -> None:
        """Wake who waits in this process: the store is closed."""

    def close(self) -> None:
        """Close connections that are not the pool's and idle."""

    def listen(self) -> AbstractContextManager[Waiter]:
        """Yield what waits for a signal; signals count from now on."""
