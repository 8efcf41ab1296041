"""One event after the other through the merged graph: what it serves, what it completes, what it ends.

An event's turn for one key has three parts. First all rows that it may follow are found, and nothing changes; then
what it completes is written out; then guards end waits, the new rows go in, and reports spend what they used.
Each part can stop for want of room before it has changed anything, so the caller makes room and the turn is taken
again. An event costs what it touches: edges of its symbols out of nodes that wait, and rows that ask for the next one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.kernels.jit import jit_lean, jit_lean_inline
from tidings.kernels.patterns.apply_event import put_rows, spend, sweep
from tidings.kernels.patterns.partials import (
    ACCEPTS,
    ACCEPTS_END,
    BARRIERS,
    BASE,
    CELLS,
    CUT,
    DEADLINE,
    DIRECT,
    EDGE,
    EVENT,
    EXISTS,
    FIRST_SEQ,
    FLAG,
    FOREVER,
    FREE,
    GRAPH,
    GUARDS,
    GUARDS_END,
    HEAD,
    KEY,
    LEAVING,
    LEAVING_END,
    LINK,
    LISTED_EVENTS,
    MODE,
    NOW,
    PREV,
    REPORTS,
    SEQ,
    SLOTS,
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
    find,
    is_admitted,
    is_expired,
    is_forbidden,
    kill_rows,
)
from tidings.kernels.patterns.reports import DONE, MORE_CANDIDATES, MORE_CELLS, MORE_ROWS, report_deadline, report_event


class EventArrays(NamedTuple):
    """Events: when, which symbols, which keys (by each way a key is given), and the values of variables."""

    times: Any
    symbol_starts: Any
    symbol_numbers: Any
    keys: Any
    values: Any


@jit_lean
def run_batch(
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
            status = _pass_time(
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
                count = _find_followers(
                    edges, nodes, symbols, lists, registers, pool, cells, fresh, found, stamps,
                    given, first, end, key, time, keys, values, event, held, width,
                )  # fmt: skip
                if count < 0:
                    return MORE_CANDIDATES
                status = _take_turn(
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
        return _pass_time(
            edges, nodes, patterns, lists, absences, registers, pool, cells, fresh, spent, queues,
            best, touched, out, listed, path, values, until, held,
        )  # fmt: skip
    return DONE


@jit_lean_inline
def _find_followers(
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
                    not is_admitted(edges, lists, pool, edge, -1, time, values, event, held)
                    or is_forbidden(edges, lists, stamps, stamp, pool, edge, row, keys, key, values, event, held)
                ):
                    continue
                if count > room:
                    return -1
                found[count, 0], found[count, 1] = edge, row
                count += 1
                continue
            while row >= 0:
                if not is_expired(nodes, lists, pool, row, source, time) and (
                    free
                    or (
                        is_admitted(edges, lists, pool, edge, row, time, values, event, held)
                        and not is_forbidden(
                            edges, lists, stamps, stamp, pool, edge, row, keys, key, values, event, held
                        )
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
        if pool[row, FLAG] or is_expired(nodes, lists, pool, row, source, time):
            row = pool[row, LINK]
            continue
        for leaving in range(nodes[source, LEAVING], nodes[source, LEAVING_END], 2):
            edge = lists[leaving]
            if stamps[lists[leaving + 1]] != stamp or keys[event, edges[edge, VIA]] != key:
                continue
            if not edges[edge, FREE] and (
                not is_admitted(edges, lists, pool, edge, row, time, values, event, held)
                or is_forbidden(edges, lists, stamps, stamp, pool, edge, row, keys, key, values, event, held)
            ):
                continue
            if count > room:
                return -1
            found[count, 0], found[count, 1] = edge, row
            count += 1
        row = pool[row, LINK]
    return count


@jit_lean_inline
def _take_turn(
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
    reported, before, cut = registers[REPORTS], registers[LISTED_EVENTS], registers[CUT]
    completes = False
    for at in range(count):
        completes |= edges[found[at, 0], ACCEPTS] < edges[found[at, 0], ACCEPTS_END]
    if completes:
        status = report_event(
            edges, patterns, lists, registers, pool, spent, found, best, touched, out, listed, path,
            count, seq, time, key, values, event, held,
        )  # fmt: skip
        if status != DONE:
            registers[REPORTS], registers[LISTED_EVENTS], registers[CUT] = reported, before, cut
            return status
        spend(patterns, registers, spent, out, reported, seq)
    for at in range(first, end):
        symbol = given[at]
        for guard in range(symbols[symbol, GUARDS], symbols[symbol, GUARDS_END], 4):
            if keys[event, lists[guard + 3]] == key:
                cell = lists[guard] if direct else find(cells, key * len(nodes) + lists[guard])
                if cell >= 0:
                    kill_rows(nodes, lists, pool, cells, guard, cell, values, event, held)
    put_rows(
        edges, nodes, lists, uses, variables, registers, pool, cells, fresh, queues, found, fronts,
        count, seq, time, key, values, event, held,
    )  # fmt: skip
    if completes:
        sweep(edges, nodes, patterns, lists, registers, pool, cells, fresh, out, reported)
    return DONE


# Time that passes -----------------------------------------------------------------------------------


@jit_lean
def _pass_time(
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
    last, of, whose = -1, -1, -1
    while True:
        queue, deadline = -1, FOREVER
        for at in range(len(absences)):
            while queues[at, 0] >= 0 and pool[queues[at, 0], FLAG]:
                _dequeue(pool, queues, at)
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
        row = queues[queue, 0]
        # Rows of one last event complete together: their limit is one, and some reports choose among them.
        registers[STAMP] += last != pool[row, SEQ] or of != queue or whose != pool[row, KEY]
        last, of, whose = pool[row, SEQ], queue, pool[row, KEY]
        if nodes[absences[queue], MODE] == EXISTS:
            row = _pick_youngest(pool, row)
        reported, before, cut = registers[REPORTS], registers[LISTED_EVENTS], registers[CUT]
        status = report_deadline(
            edges, nodes, patterns, lists, registers, pool, spent, best, out, listed, path,
            values, row, absences[queue], deadline, held,
        )  # fmt: skip
        if status != DONE:
            registers[REPORTS], registers[LISTED_EVENTS], registers[CUT] = reported, before, cut
            return status
        pool[row, FLAG] = 1
        _dequeue(pool, queues, queue)
        spend(patterns, registers, spent, out, reported, registers[BASE] + registers[EVENT] - 1)
        sweep(edges, nodes, patterns, lists, registers, pool, cells, fresh, out, reported)


@jit_lean
def _pick_youngest(pool: Any, row: Any) -> Any:
    """Return the row of the youngest beginning among those of one last event and key; the others need not wait."""
    best, seq, key, at = row, pool[row, SEQ], pool[row, KEY], pool[row, LINK]
    while at >= 0 and pool[at, SEQ] == seq and pool[at, KEY] == key:
        if not pool[at, FLAG]:
            younger = pool[at, FIRST_SEQ] > pool[best, FIRST_SEQ]
            pool[best if younger else at, FLAG] = 1
            best = at if younger else best
        at = pool[at, LINK]
    return best


@jit_lean
def _dequeue(pool: Any, queues: Any, queue: Any) -> None:
    queues[queue, 0] = pool[queues[queue, 0], LINK]
    if queues[queue, 0] < 0:
        queues[queue, TAIL] = -1
