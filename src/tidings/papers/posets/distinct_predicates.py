"""Distinct predicates of many rows, stored once, and the rows filed under each: hash tables and posting lists.

A predicate has a number for as long as some row uses it. Equalities are found by their value, a set under each of its
values; an event's value that is a range is compared with all values of the attribute's equalities. A posting list is a
block of one pool that doubles when it is full. Cost: O(1) for each value, row added or row removed, on average.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from tidings.algebra import holds
from tidings.algebra.law.evaluate import meets
from tidings.model import Range
from tidings.papers.common.arrays import BlockAllocator, lengthen
from tidings.papers.common.numbering import Interner
from tidings.papers.posets.predicate_rows import find_required_attribute, has_attribute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.model import Filter
    from tidings.papers.posets.predicate_rows import Equality


class DistinctPredicates:
    """Distinct predicates by number, how many rows use each, and how to find those that an event satisfies."""

    def __init__(self) -> None:
        self.tables: dict[TypedAttribute, dict[Any, int | list[int]]] = {}
        self.evaluated: dict[int, Filter] = {}
        self._groups: dict[TypedAttribute | None, dict[int, Filter]] = {}
        self._interner = Interner()

    def __len__(self) -> int:
        """Count the numbers given, whether in use or free."""
        return len(self._interner.values)

    @property
    def count(self) -> int:
        """The predicates in use."""
        return len(self._interner)

    def add_equality(self, equality: Equality) -> int:
        """Return the number of an equality, for one more row."""
        key, *values = equality
        is_new = equality not in self._interner.numbers
        number = self._interner.take(equality)
        if is_new:
            table = self.tables.setdefault(key, {})
            for value in values:
                entry = table.get(value)
                table[value] = number if entry is None else [*_to_list(entry), number]
        return number

    def add_evaluated(self, predicate: Filter) -> int:
        """Return the number of a predicate that has to be evaluated, for one more row."""
        number = self._interner.take(("evaluated", predicate))
        self.evaluated[number] = predicate
        return number

    def release(self, number: int) -> None:
        """Count one row less; without any, the predicate is forgotten."""
        predicate = self._interner.values[number]
        if not self._interner.release(number):
            return
        if number in self.evaluated:
            del self.evaluated[number]
            return
        key, *values = predicate
        table = self.tables[key]
        for value in values:
            left = [other for other in _to_list(table[value]) if other != number]
            if left:
                table[value] = left if len(left) > 1 else left[0]
            else:
                del table[value]
        if not table:
            del self.tables[key]

    def watch(self, number: int) -> None:
        """Evaluate this one on every event that has its attribute: rows are filed under it."""
        predicate = self.evaluated[number]
        self._groups.setdefault(find_required_attribute(predicate), {})[number] = predicate

    def unwatch(self, number: int) -> None:
        """Undo `watch`."""
        key = find_required_attribute(self.evaluated[number])
        del self._groups[key][number]
        if not self._groups[key]:
            del self._groups[key]

    def find_satisfied(self, reading: Reading, setting: Setting, memo: dict[int, bool]) -> list[int]:
        """Return the predicates that a reading satisfies, of those that can be looked up or are watched."""
        satisfied: list[int] = []
        for key, values in reading.values.items():
            table = self.tables.get(key)
            if table is None or not values:
                continue
            mine = [number for value in values for number in _find_equal(table, value)]
            satisfied += mine if len(values) == 1 else dict.fromkeys(mine)
        for need, group in self._groups.items():
            if has_attribute(need, reading):
                for number, predicate in group.items():
                    memo[number] = true = holds(predicate, reading, setting)
                    if true:
                        satisfied.append(number)
        return satisfied


def _to_list(entry: int | list[int]) -> list[int]:
    return entry if isinstance(entry, list) else [entry]


def _find_equal(table: dict[Any, int | list[int]], value: Any) -> Iterable[int]:
    """Return the equalities that a value satisfies; a range is compared with all of them."""
    if type(value) is Range:
        return dict.fromkeys(number for key, entry in table.items() if meets(key, value) for number in _to_list(entry))
    entry = table.get(value)
    return () if entry is None else _to_list(entry)


class PostingPool:
    """For each of many lists, the rows in it, and beside each row a second number."""

    def __init__(self) -> None:
        self.first, self.count, self.pool, self.seconds = array("i"), array("i"), array("i"), array("i")
        self._sizes = array("i")
        self._blocks = BlockAllocator()

    def open(self, at: int) -> None:
        """Begin an empty list; its number is the next one, or that of a list that was emptied."""
        if at == len(self.first):
            for column in (self.first, self.count, self._sizes):
                column.append(0)

    def add(self, at: int, row: int, second: int) -> int:
        """Append a row and its second number to a list and return their place there."""
        place = self.count[at]
        if place == self._sizes[at]:
            self._grow(at, place)
        self.pool[self.first[at] + place], self.seconds[self.first[at] + place] = row, second
        self.count[at] = place + 1
        return place

    def _grow(self, at: int, used: int) -> None:
        size, old = max(1, 2 * used), self.first[at]
        start = self._blocks.take(size)
        for pool in (self.pool, self.seconds):
            lengthen(pool, self._blocks.length)
            pool[start : start + used] = pool[old : old + used]
        self._blocks.give(old, self._sizes[at])
        self.first[at], self._sizes[at] = start, size

    def remove(self, at: int, place: int) -> int:
        """Remove the row at a place and return the row that moves there, which was the last."""
        last = self.count[at] - 1
        moved = self.pool[self.first[at] + last]
        self.pool[self.first[at] + place] = moved
        self.seconds[self.first[at] + place] = self.seconds[self.first[at] + last]
        self.count[at] = last
        if not last:  # an empty list holds no memory
            self._blocks.give(self.first[at], self._sizes[at])
            self._sizes[at] = 0
        return moved
