"""Why a subscription matches an event, or why not: the tests that decided it, with the values that they saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.algebra import Reading, Setting, holds
from tidings.algebra.law.typed_attribute import resolve_attribute, resolve_compared
from tidings.lang import render
from tidings.matcher.algorithm import SubId
from tidings.model import And, Compare, Filter, Not, Or, Test

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Reason:
    """One test, whether it holds, and the values it saw: none when the attribute is absent."""

    test: str
    holds: bool
    seen: tuple[object, ...]

    def __str__(self) -> str:
        seen = ", ".join(map(str, self.seen)) if self.seen else "nothing"
        return f"{'yes' if self.holds else 'no '}  {self.test}   (saw {seen})"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a subscription matched, and the tests that decided it."""

    subscription: SubId
    filter: str
    matched: bool
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        verdict = "matches" if self.matched else "does not match"
        lines = [f"`{self.subscription}` {verdict}: {self.filter}", *(f"  {reason}" for reason in self.reasons)]
        return "\n".join(lines)


def explain_match(id: SubId, written: Filter, bound: Filter, reading: Reading, setting: Setting) -> Explanation:
    """Return whether an event satisfies a filter, and the tests of it, written and bound, that decided."""
    matched = holds(bound, reading, setting)
    reasons = tuple(_find_reasons(written, bound, reading, setting))
    return Explanation(id, render(written), matched, reasons)


def _find_reasons(written: Filter, bound: Filter, reading: Reading, setting: Setting) -> Iterator[Reason]:
    truth = holds(bound, reading, setting)
    match written, bound:
        case Not(part), Not(bound_part):
            yield from _find_reasons(part, bound_part, reading, setting)
        case (And(parts), And(bound_parts)) | (Or(parts), Or(bound_parts)):
            # All parts decide a true `and` and a false `or`; otherwise those that agree with the outcome.
            for part, bound_part in zip(parts, bound_parts, strict=True):
                if holds(bound_part, reading, setting) == truth:
                    yield from _find_reasons(part, bound_part, reading, setting)
        case Test(), Test(attribute, condition):
            keys = [resolve_attribute(attribute, condition)]
            if isinstance(condition, Compare):
                keys.append(resolve_compared(condition))
            seen = [value for key in keys for value in reading.values.get(key, reading.elements.get(key.name, ()))]
            yield Reason(render(written), truth, tuple(seen))
