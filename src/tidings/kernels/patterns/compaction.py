"""Room for partial matches: what cannot be reached, or waits in vain, goes; the rest moves together.

Parents lie before their children, so one pass backwards marks all that is still reachable.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.jit import jit_lean
from tidings.kernels.patterns.partials import (
    CODE,
    COUNT,
    EDGE,
    FLAG,
    GRAPH,
    HEAD,
    LINK,
    MODE,
    NOW,
    PARENT,
    PREV,
    SPAN,
    TAIL,
    TARGET,
    TIME,
    TOP,
    WINDOW,
    find_slot,
    is_expired,
    leave,
)


@jit_lean
def compact(
    edges: Any,
    nodes: Any,
    lists: Any,
    registers: Any,
    pool: Any,
    cells: Any,
    fresh: Any,
    queues: Any,
    marks: Any,
    places: Any,
) -> Any:
    """Drop rows and return how many stay; `marks` and `places` are as long as what is used of the pool."""
    top, time = registers[TOP], registers[NOW]
    marks[:top] = 0
    _mark_fronts(edges, nodes, lists, pool, cells, marks, time)
    for key in range(len(fresh)):
        fresh[key] = _mark_links(pool, marks, fresh[key])
    for queue in range(len(queues)):
        queues[queue, 0] = _mark_links(pool, marks, queues[queue, 0])
        row = queues[queue, TAIL] = queues[queue, 0]
        while row >= 0:
            queues[queue, TAIL] = row
            row = pool[row, LINK]
    _mark_ancestors(edges, nodes, pool, marks, top, time)
    kept = _move_rows(pool, marks, places, top)
    for cell in range(len(cells)):
        cells[cell, HEAD] = places[cells[cell, HEAD]] if cells[cell, HEAD] >= 0 else -1
    for key in range(len(fresh)):
        fresh[key] = places[fresh[key]] if fresh[key] >= 0 else -1
    for queue in range(len(queues)):
        for end in range(2):
            queues[queue, end] = places[queues[queue, end]] if queues[queue, end] >= 0 else -1
    registers[TOP] = kept
    return kept


@jit_lean
def _mark_fronts(edges: Any, nodes: Any, lists: Any, pool: Any, cells: Any, marks: Any, time: Any) -> None:
    """Mark what waits; chains lose the rows that wait in vain."""
    for cell in range(len(cells)):
        row = cells[cell, HEAD]
        if row < 0:
            continue
        node = edges[pool[row, EDGE], TARGET]
        if nodes[node, MODE] == GRAPH and not nodes[node, SPAN]:
            if time - pool[row, TIME] > nodes[node, WINDOW]:
                cells[cell, HEAD], cells[cell, COUNT] = -1, 0
            else:
                marks[row] = 1
            continue
        before, kept = -1, 0
        while row >= 0:
            following = pool[row, PREV]
            if pool[row, FLAG] or is_expired(nodes, lists, pool, row, node, time):
                leave(pool, cells, cell, before, row)
            else:
                marks[row] = 1
                kept += 1
                before = row
            row = following
        cells[cell, COUNT] = kept


@jit_lean
def _mark_links(pool: Any, marks: Any, head: Any) -> Any:
    """Mark a chain through `LINK` without its flagged rows, and return its head."""
    before, row = -1, head
    while row >= 0:
        following = pool[row, LINK]
        if pool[row, FLAG] and not marks[row]:
            if before < 0:
                head = following
            else:
                pool[before, LINK] = following
        else:
            marks[row] = 1
            before = row
        row = following
    return head


@jit_lean
def _mark_ancestors(edges: Any, nodes: Any, pool: Any, marks: Any, top: Any, time: Any) -> None:
    for row in range(top - 1, -1, -1):
        if not marks[row]:
            continue
        parent, previous = pool[row, PARENT], pool[row, PREV]
        node = edges[pool[row, EDGE], TARGET]
        # A way back may go through every older row; of those that wait for an absence, through one alone.
        if nodes[node, MODE] == GRAPH and previous >= 0 and not nodes[node, SPAN]:
            if time - pool[previous, TIME] > nodes[node, WINDOW]:
                pool[row, PREV] = -1
            else:
                marks[previous] = 1
        if parent >= 0:
            marks[parent] = 1


@jit_lean
def _move_rows(pool: Any, marks: Any, places: Any, top: Any) -> Any:
    kept = 0
    for row in range(top):
        places[row] = kept if marks[row] else -1
        kept += marks[row]
    for row in range(top):
        if not marks[row]:
            continue
        to = places[row]
        for column in range(pool.shape[1]):
            pool[to, column] = pool[row, column]
        for column in (PREV, LINK, PARENT):
            if pool[to, column] >= 0:
                pool[to, column] = places[pool[to, column]]
    return kept


@jit_lean
def refill(old: Any, table: Any) -> Any:
    """Put the rows of a table that hold something into an empty one, and return how many there are."""
    filled = 0
    for row in range(len(old)):
        if old[row, CODE] >= 0 and old[row, HEAD] >= 0:
            at = find_slot(table, old[row, CODE])
            for column in range(3):
                table[at, column] = old[row, column]
            filled += 1
    return filled
