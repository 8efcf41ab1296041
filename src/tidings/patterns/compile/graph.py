"""Many patterns as one graph: what they begin with in common is there once.

Two nodes are one if they wait alike and are reached by the same edges from nodes that are one: the same operator,
filter, time conditions and variables. Patterns that report once for each beginning (`next`) keep their nodes to
themselves, because a beginning that has reported leaves them. See the paper's section 4.3 and its Figure 6.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tidings.kernels.patterns.layout import EACH, EVERY, EXISTS, FOREVER, GRAPH
from tidings.lang import WrittenPattern
from tidings.model.filters import Filter
from tidings.model.patterns import Absence, Mode, NamedFilter, Pattern
from tidings.patterns.compile.derivatives import Configurations, Edge, derive_configurations

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.patterns.compile.terms import StepMoment

_KINDS = {Mode.RESTART: EXISTS, Mode.OVERLAP: EXISTS, Mode.NEXT: EACH, Mode.ANY: GRAPH}

_FOREVER = int(FOREVER)

DONE = -1
"""The target of an edge that completes a match."""

LOOP = -1
"""In the key of a node: the source of an edge that leads from the node to itself."""


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """A pattern with its name, mode and limit; `born` is the number of the first event it sees."""

    name: str
    pattern: Pattern
    mode: Mode = Mode.RESTART
    limit: int = 1000
    born: int = 0
    graph: Configurations | None = None  # of the pattern in this mode, where it was derived before
    since: int = -_FOREVER  # it sees events after this time

    def list_filters(self) -> list[Filter]:
        """Return the distinct filters of the pattern's operands."""
        return list(dict.fromkeys(self.pattern[name].filter for name in self.pattern.list_filters()))

    def to_written(self) -> WrittenPattern:
        """Return the pattern as it was added."""
        return WrittenPattern(self.name, self.pattern, self.mode, self.limit if self.mode is Mode.ANY else None)


class OperandInput(NamedTuple):
    """What an operand reads of an event: its filter, the attributes of the key, and those of other variables."""

    symbol: int
    way: int
    binds: tuple[tuple[int, int], ...]  # variable, column of values


class EdgeKey(NamedTuple):
    """What an edge is; edges with equal keys are one."""

    source: int
    input: OperandInput
    step: int
    checks: tuple[tuple[int, int, int, int, bool], ...]
    stores: tuple[int, ...]
    forbid: tuple[OperandInput, ...]
    target: int = DONE


class NodeKey(NamedTuple):
    """What a node is: how matches are counted and wait there, and the edges that lead to it."""

    kind: int
    owner: int  # the pattern that has it for itself, or -1
    contiguous: bool
    guards: tuple[OperandInput, ...]
    uses: tuple[tuple[int, int], ...]
    limits: tuple[tuple[int, int], ...]
    span: int  # of an absence
    edges: frozenset[EdgeKey]  # without their target, which is this node


@dataclass
class GraphNode:
    """A node of the merged graph.

    `window`: how long after its first event a match may wait there; `variables`: those that are still asked for;
    `ends`: the patterns that complete there when time is up.
    """

    key: NodeKey
    window: int = 0
    variables: set[int] = field(default_factory=set)
    ends: list[int] = field(default_factory=list)


_START = NodeKey(EXISTS, -1, False, (), (), (), 0, frozenset())


