"""What a store in memory holds, behind one lock: a dictionary or a list for each table of `sql`.

Every part takes the lock for the whole of what it does, so each call is a transaction. The change log is a list of
entries with ascending numbers; the first stands for the empty store, so that every position has an entry and a mark.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidings.service.store.base import AuditRecord, KeyRecord, OwnerRules, StatusReport, Written
from tidings.service.subscription import MatchRow, Subscription

if TYPE_CHECKING:
    from collections.abc import Iterable

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
"""When the empty store was, for compaction."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One change: whose subscription it was, by owner and id."""

    sequence: int
    mark: str
    at: datetime
    key: tuple[str, str]


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer to a write that came with a key."""

    digest: str
    at: datetime
    written: Written


@dataclass(frozen=True, slots=True)
class KeptMatch:
    """A match, and when its batch was written."""

    row: MatchRow
    at: datetime


@dataclass(slots=True)
class MemoryTables:
    """All tables, and the condition that guards them and wakes who waits for changes."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    is_closed: bool = False
    subscriptions: dict[tuple[str, str], Subscription] = field(default_factory=dict)
    log: list[LogEntry] = field(default_factory=lambda: [LogEntry(0, make_mark(), LONG_AGO, ("", ""))])
    answers: dict[tuple[str, str], KeptAnswer] = field(default_factory=dict)
    keys: dict[str, KeyRecord] = field(default_factory=dict)
    rules: dict[str, OwnerRules] = field(default_factory=dict)
    matches: list[KeptMatch] = field(default_factory=list)
    match_number: int = 0
    batches: dict[tuple[str, int], datetime] = field(default_factory=dict)
    audit: list[AuditRecord] = field(default_factory=list)
    audit_number: int = 0
    reports: dict[str, StatusReport] = field(default_factory=dict)

    def append_changes(self, keys: Iterable[tuple[str, str]], at: datetime) -> None:
        """Append an entry for each subscription that changed, and wake who waits."""
        for key in keys:
            self.log.append(LogEntry(self.log[-1].sequence + 1, make_mark(), at, key))
        self.changed.notify_all()

    def append_audit(self, record: AuditRecord) -> None:
        """Append to the audit log, with the next number."""
        self.audit_number += 1
        self.audit.append(replace(record, number=self.audit_number))

    def remove_matches(self, key: tuple[str, str]) -> int:
        """Remove the matches of a subscription; return how many."""
        before = len(self.matches)
        self.matches[:] = [kept for kept in self.matches if (kept.row.owner, kept.row.subscription) != key]
        return before - len(self.matches)


def make_mark() -> str:
    """Return a mark that no other change has."""
    return secrets.token_hex(8)
