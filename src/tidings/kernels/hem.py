"""HEM's triangle: ranges as cells of a grid, one traversal for each attribute, and the order in which they go.

Ends are integers here. A domain is divided into `UNITS` fine steps; a value's step is monotone in the value, and what
lies outside has the first or the last. The range from step L to step H is the point X = L + H, Y = H - L (twice the
paper's x and y), and its cell is (Y // SIDE, X // SIDE). All that is decided about a whole cell is decided in
these integers, where nothing is rounded: a cell is dropped unseen only if every H in it is below the value's step,
or every L above it. Steps that are equal say nothing, and the ends themselves are compared.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import inlined, jit

TAU = 80
"""Rows of a grid; it has twice as many columns (Table 1 of the paper)."""

SIDE_BITS = 26
SIDE = 1 << SIDE_BITS
"""The side of a cell in fine steps of X and Y."""

UNITS = TAU * SIDE - 1
"""The last fine step; so Y is below TAU sides and X below 2 * TAU."""

CELLS = TAU * 2 * TAU
"""Lists of one attribute; those outside the triangle stay empty."""

BUCKETS = 2 * TAU
"""Ends are counted in so many buckets of a domain, for U_m."""

WANTED = 4
"""The bit of `ends` that says that a row asks for the attribute."""

TRIANGLE, DIRECT = 0, 1
"""The two methods of matching one attribute."""


@inlined
def step(value, base, top, scale):  # type: ignore[no-untyped-def]
    """Return a value's fine step; monotone, whatever is rounded on the way."""
    found = np.int64(0)
    if value >= top and value > base:
        found = np.int64(UNITS)
    elif value > base:
        found = min(np.int64((value - base) * scale), np.int64(UNITS))
    return found


@jit
def cells_of(lows, highs, ends, rows, base, top, scale, cells):  # type: ignore[no-untyped-def]
    """Write the cell of each row on one attribute, or -1 where it asks nothing of it."""
    for at in range(len(rows)):
        row = rows[at]
        cells[at] = -1
        if ends[row] & WANTED:
            low, high = step(lows[row], base, top, scale), step(highs[row], base, top, scale)
            cells[at] = ((high - low) >> SIDE_BITS) * 2 * TAU + ((high + low) >> SIDE_BITS)


@jit
def count_ends(lows, highs, ends, rows, base, top, scale, by, low_counts, high_counts):  # type: ignore[no-untyped-def]
    """Add `by` to the counts of both ends of each row that asks for the attribute; return how many do."""
    asked = 0
    for at in range(len(rows)):
        row = rows[at]
        if ends[row] & WANTED:
            low_counts[step(lows[row], base, top, scale) >> (SIDE_BITS - 1)] += by
            high_counts[step(highs[row], base, top, scale) >> (SIDE_BITS - 1)] += by
            asked += 1
    return asked


@jit
def unmatched(vector, bases, tops, scales, low_counts, high_counts, asked, total, theta):  # type: ignore[no-untyped-def]
    """Write theta, the share of rows that fail on each attribute: U_m over the number of rows (Formula 4)."""
    for m in range(len(vector)):
        failing = np.int64(0)
        if np.isnan(vector[m]):
            failing = asked[m]
        else:
            bucket = step(vector[m], bases[m], tops[m], scales[m]) >> (SIDE_BITS - 1)
            for at in range(bucket):
                failing += high_counts[m, at]
            for at in range(bucket + 1, BUCKETS):
                failing += low_counts[m, at]
        theta[m] = failing / max(total, 1)


@jit
def near_optimal(theta, order, methods):  # type: ignore[no-untyped-def]
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
def optimal(theta, order, methods):  # type: ignore[no-untyped-def]
    """Try every plan that keeps Observations 1-3, and take the cheapest: O(M 2^M).

    The order of what goes by triangles does not change its cost, and what goes directly is in ascending order of
    matching rate; so a plan is the set of attributes that go by triangles, and it is not empty.
    """
    count = len(theta)
    near_optimal(theta, order, methods)
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


@inlined
def _fails(value, low, high, marks):  # type: ignore[no-untyped-def]
    """Theorems 1 and 2: the value is beyond an end, or on an open one."""
    return (
        (high < value) | (low > value) | ((high == value) & ((marks & 2) != 0)) | ((low == value) & ((marks & 1) != 0))
    )


@inlined
def _drop(row, after, before, member):  # type: ignore[no-untyped-def]
    """Take a row out of the linked candidates and out of the set, if it is there."""
    if member[row]:
        member[row] = 0
        after[before[row]] = after[row]
        before[after[row]] = before[row]


