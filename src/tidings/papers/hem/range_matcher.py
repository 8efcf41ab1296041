"""The shared half of range matchers: filters become rows of a table, events become vectors, rows become ids again.

A paper's matcher is a `RangeIndex`: it indexes rows of the table and finds those that contain a vector. All support
ranges and equality of numbers and times under `and` and `or` (`intervals`); the rest is refused. An event that
has several values of an attribute, or a range, or a number that no float equals, is no vector: the papers have no such
events, and each filter is evaluated on it instead. A column is an attribute as tests read it: as numbers (in some
unit), as times, or as anything that exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tidings.algebra import Reading, Setting, holds
from tidings.algebra.law.typed_attribute import TypedAttribute
from tidings.matcher.algorithm import Algorithm, SubId
from tidings.papers.common.intervals import NO_COORDINATE, Interval, to_boxes, to_coordinate
from tidings.papers.hem.range_table import RangeTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.kernels.array_types import FloatArray, Int32Array
    from tidings.model import Filter

PRESENT = 0.0
"""The coordinate of an attribute of which only the existence is tested."""


class RangeIndex(Protocol):
    """An index over the rows of a table.

    `insert` is called when the table has the rows, `delete` before it forgets them. The table may have grown between
    two calls: its arrays are other ones then, with more attributes and more room for rows.
    """

    def insert(self, table: RangeTable, rows: Int32Array) -> None:
        """Index rows that the table has just got."""

    def delete(self, table: RangeTable, rows: Int32Array) -> None:
        """Forget rows that the table still has."""

    def match(self, table: RangeTable, vector: FloatArray) -> Int32Array:
        """Return the rows that contain the vector, each once; NaN stands for an attribute that the event lacks."""

    def explain(self, table: RangeTable) -> dict[str, object]:
        """Return what the index looks like, in plain values."""


class FilterBoxes(NamedTuple):
    """A filter, and the boxes of which one must contain an event."""

    tree: Filter
    boxes: list[dict[TypedAttribute, Interval]]


class RangeMatcher(Algorithm):
    """A range matcher behind the protocol of algorithms; the index finds the rows."""

    def __init__(self, kind: str, index: RangeIndex) -> None:
        """Start without filters; `kind` is what errors and `explain` call the matcher."""
        self._kind, self.index = kind, index
        self.table = RangeTable(kind)
        self._filters: dict[SubId, tuple[Filter, Int32Array]] = {}  # each with its rows
        self._owners: list[SubId] = []  # of each row; of free ones nobody asks
        self._multi_row_filters = 0

    def compile_filter(self, tree: Filter) -> FilterBoxes:
        """Return the filter as boxes, or refuse it."""
        return FilterBoxes(tree, to_boxes(tree, self._kind))

    def add_many(self, filters: Iterable[tuple[SubId, FilterBoxes]]) -> None:
        """Take filters in; a known id is replaced."""
        latest = dict(filters)
        # First of all, since it may refuse them.
        rows = self.table.add([box for compiled in latest.values() for box in compiled.boxes])
        self._forget([self._filters.pop(id)[1] for id in latest if id in self._filters])
        self._owners += [""] * (self.table.capacity - len(self._owners))
        begin = 0
        for id, compiled in latest.items():
            filter_rows = rows[begin : begin + len(compiled.boxes)]
            begin += len(filter_rows)
            self._filters[id] = compiled.tree, filter_rows
            self._multi_row_filters += len(filter_rows) > 1
            for row in filter_rows.tolist():
                self._owners[row] = id
        self.index.insert(self.table, rows)

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""
        self._forget([self._filters.pop(id)[1]])

    def _forget(self, gone: list[Int32Array]) -> None:
        if gone:
            rows = np.concatenate(gone)
            self._multi_row_filters -= sum(len(filter_rows) > 1 for filter_rows in gone)
            self.index.delete(self.table, rows)
            self.table.discard(rows)

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading, each once."""
        vector = self.to_vector(reading)
        if vector is None:
            return [id for id, (tree, _) in self._filters.items() if holds(tree, reading, setting)]
        ids = list(map(self._owners.__getitem__, self.index.match(self.table, vector).tolist()))
        return list(dict.fromkeys(ids)) if self._multi_row_filters else ids

    def to_vector(self, reading: Reading) -> FloatArray | None:
        """Return an event as coordinates by column, or None if some attribute has no single one."""
        columns = self.table.columns
        vector = np.full(len(columns), NO_COORDINATE)
        for key, values in reading.values.items():
            if values:
                point = to_coordinate(values) if key[1] else PRESENT
                if point is None:
                    return None  # even where no row has the column: `a = 0 and a = 1` has no box, and [0, 1] matches it
                column = columns.get(key)
                if column is not None:
                    vector[column] = point
        for name, parts in reading.elements.items():
            column = columns.get(TypedAttribute(name))
            if parts and column is not None:
                vector[column] = PRESENT
        return vector

    def explain(self) -> dict[str, object]:
        """Return what is indexed."""
        about = {"algorithm": self._kind, "filters": len(self._filters), "rows": self.table.count}
        return {**about, "attributes": len(self.table.columns), **self.index.explain(self.table)}
