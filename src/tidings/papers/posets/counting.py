"""Counting: predicates are looked up, each row counts those of its predicates that hold; all of them is a match.

Tarkoma's text on poset routing, section 3.7: the counter algorithm, with a preliminary elimination phase, hash tables
for equality and interval trees for ranges. A filter is a disjunction of conjunctions; each conjunction is a row, and
equal predicates are stored once. An event's values are looked up: equal values by hash, ranges by the interval index of
`interval_index`; a predicate that no index has is evaluated, at most once for each event.

Elimination, before anything is counted: a row with an equality is filed under one of them, the one with the fewest
rows (its access predicate), and only when that holds is the row counted, over its own list of predicates, up to the
first that fails. Rows of ranges alone are counted from the index, in counters that carry their event's number and so
need no clearing. Rows of evaluated predicates alone are filed under one of those. No predicate of an attribute that the
event lacks is looked up or evaluated, and the evaluated ones of a row only where all others held. `access=False` leaves
the elimination out: every predicate that holds is counted for all its rows, the basic algorithm of the text. Predicates
that are looked up gain nothing by it (measured); where predicates are evaluated, the matcher is unusable without.

Cost: match O(values + log n for each range attribute + rows counted + predicates evaluated); add and remove
O(predicates), amortised O(log n) for each range; space O(predicates of all rows). It supports every filter: one too
large for a normal form is a single evaluated predicate. See README.md here.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings import forks
from tidings.algebra import Reading, Setting, holds
from tidings.kernels.papers.counting import POSTED, AttributeMarks, EventSegments, PostingLists, RowCounters, match
from tidings.papers.common.growable_arrays import BlockAllocator, as_numpy, lengthen
from tidings.papers.common.slots import Interner, RowOwners
from tidings.papers.posets.interval_index import MAX_WAITING, IntervalIndex
from tidings.papers.posets.predicates import (
    DistinctPredicates,
    PostingPool,
    PredicateRow,
    find_required_attribute,
    is_inverted,
    to_rows,
    to_segments,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.kernels.array_types import Int32Array, IntArray
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter

BATCH_EVENTS = 256
"""Events that are counted in one go."""

MAX_COUNTED = 250
"""Predicates that one row may count; a counter's need has eight bits."""


