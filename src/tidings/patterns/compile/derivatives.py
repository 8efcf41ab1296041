"""Derivatives: what is left of a pattern after some of its events, and the graph of all such configurations.

A configuration is the part of the tree that still has to happen, the time conditions that still have to hold,
and the moments they will ask for. Each edge serves one step with one event; `and` interleaves its operands, so a
configuration of it is one place in each. A configuration is contiguous when only the very next event may serve it;
otherwise it waits, and an event of its guards ends the wait. The definition stands in `patterns.definition`;
`docs/language.md#patterns` tells it in words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from tidings.errors import PatternError
from tidings.model import patterns
from tidings.patterns.compile.terms import (
    AllTerm,
    ChoiceTerm,
    Mark,
    RepeatTerm,
    SequenceTerm,
    StepTerm,
    Term,
    TimedTerm,
    WaitTerm,
    continue_sequence,
    find_certain_parts,
    find_obtainable,
    find_open_parts,
    find_wait_conditions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

BUDGET = 1 << 14
"""The most configurations of one pattern: `and` of fourteen single steps."""


@dataclass(frozen=True, slots=True)
class TimeCheck:
    """`low <= t(late) - t(early) <= high`, judged when an event serves an edge; `None` is the time of that event."""

    late: Mark | None
    early: Mark | None
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
    stores: tuple[Mark, ...]
    forbid: frozenset[str]


@dataclass(frozen=True, slots=True)
class Configuration:
    """What waits: for the next event alone, or until one of its guards; `limits` say when waiting is vain."""

    contiguous: bool
    guards: tuple[str, ...]
    limits: tuple[tuple[Mark, int], ...]
    uses: tuple[tuple[Mark, int], ...]  # of each stored moment: 1 the later the better, -1 the earlier, 0 neither


@dataclass(frozen=True, slots=True)
class Configurations:
    """All configurations of a pattern, the initial one first, and the edges between them."""

    nodes: tuple[Configuration, ...]
    edges: tuple[Edge, ...]
    within: int | None  # of the whole pattern, from first event to last


@dataclass(frozen=True, slots=True)
class _Move:
    """One event, one step: which of a repetition it is, what it enters, what it must not be."""

    step: int
    first: bool = True
    last: bool = True
    entered: frozenset[int] = frozenset()
    inside: frozenset[int] = frozenset()
    forbid: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A time condition: which part it binds with, its two marks, and its bounds as closed ends."""

    timed: int
    late: Mark
    early: Mark
    condition: patterns.Elapsed

    @property
    def ends(self) -> tuple[int | None, int | None]:
        condition = self.condition
        low = condition.low if condition.low is None else condition.low + condition.low_open
        high = condition.high if condition.high is None else condition.high - condition.high_open
        return low, high


_State: TypeAlias = tuple[Term, frozenset[int], frozenset[Mark]]


def configurations(
    pattern: patterns.Pattern, mode: patterns.Mode = patterns.Mode.OVERLAP, *, budget: int = BUDGET
) -> Configurations:
    """Derive the graph; the mode `any` keeps every count of a repetition, the others only those that differ."""
    return _Derivation(pattern, every=mode is patterns.Mode.ANY).graph(budget)


