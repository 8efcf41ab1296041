"""Derivatives: what is left of a pattern after some of its events, and the graph of all such configurations.

A configuration is the part of the tree that still has to happen, the time conditions that still have to hold,
and the moments they will ask for. Each edge serves one step with one event; `and` interleaves its operands, so a
configuration of it is one place in each. A configuration is contiguous when only the very next event may serve it;
otherwise it waits, and an event of its guards ends the wait. The definition stands in `patterns.definition`;
`docs/language.md#patterns` tells it in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from tidings.errors import PatternError
from tidings.model import patterns
from tidings.patterns.compile import terms
from tidings.patterns.compile.terms import StepMoment, Term

if TYPE_CHECKING:
    from collections.abc import Iterator

BUDGET = 1 << 14
"""The most configurations of one pattern: `and` of fourteen single steps."""

EDGE_WORK = 25
"""The work of an edge of a pattern without steps, where that of one more step, or time condition, is 1; measured."""


@dataclass(frozen=True, slots=True)
class TimeCheck:
    """`low <= t(late) - t(early) <= high`, judged when an event serves an edge; `None` is the time of that event."""

    late: StepMoment | None
    early: StepMoment | None
    low: int | None
    high: int | None
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """An event that satisfies `filter` serves step number `step` and leads on; `target=None`: the match is complete."""

    source: int
    target: int | None
    filter: str
    step: int
    checks: tuple[TimeCheck, ...]
    stores: tuple[StepMoment, ...]
    forbid: frozenset[str]


@dataclass(frozen=True, slots=True)
class Configuration:
    """A state of a pattern, and how it waits: `contiguous` for the next event only, else until a guard is satisfied.

    `limits`: a moment, and how long after it waiting is in vain.
    """

    contiguous: bool
    guards: tuple[str, ...]
    limits: tuple[tuple[StepMoment, int], ...]
    uses: tuple[tuple[StepMoment, int], ...]  # of each stored moment: 1 the later the better, -1 the earlier, 0 neither


@dataclass(frozen=True, slots=True)
class Configurations:
    """All configurations of a pattern, the initial one first, and the edges between them."""

    nodes: tuple[Configuration, ...]
    edges: tuple[Edge, ...]
    within: int | None  # of the whole pattern, from first event to last


@dataclass(frozen=True, slots=True)
class _Move:
    """One event that serves one step.

    Whether it is the first or last of a repetition, the timed parts that it begins (`entered`) and those that it goes
    on with (`inside`), and the filters that it must not satisfy.
    """

    step: int
    first: bool = True
    last: bool = True
    entered: frozenset[int] = frozenset()
    inside: frozenset[int] = frozenset()
    forbid: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _TimeCondition:
    """A time condition: which timed part it binds with, its two moments, and its bounds as closed ends."""

    timed: int
    late: StepMoment
    early: StepMoment
    low: int | None
    high: int | None
    absolute: bool

    @classmethod
    def of(cls, timed: int, elapsed: patterns.Elapsed, steps: dict[str, int]) -> _TimeCondition:
        """Return a condition of the tree; `steps` has the number of each step's name."""
        late, early = (StepMoment(steps[moment.label], str(moment.which)) for moment in (elapsed.late, elapsed.early))
        low = elapsed.low if elapsed.low is None else elapsed.low + elapsed.low_open
        high = elapsed.high if elapsed.high is None else elapsed.high - elapsed.high_open
        return cls(timed, late, early, low, high, elapsed.absolute)


_SequenceState: TypeAlias = tuple[Term, frozenset[int], frozenset[StepMoment]]
"""What is left of the tree, the conditions that are open, by their numbers, and the moments that are stored."""

_MoveList: TypeAlias = "list[tuple[_Move, Term | None]]"
"""What an event may do, each with what is left then; `None`: nothing, the match is complete."""


