"""The merged graph as the arrays that kernels read, with the shortcuts that its shape allows."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.patterns.layout import EACH, EVERY, FOREVER, RESTARTS, GraphArrays
from tidings.model.patterns import Mode, Timed
from tidings.patterns.compile.graph import EdgeKey, GraphNode, MergedGraph, OperandInput, number_other_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.kernels.array_types import IntArray


def build_graph_arrays(merged: MergedGraph) -> GraphArrays:
    """Return the graph as the kernels read it; its edges are sorted first."""
    merged.sort_edges()
    return _ArrayBuilder(merged).build()


class _ArrayBuilder:
    """Writes the tables of a merged graph; what has no fixed length goes into `lists`, of which rows have bounds."""

    def __init__(self, merged: MergedGraph) -> None:
        self.merged, self.keys = merged, list(merged.edges)
        self.owned: dict[int, list[int]] = defaultdict(list)  # the nodes that a pattern has for itself
        for place, node in enumerate(merged.nodes):
            self.owned[node.key.owner].append(place)
        self.lists: list[int] = []
        self.queues = 0

    def build(self) -> GraphArrays:
        nodes = self.merged.nodes
        leaving, waiting = self._group_by_source()
        moves, plain, sweeps = self._find_shortcuts()
        guards: list[list[int]] = [[] for _ in self.merged.symbols]
        for place, node in enumerate(nodes):
            for guard in node.key.guards:
                guards[guard.symbol] += self._list_guard(guard, place)
        edges = [self._list_edge(key, completed) for key, completed in self.merged.edges.items()]
        shared = zip(nodes, moves, plain, leaving, strict=True)
        table = [self._list_node(node, move, is_plain, out) for node, move, is_plain, out in shared]
        symbols = [self._share(wait) + self._share(guard) for wait, guard in zip(waiting, guards, strict=True)]
        patterns = [self._list_pattern(number, sweep) for number, sweep in enumerate(sweeps)]
        variables = max((len(number_other_variables(compiled.pattern)) for compiled in self.merged.patterns), default=0)
        live = np.zeros((len(nodes), variables), np.int64)
        for row, node in enumerate(nodes):
            live[row, sorted(node.variables)] = 1
        return GraphArrays(
            _build_table(edges, 16),
            _build_table(table, 13),
            _build_table(symbols, 4),
            _build_table(patterns, 8),
            np.array(self.lists, np.int64),
            self._tabulate_uses(),
            live,
            np.array([place for place, node in enumerate(nodes) if node.key.span], np.int64),
        )

    def _share(self, items: Iterable[int]) -> list[int]:
        """Put a list into the lists, and return its bounds."""
        begin = len(self.lists)
        self.lists += map(int, items)
        return [begin, len(self.lists)]

    def _list_guard(self, guard: OperandInput, first: int) -> list[int]:
        return [first, *self._share(chain.from_iterable(guard.binds)), guard.way]

    def _list_edge(self, key: EdgeKey, completed: list[int]) -> list[int]:
        guards = [item for guard in key.forbid for item in self._list_guard(guard, guard.symbol)]
        checks, binds = chain.from_iterable(key.checks), chain.from_iterable(key.input.binds)
        bounds = [bound for items in (checks, key.stores, guards, binds, completed) for bound in self._share(items)]
        is_free = not (key.checks or key.forbid or key.input.binds)
        return [key.source, key.target, key.input.symbol, key.input.way, key.step, is_free, *bounds]

    def _list_node(self, node: GraphNode, moves: bool, plain: bool, leaving: list[int]) -> list[int]:
        key = node.key
        shares = [*self._share(chain.from_iterable(key.limits)), *self._share(leaving), *self._share(node.ends)]
        self.queues += bool(key.span)
        queue = self.queues - 1 if key.span else -1
        return [key.contiguous, key.kind, node.window, key.span, moves, plain, *shares, queue]

    def _list_pattern(self, number: int, sweep: bool) -> list[int]:
        compiled, kind = self.merged.patterns[number], self.merged.kinds[number]
        mode, root = RESTARTS if compiled.mode is Mode.RESTART else kind, compiled.pattern.root
        within = root.within if isinstance(root, Timed) and root.within is not None else int(FOREVER)
        owned = self._share(self.owned[number])
        return [mode, within, compiled.limit, compiled.born, compiled.since, sweep, *owned]

    def _group_by_source(self) -> tuple[list[list[int]], list[list[int]]]:
        """Return the edges that leave each contiguous node, and those that wait for each symbol elsewhere."""
        leaving: list[list[int]] = [[] for _ in self.merged.nodes]
        waiting: list[list[int]] = [[] for _ in self.merged.symbols]
        for edge, key in enumerate(self.keys):
            if self.merged.nodes[key.source].key.contiguous:
                leaving[key.source] += (edge, key.input.symbol)
            else:
                waiting[key.input.symbol] += (edge, key.source)
        return leaving, waiting

    def _tabulate_uses(self) -> IntArray:
        uses = [(place, moment, use) for place, node in enumerate(self.merged.nodes) for moment, use in node.key.uses]
        table = np.full((len(self.merged.nodes), max((moment for _, moment, _ in uses), default=-1) + 1), 2, np.int64)
        for place, moment, use in uses:
            table[place, moment] = use
        return table

    def _find_shortcuts(self) -> tuple[list[bool], list[bool], list[bool]]:
        """Find nodes whose rows their next step consumes, nodes without dominance tests, and patterns that sweep.

        To sweep is to remove the beginnings that a report has used. A row may be consumed, instead of staying for a
        better match, where nothing better can come: the node has one exit, without conditions, to a node that waits for
        any later event. If each such node has one entrance as well, a beginning has one row at most.
        """
        out: dict[int, list[EdgeKey]] = defaultdict(list)
        into: dict[int, list[EdgeKey]] = defaultdict(list)
        for key in self.keys:
            out[key.source].append(key)
            into[key.target].append(key)
        nodes = self.merged.nodes
        moves = [self._can_move(node, out[place]) for place, node in enumerate(nodes)]
        plain = [
            node.key.kind == EVERY
            or (node.key.kind == EACH and len(into[place]) == 1 and _is_single(into[place][0].source, moves))
            for place, node in enumerate(nodes)
        ]
        ways = Counter(chain.from_iterable(self.merged.edges.values()))
        begins = Counter(nodes[key.target].key.owner for key in out[0] if key.target >= 0)
        sweeps = [
            ways[pattern] != 1 or begins[pattern] > 1 or not all(moves[place] for place in self.owned[pattern])
            for pattern in range(len(self.merged.patterns))
        ]
        return moves, plain, sweeps

    def _can_move(self, node: GraphNode, out: list[EdgeKey]) -> bool:
        if node.key.kind != EACH or node.key.contiguous or node.key.span or node.key.guards or len(out) != 1:
            return False
        edge = out[0]
        if edge.checks or edge.stores or edge.forbid or edge.input.binds:
            return False
        following = self.merged.nodes[edge.target].key
        return edge.target < 0 or not (following.contiguous or following.span or following.guards)


def _is_single(source: int, moves: list[bool]) -> bool:
    return source == 0 or moves[source]


def _build_table(rows: Sequence[Sequence[int]], width: int) -> IntArray:
    return np.array(rows, np.int64).reshape(len(rows), width)
