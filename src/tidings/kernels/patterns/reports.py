"""What an event or a deadline completes, written out: patterns, and the events of one embedding or of all.

Nothing here changes what waits: a report can be written again when its buffer was too small.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.jit import jit_lean, jit_lean_inline
from tidings.kernels.patterns.partials import (
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
    find,
)

DONE, MORE_ROWS, MORE_CANDIDATES, MORE_OUT, MORE_CELLS, MORE_PATH = range(6)
"""Why a run stopped: all events are done, or something is too small."""

O_PATTERN, O_KEY, O_AT, O_SEQ, O_FIRST, O_BEGIN, O_END, O_VALUES = range(8)
"""Columns of a report; `O_SEQ` is the event that completed it, or -1 for a deadline."""


@jit_lean_inline
def find_spent(registers: Any, spent: Any, patterns: Any, pattern: Any, key: Any) -> Any:
    """Return the last event that a pattern's reports have spent for a key, or -1."""
    if registers[DIRECT]:
        return spent[pattern, HEAD]
    at = find(spent, key * len(patterns) + pattern)
    return -1 if at < 0 else spent[at, HEAD]


@jit_lean_inline
def report_event(
    edges: Any,
    patterns: Any,
    lists: Any,
    registers: Any,
    pool: Any,
    spent: Any,
    found: Any,
    best: Any,
    touched: Any,
    out: Any,
    listed: Any,
    path: Any,
    count: Any,
    seq: Any,
    time: Any,
    key: Any,
    values: Any,
    event: Any,
    held: Any,
) -> Any:
    """Write out what the event completes; of patterns with one report for all beginnings, the youngest beginning."""
    once, stamp = 0, registers[STAMP]
    for at in range(count):
        edge, parent = found[at, 0], found[at, 1]
        if edges[edge, ACCEPTS] == edges[edge, ACCEPTS_END]:
            continue
        first_seq = seq if parent < 0 else pool[parent, FIRST_SEQ]
        first_time = time if parent < 0 else pool[parent, FIRST_TIME]
        for place in range(edges[edge, ACCEPTS], edges[edge, ACCEPTS_END]):
            pattern = lists[place]
            mode = patterns[pattern, P_MODE]
            if mode == GRAPH:
                status = enumerate_embeddings(
                    edges, patterns, lists, registers, pool, best, out, listed, path,
                    pattern, edge, parent, seq, time, time, key, values, event, held,
                )  # fmt: skip
                if status != DONE:
                    return status
                continue
            if (
                first_seq < patterns[pattern, P_BORN]
                or first_time <= patterns[pattern, P_SINCE]
                or time - first_time > patterns[pattern, P_WITHIN]
            ):
                continue
            if mode == EACH or mode == EVERY:
                if _is_reported(patterns, registers, best, out, pattern, first_seq):
                    continue
                status = report_embedding(
                    edges,
                    lists,
                    registers,
                    pool,
                    out,
                    listed,
                    path,
                    pattern,
                    edge,
                    parent,
                    seq,
                    time,
                    key,
                    values,
                    event,
                    held,
                )
                if status != DONE:
                    return status
                continue
            if mode == RESTARTS and first_seq <= find_spent(registers, spent, patterns, pattern, key):
                continue
            if best[pattern, 0] != stamp:
                best[pattern, 0], best[pattern, 1] = stamp, at
                touched[once] = pattern
                once += 1
            else:
                other = found[best[pattern, 1], 1]
                if first_seq > (seq if other < 0 else pool[other, FIRST_SEQ]):
                    best[pattern, 1] = at
    for at in range(once):
        pattern = touched[at]
        edge, parent = found[best[pattern, 1], 0], found[best[pattern, 1], 1]
        status = report_embedding(
            edges, lists, registers, pool, out, listed, path, pattern, edge, parent, seq, time, key, values, event, held
        )
        if status != DONE:
            return status
    return DONE


@jit_lean_inline
def _is_reported(patterns: Any, registers: Any, best: Any, out: Any, pattern: Any, first: Any) -> Any:
    """Tell whether this turn has reported this beginning already, or (`EVERY`) as often as the limit says."""
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
    edges: Any,
    lists: Any,
    registers: Any,
    pool: Any,
    out: Any,
    listed: Any,
    path: Any,
    pattern: Any,
    edge: Any,
    parent: Any,
    seq: Any,
    at: Any,
    key: Any,
    values: Any,
    event: Any,
    held: Any,
) -> Any:
    """Write one report: the events of a row and its ancestors, after the event that serves `edge` (-1: a deadline)."""
    length = 0
    if edge >= 0:
        path[0, 0], path[0, 1] = edges[edge, STEP], seq
        length = 1
    row = parent
    while row >= 0:
        if length >= len(path):
            return MORE_PATH
        path[length, 0], path[length, 1] = edges[pool[row, EDGE], STEP], pool[row, SEQ]
        length += 1
        row = pool[row, PARENT]
    return _write_report(
        edges, lists, registers, pool, out, listed, path, pattern, length, at, key, parent, edge, values, event, held
    )


