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
class One:
    """One step."""

    step: int


@dataclass(frozen=True, slots=True)
class Again:
    """A step so many times more."""

    step: int
    least: int
    most: int | None
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Then:
    """Operands one after the other."""

    head: Term
    rest: tuple[tuple[Joint, Term], ...]


@dataclass(frozen=True, slots=True)
class All:
    """Operands in any order."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of the operands."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class InTime:
    """A part with time conditions; begun: an event has served it."""

    timed: int
    part: Term
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A part that follows another one by a joint."""

    joint: Joint
    part: Term


Term: TypeAlias = "One | Again | Then | All | OneOf | InTime | Wait"


def followed(left: Term | None, rest: tuple[tuple[Joint, Term], ...]) -> Term:
    """Return what is left of a sequence when this is left of its head."""
    if left is not None:
        return Then(left, rest)
    (joint, head), *others = rest
    return Wait(joint, Then(head, tuple(others)) if others else head)


def pending(term: Term) -> tuple[bool, frozenset[str]]:
    """Return whether only the next event may serve the term, and what must not happen before it is served."""
    match term:
        case Wait(joint, part):
            contiguous, guards = pending(part)
            return contiguous or joint.gap is Gap.NEXT, guards | frozenset(joint.without)
        case Then(head, _):
            return pending(head)
        case InTime(_, part, _):
            return pending(part)
        case All(parts):
            found = [pending(part) for part in parts]
            return any(one for one, _ in found), frozenset(name for _, names in found for name in names)
    return False, frozenset()


def obtainable(term: Term | None) -> tuple[frozenset[Mark], frozenset[int]]:
    """Return the moments that may still come, and the timed parts that may still be entered."""
    match term:
        case None:
            return frozenset(), frozenset()
        case One(step):
            return frozenset({Mark(step, "first"), Mark(step, "last")}), frozenset()
        case Again(step, _, _, begun):
            return frozenset({Mark(step, "last")} | (set() if begun else {Mark(step, "first")})), frozenset()
        case Wait(_, part):
            return obtainable(part)
        case InTime(timed, part, begun):
            marks, parts = obtainable(part)
            return marks, parts if begun else parts | {timed}
        case Then(head, rest):
            return _joined([head, *(part for _, part in rest)])
        case All(parts) | OneOf(parts):
            return _joined(list(parts))


def _joined(terms: list[Term]) -> tuple[frozenset[Mark], frozenset[int]]:
    found = [obtainable(term) for term in terms]
    return frozenset().union(*(marks for marks, _ in found)), frozenset().union(*(parts for _, parts in found))


def surely_entered(term: Term) -> frozenset[int]:
    """Return the timed parts that every match enters: their conditions bind from the first event on."""
    match term:
        case InTime(timed, part, _):
            return surely_entered(part) | {timed}
        case Then(head, rest):
            return surely_entered(head).union(*(surely_entered(part) for _, part in rest))
        case All(parts):
            return frozenset().union(*(surely_entered(part) for part in parts))
    return frozenset()


def open_parts(term: Term | None) -> frozenset[int]:
    """Return the timed parts that have begun and not ended."""
    match term:
        case Wait(_, part):
            return open_parts(part)
        case InTime(timed, part, begun):
            return open_parts(part) | ({timed} if begun else set())
        case Then(head, rest):
            return open_parts(head).union(*(open_parts(part) for _, part in rest))
        case All(parts) | OneOf(parts):
            return frozenset().union(*(open_parts(part) for part in parts))
    return frozenset()
