"""States as bytes: a header in JSON and arrays one after the other.

What a run holds is written by names that outlive its graph: a place is called by what leads to it, an edge by its
ends, a pattern by its name. So a state goes on in another graph that still has those places; the rest is dropped.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.errors import StateError
from tidings.kernels.patterns import layout
from tidings.patterns.compile.graph import DONE, LOOP, EdgeKey, MergedGraph, NodeKey, OperandInput

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray
    from tidings.patterns.run.graph_run import GraphRun

Header: TypeAlias = dict[str, Any]
"""The part of a state that is JSON."""

Arrays: TypeAlias = dict[str, Any]
"""Arrays, and bytes of files, by name."""

State: TypeAlias = tuple[Header, Arrays]
"""What `pack_state` makes bytes of."""

MAGIC = b"tidings-state-1\n"
"""How a state begins."""

_COUNTERS = (layout.DROPPED, layout.CUT, layout.MADE, layout.NOW)


def pack_state(header: Header, arrays: Arrays) -> bytes:
    """Return a header and named arrays as bytes."""
    descriptions, pieces = {}, []
    for name, array in arrays.items():
        pieces.append(array if isinstance(array, bytes) else np.ascontiguousarray(array).tobytes())
        kind = "bytes" if isinstance(array, bytes) else str(array.dtype)
        descriptions[name] = [kind, list(np.shape(array)), len(pieces[-1])]
    head = json.dumps({"header": header, "arrays": descriptions}).encode()
    body = b"".join(pieces)
    size = len(head).to_bytes(8, "little")
    return MAGIC + size + blake2b(size + head + body, digest_size=8).digest() + head + body


def unpack_state(data: object) -> State:
    """Return the header and arrays that `pack_state` wrote; `StateError` when the bytes are not a state."""
    start = len(MAGIC) + 16
    if not isinstance(data, bytes | bytearray | memoryview) or bytes(data[: len(MAGIC)]) != MAGIC:
        msg = "these bytes are not a detector's state; Detector.snapshot() writes one"
        raise StateError(msg)
    data = bytes(data)
    size_bytes = data[len(MAGIC) : len(MAGIC) + 8]
    size = int.from_bytes(size_bytes, "little")
    if blake2b(size_bytes + data[start:], digest_size=8).digest() != data[len(MAGIC) + 8 : start]:
        msg = "the detector's state is damaged or cut short"
        raise StateError(msg)
    content = json.loads(data[start : start + size])
    at, arrays = start + size, {}
    for name, (kind, shape, length) in content["arrays"].items():
        piece = data[at : at + length]
        arrays[name] = piece if kind == "bytes" else np.frombuffer(piece, kind).reshape(shape).copy()
        at += length
    return content["header"], arrays


# Names of places and edges --------------------------------------------------------------------------


class GraphNames:
    """Names of the nodes, edges and patterns of a graph that stay the same when the graph is built again."""

    def __init__(self, merged: MergedGraph) -> None:
        """Compute all names once; every snapshot needs them."""
        self._filters = [fingerprint_text(repr(tree)) for tree in merged.symbols]
        self._ways, self._columns = list(merged.ways), list(merged.columns)
        self.patterns = [compiled.name for compiled in merged.patterns]
        self.nodes = ["start"]
        for node in merged.nodes[1:]:
            self.nodes.append(self._name_node(node.key))
        targets = ["" if key.target == DONE else self.nodes[key.target] for key in merged.edges]
        self.edges = [f"{self._name_edge(key)}>{target}" for key, target in zip(merged.edges, targets, strict=True)]
        self.node_of = {name: place for place, name in enumerate(self.nodes)}
        self.edge_of = {name: place for place, name in enumerate(self.edges)}
        self.pattern_of = {name: place for place, name in enumerate(self.patterns)}

    def _name_node(self, key: NodeKey) -> str:
        own = "" if key.owner < 0 else self.patterns[key.owner]
        into = sorted(map(self._name_edge, key.edges))
        guards = [self._describe_input(guard) for guard in key.guards]
        waits = [bool(key.contiguous), guards, repr(key.uses), repr(key.limits), key.span]
        return fingerprint_text(json.dumps([int(key.kind), own, *waits, into]))

    def _name_edge(self, key: EdgeKey) -> str:
        source = "self" if key.source == LOOP else self.nodes[key.source]
        forbid = [self._describe_input(guard) for guard in key.forbid]
        operand = self._describe_input(key.input)
        return fingerprint_text(json.dumps([source, operand, key.step, repr(key.checks), repr(key.stores), forbid]))

    def _describe_input(self, operand: OperandInput) -> list[Any]:
        binds = [[variable, self._columns[column]] for variable, column in operand.binds]
        return [self._filters[operand.symbol], list(self._ways[operand.way]), binds]


def fingerprint_text(text: str) -> str:
    """Return a short, stable name for a text."""
    return blake2b(text.encode(), digest_size=12).hexdigest()


# Runs -----------------------------------------------------------------------------------------------


def dump_graph_run(run: GraphRun, names: GraphNames) -> tuple[Header, dict[str, IntArray]]:
    """Return a graph run as a header and arrays."""
    run.tidy()
    state, graph = run.state, run.graph
    rows = state.pool[: run.rows].copy()
    edges, rows[:, layout.EDGE] = np.unique(rows[:, layout.EDGE], return_inverse=True)
    cells = _list_entries(state.cells, len(graph.nodes), keyed=run.keyed)
    nodes, cells[:, 0] = np.unique(cells[:, 0], return_inverse=True)
    spent = _list_entries(state.spent, max(len(graph.patterns), 1), keyed=run.keyed)[:, :3]
    fresh = np.flatnonzero(state.fresh >= 0)
    header = {
        "edges": [names.edges[edge] for edge in edges.tolist()],
        "nodes": [names.nodes[node] for node in nodes.tolist()],
        "patterns": names.patterns,
        "slots": graph.uses.shape[1],
        "counters": [int(state.registers[at]) for at in _COUNTERS],
    }
    arrays = {"pool": rows, "cells": cells, "spent": spent, "fresh": np.column_stack([fresh, state.fresh[fresh]])}
    return header, arrays


def _list_entries(table: IntArray, width: int, *, keyed: bool) -> IntArray:
    """Return the node or pattern, key, head and count of each used cell; its code is `key * width + node`."""
    filled = np.flatnonzero(table[:, layout.HEAD] >= 0)
    codes = table[filled, layout.CODE] if keyed else filled  # without keys a row's number is its code
    return np.column_stack([codes % width, codes // width, table[filled, layout.HEAD], table[filled, layout.COUNT]])


def load_graph_run(run: GraphRun, names: GraphNames, header: Header, arrays: dict[str, IntArray], keys: int) -> None:
    """Load a state into a fresh graph run; partial matches at nodes or edges that its graph lacks are dropped."""
    edge_of, node_of, pattern_of = (
        np.array([numbers.get(name, -1) for name in header[kind]] + [-1], np.int64)
        for kind, numbers in (("edges", names.edge_of), ("nodes", names.node_of), ("patterns", names.pattern_of))
    )
    pool = _fit_rows(arrays["pool"], header["slots"], run)
    pool[:, layout.EDGE] = edge_of[pool[:, layout.EDGE]]
    places, heads = _renumber_rows(pool)
    run.restore(pool[places[:-1] >= 0], keys)
    cells, spent, fresh = arrays["cells"], arrays["spent"], arrays["fresh"]
    cells[:, 0], cells[:, 2] = node_of[cells[:, 0]], places[cells[:, 2]]
    run.put_cells(cells[(cells[:, 0] >= 0) & (cells[:, 2] >= 0)])
    spent[:, 0] = pattern_of[spent[:, 0]]
    run.put_spent(spent[spent[:, 0] >= 0])
    run.state.fresh[fresh[:, 0]] = heads[fresh[:, 1]]
    run.state.registers[list(_COUNTERS)] = header["counters"]
    _queue_deadlines(run)


def _fit_rows(pool: IntArray, old: int, run: GraphRun) -> IntArray:
    """Return rows with the run's number of columns for moments, of which there were `old`, and for variables."""
    wide = np.full((len(pool), run.state.pool.shape[1]), -1, np.int64)
    first, new = layout.MOMENTS, run.graph.uses.shape[1]
    wide[:, :first] = pool[:, :first]
    moments, values = min(old, new), min(pool.shape[1] - first - old, wide.shape[1] - first - new)
    wide[:, first : first + moments] = pool[:, first : first + moments]
    wide[:, first + new : first + new + values] = pool[:, first + old : first + old + values]
    return wide


