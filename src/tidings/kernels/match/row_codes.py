"""Rows as values: which ones are equal, and their codes when a column's space of end points grows.

Equal rows are kept once with the slots of all of them: sorted by hash, then compared with the first of their run.

When segments are merged, the end points of a column are united, and codes move by the ranks of the old points among the
new. Nothing is compared again, so moving costs one pass over the literals:

    old ends      10      20          code   0   1   2   3   4        price in [10 .. 20)  =  1 .. 2
    new ends   5  10  15  20          rank of the old ends: 1 3
                                                                       [10 .. 20)  =  3 .. 6, up to the gap before 20
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.jit import jit, jit_inline
from tidings.kernels.match.layout import OP_BITS, RowLiterals
from tidings.kernels.match.literals import UNION

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, CodeArray, Int, IntArray, WordArray

EMPTY_LOW = 0x7FFFFFFF
"""The low end of an interval that accepts nothing; its high end is 0."""


class MovedEnds(NamedTuple):
    """Where the end points of columns go in larger spaces: `rank[rank_start[c] + r]` is the new rank of point `r`."""

    size: IntArray  # of each column: its end points before
    rank: IntArray
    rank_start: IntArray
    new_size: IntArray  # of each column: its end points after


@jit_inline
def mix(state: np.uint64, value: Int) -> np.uint64:
    """Mix a number into a hash (multiply and shift)."""
    state = (state ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return state ^ (state >> np.uint64(29))


@jit
def hash_rows(rows: RowLiterals) -> WordArray:
    """Return a hash of each row's literals, in their order."""
    start, head, low, high, union_start, union_low, union_high = rows
    result = np.empty(len(start) - 1, np.uint64)
    for row in range(len(start) - 1):
        state = np.uint64(14695981039346656037)
        for at in range(start[row], start[row + 1]):
            state = mix(state, head[at])
            if head[at] & UNION:
                for part in range(union_start[low[at]], union_start[low[at] + 1]):
                    state = mix(mix(state, union_low[part]), union_high[part])
            else:
                state = mix(mix(state, low[at]), high[at])
        result[row] = state
    return result


# Flat, as it is called for each row with the hash of its neighbour, a million times where rows are shared (`layout`).
@jit
def is_equal(
    row: Int, other: Int, start: CodeArray, head: CodeArray, low: CodeArray, high: CodeArray, union_start: CodeArray,
    union_low: CodeArray, union_high: CodeArray,
) -> bool:  # fmt: skip
    """Tell whether two rows have the same literals in the same order."""
    first, second = np.int64(start[row]), np.int64(start[other])
    size = np.int64(start[row + 1]) - first
    if size != np.int64(start[other + 1]) - second:
        return False
    for i in range(size):
        a, b = first + i, second + i
        if head[a] != head[b]:
            return False
        if head[a] & UNION:
            begin, other_begin = np.int64(union_start[low[a]]), np.int64(union_start[low[b]])
            parts = np.int64(union_start[low[a] + 1]) - begin
            if parts != np.int64(union_start[low[b] + 1]) - other_begin:
                return False
            for j in range(parts):
                if (
                    union_low[begin + j] != union_low[other_begin + j]
                    or union_high[begin + j] != union_high[other_begin + j]
                ):
                    return False
        elif low[a] != low[b] or high[a] != high[b]:
            return False
    return True


@jit
def find_leaders(order: IntArray, hashed: WordArray, alone: ByteArray, rows: RowLiterals) -> CodeArray:
    """Return for each row the first row equal to it; `order` sorts rows by hash, `alone` rows stay apart."""
    start, head, low, high, union_start, union_low, union_high = rows
    leader = np.arange(len(order)).astype(np.uint32)
    for i in range(1, len(order)):
        row, before = order[i], order[i - 1]
        # Equal hashes are neighbours, but rows of equal hash need not be equal: a row is compared with the leader of
        # its neighbour. Where different rows collide and alternate, duplicates are missed; none is ever made up.
        if hashed[row] != hashed[before] or alone[row] or alone[before]:
            continue
        chief = leader[before]
        if is_equal(row, chief, start, head, low, high, union_start, union_low, union_high):
            leader[row] = chief
    return leader


@jit
def remap(head: CodeArray, low: CodeArray, high: CodeArray, ends: MovedEnds) -> None:
    """Move the ends of literals that are not unions, in place, into spaces with other end points."""
    size, rank, rank_start, new_size = ends
    for at in range(len(head)):
        if head[at] & UNION:
            continue
        column = np.int64(head[at] >> OP_BITS)
        low[at], high[at] = move_interval(low[at], high[at], size[column], rank, rank_start[column], new_size[column])


@jit_inline
def move_interval(low: Int, high: Int, size: Int, rank: IntArray, base: Int, new_size: Int) -> tuple[Int, Int]:
    """Return an interval's codes in the larger space."""
    new_low, new_high = np.int64(low), np.int64(high)
    # Odd codes are end points and move with their rank; an even one is the gap after the end point below it.
    if new_low != EMPTY_LOW:
        if new_low > 0:
            new_low = 2 * np.int64(rank[base + ((new_low - 1) >> 1)]) + (1 if new_low & 1 else 2)
        if new_high == 2 * size:
            new_high = 2 * np.int64(new_size)
        else:
            new_high = 2 * np.int64(rank[base + (new_high >> 1)]) + (new_high & 1)
    return new_low, new_high


@jit
def remap_unions(
    head: CodeArray, low: CodeArray, union_start: CodeArray, union_low: CodeArray, union_high: CodeArray,
    ends: MovedEnds,
) -> None:  # fmt: skip
    """Do the same for the intervals of unions; a union belongs to one literal or to equal ones, and moves once."""
    size, rank, rank_start, new_size = ends
    done = np.zeros(len(union_start), np.uint8)
    for at in range(len(head)):
        if not head[at] & UNION or done[low[at]]:
            continue
        done[low[at]] = 1
        column = np.int64(head[at] >> OP_BITS)
        for part in range(union_start[low[at]], union_start[low[at] + 1]):
            union_low[part], union_high[part] = move_interval(
                union_low[part], union_high[part], size[column], rank, rank_start[column], new_size[column]
            )


@jit
def drop_duplicates(
    events: IntArray, slots: CodeArray, event_count: Int, slot_count: Int
) -> tuple[IntArray, CodeArray]:
    """Return the distinct pairs of event and slot, by event: a counting sort, then `seen[slot]` is its last event."""
    start = np.zeros(event_count + 1, np.int64)
    for i in range(len(events)):
        start[events[i] + 1] += 1
    for event in range(event_count):
        start[event + 1] += start[event]
    ordered = np.empty(len(events), slots.dtype)
    filled = start[:-1].copy()
    for i in range(len(events)):
        ordered[filled[events[i]]] = slots[i]
        filled[events[i]] += 1
    seen = np.full(slot_count, -1, np.int64)
    kept_event, kept_slot = np.empty(len(events), np.int64), np.empty(len(events), slots.dtype)
    count = 0
    for event in range(event_count):
        for i in range(start[event], start[event + 1]):
            if seen[ordered[i]] != event:
                seen[ordered[i]] = event
                kept_event[count] = event
                kept_slot[count] = ordered[i]
                count += 1
    return kept_event[:count], kept_slot[:count]
