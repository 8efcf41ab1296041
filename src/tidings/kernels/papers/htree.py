"""A tree over some attributes, whose children are cells of the attribute's domain; rows lie in leaves.

A node of level `l` has `2 * eta + 1` children, by cells of the attribute `indexed[l]`:

    0 .. eta - 1          narrow rows, each in the cell of its centre
    eta .. 2 * eta - 1    wide rows, each in every cell it reaches
    2 * eta               rows that reach everywhere

A leaf is the sequence of children down to it, four bits a level. A row's leaves are a product, so its code has for each
level eight bits: the first child (four bits) and how many. `leaf_of` gives existing leaves a number, counted from 1,
and list `number - 1` has the leaf's rows; list `row` of `blocks` has the places of a row in its leaves, in the order of
`list_leaves`.

Narrow and wide are decided in fine cells, which are integers: `find_cell` keeps the order of values, and all else is
integer arithmetic, so no row can slip through between two cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.growth import grow
from tidings.kernels.jit import jit
from tidings.kernels.papers.buckets import BucketLists, count_missing, push, reserve
from tidings.kernels.papers.domain_cells import WANTED, DomainScale, RangeEnds, close_high, close_low, find_cell

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int, Int32Array, IntArray

FINE = 8
"""Fine cells of a cell."""

OVERLAP = 1
"""So many fine cells does a cell reach into its neighbours; a row of `2 * OVERLAP` more than one is narrow."""

PART = 256
"""So many rows are compared at a time: their ends stay in cache from the first attribute to the last."""

CHUNK = 64
"""So many rows of one code are put into a leaf at once."""

LEAST, MOST = -np.inf, np.finfo(np.float64).max


class HTreeShape(NamedTuple):
    """What a tree is over: cells of each attribute, the attributes from the root down, and their domains."""

    eta: Int
    indexed: IntArray
    domain: DomainScale


class HTreeArrays(NamedTuple):
    """Numbers of leaves, the code of each row, and how many rows use each child of each level."""

    leaf_of: IntArray
    codes: IntArray
    uses: IntArray


@jit
def find_children(shape: HTreeShape, ends: RangeEnds, level: Int, row: Int) -> tuple[Int, Int]:
    """Return the first child of a level that a row is in, and how many it is in."""
    column, eta = shape.indexed[level], shape.eta
    first, many = 2 * eta, 1
    if ends.mark[column, row] & WANTED:
        low = find_cell(shape.domain, column, ends.low[column, row], eta * FINE)
        high = max(low, find_cell(shape.domain, column, ends.high[column, row], eta * FINE))
        if high - low <= 2 * OVERLAP:
            first = (low + high) // 2 // FINE
        elif high // FINE - low // FINE + 1 < eta:
            first = eta + low // FINE
            many = high // FINE - low // FINE + 1
    return first, many


@jit
def encode(shape: HTreeShape, ends: RangeEnds, rows: Int32Array, codes: IntArray, most: Int) -> Int:
    """Write the code of each row, and return how many leaves they are in; beyond `most`, rows go everywhere at once."""
    total = np.int64(0)
    for at in range(len(rows)):
        code, leaves = np.int64(0), np.int64(1)
        for level in range(len(shape.indexed)):
            first, many = find_children(shape, ends, level, rows[at])
            code |= np.int64(first | many << 4) << (8 * level)
            leaves *= many
        if total + leaves > most:
            code, leaves = np.int64(0), np.int64(1)
            for level in range(len(shape.indexed)):
                code |= np.int64(2 * shape.eta | 1 << 4) << (8 * level)
        codes[rows[at]] = code
        total += leaves
    return total


@jit
def list_leaves(shape: HTreeShape, code: Int, leaves: IntArray) -> Int:
    """Write the leaves of a code, four bits a level, the first level's child varying fastest; return how many."""
    leaves[0] = 0
    total = 1
    for level in range(len(shape.indexed)):
        first, many = code >> (8 * level) & 15, code >> (8 * level + 4) & 15
        for more in range(many - 1, -1, -1):
            for at in range(total):
                leaves[more * total + at] = leaves[at] | (first + more) << (4 * level)
        total *= many
    return total


@jit
def find_place(levels: Int, code: Int, leaf: Int) -> Int:
    """Return the place of a leaf among the leaves of a code, in the order of `list_leaves`."""
    number, stride = np.int64(0), np.int64(1)
    for level in range(levels):
        number += ((leaf >> (4 * level) & 15) - (code >> (8 * level) & 15)) * stride
        stride *= code >> (8 * level + 4) & 15
    return number


@jit
def locate_leaf(shape: HTreeShape, leaf: Int) -> Int:
    """Return where `leaf_of` has a leaf."""
    slot, factor = np.int64(0), np.int64(1)
    for level in range(len(shape.indexed)):
        slot += (leaf >> (4 * level) & 15) * factor
        factor *= 2 * shape.eta + 1
    return slot


