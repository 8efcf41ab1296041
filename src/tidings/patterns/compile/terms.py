"""Terms: what is left of a pattern's tree after some of its events. They are values, so equal ones are one.

A term knows what may come next: whether only the very next event may serve it, what must not happen before, which
moments may still come, and which timed parts have begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tidings.model.patterns import Gap, Joint


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment that a condition may ask for: a step's first or last event, or (`within`) a part's first."""

    step: int  # of the step, or of the part that `within` bounds
    which: str  # first, last, begin


@dataclass(frozen=True, slots=True)
class StepTerm:
    """One step."""

    step: int


@dataclass(frozen=True, slots=True)
class RepeatTerm:
    """A step so many times more."""

    step: int
    least: int
    most: int | None
    begun: bool = False


@dataclass(frozen=True, slots=True)
class SequenceTerm:
    """Operands one after the other."""

    head: Term
    rest: tuple[tuple[Joint, Term], ...]


@dataclass(frozen=True, slots=True)
class AllTerm:
    """Operands in any order."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ChoiceTerm:
    """One of the operands."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class TimedTerm:
    """A part with time conditions; begun: an event has served it."""

    timed: int
    part: Term
    begun: bool = False


@dataclass(frozen=True, slots=True)
class WaitTerm:
    """A part that follows another one by a joint."""

    joint: Joint
    part: Term


Term: TypeAlias = "StepTerm | RepeatTerm | SequenceTerm | AllTerm | ChoiceTerm | TimedTerm | WaitTerm"


def continue_sequence(left: Term | None, rest: tuple[tuple[Joint, Term], ...]) -> Term:
    """Return what is left of a sequence when this is left of its head."""
    if left is not None:
        return SequenceTerm(left, rest)
    (joint, head), *others = rest
    return WaitTerm(joint, SequenceTerm(head, tuple(others)) if others else head)


def find_wait_conditions(term: Term) -> tuple[bool, frozenset[str]]:
    """Return whether only the next event may serve the term, and what must not happen before it is served."""
    match term:
        case WaitTerm(joint, part):
            contiguous, guards = find_wait_conditions(part)
            return contiguous or joint.gap is Gap.NEXT, guards | frozenset(joint.without)
        case SequenceTerm(head, _):
            return find_wait_conditions(head)
        case TimedTerm(_, part, _):
            return find_wait_conditions(part)
        case AllTerm(parts):
            conditions = [find_wait_conditions(part) for part in parts]
            return any(is_contiguous for is_contiguous, _ in conditions), frozenset(
                name for _, names in conditions for name in names
            )
    return False, frozenset()


def find_obtainable(term: Term | None) -> tuple[frozenset[Mark], frozenset[int]]:
    """Return the moments that may still come, and the timed parts that may still be entered."""
    match term:
        case None:
            return frozenset(), frozenset()
        case StepTerm(step):
            return frozenset({Mark(step, "first"), Mark(step, "last")}), frozenset()
        case RepeatTerm(step, _, _, begun):
            return frozenset({Mark(step, "last")} | (set() if begun else {Mark(step, "first")})), frozenset()
        case WaitTerm(_, part):
            return find_obtainable(part)
        case TimedTerm(timed, part, begun):
            marks, parts = find_obtainable(part)
            return marks, parts if begun else parts | {timed}
        case SequenceTerm(head, rest):
            return _unite_obtainable([head, *(part for _, part in rest)])
        case AllTerm(parts) | ChoiceTerm(parts):
            return _unite_obtainable(list(parts))


def _unite_obtainable(terms: list[Term]) -> tuple[frozenset[Mark], frozenset[int]]:
    obtainable = [find_obtainable(term) for term in terms]
    return frozenset().union(*(marks for marks, _ in obtainable)), frozenset().union(
        *(parts for _, parts in obtainable)
    )


def find_certain_parts(term: Term) -> frozenset[int]:
    """Return the timed parts that every match enters: their conditions bind from the first event on."""
    match term:
        case TimedTerm(timed, part, _):
            return find_certain_parts(part) | {timed}
        case SequenceTerm(head, rest):
            return find_certain_parts(head).union(*(find_certain_parts(part) for _, part in rest))
        case AllTerm(parts):
            return frozenset().union(*(find_certain_parts(part) for part in parts))
    return frozenset()


def find_open_parts(term: Term | None) -> frozenset[int]:
    """Return the timed parts that have begun and not ended."""
    match term:
        case WaitTerm(_, part):
            return find_open_parts(part)
        case TimedTerm(timed, part, begun):
            return find_open_parts(part) | ({timed} if begun else set())
        case SequenceTerm(head, rest):
            return find_open_parts(head).union(*(find_open_parts(part) for _, part in rest))
        case AllTerm(parts) | ChoiceTerm(parts):
            return frozenset().union(*(find_open_parts(part) for part in parts))
    return frozenset()