class Counting:
    """Counts, for each row, how many of its predicates an event satisfies."""

    def __init__(self, *, access: bool = True, max_waiting: int = MAX_WAITING) -> None:
        """Start without filters; `access` turns the elimination phase on, `max_waiting` is for the interval index."""
        self._access = access
        self.predicates, self._lists, self.range_index = DistinctPredicates(), PostingPool(), IntervalIndex(max_waiting)
        self.attributes: Interner[TypedAttribute] = Interner()  # those of ranges, as they are read
        self._owners = RowOwners()
        # Of each row: how many predicates it must count, and where its block of items begins.
        self._required_counts, self._first = array("B"), array("i")
        self._blocks = BlockAllocator()
        self._items, self._places = array("i"), array("i")
        self.deferred: dict[int, tuple[int, ...]] = {}  # of a row: predicates to evaluate when all others hold
        self._always: dict[SubId, None] = {}
        self._counts = np.zeros(0, np.uint16)
        self._stamps = np.zeros(0, np.int64)
        self._marks = AttributeMarks(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._clock = np.array([0, 0, 1], np.int64)
        self._min_required = MAX_COUNTED  # of rows that are counted; it may be too low, never too high
        self.lock = RLock()  # the counters serve one call at a time
        forks.guard(self, forks.Level.ALGORITHM)

    def compile_filter(self, tree: Filter) -> tuple[PredicateRow, ...]:
        """Return the filter's conjunctions, sorted into predicates that are looked up and those that are evaluated."""
        return to_rows(tree)

    def add_many(self, filters: Iterable[tuple[SubId, tuple[PredicateRow, ...]]]) -> None:
        """Take compiled filters in; a known id is replaced."""
        with self.lock:
            for id, rows in filters:
                if id in self._owners:
                    self.remove(id)
                if any(not (row.equalities or row.ranges or row.evaluated) for row in rows):
                    self._always[id], rows = None, ()
                self._owners.assign(id, tuple([self._add_row(id, row) for row in rows]))

    @forks.with_lock
    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""
        for row in self._owners.release(id):
            self._remove_row(row)
        self._always.pop(id, None)

    def _add_row(self, id: SubId, row: PredicateRow) -> int:
        number = self._owners.allocate(id)
        if number == len(self._first):
            self._required_counts.append(0)
            self._first.append(0)
        equalities = [self.predicates.add_equality(predicate) for predicate in row.equalities]
        evaluated = [self.predicates.add_evaluated(predicate) for predicate in row.evaluated]
        for pred in (*equalities, *evaluated):
            self._lists.open(pred)
        by_index = not (self._access and equalities) and bool(row.ranges)
        if self._access:
            filed = self._choose_access(equalities, evaluated) if not by_index else []
        else:
            room = MAX_COUNTED - len(equalities) - len(row.ranges)
            filed = equalities = equalities + evaluated[:room]
            evaluated = evaluated[room:]
        items = [(POSTED, pred) for pred in dict.fromkeys([*filed, *equalities])]
        for key, low, high, opens in row.ranges:
            attr = self.attributes.take(key)
            entry = self.range_index.add(attr, low, high, opens=opens, row=number if by_index else -1)
            items.append((attr, entry))
        if left := [pred for pred in evaluated if pred not in filed]:
            self.deferred[number] = tuple(left)
        self._required_counts[number] = need = len(row.ranges) + (0 if self._access else len(filed))
        self._clock[2] = max(self._clock[2], need + 1)
        self._min_required = min(self._min_required, need or MAX_COUNTED)
        self._store_row(number, items, filed)
        return number

    def _choose_access(self, equalities: list[int], evaluated: list[int]) -> list[int]:
        """Return the access predicate: the equality with the fewest rows, else one that has to be evaluated."""
        if equalities:
            return [min(equalities, key=self._lists.count.__getitem__)]
        positive = [pred for pred in evaluated if find_required_attribute(self.predicates.evaluated[pred]) is not None]
        return [min(positive or evaluated, key=lambda pred: -self._lists.count[pred])]

    def _store_row(self, number: int, items: list[tuple[int, int]], filed: list[int]) -> None:
        self._first[number] = start = self._blocks.take_block(2 + 2 * len(items))
        lengthen(self._items, self._blocks.length)
        lengthen(self._places, self._blocks.length)
        self._items[start], self._items[start + 1] = number, len(items)
        entered = start if self._access else number
        second = items[1][1] if len(items) > 1 and items[1][0] == POSTED else -1
        for at, (attr, ref) in zip(range(start + 2, start + 2 + 2 * len(items), 2), items, strict=True):
            self._items[at], self._items[at + 1] = attr, ref
            self._places[at] = -1
            if attr == POSTED and ref in filed:
                self._places[at] = place = self._lists.add(ref, entered, second)
                if not place and ref in self.predicates.evaluated:
                    self.predicates.watch(ref)

    def _remove_row(self, number: int) -> None:
        for at in self._get_item_range(number):
            attr, ref, place = self._items[at], self._items[at + 1], self._places[at]
            if attr != POSTED:
                self.range_index.remove(ref)
                self.attributes.release(attr)
                continue
            if place >= 0:
                self._remove_posting(ref, place)
            self.predicates.release(ref)
        for pred in self.deferred.pop(number, ()):
            self.predicates.release(pred)
        self._blocks.release_block(self._first[number], 2 + 2 * self._items[self._first[number] + 1])

    def _get_item_range(self, number: int) -> range:
        """Return the indexes of the attributes of a row's items; what each refers to comes right after."""
        start = self._first[number]
        return range(start + 2, start + 2 + 2 * self._items[start + 1], 2)

    def _remove_posting(self, pred: int, place: int) -> None:
        """Take a row out of a predicate's list; the last row there moves to its place."""
        moved = self._lists.remove(pred, place)
        if not self._lists.count[pred]:
            if pred in self.predicates.evaluated:
                self.predicates.unwatch(pred)
            return
        for at in self._get_item_range(self._items[moved] if self._access else moved):
            if self._items[at] == POSTED and self._items[at + 1] == pred:
                self._places[at] = place
                return

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        return self.match_many((reading,), setting)[0]

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        """Return the same for each of many readings."""
        matches: list[list[SubId]] = []
        with self.lock:
            for start in range(0, len(readings), BATCH_EVENTS):
                matches += self._match_batch(readings[start : start + BATCH_EVENTS], setting)
        return matches

    def _match_batch(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        memos: list[dict[int, bool]] = [{} for _ in readings]
        rows, first = self._count_rows(self._look_up_events(readings, setting, memos))
        matches: list[list[SubId]] = []
        for (start, stop), reading, memo in zip(pairwise(first.tolist()), readings, memos, strict=True):
            counted = rows[start:stop].tolist()
            if self.deferred:
                counted = [row for row in counted if self._evaluate_deferred(row, reading, setting, memo)]
            matches.append([*self._always, *self._owners.resolve(counted)])
        return matches

    def _evaluate_deferred(self, row: int, reading: Reading, setting: Setting, memo: dict[int, bool]) -> bool:
        for pred in self.deferred.get(row, ()):
            true = memo.get(pred)
            if true is None:
                memo[pred] = true = holds(self.predicates.evaluated[pred], reading, setting)
            if not true:
                return False
        return True

    def _look_up_events(
        self, readings: Sequence[Reading], setting: Setting, memos: list[dict[int, bool]]
    ) -> EventSegments:
        """Return the predicates that each event satisfies, and its numbers as segments."""
        hits, hits_first = array("i"), array("q", (0,))
        attrs, segments_first, inverted = array("i"), array("q", (0,)), array("B")
        low, low_side, high, high_side = array("d"), array("b"), array("d"), array("b")
        for reading, memo in zip(readings, memos, strict=True):
            hits.extend(self.predicates.find_satisfied(reading, setting, memo))
            hits_first.append(len(hits))
            has_inverted = False
            for key, values in reading.values.items():
                attr = self.attributes.numbers.get(key)
                if attr is None or not values:
                    continue
                for segment in to_segments(values):
                    has_inverted = has_inverted or is_inverted(segment)
                    attrs.append(attr)
                    low.append(segment[0])
                    low_side.append(segment[1])
                    high.append(segment[2])
                    high_side.append(segment[3])
            segments_first.append(len(attrs))
            inverted.append(has_inverted)
        columns: tuple[array[Any], ...] = (hits_first, hits, segments_first, attrs, low, low_side, high, high_side)
        return EventSegments(*map(as_numpy, (*columns, inverted)))

    def _count_rows(self, events: EventSegments) -> tuple[Int32Array, IntArray]:
        entries, lists = self.range_index.get_entries(), self._lists
        self._counts = _ensure_length(self._counts, self._owners.capacity)
        self._stamps = _ensure_length(self._stamps, len(self.predicates))
        self._marks = AttributeMarks(*(_ensure_length(mark, len(self.attributes.values)) for mark in self._marks))
        rows = RowCounters(self._counts, as_numpy(self._required_counts), self._min_required, as_numpy(self._items))
        first, count, pool, seconds = map(as_numpy, (lists.first, lists.count, lists.pool, lists.seconds))
        every = np.arange(len(entries.rows) if events.inverted.any() else 0, dtype=np.int32)
        matches: tuple[Int32Array, IntArray] = match(
            self.range_index.tree, entries, every, rows, PostingLists(first, count, pool, seconds, self._stamps),
            events, self._marks, self._access, self._clock,
        )  # fmt: skip
        return matches

    def explain(self) -> dict[str, object]:
        """Return how many rows and distinct predicates there are, and how they are found."""
        return {
            "algorithm": "counting",
            "elimination": "by an access predicate" if self._access else "none",
            "filters": len(self._owners),
            "rows": self._owners.row_count,
            "distinct predicates": self.predicates.count,
            "of them asked of the law": len(self.predicates.evaluated),
            "ranges": self.range_index.summarize(),
        }


def _ensure_length(values: NDArray[Any], length: int) -> NDArray[Any]:
    """Return the marks, or fresh ones for more items: an old mark means nothing to the next event."""
    return values if len(values) >= length else np.zeros(length + length // 4, values.dtype)
