"""The exact check of rows that survived keys and bitmaps, and writing out what holds.

    rows.start     [ 0    2    5 ... ]                         row 0 has literals 0 and 1
    rows.literal   [ head low high | head low high | ... ]     three numbers a literal, side by side in one cache line
    rows.entry     [ 0 1 3 ... ]   rows.slot [ s0 s1 s2 ... ]  equal rows are kept once, with all of their slots

Ordinary rows come out as (event, slot); special ones as (event, row): they need more than this check, such as an exact
test of text or places, or they are one of several conjunctions of a filter. Cost: a cache miss or two for each row that
is checked, and literals until one fails; so rows are touched in groups before they are checked (`sift_rows`).
Output arrays grow, but never inside a hot loop: Numba counts references wherever an array changes hands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.growth import grow
from tidings.kernels.jit import jit
from tidings.kernels.match.layout import OP_BITS, OP_MASK, EventCells, IndexRows, Intervals, Pairs
from tidings.kernels.match.literals import ABSENT, KIND_MASK, NOT_ANY, SEVERAL, UNION, accepts

if TYPE_CHECKING:
    from tidings.kernels.array_types import CodeArray, Int

POSITIVE = 0b100011
"""The set of ops, as bits, that want a single value to lie inside the interval: `ANY`, `ALL`, `NOT_NONE`."""

WAITING, TOUCHED = 4096, 64
"""Room for rows that wait for their check, and how many of them are touched together before the first is checked."""

MOST = 1 << 25
"""Pairs that one call writes; further ones are only counted, and the caller calls again with fewer events."""

U0, U1, U2, U3, U4, U5, U6, U7, U8, U9, U10, U11 = (np.uint64(number) for number in range(12))


@jit
def check_literals(
    at: np.uint64, last: np.uint64, literal: CodeArray, unions: Intervals, cell: CodeArray, many: Intervals, event: Int
) -> bool:
    """Tell whether an event satisfies the literals from place `at` up to `last`: every op, unions, several values."""
    while at < last:
        head = literal[at]
        code = cell[event, head >> OP_BITS]
        op = np.int64(head & KIND_MASK)
        if head & UNION or (code >= SEVERAL and code != ABSENT):
            if not accepts(
                code, head & OP_MASK, literal[at + U1], literal[at + U2],
                many[0], many[1], many[2], unions[0], unions[1], unions[2],
            ):  # fmt: skip
                return False
        elif code == ABSENT:
            if op < NOT_ANY:
                return False
        elif (code >= literal[at + U1] and code <= literal[at + U2]) != ((POSITIVE >> op) & 1 == 1):
            return False
        at += U3
    return True


@jit
def append_special(special: Pairs, event: Int, row: Int) -> Pairs:
    """Append a special row."""
    events, rows, count = special
    if count >= MOST:
        return events, rows, count + 1
    if count == len(events):
        events, rows = grow(events, 0), grow(rows, 0)
    events[count] = event
    rows[count] = row
    return events, rows, count + 1


@jit
def emit_rows(
    rows: IndexRows, sure_event: CodeArray, sure_row: CodeArray, sure: Int, matches: Pairs, special: Pairs
) -> tuple[Pairs, Pairs]:
    """Append rows that hold for certain: the slots of ordinary ones to `matches`, special ones to `special`."""
    entry, slot, special_row = rows.entry, rows.slot, rows.special
    out_event, out_slot, count = matches
    shared = len(entry) > 0
    total = sure
    if shared:
        total = np.int64(0)
        for i in range(sure):
            total += np.int64(entry[np.uint64(sure_row[i]) + U1]) - np.int64(entry[sure_row[i]])
    # Never so many of one event, since a slot has one ordinary row: halving the batch always helps in the end.
    if count + total > max(MOST, len(slot)):
        return (out_event, out_slot, count + total), special
    if count + total > len(out_event):
        out_event, out_slot = grow(out_event, count + total), grow(out_slot, count + total)
    specials = 0
    for i in range(sure):
        row = np.uint64(sure_row[i])
        if special_row[row]:
            sure_event[specials], sure_row[specials] = sure_event[i], sure_row[i]
            specials += 1
        elif shared:
            for place in range(entry[row], entry[row + U1]):
                out_event[count] = sure_event[i]
                out_slot[count] = slot[place]
                count += 1
        else:
            out_event[count] = sure_event[i]
            out_slot[count] = slot[row]
            count += 1
    for i in range(specials):
        special = append_special(special, sure_event[i], sure_row[i])
    return (out_event, out_slot, count), special


@jit
def sift_rows(rows: IndexRows, cells: EventCells, wait_event: CodeArray, wait_row: CodeArray, waiting: Int) -> Int:
    """Check rows that wait with their events; move those that hold to the front, and return their number.

    A row's literals are seldom in cache, so `TOUCHED` rows are touched before the first is checked: their misses
    overlap. Plain intervals are compared four at a time without a branch, since which of them fails cannot be
    predicted; `odd` rows (other ops, unions, events with several values) go through `check_literals`.
    """
    start, literal = rows.start, rows.literal
    unions = (rows.union_start, rows.union_low, rows.union_high)
    cell, plain, many = cells.cell, cells.plain, (cells.many_start, cells.many_low, cells.many_high)
    flat, stride = cell.ravel(), np.uint64(cell.shape[1])
    touched, good = U0, 0
    for chunk in range(0, waiting, TOUCHED):
        end = min(waiting, chunk + TOUCHED)
        for i in range(chunk, end):
            touched ^= np.uint64(start[wait_row[i]])
        for i in range(chunk, end):
            row = np.uint64(wait_row[i])
            if start[row] < start[row + U1]:
                touched ^= np.uint64(literal[U3 * np.uint64(start[row])])
                touched ^= np.uint64(literal[U3 * np.uint64(start[row + U1]) - U1])
        for i in range(chunk, end):
            row = np.uint64(wait_row[i])
            of_event = stride * np.uint64(wait_event[i])
            first, last = np.uint64(start[row]), np.uint64(start[row + U1])
            bad, odd = False, plain[wait_event[i]] == 0
            # Absent cells are above every high end, so they fail a plain interval without a test of their own.
            while first + U4 <= last and not (bad | odd):
                at = U3 * first
                head_a, head_b, head_c, head_d = literal[at], literal[at + U3], literal[at + U6], literal[at + U9]
                code = flat[of_event + np.uint64(head_a >> OP_BITS)]
                bad = (code < literal[at + U1]) | (code > literal[at + U2])
                code = flat[of_event + np.uint64(head_b >> OP_BITS)]
                bad |= (code < literal[at + U4]) | (code > literal[at + U5])
                code = flat[of_event + np.uint64(head_c >> OP_BITS)]
                bad |= (code < literal[at + U7]) | (code > literal[at + U8])
                code = flat[of_event + np.uint64(head_d >> OP_BITS)]
                bad |= (code < literal[at + U10]) | (code > literal[at + U11])
                odd = (head_a | head_b | head_c | head_d) & OP_MASK != 0
                first += U4
            while first < last and not (bad | odd):
                at = U3 * first
                code = flat[of_event + np.uint64(literal[at] >> OP_BITS)]
                bad = (code < literal[at + U1]) | (code > literal[at + U2])
                odd = literal[at] & OP_MASK != 0
                first += U1
            if odd:
                bad = not check_literals(
                    U3 * np.uint64(start[row]), U3 * last, literal, unions, cell, many, wait_event[i]
                )
            if bad:
                continue
            wait_event[good], wait_row[good] = wait_event[i], wait_row[i]
            good += 1
    if touched == ~U0 and waiting < 0:  # never true; without a use of `touched` the compiler drops those loops
        good = 0
    return good


@jit
def check_rows(
    rows: IndexRows, cells: EventCells, wait_event: CodeArray, wait_row: CodeArray, waiting: Int, matches: Pairs,
    special: Pairs,
) -> tuple[Pairs, Pairs]:  # fmt: skip
    """Check the first `waiting` pairs of event and row, and append those that hold."""
    good = sift_rows(rows, cells, wait_event, wait_row, waiting)
    return emit_rows(rows, wait_event, wait_row, good, matches, special)
