"""Small numbers for things, as indexes into arrays: slots, values that are interned, rows of subscriptions.

A filter of several conjunctions has several rows, and a matcher that finds rows must return each id once. Numbers of
removed things are used again, so that arrays by number stay as long as the most things there ever were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.matcher.algorithm import SubId

Item = TypeVar("Item")

_REMOVED: Any = None
"""In place of a removed item, which nobody reads any more."""


class Slots(Generic[Item]):
    """Items by number; the number of a removed item goes to a later one."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Count the items, without the free numbers."""
        return len(self.items) - len(self._free)

    def add(self, item: Item) -> int:
        """Take an item in and return its number."""
        if self._free:
            number = self._free.pop()
            self.items[number] = item
        else:
            number = len(self.items)
            self.items.append(item)
        return number

    def remove(self, number: int) -> None:
        """Forget the item of a number."""
        self.items[number] = _REMOVED
        self._free.append(number)


class Interner(Generic[Item]):
    """Maps each value in use to a number; equal values share one, and each reference to it is counted."""

    def __init__(self) -> None:
        self.numbers: dict[Item, int] = {}
        self._slots: Slots[Item] = Slots()
        self.values = self._slots.items
        self._counts: list[int] = []

    def __len__(self) -> int:
        """Count the values in use."""
        return len(self.numbers)

    def take(self, value: Item) -> int:
        """Return the number of a value and count one more reference to it."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = self._slots.add(value)
            if number == len(self._counts):
                self._counts.append(0)
        self._counts[number] += 1
        return number

    def release(self, number: int) -> bool:
        """Count one reference less; return whether it was the last, so that the value has no number any more."""
        self._counts[number] -= 1
        if self._counts[number]:
            return False
        del self.numbers[self.values[number]]
        self._slots.remove(number)
        return True


class RowOwners:
    """Numbers of rows, and the subscriptions they belong to."""

    def __init__(self) -> None:
        self._owners: Slots[SubId] = Slots()
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
        return self._owners.items[row]

    def resolve(self, rows: Iterable[int]) -> list[SubId]:
        """Return the owners of rows, each once."""
        ids = list(map(self._owners.items.__getitem__, rows))
        return list(dict.fromkeys(ids)) if self.multi_row_filters else ids
