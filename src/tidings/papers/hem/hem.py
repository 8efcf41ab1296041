"""HEM: hybrid event matching, by triangles or directly, attribute by attribute (Fan, Liu, Tang 2016, section 4).

A range on one attribute is a point in a triangle: its middle and half its width. A value cuts two smaller triangles
off, those of the ranges that end below it and that begin above it; whole cells of a grid lie in them, and only the
cells on the two lines are compared (Algorithm 1). Or the candidates that are left are visited one by one
(Algorithm 2). The attributes go in ascending order of matching rate, by triangles first and directly from where
that is cheaper (Algorithm 4); the counts that tell the rates are kept as rows come and go.

N rows, M attributes. Insert, delete: O(M). Match: O(N) to begin with all candidates, then the rows of the triangles
that are walked, and the candidates that are left for the rest. Space: O(N M).

Corrections are in README.md here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from tidings.kernels.papers import hem as kernels
from tidings.papers.common.growable_arrays import grow
from tidings.papers.common.row_lists import RowLists
from tidings.papers.hem.range_table import Domains, RangeTable

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int32Array


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
        self._linked = candidates == "linked"
        self._plan = plan
        self.domains = Domains()
        self.lists = RowLists(0)
        self._places = np.zeros((0, 0), np.int32)
        self.closed_ends = np.zeros((0, 0))
        counts = np.zeros((0, kernels.BUCKETS), np.int64)
        self._counts = kernels.EndCounts(counts, counts, np.zeros(0, np.int64))
        self._rows = 0
        self._before = np.zeros(1, np.int32)
        self._candidates = self._work = kernels.CandidateSet(np.zeros(1, np.int32), np.zeros(0, np.uint8))
        self._out = np.zeros(1, np.int32)
        self.event_plan = kernels.MatchPlan(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def insert(self, table: RangeTable, rows: Int32Array) -> None:
        """Index rows: a cell on each attribute, the counts of their ends, and a link in the list of all."""
        self._grow(table)
        indexed = rows
        if self.domains.observe(table, rows):
            self.lists, indexed = RowLists(len(self.lists.starts)), table.list_rows()
            for counts in self._counts:
                counts[:] = 0
        kernels.close_ends(table.arrays, rows, self.closed_ends)
        self.lists.push(self._locate(table, indexed, by=1), indexed, self._places)
        kernels.link(rows, len(self._candidates.member), self._candidates.after, self._before)
        self._candidates.member[rows] = 1
        self._rows += len(rows)

    def delete(self, table: RangeTable, rows: Int32Array) -> None:
        """Take rows out of their cells, the counts and the list."""
        self.lists.remove(self._locate(table, rows, by=-1), rows, self._places)
        kernels.unlink(rows, self._candidates.after, self._before)
        self._candidates.member[rows] = 0
        self._rows -= len(rows)
        self.domains.shrink(self._rows)

    def _locate(self, table: RangeTable, rows: Int32Array, *, by: int) -> Int32Array:
        """Return the cells of rows, a line for each attribute; add `by` to the counts of their ends."""
        cells = np.empty((self.domains.count, len(rows)), np.int32)
        kernels.locate_rows(self.domains.select(table, rows, kernels.UNITS), by, self._counts, cells)
        return cells

    def _grow(self, table: RangeTable) -> None:
        """Follow the table: more attributes, more rows."""
        columns, room = len(table.columns), table.capacity
        if columns > len(self._counts.constrained):
            self.lists.extend(columns * kernels.CELLS)
            low, high, constrained = self._counts
            size = columns, kernels.BUCKETS
            self._counts = kernels.EndCounts(grow(low, size), grow(high, size), grow(constrained, (columns,)))
            self.event_plan = kernels.MatchPlan(*(grow(part, (columns,)) for part in self.event_plan))
        if (columns, room) != self._places.shape:
            self._places = grow(self._places, (columns, room))
            # A row without a range on an attribute reaches from end to end there.
            closed = np.empty((columns, 2 * room))
            closed[:, 0::2], closed[:, 1::2] = -np.inf, np.inf
            closed[: self.closed_ends.shape[0], : self.closed_ends.shape[1]] = self.closed_ends
            self.closed_ends = closed
        if room > len(self._candidates.member):
            self._relink(room)

    def _relink(self, room: int) -> None:
        """Move the head of the list behind the last row there is room for."""
        member = self._candidates.member
        rows = np.flatnonzero(member).astype(np.int32)
        after, self._before = np.zeros(room + 1, np.int32), np.zeros(room + 1, np.int32)
        after[room] = self._before[room] = room
        kernels.link(rows, room, after, self._before)
        self._candidates = kernels.CandidateSet(after, grow(member, (room,)))
        self._work = kernels.CandidateSet(*map(np.empty_like, self._candidates))
        self._out = np.zeros(room + 1, np.int32)

    def plan(self, vector: FloatArray) -> kernels.MatchPlan:
        """Return the order of the attributes for an event, and the method for each (0 is by triangles).

        The result is overwritten by the next call.
        """
        domain, counts, plan = tuple(self.domains.domain), tuple(self._counts), self.event_plan
        kernels.plan_event(vector, domain, counts, self._rows, self._plan == "optimal", tuple(plan))
        return plan

    def match(self, table: RangeTable, vector: FloatArray) -> Int32Array:
        """Algorithm 3: plan, then attribute by attribute."""
        return self.run(table, vector, self.plan(vector))

    def run(self, table: RangeTable, vector: FloatArray, plan: kernels.MatchPlan) -> Int32Array:
        """Match an event by a plan."""
        index = self.closed_ends, tuple(self.domains.domain), tuple(self.lists.arrays)
        (after, member), (work_after, work_member) = self._candidates, self._work
        if not self._linked:  # the set alone, and of it the rows in use
            member, work_member = member[: table.rows], work_member[: table.rows]
        candidates, scratch = (after, member), (work_after, work_member)
        count = kernels.match(index, vector, tuple(plan), candidates, scratch, self._linked, self._out)
        return self._out[:count].copy()

    def explain(self, table: RangeTable) -> dict[str, object]:
        """Return how large the grids are, and how full."""
        used = int(np.count_nonzero(self.lists.sizes))
        memory = table.nbytes + self.lists.nbytes + self._places.nbytes + self._before.nbytes * 2
        return {
            "grid": f"{kernels.TAU} x {2 * kernels.TAU} for each attribute",
            "cells in use": used,
            "plan": self._plan,
            "candidates": "linked list and set" if self._linked else "array and set",
            "bytes": memory,
        }
