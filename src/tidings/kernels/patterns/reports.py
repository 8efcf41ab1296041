"""What an event or a deadline completes, written out: patterns, and the events of one embedding or of all.

    out            [ PATTERN KEY AT SEQ FIRST BEGIN END | values of variables ... ]
                                              |     |
    listed_events  [ ...                    | e1 e2 e3 | ... ]     event numbers, in the order of the pattern's steps

A report is read off the pool by walking back from its last row through `PARENT`. Nothing here changes what waits: where
a buffer is too small the turn is taken again with a larger one, after the registers that count reports are set back.
Cost: the events that are written down, except for `EVERY` and `GRAPH`, which a pattern's limit bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.kernels.jit import jit_lean, jit_lean_inline
from tidings.kernels.patterns.layout import (
    ACCEPTS,
    ACCEPTS_END,
    BINDS,
    BINDS_END,
    CUT,
    DIRECT,
    EACH,
    EDGE,
    ENDS,
    ENDS_END,
    EVERY,
    FIRST_SEQ,
    FIRST_TIME,
    GRAPH,
    HEAD,
    KEY,
    LISTED_EVENTS,
    P_BORN,
    P_LIMIT,
    P_MODE,
    P_SINCE,
    P_SWEEP,
    P_WITHIN,
    PARENT,
    PREV,
    REPORTS,
    RESTARTS,
    SEQ,
    SOURCE,
    STAMP,
    STEP,
    TIME,
    EventArrays,
    GraphArrays,
    RunArrays,
    Turn,
)
from tidings.kernels.patterns.partials import find

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, IntArray

DONE, MORE_ROWS, MORE_CANDIDATES, MORE_OUT, MORE_CELLS, MORE_PATH = range(6)
"""Why a run stopped: all events are done, or an array is too small."""

O_PATTERN, O_KEY, O_AT, O_SEQ, O_FIRST, O_BEGIN, O_END, O_VALUES = range(8)
"""Columns of a report; `O_SEQ` is the event that completed it, or -1 for a deadline."""


@jit_lean_inline
def find_spent(graph: GraphArrays, state: RunArrays, pattern: Int, key: Int) -> Int:
    """Return the last event that a pattern's reports have used for a key, or -1."""
    spent = state.spent
    if state.registers[DIRECT]:
        return spent[pattern, HEAD]
    at = find(spent, key * len(graph.patterns) + pattern)
    return -1 if at < 0 else spent[at, HEAD]


@jit_lean_inline
def report_event(graph: GraphArrays, state: RunArrays, batch: EventArrays, count: Int, turn: Turn) -> Int:
    """Report what the event completes; where a pattern has one report for all beginnings, that of the youngest."""
    edges, patterns, lists = graph.edges, graph.patterns, graph.lists
    pool, candidates, best, completed_patterns = state.pool, state.candidates, state.best, state.completed_patterns
    completed, stamp = 0, state.registers[STAMP]
    for at in range(count):
        edge, parent = candidates[at, 0], candidates[at, 1]
        if edges[edge, ACCEPTS] == edges[edge, ACCEPTS_END]:
            continue
        first_seq = turn.seq if parent < 0 else pool[parent, FIRST_SEQ]
        first_time = turn.time if parent < 0 else pool[parent, FIRST_TIME]
        for place in range(edges[edge, ACCEPTS], edges[edge, ACCEPTS_END]):
            pattern = lists[place]
            mode = patterns[pattern, P_MODE]
            if mode == GRAPH:
                status = enumerate_embeddings(graph, state, batch, pattern, edge, parent, turn.time, turn)
                if status != DONE:
                    return status
                continue
            # `within` over a whole pattern is judged here and not on the way, so that patterns which differ in
            # nothing else share their rows.
            if (
                first_seq < patterns[pattern, P_BORN]
                or first_time <= patterns[pattern, P_SINCE]
                or turn.time - first_time > patterns[pattern, P_WITHIN]
            ):
                continue
            if mode == EACH or mode == EVERY:
                if _is_reported(graph, state, pattern, first_seq):
                    continue
                status = report_embedding(graph, state, batch, pattern, edge, parent, turn)
                if status != DONE:
                    return status
                continue
            if mode == RESTARTS and first_seq <= find_spent(graph, state, pattern, turn.key):
                continue
            # One report for all beginnings: the youngest of them is known when all candidates have been seen.
            if best[pattern, 0] != stamp:
                best[pattern, 0], best[pattern, 1] = stamp, at
                completed_patterns[completed] = pattern
                completed += 1
            else:
                other = candidates[best[pattern, 1], 1]
                if first_seq > (turn.seq if other < 0 else pool[other, FIRST_SEQ]):
                    best[pattern, 1] = at
    for at in range(completed):
        pattern = completed_patterns[at]
        edge, parent = candidates[best[pattern, 1], 0], candidates[best[pattern, 1], 1]
        status = report_embedding(graph, state, batch, pattern, edge, parent, turn)
        if status != DONE:
            return status
    return DONE


