"""The store in a database: its parts, and one pool of connections for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.service.store.base import Store
from tidings.service.store.sql.change_log import SqlChangeLog
from tidings.service.store.sql.database import Database
from tidings.service.store.sql.keys import SqlKeys
from tidings.service.store.sql.matches import SqlMatches
from tidings.service.store.sql.owners import SqlOwners
from tidings.service.store.sql.records import SqlAudit, SqlIdempotency, SqlStatuses
from tidings.service.store.sql.subscriptions import SqlSubscriptions

if TYPE_CHECKING:
    from tidings.service.store.sql.backend import DatabaseBackend


class SqlStore(Store):
    """A store in SQLite or PostgreSQL; `opening.open_store` opens one, its tables brought up to date."""

    def __init__(self, backend: DatabaseBackend) -> None:
        self._database = database = Database(backend)
        self.is_local = backend.is_local
        self.subscriptions = SqlSubscriptions(database)
        self.log = SqlChangeLog(database)
        self.keys = SqlKeys(database)
        self.owners = SqlOwners(database)
        self.matches = SqlMatches(database)
        self.idempotency = SqlIdempotency(database)
        self.audit = SqlAudit(database)
        self.statuses = SqlStatuses(database)

    def check(self) -> None:
        """Read, and ask whether writing is possible; an import under way is no reason to say no."""
        self.log.read_head()
        self._database.backend.check(self._database)

    def close(self) -> None:
        """Close the connections, and wake whoever waits."""
        self._database.close()
        self._database.backend.stop_waiting()
        self._database.backend.close()