@jit
def by_triangle(starts, sizes, pool, first, lows, highs, ends, value, at_step, after, before, member):  # type: ignore[no-untyped-def]
    """Algorithm 1 on linked candidates: drop the rows of both triangles; `first` is the attribute's first list.

    In row i of the grid, cells below `whole1` lie in Subarea 1 and cells from `whole2` on in Subarea 2; cells up to
    `some1` and from `some2` on meet a line, and their rows are compared. Return how many rows were visited.
    """
    visited = 0
    twice = 2 * at_step
    for i in range(TAU):
        for j in range(i, 2 * TAU - i):
            cell = first + i * 2 * TAU + j
            size = sizes[cell]
            if size == 0:
                continue
            begin = starts[cell]
            if (i + j + 2) * SIDE - 2 < twice or (j - i - 1) * SIDE + 1 > twice:
                visited += size
                for at in range(begin, begin + size):
                    _drop(pool[at], after, before, member)
            elif (i + j) * SIDE <= twice or (j - i + 1) * SIDE - 1 >= twice:
                visited += size
                for at in range(begin, begin + size):
                    row = pool[at]
                    if _fails(value, lows[row], highs[row], ends[row]):
                        _drop(row, after, before, member)
    return visited


@jit
def drop_all(starts, sizes, pool, first, after, before, member):  # type: ignore[no-untyped-def]
    """Drop every row that asks for an attribute that the event lacks."""
    for cell in range(first, first + CELLS):
        for at in range(starts[cell], starts[cell] + sizes[cell]):
            _drop(pool[at], after, before, member)


@jit
def directly(lows, highs, ends, value, head, after, before, member):  # type: ignore[no-untyped-def]
    """Algorithm 2 on linked candidates: visit what is left and drop what fails; NaN fails whoever asks."""
    row = after[head]
    absent = np.isnan(value)
    while row != head:
        following = after[row]
        if ends[row] & WANTED and (absent or _fails(value, lows[row], highs[row], ends[row])):
            _drop(row, after, before, member)
        row = following


@jit
def marked_triangle(starts, sizes, pool, first, lows, highs, ends, value, at_step, member):  # type: ignore[no-untyped-def]
    """Algorithm 1 on a plain array of marks: the same cells, one store for each row."""
    twice = 2 * at_step
    for i in range(TAU):
        for j in range(i, 2 * TAU - i):
            cell = first + i * 2 * TAU + j
            size = sizes[cell]
            if size == 0:
                continue
            begin = starts[cell]
            if (i + j + 2) * SIDE - 2 < twice or (j - i - 1) * SIDE + 1 > twice:
                for at in range(begin, begin + size):
                    member[pool[at]] = 0
            elif (i + j) * SIDE <= twice or (j - i + 1) * SIDE - 1 >= twice:
                for at in range(begin, begin + size):
                    row = pool[at]
                    if _fails(value, lows[row], highs[row], ends[row]):
                        member[row] = 0


@jit
def unmark_all(starts, sizes, pool, first, member):  # type: ignore[no-untyped-def]
    """Unmark every row that asks for an attribute that the event lacks."""
    for cell in range(first, first + CELLS):
        for at in range(starts[cell], starts[cell] + sizes[cell]):
            member[pool[at]] = 0


@jit
def listed(member, rows, out):  # type: ignore[no-untyped-def]
    """Write the rows that are marked, and return how many."""
    count = 0
    for row in range(rows):
        out[count] = row
        count += np.int64(member[row])
    return count


@jit
def filtered(lows, highs, ends, value, out, count):  # type: ignore[no-untyped-def]
    """Algorithm 2 on a list: keep the rows that hold the value, and return how many."""
    kept = 0
    absent = np.isnan(value)
    for at in range(count):
        row = out[at]
        out[kept] = row
        if not ends[row] & WANTED or not (absent or _fails(value, lows[row], highs[row], ends[row])):
            kept += 1
    return kept


@jit
def walked(head, after, out):  # type: ignore[no-untyped-def]
    """Write the linked candidates, and return how many."""
    count = 0
    row = after[head]
    while row != head:
        out[count] = row
        count += 1
        row = after[row]
    return count


@jit
def link(rows, head, after, before):  # type: ignore[no-untyped-def]
    """Append rows to the circular list that begins and ends at `head`."""
    for at in range(len(rows)):
        row, last = rows[at], before[head]
        after[last] = row
        before[row] = last
        after[row] = head
        before[head] = row


@jit
def unlink(rows, after, before):  # type: ignore[no-untyped-def]
    """Take rows out of the list."""
    for at in range(len(rows)):
        row = rows[at]
        after[before[row]] = after[row]
        before[after[row]] = before[row]