@jit_lean_inline
def _is_reported(graph: GraphArrays, state: RunArrays, pattern: Int, first: Int) -> bool:
    """Tell whether this turn has reported a beginning already, or (`EVERY`) as many embeddings as the limit allows."""
    patterns, registers, best, out = graph.patterns, state.registers, state.best, state.out
    if best[pattern, 0] != registers[STAMP]:
        best[pattern, 0], best[pattern, 1] = registers[STAMP], registers[REPORTS]
        if patterns[pattern, P_MODE] == EVERY:
            best[pattern, 1] = 0
    if patterns[pattern, P_MODE] == EVERY:
        best[pattern, 1] += 1
        registers[CUT] += best[pattern, 1] == patterns[pattern, P_LIMIT] + 1
        return best[pattern, 1] > patterns[pattern, P_LIMIT]
    if patterns[pattern, P_SWEEP]:
        for row in range(best[pattern, 1], registers[REPORTS]):
            if out[row, O_PATTERN] == pattern and out[row, O_FIRST] == first:
                return True
    return False


@jit_lean_inline
def report_embedding(
    graph: GraphArrays, state: RunArrays, batch: EventArrays, pattern: Int, edge: Int, parent: Int, turn: Turn
) -> Int:
    """Write one report: the event that takes `edge` (-1: a deadline, no event), then `parent` and its ancestors."""
    edges, pool, path = graph.edges, state.pool, state.path
    length = 0
    if edge >= 0:
        path[0, 0], path[0, 1] = edges[edge, STEP], turn.seq
        length = 1
    row = parent
    while row >= 0:
        if length >= len(path):
            return MORE_PATH
        path[length, 0], path[length, 1] = edges[pool[row, EDGE], STEP], pool[row, SEQ]
        length += 1
        row = pool[row, PARENT]
    return _write_report(graph, state, batch, pattern, length, parent, edge, turn)


@jit_lean_inline
def _write_report(
    graph: GraphArrays, state: RunArrays, batch: EventArrays, pattern: Int, length: Int, row: Int, edge: Int, turn: Turn
) -> Int:
    """Write the report of a path, its events in the order of the steps; variables are those of `row` and the event."""
    edges, lists = graph.edges, graph.lists
    registers, pool, path = state.registers, state.pool, state.path
    out, listed_events = state.out, state.listed_events
    report, begin, steps = registers[REPORTS], registers[LISTED_EVENTS], path[:, 3]
    if report >= len(out) or begin + length > len(listed_events):
        return MORE_OUT
    first, last = path[length - 1, 1], path[0, 1]
    # Insertion sort by step: the path goes back in time, so it is nearly sorted when read from its end, and events of
    # a repeated step keep their order.
    for i in range(length):
        step, seq = path[length - 1 - i, 0], path[length - 1 - i, 1]
        j = begin + i
        while j > begin and steps[j - begin - 1] > step:
            steps[j - begin], listed_events[j] = steps[j - begin - 1], listed_events[j - 1]
            j -= 1
        steps[j - begin], listed_events[j] = step, seq
    out[report, O_PATTERN], out[report, O_KEY], out[report, O_AT] = pattern, turn.key, turn.time
    out[report, O_SEQ], out[report, O_FIRST] = last if edge >= 0 else -1, first
    out[report, O_BEGIN], out[report, O_END] = begin, begin + length
    for column in range(O_VALUES, out.shape[1]):
        out[report, column] = pool[row, turn.variables_at + column - O_VALUES] if row >= 0 else -1
    if edge >= 0:
        for place in range(edges[edge, BINDS], edges[edge, BINDS_END], 2):
            out[report, O_VALUES + lists[place]] = batch.values[turn.event, lists[place + 1]]
    registers[REPORTS], registers[LISTED_EVENTS] = report + 1, begin + length
    return DONE


