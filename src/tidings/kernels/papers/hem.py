r"""HEM's triangle: ranges as cells of a grid, one traversal for each attribute, and the order in which they go.

Ends are integers here. A domain is divided into `UNITS` fine steps; a value's step (`domain_cells.find_cell`) is
monotone in the value, and values outside have the first or the last. The range from step L to step H is the point
X = L + H, Y = H - L (twice the paper's x and y), and its cell is (Y // SIDE, X // SIDE):

    Y |   \  contain  /        on the left line lie the ranges that end at the value, on the right line those that
      |    \    v    /         begin there; below the left line everything ends before the value, below the right
      | end \       / begin    line everything begins after it
      | < v  \     /  > v
      +--------2v---------- X

All that is decided about a whole cell is decided in these integers, where nothing is rounded: a cell is dropped unseen
only if every H in it is below the value's step, or every L above it. Steps that are equal say nothing, and the ends
themselves are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tidings.kernels.jit import jit
from tidings.kernels.papers.buckets import BucketLists
from tidings.kernels.papers.domain_cells import WANTED, DomainScale, close_high, close_low, find_cell

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, Float, FloatArray, Int, Int32Array, IntArray
    from tidings.kernels.papers.domain_cells import RangeEnds, RowBatch

TAU = 80
"""Rows of a grid; it has twice as many columns (Table 1 of the paper)."""

SIDE_BITS = 26
SIDE = 1 << SIDE_BITS
"""The side of a cell in fine steps of X and Y."""

UNITS = TAU * SIDE
"""Fine steps of a domain; so Y is below TAU sides and X below 2 * TAU."""

CELLS = TAU * 2 * TAU
"""Lists of one attribute; those outside the triangle stay empty."""

BUCKETS = 2 * TAU
"""Ends are counted in so many buckets of a domain, for U_m."""

TRIANGLE, DIRECT = 0, 1
"""The two methods of matching one attribute."""


class TriangleGrids(NamedTuple):
    """The grids of all attributes: the rows of each cell, the domains, and each row's closed ends side by side."""

    closed: FloatArray
    domain: DomainScale
    lists: BucketLists


HemGridTuple: TypeAlias = (
    "tuple[FloatArray, tuple[FloatArray, ...], tuple[IntArray, Int32Array, Int32Array, Int32Array, IntArray]]"
)
"""The parts of `TriangleGrids` as plain tuples."""


class EndCounts(NamedTuple):
    """For each attribute: its low and its high ends by bucket, and how many rows constrain it."""

    low: IntArray
    high: IntArray
    constrained: IntArray


class MatchPlan(NamedTuple):
    """For an event: the share of rows that fail on each attribute, the order of attributes, the method for each."""

    theta: FloatArray
    order: IntArray
    methods: IntArray


class CandidateSet(NamedTuple):
    """Rows as a circular linked list (`after`, which begins and ends at the last item) and as a set (`member`)."""

    after: Int32Array
    member: ByteArray


@jit
def locate_rows(batch: RowBatch, by: Int, counts: EndCounts, cells: Int32Array) -> None:
    """Write the cell of each row on each attribute, or -1, and add `by` to the counts of its ends."""
    for column in range(batch.columns):
        for at in range(len(batch.rows)):
            row = batch.rows[at]
            cells[column, at] = -1
            if batch.ends.mark[column, row] & WANTED:
                low = find_cell(batch.domain, column, batch.ends.low[column, row], UNITS)
                high = find_cell(batch.domain, column, batch.ends.high[column, row], UNITS)
                cells[column, at] = (column * TAU + ((high - low) >> SIDE_BITS)) * 2 * TAU + ((high + low) >> SIDE_BITS)
                counts.low[column, low >> (SIDE_BITS - 1)] += by
                counts.high[column, high >> (SIDE_BITS - 1)] += by
                counts.constrained[column] += by


@jit
def estimate_unmatched(
    vector: FloatArray, domain: DomainScale, counts: EndCounts, total: Int, theta: FloatArray
) -> None:
    """Write theta, the share of rows that fail on each attribute: U_m over the number of rows (Formula 4)."""
    for m in range(len(vector)):
        failing = np.int64(0)
        if np.isnan(vector[m]):
            failing = counts.constrained[m]
        else:
            bucket = find_cell(domain, m, vector[m], UNITS) >> (SIDE_BITS - 1)
            for at in range(bucket):
                failing += counts.high[m, at]
            for at in range(bucket + 1, BUCKETS):
                failing += counts.low[m, at]
        theta[m] = failing / max(total, 1)


