"""Literals on codes: whether the values that an event has in one column satisfy one interval.

Codes number what a column's predicates can tell apart. With end points 10 and 20:

    value    < 10    10    10 .. 20    20    > 20          price in [10 .. 20)  =  codes 1 .. 2
    code       0      1       2         3      4           price > 10           =  codes 2 .. 4

An event cell is a code below `SEVERAL` (one value), `ABSENT`, or `SEVERAL | place` where `place` points
into `many_start`: the values `many_low[i]..many_high[i]` for `i` from `many_start[place]` up to
`many_start[place + 1]` (a point has equal ends). A literal accepts a value that meets its interval; what
must be true of the values is its op. A literal with `UNION` has several intervals: `low` is their place in
`union_start`, and `high` is not used. An interval that accepts nothing is `EMPTY_LOW .. 0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import CodeArray, Int

ANY, ALL, NONE, NOT_ANY, NOT_ALL, NOT_NONE = 0, 1, 2, 3, 4, 5
"""Ops: some value lies inside, every one does, none does (all three want a value); and the negation of each."""

UNION = 8
"""Added to the op of a literal with several intervals."""

KIND_MASK = 7
"""The bits of an op without `UNION`: one of the six above."""

SEVERAL = np.uint32(0x8000_0000)
"""Cells from here on are not single codes."""

ABSENT = np.uint32(0xFFFF_FFFF)
"""The cell of an attribute that the event does not have."""


@jit_inline
def meets(
    low: Int, high: Int, union: bool, value_low: Int, value_high: Int, union_start: CodeArray, union_low: CodeArray,
    union_high: CodeArray,
) -> bool:  # fmt: skip
    """Tell whether a value, or some point of it, lies in the literal's interval or in one of its union."""
    if not union:
        return value_low <= high and value_high >= low
    inside = False
    for at in range(union_start[low], union_start[low + 1]):
        if value_low <= union_high[at] and value_high >= union_low[at]:
            inside = True
            break
    return inside


# Flat: callers unpack their groups once and call this for every literal that they look at (`layout` has the cost).
@jit
def accepts(
    cell: Int, op: Int, low: Int, high: Int, many_start: CodeArray, many_low: CodeArray, many_high: CodeArray,
    union_start: CodeArray, union_low: CodeArray, union_high: CodeArray,
) -> bool:  # fmt: skip
    """Tell whether an event's cell satisfies one literal."""
    union = op >= UNION
    kind = op & KIND_MASK
    # An absent attribute satisfies none of the three ops, so it satisfies all their negations.
    if cell == ABSENT:
        return kind >= NOT_ANY
    if cell < SEVERAL:
        inside = meets(low, high, union, cell, cell, union_start, union_low, union_high)
        return inside == (kind == ANY or kind == ALL or kind == NOT_NONE)
    # Several values: all are looked at, since two ops of three need to know whether every one lies inside.
    place = cell & np.uint32(0x7FFF_FFFF)
    some, every = False, True
    for at in range(many_start[place], many_start[place + 1]):
        if meets(low, high, union, many_low[at], many_high[at], union_start, union_low, union_high):
            some = True
        else:
            every = False
    if kind == ANY or kind == NOT_NONE:
        return some
    if kind == ALL:
        return every
    if kind == NOT_ALL:
        return not every
    return not some
