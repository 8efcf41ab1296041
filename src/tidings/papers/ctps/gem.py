"""Grids of intervals (m4 of CTPS, after GEM): the low end is a column, the high end a row, a cell has a bit array.

The paper knows the domain beforehand. Here it is the span of the finite ends that were seen; what lies outside, or
has no end, is in the outer cells, and a value there is compared with all of these exactly. When the intervals have
doubled and the span has grown, they are dealt out anew, which is a constant for each of them.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.papers.ctps import clear_bits, find_cells, set_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.papers.ctps.bit_rows import BitRows

CELLS = 10
"""Columns and rows of a grid (T); the paper prints 5 in its example, and no value for its experiments."""


class IntervalGrids:
    """The grids of all attributes: where their cells are, and the exact ends by subscription."""

    def __init__(self, cells: int) -> None:
        """Start without grids."""
        self._cells = cells
        self._free: list[int] = []
        self.rows = np.full((0, cells * cells), -1, np.int32)
        self.domains = np.zeros((0, 2))
        self._extent: NDArray[np.float64] = np.zeros((0, 2))
        self._counts: list[list[int]] = []  # of each grid: its intervals, and how many when it was last dealt out
        self.low, self.high = np.zeros((0, 64)), np.zeros((0, 64))
        self.low_tie, self.high_tie = np.zeros((0, 64), np.int16), np.zeros((0, 64), np.int16)

    def allocate(self) -> int:
        """Return the number of an empty grid."""
        if self._free:
            return self._free.pop()
        at = len(self.rows)
        self.rows = np.vstack([self.rows, np.full((1, self._cells**2), -1, np.int32)])
        self.domains = np.vstack([self.domains, np.zeros((1, 2))])
        self._extent = np.vstack([self._extent, [[np.inf, -np.inf]]])
        self._counts.append([0, 0])
        self._resize(at + 1, self.low.shape[1])
        return at

    def widen(self, subscriptions: int) -> None:
        """Make room for so many subscriptions."""
        if subscriptions > self.low.shape[1]:
            self._resize(len(self.rows), subscriptions)

    def _resize(self, grids: int, width: int) -> None:
        for name, nothing in (("low", np.nan), ("high", np.nan), ("low_tie", 0), ("high_tie", 0)):
            old = getattr(self, name)
            new = np.full((grids, width), nothing, old.dtype)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, new)

    def add(self, grid: int, ids: list[int], spans: list[Any], rows: BitRows) -> None:
        """Take intervals in."""
        at = np.array(ids, np.int64)
        ends = [(span.low, span.high) for span in spans]
        self.low[grid, at], self.high[grid, at] = np.array(ends).T
        self.low_tie[grid, at] = [span.low_tie for span in spans]
        self.high_tie[grid, at] = [span.high_tie for span in spans]
        finite = [end for pair in ends for end in pair if isfinite(end)]
        seen, counts = self._extent[grid], self._counts[grid]
        if finite:
            seen[:] = min(seen[0], *finite), max(seen[1], *finite)
        counts[0] += len(ids)
        if counts[0] >= 2 * counts[1] and self._compute_domain(seen) != tuple(self.domains[grid]):
            counts[1] = counts[0]
            self.domains[grid] = self._compute_domain(seen)
            self._release_cells(grid, rows)
            at = np.flatnonzero(~np.isnan(self.low[grid]))
        self._distribute(grid, at, rows)

    def _compute_domain(self, seen: NDArray[np.float64]) -> tuple[float, float]:
        """Return half the least end, and the cells of one half unit; halves, so that no difference overflows."""
        if not seen[0] < seen[1]:
            return 0.0, 0.0
        base, width = float(seen[0]) / 2, float(seen[1]) / 2 - float(seen[0]) / 2
        with np.errstate(divide="ignore", over="ignore"):
            scale = float(np.float64(self._cells) / np.float64(width))
        return (base, scale) if isfinite(scale) else (0.0, 0.0)

    def _distribute(self, grid: int, at: NDArray[np.int64], rows: BitRows) -> None:
        base, scale = self.domains[grid]
        cells = find_cells(self.low[grid, at], self.high[grid, at], base, scale, self._cells)
        order = np.argsort(cells, kind="stable")
        used_cells, begins = np.unique(cells[order], return_index=True)
        for cell, ids in zip(used_cells.tolist(), np.split(at[order], begins[1:]), strict=True):
            if self.rows[grid, cell] < 0:
                self.rows[grid, cell] = rows.allocate()
            set_bits(rows.bits[self.rows[grid, cell]], ids)

    def discard(self, grid: int, id: int, rows: BitRows) -> bool:
        """Forget an interval; tell whether the grid is empty, and then it is given back."""
        at = np.array([id], np.int64)
        base, scale = self.domains[grid]
        cell = find_cells(self.low[grid, at], self.high[grid, at], base, scale, self._cells)[0]
        clear_bits(rows.bits[self.rows[grid, cell]], at)
        self.low[grid, id] = self.high[grid, id] = np.nan
        counts = self._counts[grid]
        counts[0] -= 1
        if counts[0]:
            return False
        self._release_cells(grid, rows)
        self._extent[grid], self.domains[grid], counts[1] = (np.inf, -np.inf), 0.0, 0
        self._free.append(grid)
        return True

    def _release_cells(self, grid: int, rows: BitRows) -> None:
        for row in self.rows[grid][self.rows[grid] >= 0].tolist():
            rows.release(row)
        self.rows[grid] = -1

    @property
    def nbytes(self) -> int:
        """The bytes of the ends and the places of the cells."""
        return sum(part.nbytes for part in (self.low, self.high, self.low_tie, self.high_tie, self.rows))
