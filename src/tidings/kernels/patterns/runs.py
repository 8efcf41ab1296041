"""One event after the other through the merged graph: find what it serves, report what it completes, update what waits.

An event takes one *turn* for each of its keys:

    1. find      edges of its symbols out of nodes that wait   ->  candidates (edge, row)       changes nothing
    2. report    candidates whose edge completes a pattern     ->  out, listed_events           no row changes
    3. apply     guards kill rows, candidates become rows, reports spend events and sweep beginnings

Invariant: each part that can run out of room stops before part 3 has changed anything, so the caller enlarges the array
and calls again; the registers `EVENT` and `TURN` say where to go on. Deadlines of absences that have passed are
reported before the event is taken.

Cost of an event: the edges of its symbols out of cells that are not empty, the rows of their fronts, and the key's
fresh rows. Types that no pattern waits for cost next to nothing: 7 ns an event with one pattern of 3 of 50 types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.kernels.jit import jit_lean, jit_lean_inline
from tidings.kernels.patterns.apply_event import put_rows, spend, sweep
from tidings.kernels.patterns.layout import (
    ACCEPTS,
    ACCEPTS_END,
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
    MOMENTS,
    NOW,
    PREV,
    REPORTS,
    SEQ,
    SPAN,
    SPENT,
    STAMP,
    TAIL,
    TARGET,
    TIME,
    TOP,
    TURN,
    WAITING,
    WAITING_END,
    WAY,
    WINDOW,
    EventArrays,
    GraphArrays,
    RunArrays,
    Turn,
)
from tidings.kernels.patterns.partials import find, is_admitted, is_expired, is_forbidden, kill_rows
from tidings.kernels.patterns.reports import DONE, MORE_CANDIDATES, MORE_CELLS, MORE_ROWS, report_deadline, report_event

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, IntArray


@jit_lean
def run_batch(
    graph_arrays: tuple[IntArray, ...], run_arrays: tuple[IntArray, ...], event_arrays: tuple[IntArray, ...], until: Int
) -> Int:
    """Take the events from where the registers say, then let time pass to `until`; return why it stopped.

    The groups come as plain tuples, in the order of `GraphArrays`, `RunArrays` and `EventArrays`, and get their names
    here: Numba looks up the class of a named tuple at every call from Python, which took 5 us instead of 1. A pool that
    fills up every few hundred events is called that often.
    """
    graph, state, batch = GraphArrays(*graph_arrays), RunArrays(*run_arrays), EventArrays(*event_arrays)
    registers, fresh, stamps = state.registers, state.fresh, state.stamps
    times, starts, symbols, keys = batch.times, batch.symbol_starts, batch.symbol_numbers, batch.keys
    turns, variables_at = keys.shape[1], MOMENTS + graph.uses.shape[1]
    # Local copies of the two registers: through memory each step would wait for the store of the one before.
    event, number = registers[EVENT], registers[TURN]
    while event < len(times):
        time = times[event]
        if time >= registers[DEADLINE]:
            status = _pass_time(graph, state, batch, time, variables_at)
            if status != DONE:
                return status
        first, end = starts[event], starts[event + 1]
        if first == end:
            event = _skip_unwanted(batch, fresh, event, registers[DEADLINE])
            registers[EVENT], registers[NOW] = event, times[event - 1]
            continue
        while number < turns:
            key = keys[event, number]
            # Two ways to name a key may give the same one: it has its turn once.
            for earlier in range(number):
                if keys[event, earlier] == key:
                    key = -1
            if key >= 0:
                registers[STAMP] += 1
                for at in range(first, end):
                    stamps[symbols[at]] = registers[STAMP]
                turn = Turn(event, registers[BASE] + event, time, key, variables_at)
                count = _find_candidates(graph, state, batch, turn)
                status = MORE_CANDIDATES
                if count >= 0:
                    status = _take_turn(graph, state, batch, count, turn)
                if status != DONE:
                    registers[TURN] = number
                    return status
            number += 1
        number = 0
        event += 1
        registers[TURN], registers[EVENT], registers[NOW] = 0, event, time
    if until >= registers[DEADLINE]:
        return _pass_time(graph, state, batch, until, variables_at)
    return DONE


@jit_lean_inline
def _skip_unwanted(batch: EventArrays, fresh: IntArray, event: Int, deadline: Int) -> Int:
    """Pass over the events that no filter wants, to the next one that is wanted or not before the deadline.

    They only end what is contiguous. Most events are such where patterns are few: this loop takes 6 ns each, not 7.
    """
    times, starts, keys = batch.times, batch.symbol_starts, batch.keys
    turns = keys.shape[1]
    while event < len(times) and starts[event] == starts[event + 1] and times[event] < deadline:
        for number in range(turns):
            key = keys[event, number]
            if key >= 0:
                fresh[key] = -1
        event += 1
    return event


# Taking an event -------------------------------------------------------------------------------


@jit_lean_inline
def _find_candidates(graph: GraphArrays, state: RunArrays, batch: EventArrays, turn: Turn) -> Int:
    """Write each edge that the event may take with the row that it follows; return how many, or -1 for want of room.

        symbols[s]  ->  lists [ edge source | edge source | ... ]  ->  cell (source, key)  ->  front: row, row, ...

    Source 0 is where all patterns begin: it has no cell, and its edges follow row -1.
    """
    edges, nodes, symbols, lists = graph.edges, graph.nodes, graph.symbols, graph.lists
    pool, cells, candidates, stamps = state.pool, state.cells, state.candidates, state.stamps
    key, keys, values, event, time, width = turn.key, batch.keys, batch.values, turn.event, turn.time, len(nodes)
    count, stamp, direct = 0, state.registers[STAMP], state.registers[DIRECT]
    # Where a key is named in one way only, `WAY` need not be read: a tenth of the time with a hundred patterns.
    room, several = len(candidates) - 1, keys.shape[1] > 1
    for at in range(batch.symbol_starts[event], batch.symbol_starts[event + 1]):
        symbol = batch.symbol_numbers[at]
        for waiting in range(symbols[symbol, WAITING], symbols[symbol, WAITING_END], 2):
            edge, source, row = lists[waiting], lists[waiting + 1], -1
            # The cell first: most nodes are empty most of the time, and the edge need not be looked at then.
            if source:
                cell = source if direct else find(cells, key * width + source)
                row = cells[cell, HEAD] if cell >= 0 else -1
                if row < 0:
                    continue
            if several and keys[event, edges[edge, WAY]] != key:
                continue
            free = edges[edge, FREE]
            # Of a compact graph the newest row stands for all of its front: reports choose among the older ones.
            if not source or nodes[source, MODE] == GRAPH:
                if source and time - pool[row, TIME] > nodes[source, WINDOW]:
                    continue
                if not free and (
                    not is_admitted(edges, lists, pool, values, edge, -1, turn)
                    or is_forbidden(edges, lists, pool, stamps, stamp, keys, values, edge, row, turn)
                ):
                    continue
                if count > room:
                    return -1
                candidates[count, 0], candidates[count, 1] = edge, row
                count += 1
                continue
            while row >= 0:
                if not is_expired(nodes, lists, pool, row, source, time) and (
                    free
                    or (
                        is_admitted(edges, lists, pool, values, edge, row, turn)
                        and not is_forbidden(edges, lists, pool, stamps, stamp, keys, values, edge, row, turn)
                    )
                ):
                    if count > room:
                        return -1
                    candidates[count, 0], candidates[count, 1] = edge, row
                    count += 1
                row = pool[row, PREV]
    # Contiguous nodes: the rows that the key's event before left behind, each with the edges out of its node.
    row = state.fresh[key]
    while row >= 0:
        source = edges[pool[row, EDGE], TARGET]
        if pool[row, FLAG] or is_expired(nodes, lists, pool, row, source, time):
            row = pool[row, LINK]
            continue
        for leaving in range(nodes[source, LEAVING], nodes[source, LEAVING_END], 2):
            edge = lists[leaving]
            if stamps[lists[leaving + 1]] != stamp or (several and keys[event, edges[edge, WAY]] != key):
                continue
            if not edges[edge, FREE] and (
                not is_admitted(edges, lists, pool, values, edge, row, turn)
                or is_forbidden(edges, lists, pool, stamps, stamp, keys, values, edge, row, turn)
            ):
                continue
            if count > room:
                return -1
            candidates[count, 0], candidates[count, 1] = edge, row
            count += 1
        row = pool[row, LINK]
    return count


@jit_lean_inline
def _take_turn(graph: GraphArrays, state: RunArrays, batch: EventArrays, count: Int, turn: Turn) -> Int:
    """Report the patterns that the candidates complete, then update partial matches: kill guarded ones, add the new.

    Guards come after reports and before new rows: an event may complete a match that it would also forbid, and never
    ends the wait of a row that it has just made.
    """
    edges, symbols, lists = graph.edges, graph.symbols, graph.lists
    registers, candidates, spent = state.registers, state.candidates, state.spent
    direct = registers[DIRECT]
    if registers[TOP] + count + 1 >= len(state.pool):
        return MORE_ROWS
    if not direct and (
        2 * (registers[CELLS] + count) >= len(state.cells)
        or 2 * (registers[SPENT] + len(state.completed_patterns)) >= len(spent)
    ):
        return MORE_CELLS
    first_report, first_listed, cut = registers[REPORTS], registers[LISTED_EVENTS], registers[CUT]
    # Most events complete nothing: one pass over the candidates spares them the reports.
    completes = False
    for at in range(count):
        completes |= edges[candidates[at, 0], ACCEPTS] < edges[candidates[at, 0], ACCEPTS_END]
    if completes:
        status = report_event(graph, state, batch, count, turn)
        if status != DONE:
            registers[REPORTS], registers[LISTED_EVENTS], registers[CUT] = first_report, first_listed, cut
            return status
        spend(graph, state, first_report, turn.seq)
    for at in range(batch.symbol_starts[turn.event], batch.symbol_starts[turn.event + 1]):
        symbol = batch.symbol_numbers[at]
        for guard in range(symbols[symbol, GUARDS], symbols[symbol, GUARDS_END], 4):
            if batch.keys[turn.event, lists[guard + 3]] == turn.key:
                node = lists[guard]
                cell = node if direct else find(state.cells, turn.key * len(graph.nodes) + node)
                if cell >= 0:
                    kill_rows(graph, state, batch, guard, cell, turn)
    put_rows(graph, state, batch, count, turn)
    if completes:
        sweep(graph, state, first_report)
    return DONE


# Letting time pass -----------------------------------------------------------------------------


@jit_lean
def _pass_time(graph: GraphArrays, state: RunArrays, batch: EventArrays, time: Int, variables_at: Int) -> Int:
    """Report the absences whose deadline is not after `time`, earliest first; set the register `DEADLINE` to the next.

    Each node that an absence ends has a queue of its rows in ascending order of deadline, so the earliest of all is
    one of the heads. Rows whose wait a guard has ended are flagged and leave a queue when they reach its head.
    A deadline costs a look at all heads, so deadlines times absences; events before the next deadline pay nothing.
    """
    nodes, absences = graph.nodes, graph.absences
    registers, pool, queues = state.registers, state.pool, state.queues
    last_seq, last_queue, last_key = -1, -1, -1
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
        if not registers[DIRECT] and 2 * (registers[SPENT] + len(state.completed_patterns)) >= len(state.spent):
            return MORE_CELLS
        row = queues[queue, 0]
        # Rows of one last event complete together: they share one limit, and some reports choose among them.
        registers[STAMP] += last_seq != pool[row, SEQ] or last_queue != queue or last_key != pool[row, KEY]
        last_seq, last_queue, last_key = pool[row, SEQ], queue, pool[row, KEY]
        if nodes[absences[queue], MODE] == EXISTS:
            row = _pick_youngest(pool, row)
        first_report, first_listed, cut = registers[REPORTS], registers[LISTED_EVENTS], registers[CUT]
        status = report_deadline(graph, state, batch, row, absences[queue], deadline, variables_at)
        if status != DONE:
            registers[REPORTS], registers[LISTED_EVENTS], registers[CUT] = first_report, first_listed, cut
            return status
        pool[row, FLAG] = 1
        _dequeue(pool, queues, queue)
        spend(graph, state, first_report, registers[BASE] + registers[EVENT] - 1)
        sweep(graph, state, first_report)


@jit_lean
def _pick_youngest(pool: IntArray, row: Int) -> Int:
    """Return the row of the youngest beginning among those of one last event and key; the others stop waiting."""
    best, seq, key, at = row, pool[row, SEQ], pool[row, KEY], pool[row, LINK]
    while at >= 0 and pool[at, SEQ] == seq and pool[at, KEY] == key:
        if not pool[at, FLAG]:
            younger = pool[at, FIRST_SEQ] > pool[best, FIRST_SEQ]
            pool[best if younger else at, FLAG] = 1
            best = at if younger else best
        at = pool[at, LINK]
    return best


@jit_lean
def _dequeue(pool: IntArray, queues: IntArray, queue: Int) -> None:
    """Take the first row out of a queue of deadlines."""
    queues[queue, 0] = pool[queues[queue, 0], LINK]
    if queues[queue, 0] < 0:
        queues[queue, TAIL] = -1
