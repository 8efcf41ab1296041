"""H-Tree: a tree over a few attributes whose cells group rows; only the groups around an event are compared.

Qian, Cao, Zhu, Li, Wang: H-Tree, an efficient index structure for event matching (IFIP Networking 2013; IEEE TPDS
2014), as the HEM paper describes and measures it (sections 2 and 5; 4 cells, 6 indexed attributes). Each level divides
one attribute's domain into partly overlapping cells. A row goes down into one or several cells of each level, by the
centre and the width of its range; a leaf has the rows that took the same way. An event goes down into the cells that
may hold its value, and the rows of the leaves it reaches are compared on all attributes.

The paper at hand has the outline only; README.md here lists what was chosen.

Insert, delete: O(leaves of the row), exponential in the width: 729 for half the domain. Match: O(rows in the leaves
visited), which is (1/4 + width)**6 of all rows where all are wide. Space: 8 bytes for each leaf of a row, and 16 for
each row and attribute.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.papers import htree as kernels
from tidings.papers.common.growable_arrays import NO_ROWS, grow
from tidings.papers.common.name_order import describe_attribute
from tidings.papers.common.row_lists import RowLists
from tidings.papers.hem.range_table import Domains, RangeTable

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int32Array, IntArray

CELLS = 4
"""Cells of an attribute: eta in Table 1 of the HEM paper."""

INDEXED = 6
"""Attributes of the tree: lambda in the same table."""

MOST_BYTES = 12 * 2**30
"""Entries and places take no more than this: 1.7 million rows of ranges of half the domain, as the paper has them."""

ENTRY_BYTES = 8
"""A row in a leaf, and its place there."""

STRETCH_BITS = 10
"""Rows are put into leaves by stretches of 2**10, whose ends stay in cache when they are compared."""

SAMPLE = 10_000
"""So many rows decide which attributes are indexed."""


class HTree:
    """The index: leaves by their way down, and the ends of each row side by side."""

    def __init__(self, *, cells: int = CELLS, indexed: int = INDEXED, most_bytes: int = MOST_BYTES) -> None:
        """Start empty; `cells` is how many an attribute has, `indexed` how many attributes the tree has."""
        if not (1 <= cells <= 7 and 1 <= indexed <= 7 and (2 * cells + 1) ** indexed <= 2**24):
            msg = (
                f"{indexed} attributes of {cells} cells; at most 7 of each, and (2 * cells + 1) ** indexed below 2**24"
            )
            raise ValueError(msg)
        self._eta, self._lambda = cells, indexed
        self._most = most_bytes // ENTRY_BYTES
        self._domains = Domains()
        self._laid_out = False
        self._clear(np.zeros(0, np.int64))

    def _clear(self, indexed: IntArray) -> None:
        self._indexed = indexed
        self._order = indexed[:0]
        self._leaves, self._blocks = RowLists(0), RowLists(0)
        self._leaf_of = np.zeros((2 * self._eta + 1) ** len(indexed), np.int32)
        self._uses = np.zeros((len(indexed), 2 * self._eta + 1), np.int64)
        self._codes = np.zeros(0, np.int64)
        self._bounds = np.zeros((0, 0, 2))
        self._entries = 0

    def insert(self, table: RangeTable, rows: Int32Array) -> None:
        """Index rows that the table has just got."""
        due = self._domains.observe(table, rows)
        if due or self._domains.has_doubled(table) or not self._laid_out:
            alive = table.list_rows()
            self._domains.extend_domains(table)
            chosen = self._choose_attributes(table, alive)
            if due or not np.array_equal(chosen, self._indexed):
                self._clear(chosen)
                rows = alive
            self._laid_out = True
        self._make_room(table)
        kernels.write_bounds(table.arrays, rows, self._order, self._bounds)
        self._fill(table, rows)

    def _choose_attributes(self, table: RangeTable, alive: Int32Array) -> IntArray:
        sample = alive[:: max(1, len(alive) // SAMPLE)]
        every = np.arange(self._domains.count)
        shares = kernels.measure_shares(self._build_shape(every), table.arrays, sample)
        return np.sort(np.argsort(shares, kind="stable")[: self._lambda])

    def _build_shape(self, indexed: IntArray) -> kernels.HTreeShape:
        return kernels.HTreeShape(self._eta, indexed, self._domains.domain)

    @property
    def _tree(self) -> kernels.HTreeArrays:
        return kernels.HTreeArrays(self._leaf_of, self._codes, self._uses)

    def _make_room(self, table: RangeTable) -> None:
        self._codes = grow(self._codes, (table.capacity,))
        self._blocks.extend(table.capacity)
        # Attributes of the tree are compared last: the leaf has decided them in part.
        others = [column for column in range(self._domains.count) if column not in self._indexed]
        order = self._order.tolist() or [*others, *self._indexed.tolist()]
        self._order = np.array([*order, *(column for column in others if column not in order)], np.int64)
        room, wide = table.capacity, -(-len(table.lows) // 4) * 4
        if self._bounds.shape[0] < room or self._bounds.shape[1] < wide:
            larger = _allocate_aligned((room, wide, 2))
            larger[:, :, 0], larger[:, :, 1] = -np.inf, np.inf
            larger[: len(self._bounds), : self._bounds.shape[1]] = self._bounds
            self._bounds = larger

    def _fill(self, table: RangeTable, rows: Int32Array) -> None:
        shape, leaves, blocks = self._build_shape(self._indexed), self._leaves, self._blocks
        more = kernels.encode(shape, table.arrays, rows, self._codes, self._most - self._entries)
        self._entries += more
        if more > len(leaves.pool) // 8:  # many: count first, so that no list moves twice
            rows = rows[np.lexsort((self._codes[rows], rows >> STRETCH_BITS))]
            self._repack(rows, 0)
            kernels.fill(shape, self._tree, rows, leaves.arrays, blocks.arrays)
            return
        leaves.extend(kernels.enroll(shape, self._tree, rows, len(leaves.starts), NO_ROWS, NO_ROWS))
        begin = 0
        while (begin := kernels.insert(shape, self._tree, rows, leaves.arrays, blocks.arrays, begin)) < len(rows):
            self._repack(rows[begin:], 4)

    def _repack(self, rows: Int32Array, part: int) -> None:
        """Give each leaf room for those of the rows that belong in it, and each row for its places.

        Leaves get as much again to spare as one `part` of what they hold; none, if that is 0.
        """
        leaves, blocks = self._leaves, self._blocks
        counts, places = np.zeros(len(self._leaf_of), np.int32), np.zeros(len(blocks.starts), np.int32)
        shape = self._build_shape(self._indexed)
        leaves.extend(kernels.enroll(shape, self._tree, rows, len(leaves.starts), counts, places))
        counts = counts[: len(leaves.starts)]
        leaves.repack(counts + leaves.sizes // part if part else counts)
        blocks.repack(places)

    def delete(self, table: RangeTable, rows: Int32Array) -> None:
        """Forget rows that the table still has."""
        self._entries -= int(self._blocks.sizes[rows].sum())
        shape = self._build_shape(self._indexed)
        kernels.delete(shape, self._tree, rows, self._leaves.arrays, self._blocks.arrays)
        self._domains.shrink(table.count - len(rows))

    def match(self, table: RangeTable, vector: FloatArray) -> Int32Array:
        """Return the rows that contain the vector, each once."""
        del table  # `_bounds` has the ends as well, each row's side by side
        shape = self._build_shape(self._indexed)
        rows: Int32Array = kernels.match(shape, self._tree, self._leaves.arrays, self._bounds, self._order, vector)
        return rows

    def explain(self, table: RangeTable) -> dict[str, object]:
        """Return which attributes are indexed, and how large the tree is."""
        names = list(map(describe_attribute, table.columns))
        arrays = (self._leaf_of, self._codes, self._bounds)
        size = self._leaves.nbytes + self._blocks.nbytes + sum(array.nbytes for array in arrays)
        return {
            "indexed": [names[column] for column in self._indexed],
            "leaves": int(np.count_nonzero(self._leaves.sizes)),
            "entries": self._entries,
            "bytes": size + table.nbytes,
        }


def _allocate_aligned(shape: tuple[int, ...]) -> FloatArray:
    """Return an array whose rows begin with a cache line: the ends of four attributes are one."""
    size = math.prod(shape)
    raw = np.empty(size + 8)
    skipped = -(raw.ctypes.data // 8) % 8
    return raw[skipped : skipped + size].reshape(shape)
