"""Partial matches: when a row of the pool has expired, what it admits, and which of two rows makes the other useless.

The front of a cell holds no row that another one dominates: whatever can come of the dominated row can come of the
other as well (`dominates`). For `t(c) - t(a) < 6 s` the youngest `a` dominates, for `> 3 s` the oldest. With upper
bounds alone a front is therefore one row, where a list of instances, as in P-ToPSS, would keep every `a`
(docs/decisions/0013). Entering a front costs its length; `MOST` bounds it.

`layout` has the columns and a drawing of the arrays. The helpers here take the few arrays that they read, and so have
long lists of parameters: handing on whole groups made a hundred patterns a tenth slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit_lean, jit_lean_inline
from tidings.kernels.patterns.layout import (
    BINDS,
    BINDS_END,
    CELLS,
    CHECKS,
    CHECKS_END,
    CODE,
    COUNT,
    DIRECT,
    DROPPED,
    EACH,
    EDGE,
    EVERY,
    FIRST_SEQ,
    FIRST_TIME,
    FLAG,
    FORBID,
    FORBID_END,
    GRAPH,
    HEAD,
    KEY,
    LIMITS,
    LIMITS_END,
    LINK,
    MODE,
    MOMENTS,
    MOST,
    PARENT,
    PLAIN,
    PREV,
    SEQ,
    SPAN,
    STORES,
    STORES_END,
    TIME,
    WINDOW,
    EventArrays,
    GraphArrays,
    RunArrays,
    Turn,
)

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, IntArray

# Hash tables of cells and of spent events ------------------------------------------------------
#
# Open addressing with linear probing; a table's length is a power of two and never more than half of it is used (the
# run stops for more room first), so a search always meets a free place. Entries are never deleted one by one.


@jit_lean_inline
def mix(code: Int) -> Int:
    """Spread a code over 31 bits (Fibonacci hashing): codes of neighbouring nodes must not lie side by side."""
    return np.int64((np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33))


@jit_lean_inline
def find(table: IntArray, code: Int) -> Int:
    """Return the place of a code in a hash table, or -1."""
    mask = len(table) - 1
    at = mix(code) & mask
    while table[at, CODE] != code:
        if table[at, CODE] < 0:
            return -1
        at = (at + 1) & mask
    return at


@jit_lean_inline
def find_slot(table: IntArray, code: Int) -> Int:
    """Return the place of a code, or the free place where it belongs."""
    mask = len(table) - 1
    at = mix(code) & mask
    while table[at, CODE] not in (code, -1):
        at = (at + 1) & mask
    return at


@jit_lean_inline
def open_cell(registers: IntArray, cells: IntArray, code: Int) -> Int:
    """Return the cell of a code (key times nodes plus node), which is made where there is none."""
    if registers[DIRECT]:
        return code
    at = find_slot(cells, code)
    if cells[at, CODE] < 0:
        cells[at, CODE], cells[at, HEAD], cells[at, COUNT] = code, -1, 0
        registers[CELLS] += 1
    return at


# What a row admits -----------------------------------------------------------------------------


@jit_lean_inline
def is_expired(nodes: IntArray, lists: IntArray, pool: IntArray, row: Int, node: Int, time: Int) -> bool:
    """Tell whether nothing can come of a row any more: its start, or a moment that a condition needs, is too old."""
    if time - pool[row, FIRST_TIME] > nodes[node, WINDOW]:
        return True
    for at in range(nodes[node, LIMITS], nodes[node, LIMITS_END], 2):
        if time - pool[row, MOMENTS + lists[at]] > lists[at + 1]:
            return True
    return False


@jit_lean_inline
def is_admitted(
    edges: IntArray, lists: IntArray, pool: IntArray, values: IntArray, edge: Int, row: Int, turn: Turn
) -> bool:
    """Tell whether an event may take an edge after a row (-1: none): time conditions hold and variables agree.

    A time condition is `low <= late - early <= high` as five numbers: two moments (below zero: now), the two bounds,
    and whether the distance counts and not its sign. A variable that the row does not have yet (-1) agrees.
    """
    for at in range(edges[edge, CHECKS], edges[edge, CHECKS_END], 5):
        late, early = lists[at], lists[at + 1]
        end = turn.time if late < 0 else pool[row, MOMENTS + late]
        apart = end - (turn.time if early < 0 else pool[row, MOMENTS + early])
        if lists[at + 4] and apart < 0:
            apart = -apart
        if apart < lists[at + 2] or apart > lists[at + 3]:
            return False
    for at in range(edges[edge, BINDS], edges[edge, BINDS_END], 2):
        value = values[turn.event, lists[at + 1]]
        if value < 0:
            return False
        bound = pool[row, turn.variables_at + lists[at]] if row >= 0 else -1
        if bound >= 0 and bound != value:
            return False
    return True


@jit_lean_inline
def agrees_with_row(
    lists: IntArray, pool: IntArray, values: IntArray, row: Int, first: Int, end: Int, turn: Turn
) -> bool:
    """Tell whether the event of a `not` agrees with a row on the variables that the `not` names."""
    for at in range(first, end, 2):
        value = values[turn.event, lists[at + 1]]
        if value < 0 or pool[row, turn.variables_at + lists[at]] != value:
            return False
    return True


@jit_lean_inline
def is_forbidden(
    edges: IntArray, lists: IntArray, pool: IntArray, stamps: IntArray, stamp: Int, keys: IntArray, values: IntArray,
    edge: Int, row: Int, turn: Turn,
) -> bool:  # fmt: skip
    """Tell whether the event also is one that another operand of the same `and` must not see now."""
    for at in range(edges[edge, FORBID], edges[edge, FORBID_END], 4):
        if stamps[lists[at]] != stamp or keys[turn.event, lists[at + 3]] != turn.key:
            continue
        if agrees_with_row(lists, pool, values, row, lists[at + 1], lists[at + 2], turn):
            return True
    return False


@jit_lean_inline
def write_row(
    edges: IntArray, lists: IntArray, pool: IntArray, values: IntArray, row: Int, edge: Int, parent: Int, turn: Turn
) -> None:
    """Write the row of an event that takes an edge after `parent` (-1: it begins a match)."""
    pool[row, SEQ], pool[row, TIME], pool[row, PARENT], pool[row, EDGE] = turn.seq, turn.time, parent, edge
    pool[row, PREV], pool[row, LINK], pool[row, FLAG], pool[row, KEY] = -1, -1, 0, turn.key
    if parent >= 0:
        pool[row, FIRST_SEQ], pool[row, FIRST_TIME] = pool[parent, FIRST_SEQ], pool[parent, FIRST_TIME]
        for column in range(MOMENTS, pool.shape[1]):
            pool[row, column] = pool[parent, column]
    else:
        pool[row, FIRST_SEQ], pool[row, FIRST_TIME] = turn.seq, turn.time
        for column in range(MOMENTS, pool.shape[1]):
            pool[row, column] = -1
    for at in range(edges[edge, STORES], edges[edge, STORES_END]):
        pool[row, MOMENTS + lists[at]] = turn.time
    for at in range(edges[edge, BINDS], edges[edge, BINDS_END], 2):
        pool[row, turn.variables_at + lists[at]] = values[turn.event, lists[at + 1]]


# Fronts ----------------------------------------------------------------------------------------


@jit_lean_inline
def dominates(
    nodes: IntArray, uses: IntArray, variables: IntArray, pool: IntArray, row: Int, other: Int, node: Int
) -> bool:
    """Tell whether all that can come of `other` at this node can come of `row` too.

    Of moments the youngest dominates for `<` and the oldest for `>` (`uses` has the sign); variables that still matter
    must agree; a younger beginning is better wherever one report is made for all beginnings.
    """
    mode, younger = nodes[node, MODE], pool[row, FIRST_SEQ] - pool[other, FIRST_SEQ]
    if mode == EVERY or younger < 0 or (mode == EACH and younger):
        return False
    # An absence runs from the row's own event: rows of different events have different deadlines.
    if nodes[node, SPAN] and pool[row, SEQ] != pool[other, SEQ]:
        return False
    moments = uses.shape[1]
    for moment in range(moments):
        use = uses[node, moment]
        if use == 2:
            continue
        apart = pool[row, MOMENTS + moment] - pool[other, MOMENTS + moment]
        if (use == 0 and apart != 0) or apart * use < 0:
            return False
    for at in range(variables.shape[1]):
        column = MOMENTS + moments + at
        if variables[node, at] and pool[row, column] != pool[other, column]:
            return False
    return True


@jit_lean_inline
def enter_front(
    nodes: IntArray, lists: IntArray, uses: IntArray, variables: IntArray, pool: IntArray, head: Int, row: Int,
    node: Int, time: Int,
) -> tuple[Int, Int]:  # fmt: skip
    """Put a row at the head of a front; return the new head and how many rows left, or -1 where the row is dominated.

    Invariant: afterwards no row of the front dominates another and none has expired.
    """
    if nodes[node, MODE] == GRAPH:
        # A compact graph keeps all rows: the ways back through `PREV` are the matches. Where even the newest has
        # expired, the others have too.
        if head >= 0 and time - pool[head, TIME] > nodes[node, WINDOW]:
            head = -1
        pool[row, PREV] = head
        return row, 0
    left = 0
    if not nodes[node, PLAIN]:
        before, at = -1, head
        while at >= 0:
            following = pool[at, PREV]
            if pool[at, FLAG] == 0 and dominates(nodes, uses, variables, pool, at, row, node):
                return head, -1
            if (
                pool[at, FLAG]
                or dominates(nodes, uses, variables, pool, row, at, node)
                or is_expired(nodes, lists, pool, at, node, time)
            ):
                pool[at, FLAG] = 1
                left += 1
                if before < 0:
                    head = following
                else:
                    pool[before, PREV] = following
            else:
                before = at
            at = following
    pool[row, PREV] = head
    return row, left


@jit_lean
def trim_front(state: RunArrays, cell: Int) -> None:
    """Keep the newest `MOST` rows of a cell and count the others that still waited as dropped.

    Called when a front is twice as long as allowed, so that the walk along it is paid for by the rows that entered.
    """
    registers, pool, cells = state.registers, state.pool, state.cells
    at, kept = cells[cell, HEAD], 1
    while at >= 0 and kept < registers[MOST]:
        at = pool[at, PREV]
        kept += 1
    if at < 0:
        cells[cell, COUNT] = kept - 1
        return
    below = pool[at, PREV]
    pool[at, PREV] = -1
    cells[cell, COUNT] = kept
    while below >= 0:
        registers[DROPPED] += pool[below, FLAG] == 0
        pool[below, FLAG] = 1
        below = pool[below, PREV]


@jit_lean_inline
def leave_front(pool: IntArray, cells: IntArray, cell: Int, before: Int, row: Int) -> None:
    """Take a row out of its cell's front; `before` is the row that leads to it, or -1 where it is the head."""
    pool[row, FLAG] = 1
    cells[cell, COUNT] -= 1
    if before < 0:
        cells[cell, HEAD] = pool[row, PREV]
    else:
        pool[before, PREV] = pool[row, PREV]


@jit_lean  # called only where there are guards: inlined, it would lengthen the loop that every event takes
def kill_rows(graph: GraphArrays, state: RunArrays, batch: EventArrays, guard: Int, cell: Int, turn: Turn) -> None:
    """End the wait of the rows of a cell that a guard's event concerns.

    A guard is four numbers of the lists: its node, its share of variables, and the way its key is named.
    """
    nodes, lists, pool, cells, values = graph.nodes, graph.lists, state.pool, state.cells, batch.values
    node = lists[guard]
    # Compact graphs have no variables, so a guard concerns all rows; those before an absence are flagged one by one.
    if nodes[node, MODE] == GRAPH and not nodes[node, SPAN]:
        cells[cell, HEAD], cells[cell, COUNT] = -1, 0
        return
    before, row = -1, cells[cell, HEAD]
    while row >= 0:
        following = pool[row, PREV]
        if agrees_with_row(lists, pool, values, row, lists[guard + 1], lists[guard + 2], turn):
            leave_front(pool, cells, cell, before, row)
        else:
            before = row
        row = following
