"""Partial matches: rows of one pool, the fronts they stand in, and which of two makes the other useless.

A row is one event that served one step; its parent is the row of the step before. The rows that wait at a node of the
graph, for one key, are that cell's front: a chain through `PREV`, newest first. Rows are only ever appended, so parents
lie before their children. Kernels take plain arrays: a tuple of them costs more to hand on than most events cost.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels.jit import jit_lean, jit_lean_inline

SEQ, TIME, FIRST_SEQ, FIRST_TIME, PARENT, EDGE, PREV, LINK, FLAG, KEY, SLOTS = range(11)
"""Columns of a row: the event, the match's first event, the row before, the edge, chains, a flag, the key, then moments
and the values of variables."""

SOURCE, TARGET, SYMBOL, VIA, STEP, FREE, CHECKS, CHECKS_END, STORES, STORES_END = range(10)
FORBID, FORBID_END, BINDS, BINDS_END, ACCEPTS, ACCEPTS_END = range(10, 16)
"""Columns of an edge; `X` and `X_END` bound its share of the lists. `FREE`: nothing but the filter is asked."""

CONTIGUOUS, MODE, WINDOW, SPAN, MOVES, PLAIN, LIMITS, LIMITS_END = range(8)
LEAVING, LEAVING_END, ENDS, ENDS_END, QUEUE = range(8, 13)
"""Columns of a node: who may serve it, how matches are counted, how long a start lasts, an absence, two shortcuts
(rows move on; no row makes another useless), when waiting is vain, ways out, the patterns an absence completes, and
its queue."""

WAITING, WAITING_END, GUARDS, GUARDS_END = range(4)
"""Columns of a symbol: (edge, source) pairs out of nodes that wait, and the guards it sets off."""

P_MODE, P_WITHIN, P_LIMIT, P_BORN, P_SINCE, P_SWEEP, OWNED, OWNED_END = range(8)
"""Columns of a pattern; it begins with event number `P_BORN` or a later one, after the time `P_SINCE`."""

EXISTS, EACH, GRAPH, EVERY, RESTARTS = range(5)
"""How matches are counted: some embedding, one for each beginning, all from a compact graph, all one by one; and (of
patterns alone, their nodes say `EXISTS`) some embedding of what no report has spent."""

TOP, EVENT, TURN, STAMP, BASE, DEADLINE, DROPPED, CUT, CELLS, BARRIERS = range(10)
REPORTS, LISTED_EVENTS, NOW, MADE, MOST, DIRECT, SIZE = range(10, 17)
"""Registers: what is used of the pool, where the run stands, counters, and limits."""

CODE, HEAD, COUNT = range(3)
"""Columns of a cell; and of what is spent, where `HEAD` is the last event that was spent."""

TAIL = 1
"""Columns of a queue: its first row and its last."""

FOREVER = np.int64(1) << np.int64(62)
"""A span of time that never ends."""


class GraphArrays(NamedTuple):
    """The merged patterns as arrays; shares of `lists` belong to edges, nodes, symbols and patterns."""

    edges: Any
    nodes: Any
    symbols: Any
    patterns: Any
    lists: Any
    uses: Any  # of each node and moment: 1 the later the better, -1 the earlier, 0 neither, 2 not used any more
    variables: Any  # of each node and variable: whether it still matters
    absences: Any  # nodes that an absence ends


class RunArrays(NamedTuple):
    """All that changes: rows, fronts, what is spent, and buffers."""

    registers: Any
    pool: Any
    cells: Any
    fresh: Any  # of each key: the rows that ask for the next event
    spent: Any
    queues: Any
    candidates: Any  # edges and the rows they follow
    stamps: Any
    fronts: Any  # of each contiguous node: when it was reached last, and its front
    best: Any  # of each pattern: when it was completed last, and by what
    completed_patterns: Any
    out: Any
    listed_events: Any
    path: Any


@jit_lean_inline
def mix(code: Any) -> Any:
    """Spread a code over 31 bits."""
    return np.int64((np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33))


@jit_lean_inline
def find(table: Any, code: Any) -> Any:
    """Return the place of a code in an open table, or -1."""
    mask = len(table) - 1
    at = mix(code) & mask
    while table[at, CODE] != code:
        if table[at, CODE] < 0:
            return -1
        at = (at + 1) & mask
    return at


@jit_lean_inline
def find_slot(table: Any, code: Any) -> Any:
    """Return the place of a code, new or known; the table has room."""
    mask = len(table) - 1
    at = mix(code) & mask
    while table[at, CODE] not in (code, -1):
        at = (at + 1) & mask
    return at


@jit_lean_inline
def open_cell(registers: Any, cells: Any, code: Any) -> Any:
    """Return the cell of a node and a key, made where there is none."""
    if registers[DIRECT]:
        return code
    at = find_slot(cells, code)
    if cells[at, CODE] < 0:
        cells[at, CODE], cells[at, HEAD], cells[at, COUNT] = code, -1, 0
        registers[CELLS] += 1
    return at


@jit_lean_inline
def is_expired(nodes: Any, lists: Any, pool: Any, row: Any, node: Any, time: Any) -> Any:
    """Tell whether a row waits in vain: its start or a moment that a condition looks at lies too far back."""
    if time - pool[row, FIRST_TIME] > nodes[node, WINDOW]:
        return True
    for at in range(nodes[node, LIMITS], nodes[node, LIMITS_END], 2):
        if time - pool[row, SLOTS + lists[at]] > lists[at + 1]:
            return True
    return False


@jit_lean_inline
def is_admitted(
    edges: Any, lists: Any, pool: Any, edge: Any, row: Any, time: Any, values: Any, event: Any, held: Any
) -> Any:
    """Tell whether an event may serve an edge after a row: time conditions and variables agree."""
    for at in range(edges[edge, CHECKS], edges[edge, CHECKS_END], 5):
        late, early = lists[at], lists[at + 1]
        apart = (time if late < 0 else pool[row, SLOTS + late]) - (time if early < 0 else pool[row, SLOTS + early])
        if lists[at + 4] and apart < 0:
            apart = -apart
        if apart < lists[at + 2] or apart > lists[at + 3]:
            return False
    for at in range(edges[edge, BINDS], edges[edge, BINDS_END], 2):
        value = values[event, lists[at + 1]]
        if value < 0:
            return False
        known = pool[row, held + lists[at]] if row >= 0 else -1
        if known >= 0 and known != value:
            return False
    return True


@jit_lean_inline
def concerns(lists: Any, pool: Any, row: Any, first: Any, end: Any, values: Any, event: Any, held: Any) -> Any:
    """Tell whether the event of a `not` agrees with a row on the variables that the `not` looks at."""
    for at in range(first, end, 2):
        value = values[event, lists[at + 1]]
        if value < 0 or pool[row, held + lists[at]] != value:
            return False
    return True


@jit_lean_inline
def is_forbidden(
    edges: Any,
    lists: Any,
    stamps: Any,
    stamp: Any,
    pool: Any,
    edge: Any,
    row: Any,
    keys: Any,
    key: Any,
    values: Any,
    event: Any,
    held: Any,
) -> Any:
    """Tell whether the event is also what another operand of the same `and` must not see now."""
    for at in range(edges[edge, FORBID], edges[edge, FORBID_END], 4):
        if stamps[lists[at]] != stamp or keys[event, lists[at + 3]] != key:
            continue
        if concerns(lists, pool, row, lists[at + 1], lists[at + 2], values, event, held):
            return True
    return False


@jit_lean_inline
def write_row(
    edges: Any,
    lists: Any,
    pool: Any,
    row: Any,
    edge: Any,
    parent: Any,
    seq: Any,
    time: Any,
    key: Any,
    values: Any,
    event: Any,
    held: Any,
) -> None:
    """Write the row of an event that serves an edge."""
    pool[row, SEQ], pool[row, TIME], pool[row, PARENT], pool[row, EDGE] = seq, time, parent, edge
    pool[row, PREV], pool[row, LINK], pool[row, FLAG], pool[row, KEY] = -1, -1, 0, key
    if parent >= 0:
        pool[row, FIRST_SEQ], pool[row, FIRST_TIME] = pool[parent, FIRST_SEQ], pool[parent, FIRST_TIME]
        for column in range(SLOTS, pool.shape[1]):
            pool[row, column] = pool[parent, column]
    else:
        pool[row, FIRST_SEQ], pool[row, FIRST_TIME] = seq, time
        for column in range(SLOTS, pool.shape[1]):
            pool[row, column] = -1
    for at in range(edges[edge, STORES], edges[edge, STORES_END]):
        pool[row, SLOTS + lists[at]] = time
    for at in range(edges[edge, BINDS], edges[edge, BINDS_END], 2):
        pool[row, held + lists[at]] = values[event, lists[at + 1]]


@jit_lean_inline
def dominates(nodes: Any, uses: Any, variables: Any, pool: Any, row: Any, other: Any, node: Any) -> Any:
    """Tell whether all that can come of `other` at this node can come of `row` too.

    Of reference times the youngest dominates for `<` and the oldest for `>`; variables must agree; a younger
    beginning is better wherever one report is made for all beginnings.
    """
    mode, younger = nodes[node, MODE], pool[row, FIRST_SEQ] - pool[other, FIRST_SEQ]
    if mode == EVERY or younger < 0 or (mode == EACH and younger):
        return False
    if nodes[node, SPAN] and pool[row, SEQ] != pool[other, SEQ]:
        return False
    slots = uses.shape[1]
    for slot in range(slots):
        use = uses[node, slot]
        if use == 2:
            continue
        apart = pool[row, SLOTS + slot] - pool[other, SLOTS + slot]
        if (use == 0 and apart != 0) or apart * use < 0:
            return False
    for at in range(variables.shape[1]):
        column = SLOTS + slots + at
        if variables[node, at] and pool[row, column] != pool[other, column]:
            return False
    return True


@jit_lean_inline
def enter_front(
    nodes: Any, lists: Any, uses: Any, variables: Any, pool: Any, head: Any, row: Any, node: Any, time: Any
) -> Any:
    """Put a row into a chain; return the new head and how many rows left, or -1: the row itself is useless."""
    if nodes[node, MODE] == GRAPH:
        if head >= 0 and time - pool[head, TIME] > nodes[node, WINDOW]:
            head = -1
        pool[row, PREV] = head
        return row, 0
    gone = 0
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
                gone += 1
                if before < 0:
                    head = following
                else:
                    pool[before, PREV] = following
            else:
                before = at
            at = following
    pool[row, PREV] = head
    return row, gone


@jit_lean
def trim_front(registers: Any, pool: Any, cells: Any, cell: Any) -> None:
    """Keep the newest rows of a crowded cell and count what is dropped."""
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
def leave(pool: Any, cells: Any, cell: Any, before: Any, row: Any) -> None:
    """Take a row out of its cell's front; `before` is the one that leads to it, or -1."""
    pool[row, FLAG] = 1
    cells[cell, COUNT] -= 1
    if before < 0:
        cells[cell, HEAD] = pool[row, PREV]
    else:
        pool[before, PREV] = pool[row, PREV]


@jit_lean
def kill_rows(
    nodes: Any, lists: Any, pool: Any, cells: Any, guard: Any, cell: Any, values: Any, event: Any, held: Any
) -> None:
    """End the wait of a cell's rows that a guard's event concerns."""
    node = lists[guard]
    if nodes[node, MODE] == GRAPH and not nodes[node, SPAN]:
        cells[cell, HEAD], cells[cell, COUNT] = -1, 0
        return
    before, row = -1, cells[cell, HEAD]
    while row >= 0:
        following = pool[row, PREV]
        if concerns(lists, pool, row, lists[guard + 1], lists[guard + 2], values, event, held):
            leave(pool, cells, cell, before, row)
        else:
            before = row
        row = following
