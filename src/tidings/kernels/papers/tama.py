"""A layered index for each attribute: layer `l` bisects the domain into 2**l cells; ranges lie in cells they cover.

Cells are numbered as a heap: the whole domain is 1, the halves of cell `c` are `2 * c` and `2 * c + 1`, the finest
layer is `2**levels` and on. A range from cell `a` to cell `b` of the finest layer is covered by the fewest cells of all
layers: going up from both sides, a cell is taken on the left when it is a right half (odd), on the right when it is a
left half (even). They do not overlap, so on the way from a value's finest cell up to the top a row is met once at most.

List `column * 2 * 2**levels + cell` has the rows of a cell; list `row * width + column` of `blocks` the places of a row
in its lists, in the order in which `cover` gives them. An entry is a row and, in its lowest bits, which of the row's
cells this is: when an entry is moved, its place is corrected without computing the cells of that row again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit
from tidings.kernels.papers.buckets import BucketLists, count_missing, push, reserve
from tidings.kernels.papers.domain_cells import HIGH_OPEN, LOW_OPEN, WANTED, DomainScale, RangeEnds, RowBatch, find_cell

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int, Int32Array, IntArray

ORDER_BITS = np.uint32(5)
"""Bits of an entry that say which of the row's cells it is: rows go to 2**27 = 134 million."""

ORDER = np.uint32(31)

BLOCK = 256
"""Counters are scanned in blocks of so many."""


@jit
def cover(batch: RowBatch, column: Int, row: Int, cells: IntArray) -> Int:
    """Write the cells that cover a row's range, from the finest up, left before right; return how many."""
    count, finest = 0, batch.cells
    left = finest - 1 + find_cell(batch.domain, column, batch.ends.low[column, row], finest)
    right = finest + 1 + find_cell(batch.domain, column, batch.ends.high[column, row], finest)
    # `left` and `right` stand just outside the range, so that every layer makes the same two tests.
    while left < right and left ^ right != 1:  # an empty range has no cell
        if left & 1 == 0:
            cells[count] = left ^ 1
            count += 1
        if right & 1 == 1:
            cells[count] = right ^ 1
            count += 1
        left >>= 1
        right >>= 1
    return count


@jit
def tally(batch: RowBatch, counts: Int32Array, blocks: Int32Array, width: Int) -> None:
    """Count the rows of each list, and the places of each row."""
    cells = np.empty(64, np.int64)
    for column in range(batch.columns):
        for at in range(len(batch.rows)):
            row = batch.rows[at]
            if batch.ends.mark[column, row] & WANTED:
                count = cover(batch, column, row, cells)
                blocks[np.int64(row) * width + column] = count
                for i in range(count):
                    counts[column * 2 * batch.cells + cells[i]] += 1


@jit
def fill(batch: RowBatch, lists: BucketLists, blocks: BucketLists, width: Int) -> None:
    """Put many rows into lists that have room for them.

    Attribute by attribute: the lists of one attribute stay in cache while all rows pass.
    """
    cells = np.empty(64, np.int64)
    for column in range(batch.columns):
        for at in range(len(batch.rows)):
            row = batch.rows[at]
            if batch.ends.mark[column, row] & WANTED:
                count = cover(batch, column, row, cells)
                block = np.int64(row) * width + column
                blocks.size[block] = count
                for i in range(count):
                    number = column * 2 * batch.cells + cells[i]
                    place = lists.size[number]
                    lists.pool[lists.start[number] + place] = row << ORDER_BITS | i
                    lists.size[number] = place + 1
                    blocks.pool[blocks.start[block] + i] = place


