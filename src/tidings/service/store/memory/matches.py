"""Matches in memory: one list in the order of their numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.service.store.memory.tables import KeptMatch, MemoryTables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from tidings.service.subscription import MatchRow


class MemoryMatches:
    """`MatchStore` over a list."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def write(self, query: str, batch: int, rows: Iterable[MatchRow], *, at: datetime, keep: int) -> int:
        """Write a batch once; of a subscription's rows in it, the last `keep`, which push out older ones."""
        tables = self._tables
        with tables.changed:
            if (query, batch) in tables.batches:
                return 0
            tables.batches[query, batch] = at
            living = [row for row in rows if (row.owner, row.subscription) in tables.subscriptions]
            newest = _take_newest(living, keep)
            for row in newest:
                tables.match_number += 1
                tables.matches.append(KeptMatch(replace(row, number=tables.match_number), at))
            numbers = {row.number for row in _take_newest([kept.row for kept in tables.matches], keep)}
            touched = {(row.owner, row.subscription) for row in newest}
            tables.matches[:] = [
                kept
                for kept in tables.matches
                if (kept.row.owner, kept.row.subscription) not in touched or kept.row.number in numbers
            ]
            tables.changed.notify_all()
            return len(newest)

    def list_latest(self, owner: str, id: str, *, before: int | None = None, limit: int = 100) -> Sequence[MatchRow]:
        """Return matches of a subscription, newest first."""
        with self._tables.changed:
            rows = [kept.row for kept in reversed(self._tables.matches)]
        of_it = [row for row in rows if (row.owner, row.subscription) == (owner, id)]
        return [row for row in of_it if before is None or row.number < before][:limit]

    def list_since(self, owner: str | None, after: int, *, limit: int = 500) -> Sequence[MatchRow]:
        """Return matches of an owner, oldest first."""
        with self._tables.changed:
            rows = [kept.row for kept in self._tables.matches]
        return [row for row in rows if row.number > after and owner in (None, row.owner)][:limit]

    def read_head(self) -> int:
        """Return the newest number."""
        with self._tables.changed:
            return self._tables.match_number

    def trim(self, before: datetime) -> int:
        """Remove matches and batches written before a time."""
        tables = self._tables
        with tables.changed:
            count = len(tables.matches)
            tables.matches[:] = [kept for kept in tables.matches if kept.at >= before]
            tables.batches = {key: at for key, at in tables.batches.items() if at >= before}
            return count - len(tables.matches)


def _take_newest(rows: Sequence[MatchRow], keep: int) -> list[MatchRow]:
    """Return the last `keep` rows of each subscription, in their order."""
    counts: Counter[tuple[str, str]] = Counter()
    newest = []
    for row in reversed(rows):
        counts[row.owner, row.subscription] += 1
        if counts[row.owner, row.subscription] <= keep:
            newest.append(row)
    return newest[::-1]