@dataclass
class MergedGraph:
    """The graph while patterns are added; `edges` has the patterns that each edge completes."""

    symbols: dict[Filter, int] = field(default_factory=dict)
    ways: dict[tuple[str, ...], int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    patterns: list[CompiledPattern] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    unmerged: int = 1
    nodes: list[GraphNode] = field(default_factory=lambda: [GraphNode(_START, window=_FOREVER)])
    edges: dict[EdgeKey, list[int]] = field(default_factory=dict)
    _places: dict[NodeKey, int] = field(default_factory=dict)

    def add(self, compiled: CompiledPattern) -> None:
        """Add a pattern."""
        self.patterns.append(compiled)
        _PatternEntry(self, compiled).add_nodes()

    def bind_operand(self, named: NamedFilter, key: Sequence[str], variables: dict[str, int]) -> OperandInput:
        """Return what an operand reads of an event; its filter, key and values get numbers in the graph."""
        attributes = {variable: attribute for attribute, variable in named.variables}
        symbol = self.symbols.setdefault(named.filter, len(self.symbols))
        way = self.ways.setdefault(tuple(attributes[variable] for variable in key), len(self.ways))
        others = [(variables[v], a) for a, v in named.variables if v not in key]
        return OperandInput(symbol, way, tuple((v, self.columns.setdefault(a, len(self.columns))) for v, a in others))

    def find_node(self, key: NodeKey) -> int:
        """Return the number of a node, adding it where it is new."""
        if key not in self._places:
            self._places[key] = len(self.nodes)
            self.nodes.append(GraphNode(key))
        return self._places[key]

    def sort_edges(self) -> None:
        """Put edges that one filter serves side by side: with 10,000 patterns, a fifth of the time of an event."""
        self.edges = dict(sorted(self.edges.items(), key=lambda item: item[0].input.symbol))


class _PatternEntry:
    """Enters one pattern into a merged graph: its configurations in the order of the graph, as nodes old or new."""

    def __init__(self, merged: MergedGraph, compiled: CompiledPattern) -> None:
        pattern, mode = compiled.pattern, compiled.mode
        self.merged, self.pattern, self.number = merged, pattern, len(merged.patterns) - 1
        self.graph = graph = compiled.graph or derive_configurations(pattern, mode)
        stored = sorted({moment for edge in graph.edges for moment in edge.stores})
        self.moments: dict[StepMoment | None, int] = dict(zip((None, *stored), range(-1, len(stored)), strict=True))
        bound = any(named.variables for named in pattern.filters)
        self.key, self.variables = pattern.key_variables() if bound else (), number_other_variables(pattern)
        self.operands: dict[str, OperandInput] = {}
        # `any` goes through the compact graph where rows need no conditions.
        plain = not self.variables and not any(edge.checks or edge.stores for edge in graph.edges)
        self.kind = EVERY if mode is Mode.ANY and not plain else _KINDS[mode]
        self.window = _FOREVER if graph.within is None else graph.within
        if self.kind == GRAPH and graph.within is not None and pattern.absence is not None:
            self.window += pattern.absence.span  # ways back are gone when the time is up, not at the last event
        merged.kinds.append(self.kind)
        merged.unmerged += len(graph.nodes) - 1 + any(edge.target is None for edge in graph.edges)

    def add_nodes(self) -> None:
        into: dict[int | None, list[Edge]] = defaultdict(list)
        for edge in self.graph.edges:
            into[edge.target].append(edge)
        order = _sort_configurations(self.graph)
        live, places = self._find_live_variables(order), {0: 0}
        for number in order[1:]:
            places[number] = self._add_node(number, into[number], places, live[number])
        keys = [self._make_edge_key(edge, places[edge.source]) for edge in into[None]]
        if self.pattern.absence is not None:
            self._add_wait(self.pattern.absence, keys)
            return
        for key in keys:
            # An edge that two patterns complete in different ways of counting is two edges.
            self.merged.edges.setdefault(key, []).append(self.number)

    def _bind_operand(self, name: str) -> OperandInput:
        if name not in self.operands:
            self.operands[name] = self.merged.bind_operand(self.pattern[name], self.key, self.variables)
        return self.operands[name]

    def _list_bound(self, names: Iterable[str]) -> set[int]:
        return {variable for name in names for variable, _ in self._bind_operand(name).binds}

    def _find_live_variables(self, order: list[int]) -> list[set[int]]:
        """Return the variables that still matter at each configuration."""
        live: list[set[int]] = [set() for _ in self.graph.nodes]
        if not self.variables:
            return live
        at_end = self._list_bound(self.pattern.absence.without if self.pattern.absence else ())
        for node in reversed(order):
            for edge in (edge for edge in self.graph.edges if edge.source == node):
                live[node] |= self._list_bound([edge.filter, *edge.forbid])
                live[node] |= at_end if edge.target is None else live[edge.target]
            live[node] |= self._list_bound(self.graph.nodes[node].guards)
        return live

    def _add_node(self, number: int, edges: list[Edge], places: dict[int, int], live: set[int]) -> int:
        configuration = self.graph.nodes[number]
        names = () if configuration.contiguous else configuration.guards
        key = NodeKey(
            self.kind,
            self.number if self.kind == EACH else -1,
            configuration.contiguous,
            tuple(map(self._bind_operand, names)),
            tuple((self.moments[moment], use) for moment, use in configuration.uses),
            tuple((self.moments[moment], high) for moment, high in configuration.limits),
            0,
            frozenset(self._make_edge_key(edge, places.get(edge.source, LOOP)) for edge in edges),
        )
        place = self.merged.find_node(key)
        node = self.merged.nodes[place]
        node.window = max(node.window, self.window)
        node.variables |= live
        for edge in edges:
            self.merged.edges.setdefault(self._make_edge_key(edge, places.get(edge.source, place), place), [])
        return place

    def _add_wait(self, absence: Absence, keys: list[EdgeKey]) -> None:
        """Add the node that waits for an absence, after the last steps."""
        guards, owner = tuple(map(self._bind_operand, absence.without)), self.number if self.kind == EACH else -1
        key = NodeKey(self.kind, owner, False, guards, (), (), absence.span, frozenset(keys))
        place = self.merged.find_node(key)
        node = self.merged.nodes[place]
        node.window = _FOREVER
        node.variables |= self._list_bound(absence.without)
        node.ends.append(self.number)
        for edge in keys:
            self.merged.edges.setdefault(edge._replace(target=place), [])

    def _make_edge_key(self, edge: Edge, source: int, target: int = DONE) -> EdgeKey:
        checks = []
        for check in edge.checks:
            low = -_FOREVER if check.low is None else check.low
            high = _FOREVER if check.high is None else check.high
            checks.append((self.moments[check.late], self.moments[check.early], low, high, check.absolute))
        stores = tuple(self.moments[moment] for moment in edge.stores)
        forbid = tuple(self._bind_operand(name) for name in sorted(edge.forbid))
        return EdgeKey(source, self._bind_operand(edge.filter), edge.step, tuple(checks), stores, forbid, target)


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


def number_other_variables(pattern: Pattern) -> dict[str, int]:
    """Return the variables beside the key, by their number."""
    if not any(named.variables for named in pattern.filters):  # most have none, and walking the tree takes long
        return {}
    key = pattern.key_variables()
    names = [v for name in pattern.list_filters() for _, v in pattern[name].variables if v not in key]
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
