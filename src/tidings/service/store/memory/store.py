"""The store in memory, and its small parts: answers, the audit log, reports."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from tidings.service.store.base import AuditRecord, StatusReport, Store, StoreError
from tidings.service.store.memory.change_log import MemoryChangeLog
from tidings.service.store.memory.keys import MemoryKeys, MemoryOwners
from tidings.service.store.memory.matches import MemoryMatches
from tidings.service.store.memory.subscriptions import MemorySubscriptions
from tidings.service.store.memory.tables import MemoryTables
from tidings.service.store.rows import require_storable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class MemoryIdempotency:
    """`IdempotencyStore` over a dictionary."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def forget(self, before: datetime) -> int:
        """Remove answers older than a time."""
        with self._tables.changed:
            count = len(self._tables.answers)
            self._tables.answers = {key: kept for key, kept in self._tables.answers.items() if kept.at >= before}
            return count - len(self._tables.answers)


class MemoryAudit:
    """`AuditLog` over a list."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def append(self, record: AuditRecord) -> None:
        """Append a record."""
        require_storable(actor=record.actor, owner=record.owner, action=record.action, id=record.id)
        with self._tables.changed:
            self._tables.append_audit(record)

    def list(self, *, owner: str | None = None, after: int = 0, limit: int = 100) -> Sequence[AuditRecord]:
        """Return records after a number."""
        with self._tables.changed:
            rows = [row for row in self._tables.audit if row.number > after and owner in (None, row.owner)]
            return rows[:limit]

    def trim(self, before: datetime) -> int:
        """Remove the records before the first that is as young as that."""
        with self._tables.changed:
            old = list(takewhile(lambda record: record.at < before, self._tables.audit))
            del self._tables.audit[: len(old)]
            return len(old)


class MemoryStatuses:
    """`StatusBoard` over a dictionary."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def write(self, report: StatusReport) -> None:
        """Write a report in the place of the one before."""
        with self._tables.changed:
            self._tables.reports[report.name] = report

    def list(self) -> Sequence[StatusReport]:
        """Return the reports by name."""
        with self._tables.changed:
            return [report for _, report in sorted(self._tables.reports.items())]


class MemoryStore(Store):
    """A store that is gone with its process."""

    is_local = True

    def __init__(self) -> None:
        self._tables = tables = MemoryTables()
        self.subscriptions = MemorySubscriptions(tables)
        self.log = MemoryChangeLog(tables)
        self.keys = MemoryKeys(tables)
        self.owners = MemoryOwners(tables)
        self.matches = MemoryMatches(tables)
        self.idempotency = MemoryIdempotency(tables)
        self.audit = MemoryAudit(tables)
        self.statuses = MemoryStatuses(tables)

    def check(self) -> None:
        """Answer that it is open."""
        if self._tables.is_closed:
            msg = "the store is closed; open it again"
            raise StoreError(msg)

    def close(self) -> None:
        """Wake whoever waits."""
        with self._tables.changed:
            self._tables.is_closed = True
            self._tables.changed.notify_all()