def derive_configurations(
    pattern: patterns.Pattern,
    mode: patterns.Mode = patterns.Mode.OVERLAP,
    *,
    budget: int = BUDGET,
    most_work: float = inf,
) -> Configurations:
    """Derive the graph; the mode `any` keeps every count of a repetition, the others only those that differ.

    Beyond `budget` configurations it is given up with a `PatternError`, and beyond `most_work`: that is in proportion
    to the time it takes, as `EDGE_WORK` says.
    """
    return _Derivation(pattern, keeps_every_count=mode is patterns.Mode.ANY).derive(budget, most_work)


class _Derivation:
    """The derivation of one pattern: its steps and timed parts by number, and its time conditions."""

    def __init__(self, pattern: patterns.Pattern, *, keeps_every_count: bool) -> None:
        self.keeps_every_count = keeps_every_count
        steps = pattern.steps()
        self.filters = [step.filter for step in steps]
        self.step_numbers = {step.name: number for number, step in enumerate(steps)}
        self.conditions: list[_TimeCondition] = []
        self.bounds: dict[int, int] = {}  # of parts with `within`
        root, self.within = _split_within(pattern.root)
        self.root = self._build_term(root, count(), count())

    def derive(self, budget: int, most_work: float) -> Configurations:
        certain = terms.find_certain_parts(self.root)
        binding = frozenset(i for i, condition in enumerate(self.conditions) if condition.timed in certain)
        start: _SequenceState = (self.root, binding, frozenset())
        places, waiting, edges = {start: 0}, [start], list[Edge]()
        work, of_edge = 0, EDGE_WORK + len(self.filters) + len(self.conditions)
        while waiting:
            state = waiting.pop()
            work += len(state[2]) * len(self.conditions)
            for edge, following in self._derive_edges(state):
                work += of_edge
                if work > most_work:
                    raise PatternError(self._explain_work(len(places), len(edges)))
                if following is not None and following not in places:
                    if len(places) >= budget:
                        problem = f"the pattern has more than {budget:,} configurations"
                        msg = f"{problem}; use fewer operands of `and`, or shorter repetitions"
                        raise PatternError(msg)
                    places[following] = len(places)
                    waiting.append(following)
                target = None if following is None else places[following]
                edges.append(replace(edge, source=places[state], target=target))
        nodes = tuple(self._describe_state(state) for state in places)
        return Configurations(nodes, tuple(sorted(edges, key=lambda edge: (edge.source, edge.step))), self.within)

    def _explain_work(self, configurations: int, edges: int) -> str:
        size = f"{configurations:,} configurations with {edges:,} edges, {len(self.filters):,} steps"
        conditions = f" and {len(self.conditions):,} time conditions" if self.conditions else ""
        way_out = "use fewer operands of `and` and `or`, shorter repetitions, or several patterns"
        return f"the pattern takes too long to compile: it has more than {size}{conditions}; {way_out}"

    # The tree as a term ------------------------------------------------------------------------

    def _build_term(self, node: patterns.Node, steps: Iterator[int], parts: Iterator[int]) -> Term:
        match node:
            case patterns.Step():
                return terms.StepTerm(next(steps))
            case patterns.Repeat(_, least, most):
                return terms.RepeatTerm(next(steps), least, most)
            case patterns.Sequence(operands, joints):
                head, *rest = [self._build_term(part, steps, parts) for part in operands]
                return terms.SequenceTerm(head, tuple(zip(joints, rest, strict=True)))
            case patterns.Conjunction(operands):
                return terms.AllTerm(tuple(self._build_term(part, steps, parts) for part in operands))
            case patterns.Disjunction(operands):
                return terms.ChoiceTerm(tuple(self._build_term(part, steps, parts) for part in operands))
            case patterns.Timed(part, conditions, within):
                number = next(parts)
                self.conditions += [_TimeCondition.of(number, elapsed, self.step_numbers) for elapsed in conditions]
                if within is not None:
                    self.bounds[number] = within
                return terms.TimedTerm(number, self._build_term(part, steps, parts))

    # One event further -------------------------------------------------------------------------

    def _derive_edges(self, state: _SequenceState) -> Iterator[tuple[Edge, _SequenceState | None]]:
        term, active, stored = state
        for move, rest in dict.fromkeys(self._derive_moves(term)):
            judged = self._judge_move(move, rest, active, stored)
            if judged is None:
                continue
            checks, following_active, following_stored = judged
            stores = tuple(sorted(following_stored & self._list_moments(move)))
            edge = Edge(0, None, self.filters[move.step], move.step, checks, stores, move.forbid)
            yield edge, None if rest is None else (rest, following_active, following_stored)

    def _list_moments(self, move: _Move) -> frozenset[StepMoment]:
        ends = [patterns.Which.FIRST] * move.first + [patterns.Which.LAST] * move.last
        begun = [StepMoment(part, "begin") for part in move.entered if part in self.bounds]
        return frozenset([*(StepMoment(move.step, str(end)) for end in ends), *begun])

    def _judge_move(
        self, move: _Move, rest: Term | None, active: frozenset[int], stored: frozenset[StepMoment]
    ) -> tuple[tuple[TimeCheck, ...], frozenset[int], frozenset[StepMoment]] | None:
        """Return the checks of this event and the conditions that stay open; `None` when one cannot hold any more."""
        now = self._list_moments(move)
        to_come, to_enter = terms.find_obtainable(rest)
        inside = move.inside & self.bounds.keys()
        checks = [TimeCheck(None, StepMoment(part, "begin"), None, self.bounds[part]) for part in inside]
        still_open: set[int] = set()
        for number in active | {i for i, condition in enumerate(self.conditions) if condition.timed in move.entered}:
            condition = self.conditions[number]
            moments = {condition.late, condition.early}
            if moments <= now | stored:
                check = _decide_check(condition, now)
                if check is None:
                    return None
                checks += check
            elif moments <= now | stored | to_come:
                still_open.add(number)
            else:
                return None
        asking = [self.conditions[i] for i in still_open] + [c for c in self.conditions if c.timed in to_enter]
        needed = {moment for condition in asking for moment in (condition.late, condition.early)}
        needed |= {StepMoment(part, "begin") for part in terms.find_open_parts(rest)}
        return tuple(sorted(checks, key=str)), frozenset(still_open), (stored | now) & needed

    def _derive_moves(self, term: Term) -> _MoveList:
        match term:
            case terms.StepTerm(step):
                return [(_Move(step), None)]
            case terms.RepeatTerm():
                return self._repeat_moves(term)
            case terms.WaitTerm(_, part):
                return self._derive_moves(part)
            case terms.SequenceTerm(head, rest):
                return [(move, terms.continue_sequence(left, rest)) for move, left in self._derive_moves(head)]
            case terms.ChoiceTerm(parts):
                return [step for part in parts for step in self._derive_moves(part)]
            case terms.AllTerm(parts):
                return self._interleave_moves(parts)
            case terms.TimedTerm(timed, part, begun):
                entered, inside = (frozenset(), frozenset({timed})) if begun else (frozenset({timed}), frozenset())
                moves: _MoveList = []
                for move, left in self._derive_moves(part):
                    within = replace(move, entered=move.entered | entered, inside=move.inside | inside)
                    moves.append((within, None if left is None else terms.TimedTerm(timed, left, begun=True)))
                return moves

    def _repeat_moves(self, term: terms.RepeatTerm) -> _MoveList:
        least, most = max(term.least - 1, 0), None if term.most is None else term.most - 1
        move = _Move(term.step, first=not term.begun)
        moves: _MoveList = [(move, None)] if least == 0 else []
        # More events than the least say nothing new, unless first and last are to be two: drop one in the middle.
        if most != 0 and (least > 0 or self.keeps_every_count or not term.begun):
            left = terms.RepeatTerm(term.step, least, most, begun=True)
            moves.append((replace(move, last=False), terms.WaitTerm(patterns.Joint(patterns.Gap.LATER), left)))
        return moves

    def _interleave_moves(self, parts: tuple[Term, ...]) -> _MoveList:
        waits = [terms.find_wait_conditions(part) for part in parts]
        bound = [place for place, (contiguous, _) in enumerate(waits) if contiguous]
        moves: _MoveList = []
        for place in bound or range(len(parts)):
            guards = frozenset(name for i, (_, names) in enumerate(waits) if i != place for name in names)
            for move, left in self._derive_moves(parts[place]):
                others = [*parts[:place], *([] if left is None else [left]), *parts[place + 1 :]]
                rest = others[0] if len(others) == 1 else terms.AllTerm(tuple(others))
                moves.append((replace(move, forbid=move.forbid | guards), rest))
        return moves if len(bound) < 2 else []

    # What is said of a configuration -----------------------------------------------------------

    def _describe_state(self, state: _SequenceState) -> Configuration:
        term, active, stored = state
        contiguous, guards = terms.find_wait_conditions(term)
        begun = terms.find_open_parts(term) & self.bounds.keys()
        limits = [(StepMoment(part, "begin"), self.bounds[part]) for part in begun]
        for number in active:
            limit = _find_limit(self.conditions[number], stored)
            limits += [limit] if limit else []
        used = tuple((moment, self._find_use(moment, state)) for moment in sorted(stored))
        return Configuration(contiguous, tuple(sorted(guards)), tuple(sorted(limits, key=str)), used)

    def _find_use(self, moment: StepMoment, state: _SequenceState) -> int:
        """Return 1 if a later moment is at least as good for all open conditions, -1 if an earlier one is, else 0."""
        term, active, stored = state
        if moment.which == "begin":
            return 1
        to_enter = terms.find_obtainable(term)[1]
        directions: set[int] = set()
        for number, condition in enumerate(self.conditions):
            moments = {condition.late, condition.early}
            if (number in active or condition.timed in to_enter) and moment in moments:
                directions |= _list_easing_directions(condition, moment, both_stored=moments <= stored)
        return directions.pop() if len(directions) == 1 else 0


