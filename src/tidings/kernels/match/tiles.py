"""Tiles: events against the bitmaps of a thousand rows at a time.

A tile has, for each *dense* column that some of its rows constrain, one bitmap for each bucket (the codes between two
edges), and one more for "absent"; a row's bit is set where the row may accept a value of that bucket:

    column `price`, edges 10 20 30     bucket   0 (<10)   1 (10..19)   2 (20..29)   3 (>=30)   absent
    row 0: price in [10 .. 29]                     0          1            1           0          0
    row 1: price >= 15                             0          1            1           1          0
    row 2: no literal on price                     1          1            1           1          1
                                                   |
    words of the tile:    bits[place[tile, column] + bucket * words + word]

An event takes the bitmap of its own bucket in each column and the AND of them; what is left are the survivors. That is
one bitmap for each value, where bitmaps at each edge would take two (docs/decisions/0006). Invariant: a bitmap lets
too many rows live, never too few. Behind the bitmaps of a *doubted* column lies a second set: rows for which the bucket
does not decide. Survivors in none of these, nor in `rest`, hold for certain; the others go to the exact check.

Columns are taken by ascending match rate for this event, four at a time without a branch, while a bit is alive. Before
that an event skips a tile whose hull its value misses (docs/decisions/0007). Cost: two comparisons for each tile, then
words times columns until nothing lives.

The loops are long functions on purpose: handing thirty arrays to a function counts references for each of them,
which costs more than its work; and unsigned places spare the test for negative ones, which would keep the loops
over words from being vectorised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.bits import find_lowest_bit
from tidings.kernels.jit import jit, jit_inline
from tidings.kernels.match.exact_check import U0, U1, U2, check_rows, emit_rows
from tidings.kernels.match.literals import ABSENT, SEVERAL

if TYPE_CHECKING:
    from tidings.kernels.array_types import CodeArray, Int, Int32Array, WordArray
    from tidings.kernels.match.layout import (
        EventBuckets,
        EventCells,
        IndexRows,
        IndexTiles,
        Intervals,
        PairBuffers,
        Pairs,
    )

FIRST = 4
"""Columns whose bitmaps are combined before the test whether anything lives: fewer branches, hardly more words."""

NOWHERE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""The place of a column without bitmaps: no row of the tile constrains it."""

SORTED_UP_TO = 64
"""With more dense columns than this, putting them in order costs more than it saves."""

U64 = np.uint64(64)


@jit_inline
def find_bucket(edges: CodeArray, low: Int, high: Int, code: Int) -> Int:
    """Return the bucket of a code: how many of the sorted edges from place `low` up to `high` are not above it."""
    begin = low
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= code:
            low = middle + 1
        else:
            high = middle
    return low - begin


@jit
def prepare_events(tiles: IndexTiles, cells: EventCells) -> EventBuckets:
    """Return for each event the dense columns by match rate, its bucket in each of these, and its bucket in all.

    Done once for a batch and not for each tile: an event visits many tiles, and its buckets are the same in all.
    """
    edge_start, edges, dense_column = tiles.edge_start, tiles.edges, tiles.dense
    count, width = cells.cell.shape[0], len(dense_column)
    order = np.empty(count * width, np.uint32)
    buckets = np.empty(count * width, np.uint32)
    by_dense = np.empty(count * width, np.uint32)
    rate = np.empty(width, np.float32)
    for event in range(count):
        first = event * width
        own_buckets = by_dense[first : first + width]
        for dense in range(width):
            cell = cells.cell[event, dense_column[dense]]
            if cell == ABSENT:
                own_buckets[dense] = edge_start[dense + 1] - edge_start[dense] + 1
            elif cell < SEVERAL:
                own_buckets[dense] = find_bucket(edges, edge_start[dense], edge_start[dense + 1], cell)
            else:
                own_buckets[dense] = SEVERAL
            rate[dense] = (
                1.0 if own_buckets[dense] == SEVERAL else tiles.rates[tiles.rate_start[dense] + own_buckets[dense]]
            )
            # Insertion sort by the share of rows that live in the event's bucket: the column that kills most is first.
            at = first + dense
            while at > first and width <= SORTED_UP_TO and rate[order[at - 1]] > rate[dense]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = dense
        for at in range(first, first + width):
            buckets[at] = own_buckets[order[at]]
    return order, buckets, by_dense


