"""The final revision: the tests that the tree does not decide, as flat rows that a kernel checks.

A row is the rest of one conjunction. Equality, sets and ranges of numbers become closed float64 intervals: an open end
becomes its neighbour, and text, truth, times and places have a code for each distinct value. A test that intervals
cannot express exactly (a negation, an integer that float64 does not have) is returned, to be evaluated; so is an area,
whose bounds are intervals that rule out most events before. The entries, codes and columns of removed rows are used
again.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.algebra.law.typed_attribute import Mismatch, resolve_test, strip_unit
from tidings.engine.arrays import expand_ranges
from tidings.kernels.papers.revision import revise
from tidings.model import Filter, In, Is, Point, Quantifier, Range, Test, Within
from tidings.model.areas import FULL_TURN_DEG, find_bounds
from tidings.papers.classifieds.path_steps import NUMBERS, close_ends, is_exact
from tidings.papers.common.growable_arrays import BlockAllocator, grow_rows
from tidings.papers.common.slots import Interner

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from tidings.algebra import Reading
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.kernels.array_types import Int32Array

CODED_TYPES = (str, datetime, Point)
"""Types whose values have codes."""

PLACE = "place"
"""How places are read."""

LON, LAT = "lon", "lat"
"""A place has a column for each of its coordinates."""

_ColumnKey: TypeAlias = "TypedAttribute | tuple[TypedAttribute, str]"
"""A column's attribute, and of a place which coordinate."""

_IntervalTest: TypeAlias = "tuple[tuple[_ColumnKey, ...], tuple[tuple[Any, Any], ...], bool]"
"""A test as intervals: its columns, the intervals, and whether they are exact. Alternatives of its only column, or one
for each of several columns that must all hold."""


class FinalRevision:
    """Rows of intervals, by number; `set_many` and `clear` must get the same parts for a row."""

    def __init__(self) -> None:
        self.columns: Interner[_ColumnKey] = Interner()
        self.codes: Interner[Hashable] = Interner()
        self._spans = np.zeros((0, 2), np.int64)
        self._entries = np.zeros((0, 3))
        self.blocks = BlockAllocator()

    def set_many(self, rows: Sequence[int], parts: Iterable[Iterable[Filter]]) -> list[list[Filter]]:
        """Write rows; return, of each, the parts that must still be evaluated."""
        flat: list[float] = []
        lengths: list[int] = []
        undecided: list[list[Filter]] = []
        for row_parts in parts:
            begin = len(flat)
            undecided.append([part for part in row_parts if not self._encode_part(part, flat)])
            lengths.append((len(flat) - begin) // 3)
        if rows:
            starts = [self.blocks.take_block(length) for length in lengths]
            self._spans = grow_rows(self._spans, max(rows) + 1)
            self._entries = grow_rows(self._entries, self.blocks.length)
            entries = np.array(flat, np.float64).reshape(-1, 3)
            if len(rows) == 1:  # for a row that comes alone, indexing by arrays would cost as much as all the rest
                self._spans[rows[0]] = starts[0], lengths[0]
                self._entries[starts[0] : starts[0] + lengths[0]] = entries
            else:
                self._spans[rows] = np.array((starts, lengths)).T
                self._entries[expand_ranges(*self._spans[rows].T)] = entries
        return undecided

    def clear(self, row: int, parts: Iterable[Filter]) -> None:
        """Remove a row."""
        self.blocks.release_block(*self._spans[row].tolist())
        self._spans[row] = 0
        for columns, intervals, _ in filter(None, map(_to_interval_test, parts)):
            for column in columns:
                self.columns.release(self.columns.numbers[column])
            for value, _ in intervals:
                if type(value) not in NUMBERS:
                    self.codes.release(self.codes.numbers[value])

    def _encode_part(self, part: Filter, entries: list[float]) -> bool:
        """Append a test as intervals; return whether they express all of it."""
        test = _to_interval_test(part)
        if test is None:
            return False
        keys, intervals, is_whole = test
        columns = [self.columns.take(key) for key in keys]
        if len(columns) < len(intervals):  # alternatives: all but the last are marked
            columns = [-1 - columns[0]] * (len(intervals) - 1) + columns
        for column, (low, high) in zip(columns, intervals, strict=True):
            if type(low) not in NUMBERS:
                low = high = self.codes.take(low)
            entries += (column, low, high)
        return is_whole

    def find_survivors(self, rows: Int32Array, reading: Reading) -> Int32Array | None:
        """Return the rows whose intervals the reading meets; None where it has values that intervals cannot hold."""
        where = np.zeros((max(1, len(self.columns.values)), 2), np.int64)
        values: list[float] = []
        columns = self.columns.numbers
        for name, event_values in reading.values.items():
            if name[1] == PLACE:
                places = [place for place in event_values if type(place) is Point]
                # An area may continue beyond the antimeridian, so each longitude counts a turn to either side as well.
                longitudes = [place.lon + turn for place in places for turn in (0.0, -FULL_TURN_DEG, FULL_TURN_DEG)]
                for axis, numbers in ((LON, longitudes), (LAT, [place.lat for place in places])):
                    if (column := columns.get((name, axis))) is not None:
                        where[column] = len(values), len(values) + len(numbers)
                        values += numbers
            column = columns.get(name)
            if column is not None:
                start = len(values)
                if not self._encode_values(event_values, values):
                    return None
                where[column] = start, len(values)
        survivors: Int32Array = revise(rows, self._spans, self._entries, where, np.array(values, np.float64))
        return survivors

    def _encode_values(self, event_values: tuple[Any, ...], values: list[float]) -> bool:
        """Append values as numbers, without those that could not be read; return whether that was possible."""
        codes = self.codes.numbers
        for value in event_values:
            kind = type(value)
            if kind in NUMBERS:
                if float(value) != value:
                    return False
                values.append(float(value))
            elif kind is Range:
                return False
            elif kind is not Mismatch:
                values.append(codes.get(value, -1))
        return True


def _to_interval_test(part: Filter) -> _IntervalTest | None:
    """Return a test as intervals, or None where it has none with exact ends; of an area, as its bounds."""
    if type(part) is not Test or part.quantifier is not Quantifier.ANY:
        return None
    name, condition = resolve_test(part), strip_unit(part.condition)
    if isinstance(condition, Range):
        ends = close_ends(condition.low, condition.high, condition.low_open, condition.high_open)
        return None if ends is None else ((name,), (ends,), True)
    if isinstance(condition, Within):
        west, south, east, north = find_bounds(condition.area)
        return ((name, LON), (name, LAT)), ((west, east), (south, north)), False
    if not isinstance(condition, Is | In):
        return None
    values = (condition.value,) if isinstance(condition, Is) else condition.values
    for value in values:
        if not (type(value) in CODED_TYPES or is_exact(value)):
            return None
    return (name,), tuple([(value, value) for value in values]), True