@jit
def number_leaves(shape: HTreeShape, tree: HTreeArrays, code: Int, leaves: IntArray) -> Int:
    """Write the numbers of the lists of a code's leaves, which must be enrolled, and return how many."""
    total = list_leaves(shape, code, leaves)
    for i in range(total):
        leaves[i] = tree.leaf_of[locate_leaf(shape, leaves[i])] - 1
    return total


@jit
def enroll(
    shape: HTreeShape, tree: HTreeArrays, rows: Int32Array, leaf_count: Int, counts: Int32Array, blocks: Int32Array
) -> Int:
    """Give numbers to new leaves, and return how many there are; where `counts` has room, count rows and places."""
    leaves = np.empty(len(tree.leaf_of), np.int64)
    begin = 0
    while begin < len(rows):
        code = tree.codes[rows[begin]]
        total = list_leaves(shape, code, leaves)
        end = begin
        while end < len(rows) and tree.codes[rows[end]] == code:
            if len(blocks):
                blocks[rows[end]] = total
            end += 1
        for i in range(total):
            where = locate_leaf(shape, leaves[i])
            if tree.leaf_of[where] == 0:
                leaf_count += 1
                tree.leaf_of[where] = leaf_count
            if len(counts):
                counts[tree.leaf_of[where] - 1] += end - begin
        begin = end
    return leaf_count


@jit
def insert(
    shape: HTreeShape, tree: HTreeArrays, rows: Int32Array, lists: BucketLists, blocks: BucketLists, begin: Int
) -> Int:
    """Put rows into their leaves from `begin` on, each wholly or not at all; return the first index left over."""
    leaves = np.empty(len(tree.leaf_of), np.int64)
    for at in range(begin, len(rows)):
        row = rows[at]
        total = number_leaves(shape, tree, tree.codes[row], leaves)
        if not reserve(blocks, row, total) or lists.used[0] + count_missing(lists, leaves, total) > len(lists.pool):
            return at
        blocks.size[row] = total
        for i in range(total):
            blocks.pool[blocks.start[row] + i] = push(lists, leaves[i], row)
        count_use(shape, tree, tree.codes[row], 1)
    return len(rows)


@jit
def fill(shape: HTreeShape, tree: HTreeArrays, rows: Int32Array, lists: BucketLists, blocks: BucketLists) -> None:
    """Put many rows, in order of their codes, into leaves that have room for them.

    The leaves of a code are listed once for all its rows, and written `CHUNK` rows at a time: a row in 729 leaves would
    otherwise touch 729 cache lines for four bytes each.
    """
    leaves = np.empty(len(tree.leaf_of), np.int64)
    begin, total = 0, 0
    while begin < len(rows):
        code = tree.codes[rows[begin]]
        if begin == 0 or code != tree.codes[rows[begin - 1]]:
            total = number_leaves(shape, tree, code, leaves)
        end = begin + 1
        while end < len(rows) and end < begin + CHUNK and tree.codes[rows[end]] == code:
            end += 1
        for i in range(total):
            free = lists.start[leaves[i]] + lists.size[leaves[i]]
            for at in range(begin, end):
                lists.pool[free + at - begin] = rows[at]
        for at in range(begin, end):
            blocks.size[rows[at]] = total
            where = blocks.start[rows[at]]
            for i in range(total):
                blocks.pool[where + i] = lists.size[leaves[i]] + at - begin
            count_use(shape, tree, code, 1)
        for i in range(total):
            lists.size[leaves[i]] += end - begin
        begin = end


@jit
def count_use(shape: HTreeShape, tree: HTreeArrays, code: Int, more: Int) -> None:
    """Add `more` (1 or -1) to the use of each child that a row with this code lies in."""
    for level in range(len(shape.indexed)):
        first, many = code >> (8 * level) & 15, code >> (8 * level + 4) & 15
        for child in range(first, first + many):
            tree.uses[level, child] += more


@jit
def delete(shape: HTreeShape, tree: HTreeArrays, rows: Int32Array, lists: BucketLists, blocks: BucketLists) -> None:
    """Take rows out of their leaves; the last item of a leaf moves into the gap.

    In three rounds over the leaves, which are all different, so that the cache misses of a round overlap.
    """
    room = len(tree.leaf_of)
    leaves, gaps, lasts = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    levels = len(shape.indexed)
    for at in range(len(rows)):
        row = rows[at]
        total = list_leaves(shape, tree.codes[row], leaves)
        for i in range(total):
            number = tree.leaf_of[locate_leaf(shape, leaves[i])] - 1
            lists.size[number] -= 1
            gaps[i] = lists.start[number] + blocks.pool[blocks.start[row] + i]
            lasts[i] = lists.start[number] + lists.size[number]
        for i in range(total):
            moved = lists.pool[lasts[i]]
            lists.pool[gaps[i]] = moved
            lasts[i] = moved
        for i in range(total):  # where the row itself was the last, its own place is written, in vain
            moved = lasts[i]
            place = blocks.pool[blocks.start[row] + i]
            blocks.pool[blocks.start[moved] + find_place(levels, tree.codes[moved], leaves[i])] = place
        blocks.size[row] = 0
        count_use(shape, tree, tree.codes[row], -1)