@jit
def plan_event(
    vector: FloatArray, domain: tuple[FloatArray, ...], counts: tuple[IntArray, ...], total: Int, optimal: bool,
    plan: MatchPlan,
) -> None:  # fmt: skip
    """Write the plan of an event: the cheapest of all where `optimal`, else that of Algorithm 4."""
    theta, order, methods = plan
    estimate_unmatched(vector, DomainScale(*domain), EndCounts(*counts), total, theta)
    if optimal:
        plan_optimal(theta, order, methods)
    else:
        plan_near_optimal(theta, order, methods)


@jit
def plan_near_optimal(theta: FloatArray, order: IntArray, methods: IntArray) -> None:
    """Algorithm 4: by ascending matching rate; by triangles while that is cheaper than visiting what is left."""
    count = len(theta)
    for at in range(count):  # a handful of attributes: insertion sort, descending theta
        place = at
        while place > 0 and theta[order[place - 1]] < theta[at]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = at
    left = 1.0
    direct = False
    for at in range(count):
        m = order[at]
        if at > 0:
            left *= 1.0 - theta[order[at - 1]]
            direct = direct or left <= theta[m]
        methods[at] = DIRECT if direct else TRIANGLE


@jit
def plan_optimal(theta: FloatArray, order: IntArray, methods: IntArray) -> Float:
    """Try every plan that keeps Observations 1-3, and take the cheapest: O(M 2^M).

    The order of what goes by triangles does not change its cost, and what goes directly is in ascending order of
    matching rate; so a plan is the set of attributes that go by triangles, and it is not empty.
    """
    count = len(theta)
    plan_near_optimal(theta, order, methods)
    by_rate = order.copy()
    best, chosen = np.inf, np.int64(0)
    for plan in range(1, 1 << count):
        cost, left = 0.0, 1.0
        for at in range(count):
            if plan >> at & 1:
                cost += theta[by_rate[at]]
                left *= 1.0 - theta[by_rate[at]]
        for at in range(count):
            if not plan >> at & 1:
                cost += left
                left *= 1.0 - theta[by_rate[at]]
        if cost < best:
            best, chosen = cost, plan
    place = 0
    for method in (TRIANGLE, DIRECT):
        for at in range(count):
            if (chosen >> at & 1) == (1 - method):
                order[place] = by_rate[at]
                methods[place] = method
                place += 1
    return best


@jit
def close_ends(ends: RangeEnds, rows: Int32Array, closed: FloatArray) -> None:
    """Write both ends of rows side by side, open ones as the next float inside; infinite ones where nothing is wanted.

    Values are floats, so `x < 5` and `x <= the float below 5` are the same; and comparing a row reads one cache line
    instead of three.
    """
    for column in range(len(closed)):
        for at in range(len(rows)):
            row = rows[at]
            closed[column, 2 * row] = close_low(ends, column, row)
            closed[column, 2 * row + 1] = close_high(ends, column, row)


@jit
def match_by_triangle(grids: TriangleGrids, column: Int, value: Float, member: ByteArray) -> None:
    """Algorithm 1: take the rows of both triangles out of the set.

    A cell whose rows all end below the value (line 11) or all begin above it (line 23) is dropped unseen. In a cell on
    one of the lines, rows are compared; with both theorems at once, which is right on either line.
    """
    mine, starts, sizes, pool = grids.closed[column], grids.lists.start, grids.lists.size, grids.lists.pool
    twice = 2 * find_cell(grids.domain, column, value, UNITS)
    for i in range(TAU):
        for j in range(i, 2 * TAU - i):
            number = (column * TAU + i) * 2 * TAU + j
            size = sizes[number]
            if size == 0:
                continue
            begin = starts[number]
            if (i + j + 2) * SIDE - 2 < twice or (j - i - 1) * SIDE + 1 > twice:
                for at in range(begin, begin + size):
                    member[pool[at]] = 0
            elif (i + j) * SIDE <= twice or (j - i + 1) * SIDE - 1 >= twice:
                for at in range(begin, begin + size):
                    row = pool[at]
                    if value < mine[2 * row] or value > mine[2 * row + 1]:
                        member[row] = 0


