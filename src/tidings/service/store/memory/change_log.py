"""The change log in memory: a list of entries, and a condition that writers notify."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidings.service.store.base import Position, RunningSubscription, StoreChanges
from tidings.service.subscription import IN_FORCE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from tidings.service.store.memory.tables import MemoryTables
    from tidings.service.subscription import Subscription, SubscriptionKind


class MemoryChangeLog:
    """`ChangeLog` over a list."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def read_head(self) -> Position:
        """Return the position of the last entry."""
        with self._tables.changed:
            return self._get_head()

    @contextmanager
    def read(
        self, position: Position | None, *, kinds: Collection[SubscriptionKind] | None = None
    ) -> Iterator[StoreChanges]:
        """Yield what changed since a position."""
        with self._tables.changed:
            changes = self._read(position, kinds)
        yield changes

    def compact(self, before: datetime) -> int:
        """Remove the entries before the first that is as young as that; the last one stays."""
        with self._tables.changed:
            log = self._tables.log
            old = next((place for place, entry in enumerate(log) if entry.at >= before), len(log))
            count = min(old, len(log) - 1)
            del log[:count]
            return count

    def wait(self, position: Position, timeout: float) -> bool:
        """Wait until the last entry is another."""
        until = time.monotonic() + timeout
        with self._tables.changed:
            while not self._tables.is_closed and self._get_head() == position:
                if not self._tables.changed.wait(until - time.monotonic()):
                    break
            return self._get_head() != position

    def _get_head(self) -> Position:
        return Position(self._tables.log[-1].sequence, self._tables.log[-1].mark)

    def _read(self, position: Position | None, kinds: Collection[SubscriptionKind] | None) -> StoreChanges:
        rows = self._tables.subscriptions
        positions = {Position(entry.sequence, entry.mark) for entry in self._tables.log}
        if position is None or position not in positions:
            running = [self._describe(row) for row in rows.values() if _is_running(row, kinds)]
            return StoreChanges(self._get_head(), running, reload=position is not None)
        keys = {entry.key for entry in self._tables.log if entry.sequence > position.sequence}
        running_keys = {key for key in keys if key in rows and _is_running(rows[key], kinds)}
        removed = [f"{owner}/{id}" for owner, id in sorted(keys - running_keys)]
        return StoreChanges(self._get_head(), [self._describe(rows[key]) for key in sorted(running_keys)], removed)

    def _describe(self, row: Subscription) -> RunningSubscription:
        rules = self._tables.rules.get(row.owner)
        return describe_running(row, rules.only if rules else None)


def _is_running(row: Subscription, kinds: Iterable[SubscriptionKind] | None) -> bool:
    return row.status in IN_FORCE and (kinds is None or row.kind in kinds)


def describe_running(row: Subscription, only: str | None) -> RunningSubscription:
    """Return what a pipeline needs of a subscription."""
    return RunningSubscription(
        engine_id=row.engine_id,
        kind=row.kind,
        text=row.text,
        notation=row.notation,
        mode=row.mode,
        horizon=row.horizon,
        threshold=row.threshold,
        only=only,
    )
