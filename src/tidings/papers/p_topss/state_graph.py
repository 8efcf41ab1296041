"""The merged state machines of P-ToPSS: BuildStateMachine, and one state where two are equivalent.

Section 4 of the paper (`p_topss`). A sequence is cut at each `;` into terms. Each step is a state, reached from the
one before it by its primary link; the last state of a term that another follows also has the secondary link (the
step again) and the self link (anything): here the flag `waits`. A part that is `and` or `or` is a gate: arriving
before it triggers the children in, and their match triggers the way out, to the state behind it.

Two states are equivalent when the same links lead into them from equivalent states. So machines merge as prefixes,
and the key of a state is the state before it, its primitive filter, `waits` and its time conditions: `a` in `a ; b` and
`a` alone differ by the self link (Figure 6). Boolean machines are not merged; the paper leaves that to others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tidings.model.patterns import Both, Either, Elapsed, Gap, Moment, Sequence, Step, Timed
from tidings.papers.p_topss.step_layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidings.model.patterns import Pattern
    from tidings.papers.p_topss.step_layout import Path, Placed

_NOW, _THEN = Moment("now"), Moment("then")


# Compared by identity: a state is a place in the graph, and the key of time lists.
@dataclass(eq=False, slots=True)
class State:
    """One state: what leads in, what leads on, and the time conditions that end here (`rules`)."""

    symbol: int | None = None
    waits: bool = False
    rules: frozenset[Rule] = frozenset()
    edges: dict[int, list[State]] = field(default_factory=dict)
    gates: list[Gate] = field(default_factory=list)
    ends: list[Ending] = field(default_factory=list)
    final: bool = False
    sharers: int = 0
    timed: bool = False
    """Whether it has a time list: a condition refers to it or depends on it."""
    refs: list[State] = field(default_factory=list)
    dependents: list[State] = field(default_factory=list)
    carried: set[State] = field(default_factory=set)
    """The states whose time lists a later condition may still ask for; the others are cleaned up here."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that depends on the state that has it: `bounds` are those of its own time minus the reference's."""

    reference: State
    bounds: Elapsed

    def holds(self, now: int, then: int) -> bool:
        """Tell whether an arrival now and one at the reference then satisfy it."""
        return self.bounds.holds(now, then)


@dataclass(frozen=True, slots=True)
class Pair:
    """A condition between two machines of one Boolean machine (case 4): neither of the two comes first."""

    reference: State
    dependent: State
    bounds: Elapsed


