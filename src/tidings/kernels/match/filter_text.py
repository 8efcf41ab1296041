"""Filters in text, read from one block of bytes: plain conjunctions of comparisons, ranges and sets.

`make = 'ford' and price in [1000 .. 9000] and fuel in ('gas', 'diesel') and year >= 2015`: names of ASCII letters,
numbers of up to fifteen digits, text in single quotes without escapes. A row that has anything else, be it a mistake,
is left to the parser: the kernel takes only what it reads with certainty. Predicates and values are written one after
the other into flat arrays:

    row 0: price < 9 and make in ('a', 'b')
    predicates   row [0 0]  name [0 1]  op [LT SET]  flags [0 0]  first value [0 1]  number of values [1 2]
    values       kind [INT TEXT TEXT]   ints [9 - -]   floats [9.0 - -]   where a text begins and how long it is
    names        where each name stands first in the bytes: 0 `price`, 1 `make`

Invariant: for rows that it takes, the parser gives the same tree. Cost: each byte once or twice, and nothing allocated.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tidings.kernels.array_types import BoolArray, ByteArray, Float, FloatArray, Int, IntArray
from tidings.kernels.jit import jit, jit_inline

EQ, LT, LE, GT, GE, RANGE, SET = range(7)
"""Ops of a predicate."""

HAS_LOW, HAS_HIGH, LOW_OPEN, HIGH_OPEN = 1, 2, 4, 8
"""Flags of a range."""

INT, FLOAT, TEXT = range(3)
"""Kinds of a value."""

NAMES = 4096
"""The most names that are numbered; rows with further ones are left to the parser."""

DIGITS = 15
"""Numbers of so many digits are exact: a whole number below 2**53, divided by an exact power of ten."""

Values: TypeAlias = tuple[ByteArray, IntArray, FloatArray, IntArray, IntArray]
"""Values as they are read: kinds, whole numbers, numbers, and where texts begin and how long they are."""

Predicates: TypeAlias = tuple[IntArray, IntArray, ByteArray, ByteArray, IntArray, IntArray]
"""Predicates as they are read: row, name, op, flags, first value and number of values."""

SPACE, QUOTE, BACKSLASH, COMMA, DOT, MINUS = 32, 39, 92, 44, 46, 45
LEFT, RIGHT, OPEN, CLOSE = 40, 41, 91, 93
LESS, EQUAL, MORE = 60, 61, 62


@jit_inline
def is_letter(byte: Int) -> bool:
    """Tell whether a name may begin with this byte."""
    return (97 <= byte <= 122) or (65 <= byte <= 90) or byte == 95


@jit_inline
def is_digit(byte: Int) -> bool:
    """Tell whether this is a digit."""
    return 48 <= byte <= 57


@jit_inline
def skip_spaces(data: ByteArray, at: Int, end: Int) -> Int:
    """Return the place of the next byte that is not a space."""
    while at < end and data[at] == SPACE:
        at += 1
    return at


@jit
def read_number(data: ByteArray, at: Int, end: Int) -> tuple[Int, bool, Int, Float]:
    """Read a number; return where it ends (-1: not an exact one), whether it is whole, its int and its float."""
    negative = at < end and data[at] == MINUS
    if negative:
        at += 1
    value, digits, decimals, whole = np.int64(0), 0, 0, True
    first = at
    while at < end and is_digit(data[at]):
        value = value * 10 + np.int64(data[at] - 48)
        digits += 1
        at += 1
        if digits > DIGITS:
            return np.int64(-1), True, np.int64(0), 0.0
    if digits == 0 or (digits > 1 and data[first] == 48):
        return np.int64(-1), True, np.int64(0), 0.0
    if at + 1 < end and data[at] == DOT and is_digit(data[at + 1]):
        at += 1
        whole = False
        while at < end and is_digit(data[at]):
            value = value * 10 + np.int64(data[at] - 48)
            digits += 1
            decimals += 1
            at += 1
            if digits > DIGITS:
                return np.int64(-1), True, np.int64(0), 0.0
    if negative and value == 0:  # -0 is left to the parser
        return np.int64(-1), True, np.int64(0), 0.0
    scale = 1.0
    for _ in range(decimals):
        scale *= 10.0
    exact = np.float64(value) / scale
    return np.int64(at), whole, -value if negative else value, -exact if negative else exact


@jit
def intern_name(data: ByteArray, at: Int, end: Int, names: IntArray, table: IntArray) -> Int:
    """Return the number of a name: a new one where it is new, -1 where there are too many."""
    hash = np.uint64(14695981039346656037)
    for place in range(at, end):
        hash = (hash ^ np.uint64(data[place])) * np.uint64(1099511628211)
    entry = np.int64(hash % np.uint64(len(table)))
    while table[entry] >= 0:
        name = table[entry]
        if names[name, 1] == end - at:
            same = True
            for place in range(end - at):
                if data[names[name, 0] + place] != data[at + place]:
                    same = False
                    break
            if same:
                return name
        entry = (entry + 1) % len(table)
    count = names[NAMES, 0]
    if count == NAMES:
        return np.int64(-1)
    names[count, 0], names[count, 1] = at, end - at
    names[NAMES, 0] = count + 1
    table[entry] = count
    return count


@jit
def read_value(data: ByteArray, at: Int, end: Int, values: Values, count: Int) -> Int:
    """Read a value into its place; return where it ends, or -1."""
    kinds, ints, floats, places, lengths = values
    if at < end and data[at] == QUOTE:
        first = at + 1
        at = first
        while at < end and data[at] != QUOTE:
            if data[at] == BACKSLASH or data[at] == 0:
                return np.int64(-1)
            at += 1
        if at >= end:
            return np.int64(-1)
        kinds[count], places[count], lengths[count] = TEXT, first, at - first
        return np.int64(at + 1)
    stop, whole, as_int, as_float = read_number(data, at, end)
    if stop >= 0:
        kinds[count] = INT if whole else FLOAT
        ints[count], floats[count] = as_int, as_float
    return stop


@jit
def read_range(data: ByteArray, at: Int, end: Int, values: Values, count: Int) -> tuple[Int, Int, Int]:
    """Read `[low .. high]` with either end left out or open; return where it ends, its flags, how many values."""
    flags, used = 0, 0
    if data[at] == LEFT:
        flags |= LOW_OPEN
    at = skip_spaces(data, at + 1, end)
    if at < end and data[at] != DOT:
        at = read_value(data, at, end, values, count)
        if at < 0:
            return np.int64(-1), 0, 0
        flags |= HAS_LOW
        used += 1
        at = skip_spaces(data, at, end)
    if at + 1 >= end or data[at] != DOT or data[at + 1] != DOT:
        return np.int64(-1), 0, 0
    at = skip_spaces(data, at + 2, end)
    if at < end and data[at] != CLOSE and data[at] != RIGHT:
        at = read_value(data, at, end, values, count + used)
        if at < 0:
            return np.int64(-1), 0, 0
        flags |= HAS_HIGH
        used += 1
        at = skip_spaces(data, at, end)
    if at >= end or (data[at] != CLOSE and data[at] != RIGHT) or used == 0:
        return np.int64(-1), 0, 0
    if data[at] == RIGHT:
        flags |= HIGH_OPEN
    return np.int64(at + 1), flags, used


@jit
def read_set(data: ByteArray, at: Int, end: Int, values: Values, count: Int) -> tuple[Int, Int]:
    """Read `(one, two)`; return where it ends, and how many values."""
    used = 0
    while True:
        at = skip_spaces(data, at + 1, end)
        at = read_value(data, at, end, values, count + used)
        if at < 0:
            return np.int64(-1), 0
        used += 1
        at = skip_spaces(data, at, end)
        if at >= end or (data[at] != COMMA and data[at] != RIGHT):
            return np.int64(-1), 0
        if data[at] == RIGHT:
            return np.int64(at + 1), used


@jit
def read_filters(
    data: ByteArray, start: IntArray, predicates: Predicates, values: Values, names: IntArray, table: IntArray,
    long: BoolArray,
) -> tuple[Int, Int]:  # fmt: skip
    """Read all rows; return the number of predicates and of values.

    `predicates` are arrays of row, name, op, flags, first value and number of values; rows that are not plain are
    marked in `long`, and none of their predicates stays.
    """
    rows, named, ops, flagged, firsts, counts = predicates
    total, used = 0, 0
    for row in range(len(start) - 1):
        begin_total, begin_used = total, used
        at, end = np.int64(start[row]), np.int64(start[row + 1])
        while end > at and data[end - 1] == SPACE:
            end -= 1
        good = at < end
        while good:
            at = skip_spaces(data, at, end)
            first = at
            while at < end and (is_letter(data[at]) or (at > first and is_digit(data[at]))):
                at += 1
            name_end = at
            at = skip_spaces(data, at, end)
            good = name_end > first and at < end
            if not good:
                break
            op, flags, value_count = -1, 0, 1
            if data[at] == EQUAL:
                op = EQ
                at += 1
            elif data[at] == LESS or data[at] == MORE:
                op = LT if data[at] == LESS else GT
                at += 1
                if at < end and data[at] == EQUAL:
                    op += 1
                    at += 1
            if op >= 0:
                at = read_value(data, skip_spaces(data, at, end), end, values, used)
            elif at > name_end and at + 2 < end and data[at] == 105 and data[at + 1] == 110:
                if is_letter(data[at + 2]) or is_digit(data[at + 2]):
                    good = False
                    break
                at = skip_spaces(data, at + 2, end)
                at, op, flags, value_count = read_membership(data, at, end, values, used)
            else:
                at = np.int64(-1)
            good = at >= 0
            if not good:
                break
            # A name is numbered only after its predicate was read: most rows that go to the parser use up no number.
            name = intern_name(data, first, name_end, names, table)
            if name < 0:
                good = False
                break
            rows[total], named[total], ops[total], flagged[total] = row, name, op, flags
            firsts[total], counts[total] = used, value_count
            total += 1
            used += value_count
            if at == end:
                break
            good = data[at] == SPACE
            at = skip_spaces(data, at, end)
            good &= at + 4 < end and data[at] == 97 and data[at + 1] == 110 and data[at + 2] == 100
            if good:
                good = data[at + 3] == SPACE
                at += 4
        # A row is taken whole or not at all: what was written of it is dropped by setting the counts back.
        if not good:
            long[row] = True
            total, used = begin_total, begin_used
    return total, used


@jit
def read_membership(data: ByteArray, at: Int, end: Int, values: Values, count: Int) -> tuple[Int, Int, Int, Int]:
    """Read what follows `in`: a range or a set; return where it ends, the op, the flags and how many values."""
    if at >= end or (data[at] != OPEN and data[at] != LEFT):
        return np.int64(-1), 0, 0, 0
    stop, flags, value_count = read_range(data, at, end, values, count)
    if stop >= 0:
        return stop, RANGE, flags, value_count
    if data[at] != LEFT:
        return np.int64(-1), 0, 0, 0
    stop, value_count = read_set(data, at, end, values, count)
    return stop, SET, 0, value_count
