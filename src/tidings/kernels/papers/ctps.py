"""Bit arrays of concept trees: the operands of an event combined by `or`, `and` and `not`, a bit for each subscription.

An event comes as a list of integers, root by root:

    asked, pairs, then for each pair:
        names, name rows ..., ids, single ids ..., values, value rows ..., ids, single ids ...,
        queries, grid and query of each ...

`asked` is the row of the subscriptions that constrain the root. A pair keeps those that one of its name rows and one
of its value rows (or the grid, for a number) contain; a subscription that constrains the root and is kept by no pair
fails. `names` is -1
where the root has no tree of names. Row 0 holds all subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tidings.kernels.bits import count_bits, find_lowest_bit
from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import Float, FloatArray, Int, IntArray, WordArray

ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
SIX, ONE, LOW, ZERO = np.uint64(6), np.uint64(1), np.uint64(63), np.uint64(0)


@jit
def set_bits(line: WordArray, ids: IntArray) -> None:
    """Set the bits of some ids."""
    for at in range(len(ids)):
        id = np.uint64(ids[at])
        line[id >> SIX] |= ONE << (id & LOW)


@jit
def clear_bits(line: WordArray, ids: IntArray) -> None:
    """Clear the bits of some ids."""
    for at in range(len(ids)):
        id = np.uint64(ids[at])
        line[id >> SIX] &= ~(ONE << (id & LOW))


@jit_inline
def find_cell(end: Float, base: Float, scale: Float, cells: Int) -> Int:
    """Return the cell of an end or value: it never falls as the number grows, and the outer cells have no bounds."""
    step = (end * 0.5 - base) * scale if scale > 0.0 else 0.0
    if step >= cells:
        return cells - 1
    return np.int64(step) if step > 0.0 else np.int64(0)


@jit
def find_cells(lows: FloatArray, highs: FloatArray, base: Float, scale: Float, cells: Int) -> IntArray:
    """Return the cell (y, x) of each interval as one number: its high end's cell times the width, and its low end's."""
    numbers = np.empty(len(lows), np.int64)
    for at in range(len(lows)):
        numbers[at] = find_cell(highs[at], base, scale, cells) * cells + find_cell(lows[at], base, scale, cells)
    return numbers


@jit_inline
def unite_into(into: WordArray, line: WordArray, words: np.uint64) -> None:
    """OR a row into an array."""
    for word in range(words):
        into[word] |= line[word]


@jit
def read_operand(code: IntArray, at: Int, bits: WordArray, into: WordArray, words: np.uint64) -> Int:
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
        id = np.uint64(code[single])
        into[id >> SIX] |= ONE << (id & LOW)
    return at + ids


@jit
def match_grid(
    grid: Int, line_of: IntArray, bits: WordArray, live: WordArray, names: WordArray, into: WordArray, words: np.uint64,
    span: FloatArray, tie: npt.NDArray[np.int8], low: FloatArray, low_tie: npt.NDArray[np.int8], high: FloatArray,
    high_tie: npt.NDArray[np.int8], domain: FloatArray,
) -> None:  # fmt: skip
    """Add to `into` the subscriptions whose interval meets the event's.

    Cells above the value's row and left of its column are in outright (part F); cells below or to the right are out
    (A, B); those in the row or the column (C, D, E) are compared one by one, but only what is still alive.
    """
    cells = np.int64(np.sqrt(len(line_of)))
    bottom = find_cell(span[0], domain[0], domain[1], cells)
    right = find_cell(span[1], domain[0], domain[1], cells)
    for y in range(bottom, cells):
        for x in range(min(y, right) + 1):
            row = line_of[y * cells + x]
            if row < 0:
                continue
            line = bits[row]
            if y > bottom and x < right:
                unite_into(into, line, words)
                continue
            for word in range(words):
                left = line[word] & live[word] & names[word]
                while left != ZERO:
                    id = np.int64(word) * 64 + find_lowest_bit(left)
                    left &= left - ONE
                    reaches = low[grid, id] < span[1] or (low[grid, id] == span[1] and low_tie[grid, id] <= tie[1])
                    if reaches and (
                        high[grid, id] > span[0] or (high[grid, id] == span[0] and high_tie[grid, id] >= tie[0])
                    ):
                        into[word] |= ONE << (np.uint64(id) & LOW)


@jit
def match(
    code: IntArray, starts: IntArray, event: Int, spans: FloatArray, ties: npt.NDArray[np.int8], bits: WordArray,
    scratch: WordArray, grids: IntArray, domains: FloatArray, low: FloatArray, low_tie: npt.NDArray[np.int8],
    high: FloatArray, high_tie: npt.NDArray[np.int8], out: IntArray, ends: IntArray,
) -> Int:  # fmt: skip
    """Match events from `event` on; write ids to `out`, the end of each to `ends`; return the first one left over."""
    words = np.uint64(bits.shape[1])
    live, names, values, kept = scratch[0], scratch[1], scratch[2], scratch[3]
    filled = 0
    while event < len(starts) - 1:
        everything = bits[0]
        for word in range(words):
            live[word] = everything[word]
        at = starts[event]
        while at < starts[event + 1]:
            asked, pairs = bits[code[at]], code[at + 1]
            at += 2
            for pair in range(pairs):
                if code[at] >= 0:
                    at = read_operand(code, at, bits, names, words)
                else:
                    at += 1
                    for word in range(words):
                        names[word] = ALL
                at = read_operand(code, at, bits, values, words)
                asking = code[at]
                at += 1
                for _ in range(asking):
                    grid, query = code[at], code[at + 1]
                    at += 2
                    match_grid(
                        grid, grids[grid], bits, live, names, values, words, spans[query], ties[query],
                        low, low_tie, high, high_tie, domains[grid],
                    )  # fmt: skip
                if pair == 0:
                    for word in range(words):
                        kept[word] = names[word] & values[word]
                else:
                    for word in range(words):
                        kept[word] |= names[word] & values[word]
            if pairs == 0:
                for word in range(words):
                    live[word] &= ~asked[word]
            else:
                for word in range(words):
                    live[word] &= ~asked[word] | kept[word]
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
