"""The shared half of range matchers: filters become rows of a table, events become vectors, rows become ids again.

A paper's matcher is a `Core`: it indexes rows of the table and finds those that hold a vector. An event that has
several values of an attribute that is asked for, or a range, or a number that no float equals, is no vector: the
papers know no such events, and it is decided filter by filter, by the law. A column is an attribute as tests read it:
as numbers (in some unit), as times, or as anything that exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tidings.algebra import holds
from tidings.algebra.law.typed_attribute import TypedAttribute
from tidings.papers.common.intervals import ABSENT, to_boxes, to_coordinate
from tidings.papers.hem.range_table import RangeTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tidings.algebra import Reading, Setting
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.papers.common.intervals import Interval

PRESENT = 0.0
"""The coordinate of an attribute that is only asked whether it exists."""


class RangeIndex(Protocol):
    """An index over the rows of a table.

    `insert` is told when the table has the rows, `delete` before it forgets them. The table may have grown in
    between: its arrays are other ones then, with more attributes and more room for rows.
    """

    def insert(self, table: RangeTable, rows: NDArray[np.int32]) -> None:
        """Index rows that the table has just got."""

    def delete(self, table: RangeTable, rows: NDArray[np.int32]) -> None:
        """Forget rows that the table still has."""

    def match(self, table: RangeTable, vector: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the rows that hold the vector, each once; NaN stands for what the event lacks."""

    def explain(self, table: RangeTable) -> dict[str, object]:
        """Return what the index looks like, in plain values."""


class FilterBoxes(NamedTuple):
    """A filter, and the boxes one of which must hold an event."""

    tree: Filter
    boxes: list[dict[TypedAttribute, Interval]]


class _StoredFilter(NamedTuple):
    tree: Filter
    rows: NDArray[np.int32]


class RangeMatcher:
    """A range matcher behind the protocol of algorithms: the core does the work."""

    def __init__(self, kind: str, core: RangeIndex) -> None:
        """Start without filters; `kind` is what errors and `explain` call the matcher."""
        self._kind, self.index = kind, core
        self.table = RangeTable(kind)
        self._filters: dict[SubId, _StoredFilter] = {}
        self._owners: list[SubId | None] = []
        self._multi_row_filters = 0

    def compile_filter(self, tree: Filter) -> FilterBoxes:
        """Return the filter as boxes, or refuse it."""
        return FilterBoxes(tree, to_boxes(tree, self._kind))

    def add_many(self, filters: Iterable[tuple[SubId, FilterBoxes]]) -> None:
        """Take filters in; a known id is replaced."""
        compiled_filters = dict(filters)
        rows = self.table.add(
            [box for compiled in compiled_filters.values() for box in compiled.boxes]
        )  # first: it may refuse
        replaced = [self._filters.pop(id).rows for id in compiled_filters if id in self._filters]
        self._forget(replaced)
        self._owners += [None] * (self.table.capacity - len(self._owners))
        begin = 0
        for id, compiled in compiled_filters.items():
            filter_rows = rows[begin : begin + len(compiled.boxes)]
            begin += len(filter_rows)
            self._filters[id] = _StoredFilter(compiled.tree, filter_rows)
            self._multi_row_filters += len(filter_rows) > 1
            for row in filter_rows.tolist():
                self._owners[row] = id
        self.index.insert(self.table, rows)

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""
        self._forget([self._filters.pop(id).rows])

    def _forget(self, gone: list[NDArray[np.int32]]) -> None:
        if gone:
            rows = np.concatenate(gone)
            self._multi_row_filters -= sum(len(some) > 1 for some in gone)
            self.index.delete(self.table, rows)
            self.table.discard(rows)

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading, each once."""
        vector = self.to_vector(reading)
        if vector is None:
            return [id for id, kept in self._filters.items() if holds(kept.tree, reading, setting)]
        owners = self._owners
        ids: list[SubId] = [owners[row] for row in self.index.match(self.table, vector).tolist()]
        return list(dict.fromkeys(ids)) if self._multi_row_filters else ids

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        """Return the same for each of many readings."""
        return [self.match(reading, setting) for reading in readings]

    def to_vector(self, reading: Reading) -> NDArray[np.float64] | None:
        """Return an event as coordinates in the table's order, or nothing if some attribute has no single one."""
        columns = self.table.columns
        vector = np.full(len(columns), ABSENT)
        for key, values in reading.values.items():
            if values:
                point = to_coordinate(values) if key[1] else PRESENT
                if point is None:
                    return None  # also where no row asks: `a = 0 and a = 1` has no box, and holds for both at once
                place = columns.get(key)
                if place is not None:
                    vector[place] = point
        for name, parts in reading.elements.items():
            place = columns.get(TypedAttribute(name))
            if parts and place is not None:
                vector[place] = PRESENT
        return vector

    def explain(self) -> dict[str, object]:
        """Say what is indexed."""
        about = {"algorithm": self._kind, "filters": len(self._filters), "rows": self.table.count}
        return {**about, "attributes": len(self.table.columns), **self.index.explain(self.table)}