@jit_lean_inline
def _write_report(
    edges: Any,
    lists: Any,
    registers: Any,
    pool: Any,
    out: Any,
    listed: Any,
    path: Any,
    pattern: Any,
    length: Any,
    at: Any,
    key: Any,
    row: Any,
    edge: Any,
    values: Any,
    event: Any,
    held: Any,
) -> Any:
    """Write the report of a path, its events in the order of the steps."""
    report, begin, steps = registers[REPORTS], registers[LISTED_EVENTS], path[:, 3]
    if report >= len(out) or begin + length > len(listed):
        return MORE_OUT
    first, last = path[length - 1, 1], path[0, 1]
    for i in range(length):  # the path goes back in time; events of a repeated step keep their order
        step, seq = path[length - 1 - i, 0], path[length - 1 - i, 1]
        j = begin + i
        while j > begin and steps[j - begin - 1] > step:
            steps[j - begin], listed[j] = steps[j - begin - 1], listed[j - 1]
            j -= 1
        steps[j - begin], listed[j] = step, seq
    out[report, O_PATTERN], out[report, O_KEY], out[report, O_AT] = pattern, key, at
    out[report, O_SEQ], out[report, O_FIRST] = last if edge >= 0 else -1, first
    out[report, O_BEGIN], out[report, O_END] = begin, begin + length
    for column in range(O_VALUES, out.shape[1]):
        out[report, column] = pool[row, held + column - O_VALUES] if row >= 0 else -1
    if edge >= 0:
        for place in range(edges[edge, BINDS], edges[edge, BINDS_END], 2):
            out[report, O_VALUES + lists[place]] = values[event, lists[place + 1]]
    registers[REPORTS], registers[LISTED_EVENTS] = report + 1, begin + length
    return DONE


@jit_lean
def enumerate_embeddings(
    edges: Any,
    patterns: Any,
    lists: Any,
    registers: Any,
    pool: Any,
    best: Any,
    out: Any,
    listed: Any,
    path: Any,
    pattern: Any,
    edge: Any,
    parent: Any,
    seq: Any,
    last: Any,
    at: Any,
    key: Any,
    values: Any,
    event: Any,
    held: Any,
) -> Any:
    """Report every way back through the compact graph from the event at time `last`, newest first, up to the limit."""
    within, born, limit = patterns[pattern, P_WITHIN], patterns[pattern, P_BORN], patterns[pattern, P_LIMIT]
    if best[pattern, 0] != registers[STAMP]:
        best[pattern, 0], best[pattern, 1] = registers[STAMP], 0
    lead = 1 if edge >= 0 else 0
    if lead:
        path[0, 0], path[0, 1] = edges[edge, STEP], seq
    depth = lead
    alone = lead and edges[edge, SOURCE] == 0
    path[depth, 2] = parent
    while depth >= lead:
        row = path[depth, 2]
        if not alone:
            if row < 0 or last - pool[row, TIME] > within:  # the older ones lie even further back
                depth -= 1
                if depth >= lead:
                    path[depth, 2] = _next_older(pool, path[depth, 2], depth, lead)
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
                best[pattern, 1] = limit + 1  # counted
                return DONE
            best[pattern, 1] += 1
            status = _write_report(
                edges,
                lists,
                registers,
                pool,
                out,
                listed,
                path,
                pattern,
                length,
                at,
                key,
                -1,
                edge,
                values,
                event,
                held,
            )
            if status != DONE:
                return status
        if alone:
            return DONE
        path[depth, 2] = _next_older(pool, row, depth, lead)
    return DONE


@jit_lean
def _next_older(pool: Any, row: Any, depth: Any, lead: Any) -> Any:
    """Return the next older row to go back through; a deadline belongs to one row alone."""
    return -1 if lead == 0 and depth == 0 else pool[row, PREV]


@jit_lean
def report_deadline(
    edges: Any,
    nodes: Any,
    patterns: Any,
    lists: Any,
    registers: Any,
    pool: Any,
    spent: Any,
    best: Any,
    out: Any,
    listed: Any,
    path: Any,
    values: Any,
    row: Any,
    node: Any,
    deadline: Any,
    held: Any,
) -> Any:
    """Write out what a deadline completes."""
    key, event = pool[row, KEY], 0  # no event serves a deadline, so none is looked at
    for at in range(nodes[node, ENDS], nodes[node, ENDS_END]):
        pattern = lists[at]
        mode = patterns[pattern, P_MODE]
        if mode == GRAPH:
            status = enumerate_embeddings(
                edges, patterns, lists, registers, pool, best, out, listed, path,
                pattern, -1, row, 0, pool[row, TIME], deadline, key, values, event, held,
            )  # fmt: skip
        elif (
            pool[row, FIRST_SEQ] < patterns[pattern, P_BORN]
            or pool[row, FIRST_TIME] <= patterns[pattern, P_SINCE]
            or pool[row, TIME] - pool[row, FIRST_TIME] > patterns[pattern, P_WITHIN]
            or (mode == RESTARTS and pool[row, FIRST_SEQ] <= find_spent(registers, spent, patterns, pattern, key))
            or (mode == EVERY and _is_reported(patterns, registers, best, out, pattern, 0))
        ):
            continue
        else:
            status = report_embedding(
                edges,
                lists,
                registers,
                pool,
                out,
                listed,
                path,
                pattern,
                -1,
                row,
                -1,
                deadline,
                key,
                values,
                event,
                held,
            )
        if status != DONE:
            return status
    return DONE