@jit
def drop_absent(lists: BucketLists, vector: FloatArray, member: ByteArray) -> None:
    """Take every row out of the set that constrains an attribute which the event lacks."""
    for m in range(len(vector)):
        if np.isnan(vector[m]):
            for number in range(m * CELLS, (m + 1) * CELLS):
                for at in range(lists.start[number], lists.start[number] + lists.size[number]):
                    member[lists.pool[at]] = 0


@jit
def match_directly(closed: FloatArray, column: Int, value: Float, candidates: CandidateSet) -> None:
    """Algorithm 2 on the linked list: keep the rows that are in the set and contain the value."""
    mine, after, member = closed[column], candidates.after, candidates.member
    head = len(member)
    last, row = head, after[head]
    while row != head:
        following = after[row]
        if member[row] and mine[2 * row] <= value <= mine[2 * row + 1]:
            last = row
        else:
            after[last] = following
        row = following


@jit
def collect_list(candidates: CandidateSet, out: Int32Array) -> Int:
    """Write the rows of the list that are in the set, and return how many."""
    after, member = candidates.after, candidates.member
    count, head = 0, len(member)
    row = after[head]
    while row != head:
        # Written before it is decided, without a branch: whether a row is in the set cannot be foreseen.
        out[count] = row
        count += np.int64(member[row])
        row = after[row]
    return count


@jit
def collect_set(member: ByteArray, out: Int32Array) -> Int:
    """Write the rows of the set in their order, and return how many."""
    count = 0
    for row in range(len(member)):
        out[count] = row
        count += np.int64(member[row])
    return count


@jit
def filter_rows(closed: FloatArray, column: Int, value: Float, out: Int32Array, count: Int) -> Int:
    """Algorithm 2 on an array: keep the rows that contain the value, and return how many."""
    mine = closed[column]
    kept = 0
    for at in range(count):
        row = out[at]
        out[kept] = row
        kept += np.int64((mine[2 * row] <= value) & (value <= mine[2 * row + 1]))
    return kept


@jit
def match(
    index: HemGridTuple, vector: FloatArray, plan: MatchPlan, candidates: CandidateSet, scratch: CandidateSet,
    linked: bool, out: Int32Array,
) -> Int:  # fmt: skip
    """Algorithm 3; `scratch` is a copy of the candidates that it changes. Write the rows that match, return how many.

    `index` has the parts of `TriangleGrids`. With `linked`, on a linked list and a set, as printed; else the set is
    copied to an array before the first direct matching, from which on all is direct.
    """
    grids = TriangleGrids(index[0], DomainScale(*index[1]), BucketLists(*index[2]))
    work, (after, member), (_, order, methods) = CandidateSet(*scratch), candidates, plan
    if linked:
        work.after[:] = after  # line 02: all rows are candidates
    work.member[:] = member
    drop_absent(grids.lists, vector, work.member)
    count = np.int64(-1)
    for at in range(len(order)):
        m = order[at]
        if np.isnan(vector[m]):
            continue
        if methods[at] == TRIANGLE and count < 0:
            match_by_triangle(grids, m, vector[m], work.member)
        elif linked:
            match_directly(grids.closed, m, vector[m], work)
        else:
            if count < 0:
                count = collect_set(work.member, out)
            count = filter_rows(grids.closed, m, vector[m], out, count)
    if linked:
        return collect_list(work, out)
    return collect_set(work.member, out) if count < 0 else count


@jit
def link(rows: Int32Array, head: Int, after: Int32Array, before: Int32Array) -> None:
    """Append rows to the circular list that begins and ends at `head`."""
    for at in range(len(rows)):
        row, last = rows[at], before[head]
        after[last] = row
        before[row] = last
        after[row] = head
        before[head] = row


@jit
def unlink(rows: Int32Array, after: Int32Array, before: Int32Array) -> None:
    """Take rows out of the list."""
    for at in range(len(rows)):
        row = rows[at]
        after[before[row]] = after[row]
        before[after[row]] = before[row]
