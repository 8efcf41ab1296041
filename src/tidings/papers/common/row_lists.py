"""Many growable lists of row numbers in one pool of memory; the kernels are in `kernels.papers.buckets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.papers import buckets as kernels
from tidings.kernels.papers.domain_cells import BucketLists

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPARE = 1.25
"""A new pool is so much larger than what lies in it."""


class RowLists:
    """Lists of int32, each known by its number; see `kernels.papers.buckets` for the layout."""

    def __init__(self, count: int) -> None:
        """Start with so many empty lists."""
        self.starts = np.zeros(count, np.int64)
        self.sizes = np.zeros(count, np.int32)
        self.capacities = np.zeros(count, np.int32)
        self.pool = np.zeros(64, np.int32)
        self.used = np.zeros(1, np.int64)

    def __len__(self) -> int:
        """Count the items of all lists."""
        return int(self.sizes.sum())

    @property
    def arrays(self) -> BucketLists:
        """The arrays as kernels take them."""
        return BucketLists(self.starts, self.sizes, self.capacities, self.pool, self.used)

    @property
    def nbytes(self) -> int:
        """Return the memory taken."""
        return sum(array.nbytes for array in (self.starts, self.sizes, self.capacities, self.pool))

    def get(self, number: int) -> NDArray[np.int32]:
        """Return what a list holds."""
        begin = self.starts[number]
        return self.pool[begin : begin + self.sizes[number]]

    def extend(self, count: int) -> None:
        """Have `count` lists from now on; the new ones are empty."""
        more = count - len(self.starts)
        if more > 0:
            self.starts = np.concatenate([self.starts, np.zeros(more, np.int64)])
            self.sizes = np.concatenate([self.sizes, np.zeros(more, np.int32)])
            self.capacities = np.concatenate([self.capacities, np.zeros(more, np.int32)])

    def push(self, numbers: NDArray[np.int32], items: NDArray[np.int32], places: NDArray[np.int32]) -> None:
        """Append each item to the list of its number (none, where that is negative); note its place by item."""
        if len(items) > len(self.pool) // 8:  # many: find out what goes where, and move nothing twice
            counts = np.zeros(len(self.starts), np.int32)
            kernels.tally(numbers, counts)
            self.repack(counts)
        begin = 0
        while (begin := self._push_from(numbers, items, places, begin)) < len(items):
            self.repack(np.maximum(self.sizes // 4, (self.sizes > 0) * np.int32(kernels.LEAST)))

    def _push_from(
        self, numbers: NDArray[np.int32], items: NDArray[np.int32], places: NDArray[np.int32], begin: int
    ) -> int:
        pushed: int = kernels.push_all(
            self.starts, self.sizes, self.capacities, self.pool, self.used, numbers, items, places, begin
        )
        return pushed

    def remove(self, numbers: NDArray[np.int32], items: NDArray[np.int32], places: NDArray[np.int32]) -> None:
        """Remove each item from the list of its number, at the place noted."""
        kernels.take_all(self.starts, self.sizes, self.pool, numbers, items, places)

    def repack(self, extra: NDArray[np.int32]) -> None:
        """Lay the lists into a new pool, with room for `extra` more in each and some free space behind."""
        items = int(self.sizes.sum()) + int(extra.sum())
        larger = np.empty(max(64, int(items * SPARE)), np.int32)
        self.used[0] = kernels.repack(self.starts, self.sizes, self.capacities, self.pool, extra, larger)
        self.pool = larger
