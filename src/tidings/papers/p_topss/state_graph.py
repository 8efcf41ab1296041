"""The merged state machines of P-ToPSS: BuildStateMachine, and one state where two are equivalent.

Section 4 of the paper (see `paper_machine`). A sequence is cut at each `;` into terms. Each step is a state, reached
from the one before it by its primary link; the last state of a term that another follows also has the secondary link
(the step again) and the self link (any event): here the flag `waits`. A part that is `and` or `or` is a gate: an
arrival before it starts the children, and their match leads to the state behind it.

Two states are equivalent when the same links lead into them from equivalent states. So machines merge as prefixes,
and the key of a state is the state before it, its primitive filter, `waits` and its time conditions: `a` in `a ; b` and
`a` alone differ by the self link (Figure 6). Boolean machines are not merged; the paper leaves that to others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tidings.model.patterns import Conjunction, Disjunction, Elapsed, Gap, Moment, Pattern, Sequence, Step, Timed
from tidings.papers.p_topss.step_layout import Path, PlacedCondition, StepLayout

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOW, _THEN = Moment("now"), Moment("then")


@dataclass(slots=True)
class MachineTally:
    """What all parts of a machine share: how long times are kept, and counts of states and of links taken.

    States are counted without initial ones; `states_shared` are those that two subscriptions or more have.
    """

    expire: int | None = None
    begun: bool = False
    states: int = 0
    states_unmerged: int = 0
    states_shared: int = 0
    transitions: int = 0


# Compared by identity: a state is a node of the graph, and the key of time lists.
@dataclass(eq=False, slots=True)
class PaperState:
    """One state: the links in and out, and the time conditions that are evaluated on arrival (`rules`)."""

    symbol: int | None = None
    waits: bool = False
    rules: frozenset[TimeRule] = frozenset()
    edges: dict[int, list[PaperState]] = field(default_factory=dict)
    gates: list[tuple[StateTree, PaperState]] = field(default_factory=list)
    """Boolean machines that begin here, each with the state behind it."""
    ends: list[MatchEnding] = field(default_factory=list)
    final: bool = False
    sharers: int = 0
    timed: bool = False
    """Whether it has a time list: a condition refers to it or depends on it."""
    refs: list[PaperState] = field(default_factory=list)
    dependents: list[PaperState] = field(default_factory=list)
    kept_lists: set[PaperState] = field(default_factory=set)
    """The states whose time lists a later condition may still refer to; the others are dropped here."""


@dataclass(frozen=True, slots=True)
class TimeRule:
    """A condition that depends on the state that has it: `bounds` are those of its own time minus the reference's."""

    reference: PaperState
    bounds: Elapsed


@dataclass(frozen=True, slots=True)
class PairCondition:
    """A condition between two machines of one Boolean machine (case 4): neither of the two comes first."""

    reference: PaperState
    dependent: PaperState
    bounds: Elapsed


@dataclass(frozen=True, slots=True)
class BooleanBranch:
    """A node of a Boolean machine: all of its parts or any one of them; with the conditions between the parts."""

    is_and: bool
    parts: tuple[StateTree, ...]
    pairs: tuple[PairCondition, ...]


StateTree: TypeAlias = PaperState | BooleanBranch
"""A Boolean machine: a state machine, by its initial state, or a branch."""


@dataclass(frozen=True, slots=True)
class MatchEnding:
    """A subscription that is matched at a state, and what it calls the states that have time lists."""

    name: str
    step_names: tuple[tuple[PaperState, str], ...]


