"""Lists of whole numbers in flat arrays, which grow, shrink and leave their place to others.

A block is a run of some length in one pool; freed blocks are taken again for blocks of the same length. A posting list
is a block that doubles when it is full. Adding and removing cost O(1) on average.
"""

from __future__ import annotations

from array import array


def lengthen(pool: array[int], length: int) -> None:
    """Fill a pool up to a length with zeros."""
    if len(pool) < length:
        pool.frombytes(bytes(pool.itemsize * (length - len(pool))))


class BlockAllocator:
    """Where blocks begin in pools of one growing length; the pools are the caller's."""

    def __init__(self) -> None:
        """Start without blocks."""
        self.length = 0
        self._free: dict[int, list[int]] = {}

    def take(self, length: int) -> int:
        """Return where a block of this length begins; it may lie beyond the old end of the pools."""
        free = self._free.get(length)
        if free:
            return free.pop()
        start = self.length
        self.length += length
        return start

    def give(self, start: int, length: int) -> None:
        """Take a block back."""
        if length:
            self._free.setdefault(length, []).append(start)


class PostingPool:
    """For each of many lists, the rows in it, and beside each row a second number."""

    def __init__(self) -> None:
        """Start without lists."""
        self.first, self.count, self.pool, self.seconds = array("i"), array("i"), array("i"), array("i")
        self._sizes = array("i")
        self._blocks = BlockAllocator()

    def open(self, at: int) -> None:
        """Begin an empty list; its number is the next one, or that of a list that was emptied."""
        if at == len(self.first):
            for column in (self.first, self.count, self._sizes):
                column.append(0)

    def add(self, at: int, row: int, second: int) -> int:
        """Put a row and its second number at the end of a list and return their place there."""
        place = self.count[at]
        if place == self._sizes[at]:
            self._grow(at, place)
        self.pool[self.first[at] + place], self.seconds[self.first[at] + place] = row, second
        self.count[at] = place + 1
        return place

    def _grow(self, at: int, used: int) -> None:
        size, old = max(1, 2 * used), self.first[at]
        start = self._blocks.take(size)
        for pool in (self.pool, self.seconds):
            lengthen(pool, self._blocks.length)
            pool[start : start + used] = pool[old : old + used]
        self._blocks.give(old, self._sizes[at])
        self.first[at], self._sizes[at] = start, size

    def remove(self, at: int, place: int) -> int:
        """Take the row at a place out and return the row that now stands there, which was the last."""
        last = self.count[at] - 1
        moved = self.pool[self.first[at] + last]
        self.pool[self.first[at] + place] = moved
        self.seconds[self.first[at] + place] = self.seconds[self.first[at] + last]
        self.count[at] = last
        if not last:  # an empty list holds no memory
            self._blocks.give(self.first[at], self._sizes[at])
            self._sizes[at] = 0
        return moved
