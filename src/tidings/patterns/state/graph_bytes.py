"""States as bytes: a header in JSON and arrays one after the other.

What a run holds is written by names that outlive its graph: a place is called by what leads to it, an edge by its
ends, a pattern by its name. So a state goes on in another graph that still has those places; the rest is dropped.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tidings.errors import StateError
from tidings.kernels.patterns.layout import (
    CODE,
    COUNT,
    CUT,
    DEADLINE,
    DROPPED,
    EDGE,
    FLAG,
    HEAD,
    LINK,
    MADE,
    NOW,
    PARENT,
    PREV,
    SLOTS,
    SPAN,
    TARGET,
    TIME,
)

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray
    from tidings.patterns.compile.graph import MergedGraph
    from tidings.patterns.run.graph_run import GraphRun

MAGIC = b"tidings-state-1\n"
"""How a state begins."""


def pack_state(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any] | bytes]) -> bytes:
    """Return a header and named arrays as bytes."""
    pieces = {name: _bytes(array) for name, array in arrays.items()}
    descriptions = {
        name: [_kind(arrays[name]), list(np.shape(arrays[name])), len(piece)] for name, piece in pieces.items()
    }
    head = json.dumps({"header": header, "arrays": descriptions}).encode()
    body = b"".join(pieces.values())
    size = len(head).to_bytes(8, "little")
    return MAGIC + size + blake2b(size + head + body, digest_size=8).digest() + head + body


def unpack_state(data: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and arrays that `pack_state` wrote; `StateError` when the bytes are not a state."""
    start = len(MAGIC) + 16
    if not isinstance(data, bytes | bytearray | memoryview) or bytes(data[: len(MAGIC)]) != MAGIC:
        msg = "these bytes are not a detector's state; Detector.snapshot() writes one"
        raise StateError(msg)
    data = bytes(data)
    told_size = data[len(MAGIC) : len(MAGIC) + 8]
    size = int.from_bytes(told_size, "little")
    if blake2b(told_size + data[start:], digest_size=8).digest() != data[len(MAGIC) + 8 : start]:
        msg = "the detector's state is damaged or cut short"
        raise StateError(msg)
    content = json.loads(data[start : start + size])
    at, arrays = start + size, {}
    for name, (kind, shape, length) in content["arrays"].items():
        piece = data[at : at + length]
        arrays[name] = piece if kind == "bytes" else np.frombuffer(piece, kind).reshape(shape).copy()
        at += length
    return content["header"], arrays


def _bytes(array: npt.NDArray[Any] | bytes) -> bytes:
    return array if isinstance(array, bytes) else np.ascontiguousarray(array).tobytes()


def _kind(array: npt.NDArray[Any] | bytes) -> str:
    return "bytes" if isinstance(array, bytes) else str(array.dtype)


# Names of places and edges --------------------------------------------------------------------------


class GraphNames:
    """Names of the nodes, edges and patterns of a graph that stay the same when the graph is built again."""

    def __init__(self, merged: MergedGraph) -> None:
        """Compute all names once; every snapshot needs them."""
        self._filters = [hash_text(repr(tree)) for tree in merged.symbols]
        self._vias, self._columns = list(merged.vias), list(merged.columns)
        self._merged = merged
        self.nodes = ["start"]
        for signature in merged.signatures()[1:]:
            self.nodes.append(self._node(signature))
        self.edges = [self._edge(key, self.nodes[key[0]]) + self._end(key[6]) for key in merged.edge_keys()]
        self.patterns = [watched.name for watched in merged.patterns]
        self.node_of = {name: place for place, name in enumerate(self.nodes)}
        self.edge_of = {name: place for place, name in enumerate(self.edges)}
        self.pattern_of = {name: place for place, name in enumerate(self.patterns)}

    def _node(self, signature: tuple[Any, ...]) -> str:
        kind, owner, contiguous, guards, uses, limits, span, keys = signature
        own = "" if owner < 0 else self._merged.patterns[owner].name
        into = sorted(self._edge(key, "self" if key[0] is None else self.nodes[key[0]]) for key in keys)
        listened = [self._describe_input(guard) for guard in guards]
        return hash_text(json.dumps([int(kind), own, bool(contiguous), listened, repr(uses), repr(limits), span, into]))

    def _edge(self, key: tuple[Any, ...], source: str) -> str:
        forbid = [self._describe_input(guard) for guard in key[5]]
        return hash_text(json.dumps([source, self._describe_input(key[1]), key[2], repr(key[3]), repr(key[4]), forbid]))

    def _end(self, target: int) -> str:
        return ">" + (self.nodes[target] if target >= 0 else "")

    def _describe_input(self, listened: Any) -> list[Any]:
        binds = [[variable, self._columns[column]] for variable, column in listened.binds]
        return [self._filters[listened.symbol], list(self._vias[listened.via]), binds]


def hash_text(text: str) -> str:
    """Return a short, stable name for a text."""
    return blake2b(text.encode(), digest_size=12).hexdigest()


# Runs -----------------------------------------------------------------------------------------------


