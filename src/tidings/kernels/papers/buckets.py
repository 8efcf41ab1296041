"""Many growable lists of numbers in one pool: the cells of a grid, the buckets of an end, the leaves of a tree.

List `b` is `pool[starts[b] : starts[b] + sizes[b]]` and has room for `rooms[b]`. A full list moves to the end of the
pool with twice the room; `used[0]` is where the pool is free. A push that does not fit stops, the caller makes a
larger pool (`repack`) and goes on. Order inside a list means nothing, so removing moves the last one into the gap.

Push and remove: O(1), amortised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, Int32Array, IntArray

LEAST = 4
"""The room of a list's first block."""


@jit_inline
def push(
    starts: IntArray, sizes: Int32Array, rooms: Int32Array, pool: Int32Array, used: IntArray, bucket: Int, item: Int
) -> Int:
    """Append an item to a list and return its place in it, or -1 when the pool is too small."""
    size = np.int64(sizes[bucket])
    place = size
    # A full list moves to the end of the pool; its old block is lost until the next `repack`.
    if size == rooms[bucket]:
        room = max(2 * size, 4)
        begin, old = used[0], starts[bucket]
        if begin + room > len(pool):
            place = np.int64(-1)
        else:
            for at in range(size):
                pool[begin + at] = pool[old + at]
            starts[bucket] = begin
            rooms[bucket] = room
            used[0] = begin + room
    if place >= 0:
        pool[starts[bucket] + size] = item
        sizes[bucket] = size + 1
    return place


@jit
def push_all(
    starts: IntArray, sizes: Int32Array, rooms: Int32Array, pool: Int32Array, used: IntArray, buckets: Int32Array,
    items: Int32Array, places: Int32Array, begin: Int,
) -> Int:  # fmt: skip
    """Append items to their lists; `places[item]` is where each went. Return how far it came."""
    for at in range(begin, len(items)):
        bucket = buckets[at]
        if bucket < 0:
            continue
        place = push(starts, sizes, rooms, pool, used, bucket, items[at])
        if place < 0:
            return at
        places[items[at]] = place
    return len(items)


@jit
def take_all(
    starts: IntArray, sizes: Int32Array, pool: Int32Array, buckets: Int32Array, items: Int32Array, places: Int32Array
) -> None:
    """Remove items from their lists; the last of a list takes the place of what is gone."""
    for at in range(len(items)):
        bucket = buckets[at]
        if bucket < 0:
            continue
        last = sizes[bucket] - 1
        place = places[items[at]]
        moved = pool[starts[bucket] + last]
        pool[starts[bucket] + place] = moved
        places[moved] = place
        sizes[bucket] = last


@jit
def tally(buckets: Int32Array, counts: Int32Array) -> None:
    """Count how many items go to each list."""
    for at in range(len(buckets)):
        if buckets[at] >= 0:
            counts[buckets[at]] += 1


@jit
def repack(
    starts: IntArray, sizes: Int32Array, rooms: Int32Array, pool: Int32Array, extra: Int32Array, larger: Int32Array
) -> Int:
    """Lay the lists one after another into a larger pool, with room for `extra` more each; return where it is free."""
    begin = np.int64(0)
    for bucket in range(len(starts)):
        old, size = starts[bucket], np.int64(sizes[bucket])
        for at in range(size):
            larger[begin + at] = pool[old + at]
        room = size + extra[bucket]
        starts[bucket] = begin
        rooms[bucket] = room
        begin += room
    return begin
