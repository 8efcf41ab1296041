"""Building a segment: rows in their new order, hash tables of keys, hulls, and the bitmaps of tiles.

The planner has said how each row is found, and `engine.index.builder` has sorted the rows. What is left are loops:

    gather_rows         the literals of rows in their new order
    fill_hash           keys of a group -> its clusters                   (drawing: `keys`)
    find_tile_columns   which columns the rows of each tile test
    collect_edges       where literals begin and end, to cut buckets there
    fill_tiles          bits of rows in buckets, bits of doubt, rest      (drawing: `tiles`)
    fill_hulls          the interval that holds all intervals of a tile
    count_buckets       how many rows live in each bucket, for the order of columns

For a tile of four rows, a column with the edges 10 and 20 and so the buckets 0 (<10), 1 (10..19), 2 (>=20), absent:

    row  literal         bits in bucket  0 1 2 absent    in doubt
    0    in [10 .. 19]                   0 1 0   0       -            both ends are edges
    1    >= 15                           0 1 1   0       1, 2         10..14 fail; codes beyond the last edge may too
    2    not = 15                        1 1 1   1       1            of 10..19 all but 15 pass
    3    (no literal)                    1 1 1   1       -

Invariant: a row that an event satisfies has its bit in the event's bucket, and where a bucket does not decide the row,
the row is in doubt or in `rest`. A wide interval sets its bit in many bitmaps, so building costs the buckets that
literals meet; it happens once for a segment, and every event gains (docs/decisions/0006).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.bits import count_bits
from tidings.kernels.jit import jit
from tidings.kernels.match.layout import OP_BITS, OP_MASK, RowLiterals
from tidings.kernels.match.literals import ANY, KIND_MASK, NOT_ANY, NOT_NONE, UNION
from tidings.kernels.match.tiles import find_bucket

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, CodeArray, Int, IntArray, WordArray

EXACT, DOUBTED, CHECKED = 1, 2, 0
"""States of a dense column: its buckets separate all ends; it has bitmaps of doubt; its rows are always checked."""


class TileBuckets(NamedTuple):
    """The buckets of each dense column: its edges are those from `edge_start[dense]` up to `edge_start[dense + 1]`."""

    dense_of: IntArray  # column -> its number among the dense ones, or -1
    edge_start: IntArray
    edges: CodeArray  # ascending; a bucket begins at each, and one lies before the first
    state: ByteArray  # of each dense column


@jit
def gather_rows(
    origin: CodeArray, start: CodeArray, head: CodeArray, low: CodeArray, high: CodeArray
) -> tuple[CodeArray, CodeArray, CodeArray, CodeArray]:
    """Return the literals of the rows `origin`, in that order: start, head, low, high."""
    new_start = np.zeros(len(origin) + 1, np.uint32)
    for row in range(len(origin)):
        new_start[row + 1] = new_start[row] + start[origin[row] + 1] - start[origin[row]]
    new_head = np.empty(new_start[-1], head.dtype)
    new_low = np.empty(new_start[-1], low.dtype)
    new_high = np.empty(new_start[-1], high.dtype)
    for row in range(len(origin)):
        to = new_start[row]
        for at in range(start[origin[row]], start[origin[row] + 1]):
            new_head[to] = head[at]
            new_low[to] = low[at]
            new_high[to] = high[at]
            to += 1
    return new_start, new_head, new_low, new_high


@jit
def fill_hash(
    first: IntArray, second: IntArray, cluster: IntArray, mask: Int, table_first: CodeArray, table_second: CodeArray,
    table_cluster: CodeArray,
) -> None:  # fmt: skip
    """Enter the keys of one group into its table of `mask + 1` places, all 0 (`keys.find_cluster` looks them up)."""
    for i in range(len(first)):
        # The same hash as in `keys.find_cluster`; keys are distinct, so nothing is compared here.
        at = (first[i] * np.int64(2654435761) + second[i] * np.int64(40503)) & mask
        while table_cluster[at] != 0:
            at = (at + 1) & mask
        table_first[at] = first[i]
        table_second[at] = second[i]
        table_cluster[at] = cluster[i] + 1


# The `set_` kernels take flat arguments: apart from `rows`, `edges` and `bits` they are numbers of the literal at hand,
# so a group would be built anew for each call (`layout`).


@jit
def set_literal_bits(
    rows: RowLiterals, at: Int, edges: CodeArray, first: Int, last: Int, place: Int, words: Int, word: Int,
    bit: np.uint64, bits: WordArray,
) -> None:  # fmt: skip
    """Set a row's bit in the bitmap of every bucket in which some value may satisfy the literal, and of absence."""
    op = rows.head[at] & OP_MASK
    kind = op & KIND_MASK
    buckets = last - first + 1
    if kind >= NOT_ANY:
        bits[place + buckets * words + word] |= bit
    begin, end = np.int64(0), np.int64(1)
    if op & UNION:
        begin, end = np.int64(rows.union_start[rows.low[at]]), np.int64(rows.union_start[rows.low[at] + 1])
    if kind <= 1 or kind == NOT_NONE:
        for part in range(begin, end):
            low = np.int64(rows.union_low[part]) if op & UNION else np.int64(rows.low[at])
            high = np.int64(rows.union_high[part]) if op & UNION else np.int64(rows.high[at])
            if low <= high:
                for bucket in range(find_bucket(edges, first, last, low), find_bucket(edges, first, last, high) + 1):
                    bits[place + bucket * words + word] |= bit
        return
    for bucket in range(buckets):  # `none` and its like: wherever the bucket is not wholly inside
        lowest = np.int64(0) if bucket == 0 else np.int64(edges[first + bucket - 1])
        highest = np.int64(1) << 40 if bucket == buckets - 1 else np.int64(edges[first + bucket]) - 1
        inside = False
        for part in range(begin, end):
            low = np.int64(rows.union_low[part]) if op & UNION else np.int64(rows.low[at])
            high = np.int64(rows.union_high[part]) if op & UNION else np.int64(rows.high[at])
            if low <= lowest and high >= highest:
                inside = True
        if not inside:
            bits[place + bucket * words + word] |= bit