@jit
def is_outside(cell: Int, many: Intervals, low: Int, high: Int) -> bool:
    """Tell whether no value of a cell, nor anything between two of them, lies in the hull `low .. high`."""
    if cell == ABSENT:
        return True
    if cell < SEVERAL:
        return cell < low or cell > high
    least, most = find_span(cell, many)
    return most < low or least > high


@jit
def find_span(cell: Int, many: Intervals) -> tuple[Int, Int]:
    """Return the least and the greatest value of a cell that has several values or ranges."""
    place = cell & np.uint32(0x7FFFFFFF)
    least, most = many[1][many[0][place]], many[2][many[0][place]]
    for at in range(many[0][place] + 1, many[0][place + 1]):
        least = min(least, many[1][at])
        most = max(most, many[2][at])
    return least, most


# Flat, as it is called for a tile and an event in the middle of a hot loop, whose arrays are unpacked already.
@jit
def keep_several(
    edges: CodeArray, first: Int, last: Int, bits: WordArray, cell: Int, many: Intervals, place: Int, words: Int,
    alive: WordArray,
) -> None:  # fmt: skip
    """Keep the rows that live in some bucket between the least and the greatest value of a cell."""
    least, most = find_span(cell, many)
    begin, end = find_bucket(edges, first, last, least), find_bucket(edges, first, last, most)
    for word in range(words):
        some = np.uint64(0)
        for at in range(begin, end + 1):
            some |= bits[place + at * words + word]
        alive[word] &= some


