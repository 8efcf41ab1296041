"""Distinct predicates of many rows, stored once: the counting matcher's hash tables and what it has to ask.

A predicate has a number for as long as some row uses it. Equalities are found by their value, a set under each of its
values; an event's value that is a range goes through all values that are asked for. Cost: O(1) for each value.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from tidings.algebra import holds
from tidings.algebra.law.evaluate import meets
from tidings.model import Range
from tidings.papers.posets.predicate_rows import needed, present

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.model import Filter
    from tidings.papers.posets.predicate_rows import Equality


class Predicates:
    """Distinct predicates by number, how many rows use each, and how to find those that an event satisfies."""

    def __init__(self) -> None:
        """Start without predicates."""
        self.tables: dict[TypedAttribute, dict[Any, int | list[int]]] = {}
        self.asked: dict[int, Filter] = {}
        self._groups: dict[TypedAttribute | None, dict[int, Filter]] = {}
        self._numbers: dict[Any, int] = {}
        self._said: list[Any] = []
        self._users = array("i")
        self._free: list[int] = []

    def __len__(self) -> int:
        """Count the numbers given, whether in use or free."""
        return len(self._said)

    @property
    def distinct(self) -> int:
        """The predicates in use."""
        return len(self._said) - len(self._free)

    def equality(self, said: Equality) -> int:
        """Return the number of an equality, for one more row."""
        key, *values = said
        number, new = self._number(said)
        if new:
            table = self.tables.setdefault(key, {})
            for value in values:
                known = table.get(value)
                table[value] = number if known is None else [*_numbers(known), number]
        return number

    def question(self, said: Filter) -> int:
        """Return the number of a predicate that has to be asked, for one more row."""
        number, new = self._number(("asked", said))
        if new:
            self.asked[number] = said
        return number

    def _number(self, said: Any) -> tuple[int, bool]:
        number = self._numbers.get(said)
        if number is not None:
            self._users[number] += 1
            return number, False
        if self._free:
            number = self._free.pop()
            self._said[number], self._users[number] = said, 1
        else:
            number = len(self._said)
            self._said.append(said)
            self._users.append(1)
        self._numbers[said] = number
        return number, True

    def release(self, number: int) -> None:
        """Let one row go; without any, the predicate is forgotten."""
        self._users[number] -= 1
        if self._users[number]:
            return
        said = self._said[number]
        del self._numbers[said]
        self._said[number] = None
        self._free.append(number)
        if number in self.asked:
            del self.asked[number]
            return
        key, *values = said
        table = self.tables[key]
        for value in values:
            left = [other for other in _numbers(table[value]) if other != number]
            if left:
                table[value] = left if len(left) > 1 else left[0]
            else:
                del table[value]
        if not table:
            del self.tables[key]

    def watch(self, number: int) -> None:
        """Ask this one of every event that has its attribute: rows are filed under it."""
        said = self.asked[number]
        self._groups.setdefault(needed(said), {})[number] = said

    def unwatch(self, number: int) -> None:
        """Ask it no more of every event."""
        key = needed(self.asked[number])
        del self._groups[key][number]
        if not self._groups[key]:
            del self._groups[key]

    def hits(self, reading: Reading, setting: Setting, memo: dict[int, bool]) -> list[int]:
        """Return the predicates that a reading satisfies, of those that can be looked up or are watched."""
        found: list[int] = []
        for key, values in reading.values.items():
            table = self.tables.get(key)
            if table is None or not values:
                continue
            mine = [number for value in values for number in _equal(table, value)]
            found += mine if len(values) == 1 else dict.fromkeys(mine)
        for need, group in self._groups.items():
            if present(need, reading):
                for number, said in group.items():
                    memo[number] = true = holds(said, reading, setting)
                    if true:
                        found.append(number)
        return found


def _numbers(known: int | list[int]) -> list[int]:
    return known if isinstance(known, list) else [known]


def _equal(table: dict[Any, int | list[int]], value: Any) -> Iterable[int]:
    """Return the equalities that a value satisfies; one that is a range goes through all values asked for."""
    if type(value) is Range:
        return dict.fromkeys(one for key, known in table.items() if meets(key, value) for one in _numbers(known))
    known = table.get(value)
    return () if known is None else _numbers(known)
