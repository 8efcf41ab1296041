"""Compaction of the pool: rows that nothing can reach, or that have expired, go; the others move together.

A mark-and-sweep collector. Roots are the fronts of cells, the fresh rows of keys and the queues of deadlines:

    before   pool [ a  b  c  d  e  f ]      marks  [ 1  0  1  1  0  1 ]      places [ 0 -1  1  2 -1  3 ]
    after    pool [ a  c  d  f ]            PREV, LINK and PARENT of each row, and all roots, go through `places`

Parents lie before their children, so one pass backwards marks every ancestor, and one pass forwards moves the rows
without overwriting any that is still needed. Cost: the rows of the pool and the tables, whatever their contents; the
run compacts when the pool is full and enlarges it where little was freed, so an event pays a constant share of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.kernels.jit import jit_lean
from tidings.kernels.patterns.layout import (
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
    GraphArrays,
    RunArrays,
)
from tidings.kernels.patterns.partials import find_slot, is_expired, leave_front

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, Int, IntArray


@jit_lean
def compact(
    graph_arrays: tuple[IntArray, ...], run_arrays: tuple[IntArray, ...], marks: ByteArray, places: IntArray
) -> Int:
    """Drop rows and return how many stay; `marks` and `places` are work space for each row in use.

    The groups come as plain tuples for the reason that `runs.run_batch` gives.
    """
    graph, state = GraphArrays(*graph_arrays), RunArrays(*run_arrays)
    registers, pool, cells, fresh, queues = state.registers, state.pool, state.cells, state.fresh, state.queues
    top, time = registers[TOP], registers[NOW]
    marks[:top] = 0
    _mark_fronts(graph, state, marks, time)
    for key in range(len(fresh)):
        fresh[key] = _mark_links(pool, marks, fresh[key])
    # The tail of a queue may have been taken out: it is found again by walking to the end.
    for queue in range(len(queues)):
        queues[queue, 0] = _mark_links(pool, marks, queues[queue, 0])
        row = queues[queue, TAIL] = queues[queue, 0]
        while row >= 0:
            queues[queue, TAIL] = row
            row = pool[row, LINK]
    _mark_ancestors(graph, pool, marks, top, time)
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
def _mark_fronts(graph: GraphArrays, state: RunArrays, marks: ByteArray, time: Int) -> None:
    """Mark the rows that wait; fronts lose the rows that have expired."""
    edges, nodes, pool, cells = graph.edges, graph.nodes, state.pool, state.cells
    for cell in range(len(cells)):
        row = cells[cell, HEAD]
        if row < 0:
            continue
        node = edges[pool[row, EDGE], TARGET]
        # Of a compact graph the head is enough: older rows are reached from it, as far as the window goes.
        if nodes[node, MODE] == GRAPH and not nodes[node, SPAN]:
            if time - pool[row, TIME] > nodes[node, WINDOW]:
                cells[cell, HEAD], cells[cell, COUNT] = -1, 0
            else:
                marks[row] = 1
            continue
        before, kept = -1, 0
        while row >= 0:
            following = pool[row, PREV]
            if pool[row, FLAG] or is_expired(nodes, graph.lists, pool, row, node, time):
                leave_front(pool, cells, cell, before, row)
            else:
                marks[row] = 1
                kept += 1
                before = row
            row = following
        cells[cell, COUNT] = kept


@jit_lean
def _mark_links(pool: IntArray, marks: ByteArray, head: Int) -> Int:
    """Mark a chain through `LINK`, take its flagged rows out, and return its head."""
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
def _mark_ancestors(graph: GraphArrays, pool: IntArray, marks: ByteArray, top: Int, time: Int) -> None:
    """Mark all that marked rows lead to; backwards, so that every row is seen after all that refer to it."""
    edges, nodes = graph.edges, graph.nodes
    for row in range(top - 1, -1, -1):
        if not marks[row]:
            continue
        parent, previous = pool[row, PARENT], pool[row, PREV]
        node = edges[pool[row, EDGE], TARGET]
        # In a compact graph a way back may go through every older row, but not where rows wait for an absence: there
        # each has a deadline of its own.
        if nodes[node, MODE] == GRAPH and previous >= 0 and not nodes[node, SPAN]:
            if time - pool[previous, TIME] > nodes[node, WINDOW]:
                pool[row, PREV] = -1
            else:
                marks[previous] = 1
        if parent >= 0:
            marks[parent] = 1


@jit_lean
def _move_rows(pool: IntArray, marks: ByteArray, places: IntArray, top: Int) -> Int:
    """Move the marked rows together, in their order; return how many there are. Row `r` goes to `places[r]`."""
    # Prefix sums of the marks are the new places; then `to <= row`, so rows may be moved in place.
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
def refill(old: IntArray, table: IntArray) -> Int:
    """Enter the rows of a hash table that are in use into an empty one, and return how many there are."""
    filled = 0
    for row in range(len(old)):
        if old[row, CODE] >= 0 and old[row, HEAD] >= 0:
            at = find_slot(table, old[row, CODE])
            for column in range(3):
                table[at, column] = old[row, column]
            filled += 1
    return filled