@dataclass
class _Derivation:
    pattern: patterns.Pattern
    every: bool
    asked: list[_Asked] = field(default_factory=list)
    bounds: dict[int, int] = field(default_factory=dict)  # of parts with `within`

    def graph(self, budget: int) -> Configurations:
        root, within = _split_within(self.pattern.root)
        term = self._term(root, count(), count())
        sure = frozenset(number for number, asked in enumerate(self.asked) if asked.timed in find_certain_parts(term))
        start: _State = (term, sure, frozenset())
        places, waiting, edges = {start: 0}, [start], []
        while waiting:
            state = waiting.pop()
            for edge, following in self._edges(state):
                if following is not None and following not in places:
                    _check_budget(len(places), budget)
                    places[following] = len(places)
                    waiting.append(following)
                target = None if following is None else places[following]
                edges.append(replace(edge, source=places[state], target=target))
        nodes = tuple(self._describe_state(state) for state in places)
        return Configurations(nodes, tuple(sorted(edges, key=lambda edge: (edge.source, edge.step))), within)

    # The tree as a term ------------------------------------------------------------------------

    def _term(self, node: patterns.Node, steps: Iterator[int], parts: Iterator[int]) -> Term:
        match node:
            case patterns.Step():
                return StepTerm(next(steps))
            case patterns.Repeat(_, least, most):
                return RepeatTerm(next(steps), least, most)
            case patterns.Sequence(operands, joints):
                head, *rest = [self._term(part, steps, parts) for part in operands]
                return SequenceTerm(head, tuple(zip(joints, rest, strict=True)))
            case patterns.Both(operands):
                return AllTerm(tuple(self._term(part, steps, parts) for part in operands))
            case patterns.Either(operands):
                return ChoiceTerm(tuple(self._term(part, steps, parts) for part in operands))
            case patterns.Timed(part, conditions, within):
                number = next(parts)
                self.asked += [self._condition(number, condition) for condition in conditions]
                if within is not None:
                    self.bounds[number] = within
                return TimedTerm(number, self._term(part, steps, parts))

    def _condition(self, timed: int, condition: patterns.Elapsed) -> _Asked:
        marks = [Mark(self._labels[moment.label], str(moment.which)) for moment in (condition.late, condition.early)]
        return _Asked(timed, marks[0], marks[1], condition)

    @cached_property
    def _labels(self) -> dict[str, int]:
        return {step.name: number for number, step in enumerate(patterns.steps_of(self.pattern.root))}

    @cached_property
    def _names(self) -> list[str]:
        return [step.filter for step in patterns.steps_of(self.pattern.root)]

    # One event further -------------------------------------------------------------------------

    def _edges(self, state: _State) -> Iterator[tuple[Edge, _State | None]]:
        term, active, stored = state
        for move, rest in dict.fromkeys(self._derive_moves(term)):
            judged = self._judge_move(move, rest, active, stored)
            if judged is None:
                continue
            checks, following_active, following_known = judged
            stores = tuple(sorted(following_known & self._list_marks(move), key=_order))
            edge = Edge(0, None, self._names[move.step], move.step, checks, stores, move.forbid)
            yield edge, None if rest is None else (rest, following_active, following_known)

    def _list_marks(self, move: _Move) -> frozenset[Mark]:
        ends = [patterns.Which.FIRST] * move.first + [patterns.Which.LAST] * move.last
        begun = [Mark(part, "begin") for part in move.entered if part in self.bounds]
        return frozenset([*(Mark(move.step, str(end)) for end in ends), *begun])

    def _judge_move(
        self, move: _Move, rest: Term | None, active: frozenset[int], stored: frozenset[Mark]
    ) -> tuple[tuple[TimeCheck, ...], frozenset[int], frozenset[Mark]] | None:
        """Return the checks of this event and the conditions that stay open; `None` when one cannot hold any more."""
        now = self._list_marks(move)
        to_come, to_enter = find_obtainable(rest)
        checks = [
            TimeCheck(None, Mark(part, "begin"), None, self.bounds[part]) for part in move.inside & set(self.bounds)
        ]
        binding = active | {i for i, asked in enumerate(self.asked) if asked.timed in move.entered}
        open_ones: set[int] = set()
        for number in binding:
            asked = self.asked[number]
            if {asked.late, asked.early} <= now | stored:
                check = _check(asked, now)
                if check is None:
                    return None
                checks += check
            elif all(mark in now or mark in stored or mark in to_come for mark in (asked.late, asked.early)):
                open_ones.add(number)
            else:
                return None
        needed = self._find_needed(open_ones, to_enter) | {Mark(part, "begin") for part in find_open_parts(rest)}
        return tuple(sorted(checks, key=str)), frozenset(open_ones), (stored | now) & needed

    def _find_needed(self, open_ones: set[int], to_enter: frozenset[int]) -> frozenset[Mark]:
        asking = [self.asked[i] for i in open_ones] + [asked for asked in self.asked if asked.timed in to_enter]
        return frozenset(mark for asked in asking for mark in (asked.late, asked.early))

    def _derive_moves(self, term: Term) -> list[tuple[_Move, Term | None]]:
        match term:
            case StepTerm(step):
                return [(_Move(step), None)]
            case RepeatTerm():
                return self._repeat_moves(term)
            case WaitTerm(_, part):
                return self._derive_moves(part)
            case SequenceTerm(head, rest):
                return [(move, continue_sequence(left, rest)) for move, left in self._derive_moves(head)]
            case ChoiceTerm(parts):
                return [step for part in parts for step in self._derive_moves(part)]
            case AllTerm(parts):
                return self._interleave_moves(parts)
            case TimedTerm(timed, part, begun):
                entered, inside = (frozenset(), frozenset({timed})) if begun else (frozenset({timed}), frozenset())
                return [
                    (
                        replace(move, entered=move.entered | entered, inside=move.inside | inside),
                        None if left is None else TimedTerm(timed, left, begun=True),
                    )
                    for move, left in self._derive_moves(part)
                ]

    def _repeat_moves(self, term: RepeatTerm) -> list[tuple[_Move, Term | None]]:
        least, most = max(term.least - 1, 0), None if term.most is None else term.most - 1
        move = _Move(term.step, first=not term.begun)
        moves: list[tuple[_Move, Term | None]] = [(move, None)] if least == 0 else []
        # More events than the least say nothing new, unless first and last are to be two: drop one in the middle.
        if most != 0 and (least > 0 or self.every or not term.begun):
            left = RepeatTerm(term.step, least, most, begun=True)
            moves.append((replace(move, last=False), WaitTerm(patterns.Joint(patterns.Gap.LATER), left)))
        return moves

    def _interleave_moves(self, parts: tuple[Term, ...]) -> list[tuple[_Move, Term | None]]:
        waits = [find_wait_conditions(part) for part in parts]
        bound = [place for place, (contiguous, _) in enumerate(waits) if contiguous]
        moves: list[tuple[_Move, Term | None]] = []
        for place in bound or range(len(parts)):
            guards = frozenset(name for i, (_, names) in enumerate(waits) if i != place for name in names)
            for move, left in self._derive_moves(parts[place]):
                others = [*parts[:place], *([] if left is None else [left]), *parts[place + 1 :]]
                rest = others[0] if len(others) == 1 else AllTerm(tuple(others))
                moves.append((replace(move, forbid=move.forbid | guards), rest))
        return moves if len(bound) < 2 else []

    # What is said of a configuration -----------------------------------------------------------

    def _describe_state(self, state: _State) -> Configuration:
        term, active, stored = state
        contiguous, guards = find_wait_conditions(term)
        limits = [(Mark(part, "begin"), self.bounds[part]) for part in find_open_parts(term) if part in self.bounds]
        for asked in (self.asked[number] for number in active):
            limit = _limit(asked, stored)
            limits += [limit] if limit else []
        used = tuple((mark, self._use(mark, state)) for mark in sorted(stored, key=_order))
        return Configuration(contiguous, tuple(sorted(guards)), tuple(sorted(limits, key=str)), used)

    def _use(self, mark: Mark, state: _State) -> int:
        """Return 1 if a later moment serves at least as well in all that is still asked, -1 if an earlier one does."""
        term, active, _ = state
        if mark.which == "begin":
            return 1
        to_enter = find_obtainable(term)[1]
        wishes: set[int] = set()
        for number, asked in enumerate(self.asked):
            if (number in active or asked.timed in to_enter) and mark in (asked.late, asked.early):
                wishes |= _list_wishes(asked, mark, both_known={asked.late, asked.early} <= state[2])
        return wishes.pop() if len(wishes) == 1 else 0


