"""Cell numbers of values: which part of an attribute's domain an end or an event's value falls in.

All range matchers lean on one property: a larger value never has a smaller cell. So an end whose cell is above the
value's cell is above the value, and only ends in the very same cell have to be compared. Nothing else is asked of the
arithmetic: where the border of a cell lies to the last bit does not matter, and values outside the domain fall into
the first or the last cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, Float, FloatArray, Int, Int32Array, IntArray

LOW_OPEN, HIGH_OPEN, WANTED = 1, 2, 4
"""Bits of a row's ends: open below, open above, and whether the row constrains the attribute at all."""


class DomainScale(NamedTuple):
    """For each attribute: where its cells begin and end, and the factor from a value to a share of them."""

    origin: FloatArray
    top: FloatArray
    scale: FloatArray


class RangeEnds(NamedTuple):
    """The table's arrays: a line for each attribute, a place for each row."""

    low: FloatArray
    high: FloatArray
    mark: ByteArray


class BucketLists(NamedTuple):
    """Growable lists in one pool (`kernels.papers.buckets`): list `n` has `size[n]` items from `pool[start[n]]` on."""

    start: IntArray
    size: Int32Array
    room: Int32Array
    pool: Int32Array
    used: IntArray


@jit_inline
def find_cell(domain: DomainScale, column: Int, value: Float, cells: Int) -> Int:
    """Return the number of a value's cell, from 0 up to `cells`; -inf is in the first, inf in the last.

    Monotone: rounding keeps the order in a difference with a constant and in a product with one that is not
    negative; so do rounding down and clamping. Halves, because a difference of whole values may overflow.
    """
    number = np.int64(0)
    if value >= domain.top[column]:
        number = np.int64(cells - 1)
    elif value > domain.origin[column]:
        share = (0.5 * value - 0.5 * domain.origin[column]) * domain.scale[column]
        number = np.int64(min(share * cells, np.float64(cells - 1)))
    return number


@jit
def widen(ends: RangeEnds, rows: IntArray, columns: Int, least: FloatArray, most: FloatArray) -> None:
    """Update the least and the largest finite end that rows have on each attribute they constrain."""
    for column in range(columns):
        low_seen, high_seen = least[column], most[column]
        for at in range(len(rows)):
            row = rows[at]
            if ends.mark[column, row] & WANTED:
                low, high = ends.low[column, row], ends.high[column, row]
                if np.isfinite(low):
                    low_seen, high_seen = min(low_seen, low), max(high_seen, low)
                if np.isfinite(high):
                    low_seen, high_seen = min(low_seen, high), max(high_seen, high)
        least[column], most[column] = low_seen, high_seen


@jit
def count_missing(lists: BucketLists, numbers: IntArray, count: Int) -> Int:
    """Return the space that one more item in each of these lists takes at the pool's end; they must be different."""
    need = np.int64(0)
    for at in range(count):
        size = np.int64(lists.size[numbers[at]])
        if size == lists.room[numbers[at]]:
            need += max(2 * size, 4)
    return need


@jit
def reserve(lists: BucketLists, number: Int, count: Int) -> bool:
    """Give an empty list room for so many items, if the pool has it; tell whether."""
    fits = True
    if lists.room[number] < count:
        begin = lists.used[0]
        fits = begin + count <= len(lists.pool)
        if fits:
            lists.start[number] = begin
            lists.room[number] = count
            lists.used[0] = begin + count
    return fits


@jit_inline
def step_up(value: Float) -> Float:
    """Return the next float above a value below inf: floats of one sign ascend with their bits.

    NumPy has `nextafter`, which takes fifteen times as long (6 ns). Adding 0.0 makes 0.0 of -0.0.
    """
    bits = np.float64(value + 0.0).view(np.int64)
    step = np.int64(1) if bits >= 0 else np.int64(-1)
    return np.int64(bits + step).view(np.float64)


@jit_inline
def close_low(ends: RangeEnds, column: Int, row: Int) -> Float:
    """Return a row's low end as a closed one: the next float above, where it is open. Exact, as values are floats."""
    low = ends.low[column, row]
    if ends.mark[column, row] & LOW_OPEN:
        low = step_up(low)
    return low


@jit_inline
def close_high(ends: RangeEnds, column: Int, row: Int) -> Float:
    """Return a row's high end as a closed one: the next float below, where it is open."""
    high = ends.high[column, row]
    if ends.mark[column, row] & HIGH_OPEN:
        high = -step_up(-high)
    return high
