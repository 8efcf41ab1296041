"""TAMA: a layered index of bisected cells for each attribute, and a counter for each row.

Zhao, Wu: Towards approximate event processing in a large-scale content-based network (ICDCS 2011), as the HEM paper
describes and measures it (sections 2 and 5; 12 levels). Each layer halves the cells of the one above; a range lies in
the fewest cells, of any layer, that cover it. At the finest layer a cell that is covered in part counts as covered. An
event goes from the top layer to the bottom on each attribute and counts the rows in the cells that it passes; a row
whose counter reaches the number of its attributes matches.

As printed it is approximate: `Tama(exact=False)` also returns rows whose range ends in the value's finest cell, short
of the value, and loses none. The matcher `tama` compares what is left with the table, and so is exact. The HEM paper
does not say whether the undivided domain is one of the levels; here it is not, and 12 levels end in 4096 cells.

Insert, delete: O(m * levels) for m attributes of the row, up to 2 * (levels - 1) cells each. Match: O(counts + m *
levels), where a row is counted once for each attribute that holds. Space: 8 bytes for each cell of a row, about eleven
cells for a range of half the domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.papers import tama as kernels
from tidings.kernels.papers.domain_cells import WANTED
from tidings.papers.common.growable_arrays import grow
from tidings.papers.common.row_lists import RowLists
from tidings.papers.hem.range_table import Domains, RangeTable

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int32Array
    from tidings.kernels.papers.domain_cells import RowBatch

LEVELS = 12
"""How often a domain is bisected: xi in Table 1 of the HEM paper."""

MOST_LEVELS = 16
"""Beyond this a row may lie in more cells than its entries can tell apart, and empty cells alone take much memory."""


class Tama:
    """The index: rows by cells, and for each row the number of attributes it constrains."""

    def __init__(self, *, levels: int = LEVELS, exact: bool = True) -> None:
        """Start empty; without `exact`, matches are as the paper has them, with some that do not match."""
        if not 1 <= levels <= MOST_LEVELS:
            msg = f"a domain is bisected 1 to {MOST_LEVELS} times, not {levels}"
            raise ValueError(msg)
        self._finest, self._exact = 1 << levels, exact
        self._clear()
        self._domains = Domains()

    def _clear(self) -> None:
        self._cells, self._blocks = RowLists(0), RowLists(0)
        self._width = 0
        self._wanted = np.zeros(0, np.uint8)

    def insert(self, table: RangeTable, rows: Int32Array) -> None:
        """Index rows that the table has just got."""
        if self._domains.observe(table, rows):
            self._clear()
            rows = table.list_rows()
        self._make_room(table)
        self._fill(self._domains.select(table, rows, self._finest))
        self._wanted[rows] = np.count_nonzero(table.ends[:, rows] & WANTED, axis=0)

    def _make_room(self, table: RangeTable) -> None:
        columns, wide = self._domains.count, len(table.lows)
        self._cells.extend(columns * 2 * self._finest)
        if wide > self._width:
            self._widen(wide)
        self._blocks.extend(table.capacity * wide)
        if columns > np.iinfo(self._wanted.dtype).max:
            self._wanted = self._wanted.astype(np.uint32)
        self._wanted = grow(self._wanted, (table.capacity,), 1)  # a free row waits for a range that no event satisfies

    def _widen(self, wide: int) -> None:
        """Number the blocks of places anew: there are more attributes."""
        blocks, had = self._blocks, self._width
        for name in ("starts", "sizes", "capacities"):
            old = getattr(blocks, name)
            new = np.zeros((len(old) // had if had else 0, wide), old.dtype)
            new[:, :had] = old.reshape(len(new), had)
            setattr(blocks, name, new.ravel())
        self._width = wide

    def _fill(self, batch: RowBatch) -> None:
        cells, blocks, rows = self._cells, self._blocks, batch.rows
        if len(rows) * batch.columns * 4 > len(cells.pool) // 8:  # many: count first, so that no list moves twice
            self._repack(batch, np.zeros_like(cells.sizes))
            kernels.fill(batch, cells.arrays, blocks.arrays, self._width)
            return
        begin = 0
        while (begin := kernels.insert(batch, cells.arrays, blocks.arrays, self._width, begin)) < len(rows):
            self._repack(batch._replace(rows=rows[begin:]), cells.sizes // 4)

    def _repack(self, batch: RowBatch, spare: Int32Array) -> None:
        """Give each cell room for those of the rows that belong in it, and some to spare; each row, for its places."""
        places = np.zeros_like(self._blocks.sizes)
        kernels.tally(batch, spare, places, self._width)
        self._cells.repack(spare)
        self._blocks.repack(places)

    def delete(self, table: RangeTable, rows: Int32Array) -> None:
        """Forget rows that the table still has."""
        batch = self._domains.select(table, rows, self._finest)
        kernels.delete(batch, self._cells.arrays, self._blocks.arrays, self._width)
        self._wanted[rows] = 1
        self._domains.shrink(table.count - len(rows))

    def match(self, table: RangeTable, vector: FloatArray) -> Int32Array:
        """Return the rows that contain the vector, each once; without `exact`, also some that do not."""
        rows: Int32Array = kernels.match(self._cells.arrays, self._domains.domain, self._finest, vector, self._wanted)
        if self._exact and len(rows):
            rows = kernels.check_rows(table.arrays, vector, rows)
        return rows

    def explain(self, table: RangeTable) -> dict[str, object]:
        """Return how many cells the rows lie in."""
        size = self._cells.nbytes + self._blocks.nbytes + self._wanted.nbytes
        entries = len(self._cells)
        return {"finest cells": self._finest, "entries": entries, "exact": self._exact, "bytes": size + table.nbytes}
