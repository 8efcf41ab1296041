"""The arrays of pattern detection: what each column means, and the named groups that kernels take.

Patterns that divide the stream alike are merged into one graph. Its tables have fixed-width rows of int64, and
everything of variable length lies in the one array `lists`, of which a row names its share:

    nodes   [ ..., LEAVING, LEAVING_END, ... ]     edges  [ SOURCE, TARGET, ..., CHECKS, CHECKS_END, ... ]
                    |          |                                                  |         |
    lists   [ ... | edge symbol edge symbol | ... | late early low high absolute | ... ]

What changes while events pass is one pool of partial matches. A row of the pool is one event that served one edge:

    pool    [ SEQ TIME | FIRST_SEQ FIRST_TIME | PARENT EDGE | PREV LINK FLAG | KEY | moments ... | variables ... ]
                                                  |            |
                              the row of the step before       the next older row that waits in the same cell

A *graph cell* is a node and a key; the rows that wait there are its *front*, a chain through `PREV` that begins at
`cells[cell, HEAD]`, newest first. Invariant: rows are only appended, so a parent lies before its children.

Groups of arrays are handed on inside kernels without counting references (`kernels.jit.jit_lean`), and everything that
an event passes through is inlined into one kernel: a call that hands on all groups takes 70 ns, more than most events.
The smallest helpers (`partials`) take the few arrays they read: with groups a hundred patterns took a tenth longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, IntArray

SEQ, TIME, FIRST_SEQ, FIRST_TIME, PARENT, EDGE, PREV, LINK, FLAG, KEY, MOMENTS = range(11)
"""Columns of a row of the pool: number and time of its event, those of the match's first event, the row of the step
before, the edge it took, two chains (`PREV` through its cell's front, `LINK` through a queue of deadlines or a key's
fresh rows), a flag (no longer waiting), the key; from `MOMENTS` on moments that conditions look at, then variables."""

SOURCE, TARGET, SYMBOL, WAY, STEP, FREE, CHECKS, CHECKS_END, STORES, STORES_END = range(10)
FORBID, FORBID_END, BINDS, BINDS_END, ACCEPTS, ACCEPTS_END = range(10, 16)
"""Columns of an edge; `X` and `X_END` bound its share of the lists. `WAY`: the column of keys that names its key;
`FREE`: no condition but the event's filter."""

CONTIGUOUS, MODE, WINDOW, SPAN, MOVES, PLAIN, LIMITS, LIMITS_END = range(8)
LEAVING, LEAVING_END, ENDS, ENDS_END, QUEUE = range(8, 13)
"""Columns of a node: whether only the very next event may serve it, how matches are counted, how long a start lasts,
the length of an absence (0: none), two shortcuts (rows move on; no row dominates another), when a row has expired,
edges that leave, the patterns that an absence completes, and its queue of deadlines."""

WAITING, WAITING_END, GUARDS, GUARDS_END = range(4)
"""Columns of a symbol: its share of (edge, source) pairs, and the guards (operands of a `not`) that it sets off."""

P_MODE, P_WITHIN, P_LIMIT, P_BORN, P_SINCE, P_SWEEP, OWNED, OWNED_END = range(8)
"""Columns of a pattern; a match begins with event number `P_BORN` or a later one, after the time `P_SINCE`."""

EXISTS, EACH, GRAPH, EVERY, RESTARTS = range(5)
"""How matches are counted: some embedding, one for each beginning, all from a compact graph, all one by one; and (of
patterns alone, their nodes have `EXISTS`) some embedding of events that no earlier report has used."""

TOP, EVENT, TURN, STAMP, BASE, DEADLINE, DROPPED, CUT, CELLS, SPENT = range(10)
REPORTS, LISTED_EVENTS, NOW, MADE, MOST, DIRECT, SIZE = range(10, 17)
"""Registers: rows used in the pool; event and turn to go on with; a number for each turn; the number of the batch's
first event; the earliest deadline; counters of dropped rows and cut reports; entries used in the two hash tables, in
the reports and their events; the time; transitions made; the longest front; whether there is one key only, so that
cells and patterns are places of a table and not codes in a hash table; and how many registers there are."""

CODE, HEAD, COUNT = range(3)
"""Columns of a cell; in the table `spent`, `HEAD` is the last event that a pattern's reports have used for a key."""

TAIL = 1
"""Columns of a queue: its first row (0) and its last."""

FOREVER = np.int64(1) << np.int64(62)
"""A span of time that never ends."""


class GraphArrays(NamedTuple):
    """The merged patterns, which events never change; tables have a row for each edge, node, symbol and pattern."""

    edges: IntArray
    nodes: IntArray
    symbols: IntArray
    patterns: IntArray
    lists: IntArray
    uses: IntArray  # of each node and moment: 1 later is better, -1 earlier is, 0 neither, 2 not used any more
    variables: IntArray  # of each node and variable: whether it still matters
    absences: IntArray  # nodes that an absence ends


class RunArrays(NamedTuple):
    """All that events change: partial matches, tables of cells and of spent events, and buffers."""

    registers: IntArray
    pool: IntArray
    cells: IntArray
    fresh: IntArray  # of each key: the rows that only its very next event may serve, a chain through `LINK`
    spent: IntArray
    queues: IntArray
    candidates: IntArray  # pairs of an edge that the event serves and the row it follows
    stamps: IntArray  # of each symbol: the turn whose event had it last
    fronts: IntArray  # of each contiguous node: the turn that reached it last, and its front
    best: IntArray  # of each pattern: the turn that completed it last, and by what
    completed_patterns: IntArray
    out: IntArray
    listed_events: IntArray
    path: IntArray


class EventArrays(NamedTuple):
    """A batch of events: times, symbols (CSR), keys (a column for each way to name one), and values of variables."""

    times: IntArray
    symbol_starts: IntArray
    symbol_numbers: IntArray
    keys: IntArray
    values: IntArray


class Turn(NamedTuple):
    """One event for one of its keys; `variables_at` is the column where a row's variables begin."""

    event: Int
    seq: Int
    time: Int
    key: Int
    variables_at: Int
