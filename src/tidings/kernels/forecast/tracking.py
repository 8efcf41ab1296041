"""Track the furthest partial match of each key, where a pattern has no automaton.

A key's state is one line of numbers: for each node one row of moments, at the end the number of the last few labels:

    state   [ began m1 m2 | began m1 | ... | word ]          `DEAD` in place of `began`: the node has no row
              node 0        node 1

One row stands for a whole front: the one whose match is the most likely to complete. Nodes are taken in `order`, those
nearest the end first, so a row that an event makes is never moved on by the same event, and nothing is copied aside.
Cost of an event: the nodes of the pattern; those without a row cost next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.bits import count_bits
from tidings.kernels.jit import jit_lean, jit_lean_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import BoolArray, Int, IntArray

DEAD = -(1 << 62)
"""In place of the time when a row's match began: the node has no row."""

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


class TrackedTables(NamedTuple):
    """A pattern as tables of nodes and edges, whose lists lie in one array, and the settings, as `walk` takes them."""

    nodes: IntArray
    order: IntArray
    edges: IntArray
    lists: IntArray
    minterms: IntArray
    settings: IntArray


@jit_lean
def walk(
    tables: TrackedTables, states: IntArray, segments: tuple[IntArray, IntArray], masks: IntArray, times: IntArray,
    hits: BoolArray, out: IntArray,
) -> None:  # fmt: skip
    """Advance the states of keys event by event; write the fine cell after each event to `out`.

    `segments` are `starts` and `rows`, as in `forecasts`; segment `s` is of the key whose state is `states[rows[s]]`.
    """
    starts, rows = segments
    nodes, order, edges, lists, minterms, settings = tables
    last = states.shape[1] - 1
    for segment in range(len(rows)):
        state = states[rows[segment]]
        for entry in range(starts[segment], starts[segment + 1]):
            mask, time = masks[entry], times[entry]
            clears = hits[entry] and settings[RESTARTS]  # the report has used every event so far
            if clears:
                state[:last] = DEAD
            if not clears or settings[BEFORE]:
                ended = _advance(nodes, order, edges, lists, state, mask, time)
                if hits[entry] and settings[LEAVES]:
                    _clear_beginning(nodes, state, ended)
            # The last few labels as one number: digits to the base of labels, the oldest falls off by the modulus.
            if settings[WORDS] > 1:
                state[last] = (state[last] * len(minterms) + _find_label(minterms, mask)) % settings[WORDS]
            out[entry] = find_cell(nodes, lists, settings, state, time)


@jit_lean
def find_cell(nodes: IntArray, lists: IntArray, settings: IntArray, state: IntArray, now: Int) -> Int:
    """Return the fine cell of a state at a moment: the node of its furthest live row, and the bin of its age."""
    cell = 0
    for node in range(len(nodes) - 1):  # the last one is where nothing has begun
        at = nodes[node, AT]
        if state[at] == DEAD or _is_expired(nodes, lists, state, node, now):
            continue
        cell = nodes[node, CELL]
        if nodes[node, BINS] > 1:
            age = now - state[at + nodes[node, AGED]]
            if nodes[node, SPAN] and age >= nodes[node, SPAN]:  # the first deadline has passed: the last one is next
                age = now - state[at + 1]
            cell += min(nodes[node, BINS] - 1, 4 * max(age, 0) // nodes[node, SCALE])
        break
    return cell * settings[WORDS] + state[len(state) - 1]


@jit_lean_inline
def _advance(
    nodes: IntArray, order: IntArray, edges: IntArray, lists: IntArray, state: IntArray, mask: Int, time: Int
) -> Int:
    """Advance the rows that an event serves and end those it forbids; return the latest beginning that it completes."""
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
            if nodes[node, SPAN] and time - state[at] >= nodes[node, SPAN]:  # its first deadline has passed
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
                elif at >= 0:  # the match is done; a row that always lives has no beginning
                    ended = max(ended, state[at])
        if at >= 0 and (nodes[node, CONTIGUOUS] or mask & nodes[node, GUARDS]):
            state[at] = DEAD
    return ended


@jit_lean_inline
def _is_expired(nodes: IntArray, lists: IntArray, state: IntArray, node: Int, now: Int) -> bool:
    """Tell whether nothing can come of a row any more: one of its moments lies too far back."""
    for at in range(nodes[node, LIMITS], nodes[node, LIMITS_END], 2):
        if now - state[nodes[node, AT] + lists[at]] > lists[at + 1]:
            return True
    return False


@jit_lean_inline
def _is_admitted(edges: IntArray, lists: IntArray, state: IntArray, edge: Int, at: Int, time: Int) -> bool:
    """Tell whether the time conditions of an edge hold after the row at place `at` of the state."""
    for check in range(edges[edge, CHECKS], edges[edge, CHECKS_END], 5):
        late, early = lists[check], lists[check + 1]
        apart = (time if late < 0 else state[at + late]) - (time if early < 0 else state[at + early])
        if lists[check + 4] and apart < 0:
            apart = -apart
        if apart < lists[check + 2] or apart > lists[check + 3]:
            return False
    return True


@jit_lean_inline
def _place_row(
    nodes: IntArray, edges: IntArray, lists: IntArray, state: IntArray, edge: Int, source: Int, time: Int
) -> None:
    """Write the row of an event at its edge's target, unless the row there is better."""
    target, copies = edges[edge, TARGET], edges[edge, COPIES]
    at, width = nodes[target, AT], nodes[target, WIDTH]
    if nodes[target, SPAN]:  # the first deadline to come and the last one; those between are not kept
        if state[at] == DEAD:
            state[at] = time
        state[at + 1] = time
        return
    if state[at] != DEAD and not _is_better(nodes, lists, state, target, copies, source, time):
        return
    for moment in range(width):
        copied = lists[copies + moment]
        state[at + moment] = time if copied < 0 else state[source + copied]


@jit_lean_inline
def _is_better(
    nodes: IntArray, lists: IntArray, state: IntArray, target: Int, copies: Int, source: Int, time: Int
) -> bool:
    """Tell whether a new row is better than the one at the target: the later beginning, or the earlier moments."""
    at, width, earlier = nodes[target, AT], nodes[target, WIDTH], nodes[target, EARLIER]
    for turn in range(width):
        moment = (turn + earlier) % width
        copied = lists[copies + moment]
        apart = (time if copied < 0 else state[source + copied]) - state[at + moment]
        if apart != 0:
            return (apart < 0) == (earlier != 0 and moment > 0)
    return False


@jit_lean_inline
def _clear_beginning(nodes: IntArray, state: IntArray, ended: Int) -> None:
    """Set to `DEAD` every row whose match began at `ended`, just reported; this event may have created some of them."""
    for node in range(len(nodes) - 1):
        if not nodes[node, SPAN] and state[nodes[node, AT]] == ended:
            state[nodes[node, AT]] = DEAD


@jit_lean_inline
def _find_label(minterms: IntArray, mask: Int) -> Int:
    """Return the minterm of a mask; of one that none is, the first that comes nearest."""
    best, least = 0, 65
    for number in range(len(minterms)):
        apart = count_bits(np.uint64(minterms[number] ^ mask))
        if apart < least:
            best, least = number, apart
            if apart == 0:
                break
    return best