@dataclass(frozen=True, slots=True)
class Leaf:
    """A child state machine, by its initial state."""

    root: State


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of a Boolean machine: all of its parts (`every`) or any one; with the conditions between the parts."""

    every: bool
    parts: tuple[Tree, ...]
    pairs: tuple[Pair, ...]


Tree: TypeAlias = Leaf | Branch


@dataclass(frozen=True, slots=True)
class Gate:
    """A link whose label is a Boolean machine."""

    tree: Tree
    target: State


@dataclass(frozen=True, slots=True)
class Ending:
    """A subscription that is matched at a state, and what it calls the states that have time lists."""

    name: str
    called: tuple[tuple[State, str], ...]


class Graph:
    """All state machines as one graph that grows from one initial state."""

    def __init__(self) -> None:
        """Start with the initial state alone."""
        self.root = State()
        self.states = 0
        self.states_unmerged = 0
        self.states_shared = 0

    def add(self, name: str, pattern: Pattern, *, symbols: Mapping[str, int]) -> None:
        """Add a subscription; `symbols` numbers its primitive filters by name."""
        _Building(self, Layout(pattern), symbols).build(name)

    def link(self, before: State, symbol: int, *, waits: bool, rules: frozenset[Rule]) -> State:
        """Return the state behind `before`, an equivalent one when there is one."""
        behind = before.edges.setdefault(symbol, [])
        state = next((one for one in behind if one.waits == waits and one.rules == rules), None)
        if state is None:
            state = State(symbol, waits, rules)
            behind.append(state)
            self.states += 1
        state.sharers += 1
        self.states_unmerged += 1
        self.states_shared += state.sharers == 2
        return state

    def gate(self, before: State, tree: Tree, *, waits: bool) -> State:
        """Return a new state behind a Boolean machine."""
        state = State(None, waits, sharers=1)
        before.gates.append(Gate(tree, state))
        self.states += 1
        self.states_unmerged += 1
        return state


class _Building:
    """One subscription on its way into the graph."""

    def __init__(self, graph: Graph, layout: Layout, symbols: Mapping[str, int]) -> None:
        self._graph, self._layout, self._symbols = graph, layout, symbols
        self._made: dict[Path, State] = {}  # the state of each step
        self._order: list[
            tuple[int, Path, State]
        ] = []  # states, each with the last step that leads there, and its path

    def build(self, name: str) -> None:
        """Add the states and mark the last."""
        last = self._chain(self._graph.root, ())
        self._carry()
        called = [(self._made[path], self._layout.nodes[path]) for path in self._layout.steps]
        known = tuple((state, step.called) for state, step in called if state.timed and isinstance(step, Step))
        last.ends.append(Ending(name, known))
        last.final = True

    def _chain(self, before: State, path: Path) -> State:
        """Build the machine of a sequence behind a state; return its last state."""
        parts, gaps = self._terms(path)
        for part, gap in zip(parts, [*gaps, None], strict=True):
            waits = gap is Gap.LATER
            node = self._layout.nodes[part]
            if isinstance(node, Step):
                before = self._step(before, part, waits=waits, symbol=self._symbols[node.filter])
            else:
                tree = self._tree(part)
                before = self._graph.gate(before, tree, waits=waits)
                self._order.append((self._layout.last_below(part), part, before))
        return before

    def _step(self, before: State, path: Path, *, waits: bool, symbol: int) -> State:
        rules = frozenset(self._rule(placed) for placed in self._placed_at(path))
        state = self._graph.link(before, symbol, waits=waits, rules=rules)
        self._made[path] = state
        self._order.append((self._layout.steps.index(path), path, state))
        for rule in rules:
            _relate(rule.reference, state)
        return state

    def _tree(self, path: Path) -> Tree:
        """Build the Boolean machine of a node, with the state machines below it."""
        path = self._bare(path)
        node = self._layout.nodes[path]
        if not isinstance(node, Both | Either):
            root = State()
            self._chain(root, path).final = True
            return Leaf(root)
        parts = tuple(self._tree((*path, number)) for number in range(len(node.parts)))
        pairs = tuple(self._pair(placed) for placed in self._placed_at(path))
        return Branch(isinstance(node, Both), parts, pairs)

    def _terms(self, path: Path) -> tuple[list[Path], list[Gap]]:
        """Return the operands of a sequence and what joins them; a sequence inside a sequence is written out."""
        path = self._bare(path)
        node = self._layout.nodes[path]
        if not isinstance(node, Sequence):
            return [path], []
        parts, gaps = self._terms((*path, 0))
        for number, joint in enumerate(node.joints, start=1):
            more, between = self._terms((*path, number))
            parts, gaps = parts + more, [*gaps, joint.gap, *between]
        return parts, gaps

    def _bare(self, path: Path) -> Path:
        """Return the path of what is timed: conditions are placed by their steps."""
        while isinstance(self._layout.nodes[path], Timed):
            path = (*path, 0)
        return path

    def _placed_at(self, path: Path) -> list[Placed]:
        return [placed for placed in self._layout.placed if placed.at == path]

    def _rule(self, placed: Placed) -> Rule:
        step = self._layout.nodes[placed.dependent]
        assert isinstance(step, Step)
        as_written = step.called == placed.condition.late.label
        bounds = _bounds(placed.condition) if as_written else _turned(placed.condition)
        return Rule(self._made[placed.reference], bounds)

    def _pair(self, placed: Placed) -> Pair:
        reference, dependent = self._made[placed.reference], self._made[placed.dependent]
        _relate(reference, dependent)
        return Pair(reference, dependent, _absolute(placed.condition))

    def _carry(self) -> None:
        """Mark on every state the lists that conditions behind it refer to."""
        for placed in self._layout.placed:
            # Each child of an `and` has its own view of its master's times, so all keep it until the `and` joins them.
            until = placed.at if placed.case == 4 else self._layout.joining(placed)
            end = self._layout.last_below(until) + (until != placed.dependent)
            for path in (placed.reference, placed.dependent) if placed.case == 4 else (placed.reference,):
                first = self._layout.steps.index(path)
                for number, where, state in self._order:
                    if first <= number < end and where != until:
                        state.carried.add(self._made[path])


def _relate(reference: State, dependent: State) -> None:
    reference.timed = dependent.timed = True
    if reference not in dependent.refs:
        dependent.refs.append(reference)
        reference.dependents.append(dependent)


def _bounds(condition: Elapsed) -> Elapsed:
    """Return the condition without its labels, so that subscriptions with other labels share it."""
    return replace(condition, late=_NOW, early=_THEN)


def _turned(condition: Elapsed) -> Elapsed:
    """Return the condition for a difference taken the other way round."""
    if condition.absolute:
        return _bounds(condition)
    low = None if condition.high is None else -condition.high
    high = None if condition.low is None else -condition.low
    return Elapsed(_NOW, _THEN, low, high, low_open=condition.high_open, high_open=condition.low_open)


def _absolute(condition: Elapsed) -> Elapsed:
    """Return case 4 as printed: `-T <= t(reference) - t(dependent) < T`, lower end included, whatever was meant."""
    assert condition.high is not None
    return Elapsed(_NOW, _THEN, -condition.high, condition.high, high_open=condition.high_open)