def _split_within(root: patterns.Node) -> tuple[patterns.Node, int | None]:
    """Take `within` off the whole pattern: it is judged at the end, so that patterns share what comes before."""
    if not isinstance(root, patterns.Timed) or root.within is None:
        return root, None
    inner = replace(root, within=None) if root.conditions else root.part
    return inner, root.within


def _check_budget(size: int, budget: int) -> None:
    if size >= budget:
        msg = (
            f"the pattern has more than {budget:,} configurations; use fewer operands of `and`, or shorter repetitions"
        )
        raise PatternError(msg)


def _check(asked: _Asked, now: frozenset[Mark]) -> list[TimeCheck] | None:
    """Return what is left to judge at run time: nothing when it always holds; None when it never does."""
    low, high = asked.ends
    late, early = (None if mark in now else mark for mark in (asked.late, asked.early))
    if late is None and early is None:
        return [] if asked.condition.holds(0, 0) else None
    stored = [mark for mark in (late, early) if mark is not None]
    if asked.condition.absolute and len(stored) == 1:
        late, early = None, stored[0]
    if late is None:  # this event is not before the other one
        low = None if low is not None and low <= 0 else low
        if high is not None and high < 0:
            return None
    if early is None:
        high = None if high is not None and high >= 0 else high
        if low is not None and low > 0:
            return None
    return (
        []
        if low is None and high is None
        else [TimeCheck(late, early, low, high, asked.condition.absolute and len(stored) == 2)]
    )


def _limit(asked: _Asked, stored: frozenset[Mark]) -> tuple[Mark, int] | None:
    """Return after how long the condition cannot hold any more, whatever comes."""
    low, high = asked.ends
    if asked.early in stored and asked.late not in stored and high is not None:
        return asked.early, high
    if asked.late in stored and asked.early not in stored:
        if asked.condition.absolute and high is not None:
            return asked.late, high
        if not asked.condition.absolute and low is not None:
            return asked.late, -low
    return None


def _list_wishes(asked: _Asked, mark: Mark, *, both_known: bool) -> set[int]:
    low, high = asked.ends
    if asked.condition.absolute and both_known:
        return {1, -1}
    as_early = mark == asked.early or asked.condition.absolute
    wishes = set()
    if high is not None:
        wishes.add(1 if as_early else -1)
    if low is not None and not (as_early and low <= 0 and not both_known):
        wishes.add(-1 if as_early else 1)
    return wishes


def _order(mark: Mark) -> tuple[int, str]:
    return mark.step, mark.which
