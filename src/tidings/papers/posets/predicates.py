"""Predicates of the counting matcher: conjunctions sorted into them, each distinct one stored once, and their rows.

A conjunction is sorted into predicates that are looked up and predicates that are evaluated. Equality is looked up by
its value, a range of numbers or times by the numbers the event has; everything else (text patterns, text ranges,
places, concepts, ages, quantifiers, negations, records, two attributes compared, ends that float64 cannot hold) is
evaluated by `algebra.holds`.

A predicate has a number for as long as some row uses it. Equalities are found by their value, a set under each of its
values; an event's value that is a range is compared with all values of the attribute's equalities. The rows filed under
a predicate are a posting list: a block of one pool that doubles when it is full. Cost: O(1) for each value, row added
or row removed, on average.
"""

from __future__ import annotations

from array import array
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.algebra import Reading, Setting, holds
from tidings.algebra.law.evaluate import meets
from tidings.algebra.law.typed_attribute import TypedAttribute, resolve_attribute, resolve_test, strip_unit
from tidings.algebra.normal_form import list_conjunctions
from tidings.errors import TooLarge
from tidings.kernels.papers.domain_cells import HIGH_OPEN, LOW_OPEN
from tidings.model import And, Filter, In, Is, IsNull, Quantifier, Range, Test
from tidings.model.values import to_microseconds
from tidings.papers.common.growable_arrays import BlockAllocator, lengthen
from tidings.papers.common.intervals import INFINITY, to_point
from tidings.papers.common.slots import Interner

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.algebra.law.event_reading import ReadValue

MAX_LOOKED_UP = 200
"""Predicates of a row that are looked up at most, since its required count has eight bits; the rest are evaluated."""

Equality: TypeAlias = "tuple[TypedAttribute, *tuple[Any, ...]]"
"""An attribute as it is read, and its value or the values of a set."""

EventSegment: TypeAlias = "tuple[float, int, float, int]"
"""The two ends of a number or range of an event, each with its side: -1 just below the number, 1 just above."""

RangePredicate: TypeAlias = "tuple[TypedAttribute, float, float, int]"
"""A range predicate: the attribute, the ends, and the bits of those that are open; a tuple, as there are millions."""


class PredicateRow(NamedTuple):
    """One conjunction: all of these must hold."""

    equalities: tuple[Equality, ...]
    ranges: tuple[RangePredicate, ...]
    evaluated: tuple[Filter, ...]


def to_rows(tree: Filter) -> tuple[PredicateRow, ...]:
    """Return the conjunctions of a filter that can hold at all; one too large for that is a single predicate."""
    parts = tree.parts if isinstance(tree, And) else (tree,)
    if all(type(part) is Test for part in parts):  # the usual filter
        conjunctions: Sequence[Sequence[Filter]] = (parts,)
    else:
        try:
            conjunctions = list_conjunctions(tree)
        except TooLarge:
            conjunctions = ((tree,),)
    return tuple(row for literals in conjunctions if (row := _to_row(literals)) is not None)


def _to_row(literals: Sequence[Filter]) -> PredicateRow | None:
    equalities: dict[Equality, None] = {}
    ranges: dict[RangePredicate, None] = {}
    evaluated: dict[Filter, None] = {}
    for literal in literals:
        looked_up = len(equalities) + len(ranges) < MAX_LOOKED_UP
        if not looked_up or type(literal) is not Test or literal.quantifier is not Quantifier.ANY:
            evaluated[literal] = None
            continue
        condition, key = strip_unit(literal.condition), resolve_attribute(literal.attribute, literal.condition)
        if type(condition) is Is:
            equalities[key, condition.value] = None
        elif type(condition) is Range and (predicate := _to_range_predicate(key, condition)):
            if predicate[1] == predicate[2] and predicate[3]:
                return None  # `(2 .. 2)` holds no point
            ranges[predicate] = None
        elif type(condition) is In:
            equalities[key, *condition.values] = None
        else:
            evaluated[literal] = None
    return PredicateRow(tuple(equalities), tuple(ranges), tuple(evaluated))


