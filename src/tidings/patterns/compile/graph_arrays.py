"""The merged graph as the arrays that kernels read, with the shortcuts that its shape allows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.kernels.patterns.layout import EACH, EVERY, FOREVER, RESTARTS, GraphArrays
from tidings.model.patterns import Mode, Pattern, Timed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.kernels.array_types import IntArray
    from tidings.patterns.compile.graph import GraphNode, MergedGraph, OperandInput

Key: TypeAlias = tuple[Any, ...]
"""What an edge is: its source, how it listens, its step, checks, stores and what it forbids, and its target."""


class Arrays:
    """Turns a merged graph's dictionaries into arrays."""

    def __init__(self, merged: MergedGraph, edges: list[tuple[Key, list[int]]], owned: dict[int, list[int]]) -> None:
        """Take the graph, its edges with the patterns they complete, and the nodes that belong to one pattern."""
        self.merged, self.edges, self.owned = merged, edges, owned
        self.lists: list[int] = []
        self.queues = 0

    def graph(self) -> GraphArrays:
        """Return the graph as the kernels read it."""
        nodes, keys = self.merged.nodes, [key for key, _ in self.edges]
        leaving, waiting = self._group_by_source(keys)
        moves, plain, sweeps = self._find_shortcuts(keys)
        guards: list[list[int]] = [[] for _ in self.merged.symbols]
        for place, node in enumerate(nodes):
            for guard in node.guards:
                guards[guard.symbol] += self._guard(guard, place)
        edges = [self._edge(key, completed) for key, completed in self.edges]
        shared = zip(nodes, moves, plain, leaving, strict=True)
        table = [self._node(node, move, is_plain, out) for node, move, is_plain, out in shared]
        symbols = [self._share(wait) + self._share(guard) for wait, guard in zip(waiting, guards, strict=True)]
        patterns = [self._pattern(number, sweep) for number, sweep in enumerate(sweeps)]
        variables = max((len(other_variables(watched.pattern)) for watched in self.merged.patterns), default=0)
        return GraphArrays(
            _build_table(edges, 16),
            _build_table(table, 13),
            _build_table(symbols, 4),
            _build_table(patterns, 8),
            np.array(self.lists, np.int64),
            self._tabulate_uses(),
            _build_flags([node.variables for node in nodes], variables),
            np.array([place for place, node in enumerate(nodes) if node.span], np.int64),
        )

    def _share(self, items: Iterable[int]) -> list[int]:
        """Put a list into the lists, and return its bounds."""
        begin = len(self.lists)
        self.lists += items
        return [begin, len(self.lists)]

    def _guard(self, guard: OperandInput, first: int) -> list[int]:
        return [first, *self._share(_flatten(guard.binds)), guard.via]

    def _edge(self, key: Key, completed: list[int]) -> list[int]:
        source, listened, step, checks, stores, forbid, target = key
        guards = [item for guard in forbid for item in self._guard(guard, guard.symbol)]
        shares = [_flatten(checks), stores, guards, _flatten(listened.binds), completed]
        bounds = [bound for items in shares for bound in self._share(items)]
        return [source, target, listened.symbol, listened.via, step, not (checks or forbid or listened.binds), *bounds]

    def _node(self, node: GraphNode, moves: bool, plain: bool, leaving: list[int]) -> list[int]:
        contiguous, _, limits = node.configuration or (False, (), ())
        shares = self._share(_flatten(limits)) + self._share(leaving) + self._share(node.ends)
        self.queues += bool(node.span)
        queue = self.queues - 1 if node.span else -1
        return [contiguous, node.kind, node.window, node.span, moves, plain, *shares, queue]

    def _pattern(self, number: int, sweep: bool) -> list[int]:
        compiled, kind = self.merged.patterns[number], self.merged.kinds[number]
        mode = RESTARTS if compiled.mode is Mode.RESTART else kind
        owned = sorted(set(self.owned.get(number, ())))
        return [
            mode,
            _find_span(compiled.pattern),
            compiled.limit,
            compiled.born,
            compiled.since,
            sweep,
            *self._share(owned),
        ]

    def _group_by_source(self, keys: list[Key]) -> tuple[list[list[int]], list[list[int]]]:
        leaving: list[list[int]] = [[] for _ in self.merged.nodes]
        waiting: list[list[int]] = [[] for _ in self.merged.symbols]
        for edge, key in enumerate(keys):
            source = self.merged.nodes[key[0]]
            if source.configuration and source.configuration[0]:
                leaving[key[0]] += (edge, key[1].symbol)
            else:
                waiting[key[1].symbol] += (edge, key[0])
        return leaving, waiting

    def _tabulate_uses(self) -> IntArray:
        node_uses = [node.configuration[1] if node.configuration else () for node in self.merged.nodes]
        marks = [slot for uses in node_uses for slot, _ in uses]
        table = np.full((len(node_uses), max(marks, default=-1) + 1), 2, np.int64)
        for node, uses in enumerate(node_uses):
            for slot, use in uses:
                table[node, slot] = use
        return table

    def _find_shortcuts(self, keys: list[Key]) -> tuple[list[bool], list[bool], list[bool]]:
        """Tell which nodes' rows move on, which need no comparing, and which patterns' beginnings must be swept away.

        A node's rows move on, instead of staying for a better match, where nothing better can come: one way out,
        without conditions, to a place that waits for anything. With one way in, no beginning is anywhere twice then.
        """
        out: dict[int, list[Key]] = {}
        into: dict[int, list[Key]] = {}
        for key in keys:
            out.setdefault(key[0], []).append(key)
            into.setdefault(key[6], []).append(key)
        nodes = self.merged.nodes
        moves = [self._can_move(place, out.get(place, [])) for place in range(len(nodes))]
        plain = [
            node.kind == EVERY
            or (node.kind == EACH and len(into.get(place, ())) == 1 and _is_single(into[place][0], moves))
            for place, node in enumerate(nodes)
        ]
        ways = Counter(pattern for _, completed in self.edges for pattern in completed)
        owner = {place: pattern for pattern, places in self.owned.items() for place in places}
        begins = Counter(owner.get(key[6]) for key in out.get(0, []))
        sweeps = [
            ways[pattern] != 1 or begins[pattern] > 1 or not all(moves[place] for place in self.owned.get(pattern, ()))
            for pattern in range(len(self.merged.patterns))
        ]
        return moves, plain, sweeps

    def _can_move(self, place: int, out: list[Key]) -> bool:
        node = self.merged.nodes[place]
        waits = node.configuration and not node.configuration[0] and not node.span and not node.guards
        if node.kind != EACH or not waits or len(out) != 1:
            return False
        (_, listened, _, checks, stores, forbid, target) = out[0]
        if checks or stores or forbid or listened.binds:
            return False
        then = self.merged.nodes[target] if target >= 0 else None
        return then is None or not (then.configuration[0] or then.span or then.guards)


def _is_single(key: Key, moves: list[bool]) -> bool:
    return key[0] == 0 or moves[key[0]]


def _find_span(pattern: Pattern) -> int:
    root = pattern.root
    return root.within if isinstance(root, Timed) and root.within is not None else int(FOREVER)


def _build_table(rows: Sequence[Iterable[int]], width: int) -> IntArray:
    return np.array([list(row) for row in rows], np.int64).reshape(len(rows), width)


def _flatten(rows: Iterable[Iterable[int]]) -> list[int]:
    return [int(item) for row in rows for item in row]


def _build_flags(sets: Sequence[set[int]], width: int) -> IntArray:
    table = np.zeros((len(sets), width), np.int64)
    for row, members in enumerate(sets):
        table[row, sorted(members)] = 1
    return table


def other_variables(pattern: Pattern) -> dict[str, int]:
    """Return the variables beside the key, by their number."""
    if not any(named.variables for named in pattern.filters):  # most have none, and walking the tree takes long
        return {}
    key = pattern.key_variables()
    names = [v for name in pattern.list_filters() for _, v in pattern[name].variables if v not in key]
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
