"""The exact check of rows that survived keys and bitmaps, and writing out what holds.

Ordinary rows come out as (event, slot); special ones as (event, row), for the second phase. Output arrays grow, but
never inside a hot loop: Numba counts references wherever an array changes hands.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import jit
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import ABSENT, NOT_ANY, SEVERAL, UNION, accepts

POSITIVE = 0b100011
"""The ops, as bits, that ask a single value to lie inside: `ANY`, `ALL`, `NOT_NONE`."""

WAITING, TOUCHED = 4096, 64
"""Rows that wait for their check, and how many of them are touched together."""

MOST = 1 << 25
"""Pairs that one call writes down; what comes after is only counted, and the caller asks again with fewer events."""

U0, U1, U2, U3, U4, U5, U6, U7, U8, U9, U10, U11 = (np.uint64(number) for number in range(12))


@jit
def grow(array, least):  # type: ignore[no-untyped-def]
    """Return the array with at least twice the room."""
    larger = np.empty(max(2 * len(array), least), array.dtype)
    larger[: len(array)] = array
    return larger


@jit
def check_literals(at, last, literal, unions, cell, many, event):  # type: ignore[no-untyped-def]
    """Tell whether an event satisfies the literals from one place up to another, whatever they are."""
    while at < last:
        head = literal[at]
        code = cell[event, head >> OP_BITS]
        op = np.int64(head & 7)
        if head & UNION or (code >= SEVERAL and code != ABSENT):
            if not accepts(
                code, head & 15, literal[at + U1], literal[at + U2],
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
def append_special(special, event, row):  # type: ignore[no-untyped-def]
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
def emit_rows(rows, sure_event, sure_row, sure, matches, special):  # type: ignore[no-untyped-def]
    """Append rows that hold for certain."""
    entry, slot, special_row = rows.entry, rows.slot, rows.special
    out_event, out_slot, count = matches
    shared = len(entry) > 0
    total = sure
    if shared:
        total = np.int64(0)
        for i in range(sure):
            total += np.int64(entry[np.uint64(sure_row[i]) + U1]) - np.int64(entry[sure_row[i]])
    if count + total > max(MOST, len(slot)):  # never so many of one event: a slot has one ordinary row
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
def sift_rows(rows, cells, wait_event, wait_row, waiting):  # type: ignore[no-untyped-def]
    """Check rows that wait with their events; those that hold move to the front. Returns their number.

    What a row needs is seldom in cache, so a few dozen are touched before the first is checked: their lines come in
    together. Literals are taken four at a time without a branch, since which of them fails cannot be foreseen;
    other ops, unions and several values go through `holds_from`.
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
                odd = (head_a | head_b | head_c | head_d) & 15 != 0
                first += U4
            while first < last and not (bad | odd):
                at = U3 * first
                code = flat[of_event + np.uint64(literal[at] >> OP_BITS)]
                bad = (code < literal[at + U1]) | (code > literal[at + U2])
                odd = literal[at] & 15 != 0
                first += U1
            if odd:
                bad = not check_literals(
                    U3 * np.uint64(start[row]), U3 * last, literal, unions, cell, many, wait_event[i]
                )
            if bad:
                continue
            wait_event[good], wait_row[good] = wait_event[i], wait_row[i]
            good += 1
    if touched == ~U0 and waiting < 0:  # never: only keeps the loops that touch from being dropped
        good = 0
    return good


@jit
def check_rows(rows, cells, wait_event, wait_row, waiting, matches, special):  # type: ignore[no-untyped-def]
    """Check rows that wait with their events, and append those that hold."""
    good = sift_rows(rows, cells, wait_event, wait_row, waiting)
    return emit_rows(rows, wait_event, wait_row, good, matches, special)
