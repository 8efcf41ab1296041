"""Many patterns as one graph: what they begin with in common is there once.

Two places are one if they wait alike and are reached by the same edges from places that are one: the same operator,
filter, time conditions and variables. Patterns that report once for each beginning (`next`) keep their places to
themselves, because a beginning that has reported leaves them. See the paper's section 4.3 and its Figure 6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidings.kernels.patterns.layout import EACH, EVERY, EXISTS, FOREVER, GRAPH, GraphArrays
from tidings.lang import WrittenPattern
from tidings.model.filters import Filter
from tidings.model.patterns import Mode, NamedFilter, Pattern
from tidings.patterns.compile.derivatives import Configurations, Edge, configurations
from tidings.patterns.compile.graph_arrays import Arrays, Key, other_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.patterns.compile.terms import Mark

_KINDS = {Mode.RESTART: EXISTS, Mode.OVERLAP: EXISTS, Mode.NEXT: EACH, Mode.ANY: GRAPH}


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """A pattern with its name, mode and limit; `born` is the number of the first event it sees."""

    name: str
    pattern: Pattern
    mode: Mode = Mode.RESTART
    limit: int = 1000
    born: int = 0
    graph: Configurations | None = None  # of the pattern in this mode, where it was derived before
    since: int = -int(FOREVER)  # it sees events after this time

    def to_written(self) -> WrittenPattern:
        """Return the pattern as it was added."""
        return WrittenPattern(self.name, self.pattern, self.mode, self.limit if self.mode is Mode.ANY else None)


@dataclass(frozen=True, slots=True)
class OperandInput:
    """What an operand reads of an event: its filter, the attributes of the key, and those of other variables."""

    symbol: int
    via: int
    binds: tuple[tuple[int, int], ...]  # variable, column of values


@dataclass
class GraphNode:
    """A node of the merged graph: how partial matches wait there, and which patterns end at it."""

    kind: int
    configuration: Any
    guards: tuple[OperandInput, ...]
    span: int
    window: int = 0
    variables: set[int] = field(default_factory=set)
    ends: list[int] = field(default_factory=list)


@dataclass
class MergedGraph:
    """The graph while patterns are added; `arrays` returns it as the kernels read it."""

    symbols: dict[Filter, int] = field(default_factory=dict)
    vias: dict[tuple[str, ...], int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    patterns: list[CompiledPattern] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    unmerged: int = 1
    nodes: list[GraphNode] = field(default_factory=lambda: [GraphNode(EXISTS, None, (), 0, window=int(FOREVER))])
    _places: dict[Key, int] = field(default_factory=dict)
    _edges: dict[Key, list[int]] = field(default_factory=dict)  # the patterns an edge completes
    _owned: dict[int, list[int]] = field(default_factory=dict)

    def add(self, watched: CompiledPattern) -> None:
        """Add a pattern."""
        number = len(self.patterns)
        self.patterns.append(watched)
        _Entry(self, watched, number).enter()

    def bind_operand(self, named: NamedFilter, key: Sequence[str], variables: dict[str, int]) -> OperandInput:
        """Return what an operand reads of an event; its filter, key and values get numbers in the graph."""
        attributes = {variable: attribute for attribute, variable in named.variables}
        symbol = self.symbols.setdefault(named.filter, len(self.symbols))
        via = self.vias.setdefault(tuple(attributes[variable] for variable in key), len(self.vias))
        others = [(variables[v], a) for a, v in named.variables if v not in key]
        return OperandInput(symbol, via, tuple((v, self.columns.setdefault(a, len(self.columns))) for v, a in others))

    def node(self, key: Key, made: GraphNode) -> int:
        """Return the number of a node, adding it where it is new."""
        if key not in self._places:
            self._places[key] = len(self.nodes)
            self.nodes.append(made)
        return self._places[key]

    def edge(self, key: Key) -> list[int]:
        """Return the patterns that an edge completes; the edge is there from now on."""
        return self._edges.setdefault(key, [])

    def own(self, pattern: int, node: int) -> None:
        """Note a node that belongs to a pattern alone."""
        self._owned.setdefault(pattern, []).append(node)

    def signatures(self) -> list[Key]:
        """Return what each node is, in words that outlive this graph; the first is the start."""
        return [(), *self._places]

    def edge_keys(self) -> list[Key]:
        """Return what each edge is: its source, what it asks and keeps, and its target (-1: done)."""
        return list(self._edges)

    def arrays(self) -> GraphArrays:
        """Return the graph as the kernels read it."""
        # Edges that one filter serves lie side by side: with 10,000 patterns, a fifth of the time of an event.
        self._edges = dict(sorted(self._edges.items(), key=lambda item: item[0][1].symbol))
        return Arrays(self, list(self._edges.items()), self._owned).graph()


@dataclass
class _Entry:
    """Adds one pattern to a merged graph."""

    merged: MergedGraph
    compiled: CompiledPattern
    number: int

    def enter(self) -> None:
        pattern, mode = self.compiled.pattern, self.compiled.mode
        graph = self.graph = self.compiled.graph or configurations(pattern, mode)
        self.slots = _assign_slots(graph)
        bound = any(named.variables for named in pattern.filters)
        self.key, self.variables = pattern.key_variables() if bound else (), other_variables(pattern)
        self.operands: dict[str, OperandInput] = {}
        self.kind = _choose_kind(pattern, mode, graph)
        self.merged.kinds.append(self.kind)
        self.window = int(FOREVER) if graph.within is None else graph.within
        if self.kind == GRAPH and graph.within is not None and pattern.absence is not None:
            self.window += pattern.absence.span  # ways back are gone when the time is up, not at the last event
        self.ahead = self._find_live_variables(graph)
        self.merged.unmerged += len(graph.nodes) - 1 + any(edge.target is None for edge in graph.edges)
        into: dict[int | None, list[Edge]] = {}
        for edge in graph.edges:
            into.setdefault(edge.target, []).append(edge)
        places = {0: 0}
        for node in _sort_configurations(graph):
            if node:
                places[node] = self._node(node, into[node], places)
        self._add_ends(into.get(None, []), places)

    def _bind_operand(self, name: str) -> OperandInput:
        if name not in self.operands:
            self.operands[name] = self.merged.bind_operand(self.compiled.pattern[name], self.key, self.variables)
        return self.operands[name]

    def _find_live_variables(self, graph: Configurations) -> dict[int, set[int]]:
        """Return the variables that still matter at each configuration."""
        ahead: dict[int, set[int]] = {node: set() for node in range(len(graph.nodes))}
        if not self.variables:
            return ahead
        absence = self.compiled.pattern.absence
        at_end = {v for name in (absence.without if absence else ()) for v, _ in self._bind_operand(name).binds}
        for node in reversed(_sort_configurations(graph)):
            for edge in (edge for edge in graph.edges if edge.source == node):
                names = [edge.filter, *edge.forbid]
                ahead[node] |= {v for name in names for v, _ in self._bind_operand(name).binds}
                following = at_end if edge.target is None else ahead[edge.target]
                ahead[node] |= following
            ahead[node] |= {v for name in graph.nodes[node].guards for v, _ in self._bind_operand(name).binds}
        return ahead

    def _node(self, node: int, edges: list[Edge], places: dict[int, int]) -> int:
        configuration = self.graph.nodes[node]
        guards = (
            tuple(self._bind_operand(name) for name in configuration.guards) if not configuration.contiguous else ()
        )
        uses = tuple((self.slots[mark], use) for mark, use in configuration.uses)
        limits = tuple((self.slots[mark], high) for mark, high in configuration.limits)
        keys = [self._edge_key(edge, None if edge.source == node else places[edge.source]) for edge in edges]
        owner = self.number if self.kind == EACH else -1
        signature = (self.kind, owner, configuration.contiguous, guards, uses, limits, 0, frozenset(keys))
        place = self.merged.node(signature, GraphNode(self.kind, (configuration.contiguous, uses, limits), guards, 0))
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

    def _edge_key(self, edge: Edge, source: int | None) -> Key:
        checks = tuple(
            (self._slot(c.late), self._slot(c.early), _low(c.low), _high(c.high), c.absolute) for c in edge.checks
        )
        stores = tuple(self.slots[mark] for mark in edge.stores)
        forbid = tuple(self._bind_operand(name) for name in sorted(edge.forbid))
        return (source, self._bind_operand(edge.filter), edge.step, checks, stores, forbid)

    def _slot(self, mark: Mark | None) -> int:
        return -1 if mark is None else self.slots[mark]

    def _add_ends(self, edges: list[Edge], places: dict[int, int]) -> None:
        absence = self.compiled.pattern.absence
        keys = [self._edge_key(edge, places[edge.source]) for edge in edges]
        if absence is None:
            for key in keys:
                # An edge that two patterns complete in different ways of counting is two edges.
                self.merged.edge((*key, -1)).append(self.number)
            return
        guards = tuple(self._bind_operand(name) for name in absence.without)
        owner = self.number if self.kind == EACH else -1
        signature = (self.kind, owner, False, guards, (), (), absence.span, frozenset(keys))
        place = self.merged.node(signature, GraphNode(self.kind, (False, (), ()), guards, absence.span))
        self._note(place, {v for guard in guards for v, _ in guard.binds})
        self.merged.nodes[place].window = int(FOREVER)
        self.merged.nodes[place].ends.append(self.number)
        for key in keys:
            self.merged.edge((*key, place))


def _choose_kind(pattern: Pattern, mode: Mode, graph: Configurations) -> int:
    """Return how matches are counted; `any` goes through the compact graph where rows need no conditions."""
    plain = not other_variables(pattern) and not any(edge.checks or edge.stores for edge in graph.edges)
    return EVERY if mode is Mode.ANY and not plain else _KINDS[mode]


def _assign_slots(graph: Configurations) -> dict[Mark, int]:
    stored = {mark for edge in graph.edges for mark in edge.stores}
    return {mark: slot for slot, mark in enumerate(sorted(stored, key=lambda mark: (mark.step, mark.which)))}


def _sort_configurations(graph: Configurations) -> list[int]:
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
