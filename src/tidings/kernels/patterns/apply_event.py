"""What an event or a deadline changes: new rows enter fronts, reports spend the events they used, beginnings leave.

All reports of the turn are written before anything here runs (see `runs`), so nothing here can stop halfway. Cost of a
candidate: the length of the front that it enters; of a report: a look-up in `spent`, or `sweep`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.kernels.jit import jit_lean, jit_lean_inline
from tidings.kernels.patterns.layout import (
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
    SPENT,
    STAMP,
    TAIL,
    TARGET,
    TIME,
    TOP,
    EventArrays,
    GraphArrays,
    RunArrays,
    Turn,
)
from tidings.kernels.patterns.partials import (
    enter_front,
    find,
    find_slot,
    leave_front,
    open_cell,
    trim_front,
    write_row,
)
from tidings.kernels.patterns.reports import O_FIRST, O_KEY, O_PATTERN

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, IntArray


@jit_lean_inline
def spend(graph: GraphArrays, state: RunArrays, first_report: Int, seq: Int) -> None:
    """Note that a pattern of mode `restart` has used all events up to `seq`, for the keys of the reports just made.

    The rows of such a pattern are not taken away: their beginnings are compared with the number in `spent` when they
    complete (`reports.find_spent`). That costs one look-up for each report and none for each row that waits.
    """
    patterns, registers, spent, out = graph.patterns, state.registers, state.spent, state.out
    for report in range(first_report, registers[REPORTS]):
        pattern = out[report, O_PATTERN]
        if patterns[pattern, P_MODE] != RESTARTS:
            continue
        at = pattern
        if not registers[DIRECT]:
            code = out[report, O_KEY] * len(patterns) + pattern
            at = find_slot(spent, code)
            registers[SPENT] += spent[at, CODE] < 0
            spent[at, CODE] = code
        spent[at, HEAD] = seq


@jit_lean_inline
def put_rows(graph: GraphArrays, state: RunArrays, batch: EventArrays, count: Int, turn: Turn) -> None:
    """Make a row of each candidate and put it into the front of its target; contiguous ones form the key's fresh chain.

        candidates (edge, row)  -->  pool[TOP], pool[TOP + 1], ...  -->  front of the cell (target, key)
                                                                    -->  or `fresh[key]`, for the next event only

    The pool has room for all of them: `runs` has seen to it.
    """
    edges, nodes, lists, uses, variables = graph.edges, graph.nodes, graph.lists, graph.uses, graph.variables
    registers, pool, cells = state.registers, state.pool, state.cells
    candidates, fronts = state.candidates, state.fronts
    newest, stamp, direct = -1, registers[STAMP], registers[DIRECT]
    # Where a node's rows move on, as in a chain of plain steps, an event that serves it empties the cell first.
    for at in range(count):
        source = edges[candidates[at, 0], SOURCE]
        if source and nodes[source, MOVES]:
            cell = source if direct else find(cells, turn.key * len(nodes) + source)
            cells[cell, HEAD], cells[cell, COUNT] = -1, 0
    for at in range(count):
        edge = candidates[at, 0]
        node, row = edges[edge, TARGET], registers[TOP]
        if node < 0:
            continue
        write_row(edges, lists, pool, batch.values, row, edge, candidates[at, 1], turn)
        if nodes[node, CONTIGUOUS]:
            head = fronts[node, 1] if fronts[node, 0] == stamp else -1
            head, left = enter_front(nodes, lists, uses, variables, pool, head, row, node, turn.time)
            if left < 0:
                continue
            # Of a compact graph one row of the node is enough to lead the next event to all: the older ones are
            # flagged, and still reached through `PREV`.
            if nodes[node, MODE] == GRAPH and pool[row, PREV] >= 0:
                pool[pool[row, PREV], FLAG] = 1
            fronts[node, 0], fronts[node, 1] = stamp, head
            pool[row, LINK] = newest
            newest = row
        else:
            cell = open_cell(registers, cells, turn.key * len(nodes) + node)
            head, left = enter_front(nodes, lists, uses, variables, pool, cells[cell, HEAD], row, node, turn.time)
            if left < 0:
                continue
            cells[cell, HEAD] = head
            cells[cell, COUNT] += 1 - left
            if nodes[node, SPAN]:
                _enqueue(nodes, registers, pool, state.queues, row, node)
            if cells[cell, COUNT] > 2 * registers[MOST]:
                trim_front(state, cell)
        # A dominated row was written but not counted: the next one overwrites it.
        registers[TOP] += 1
        registers[MADE] += 1
    state.fresh[turn.key] = newest


@jit_lean
def sweep(graph: GraphArrays, state: RunArrays, first_report: Int) -> None:
    """Remove partial matches that begin where a report does, of patterns that report each first event once.

    Cost of a report: the fronts of all nodes that the pattern owns, for its key, and the key's fresh rows times nodes.
    """
    edges, patterns, lists = graph.edges, graph.patterns, graph.lists
    registers, pool, cells, out = state.registers, state.pool, state.cells, state.out
    for report in range(first_report, registers[REPORTS]):
        pattern, first, key = out[report, O_PATTERN], out[report, O_FIRST], out[report, O_KEY]
        if not patterns[pattern, P_SWEEP]:
            continue
        for at in range(patterns[pattern, OWNED], patterns[pattern, OWNED_END]):
            cell = lists[at] if registers[DIRECT] else find(cells, key * len(graph.nodes) + lists[at])
            if cell < 0:
                continue
            before, row = -1, cells[cell, HEAD]
            while row >= 0:
                following = pool[row, PREV]
                if pool[row, FIRST_SEQ] == first:
                    leave_front(pool, cells, cell, before, row)
                else:
                    before = row
                row = following
        # Fresh rows belong to no cell: flagged, they are passed over by the next event.
        row = state.fresh[key]
        while row >= 0:
            node = edges[pool[row, EDGE], TARGET]
            for at in range(patterns[pattern, OWNED], patterns[pattern, OWNED_END]):
                if lists[at] == node and pool[row, FIRST_SEQ] == first:
                    pool[row, FLAG] = 1
            row = pool[row, LINK]


@jit_lean
def _enqueue(nodes: IntArray, registers: IntArray, pool: IntArray, queues: IntArray, row: Int, node: Int) -> None:
    """Append a row to its node's queue of deadlines; they ascend, as all rows of a node wait equally long."""
    queue = nodes[node, QUEUE]
    if queues[queue, TAIL] < 0:
        queues[queue, 0] = row
    else:
        pool[queues[queue, TAIL], LINK] = row
    queues[queue, TAIL] = row
    registers[DEADLINE] = min(registers[DEADLINE], pool[row, TIME] + nodes[node, SPAN])