@jit
def set_interval_bits(
    low: Int, high: Int, edges: CodeArray, first: Int, last: Int, place: Int, words: Int, word: Int, bit: np.uint64,
    bits: WordArray,
) -> None:  # fmt: skip
    """Set a row's bit in the bitmap of every bucket that an interval meets."""
    for bucket in range(find_bucket(edges, first, last, low), find_bucket(edges, first, last, high) + 1):
        bits[place + bucket * words + word] |= bit


@jit
def intersect_literals(rows: RowLiterals, row: Int, at: Int) -> tuple[Int, Int]:
    """Return the intersection of a row's literals on one column, if all are plain intervals; else low > high.

    Where it is not empty it may stand for all of them: the span of an event's several values, each of which satisfies
    one literal, meets the intersection too, as all sets are convex.
    """
    low, high = np.int64(rows.low[at]), np.int64(rows.high[at])
    for other in range(at, rows.start[row + 1]):
        if rows.head[other] >> OP_BITS != rows.head[at] >> OP_BITS:
            continue
        if rows.head[other] & OP_MASK != ANY:
            return np.int64(1), np.int64(0)
        low, high = max(low, np.int64(rows.low[other])), min(high, np.int64(rows.high[other]))
    return low, high


@jit
def set_doubt_bits(
    rows: RowLiterals, at: Int, low: Int, high: Int, plain: bool, edges: CodeArray, first: Int, last: Int, place: Int,
    words: Int, word: Int, bit: np.uint64, bits: WordArray,
) -> None:  # fmt: skip
    """Set a row's bit in the bitmap of doubt of every bucket in which its literal accepts some values and not others.

    A `plain` literal is the one interval from `low` to `high`; of a union each interval is looked at.
    """
    buckets = last - first + 1
    begin, end = np.int64(0), np.int64(1)
    if not plain and rows.head[at] & UNION:
        begin, end = np.int64(rows.union_start[rows.low[at]]), np.int64(rows.union_start[rows.low[at] + 1])
    for bucket in range(buckets):
        lowest = np.int64(0) if bucket == 0 else np.int64(edges[first + bucket - 1])
        # Ends may lie beyond the last edge, which is only a quantile: in the last bucket there is always doubt.
        highest = np.int64(1) << 40 if bucket == buckets - 1 else np.int64(edges[first + bucket]) - 1
        meets, inside = False, False
        for part in range(begin, end):
            if not plain and rows.head[at] & UNION:
                low, high = np.int64(rows.union_low[part]), np.int64(rows.union_high[part])
            meets |= low <= highest and high >= lowest and low <= high
            inside |= low <= lowest and high >= highest
        if meets and not inside:
            bits[place + (buckets + 1 + bucket) * words + word] |= bit


