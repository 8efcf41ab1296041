"""Follow the furthest partial match of each key, where a pattern has no automaton.

A key's state is one line of numbers: for every configuration one row of moments (when its match began, then what time
conditions ask for), and at the end the number of the last few labels. Configurations are taken farthest from the end
last, so a row that an event makes is never moved on by the same event, and nothing is copied aside.
Cost: the configurations of the pattern for each event, those that hold no row for next to nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.bits import count_bits
from tidings.kernels.jit import jit_lean, jit_lean_inline

DEAD = -(1 << 62)
"""Where the beginning of a row would stand: there is no row."""

AT, WIDTH, CONTIGUOUS, GUARDS, WANTED, EARLIER, SPAN, LIMITS, LIMITS_END = range(9)
LEAVING, LEAVING_END, SCALE, AGED, BINS, CELL, NODE_SIZE = range(9, 16)
"""Columns of a node. Its row begins at `AT` (-1: it always lives). `GUARDS` end a wait, `WANTED` serve it; `EARLIER`:
of two rows the one with the earlier moments stays; `SPAN` of an absence. Pairs of a moment and the longest wait, edges;
then how long four bins of age last, the moment that age counts from, how many bins there are, and the first cell."""

FILTER, FORBID, TARGET, CHECKS, CHECKS_END, COPIES, EDGE_SIZE = range(7)
"""Columns of an edge; `TARGET` -1: the match is done. `COPIES`: of each moment of the target where it stood before,
or -1: now."""

RESTARTS, BEFORE, LEAVES, WORDS, SETTINGS_SIZE = range(5)
"""Settings: a report clears all rows; reports are of deadlines before the event; what completes leaves (mode `next`);
and how many words of last labels there are."""


@jit_lean
def walk(
    nodes: Any,
    order: Any,
    edges: Any,
    lists: Any,
    minterms: Any,
    settings: Any,
    states: Any,
    rows: Any,
    starts: Any,
    masks: Any,
    times: Any,
    hits: Any,
    out: Any,
) -> None:
    """Move the states of keys on, event by event; write the fine cell after each event to `out`."""
    last = states.shape[1] - 1
    for share in range(len(rows)):
        state = states[rows[share]]
        for entry in range(starts[share], starts[share + 1]):
            mask, time = masks[entry], times[entry]
            clears = hits[entry] and settings[RESTARTS]
            if clears:
                state[:last] = DEAD
            if not clears or settings[BEFORE]:
                ended = _advance(nodes, order, edges, lists, state, mask, time)
                if hits[entry] and settings[LEAVES]:
                    _clear_beginning(nodes, state, ended)
            if settings[WORDS] > 1:
                state[last] = (state[last] * len(minterms) + _find_label(minterms, mask)) % settings[WORDS]
            out[entry] = find_cell(nodes, lists, settings, state, time)


@jit_lean
def find_cell(nodes: Any, lists: Any, settings: Any, state: Any, now: Any) -> Any:
    """Return the fine cell of a state at a moment: its furthest row that does not wait in vain, and its age."""
    cell = 0
    for node in range(len(nodes) - 1):  # the last one is where nothing has begun
        at = nodes[node, AT]
        if state[at] == DEAD or _is_expired(nodes, lists, state, node, now):
            continue
        cell = nodes[node, CELL]
        if nodes[node, BINS] > 1:
            age = now - state[at + nodes[node, AGED]]
            if nodes[node, SPAN] and age >= nodes[node, SPAN]:
                age = now - state[at + 1]
            cell += min(nodes[node, BINS] - 1, 4 * max(age, 0) // nodes[node, SCALE])
        break
    return cell * settings[WORDS] + state[len(state) - 1]


@jit_lean_inline
def _advance(nodes: Any, order: Any, edges: Any, lists: Any, state: Any, mask: Any, time: Any) -> Any:
    """Let an event serve and end what waits; return the latest beginning that it seems to complete."""
    ended = DEAD
    for place in range(len(order)):
        node = order[place]
        at = nodes[node, AT]
        if at >= 0:
            if state[at] == DEAD:
                continue
            if _is_expired(nodes, lists, state, node, time):
                state[at] = DEAD
                continue
            if nodes[node, SPAN] and time - state[at] >= nodes[node, SPAN]:
                state[at] = state[at + 1]
        if mask & nodes[node, WANTED]:
            for edge in range(nodes[node, LEAVING], nodes[node, LEAVING_END]):
                if (
                    not mask & edges[edge, FILTER]
                    or mask & edges[edge, FORBID]
                    or not _is_admitted(edges, lists, state, edge, at, time)
                ):
                    continue
                if edges[edge, TARGET] >= 0:
                    _place_row(nodes, edges, lists, state, edge, at, time)
                elif at >= 0:
                    ended = max(ended, state[at])
        if at >= 0 and (nodes[node, CONTIGUOUS] or mask & nodes[node, GUARDS]):
            state[at] = DEAD
    return ended


@jit_lean_inline
def _is_expired(nodes: Any, lists: Any, state: Any, node: Any, now: Any) -> Any:
    """Tell whether a row waits in vain: one of its moments lies too far back."""
    for at in range(nodes[node, LIMITS], nodes[node, LIMITS_END], 2):
        if now - state[nodes[node, AT] + lists[at]] > lists[at + 1]:
            return True
    return False


@jit_lean_inline
def _is_admitted(edges: Any, lists: Any, state: Any, edge: Any, at: Any, time: Any) -> Any:
    """Tell whether the time conditions of an edge hold after the row that stands at `at`."""
    for check in range(edges[edge, CHECKS], edges[edge, CHECKS_END], 5):
        late, early = lists[check], lists[check + 1]
        apart = (time if late < 0 else state[at + late]) - (time if early < 0 else state[at + early])
        if lists[check + 4] and apart < 0:
            apart = -apart
        if apart < lists[check + 2] or apart > lists[check + 3]:
            return False
    return True


@jit_lean_inline
def _place_row(nodes: Any, edges: Any, lists: Any, state: Any, edge: Any, source: Any, time: Any) -> None:
    """Put the row of an event at its edge's target, unless a better one stands there."""
    target, copies = edges[edge, TARGET], edges[edge, COPIES]
    at, width = nodes[target, AT], nodes[target, WIDTH]
    if nodes[target, SPAN]:  # the first deadline to come and the last one; those between are not kept
        if state[at] == DEAD:
            state[at] = time
        state[at + 1] = time
        return
    if state[at] != DEAD and not _is_better(nodes, lists, state, target, copies, source, time):
        return
    for slot in range(width):
        copied = lists[copies + slot]
        state[at + slot] = time if copied < 0 else state[source + copied]


