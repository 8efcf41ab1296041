"""Rows that filters were compiled into: which subscription owns each row, and which rows a subscription has.

A filter of several conjunctions has several rows, and a matcher that finds rows must return each id once. Numbers of
removed rows are used again, so that arrays by row stay as long as the most rows there ever were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.papers.common.interner import Slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.matcher.algorithm import SubId


class RowOwners:
    """Numbers of rows, and the subscriptions they belong to."""

    def __init__(self) -> None:
        self._owners = Slots()
        self._rows: dict[SubId, tuple[int, ...] | int] = {}  # a row alone, or several: most have one, and it is smaller
        self.multi_row_filters = 0

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    @property
    def row_count(self) -> int:
        """The rows in use."""
        return len(self._owners)

    @property
    def capacity(self) -> int:
        """The rows in use or free: all numbers are below this."""
        return len(self._owners.items)

    def allocate(self, id: SubId) -> int:
        """Return the number of a new row of a subscription; `assign` it once all its rows are known."""
        return self._owners.add(id)

    def assign(self, id: SubId, rows: tuple[int, ...]) -> None:
        """Record the rows of a subscription."""
        self._rows[id] = rows[0] if len(rows) == 1 else rows
        self.multi_row_filters += len(rows) > 1

    def release(self, id: SubId) -> tuple[int, ...]:
        """Forget a subscription and return its rows; their numbers are free from now on."""
        rows = self._rows.pop(id)
        if isinstance(rows, int):
            rows = (rows,)
        self.multi_row_filters -= len(rows) > 1
        for row in rows:
            self._owners.remove(row)
        return rows

    def get_owner(self, row: int) -> SubId:
        """Return the subscription that a row belongs to."""
        owner: SubId = self._owners.items[row]
        return owner

    def resolve(self, rows: Iterable[int]) -> list[SubId]:
        """Return the owners of rows, each once."""
        ids = list(map(self._owners.items.__getitem__, rows))
        return list(dict.fromkeys(ids)) if self.multi_row_filters else ids
