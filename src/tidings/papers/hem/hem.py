"""HEM: hybrid event matching, by triangles or directly, attribute by attribute (Fan, Liu, Tang 2016, section 4).

A range on one attribute is a point in a triangle: its middle and half its width. A value cuts two smaller triangles
off, those of the ranges that end below it and that begin above it; whole cells of a grid lie in them, and only the
cells on the two lines are compared (Algorithm 1). Or the candidates that are left are visited one by one
(Algorithm 2). The attributes go in ascending order of matching rate, by triangles first and directly from where
that is cheaper (Algorithm 4); the counts that tell the rates are kept as rows come and go.

N rows, M attributes. Insert, delete: O(M). Match: O(N) to begin with all candidates, then the rows of the triangles
that are walked, and the candidates that are left for the rest. Space: O(N M).

Cannot express: anything but ranges and equality of numbers and times under `and` and `or` (see `intervals`).
Corrected (README.md here): the height of a cell in Formula 3, the end of Algorithm 1's second loop, Theorem 4 on
`[v, v)`, theta for "matching rate" in 4.3.3, and domains, which nobody has to declare here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from tidings.kernels.papers import hem as kernels
from tidings.kernels.papers.domain_cells import WANTED
from tidings.papers.common.row_lists import RowLists
from tidings.papers.hem.domains import Domains, to_range_ends
from tidings.papers.hem.range_table import grow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.papers.hem.range_table import RangeTable


class Hem:
    """The index of HEM. Triangles take rows out of a set of candidates; the direct method visits those that are left.

    `candidates="linked"` is the paper's linked list beside the set: the direct method walks it, and drops what fails
    or is gone from the set. By default what is left of the set is copied to an array before the first direct
    matching, which takes half the time at a million rows (benchmarks/papers/hem measures both).

    `plan="optimal"` tries every plan that the paper's observations allow, for comparison (its Figure 10).
    """

    def __init__(
        self,
        *,
        candidates: Literal["linked", "array"] = "array",
        plan: Literal["near-optimal", "optimal"] = "near-optimal",
    ) -> None:
        """Start empty."""
        self._linked = candidates == "linked"
        self._plan = plan
        self.domains = Domains()
        self.lists = RowLists(0)
        self._places = np.zeros((0, 0), np.int32)
        self.closed_ends = np.zeros((0, 0))
        self._low_counts = np.zeros((0, kernels.BUCKETS), np.int64)
        self._high_counts = np.zeros((0, kernels.BUCKETS), np.int64)
        self._constrained = np.zeros(0, np.int64)
        self._rows = 0
        self._member = np.zeros(0, np.uint8)
        self._after, self._before = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self._list, self._set = self._after, self._member
        self._out = np.zeros(1, np.int32)
        self.theta, self._order, self._methods = np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64)

    # Rows --------------------------------------------------------------------------------------

    def insert(self, table: RangeTable, rows: NDArray[np.int32]) -> None:
        """Index rows: a cell on each attribute, the counts of their ends, and a link in the list of all."""
        self._grow(table)
        if self.domains.observe(table, rows):
            self.domains.settle(table)
            everything = np.flatnonzero(table.alive[: table.rows]).astype(np.int32)
            self.lists = RowLists(len(self.lists.starts))
            self._low_counts[:], self._high_counts[:], self._constrained[:] = 0, 0, 0
            self._index(table, everything)
        else:
            self._index(table, rows)
        kernels.link(rows, len(self._member), self._after, self._before)
        self._member[rows] = 1
        self._rows += len(rows)

    def delete(self, table: RangeTable, rows: NDArray[np.int32]) -> None:
        """Take rows out of their cells, the counts and the list."""
        for m in range(len(self._constrained)):  # a filter that replaces these may have brought attributes to the table
            mine = rows[(table.ends[m, rows] & WANTED) != 0]
            if len(mine):
                self.lists.remove(self._find_cells(table, m, mine), mine, self._places[m])
                self._count(table, m, mine, by=-1)
        kernels.unlink(rows, self._after, self._before)
        self._member[rows] = 0
        self._rows -= len(rows)
        self.domains.shrink(self._rows)

    def _index(self, table: RangeTable, rows: NDArray[np.int32]) -> None:
        for m in range(len(table.columns)):
            kernels.close_ends(to_range_ends(table), rows, m, self.closed_ends)
            mine = rows[(table.ends[m, rows] & WANTED) != 0]
            if len(mine):
                self.lists.push(self._find_cells(table, m, mine), mine, self._places[m])
                self._count(table, m, mine, by=1)

    def _find_cells(self, table: RangeTable, m: int, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        cells = np.empty(len(rows), np.int32)
        kernels.find_cells(to_range_ends(table), rows, self.domains.domain, m, cells)
        return cells

    def _count(self, table: RangeTable, m: int, rows: NDArray[np.int32], *, by: int) -> None:
        about = to_range_ends(table), rows, self.domains.domain, m
        self._constrained[m] += by * kernels.count_ends(*about, by, self._low_counts, self._high_counts)

    def _grow(self, table: RangeTable) -> None:
        """Follow the table: more attributes, more rows."""
        columns, room = len(table.columns), table.capacity
        if columns > len(self._constrained):
            self.lists.extend(columns * kernels.CELLS)
            more = columns - len(self._constrained)
            self._low_counts = np.vstack([self._low_counts, np.zeros((more, kernels.BUCKETS), np.int64)])
            self._high_counts = np.vstack([self._high_counts, np.zeros((more, kernels.BUCKETS), np.int64)])
            self._constrained = np.concatenate([self._constrained, np.zeros(more, np.int64)])
            self.theta = np.zeros(columns)
            self._order, self._methods = np.zeros(columns, np.int64), np.zeros(columns, np.int64)
        if (columns, room) != self._places.shape:
            self._places = grow(self._places, (columns, room))
            self.closed_ends = self._grow_closed_ends(columns, room)
        if room > len(self._member):
            self._relink(room)

    def _grow_closed_ends(self, columns: int, room: int) -> NDArray[np.float64]:
        """Return the closed ends with more attributes and rows, which reach from end to end until they ask for less."""
        closed = np.empty((columns, 2 * room))
        closed[:, 0::2], closed[:, 1::2] = -np.inf, np.inf
        closed[: self.closed_ends.shape[0], : self.closed_ends.shape[1]] = self.closed_ends
        return closed

    def _relink(self, room: int) -> None:
        """Move the head of the list behind the last row there is room for."""
        members = np.flatnonzero(self._member).astype(np.int32)
        self._member = np.concatenate([self._member, np.zeros(room - len(self._member), np.uint8)])
        self._after, self._before = np.zeros(room + 1, np.int32), np.zeros(room + 1, np.int32)
        self._after[room] = self._before[room] = room
        kernels.link(members, room, self._after, self._before)
        self._out = np.zeros(room + 1, np.int32)
        self._list, self._set = np.empty_like(self._after), np.empty_like(self._member)

    # Events ------------------------------------------------------------------------------------

    def plan(self, vector: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the order of the attributes for an event, and the method for each (0 is by triangles)."""
        counts = self._low_counts, self._high_counts, self._constrained, self._rows
        plan = self.theta, self._order, self._methods
        kernels.plan_event(vector, self.domains.domain, *counts, self._plan == "optimal", *plan)
        return self._order, self._methods

    def match(self, table: RangeTable, vector: NDArray[np.float64]) -> NDArray[np.int32]:
        """Algorithm 3: plan, then attribute by attribute."""
        return self.run(table, vector, *self.plan(vector))

    def run(
        self, table: RangeTable, vector: NDArray[np.float64], order: NDArray[np.int64], methods: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """Carry a plan out."""
        index = self.closed_ends, self.domains.domain, self.lists.starts, self.lists.sizes, self.lists.pool
        if self._linked:
            whole, work = (self._after, self._member), (self._list, self._set)
            count = kernels.match_linked(*index, vector, order, methods, *whole, *work, self._out)
        else:
            count = kernels.match_array(*index, vector, order, methods, table.rows, self._member, self._set, self._out)
        return self._out[:count].copy()

    def explain(self, table: RangeTable) -> dict[str, object]:
        """Say how large the grids are, and how full."""
        used = int(np.count_nonzero(self.lists.sizes))
        memory = table.nbytes + self.lists.nbytes + self._places.nbytes + self._after.nbytes * 2
        return {
            "grid": f"{kernels.TAU} x {2 * kernels.TAU} for each attribute",
            "cells in use": used,
            "plan": self._plan,
            "candidates": "linked list and set" if self._linked else "array and set",
            "bytes": memory,
        }
