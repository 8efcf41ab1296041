"""What an event or a deadline changes: rows go where they wait, reports spend what they used, beginnings leave."""

from __future__ import annotations

from typing import Any

from tidings.kernels.jit import jit_lean, jit_lean_inline
from tidings.kernels.patterns.partials import (
    BARRIERS,
    CODE,
    CONTIGUOUS,
    COUNT,
    DEADLINE,
    DIRECT,
    EDGE,
    FIRST_SEQ,
    FLAG,
    GRAPH,
    HEAD,
    LINK,
    MADE,
    MODE,
    MOST,
    MOVES,
    OWNED,
    OWNED_END,
    P_MODE,
    P_SWEEP,
    PREV,
    QUEUE,
    REPORTS,
    RESTARTS,
    SOURCE,
    SPAN,
    STAMP,
    TAIL,
    TARGET,
    TIME,
    TOP,
    enter_front,
    find,
    find_slot,
    leave,
    open_cell,
    trim_front,
    write_row,
)
from tidings.kernels.patterns.reports import O_FIRST, O_KEY, O_PATTERN


@jit_lean_inline
def spend(patterns: Any, registers: Any, spent: Any, out: Any, reported: Any, seq: Any) -> None:
    """A pattern that starts anew has spent everything up to this event, for the key it reported."""
    for report in range(reported, registers[REPORTS]):
        pattern = out[report, O_PATTERN]
        if patterns[pattern, P_MODE] != RESTARTS:
            continue
        at = pattern
        if not registers[DIRECT]:
            code = out[report, O_KEY] * len(patterns) + pattern
            at = find_slot(spent, code)
            registers[BARRIERS] += spent[at, CODE] < 0
            spent[at, CODE] = code
        spent[at, HEAD] = seq


@jit_lean_inline
def put_rows(
    edges: Any,
    nodes: Any,
    lists: Any,
    uses: Any,
    variables: Any,
    registers: Any,
    pool: Any,
    cells: Any,
    fresh: Any,
    queues: Any,
    found: Any,
    fronts: Any,
    count: Any,
    seq: Any,
    time: Any,
    key: Any,
    values: Any,
    event: Any,
    held: Any,
) -> None:
    """Put the rows of this event where they wait; rows that ask for the next event form the key's fresh chain."""
    newest, stamp, direct = -1, registers[STAMP], registers[DIRECT]
    for at in range(count):
        source = edges[found[at, 0], SOURCE]
        if source and nodes[source, MOVES]:
            cell = source if direct else find(cells, key * len(nodes) + source)
            cells[cell, HEAD], cells[cell, COUNT] = -1, 0
    for at in range(count):
        edge = found[at, 0]
        node, row = edges[edge, TARGET], registers[TOP]
        if node < 0:
            continue
        write_row(edges, lists, pool, row, edge, found[at, 1], seq, time, key, values, event, held)
        if nodes[node, CONTIGUOUS]:
            head = fronts[node, 1] if fronts[node, 0] == stamp else -1
            head, gone = enter_front(nodes, lists, uses, variables, pool, head, row, node, time)
            if gone < 0:
                continue
            if nodes[node, MODE] == GRAPH and pool[row, PREV] >= 0:
                pool[pool[row, PREV], FLAG] = 1
            fronts[node, 0], fronts[node, 1] = stamp, head
            pool[row, LINK] = newest
            newest = row
        else:
            cell = open_cell(registers, cells, key * len(nodes) + node)
            head, gone = enter_front(nodes, lists, uses, variables, pool, cells[cell, HEAD], row, node, time)
            if gone < 0:
                continue
            cells[cell, HEAD] = head
            cells[cell, COUNT] += 1 - gone
            if nodes[node, SPAN]:
                _enqueue(nodes, registers, pool, queues, row, node)
            if cells[cell, COUNT] > 2 * registers[MOST]:
                trim_front(registers, pool, cells, cell)
        registers[TOP] += 1
        registers[MADE] += 1
    fresh[key] = newest


@jit_lean
def sweep(
    edges: Any,
    nodes: Any,
    patterns: Any,
    lists: Any,
    registers: Any,
    pool: Any,
    cells: Any,
    fresh: Any,
    out: Any,
    reported: Any,
) -> None:
    """Take away what is left of beginnings that have reported."""
    for report in range(reported, registers[REPORTS]):
        pattern, first, key = out[report, O_PATTERN], out[report, O_FIRST], out[report, O_KEY]
        if not patterns[pattern, P_SWEEP]:
            continue
        for at in range(patterns[pattern, OWNED], patterns[pattern, OWNED_END]):
            cell = lists[at] if registers[DIRECT] else find(cells, key * len(nodes) + lists[at])
            if cell < 0:
                continue
            before, row = -1, cells[cell, HEAD]
            while row >= 0:
                following = pool[row, PREV]
                if pool[row, FIRST_SEQ] == first:
                    leave(pool, cells, cell, before, row)
                else:
                    before = row
                row = following
        row = fresh[key]
        while row >= 0:
            node = edges[pool[row, EDGE], TARGET]
            for at in range(patterns[pattern, OWNED], patterns[pattern, OWNED_END]):
                if lists[at] == node and pool[row, FIRST_SEQ] == first:
                    pool[row, FLAG] = 1
            row = pool[row, LINK]


@jit_lean
def _enqueue(nodes: Any, registers: Any, pool: Any, queues: Any, row: Any, node: Any) -> None:
    """Note a row's deadline: rows of one node have ascending ones."""
    queue = nodes[node, QUEUE]
    if queues[queue, TAIL] < 0:
        queues[queue, 0] = row
    else:
        pool[queues[queue, TAIL], LINK] = row
    queues[queue, TAIL] = row
    registers[DEADLINE] = min(registers[DEADLINE], pool[row, TIME] + nodes[node, SPAN])
