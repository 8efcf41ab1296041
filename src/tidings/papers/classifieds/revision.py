"""The final revision: what a tree of candidates leaves undecided, as flat rows that a kernel goes through.

A row is what remains of one conjunction. Equality, sets and ranges of numbers become closed float64 intervals: an
open end becomes its neighbour, and text, truth, times and places have a code for each distinct value. Whatever
an interval cannot say exactly (negations, integers that float64 does not have) is handed back, for the law; so is
an area, whose bounds are intervals that spare the law most of the asking.
Rows that went leave their entries, codes and columns to those that come.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.algebra.law.typed_attribute import Mismatch, resolve_test, strip_unit
from tidings.kernels.papers.filter_tree import revise
from tidings.model import In, Is, Point, Quantifier, Range, Test, Within
from tidings.model.areas import TURN, bounds
from tidings.papers.classifieds.path_steps import NUMBERS, close_ends, is_exact
from tidings.papers.common.interner import Interner

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tidings.algebra import Reading
    from tidings.model import Filter

CODED_TYPES = (str, datetime, Point)
"""Types whose values have codes."""

PLACE = "place"
"""How places are read."""

LON, LAT = "lon", "lat"
"""A place has a column for each of its coordinates."""


class FinalRevision:
    """Rows of intervals, by number; `set` and `clear` are given the same parts of the same row."""

    def __init__(self) -> None:
        """Start without rows."""
        self.columns, self.codes = Interner(), Interner()
        self._spans = np.zeros((0, 2), np.int64)
        self._entries = np.zeros((0, 3))
        self.used = 0
        self._free: dict[int, list[int]] = {}

    # Rows --------------------------------------------------------------------------------------

    def set_many(self, rows: Sequence[int], parts: Iterable[Iterable[Filter]]) -> list[list[Filter]]:
        """Lay down rows; of each, return the parts that the law must still be asked."""
        flat: list[float] = []
        ends: list[int] = []
        left: list[list[Filter]] = []
        for some in parts:
            left.append([part for part in some if not self._encode_part(part, flat)])
            ends.append(len(flat) // 3)
        if rows:
            self._write(rows, np.array(ends, np.int64), np.array(flat, np.float64).reshape(-1, 3))
        return left

    def clear(self, row: int, parts: Iterable[Filter]) -> None:
        """Take a row away; its entries are free for a row of the same length."""
        start, length = self._spans[row].tolist()
        if length:
            self._free.setdefault(length, []).append(start)
        self._spans[row] = 0
        for part in parts:
            for column in _list_columns(part):
                self.columns.release(self.columns.numbers[column])
            for value in _list_coded_values(part):
                self.codes.release(self.codes.numbers[value])

    def _encode_part(self, part: Filter, entries: list[float]) -> bool:
        """Write a test as intervals; tell whether they say all of it. Of an area, its bounds are told first."""
        columns = [self.columns.take(column) for column in _list_columns(part)]
        if not columns:
            return False
        condition = strip_unit(part.condition)  # type: ignore[union-attr]
        if isinstance(condition, Within):
            west, south, east, north = bounds(condition.area)
            entries += (columns[0], west, east, columns[1], south, north)
            return False
        if isinstance(condition, Range):
            entries += (columns[0], *_close_range(condition))  # type: ignore[misc]
            return True
        values = (condition.value,) if isinstance(condition, Is) else condition.values  # type: ignore[union-attr]
        for at, value in enumerate(values, 1):
            number = value if type(value) in NUMBERS else self.codes.take(value)
            entries += (columns[0] if at == len(values) else -1 - columns[0], number, number)
        return True

    def _write(self, rows: Sequence[int], ends: NDArray[np.int64], entries: NDArray[np.float64]) -> None:
        self._grow(max(rows) + 1, self.used + len(entries))
        starts = np.concatenate(([0], ends[:-1]))
        if self._free:
            for row, start, end in zip(rows, starts.tolist(), ends.tolist(), strict=True):
                self._write_row(row, entries[start:end])
            return
        self._spans[rows, 0], self._spans[rows, 1] = self.used + starts, ends - starts
        self._entries[self.used : self.used + len(entries)] = entries
        self.used += len(entries)

    def _write_row(self, row: int, entries: NDArray[np.float64]) -> None:
        length = len(entries)
        free = self._free.get(length)
        if free:
            start = free.pop()
        else:
            start = self.used
            self.used += length
        self._spans[row] = start, length
        self._entries[start : start + length] = entries

    def _grow(self, rows: int, entries: int) -> None:
        """Make room, twice what there was at least."""
        if rows > len(self._spans):
            self._spans = _grow_table(self._spans, rows)
        if entries > len(self._entries):
            self._entries = _grow_table(self._entries, entries)

    # Events ------------------------------------------------------------------------------------

    def find_survivors(self, rows: NDArray[np.int32], reading: Reading) -> NDArray[np.int32] | None:
        """Return the rows whose intervals the reading meets; nothing where it has values that intervals cannot hold."""
        where = np.zeros((max(1, len(self.columns.values)), 2), np.int64)
        values: list[float] = []
        columns = self.columns.numbers
        for name, event_values in reading.values.items():
            if name[1] == PLACE:
                places = [place for place in event_values if type(place) is Point]
                for axis, numbers in (
                    ((name, LON), _list_longitudes(places)),
                    ((name, LAT), [place.lat for place in places]),
                ):
                    if (column := columns.get(axis)) is not None:
                        where[column] = len(values), len(values) + len(numbers)
                        values += numbers
            column = columns.get(name)
            if column is not None:
                start = len(values)
                if not self._encode_values(event_values, values):
                    return None
                where[column] = start, len(values)
        survivors: NDArray[np.int32] = revise(rows, self._spans, self._entries, where, np.array(values, np.float64))
        return survivors

    def _encode_values(self, event_values: tuple[Any, ...], values: list[float]) -> bool:
        """Write down values as numbers; tell whether that could be done. What could not be read lies nowhere."""
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


def _list_longitudes(places: Iterable[Any]) -> list[float]:
    """Return longitudes, and each a turn to either side: an area may go on beyond the antimeridian."""
    return [place.lon + turn for place in places for turn in (0.0, -TURN, TURN)]


def _list_columns(part: Filter) -> tuple[Any, ...]:
    """Return the columns of a test that is a union of intervals with exact ends, or of an area's bounds; or none."""
    if type(part) is not Test or part.quantifier is not Quantifier.ANY:
        return ()
    condition, name = strip_unit(part.condition), resolve_test(part)
    kind = type(condition)
    if kind is Range:
        return (name,) if _close_range(condition) else ()  # type: ignore[arg-type]
    if kind is Is:
        return (name,) if _is_exact_value(condition.value) else ()  # type: ignore[union-attr]
    if kind is In:
        return (name,) if all(map(_is_exact_value, condition.values)) else ()  # type: ignore[union-attr]
    return ((name, LON), (name, LAT)) if kind is Within else ()


def _is_exact_value(value: Any) -> bool:
    """Tell whether a value has a code, or is the same number in float64."""
    return type(value) in CODED_TYPES or is_exact(value)


def _close_range(span: Range) -> tuple[float, float] | None:
    return close_ends(span.low, span.high, span.low_open, span.high_open)


def _list_coded_values(part: Filter) -> list[Any]:
    """Return the values of a test in intervals that have codes."""
    if not _list_columns(part):
        return []
    condition = strip_unit(part.condition)  # type: ignore[union-attr]
    values: tuple[Any, ...] = ()
    if isinstance(condition, Is):
        values = (condition.value,)
    elif isinstance(condition, In):
        values = condition.values
    return [value for value in values if type(value) not in NUMBERS]


def _grow_table(table: NDArray[Any], rows: int) -> NDArray[Any]:
    grown = np.zeros((max(rows, 2 * len(table)), table.shape[1]), table.dtype)
    grown[: len(table)] = table
    return grown