def _renumber_rows(pool: IntArray) -> tuple[IntArray, IntArray]:
    """Renumber the rows whose edges the graph has.

    Return the new number of each row, -1 for rows that are dropped; and for each row the new number of the first row
    that is left in the `LINK` chain that starts at it. (A key's fresh rows are of several nodes, some of which may be
    gone.)
    """
    lives = np.append(pool[:, layout.EDGE] >= 0, True)  # the last place stands for -1, where every chain ends
    places = np.where(lives, np.cumsum(lives) - 1, -1)
    places[-1] = -1
    link = np.append(pool[:, layout.LINK], -1)
    while (skipped := ~lives[link]).any():
        link[skipped] = link[link[skipped]]
    pool[:, layout.LINK] = link[:-1]
    for column in (layout.PARENT, layout.PREV, layout.LINK):
        pool[:, column] = places[pool[:, column]]
    return places, places[np.where(lives, np.arange(len(lives)), link)]


def _queue_deadlines(run: GraphRun) -> None:
    """Put the rows that wait for the deadline of an absence into queues, in the order of time."""
    graph, state = run.graph, run.state
    pool = state.pool[: run.rows]
    for queue, node in enumerate(graph.absences.tolist()):
        is_target = graph.edges[pool[:, layout.EDGE], layout.TARGET] == node
        rows = np.flatnonzero(is_target & (pool[:, layout.FLAG] == 0))
        if len(rows):
            pool[rows[:-1], layout.LINK], pool[rows[-1], layout.LINK] = rows[1:], -1
            state.queues[queue] = rows[0], rows[-1]
            due = pool[rows[0], layout.TIME] + graph.nodes[node, layout.SPAN]
            state.registers[layout.DEADLINE] = min(state.registers[layout.DEADLINE], due)
