"""Bit arrays of concept trees: the operands of an event combined by `or`, `and` and `not`, a bit for each subscription.

An event is a list of integers, root by root:

    constrained row, pairs, then for each pair:
        names, name rows ..., ids, single ids ..., values, value rows ..., ids, single ids ...,
        queries, grid and query of each ...

The constrained row has the subscriptions that constrain the root. A pair keeps those that one of its name rows and one
of its value rows (or the grid, for a number) contain; a subscription that constrains the root and is kept by no pair
fails. `names` is -1 where the root has no tree of names. Row 0 holds all subscriptions.

The loops run over whole words of 64 subscriptions without a branch, so the compiler vectorises them; all else is
arranged so that as much as possible is such a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tidings.kernels.bits import count_bits, find_lowest_bit, set_bit
from tidings.kernels.jit import jit
from tidings.kernels.papers.domain_cells import DomainScale, find_cell

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int, Int32Array, IntArray, WordArray

ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
ONE, ZERO = np.uint64(1), np.uint64(0)

TieArray: TypeAlias = npt.NDArray[np.int16]
"""Beside the end of an interval: what a float misses of an integer, and a step for an end that is open."""


class EventOperands(NamedTuple):
    """Events as integers, where each begins, and the intervals of their numbers with ties."""

    code: Int32Array
    starts: IntArray
    spans: FloatArray
    ties: IntArray


class GridArrays(NamedTuple):
    """Of each grid: the bit row of each cell (below 0 where it is empty), the domain, and the ends by subscription."""

    rows: Int32Array
    domain: DomainScale
    low: FloatArray
    low_tie: TieArray
    high: FloatArray
    high_tie: TieArray


GridTuple: TypeAlias = "tuple[Int32Array, tuple[FloatArray, ...], tuple[FloatArray, TieArray, FloatArray, TieArray]]"
"""The parts of `GridArrays` as plain tuples: rows, the domain, and ends with their ties."""


@jit
def find_cells(lows: FloatArray, highs: FloatArray, domain: DomainScale, grid: Int, cells: Int) -> IntArray:
    """Return the cell (y, x) of each interval as one number: its high end's cell times the width, and its low end's."""
    numbers = np.empty(len(lows), np.int64)
    for at in range(len(lows)):
        numbers[at] = find_cell(domain, grid, highs[at], cells) * cells + find_cell(domain, grid, lows[at], cells)
    return numbers


@jit
def read_operand(code: Int32Array, at: Int, bits: WordArray, into: WordArray, words: np.uint64) -> Int:
    """OR rows and single ids into an array that is overwritten, four rows at a time; return the place after them."""
    rows = code[at]
    at += 1
    end = at + rows
    if rows & 1:
        line = bits[code[at]]
        for word in range(words):
            into[word] = line[word]
    elif rows:
        line, other = bits[code[at]], bits[code[at + 1]]
        for word in range(words):
            into[word] = line[word] | other[word]
    else:
        for word in range(words):
            into[word] = ZERO
    at += 2 - (rows & 1)
    while at + 4 <= end:
        first, second, third, fourth = bits[code[at]], bits[code[at + 1]], bits[code[at + 2]], bits[code[at + 3]]
        for word in range(words):
            into[word] |= first[word] | second[word] | third[word] | fourth[word]
        at += 4
    if at < end:  # two are left: their number is even
        first, second = bits[code[at]], bits[code[at + 1]]
        for word in range(words):
            into[word] |= first[word] | second[word]
    at = end
    ids = code[at]
    at += 1
    for single in range(at, at + ids):
        set_bit(into, np.uint64(code[single]), True)
    return at + ids


@jit
def match_grid(
    grids: GridArrays, grid: Int, bits: WordArray, live: WordArray, names: WordArray, into: WordArray,
    span: FloatArray, tie: IntArray,
) -> None:  # fmt: skip
    """Add to `into` the subscriptions whose interval meets the event's.

    Cells above the value's row and left of its column are in outright (part F); cells below or to the right are out
    (A, B); those in the row or the column (C, D, E, here =) are compared one by one, but only what is still alive:

        high end, y |  F  F  =  .
                    |  F  F  =  .
                    |  =  =  =  .    the value's row
                    |  .  .  .  .    low end, x
    """
    line_of, words = grids.rows[grid], np.uint64(len(into))
    low, low_tie, high, high_tie = grids.low[grid], grids.low_tie[grid], grids.high[grid], grids.high_tie[grid]
    cells = np.int64(np.sqrt(len(line_of)))
    bottom = find_cell(grids.domain, grid, span[0], cells)
    right = find_cell(grids.domain, grid, span[1], cells)
    for y in range(bottom, cells):
        for x in range(min(y, right) + 1):
            row = line_of[y * cells + x]
            if row < 0:
                continue
            line = bits[row]
            if y > bottom and x < right:
                for word in range(words):
                    into[word] |= line[word]
                continue
            for word in range(words):
                left = line[word] & live[word] & names[word]
                while left != ZERO:
                    id = np.int64(word) * 64 + find_lowest_bit(left)
                    left &= left - ONE
                    reaches = low[id] < span[1] or (low[id] == span[1] and low_tie[id] <= tie[1])
                    if reaches and (high[id] > span[0] or (high[id] == span[0] and high_tie[id] >= tie[0])):
                        set_bit(into, np.uint64(id), True)


@jit
def match(
    events: EventOperands, event: Int, bits: WordArray, scratch: WordArray, index: GridTuple, out: Int32Array,
    ends: IntArray,
) -> Int:  # fmt: skip
    """Match events from `event` on; write ids to `out`, the end of each to `ends`; return the first one left over.

    The groups come as plain tuples, `index` as the parts of `GridArrays`: Numba looks up the class of a named one at
    every call from Python, which made 21 us of 19 for a single event.
    """
    code, starts, spans, ties = events
    words, grids = np.uint64(bits.shape[1]), GridArrays(index[0], DomainScale(*index[1]), *index[2])
    live, names, values, kept = scratch[0], scratch[1], scratch[2], scratch[3]
    filled = 0
    while event < len(starts) - 1:
        everything = bits[0]
        for word in range(words):
            live[word] = everything[word]
        at = starts[event]
        while at < starts[event + 1]:
            constrained, pairs = bits[code[at]], code[at + 1]
            at += 2
            for pair in range(pairs):
                if code[at] >= 0:
                    at = read_operand(code, at, bits, names, words)
                else:
                    at += 1
                    for word in range(words):
                        names[word] = ALL_BITS
                at = read_operand(code, at, bits, values, words)
                queries = code[at]
                at += 1
                for _ in range(queries):
                    grid, query = code[at], code[at + 1]
                    at += 2
                    match_grid(grids, grid, bits, live, names, values, spans[query], ties[query])
                if pair == 0:
                    for word in range(words):
                        kept[word] = names[word] & values[word]
                else:
                    for word in range(words):
                        kept[word] |= names[word] & values[word]
            # A subscription survives a root that it does not constrain, or by one of the event's pairs there.
            if pairs == 0:
                for word in range(words):
                    live[word] &= ~constrained[word]
            else:
                for word in range(words):
                    live[word] &= ~constrained[word] | kept[word]
        total = 0
        for word in range(words):
            if live[word] != ZERO:
                total += count_bits(live[word])
        if filled + total > len(out):
            return event
        for word in range(words):
            left = live[word]
            while left != ZERO:
                out[filled] = np.int64(word) * 64 + find_lowest_bit(left)
                left &= left - ONE
                filled += 1
        ends[event] = filled
        event += 1
    return event
