"""One event after the other through the merged graph: what it serves, what it completes, what it ends.

An event's turn for one key has three parts. First all rows that it may follow are found, and nothing changes; then
what it completes is written out; then guards end waits, the new rows go in, and reports spend what they used.
Each part can stop for want of room before it has changed anything, so the caller makes room and the turn is taken
again. An event costs what it touches: edges of its symbols out of nodes that wait, and rows that ask for the next one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.kernels.jit import lean, lean_inside
from tidings.kernels.partials import (
    ACCEPTS,
    ACCEPTS_END,
    BARRIERS,
    BASE,
    CELLS,
    CODE,
    CONTIGUOUS,
    COUNT,
    CUT,
    DEADLINE,
    DIRECT,
    EDGE,
    EVENT,
    FIRST_SEQ,
    FLAG,
    FOREVER,
    FOUND,
    FREE,
    GRAPH,
    GUARDS,
    GUARDS_END,
    HEAD,
    LEAVING,
    LEAVING_END,
    LINK,
    LISTED,
    MADE,
    MODE,
    MOST,
    MOVES,
    NOW,
    OWNED,
    OWNED_END,
    P_MODE,
    P_SWEEP,
    PREV,
    RESTARTS,
    SEQ,
    SLOTS,
    SOURCE,
    SPAN,
    STAMP,
    TAIL,
    TARGET,
    TIME,
    TOP,
    TURN,
    VIA,
    WAITING,
    WAITING_END,
    WINDOW,
    admitted,
    entered,
    expired,
    find,
    forbidden,
    killed,
    new_cell,
    place,
    trimmed,
    written,
)
from tidings.kernels.reports import (
    DONE,
    MORE_CELLS,
    MORE_FOUND,
    MORE_ROWS,
    O_FIRST,
    O_KEY,
    O_PATTERN,
    came,
    completed,
)


class Batch(NamedTuple):
    """Events: when, which symbols, which keys (by each way a key is given), and the values of variables."""

    times: Any
    symbols_at: Any
    given: Any
    keys: Any
    values: Any


@lean
def run(
    edges: Any,
    nodes: Any,
    symbols: Any,
    patterns: Any,
    lists: Any,
    uses: Any,
    variables: Any,
    absences: Any,
    registers: Any,
    pool: Any,
    cells: Any,
    fresh: Any,
    spent: Any,
    queues: Any,
    found: Any,
    stamps: Any,
    fronts: Any,
    best: Any,
    touched: Any,
    out: Any,
    listed: Any,
    path: Any,
    times: Any,
    symbols_at: Any,
    given: Any,
    keys: Any,
    values: Any,
    until: Any,
) -> Any:
    """Take the events' turns from where the run stands, then pass to `until`; return why it stopped."""
    turns, held, width = keys.shape[1], SLOTS + uses.shape[1], len(nodes)
    while registers[EVENT] < len(times):
        event = registers[EVENT]
        time = times[event]
        if time >= registers[DEADLINE]:
            status = _passed(
                edges, nodes, patterns, lists, absences, registers, pool, cells, fresh, spent, queues,
                best, touched, out, listed, path, values, time, held,
            )  # fmt: skip
            if status != DONE:
                return status
        first, end = symbols_at[event], symbols_at[event + 1]
        while registers[TURN] < turns:
            turn = registers[TURN]
            key = keys[event, turn]
            for earlier in range(turn):
                if keys[event, earlier] == key:
                    key = -1
            if key >= 0 and first == end:
                fresh[key] = -1
            elif key >= 0:
                registers[STAMP] += 1
                for at in range(first, end):
                    stamps[given[at]] = registers[STAMP]
                count = _followed(
                    edges, nodes, symbols, lists, registers, pool, cells, fresh, found, stamps,
                    given, first, end, key, time, keys, values, event, held, width,
                )  # fmt: skip
                if count < 0:
                    return MORE_FOUND
                status = _turned(
                    edges, nodes, symbols, patterns, lists, uses, variables, absences, registers, pool, cells, fresh,
                    spent, queues, found, fronts, best, touched, out, listed, path, given, first, end, count,
                    event, time, key, keys, values, held,
                )  # fmt: skip
                if status != DONE:
                    return status
            registers[TURN] = turn + 1
        registers[TURN] = 0
        registers[EVENT] = event + 1
        registers[NOW] = time
    if until >= registers[DEADLINE]:
        return _passed(
            edges, nodes, patterns, lists, absences, registers, pool, cells, fresh, spent, queues,
            best, touched, out, listed, path, values, until, held,
        )  # fmt: skip
    return DONE


