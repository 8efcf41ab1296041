"""Bulk loads: columns of values become ranks, and ranks become literals, row by row in place.

A column has a value wherever `present` is 1; other places are never read. `at[row]` is where the row's next literal
goes, so columns are taken one after the other and nothing is sorted:

    column a   [ 5  -  7 ]      row 0        row 1     row 2
    column b   [ 1  2  3 ]      [ a=5 b=1 ]  [ b=2 ]   [ a=7 b=3 ]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit, jit_inline
from tidings.kernels.match.literals import UNION
from tidings.kernels.match.row_codes import EMPTY_LOW

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, CodeArray, Float, FloatArray, Int, IntArray

NONE, CLOSED, OPEN = 0, 1, 2
"""Kinds of an end of a range."""


@jit
def find_extremes(values: FloatArray, present: ByteArray, some: Float) -> tuple[Float, Float]:
    """Return the least and the greatest of the values that are present; `some` is one of them."""
    least, most = some, some
    for row in range(len(values)):
        # A select, not a branch: which rows have a value cannot be predicted.
        value = values[row] if present[row] else some
        least, most = min(least, value), max(most, value)
    return least, most


@jit
def flag_values(values: FloatArray, present: ByteArray, base: Int, flags: ByteArray, seen: Int, enough: Int) -> Int:
    """Set the flag of each integer that is present, until `enough` are set; return how many are, `seen` of them before.

    `flags[0]` is that of `base`.
    """
    for row in range(len(values)):
        if present[row]:
            place = np.int64(values[row]) - base
            seen += 1 - np.int64(flags[place])
            flags[place] = 1
            if seen >= enough:
                break
    return seen


@jit_inline
def find_bucket(value: Float, least: Float, scale: Float, last: Int) -> Int:
    """Return the bucket of a number; a greater number never has a lesser bucket."""
    return min(np.int64((value - least) * scale), last) if scale > 0 else np.int64(0)


@jit
def build_guide(ends: FloatArray, scale: Float, guide: IntArray) -> None:
    """Write where the numbers of each bucket begin among sorted ones, and at the end of `guide` how many there are."""
    last = len(guide) - 2
    at = 0
    for number in range(last + 1):
        while at < len(ends) and find_bucket(ends[at], ends[0], scale, last) < number:
            at += 1
        guide[number] = at
    guide[last + 1] = len(ends)


@jit
def rank_by_guide(
    values: FloatArray, present: ByteArray, ends: FloatArray, scale: Float, guide: IntArray, out: IntArray
) -> None:
    """Write the rank of each number among the sorted `ends`, which contain it: a binary search within its bucket."""
    last = len(guide) - 2
    for row in range(len(values)):
        if not present[row]:
            continue
        value = values[row]
        number = find_bucket(value, ends[0], scale, last)
        low, high = guide[number], guide[number + 1]
        while low < high:
            middle = (low + high) >> 1
            if ends[middle] < value:
                low = middle + 1
            else:
                high = middle
        out[row] = low


@jit_inline
def rank_value(value: Float, base: Int, table: IntArray) -> Int:
    """Return the rank of a value: what the table has at its distance from `base` or, without a table, that distance."""
    place = np.int64(value) - base
    return np.int64(table[place]) if len(table) else place


# The three `put_` kernels take flat arguments: Python calls them for each column and share of the rows, and a named
# group takes Numba about a microsecond a call (see `kernels.patterns.runs.run_batch`).


@jit
def put_points(
    values: FloatArray, present: ByteArray, base: Int, table: IntArray, key: Int, at: IntArray, head: CodeArray,
    low: CodeArray, high: CodeArray, begin: Int, end: Int,
) -> None:  # fmt: skip
    """Add a literal of one point to the rows that have one, from row `begin` up to `end`."""
    for row in range(begin, end):
        if present[row]:
            place = at[row]
            head[place] = key
            low[place] = high[place] = 2 * rank_value(values[row], base, table) + 1
            at[row] = place + 1


@jit
def put_spans(
    lows: FloatArray, low_state: ByteArray, highs: FloatArray, high_state: ByteArray, base: Int, table: IntArray,
    size: Int, key: Int, at: IntArray, head: CodeArray, low: CodeArray, high: CodeArray, begin: Int, end: Int,
) -> None:  # fmt: skip
    """Add a literal of one interval to the rows that have an end; `size` counts the column's end points."""
    for row in range(begin, end):
        below, above = np.int64(low_state[row]), np.int64(high_state[row])
        if below == NONE and above == NONE:
            continue
        first, last = np.int64(0), np.int64(2 * size)
        if below != NONE:
            first = 2 * rank_value(lows[row], base, table) + below  # an open end begins one code later
        if above != NONE:
            last = 2 * rank_value(highs[row], base, table) + 2 - above
        # `(5 .. 5)` and the like accept nothing; one form for all of them keeps equal rows equal.
        if first > last:
            first, last = np.int64(EMPTY_LOW), np.int64(0)
        place = at[row]
        head[place] = key
        low[place], high[place] = first, last
        at[row] = place + 1


@jit
def put_sets(
    values: FloatArray, start: IntArray, present: ByteArray, base: Int, table: IntArray, key: Int, at: IntArray,
    head: CodeArray, low: CodeArray, high: CodeArray, union_start: CodeArray, union_low: CodeArray, done: Int,
    begin: Int, end: Int,
) -> Int:  # fmt: skip
    """Add a literal of one or more points to the rows that have a set; return how many unions there are then.

    The points of row `r` are `values[start[r]]` up to `values[start[r + 1]]`; `done` unions are there already.
    """
    for row in range(begin, end):
        if not present[row]:
            continue
        place = at[row]
        at[row] = place + 1
        first, last = start[row], start[row + 1]
        if last - first == 1:
            head[place] = key
            low[place] = high[place] = 2 * rank_value(values[first], base, table) + 1
            continue
        head[place] = key | UNION
        low[place], high[place] = done, 0
        filled = np.int64(union_start[done])
        for part in range(first, last):
            union_low[filled] = 2 * rank_value(values[part], base, table) + 1
            filled += 1
        done += 1
        union_start[done] = filled
    return done
