"""REIN: the rows that do not match are marked in a bit set, and what is left matches.

Qian, Cao, Zhu, Li: REIN, a fast event matching approach for content-based publish/subscribe systems (INFOCOM 2014),
as the HEM paper describes and measures it (sections 2 and 5; 3000 buckets). For each attribute, two lists of buckets
have the rows by their low ends and by their high ends. For a value, all rows in buckets of low ends above it and in
buckets of high ends below it are marked without a look at them; in the value's own two buckets the ends are compared.

Insert, delete: O(m) for m attributes of the row (its places in the lists are kept). Match: O(marks + buckets), where a
row is marked once for each attribute that fails: the wider the ranges, the less there is to mark. Space: 16 bytes for
each row and attribute beside the table.

Not in the paper: attributes that a row does not constrain (it is in none of their buckets) or an event lacks (all rows
that constrain them are marked), and domains that are not declared (`range_table.Domains`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.bits import clear_bits, set_bits
from tidings.kernels.papers import rein as kernels
from tidings.papers.common.growable_arrays import grow
from tidings.papers.common.row_lists import RowLists
from tidings.papers.hem.range_table import Domains, RangeTable

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int32Array

BUCKETS = 3000
"""Buckets of a list: omega in Table 1 of the HEM paper."""


class Rein:
    """The index: buckets of ends, and a bit for each row that is not in force."""

    def __init__(self) -> None:
        self._domains, self._lists = Domains(), RowLists(0)
        self._places = np.zeros((0, 0), np.int32)
        self._free = np.zeros(0, np.uint64)

    def insert(self, table: RangeTable, rows: Int32Array) -> None:
        """Index rows that the table has just got."""
        if self._domains.observe(table, rows):
            self._lists, rows = RowLists(0), table.list_rows()
        self._lists.extend(2 * self._domains.count * BUCKETS)
        self._places = grow(self._places, (2 * len(table.lows), table.capacity))
        self._free = grow(self._free, ((table.capacity + 63) // 64,), 2**64 - 1)
        self._lists.push(self._find_lists(table, rows), rows, self._places)
        clear_bits(self._free, rows)

    def _find_lists(self, table: RangeTable, rows: Int32Array) -> Int32Array:
        """Return the numbers of each row's lists, a line for each attribute and end."""
        numbers = np.empty((2 * self._domains.count, len(rows)), np.int32)
        kernels.find_lists(self._domains.select(table, rows, BUCKETS), numbers)
        return numbers

    def delete(self, table: RangeTable, rows: Int32Array) -> None:
        """Forget rows that the table still has."""
        self._lists.remove(self._find_lists(table, rows), rows, self._places)
        set_bits(self._free, rows)
        self._domains.shrink(table.count - len(rows))

    def match(self, table: RangeTable, vector: FloatArray) -> Int32Array:
        """Return the rows that contain the vector, each once."""
        lists, domain = self._lists.arrays, self._domains.domain
        rows: Int32Array = kernels.match(lists, table.arrays, domain, BUCKETS, vector, self._free)
        return rows

    def explain(self, table: RangeTable) -> dict[str, object]:
        """Return how many entries there are to mark."""
        size = self._lists.nbytes + self._places.nbytes + self._free.nbytes
        return {"buckets": BUCKETS, "entries": len(self._lists), "bytes": size + table.nbytes}