def _split_within(root: patterns.Node) -> tuple[patterns.Node, int | None]:
    """Take `within` off the whole pattern: it is judged at the end, so that patterns share what comes before."""
    if not isinstance(root, patterns.Timed) or root.within is None:
        return root, None
    inner = replace(root, within=None) if root.conditions else root.part
    return inner, root.within


def _decide_check(condition: _TimeCondition, now: frozenset[StepMoment]) -> list[TimeCheck] | None:
    """Return what is left to judge at run time: nothing when it always holds; None when it never does."""
    low, high = condition.low, condition.high
    late, early = (None if moment in now else moment for moment in (condition.late, condition.early))
    if late is None and early is None:
        return [] if (low is None or low <= 0) and (high is None or high >= 0) else None
    stored = [moment for moment in (late, early) if moment is not None]
    if condition.absolute and len(stored) == 1:
        late, early = None, stored[0]
    if late is None:  # this event is not before the other one
        low = None if low is not None and low <= 0 else low
        if high is not None and high < 0:
            return None
    if early is None:
        high = None if high is not None and high >= 0 else high
        if low is not None and low > 0:
            return None
    if low is None and high is None:
        return []
    return [TimeCheck(late, early, low, high, condition.absolute and len(stored) == 2)]


def _find_limit(condition: _TimeCondition, stored: frozenset[StepMoment]) -> tuple[StepMoment, int] | None:
    """Return a stored moment, and how long after it the condition cannot hold any more; `None` if it always may."""
    if condition.early in stored and condition.late not in stored and condition.high is not None:
        return condition.early, condition.high
    if condition.late in stored and condition.early not in stored:
        if condition.absolute and condition.high is not None:
            return condition.late, condition.high
        if not condition.absolute and condition.low is not None:
            return condition.late, -condition.low
    return None


def _list_easing_directions(condition: _TimeCondition, moment: StepMoment, *, both_stored: bool) -> set[int]:
    """Return the directions in which moving the stored time eases the condition: 1 later, -1 earlier, none or both."""
    low, high = condition.low, condition.high
    if condition.absolute and both_stored:
        return {1, -1}
    as_early = moment == condition.early or condition.absolute
    directions = set()
    if high is not None:
        directions.add(1 if as_early else -1)
    if low is not None and not (as_early and low <= 0 and not both_stored):
        directions.add(-1 if as_early else 1)
    return directions