@jit
def fill_tiles(
    rows: RowLiterals, tile_row: CodeArray, tile_end: CodeArray, place: IntArray, buckets: TileBuckets,
    bits: WordArray, rest: WordArray, rest_start: IntArray, skipped: IntArray,
) -> None:  # fmt: skip
    """Fill the bitmaps of all tiles; tile `t` has the rows from `tile_row[t]` up to `tile_end[t]`.

    The bitmaps of a tile and dense column begin at the word `place[tile, dense]` of `bits` (-1: there are none); behind
    those of a `DOUBTED` column lie those of doubt. `rest` has the rows of each tile that are always checked. `skipped`
    are the two key columns of each tile (-1: none): their literals hold for all events that visit. Flat, as
    it is called once for a segment, before there is an `IndexTiles` to hold most of these arrays.
    """
    dense_of, edge_start, edges, state = buckets
    width = place.shape[1]
    for tile in range(len(tile_row)):
        begin, end = np.int64(tile_row[tile]), np.int64(tile_end[tile])
        words = (end - begin + 63) >> 6
        touched = np.zeros((width, words), np.uint64)
        for row in range(begin, end):
            word = (row - begin) >> 6
            bit = np.uint64(1) << np.uint64((row - begin) & 63)
            for at in range(rows.start[row], rows.start[row + 1]):
                column = np.int64(rows.head[at] >> OP_BITS)
                if column == skipped[2 * tile] or column == skipped[2 * tile + 1]:
                    continue
                dense = dense_of[column]
                if dense < 0 or place[tile, dense] < 0:  # this tile is scanned
                    rest[rest_start[tile] + word] |= bit
                    continue
                if touched[dense, word] & bit:
                    continue  # a second literal of this column: seen with the first
                alone = True
                for other in range(at + 1, rows.start[row + 1]):
                    if rows.head[other] >> OP_BITS == column:
                        alone = False
                touched[dense, word] |= bit
                if state[dense] == CHECKED:
                    rest[rest_start[tile] + word] |= bit
                first, last = edge_start[dense], edge_start[dense + 1]
                low, high = np.int64(rows.low[at]), np.int64(rows.high[at])
                plain = alone and rows.head[at] & OP_MASK == ANY
                if not alone:
                    low, high = intersect_literals(rows, row, at)
                    plain = low <= high
                if plain and not alone:
                    set_interval_bits(low, high, edges, first, last, place[tile, dense], words, word, bit, bits)
                else:
                    set_literal_bits(rows, at, edges, first, last, place[tile, dense], words, word, bit, bits)
                if not plain and not alone:
                    rest[rest_start[tile] + word] |= bit
                elif state[dense] == DOUBTED:
                    set_doubt_bits(
                        rows, at, low, high, plain, edges, first, last, place[tile, dense], words, word, bit, bits
                    )
        # Rows without a literal on a column live in all of its buckets; bits behind the last row stay clear.
        for dense in range(width):
            if place[tile, dense] < 0:
                continue
            if (end - begin) & 63:  # no bits beyond the last row: they would keep an empty tile alive
                touched[dense, words - 1] |= ~((np.uint64(1) << np.uint64((end - begin) & 63)) - np.uint64(1))
            for bucket in range(edge_start[dense + 1] - edge_start[dense] + 2):
                for at_word in range(words):
                    bits[place[tile, dense] + bucket * words + at_word] |= ~touched[dense, at_word]


@jit
def find_tile_columns(
    start: CodeArray, head: CodeArray, tile_row: CodeArray, tile_end: CodeArray, skipped: IntArray, columns: Int
) -> ByteArray:
    """Return for each tile which columns some of its rows constrain, except for its key columns."""
    constrained = np.zeros((len(tile_row), columns), np.uint8)
    for tile in range(len(tile_row)):
        for at in range(start[tile_row[tile]], start[tile_end[tile]]):
            column = np.int64(head[at] >> OP_BITS)
            if column != skipped[2 * tile] and column != skipped[2 * tile + 1]:
                constrained[tile, column] = 1
    return constrained