@jit_lean
def enumerate_embeddings(
    graph: GraphArrays, state: RunArrays, batch: EventArrays, pattern: Int, edge: Int, parent: Int, last: Int,
    turn: Turn,
) -> Int:  # fmt: skip
    """Report every way back through the compact graph from an event at time `last`, newest first, up to the limit.

    A compact graph keeps one row for each event and node, not for each embedding. A row stands for any of the rows
    that its parent's front had: the parent itself or an older one through `PREV`. So the embeddings are the paths

        event -> row or any older one -> its PARENT or any older one -> ... -> a row that begins a match

    and a depth-first search with the explicit stack `path[:, 2]` lists them. Rows of a front descend in time, so a row
    beyond the window ends its level.
    """
    edges, patterns = graph.edges, graph.patterns
    registers, pool, best, path = state.registers, state.pool, state.best, state.path
    within, born, limit = patterns[pattern, P_WITHIN], patterns[pattern, P_BORN], patterns[pattern, P_LIMIT]
    if best[pattern, 0] != registers[STAMP]:
        best[pattern, 0], best[pattern, 1] = registers[STAMP], 0
    lead = 1 if edge >= 0 else 0
    if lead:
        path[0, 0], path[0, 1] = edges[edge, STEP], turn.seq
    depth = lead
    alone = lead and edges[edge, SOURCE] == 0
    path[depth, 2] = parent
    while depth >= lead:
        row = path[depth, 2]
        if not alone:
            if row < 0 or last - pool[row, TIME] > within:
                depth -= 1
                if depth >= lead:
                    path[depth, 2] = _find_next_older(pool, path[depth, 2], depth, lead)
                continue
            if depth + 1 >= len(path):
                return MORE_PATH
            path[depth, 0], path[depth, 1] = edges[pool[row, EDGE], STEP], pool[row, SEQ]
            if edges[pool[row, EDGE], SOURCE] != 0:
                depth += 1
                path[depth, 2] = pool[row, PARENT]
                continue
        length = lead if alone else depth + 1
        if path[length - 1, 1] >= born and (last if alone else pool[row, TIME]) > patterns[pattern, P_SINCE]:
            if best[pattern, 1] >= limit:
                registers[CUT] += best[pattern, 1] == limit
                best[pattern, 1] = limit + 1  # the cut is counted once for a turn
                return DONE
            best[pattern, 1] += 1
            status = _write_report(graph, state, batch, pattern, length, -1, edge, turn)
            if status != DONE:
                return status
        if alone:
            return DONE
        path[depth, 2] = _find_next_older(pool, row, depth, lead)
    return DONE


@jit_lean
def _find_next_older(pool: IntArray, row: Int, depth: Int, lead: Int) -> Int:
    """Return the next older row of a front, or -1; at a deadline (no lead) the last row has no substitute."""
    return -1 if lead == 0 and depth == 0 else pool[row, PREV]


@jit_lean
def report_deadline(
    graph: GraphArrays, state: RunArrays, batch: EventArrays, row: Int, node: Int, deadline: Int, variables_at: Int
) -> Int:
    """Report what the deadline of a row, which waits at `node`, completes."""
    patterns, lists, nodes, pool = graph.patterns, graph.lists, graph.nodes, state.pool
    # No event serves a deadline, so event 0 is never read.
    turn = Turn(0, -1, deadline, pool[row, KEY], variables_at)
    for at in range(nodes[node, ENDS], nodes[node, ENDS_END]):
        pattern = lists[at]
        mode = patterns[pattern, P_MODE]
        if mode == GRAPH:
            status = enumerate_embeddings(graph, state, batch, pattern, -1, row, pool[row, TIME], turn)
        elif (
            pool[row, FIRST_SEQ] < patterns[pattern, P_BORN]
            or pool[row, FIRST_TIME] <= patterns[pattern, P_SINCE]
            or pool[row, TIME] - pool[row, FIRST_TIME] > patterns[pattern, P_WITHIN]
            or (mode == RESTARTS and pool[row, FIRST_SEQ] <= find_spent(graph, state, pattern, turn.key))
            or (mode == EVERY and _is_reported(graph, state, pattern, 0))
        ):
            continue
        else:
            status = report_embedding(graph, state, batch, pattern, -1, row, turn)
        if status != DONE:
            return status
    return DONE
