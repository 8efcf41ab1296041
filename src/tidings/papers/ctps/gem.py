"""Grids of intervals (m4 of CTPS, after GEM): the low end is a column, the high end a row, a cell has a bit array.

In the paper the domain is given. Here it is the span of the finite ends seen so far; an end outside of it, or an
infinite one, is in an outer cell, where intervals are compared exactly. When the intervals have doubled and the span
has grown, all are distributed again, which is a constant amount of work for each of them.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.bits import clear_bits, set_bits
from tidings.kernels.papers.ctps import GridArrays, find_cells
from tidings.kernels.papers.domain_cells import DomainScale
from tidings.papers.common.growable_arrays import grow

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray
    from tidings.papers.ctps.bit_rows import BitRows
    from tidings.papers.ctps.concept_terms import OrderedSpan

CELLS = 10
"""Columns and rows of a grid (T); the paper prints 5 in its example, and no value for its experiments."""


class IntervalGrids:
    """The grids of all attributes: where their cells are, and the exact ends by subscription."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._free: list[int] = []
        self._extents: list[list[float]] = []  # of each grid: the least and the largest finite end
        self._counts: list[list[int]] = []  # of each grid: its intervals, and how many at the last distribution
        ends, ties, domain = np.zeros((0, 64)), np.zeros((0, 64), np.int16), DomainScale(*[np.zeros(0)] * 3)
        self.arrays = GridArrays(np.zeros((0, cells * cells), np.int32), domain, ends, ties, ends, ties)

    def allocate(self) -> int:
        """Return the number of an empty grid."""
        if not self._free:
            self._free.append(len(self._counts))
            self._extents.append([inf, -inf])
            self._counts.append([0, 0])
            self.widen(0)
        return self._free.pop()

    def widen(self, subscriptions: int) -> None:
        """Make room for this many subscriptions, and for all grids."""
        rows, domain, low, low_tie, high, high_tie = self.arrays
        shape = len(self._counts), subscriptions
        self.arrays = GridArrays(
            grow(rows, (len(self._counts), 0), -1),
            DomainScale(*(grow(part, (len(self._counts),)) for part in domain)),
            grow(low, shape, np.nan),
            grow(low_tie, shape),
            grow(high, shape, np.nan),
            grow(high_tie, shape),
        )

    def add(self, grid: int, ids: list[int], spans: list[OrderedSpan], rows: BitRows) -> None:
        """Take intervals in."""
        arrays, at = self.arrays, np.array(ids, np.int64)
        ends = [(span.low, span.high) for span in spans]
        arrays.low[grid, at], arrays.high[grid, at] = np.array(ends).T
        arrays.low_tie[grid, at] = [span.low_tie for span in spans]
        arrays.high_tie[grid, at] = [span.high_tie for span in spans]
        finite = [end for pair in ends for end in pair if isfinite(end)]
        extent, counts = self._extents[grid], self._counts[grid]
        if finite:
            extent[:] = min(extent[0], *finite), max(extent[1], *finite)
        counts[0] += len(ids)
        if counts[0] >= 2 * counts[1] and self._move_domain(grid):
            counts[1] = counts[0]
            self._release_cells(grid, rows)
            at = np.flatnonzero(~np.isnan(arrays.low[grid]))
        self._distribute(grid, at, rows)

    def _move_domain(self, grid: int) -> bool:
        """Let the domain reach as far as the ends; return whether that changes it."""
        least, most = self._extents[grid]
        changed = False
        for part, fresh in zip(
            self.arrays.domain, DomainScale.measure(np.array([least]), np.array([most])), strict=True
        ):
            changed = changed or part[grid] != fresh[0]
            part[grid] = fresh[0]
        return changed

    def _find_cells(self, grid: int, at: IntArray) -> IntArray:
        low, high = self.arrays.low[grid, at], self.arrays.high[grid, at]
        cells: IntArray = find_cells(low, high, self.arrays.domain, grid, self._cells)
        return cells

    def _distribute(self, grid: int, at: IntArray, rows: BitRows) -> None:
        cells, row_of = self._find_cells(grid, at), self.arrays.rows[grid]
        order = np.argsort(cells, kind="stable")
        used_cells, begins = np.unique(cells[order], return_index=True)
        for cell, ids in zip(used_cells.tolist(), np.split(at[order], begins[1:]), strict=True):
            if row_of[cell] < 0:
                row_of[cell] = rows.allocate()
            set_bits(rows.bits[row_of[cell]], ids)

    def discard(self, grid: int, id: int, rows: BitRows) -> bool:
        """Forget an interval; return whether the grid is empty now, and with that free."""
        at = np.array([id], np.int64)
        clear_bits(rows.bits[self.arrays.rows[grid, self._find_cells(grid, at)[0]]], at)
        self.arrays.low[grid, id] = self.arrays.high[grid, id] = np.nan
        counts = self._counts[grid]
        counts[0] -= 1
        if counts[0]:
            return False
        self._release_cells(grid, rows)
        self._extents[grid][:], counts[1] = (inf, -inf), 0
        self._move_domain(grid)
        self._free.append(grid)
        return True

    def _release_cells(self, grid: int, rows: BitRows) -> None:
        for row in self.arrays.rows[grid][self.arrays.rows[grid] >= 0].tolist():
            rows.release(row)
        self.arrays.rows[grid] = -1

    @property
    def nbytes(self) -> int:
        """The bytes of the ends and the places of the cells."""
        rows, _, low, low_tie, high, high_tie = self.arrays
        return sum(part.nbytes for part in (rows, low, low_tie, high, high_tie))