def _to_range_predicate(key: TypedAttribute, ends: Range) -> RangePredicate | None:
    """Return a range of numbers or times as a predicate, or None if an end is not exact in float64."""
    # Not by way of an `Interval`, which takes a third of a filter's compilation to build (3.6 us against 2.8).
    low = -INFINITY if ends.low is None else to_point(ends.low)
    high = INFINITY if ends.high is None else to_point(ends.high)
    if low is None or high is None:
        return None
    return key, low, high, LOW_OPEN * ends.low_open | HIGH_OPEN * ends.high_open


def _find_nearest_float(value: object) -> tuple[float, int] | None:
    """Return the float64 number nearest to a number or time, and on which side of it that lies."""
    if type(value) is float:
        return value, 0
    if type(value) is datetime:
        value = to_microseconds(value)
    elif type(value) is not int:
        return None
    near = float(value)
    return near, (value > near) - (value < near)


def to_segments(values: Sequence[ReadValue]) -> list[EventSegment]:
    """Return the segments that an attribute's numbers, times and ranges cover, ascending and apart.

    Other values have none. A range that is inverted, which only the conversion of units can leave, stays as it is.
    """
    if len(values) == 1:
        segment = _to_segment(values[0])
        return [] if segment is None else [segment]
    segments = sorted(segment for value in values if (segment := _to_segment(value)) is not None)
    if any(map(is_inverted, segments)):
        return segments
    merged: list[EventSegment] = []
    for segment in segments:
        if merged and segment[:2] <= merged[-1][2:]:
            merged[-1] = (*merged[-1][:2], *max(merged[-1][2:], segment[2:]))
        else:
            merged.append(segment)
    return merged


def is_inverted(segment: EventSegment) -> bool:
    """Tell whether a segment ends before it begins; evaluation still compares its ends one by one."""
    return segment[:2] > segment[2:]


def _to_segment(value: ReadValue) -> EventSegment | None:
    if type(value) is not Range:
        spot = _find_nearest_float(value)
        return None if spot is None else (*spot, *spot)
    low = (-INFINITY, 0) if value.low is None else _find_nearest_float(value.low)
    high = (INFINITY, 0) if value.high is None else _find_nearest_float(value.high)
    if low is None or high is None:
        return None
    return low[0], low[1] or int(value.low_open), high[0], high[1] or -int(value.high_open)


def find_required_attribute(literal: Filter) -> TypedAttribute | None:
    """Return the attribute without which a predicate cannot hold, if there is one, as the predicate reads it."""
    return resolve_test(literal) if type(literal) is Test and type(literal.condition) is not IsNull else None


def has_attribute(key: TypedAttribute | None, reading: Reading) -> bool:
    """Tell whether an event has the attribute that is needed."""
    return key is None or bool(reading.values.get(key)) or bool(reading.elements.get(key.name))


class DistinctPredicates:
    """Distinct predicates by number, how many rows use each, and how to find those that an event satisfies."""

    def __init__(self) -> None:
        self.tables: dict[TypedAttribute, dict[Any, int | list[int]]] = {}
        self.evaluated: dict[int, Filter] = {}
        self._groups: dict[TypedAttribute | None, dict[int, Filter]] = {}
        self._interner: Interner[Any] = Interner()  # of equalities, and of filters with a word before them

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


def _find_equal(table: dict[Any, int | list[int]], value: ReadValue) -> Iterable[int]:
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
        start = self._blocks.take_block(size)
        for pool in (self.pool, self.seconds):
            lengthen(pool, self._blocks.length)
            pool[start : start + used] = pool[old : old + used]
        self._blocks.release_block(old, self._sizes[at])
        self.first[at], self._sizes[at] = start, size

    def remove(self, at: int, place: int) -> int:
        """Remove the row at a place and return the row that moves there, which was the last."""
        last = self.count[at] - 1
        moved = self.pool[self.first[at] + last]
        self.pool[self.first[at] + place] = moved
        self.seconds[self.first[at] + place] = self.seconds[self.first[at] + last]
        self.count[at] = last
        if not last:  # an empty list holds no memory
            self._blocks.release_block(self.first[at], self._sizes[at])
            self._sizes[at] = 0
        return moved