@lean_inside
def _followed(
    edges: Any,
    nodes: Any,
    symbols: Any,
    lists: Any,
    registers: Any,
    pool: Any,
    cells: Any,
    fresh: Any,
    found: Any,
    stamps: Any,
    given: Any,
    first: Any,
    end: Any,
    key: Any,
    time: Any,
    keys: Any,
    values: Any,
    event: Any,
    held: Any,
    width: Any,
) -> Any:
    """List edges and the rows they follow; -1 when the list is too small."""
    count, stamp, direct = 0, registers[STAMP], registers[DIRECT]
    room = len(found) - 1
    for at in range(first, end):
        symbol = given[at]
        for waiting in range(symbols[symbol, WAITING], symbols[symbol, WAITING_END], 2):
            edge, source, row = lists[waiting], lists[waiting + 1], -1
            if source:
                cell = source if direct else find(cells, key * width + source)
                row = cells[cell, HEAD] if cell >= 0 else -1
                if row < 0:
                    continue
            if keys[event, edges[edge, VIA]] != key:
                continue
            free = edges[edge, FREE]
            if not source or nodes[source, MODE] == GRAPH:
                if source and time - pool[row, TIME] > nodes[source, WINDOW]:
                    continue
                if not free and (
                    not admitted(edges, lists, pool, edge, -1, time, values, event, held)
                    or forbidden(edges, lists, stamps, stamp, pool, edge, row, keys, key, values, event, held)
                ):
                    continue
                if count > room:
                    return -1
                found[count, 0], found[count, 1] = edge, row
                count += 1
                continue
            while row >= 0:
                if not expired(nodes, lists, pool, row, source, time) and (
                    free
                    or (
                        admitted(edges, lists, pool, edge, row, time, values, event, held)
                        and not forbidden(edges, lists, stamps, stamp, pool, edge, row, keys, key, values, event, held)
                    )
                ):
                    if count > room:
                        return -1
                    found[count, 0], found[count, 1] = edge, row
                    count += 1
                row = pool[row, PREV]
    row = fresh[key]
    while row >= 0:
        source = edges[pool[row, EDGE], TARGET]
        if pool[row, FLAG] or expired(nodes, lists, pool, row, source, time):
            row = pool[row, LINK]
            continue
        for leaving in range(nodes[source, LEAVING], nodes[source, LEAVING_END], 2):
            edge = lists[leaving]
            if stamps[lists[leaving + 1]] != stamp or keys[event, edges[edge, VIA]] != key:
                continue
            if not edges[edge, FREE] and (
                not admitted(edges, lists, pool, edge, row, time, values, event, held)
                or forbidden(edges, lists, stamps, stamp, pool, edge, row, keys, key, values, event, held)
            ):
                continue
            if count > room:
                return -1
            found[count, 0], found[count, 1] = edge, row
            count += 1
        row = pool[row, LINK]
    return count


@lean_inside
def _turned(
    edges: Any,
    nodes: Any,
    symbols: Any,
    patterns: Any,
    lists: Any,
    uses: Any,
    variables: Any,
    absences: Any,
    registers: Any,
    pool: Any,
    cells: Any,
    fresh: Any,
    spent: Any,
    queues: Any,
    found: Any,
    fronts: Any,
    best: Any,
    touched: Any,
    out: Any,
    listed: Any,
    path: Any,
    given: Any,
    first: Any,
    end: Any,
    count: Any,
    event: Any,
    time: Any,
    key: Any,
    keys: Any,
    values: Any,
    held: Any,
) -> Any:
    """Write out what the event completes, then let it change what waits."""
    direct, seq = registers[DIRECT], registers[BASE] + event
    if registers[TOP] + count + 1 >= len(pool):
        return MORE_ROWS
    if not direct and (
        2 * (registers[CELLS] + count) >= len(cells) or 2 * (registers[BARRIERS] + len(touched)) >= len(spent)
    ):
        return MORE_CELLS
    reported, before, cut = registers[FOUND], registers[LISTED], registers[CUT]
    completes = False
    for at in range(count):
        completes |= edges[found[at, 0], ACCEPTS] < edges[found[at, 0], ACCEPTS_END]
    if completes:
        status = completed(
            edges, patterns, lists, registers, pool, spent, found, best, touched, out, listed, path,
            count, seq, time, key, values, event, held,
        )  # fmt: skip
        if status != DONE:
            registers[FOUND], registers[LISTED], registers[CUT] = reported, before, cut
            return status
        _spend(patterns, registers, spent, out, reported, seq)
    for at in range(first, end):
        symbol = given[at]
        for guard in range(symbols[symbol, GUARDS], symbols[symbol, GUARDS_END], 4):
            if keys[event, lists[guard + 3]] == key:
                cell = lists[guard] if direct else find(cells, key * len(nodes) + lists[guard])
                if cell >= 0:
                    killed(nodes, lists, pool, cells, guard, cell, values, event, held)
    _put(
        edges, nodes, lists, uses, variables, absences, registers, pool, cells, fresh, queues, found, fronts,
        count, seq, time, key, values, event, held,
    )  # fmt: skip
    if completes:
        _sweep(edges, nodes, patterns, lists, registers, pool, cells, fresh, out, reported)
    return DONE