class GraphBuilder:
    """Adds the states of one subscription to the graph of all state machines, which grows from one initial state."""

    def __init__(self, root: PaperState, tally: MachineTally, pattern: Pattern, symbols: Mapping[str, int]) -> None:
        """Add below `root`; `symbols` numbers the pattern's primitive filters by name."""
        self._root, self._tally, self._symbols = root, tally, symbols
        self._layout = StepLayout(pattern)
        self._states: dict[Path, PaperState] = {}  # the state of each step
        # All states, each with the number of the last step that leads there, and its path.
        self._order: list[tuple[int, Path, PaperState]] = []

    def build(self, name: str) -> None:
        """Add the states of the subscription of this name."""
        last = self._build_chain(self._root, ())
        self._mark_kept_lists()
        called = [(self._states[path], self._layout.nodes[path]) for path in self._layout.steps]
        names = tuple((state, step.name) for state, step in called if state.timed and isinstance(step, Step))
        last.ends.append(MatchEnding(name, names))
        last.final = True

    def _build_chain(self, before: PaperState, path: Path) -> PaperState:
        """Build the machine of a sequence behind a state; return its last state."""
        parts, gaps = self._split_sequence(path)
        for part, gap in zip(parts, [*gaps, None], strict=True):
            waits = gap is Gap.LATER
            node = self._layout.nodes[part]
            if isinstance(node, Step):
                before = self._build_step(before, part, waits=waits, symbol=self._symbols[node.filter])
            else:
                tree, state = self._build_tree(part), PaperState(None, waits, sharers=1)
                before.gates.append((tree, state))
                self._tally.states += 1
                self._tally.states_unmerged += 1
                before = state
                self._order.append((self._layout.find_last_step(part), part, before))
        return before

    def _build_step(self, before: PaperState, path: Path, *, waits: bool, symbol: int) -> PaperState:
        """Return the state behind `before`: an equivalent one, or a new one."""
        rules = frozenset(self._build_rule(placed) for placed in self._list_conditions(path))
        behind = before.edges.setdefault(symbol, [])
        state = next((candidate for candidate in behind if candidate.waits == waits and candidate.rules == rules), None)
        if state is None:
            state = PaperState(symbol, waits, rules)
            behind.append(state)
            self._tally.states += 1
        state.sharers += 1
        self._tally.states_unmerged += 1
        self._tally.states_shared += state.sharers == 2
        self._states[path] = state
        self._order.append((self._layout.steps.index(path), path, state))
        for rule in rules:
            _relate(rule.reference, state)
        return state

    def _build_tree(self, path: Path) -> StateTree:
        """Build the Boolean machine of a node, with the state machines below it."""
        path = self._strip_timed(path)
        node = self._layout.nodes[path]
        if not isinstance(node, Conjunction | Disjunction):
            root = PaperState()
            self._build_chain(root, path).final = True
            return root
        parts = tuple(self._build_tree((*path, number)) for number in range(len(node.parts)))
        pairs = tuple(self._build_pair(placed) for placed in self._list_conditions(path))
        return BooleanBranch(isinstance(node, Conjunction), parts, pairs)

    def _split_sequence(self, path: Path) -> tuple[list[Path], list[Gap]]:
        """Return the operands of a sequence and the gaps between them; a sequence inside a sequence is flattened."""
        path = self._strip_timed(path)
        node = self._layout.nodes[path]
        if not isinstance(node, Sequence):
            return [path], []
        parts, gaps = self._split_sequence((*path, 0))
        for number, joint in enumerate(node.joints, start=1):
            more, between = self._split_sequence((*path, number))
            parts, gaps = parts + more, [*gaps, joint.gap, *between]
        return parts, gaps

    def _strip_timed(self, path: Path) -> Path:
        """Return the path of the timed part: conditions are placed by their steps."""
        while isinstance(self._layout.nodes[path], Timed):
            path = (*path, 0)
        return path

    def _list_conditions(self, path: Path) -> list[PlacedCondition]:
        return [placed for placed in self._layout.conditions if placed.at == path]

    def _build_rule(self, placed: PlacedCondition) -> TimeRule:
        step = self._layout.nodes[placed.dependent]
        assert isinstance(step, Step)
        as_written = step.name == placed.condition.late.label
        bounds = _strip_labels(placed.condition) if as_written else _reverse(placed.condition)
        return TimeRule(self._states[placed.reference], bounds)

    def _build_pair(self, placed: PlacedCondition) -> PairCondition:
        reference, dependent = self._states[placed.reference], self._states[placed.dependent]
        _relate(reference, dependent)
        most, high_open = placed.condition.high, placed.condition.high_open
        assert most is not None
        # Case 4 as printed: `-T <= t(reference) - t(dependent) < T`, lower end included, whatever was meant.
        return PairCondition(reference, dependent, Elapsed(_NOW, _THEN, -most, most, high_open=high_open))

    def _mark_kept_lists(self) -> None:
        """Mark on every state the lists that conditions behind it refer to."""
        for placed in self._layout.conditions:
            # Each child of an `and` has its own copy of its master's times, so all keep it until the `and` merges them.
            until = placed.at if placed.case == 4 else self._layout.find_joining(placed)
            end = self._layout.find_last_step(until) + (until != placed.dependent)
            for path in (placed.reference, placed.dependent) if placed.case == 4 else (placed.reference,):
                first = self._layout.steps.index(path)
                for number, where, state in self._order:
                    if first <= number < end and where != until:
                        state.kept_lists.add(self._states[path])


def _relate(reference: PaperState, dependent: PaperState) -> None:
    reference.timed = dependent.timed = True
    if reference not in dependent.refs:
        dependent.refs.append(reference)
        reference.dependents.append(dependent)


def _strip_labels(condition: Elapsed) -> Elapsed:
    """Return the condition without its labels, so that subscriptions with other labels share it."""
    return replace(condition, late=_NOW, early=_THEN)


def _reverse(condition: Elapsed) -> Elapsed:
    """Return the condition for the difference with the opposite sign."""
    if condition.absolute:
        return _strip_labels(condition)
    low = None if condition.high is None else -condition.high
    high = None if condition.low is None else -condition.low
    return Elapsed(_NOW, _THEN, low, high, low_open=condition.high_open, high_open=condition.low_open)