@jit
def insert_edge(edge: Int, distinct: IntArray, count: Int, most: Int) -> Int:
    """Insert an edge into a sorted list of distinct ones; return their number, or `most + 1` if they are too many."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if distinct[middle] < edge:
            low = middle + 1
        else:
            high = middle
    if low < count and distinct[low] == edge:
        return count
    if count == most:
        return most + 1
    for at in range(count, low, -1):
        distinct[at] = distinct[at - 1]
    distinct[low] = edge
    return count + 1


@jit
def collect_edges(
    rows: RowLiterals, tile_row: CodeArray, tile_end: CodeArray, dense_of: IntArray, number: Int, most: Int,
    sampled: Int,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:  # fmt: skip
    """Return the distinct edges of each dense column in the tiles, if at most `most`, and a sample of all.

    An edge is a code where some literal begins, or the code after one where it ends.
    """
    distinct = np.empty((number, most + 1), np.int64)
    count = np.zeros(number, np.int64)
    sample = np.empty((number, sampled), np.int64)
    seen = np.zeros(number, np.int64)
    for tile in range(len(tile_row)):
        for at in range(rows.start[tile_row[tile]], rows.start[tile_end[tile]]):
            dense = dense_of[rows.head[at] >> OP_BITS]
            if dense < 0:
                continue
            union = rows.head[at] & UNION
            begin, end = np.int64(0), np.int64(1)
            if union:
                begin, end = np.int64(rows.union_start[rows.low[at]]), np.int64(rows.union_start[rows.low[at] + 1])
            for part in range(begin, end):
                low = np.int64(rows.union_low[part]) if union else np.int64(rows.low[at])
                high = np.int64(rows.union_high[part]) if union else np.int64(rows.high[at])
                if low > high:
                    continue
                for edge in (low, high + 1):
                    if edge == 0:
                        continue
                    if count[dense] <= most:
                        count[dense] = insert_edge(edge, distinct[dense], count[dense], most)
                    # Every place of the sample is as likely to hold an early edge as a late one.
                    place = (seen[dense] * np.int64(40503)) % (sampled + (seen[dense] if seen[dense] > sampled else 0))
                    if seen[dense] < sampled:
                        place = seen[dense]
                    if place < sampled:
                        sample[dense, place] = edge
                    seen[dense] += 1
    return distinct, count, sample, np.minimum(seen, sampled)


@jit
def fill_hulls(
    rows: RowLiterals, tile_row: CodeArray, tile_end: CodeArray, hull_column: IntArray, hull_low: CodeArray,
    hull_high: CodeArray,
) -> None:  # fmt: skip
    """Fill the hulls: for each tile and hull column, from the least low end to the greatest high end.

    A hull may be too wide, which costs a visit; were it too narrow, events would skip rows that they satisfy.
    """
    for tile in range(len(tile_row)):
        for side in range(2):
            column = hull_column[2 * tile + side]
            if column < 0:
                continue
            # A row without a plain literal on the column widens the hull to all codes.
            least, most = np.int64(1) << 40, np.int64(0)
            for row in range(tile_row[tile], tile_end[tile]):
                low, high = np.int64(0), np.int64(1) << 31
                for at in range(rows.start[row], rows.start[row + 1]):
                    if rows.head[at] >> OP_BITS != column or rows.head[at] & KIND_MASK != ANY:
                        continue
                    if rows.head[at] & UNION:
                        low, high = np.int64(1) << 40, np.int64(0)
                        for part in range(rows.union_start[rows.low[at]], rows.union_start[rows.low[at] + 1]):
                            low = min(low, np.int64(rows.union_low[part]))
                            high = max(high, np.int64(rows.union_high[part]))
                    else:
                        low, high = np.int64(rows.low[at]), np.int64(rows.high[at])
                    break
                if low <= high:  # a row that accepts nothing does not widen the hull
                    least, most = min(least, low), max(most, high)
            hull_low[2 * tile + side] = min(least, np.int64(0x7FFFFFFF))
            hull_high[2 * tile + side] = min(most, np.int64(0x7FFFFFFF))


@jit
def count_buckets(
    tile_row: CodeArray, tile_end: CodeArray, place: IntArray, edge_start: IntArray, bits: WordArray,
    rate_start: IntArray,
) -> IntArray:  # fmt: skip
    """Count, for each bucket of each dense column, the rows of all tiles that live in it.

    Events take the columns in the order of these counts: the fewer rows an event's bucket keeps, the earlier.
    """
    counts = np.zeros(rate_start[-1], np.int64)
    for tile in range(len(tile_row)):
        rows = np.int64(tile_end[tile]) - np.int64(tile_row[tile])
        words = (rows + 63) >> 6
        for dense in range(place.shape[1]):
            for bucket in range(edge_start[dense + 1] - edge_start[dense] + 2):
                at = rate_start[dense] + bucket
                if place[tile, dense] < 0:
                    counts[at] += rows
                    continue
                for word in range(words):
                    counts[at] += count_bits(bits[place[tile, dense] + bucket * words + word])
    return counts