@lean_inside
def _spend(patterns: Any, registers: Any, spent: Any, out: Any, reported: Any, seq: Any) -> None:
    """A pattern that starts anew has spent everything up to this event, for the key it reported."""
    for report in range(reported, registers[FOUND]):
        pattern = out[report, O_PATTERN]
        if patterns[pattern, P_MODE] != RESTARTS:
            continue
        at = pattern
        if not registers[DIRECT]:
            code = out[report, O_KEY] * len(patterns) + pattern
            at = place(spent, code)
            registers[BARRIERS] += spent[at, CODE] < 0
            spent[at, CODE] = code
        spent[at, HEAD] = seq


@lean_inside
def _put(
    edges: Any,
    nodes: Any,
    lists: Any,
    uses: Any,
    variables: Any,
    absences: Any,
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
        written(edges, lists, pool, row, edge, found[at, 1], seq, time, key, values, event, held)
        if nodes[node, CONTIGUOUS]:
            head = fronts[node, 1] if fronts[node, 0] == stamp else -1
            head, gone = entered(nodes, lists, uses, variables, pool, head, row, node, time)
            if gone < 0:
                continue
            if nodes[node, MODE] == GRAPH and pool[row, PREV] >= 0:
                pool[pool[row, PREV], FLAG] = 1
            fronts[node, 0], fronts[node, 1] = stamp, head
            pool[row, LINK] = newest
            newest = row
        else:
            cell = new_cell(registers, cells, key * len(nodes) + node)
            head, gone = entered(nodes, lists, uses, variables, pool, cells[cell, HEAD], row, node, time)
            if gone < 0:
                continue
            cells[cell, HEAD] = head
            cells[cell, COUNT] += 1 - gone
            if nodes[node, SPAN]:
                _queued(nodes, absences, registers, pool, queues, row, node)
            if cells[cell, COUNT] > 2 * registers[MOST]:
                trimmed(registers, pool, cells, cell)
        registers[TOP] += 1
        registers[MADE] += 1
    fresh[key] = newest


@lean
def _sweep(
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
    for report in range(reported, registers[FOUND]):
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
                    pool[row, FLAG] = 1
                    cells[cell, COUNT] -= 1
                    if before < 0:
                        cells[cell, HEAD] = following
                    else:
                        pool[before, PREV] = following
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


# Time that passes -----------------------------------------------------------------------------------


@lean
def _queued(nodes: Any, absences: Any, registers: Any, pool: Any, queues: Any, row: Any, node: Any) -> None:
    """Note a row's deadline: rows of one node have ascending ones."""
    for at in range(len(absences)):
        if absences[at] == node:
            if queues[at, TAIL] < 0:
                queues[at, 0] = row
            else:
                pool[queues[at, TAIL], LINK] = row
            queues[at, TAIL] = row
    registers[DEADLINE] = min(registers[DEADLINE], pool[row, TIME] + nodes[node, SPAN])


@lean
def _passed(
    edges: Any,
    nodes: Any,
    patterns: Any,
    lists: Any,
    absences: Any,
    registers: Any,
    pool: Any,
    cells: Any,
    fresh: Any,
    spent: Any,
    queues: Any,
    best: Any,
    touched: Any,
    out: Any,
    listed: Any,
    path: Any,
    values: Any,
    time: Any,
    held: Any,
) -> Any:
    """Report the absences whose deadline has come, in their order."""
    while True:
        queue, deadline = -1, FOREVER
        for at in range(len(absences)):
            while queues[at, 0] >= 0 and pool[queues[at, 0], FLAG]:
                _dequeued(pool, queues, at)
            row = queues[at, 0]
            if row < 0:
                continue
            due = pool[row, TIME] + nodes[absences[at], SPAN]
            if due < deadline or (due == deadline and pool[row, SEQ] < pool[queues[queue, 0], SEQ]):
                queue, deadline = at, due
        registers[DEADLINE] = deadline
        if deadline > time:
            return DONE
        if not registers[DIRECT] and 2 * (registers[BARRIERS] + len(touched)) >= len(spent):
            return MORE_CELLS
        registers[STAMP] += 1
        reported, before, cut, row = registers[FOUND], registers[LISTED], registers[CUT], queues[queue, 0]
        status = came(
            edges, nodes, patterns, lists, registers, pool, spent, best, out, listed, path,
            values, row, absences[queue], deadline, held,
        )  # fmt: skip
        if status != DONE:
            registers[FOUND], registers[LISTED], registers[CUT] = reported, before, cut
            return status
        pool[row, FLAG] = 1
        _dequeued(pool, queues, queue)
        _spend(patterns, registers, spent, out, reported, registers[BASE] + registers[EVENT] - 1)
        _sweep(edges, nodes, patterns, lists, registers, pool, cells, fresh, out, reported)


@lean
def _dequeued(pool: Any, queues: Any, queue: Any) -> None:
    queues[queue, 0] = pool[queues[queue, 0], LINK]
    if queues[queue, 0] < 0:
        queues[queue, TAIL] = -1
