"""Terms: what is left of a pattern's tree after some of its events. They are values, so equal ones are one.

A term knows what may come next: whether only the very next event may serve it, what must not happen before, which
moments may still come, and which timed parts have begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tidings.model.patterns import Gap, Joint

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, order=True)
class StepMoment:
    """A moment that a condition may ask for: a step's first or last event, or (`within`) a part's first."""

    step: int  # of the step, or of the part that `within` bounds
    which: str  # first, last, begin


@dataclass(frozen=True, slots=True)
class StepTerm:
    """One step."""

    step: int


@dataclass(frozen=True, slots=True)
class RepeatTerm:
    """A step that is still to be served `least` to `most` times; `begun`: an event has served it."""

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
    """Return the rest of a sequence after an event; `left` is the rest of its first part, `None` if it is complete."""
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
        case SequenceTerm(part, _) | TimedTerm(_, part):
            return find_wait_conditions(part)
        case AllTerm(parts):
            waits = [find_wait_conditions(part) for part in parts]
            return any(is_contiguous for is_contiguous, _ in waits), frozenset().union(*(names for _, names in waits))
    return False, frozenset()


def _list_operands(term: Term) -> tuple[Term, ...]:
    match term:
        case SequenceTerm(head, rest):
            return (head, *(part for _, part in rest))
        case AllTerm(parts) | ChoiceTerm(parts):
            return parts
        case TimedTerm(_, part) | WaitTerm(_, part):
            return (part,)
    return ()


def _walk(term: Term | None) -> Iterator[Term]:
    if term is not None:
        yield term
        for part in _list_operands(term):
            yield from _walk(part)


def find_obtainable(term: Term | None) -> tuple[frozenset[StepMoment], frozenset[int]]:
    """Return the moments that may still come, and the timed parts that may still be entered."""
    moments, parts = set(), set()
    for part in _walk(term):
        match part:
            case StepTerm(step) | RepeatTerm(step, begun=False):
                moments |= {StepMoment(step, "first"), StepMoment(step, "last")}
            case RepeatTerm(step):
                moments.add(StepMoment(step, "last"))
            case TimedTerm(timed, begun=False):
                parts.add(timed)
    return frozenset(moments), frozenset(parts)


def find_certain_parts(term: Term) -> frozenset[int]:
    """Return the timed parts that every match enters: their conditions bind from the first event on."""
    if isinstance(term, ChoiceTerm):
        return frozenset()
    own = {term.timed} if isinstance(term, TimedTerm) else set()
    return frozenset(own).union(*map(find_certain_parts, _list_operands(term)))


def find_open_parts(term: Term | None) -> frozenset[int]:
    """Return the timed parts that have begun and not ended."""
    return frozenset(part.timed for part in _walk(term) if isinstance(part, TimedTerm) and part.begun)