@jit
def find_survivors(
    tiles: IndexTiles, cells: EventCells, last_tile: Int, visitors: Int32Array, prepared: EventBuckets,
    cursor: tuple[Int, Int], wait_event: CodeArray, wait_row: CodeArray, sure_event: CodeArray, sure_row: CodeArray,
) -> tuple[Int, Int, Int, Int]:  # fmt: skip
    """Pass events through the bitmaps of tiles, from `cursor` on, until all are through or the room is used up.

    Writes pairs of event and row to the four buffers, flat for the loops: those that wait for their check, and those
    that the bitmaps are sure of. Returns the next tile, the next visitor, and how many pairs there are of each.
    """
    cell, plain, many = cells.cell, cells.plain, (cells.many_start, cells.many_low, cells.many_high)
    bits, places_of = tiles.words, tiles.place
    hull_column, hull_low, hull_high = tiles.hull_column, tiles.hull_low, tiles.hull_high
    tile_begin, tile_end, rest, rest_start, doubted = tiles.row, tiles.end, tiles.rest, tiles.rest_start, tiles.doubted
    edges, edge_start, dense_column = tiles.edges, tiles.edge_start, tiles.dense
    order, buckets, by_dense = prepared
    width = np.uint64(len(tiles.dense))
    places = np.empty(FIRST, np.uint64)
    alive, doubt = np.empty(len(wait_row) >> 6, np.uint64), np.empty(len(wait_row) >> 6, np.uint64)
    first_tile, first_visitor = cursor
    waiting = sure = 0
    for tile in range(first_tile, last_tile):
        begin, end = np.int64(tile_begin[tile]), np.int64(tile_end[tile])
        words = np.uint64((end - begin + 63) >> 6)
        tail = ~U0 if (end - begin) & 63 == 0 else (U1 << np.uint64((end - begin) & 63)) - U1
        column, column2 = hull_column[2 * tile], hull_column[2 * tile + 1]
        low1, high1, low2, high2 = (
            hull_low[2 * tile], hull_high[2 * tile], hull_low[2 * tile + 1], hull_high[2 * tile + 1],
        )  # fmt: skip
        for visitor in range(first_visitor, len(visitors)):
            if max(waiting, sure) + (end - begin) > len(wait_row):
                return tile, visitor, waiting, sure
            event = visitors[visitor]
            if column >= 0:
                value = cell[event, column]
                if value < SEVERAL:
                    if value < low1 or value > high1:
                        continue
                elif is_outside(value, many, low1, high1):
                    continue
            if column2 >= 0:
                value = cell[event, column2]
                if value < SEVERAL:
                    if value < low2 or value > high2:
                        continue
                elif is_outside(value, many, low2, high2):
                    continue
            # Combine bitmaps, `FIRST` columns at a time, into `alive`.
            at, last_column = width * np.uint64(event), width * np.uint64(event) + width
            of_tile = width * np.uint64(tile)
            fresh, left = True, U1
            while left != U0:
                filled = 0
                while filled < FIRST and at < last_column:
                    place = places_of[of_tile + np.uint64(order[at])]
                    if place != NOWHERE and buckets[at] != SEVERAL:
                        places[filled] = place + np.uint64(buckets[at]) * words
                        filled += 1
                    at += U1
                if filled == 0:
                    break
                for i in range(filled, FIRST):  # the same bitmap once more changes nothing; one loop serves all cases
                    places[i] = places[0]
                a, b, c, d = places[0], places[1], places[2], places[3]
                left = U0
                if fresh:
                    fresh = False
                    for word in range(words):
                        conjunction = bits[a + word] & bits[b + word] & bits[c + word] & bits[d + word]
                        alive[word] = conjunction
                        left |= conjunction
                else:
                    for word in range(words):
                        conjunction = alive[word] & bits[a + word] & bits[b + word] & bits[c + word] & bits[d + word]
                        alive[word] = conjunction
                        left |= conjunction
            if left == U0:
                continue
            if fresh:
                for word in range(words):
                    alive[word] = ~U0
            # Columns of several values come last: they are rare, and an OR over buckets kills little.
            if not plain[event]:
                for i in range(width * np.uint64(event), last_column):
                    place = places_of[of_tile + np.uint64(order[i])]
                    if buckets[i] == SEVERAL and place != NOWHERE:
                        dense = order[i]
                        keep_several(
                            edges, edge_start[dense], edge_start[dense + 1], bits,
                            cell[event, dense_column[dense]], many, np.int64(place), np.int64(words), alive,
                        )  # fmt: skip
            alive[words - U1] &= tail  # the last word has bits for rows that the tile does not have
            # Which survivors are in doubt: all of an event with several values; else `rest` and the doubted columns.
            if plain[event] == 0:
                for word in range(words):
                    doubt[word] = ~U0
            else:
                for word in range(words):
                    doubt[word] = rest[np.uint64(rest_start[tile]) + word]
                for i in range(len(doubted)):
                    dense = np.uint64(doubted[i])
                    place = places_of[of_tile + dense]
                    number = np.uint64(by_dense[width * np.uint64(event) + dense])
                    count = np.uint64(edge_start[dense + U1] - edge_start[dense]) + U2
                    if place != NOWHERE and number < count - U1:
                        first_word = place + (count + number) * words
                        for word in range(words):
                            doubt[word] |= bits[first_word + word]
            # Write pairs down, bit by bit: `left & (left - 1)` clears the lowest one.
            for word in range(words):
                left = alive[word] & doubt[word]
                while left != U0:
                    wait_event[waiting] = event
                    wait_row[waiting] = np.uint64(begin) + U64 * word + np.uint64(find_lowest_bit(left))
                    waiting += 1
                    left &= left - U1
                left = alive[word] & ~doubt[word]
                while left != U0:
                    sure_event[sure] = event
                    sure_row[sure] = np.uint64(begin) + U64 * word + np.uint64(find_lowest_bit(left))
                    sure += 1
                    left &= left - U1
        first_visitor = 0
    return last_tile, 0, waiting, sure


@jit
def match_tiles(
    rows: IndexRows, tiles: IndexTiles, cells: EventCells, first_tile: Int, last_tile: Int, visitors: Int32Array,
    prepared: EventBuckets, room: PairBuffers, matches: Pairs, special: Pairs,
) -> tuple[Pairs, Pairs]:  # fmt: skip
    """Match the events `visitors` with the rows of some tiles, and append what holds to `matches` and `special`.

    The arrays come in groups; one of all groups would be built anew for each cluster, as its tiles and visitors differ.
    """
    wait_event, wait_row, sure_event, sure_row = room
    tile, visitor = np.int64(first_tile), np.int64(0)
    while tile < last_tile:
        tile, visitor, waiting, sure = find_survivors(
            tiles, cells, np.int64(last_tile), visitors, prepared, (tile, visitor), wait_event, wait_row, sure_event,
            sure_row,
        )  # fmt: skip
        matches, special = check_rows(rows, cells, wait_event, wait_row, waiting, matches, special)
        matches, special = emit_rows(rows, sure_event, sure_row, sure, matches, special)
    return matches, special