@jit_lean_inline
def _is_better(nodes: Any, lists: Any, state: Any, target: Any, copies: Any, source: Any, time: Any) -> Any:
    """Tell whether a new row is better than the one at the target: the later beginning, or the earlier moments."""
    at, width, earlier = nodes[target, AT], nodes[target, WIDTH], nodes[target, EARLIER]
    for turn in range(width):
        slot = (turn + earlier) % width
        copied = lists[copies + slot]
        apart = (time if copied < 0 else state[source + copied]) - state[at + slot]
        if apart != 0:
            return (apart < 0) == (earlier != 0 and slot > 0)
    return False


@jit_lean_inline
def _clear_beginning(nodes: Any, state: Any, ended: Any) -> None:
    """End the rows of a beginning that has been reported; the event may just have made some of them."""
    for node in range(len(nodes) - 1):
        if not nodes[node, SPAN] and state[nodes[node, AT]] == ended:
            state[nodes[node, AT]] = DEAD


@jit_lean_inline
def _find_label(minterms: Any, mask: Any) -> Any:
    """Return the minterm of a mask; of one that none is, the first that comes nearest."""
    best, least = 0, 65
    for number in range(len(minterms)):
        apart = count_bits(np.uint64(minterms[number] ^ mask))
        if apart < least:
            best, least = number, apart
            if apart == 0:
                break
    return best
