"""Many growable lists of row numbers in one pool of memory; the kernels are in `kernels.papers.buckets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.papers import buckets as kernels
from tidings.papers.common.growable_arrays import grow

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int32Array

SPARE = 1.25
"""A new pool is larger than its contents by this factor."""


class RowLists:
    """Lists of int32, each known by its number; see `kernels.papers.buckets` for the layout."""

    def __init__(self, count: int) -> None:
        """Start with `count` empty lists."""
        self.starts = np.zeros(count, np.int64)
        self.sizes = np.zeros(count, np.int32)
        self.capacities = np.zeros(count, np.int32)
        self.pool = np.zeros(64, np.int32)
        self.used = np.zeros(1, np.int64)

    def __len__(self) -> int:
        """Count the items of all lists."""
        return int(self.sizes.sum())

    @property
    def arrays(self) -> kernels.BucketLists:
        """The arrays as kernels take them."""
        return kernels.BucketLists(self.starts, self.sizes, self.capacities, self.pool, self.used)

    @property
    def nbytes(self) -> int:
        """The memory taken, in bytes."""
        return sum(array.nbytes for array in (self.starts, self.sizes, self.capacities, self.pool))

    def get(self, number: int) -> Int32Array:
        """Return the items of a list."""
        begin = self.starts[number]
        return self.pool[begin : begin + self.sizes[number]]

    def extend(self, count: int) -> None:
        """Have at least `count` lists; the new ones are empty."""
        self.starts, self.sizes, self.capacities = (
            grow(array, (count,)) for array in (self.starts, self.sizes, self.capacities)
        )

    def push(self, numbers: Int32Array, items: Int32Array, places: Int32Array) -> None:
        """Append each item to the list that each line of `numbers` has for it (to none, where that is negative).

        Its place in that list goes into the same line of `places`, at the item.
        """
        if np.count_nonzero(numbers >= 0) > len(self.pool) // 8:  # many: count first, so that no list moves twice
            counts = np.zeros(len(self.starts), np.int32)
            kernels.tally(numbers.ravel(), counts)
            self.repack(counts)
        begin = 0
        while (begin := kernels.push_all(self.arrays, numbers, items, places, begin)) < numbers.size:
            self.repack(np.maximum(self.sizes // 4, (self.sizes > 0) * np.int32(kernels.LEAST)))

    def remove(self, numbers: Int32Array, items: Int32Array, places: Int32Array) -> None:
        """Remove each item from the lists that `push` put it in, given the same numbers and places."""
        kernels.take_all(self.arrays, numbers, items, places)

    def repack(self, extra: Int32Array) -> None:
        """Lay the lists into a new pool, with room for `extra` more in each and some free space behind."""
        items = int(self.sizes.sum()) + int(extra.sum())
        larger = np.empty(max(64, int(items * SPARE)), np.int32)
        self.used[0] = kernels.repack(self.arrays, extra, larger)
        self.pool = larger