def dump_graph_run(run: GraphRun, called: GraphNames) -> tuple[dict[str, Any], dict[str, IntArray]]:
    """Return a run as a header and arrays."""
    run.tidy()
    state, top = run.state, run.rows
    pool = state.pool[:top]
    edges, places = np.unique(pool[:, EDGE], return_inverse=True)
    filled = state.cells[:, HEAD] >= 0
    codes = state.cells[:, CODE] if run.keyed else np.arange(len(state.cells))
    cells = np.column_stack([codes, state.cells[:, HEAD], state.cells[:, COUNT]])[filled]
    nodes, patterns = len(run.graph.nodes), len(run.graph.patterns)
    used, node_places = np.unique(cells[:, 0] % nodes, return_inverse=True)
    spent = _list_spent(run, patterns)
    fresh = np.flatnonzero(state.fresh >= 0)
    registers = state.registers
    header = {
        "edges": [called.edges[edge] for edge in edges.tolist()],
        "nodes": [called.nodes[node] for node in used.tolist()],
        "patterns": called.patterns,
        "slots": run.graph.uses.shape[1],
        "counters": [int(registers[at]) for at in (DROPPED, CUT, MADE, NOW)],
    }
    rows = pool.copy()
    rows[:, EDGE] = places
    cells = np.column_stack([node_places, cells[:, 0] // nodes, cells[:, 1], cells[:, 2]])
    arrays = {"pool": rows, "cells": cells, "spent": spent, "fresh": np.column_stack([fresh, state.fresh[fresh]])}
    return header, arrays


def _list_spent(run: GraphRun, patterns: int) -> IntArray:
    state = run.state
    filled = state.spent[:, HEAD] >= 0
    codes = state.spent[:, CODE] if run.keyed else np.arange(len(state.spent))
    spent = np.column_stack([codes, state.spent[:, HEAD]])[filled]
    return np.column_stack([spent[:, 0] % max(patterns, 1), spent[:, 0] // max(patterns, 1), spent[:, 1]])


def load_graph_run(
    run: GraphRun, called: GraphNames, header: dict[str, Any], arrays: dict[str, IntArray], keys: int
) -> None:
    """Load a state into a fresh run; partial matches at nodes or edges that its graph does not have are dropped."""
    edge_of = np.array([called.edge_of.get(name, -1) for name in header["edges"]] + [-1], np.int64)
    node_of = np.array([called.node_of.get(name, -1) for name in header["nodes"]] + [-1], np.int64)
    pattern_of = np.array([called.pattern_of.get(name, -1) for name in header["patterns"]] + [-1], np.int64)
    pool = _fit_rows(arrays["pool"], header["slots"], run)
    pool[:, EDGE] = edge_of[pool[:, EDGE]]
    places = _renumber_rows(pool)
    run.restore(pool[places[:-1] >= 0], keys)
    cells, spent = arrays["cells"], arrays["spent"]
    cells[:, 0], cells[:, 2] = node_of[cells[:, 0]], places[cells[:, 2]]
    run.put_cells(cells[(cells[:, 0] >= 0) & (cells[:, 2] >= 0)])
    spent[:, 0] = pattern_of[spent[:, 0]]
    run.put_spent(spent[spent[:, 0] >= 0])
    state = run.state
    for key, head in arrays["fresh"].tolist():
        state.fresh[key] = places[head]
    for at, value in zip((DROPPED, CUT, MADE, NOW), header["counters"], strict=True):
        state.registers[at] = value
    _queue(run)


def _fit_rows(pool: IntArray, slots: int, run: GraphRun) -> IntArray:
    """Return rows with the run's number of columns for stored moments and for variables."""
    wide = np.full((len(pool), run.state.pool.shape[1]), -1, np.int64)
    new = run.graph.uses.shape[1]
    wide[:, :SLOTS] = pool[:, :SLOTS]
    moments, values = min(slots, new), min(pool.shape[1] - SLOTS - slots, wide.shape[1] - SLOTS - new)
    wide[:, SLOTS : SLOTS + moments] = pool[:, SLOTS : SLOTS + moments]
    wide[:, SLOTS + new : SLOTS + new + values] = pool[:, SLOTS + slots : SLOTS + slots + values]
    return wide


def _renumber_rows(pool: IntArray) -> IntArray:
    """Renumber the rows whose edges the graph has; return each row's new number, -1 for rows that are dropped."""
    lives = pool[:, EDGE] >= 0
    places = np.append(np.where(lives, np.cumsum(lives) - 1, -1), -1)
    for column in (PARENT, PREV, LINK):
        pool[:, column] = places[pool[:, column]]  # -1 stays: the last place is -1
    return places


def _queue(run: GraphRun) -> None:
    """Put the rows that wait for the deadline of an absence into queues, in the order of time."""
    graph, state = run.graph, run.state
    pool = state.pool[: run.rows]
    for queue, node in enumerate(graph.absences.tolist()):
        rows = np.flatnonzero((graph.edges[pool[:, EDGE], TARGET] == node) & (pool[:, FLAG] == 0))
        if len(rows):
            pool[rows[:-1], LINK], pool[rows[-1], LINK] = rows[1:], -1
            state.queues[queue] = rows[0], rows[-1]
            due = pool[rows[0], TIME] + graph.nodes[node, SPAN]
            state.registers[DEADLINE] = min(state.registers[DEADLINE], due)
