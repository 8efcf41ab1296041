"""Why a subscription matches an event, or why not: the tests that decided it, with the values that they saw."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.algebra import Reading, Setting, holds
from tidings.algebra.law.typed_attribute import resolve_attribute, resolve_compared
from tidings.lang import render
from tidings.matcher.algorithm import SubId
from tidings.model import And, Compare, Filter, Not, Or, Test


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
    more: int = 0
    """How many tests decided it beside the reasons that are here."""

    def __str__(self) -> str:
        verdict = "matches" if self.matched else "does not match"
        lines = [f"`{self.subscription}` {verdict}: {self.filter}", *(f"  {reason}" for reason in self.reasons)]
        return "\n".join([*lines, f"  and {self.more:,} more"] if self.more else lines)


def explain_match(
    id: SubId, written: Filter, bound: Filter, reading: Reading, setting: Setting, *, most: int | None = None
) -> Explanation:
    """Return whether an event satisfies a filter, and the tests of it, written and bound, that decided.

    Of more than `most` reasons, the first are given, and the others are counted.
    """
    matched, deciding = _find_deciding(written, bound, reading, setting)
    reasons = tuple(_build_reason(*test, reading) for test in deciding[:most])
    return Explanation(id, render(written), matched, reasons, len(deciding) - len(reasons))


def _find_deciding(
    written: Filter, bound: Filter, reading: Reading, setting: Setting
) -> tuple[bool, list[tuple[Test, Test, bool]]]:
    """Return whether a filter holds, and the tests that decided it, written and bound, with whether each holds.

    Each test is evaluated once, however deep it is.
    """
    match written, bound:
        case Not(part), Not(bound_part):
            truth, deciding = _find_deciding(part, bound_part, reading, setting)
            return not truth, deciding
        case (And(parts), And(bound_parts)) | (Or(parts), Or(bound_parts)):
            pairs = zip(parts, bound_parts, strict=True)
            judged = [_find_deciding(part, bound_part, reading, setting) for part, bound_part in pairs]
            truths = [truth for truth, _ in judged]
            truth = all(truths) if isinstance(bound, And) else any(truths)
            # All parts decide a true `and` and a false `or`; otherwise those that agree with the outcome.
            return truth, [test for part_truth, tests in judged if part_truth == truth for test in tests]
        case Test(), Test():
            truth = holds(bound, reading, setting)
            return truth, [(written, bound, truth)]
    return holds(bound, reading, setting), []


def _build_reason(written: Test, bound: Test, truth: bool, reading: Reading) -> Reason:
    keys = [resolve_attribute(bound.attribute, bound.condition)]
    if isinstance(bound.condition, Compare):
        keys.append(resolve_compared(bound.condition))
    seen = [value for key in keys for value in reading.values.get(key, reading.elements.get(key.name, ()))]
    return Reason(render(written), truth, tuple(seen))
