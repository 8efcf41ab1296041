"""Many growable lists of row numbers in one pool: the cells of a grid, the buckets of an end, the leaves of a tree.

List `n` is `pool[start[n] : start[n] + size[n]]` and has room for `room[n]` items:

    pool   | list 0: a b c . | list 2: d . . . | (old block of list 1) | list 1: e f g h i . . . | free, from used[0] on

A full list moves to the end of the pool with twice the room; its old block is lost until `repack` lays all lists into a
larger pool. A push that does not fit changes nothing and returns -1: a kernel cannot enlarge the caller's arrays, so
it stops there, the caller repacks and continues. The order inside a list means nothing, so removing moves the last
item into the gap.

Push and remove: O(1), amortised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, Int32Array, IntArray

LEAST = 4
"""The room of a list's first block; small, as a list that outgrows its block leaves it behind."""


class BucketLists(NamedTuple):
    """The lists' arrays; `used` has one item, so that kernels can write it."""

    start: IntArray
    size: Int32Array
    room: Int32Array
    pool: Int32Array
    used: IntArray


@jit_inline
def push(lists: BucketLists, number: Int, item: Int) -> Int:
    """Append an item to a list and return its place in it, or -1 when the pool is too small."""
    size = np.int64(lists.size[number])
    place = size
    if size == lists.room[number]:
        room = max(2 * size, LEAST)  # doubled, so that on average an item is moved less than twice
        begin, old = lists.used[0], lists.start[number]
        if begin + room > len(lists.pool):
            place = np.int64(-1)
        else:
            for at in range(size):
                lists.pool[begin + at] = lists.pool[old + at]
            lists.start[number] = begin
            lists.room[number] = room
            lists.used[0] = begin + room
    if place >= 0:
        lists.pool[lists.start[number] + size] = item
        lists.size[number] = size + 1
    return place


@jit
def push_all(lists: BucketLists, numbers: Int32Array, items: Int32Array, places: Int32Array, begin: Int) -> Int:
    """Append each item to one list for each line of `numbers`, and write its place there to the same line of `places`.

    Item `items[i]` goes to list `numbers[line, i]`, or to none where that is negative. Begin with number `begin`,
    counted line after line, and return the first whose item did not fit, or how many numbers there are.
    """
    for line in range(len(numbers)):
        for at in range(max(begin - line * len(items), 0), len(items)):
            if numbers[line, at] >= 0:
                place = push(lists, numbers[line, at], items[at])
                if place < 0:
                    return line * len(items) + at
                places[line, items[at]] = place
    return numbers.size


@jit
def take_all(lists: BucketLists, numbers: Int32Array, items: Int32Array, places: Int32Array) -> None:
    """Undo `push_all`: remove each item from its lists; the last item of a list moves into the gap."""
    for line in range(len(numbers)):
        for at in range(len(items)):
            number = numbers[line, at]
            if number < 0:
                continue
            last = lists.size[number] - 1
            place = places[line, items[at]]
            # If the item is the last one itself, it is written where it was, and the size leaves it out.
            moved = lists.pool[lists.start[number] + last]
            lists.pool[lists.start[number] + place] = moved
            places[line, moved] = place
            lists.size[number] = last


@jit
def tally(numbers: Int32Array, counts: Int32Array) -> None:
    """Count how many items go to each list."""
    for at in range(len(numbers)):
        if numbers[at] >= 0:
            counts[numbers[at]] += 1


@jit
def repack(lists: BucketLists, extra: Int32Array, larger: Int32Array) -> Int:
    """Lay the lists one after another into a larger pool, with room for `extra` more each; return where it is free."""
    begin = np.int64(0)
    for number in range(len(lists.start)):
        old, size = lists.start[number], np.int64(lists.size[number])
        for at in range(size):
            larger[begin + at] = lists.pool[old + at]
        room = size + extra[number]
        lists.start[number] = begin
        lists.room[number] = room
        begin += room
    return begin


@jit
def count_missing(lists: BucketLists, numbers: IntArray, count: Int) -> Int:
    """Return the space that one more item in each of these lists takes at the pool's end; they must be different."""
    need = np.int64(0)
    for at in range(count):
        size = np.int64(lists.size[numbers[at]])
        if size == lists.room[numbers[at]]:
            need += max(2 * size, LEAST)
    return need


@jit
def reserve(lists: BucketLists, number: Int, count: Int) -> bool:
    """Give an empty list room for `count` items, if the pool has it; return whether it has."""
    fits = True
    if lists.room[number] < count:
        begin = lists.used[0]
        fits = begin + count <= len(lists.pool)
        if fits:
            lists.start[number] = begin
            lists.room[number] = count
            lists.used[0] = begin + count
    return fits