@jit
def write_bounds(ends: RangeEnds, rows: Int32Array, order: IntArray, bounds: FloatArray) -> None:
    """Write the ends of rows, one row after another: closed, and finite above wherever the row has a constraint."""
    for at in range(len(rows)):
        row = rows[at]
        for position in range(len(order)):
            column = order[position]
            low, high = LEAST, np.inf
            if ends.mark[column, row] & WANTED:
                low, high = close_low(ends, column, row), min(close_high(ends, column, row), MOST)
            bounds[row, position, 0], bounds[row, position, 1] = low, high


@jit
def list_choices(shape: HTreeShape, tree: HTreeArrays, vector: FloatArray, out: IntArray) -> IntArray:
    """Write, level by level, the children that may have rows for the vector; return how many for each level."""
    eta = shape.eta
    many = np.zeros(len(shape.indexed), np.int64)
    for level in range(len(shape.indexed)):
        value = vector[shape.indexed[level]]
        if not np.isnan(value):
            fine = find_cell(shape.domain, shape.indexed[level], value, eta * FINE)
            begin, end = max(fine - OVERLAP, 0) // FINE, min(fine + OVERLAP, eta * FINE - 1) // FINE
            for child in range(begin, end + 1):
                if tree.uses[level, child] > 0:
                    out[level, many[level]] = child
                    many[level] += 1
            if tree.uses[level, eta + fine // FINE] > 0:
                out[level, many[level]] = eta + fine // FINE
                many[level] += 1
        if tree.uses[level, 2 * eta] > 0:
            out[level, many[level]] = 2 * eta
            many[level] += 1
    return many


@jit
def match(
    shape: HTreeShape, tree: HTreeArrays, lists: BucketLists, bounds: FloatArray, order: IntArray, vector: FloatArray
) -> Int32Array:
    """Return the rows that hold the vector: those of the leaves that may have them, compared on every attribute."""
    levels = len(shape.indexed)
    child = np.empty((levels, 4), np.int64)
    many = list_choices(shape, tree, vector, child)
    point = np.zeros(max(len(order), 2))  # two at least: what is beyond the attributes has no ends
    for position in range(len(order)):
        value = vector[order[position]]
        point[position] = np.inf if np.isnan(value) else value  # above every end that a row asks for
    ways = np.int64(1)
    for level in range(levels):
        ways *= many[level]
    rows, count = np.empty(64, np.int32), 0
    for way in range(ways):
        left, where, factor = way, np.int64(0), np.int64(1)
        for level in range(levels):
            where += child[level, left % many[level]] * factor
            left //= many[level]
            factor *= 2 * shape.eta + 1
        number = tree.leaf_of[where] - 1
        if number >= 0:
            size = np.int64(lists.size[number])
            if count + size >= len(rows):  # one more than can be found: `compare` writes before it looks
                rows = grow(rows, count + size + 1)
            begin, end = lists.start[number], lists.start[number] + size
            for part in range(begin, end, PART):
                count = compare(lists.pool, part, min(part + PART, end), bounds, point, rows, count)
    return rows[:count].copy()


@jit
def compare(
    pool: Int32Array, begin: Int, end: Int, bounds: FloatArray, point: FloatArray, rows: Int32Array, count: Int
) -> Int:
    """Write those rows of a part of the pool that hold the point, behind those found before; return how many there are.

    One attribute after another, without a branch: that a row fails cannot be foreseen, and the next rows need not
    wait. Measured against leaving each row at its first failure: 6 ns for a row in cache, not 20; else 22, not 33.
    """
    left = count
    first_value, second_value = point[0], point[1]
    for at in range(begin, end):
        row = np.uint32(pool[at])
        rows[left] = row
        first = (bounds[row, 0, 0] <= first_value) & (first_value <= bounds[row, 0, 1])
        left += first & (bounds[row, 1, 0] <= second_value) & (second_value <= bounds[row, 1, 1])
    for position in range(2, len(point)):
        kept, value = count, point[position]
        for at in range(count, left):
            row = np.uint32(rows[at])
            rows[kept] = row
            kept += (bounds[row, position, 0] <= value) & (value <= bounds[row, position, 1])
        left = kept
    return left


@jit
def measure_shares(shape: HTreeShape, ends: RangeEnds, rows: Int32Array) -> FloatArray:
    """Return for each attribute of `indexed` the share of its cells in which an event meets a row, on average."""
    totals = np.zeros(len(shape.indexed))
    for level in range(len(shape.indexed)):
        for at in range(len(rows)):
            first, many = find_children(shape, ends, level, rows[at])
            column = shape.indexed[level]
            if first == 2 * shape.eta or shape.domain.top[column] <= shape.domain.origin[column]:
                totals[level] += 1.0  # everywhere, or nobody knows where the cells should be
            else:
                totals[level] += many / shape.eta
    return totals / max(len(rows), 1)