@jit
def insert(batch: RowBatch, lists: BucketLists, blocks: BucketLists, width: Int, begin: Int) -> Int:
    """Put rows into their lists from `begin` on, each wholly or not at all; return the index of the first left over."""
    cells = np.empty(64, np.int64)
    numbers = np.empty(64 * batch.columns, np.int64)
    sizes = np.empty(batch.columns, np.int64)
    for at in range(begin, len(batch.rows)):
        row = batch.rows[at]
        # First find out whether all of the row fits, then write it: half a row could not be told from a whole one.
        total = 0
        for column in range(batch.columns):
            sizes[column] = 0
            if batch.ends.mark[column, row] & WANTED:
                sizes[column] = cover(batch, column, row, cells)
                if not reserve(blocks, np.int64(row) * width + column, sizes[column]):
                    return at
                for i in range(sizes[column]):
                    numbers[total] = column * 2 * batch.cells + cells[i]
                    total += 1
        if lists.used[0] + count_missing(lists, numbers, total) > len(lists.pool):
            return at
        total = 0
        for column in range(batch.columns):
            block = np.int64(row) * width + column
            blocks.size[block] = sizes[column]
            for i in range(sizes[column]):
                blocks.pool[blocks.start[block] + i] = push(lists, numbers[total], row << ORDER_BITS | i)
                total += 1
    return len(batch.rows)


@jit
def delete(batch: RowBatch, lists: BucketLists, blocks: BucketLists, width: Int) -> None:
    """Take rows out of their lists; the last item of a list moves into the gap."""
    cells = np.empty(64, np.int64)
    for at in range(len(batch.rows)):
        row = batch.rows[at]
        for column in range(batch.columns):
            if not batch.ends.mark[column, row] & WANTED:
                continue
            count = cover(batch, column, row, cells)
            block = np.int64(row) * width + column
            for i in range(count):
                number = column * 2 * batch.cells + cells[i]
                place = blocks.pool[blocks.start[block] + i]
                last = lists.size[number] - 1
                lists.size[number] = last
                if place != last:
                    moved = lists.pool[lists.start[number] + last]
                    lists.pool[lists.start[number] + place] = moved
                    where = blocks.start[np.int64(np.uint32(moved) >> ORDER_BITS) * width + column]
                    blocks.pool[where + (np.uint32(moved) & ORDER)] = place
            blocks.size[block] = 0


@jit
def match(lists: BucketLists, domain: DomainScale, finest: Int, vector: FloatArray, wanted: IntArray) -> Int32Array:
    """Count down each row's unsatisfied ranges, cell by cell, and return the rows that have none left."""
    left = wanted.copy()
    for column in range(len(vector)):
        value = vector[column]
        if np.isnan(value):
            continue
        # The value's cells on all layers are the ancestors of its finest one.
        number = finest + find_cell(domain, column, value, finest)
        while number > 0:
            begin = lists.start[column * 2 * finest + number]
            for at in range(begin, begin + lists.size[column * 2 * finest + number]):
                left[np.uint32(lists.pool[at]) >> ORDER_BITS] -= 1
            number >>= 1
    return collect_zeros(left)


@jit
def collect_zeros(left: IntArray) -> Int32Array:
    """Return where the counters are zero."""
    total = np.int64(0)
    for at in range(len(left)):
        total += left[at] == 0
    rows = np.empty(total, np.int32)
    filled = 0
    for begin in range(0, len(left), BLOCK):
        end = min(begin + BLOCK, len(left))
        # The least counter of a block first: a loop without a branch, which the compiler vectorises.
        least = left[begin]
        for at in range(begin, end):
            least = min(least, left[at])
        if least == 0:
            for at in range(begin, end):
                if left[at] == 0:
                    rows[filled] = at
                    filled += 1
    return rows


@jit
def check_rows(ends: RangeEnds, vector: FloatArray, rows: Int32Array) -> Int32Array:
    """Return the rows that contain the vector, attribute by attribute; all of them have what they constrain."""
    left = len(rows)
    for column in range(len(vector)):
        kept, value = 0, vector[column]
        for at in range(left):
            row = np.uint32(rows[at])
            rows[kept] = row
            mark, low, high = ends.mark[column, row], ends.low[column, row], ends.high[column, row]
            at_low = (low < value) | ((low == value) & (mark & LOW_OPEN == 0))
            at_high = (high > value) | ((high == value) & (mark & HIGH_OPEN == 0))
            kept += (mark & WANTED == 0) | (at_low & at_high)
        left = kept
    return rows[:left]
