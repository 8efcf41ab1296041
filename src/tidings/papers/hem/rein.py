"""REIN: the rows that do not match are marked in a bit set, and what is left matches.

Qian, Cao, Zhu, Li: REIN, a fast event matching approach for content-based publish/subscribe systems (INFOCOM 2014),
as the HEM paper describes and measures it (sections 2 and 5; 3000 buckets). For each attribute, two lists of buckets
have the rows by their low ends and by their high ends. For a value, all rows in buckets of low ends above it and in
buckets of high ends below it are marked without a look at them; in the value's own two buckets the ends are compared.

Insert, delete: O(m) for m attributes of the row (its places in the lists are kept). Match: O(marks + buckets), where a
row is marked once for each attribute that fails: the wider the ranges, the less there is to mark. Space: 32 bytes for
each row and attribute beside the table.

Not in the paper: attributes that a row does not constrain (it is in none of their buckets) or an event lacks (all rows
that constrain them are marked), and domains that are not declared (`range_table.Domains`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.papers import rein as kernels
from tidings.kernels.papers.domain_cells import RowBatch
from tidings.papers.common.growable_arrays import grow
from tidings.papers.common.row_lists import RowLists
from tidings.papers.hem.range_table import Domains, RangeTable

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int32Array

BUCKETS = 3000
"""Buckets of a list: omega in Table 1 of the HEM paper."""


class _KeyedRowLists(RowLists):
    """Lists that keep an end beside each row."""

    def __init__(self) -> None:
        super().__init__(0)
        self.keys = np.zeros(len(self.pool))

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.keys.nbytes

    def repack(self, extra: Int32Array) -> None:
        old = self.starts.copy()
        super().repack(extra)
        larger = np.empty(len(self.pool))
        kernels.move_keys(old, self.arrays, self.keys, larger)
        self.keys = larger


class Rein:
    """The index: buckets of ends, and a bit for each row that is not in force."""

    def __init__(self) -> None:
        self._reset()
        self._domains = Domains()

    def _reset(self) -> None:
        self._lists = _KeyedRowLists()
        self._places = np.zeros((0, 0), np.int32)
        self._free = np.zeros(0, np.uint64)

    def insert(self, table: RangeTable, rows: Int32Array) -> None:
        """Index rows that the table has just got."""
        if self._domains.observe(table, rows):
            self._reset()
            rows = table.list_rows()
        self._lists.extend(2 * self._domains.count * BUCKETS)
        self._places = grow(self._places, (2 * len(table.lows), table.capacity))
        self._free = grow(self._free, ((table.capacity + 63) // 64,), 2**64 - 1)
        self._fill(self._batch(table, rows))
        kernels.flag(self._free, rows, False)

    def _batch(self, table: RangeTable, rows: Int32Array) -> RowBatch:
        return RowBatch(table.arrays, self._domains.domain, BUCKETS, self._domains.count, rows)

    def _fill(self, batch: RowBatch) -> None:
        lists, rows = self._lists, batch.rows
        if 2 * batch.columns * len(rows) > len(lists.pool) // 8:  # many: count first, so that no list moves twice
            self._repack(batch, np.zeros_like(lists.sizes))
            kernels.fill(batch, lists.arrays, lists.keys, self._places)
            return
        begin = 0
        while (begin := kernels.insert(batch, lists.arrays, lists.keys, self._places, begin)) < len(rows):
            self._repack(batch._replace(rows=rows[begin:]), lists.sizes // 4)

    def _repack(self, batch: RowBatch, spare: Int32Array) -> None:
        """Give each list room for those of the rows that belong in it, and some to spare."""
        kernels.tally(batch, spare)
        self._lists.repack(spare)

    def delete(self, table: RangeTable, rows: Int32Array) -> None:
        """Forget rows that the table still has."""
        kernels.delete(self._batch(table, rows), self._lists.arrays, self._lists.keys, self._places)
        kernels.flag(self._free, rows, True)
        self._domains.shrink(table.count - len(rows))

    def match(self, table: RangeTable, vector: FloatArray) -> Int32Array:
        """Return the rows that contain the vector, each once."""
        del table  # the buckets have all that is compared
        lists, domain = self._lists, self._domains.domain
        rows: Int32Array = kernels.match(lists.arrays, lists.keys, domain, BUCKETS, vector, self._free)
        return rows

    def explain(self, table: RangeTable) -> dict[str, object]:
        """Return how many entries there are to mark."""
        size = self._lists.nbytes + self._places.nbytes + self._free.nbytes
        return {"buckets": BUCKETS, "entries": len(self._lists), "bytes": size + table.nbytes}
