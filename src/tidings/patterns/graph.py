"""Many patterns as one graph: what they begin with in common is there once.

Two places are one if they wait alike and are reached by the same edges from places that are one: the same operator,
filter, time conditions and variables. Patterns that report once for each beginning (`next`) keep their places to
themselves, because a beginning that has reported leaves them. See the paper's section 4.3 and its Figure 6.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.kernels.partials import EACH, EVERY, EXISTS, FOREVER, GRAPH, RESTARTS, Graph
from tidings.model.filters import Filter
from tidings.model.patterns import Mode, Pattern, Timed
from tidings.patterns.residual import Configurations, configurations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.model.patterns import NamedFilter
    from tidings.patterns.residual import Edge
    from tidings.patterns.terms import Mark

_KINDS = {Mode.RESTART: EXISTS, Mode.OVERLAP: EXISTS, Mode.NEXT: EACH, Mode.ANY: GRAPH}
_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Watched:
    """A pattern under its name, with what is reported of it; `born` is the first event it sees."""

    name: str
    pattern: Pattern
    mode: Mode = Mode.RESTART
    limit: int = 1000
    born: int = 0
    graph: Configurations | None = None  # of the pattern in this mode, where it was derived before
    since: int = -int(FOREVER)  # it sees events after this time


@dataclass(frozen=True, slots=True)
class Listened:
    """How an operand listens: to which filter, which attributes give the key, and which give other variables."""

    symbol: int
    via: int
    binds: tuple[tuple[int, int], ...]  # variable, column of values


@dataclass
class _Node:
    kind: int
    configuration: Any
    guards: tuple[Listened, ...]
    span: int
    window: int = 0
    variables: set[int] = field(default_factory=set)
    ends: list[int] = field(default_factory=list)


@dataclass
class Merged:
    """The graph while patterns are put in; `arrays` is what the kernels read."""

    symbols: dict[Filter, int] = field(default_factory=dict)
    vias: dict[tuple[str, ...], int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    watched: list[Watched] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    unmerged: int = 1
    nodes: list[_Node] = field(default_factory=lambda: [_Node(EXISTS, None, (), 0, window=int(FOREVER))])
    _places: dict[_Key, int] = field(default_factory=dict)
    _edges: dict[_Key, list[int]] = field(default_factory=dict)  # the patterns an edge completes
    _owned: dict[int, list[int]] = field(default_factory=dict)

    def add(self, watched: Watched) -> None:
        """Put a pattern in."""
        number = len(self.watched)
        self.watched.append(watched)
        _Entry(self, watched, number).enter()

    def listened(self, named: NamedFilter, key: Sequence[str], variables: dict[str, int]) -> Listened:
        """Return how an operand listens; its filter, key and values get their places."""
        attributes = {variable: attribute for attribute, variable in named.variables}
        symbol = self.symbols.setdefault(named.filter, len(self.symbols))
        via = self.vias.setdefault(tuple(attributes[variable] for variable in key), len(self.vias))
        others = [(variables[v], a) for a, v in named.variables if v not in key]
        return Listened(symbol, via, tuple((v, self.columns.setdefault(a, len(self.columns))) for v, a in others))

    def node(self, key: _Key, made: _Node) -> int:
        """Return the place of a node, new or known."""
        if key not in self._places:
            self._places[key] = len(self.nodes)
            self.nodes.append(made)
        return self._places[key]

    def edge(self, key: _Key) -> list[int]:
        """Return the patterns that an edge completes; the edge is there from now on."""
        return self._edges.setdefault(key, [])

    def own(self, pattern: int, node: int) -> None:
        """Note a node that belongs to a pattern alone."""
        self._owned.setdefault(pattern, []).append(node)

    def signatures(self) -> list[_Key]:
        """Return what each node is, in words that outlive this graph; the first is the start."""
        return [(), *self._places]

    def edge_keys(self) -> list[_Key]:
        """Return what each edge is: its source, what it asks and keeps, and its target (-1: done)."""
        return list(self._edges)

    def arrays(self) -> Graph:
        """Return the graph as the kernels read it."""
        # Edges that one filter serves lie side by side: with 10,000 patterns, a fifth of the time of an event.
        self._edges = dict(sorted(self._edges.items(), key=lambda item: item[0][1].symbol))
        return _Arrays(self, list(self._edges.items()), self._owned).graph()


@dataclass
class _Entry:
    """One pattern on its way in."""

    merged: Merged
    watched: Watched
    number: int

    def enter(self) -> None:
        pattern, mode = self.watched.pattern, self.watched.mode
        graph = self.graph = self.watched.graph or configurations(pattern, mode)
        self.slots = _slots(graph)
        bound = any(named.variables for named in pattern.filters)
        self.key, self.variables = pattern.key_variables() if bound else (), other_variables(pattern)
        self.heard: dict[str, Listened] = {}
        self.kind = _kind(pattern, mode, graph)
        self.merged.kinds.append(self.kind)
        self.window = int(FOREVER) if graph.within is None else graph.within
        self.ahead = self._ahead(graph)
        self.merged.unmerged += len(graph.nodes) - 1 + any(edge.target is None for edge in graph.edges)
        into: dict[int | None, list[Edge]] = {}
        for edge in graph.edges:
            into.setdefault(edge.target, []).append(edge)
        places = {0: 0}
        for node in _in_order(graph):
            if node:
                places[node] = self._node(node, into[node], places)
        self._ends(into.get(None, []), places)

    def _listened(self, name: str) -> Listened:
        if name not in self.heard:
            self.heard[name] = self.merged.listened(self.watched.pattern[name], self.key, self.variables)
        return self.heard[name]

    def _ahead(self, graph: Configurations) -> dict[int, set[int]]:
        """Return the variables that still matter at each configuration."""
        ahead: dict[int, set[int]] = {node: set() for node in range(len(graph.nodes))}
        if not self.variables:
            return ahead
        for node in reversed(_in_order(graph)):
            for edge in (edge for edge in graph.edges if edge.source == node):
                names = [edge.filter, *edge.forbid]
                ahead[node] |= {v for name in names for v, _ in self._listened(name).binds}
                ahead[node] |= ahead[edge.target] if edge.target is not None and edge.target != node else set()
            ahead[node] |= {v for name in graph.nodes[node].guards for v, _ in self._listened(name).binds}
        return ahead

    def _node(self, node: int, edges: list[Edge], places: dict[int, int]) -> int:
        told = self.graph.nodes[node]
        guards = tuple(self._listened(name) for name in told.guards) if not told.contiguous else ()
        uses = tuple((self.slots[mark], use) for mark, use in told.uses)
        limits = tuple((self.slots[mark], high) for mark, high in told.limits)
        keys = [self._edge_key(edge, None if edge.source == node else places[edge.source]) for edge in edges]
        owner = self.number if self.kind == EACH else -1
        signature = (self.kind, owner, told.contiguous, guards, uses, limits, 0, frozenset(keys))
        place = self.merged.node(signature, _Node(self.kind, (told.contiguous, uses, limits), guards, 0))
        self._note(place, self.ahead[node])
        for edge in edges:
            source = place if edge.source == node else places[edge.source]
            self.merged.edge((*self._edge_key(edge, source), place))
        return place

    def _note(self, place: int, variables: set[int]) -> None:
        made = self.merged.nodes[place]
        made.window = max(made.window, self.window)
        made.variables |= variables
        if self.kind == EACH:
            self.merged.own(self.number, place)

    def _edge_key(self, edge: Edge, source: int | None) -> _Key:
        checks = tuple(
            (self._slot(c.late), self._slot(c.early), _low(c.low), _high(c.high), c.absolute) for c in edge.checks
        )
        stores = tuple(self.slots[mark] for mark in edge.stores)
        forbid = tuple(self._listened(name) for name in sorted(edge.forbid))
        return (source, self._listened(edge.filter), edge.step, checks, stores, forbid)

    def _slot(self, mark: Mark | None) -> int:
        return -1 if mark is None else self.slots[mark]

    def _ends(self, edges: list[Edge], places: dict[int, int]) -> None:
        absence = self.watched.pattern.absence
        keys = [self._edge_key(edge, places[edge.source]) for edge in edges]
        if absence is None:
            for key in keys:
                # An edge that two patterns complete in different ways of counting is two edges.
                self.merged.edge((*key, -1)).append(self.number)
            return
        guards = tuple(self._listened(name) for name in absence.without)
        owner = self.number if self.kind == EACH else -1
        signature = (self.kind, owner, False, guards, (), (), absence.span, frozenset(keys))
        place = self.merged.node(signature, _Node(self.kind, (False, (), ()), guards, absence.span))
        self._note(place, {v for guard in guards for v, _ in guard.binds})
        self.merged.nodes[place].window = int(FOREVER)
        self.merged.nodes[place].ends.append(self.number)
        for key in keys:
            self.merged.edge((*key, place))


def _kind(pattern: Pattern, mode: Mode, graph: Configurations) -> int:
    """Return how matches are counted; `any` goes through the compact graph where rows need no conditions."""
    plain = not other_variables(pattern) and not any(edge.checks or edge.stores for edge in graph.edges)
    return EVERY if mode is Mode.ANY and not plain else _KINDS[mode]


def _slots(graph: Configurations) -> dict[Mark, int]:
    stored = {mark for edge in graph.edges for mark in edge.stores}
    return {mark: slot for slot, mark in enumerate(sorted(stored, key=lambda mark: (mark.step, mark.which)))}


def other_variables(pattern: Pattern) -> dict[str, int]:
    """Return the variables beside the key, by their number."""
    if not any(named.variables for named in pattern.filters):  # most have none, and walking the tree takes long
        return {}
    key = pattern.key_variables()
    names = [v for name in pattern.used() for _, v in pattern[name].variables if v not in key]
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _in_order(graph: Configurations) -> list[int]:
    """Return the configurations so that each comes after those that lead to it (a repetition leads to itself)."""
    into = [0] * len(graph.nodes)
    following: list[list[int]] = [[] for _ in graph.nodes]
    for edge in graph.edges:
        if edge.target is not None and edge.target != edge.source:
            into[edge.target] += 1
            following[edge.source].append(edge.target)
    order, ready = [], [0]
    while ready:
        node = ready.pop()
        order.append(node)
        for target in following[node]:
            into[target] -= 1
            if not into[target]:
                ready.append(target)
    return order


def _low(low: int | None) -> int:
    return -int(FOREVER) if low is None else low


def _high(high: int | None) -> int:
    return int(FOREVER) if high is None else high


@dataclass
class _Arrays:
    """Turns the dictionaries into arrays."""

    merged: Merged
    edges: list[tuple[_Key, list[int]]]
    owned: dict[int, list[int]]
    lists: list[int] = field(default_factory=list)

    def graph(self) -> Graph:
        nodes, keys = self.merged.nodes, [key for key, _ in self.edges]
        leaving, waiting = self._by_source(keys)
        moves, plain, sweeps = self._shortcuts(keys)
        guards: list[list[int]] = [[] for _ in self.merged.symbols]
        for place, node in enumerate(nodes):
            for guard in node.guards:
                guards[guard.symbol] += self._guard(guard, place)
        edges = [self._edge(key, completed) for key, completed in self.edges]
        shared = zip(nodes, moves, plain, leaving, strict=True)
        table = [self._node(node, move, one, out) for node, move, one, out in shared]
        symbols = [self._share(wait) + self._share(guard) for wait, guard in zip(waiting, guards, strict=True)]
        patterns = [self._pattern(number, sweep) for number, sweep in enumerate(sweeps)]
        variables = max((len(other_variables(watched.pattern)) for watched in self.merged.watched), default=0)
        return Graph(
            _table(edges, 16),
            _table(table, 12),
            _table(symbols, 4),
            _table(patterns, 8),
            np.array(self.lists, np.int64),
            self._uses(),
            _flags([node.variables for node in nodes], variables),
            np.array([place for place, node in enumerate(nodes) if node.span], np.int64),
        )

    def _share(self, items: Iterable[int]) -> list[int]:
        """Put a list into the lists, and return its bounds."""
        begin = len(self.lists)
        self.lists += items
        return [begin, len(self.lists)]

    def _guard(self, guard: Listened, first: int) -> list[int]:
        return [first, *self._share(_flat(guard.binds)), guard.via]

    def _edge(self, key: _Key, completed: list[int]) -> list[int]:
        source, listened, step, checks, stores, forbid, target = key
        guards = [item for guard in forbid for item in self._guard(guard, guard.symbol)]
        shares = [_flat(checks), stores, guards, _flat(listened.binds), completed]
        bounds = [bound for items in shares for bound in self._share(items)]
        return [source, target, listened.symbol, listened.via, step, not (checks or forbid or listened.binds), *bounds]

    def _node(self, node: _Node, moves: bool, plain: bool, leaving: list[int]) -> list[int]:
        contiguous, _, limits = node.configuration or (False, (), ())
        shares = self._share(_flat(limits)) + self._share(leaving) + self._share(node.ends)
        return [contiguous, node.kind, node.window, node.span, moves, plain, *shares]

    def _pattern(self, number: int, sweep: bool) -> list[int]:
        told, kind = self.merged.watched[number], self.merged.kinds[number]
        mode = RESTARTS if told.mode is Mode.RESTART else kind
        owned = sorted(set(self.owned.get(number, ())))
        return [mode, _within(told.pattern), told.limit, told.born, told.since, sweep, *self._share(owned)]

    def _by_source(self, keys: list[_Key]) -> tuple[list[list[int]], list[list[int]]]:
        leaving: list[list[int]] = [[] for _ in self.merged.nodes]
        waiting: list[list[int]] = [[] for _ in self.merged.symbols]
        for edge, key in enumerate(keys):
            source = self.merged.nodes[key[0]]
            if source.configuration and source.configuration[0]:
                leaving[key[0]] += (edge, key[1].symbol)
            else:
                waiting[key[1].symbol] += (edge, key[0])
        return leaving, waiting

    def _uses(self) -> np.ndarray:
        told = [node.configuration[1] if node.configuration else () for node in self.merged.nodes]
        marks = [slot for uses in told for slot, _ in uses]
        table = np.full((len(told), max(marks, default=-1) + 1), 2, np.int64)
        for node, uses in enumerate(told):
            for slot, use in uses:
                table[node, slot] = use
        return table

    def _shortcuts(self, keys: list[_Key]) -> tuple[list[bool], list[bool], list[bool]]:
        """Tell which nodes' rows move on, which need no comparing, and which patterns' beginnings must be swept away.

        A node's rows move on, instead of staying for a better match, where nothing better can come: one way out,
        without conditions, to a place that waits for anything. Then no beginning is anywhere twice.
        """
        out: dict[int, list[_Key]] = {}
        into: dict[int, list[_Key]] = {}
        for key in keys:
            out.setdefault(key[0], []).append(key)
            into.setdefault(key[6], []).append(key)
        nodes = self.merged.nodes
        moves = [self._moves(place, out.get(place, [])) for place in range(len(nodes))]
        plain = [
            node.kind == EVERY or (node.kind == EACH and len(into.get(place, ())) == 1 and _once(into[place][0], moves))
            for place, node in enumerate(nodes)
        ]
        ways = Counter(pattern for _, completed in self.edges for pattern in completed)
        sweeps = [
            ways[pattern] != 1 or not all(moves[place] for place in self.owned.get(pattern, ()))
            for pattern in range(len(self.merged.watched))
        ]
        return moves, plain, sweeps

    def _moves(self, place: int, out: list[_Key]) -> bool:
        node = self.merged.nodes[place]
        waits = node.configuration and not node.configuration[0] and not node.span and not node.guards
        if node.kind != EACH or not waits or len(out) != 1:
            return False
        (_, listened, _, checks, stores, forbid, target) = out[0]
        if checks or stores or forbid or listened.binds:
            return False
        then = self.merged.nodes[target] if target >= 0 else None
        return then is None or not (then.configuration[0] or then.span or then.guards)


def _once(key: _Key, moves: list[bool]) -> bool:
    return key[0] == 0 or moves[key[0]]


def _within(pattern: Pattern) -> int:
    root = pattern.root
    return root.within if isinstance(root, Timed) and root.within is not None else int(FOREVER)


def _table(rows: Sequence[Iterable[int]], width: int) -> np.ndarray:
    return np.array([list(row) for row in rows], np.int64).reshape(len(rows), width)


def _flat(rows: Iterable[Iterable[int]]) -> list[int]:
    return [int(item) for row in rows for item in row]


def _flags(sets: Sequence[set[int]], width: int) -> np.ndarray:
    table = np.zeros((len(sets), width), np.int64)
    for row, held in enumerate(sets):
        table[row, sorted(held)] = 1
    return table
