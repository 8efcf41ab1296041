"""What a conjunction asks of each name, as a step of a path; and numbers as closed float64 intervals.

A name is an attribute as tests read it, so values of one name are all of one kind, or could not be read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings.algebra.law.typed_attribute import resolve_attribute, strip_unit
from tidings.model import In, Is, Quantifier, Range, Test, all_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.model import Filter

FIXED, SET, RANGE, OTHER = "fixed", "sets", "ranges", "others"
"""The sorts of steps; each is also the name of the table of `Group` that keeps its nodes."""

ANY = Quantifier.ANY

NUMBERS = (int, float, bool)
"""Types whose values stand for themselves as float64."""


class PathStep(NamedTuple):
    """What a path asks of one name: a sort, the key that equal steps share, and the test as the law reads it."""

    name: TypedAttribute
    kind: str
    key: Any
    test: Filter


def to_step(test: Test) -> PathStep:
    """Return the step of one test."""
    name, condition = resolve_attribute(test.attribute, test.condition), strip_unit(test.condition)
    kind = type(condition)
    if test.quantifier is ANY:
        if kind is Is:
            return PathStep(name, FIXED, condition.value, test)  # type: ignore[union-attr]
        if kind is Range:
            ends = (condition.low, condition.high, condition.low_open, condition.high_open)  # type: ignore[union-attr]
            return PathStep(name, RANGE, ends, test)
        if kind is In:
            return PathStep(name, SET, frozenset(condition.values), test)  # type: ignore[union-attr]
    return PathStep(name, OTHER, (test,), test)


def to_steps(tests: Iterable[Test]) -> list[PathStep]:
    """Return the steps of a conjunction, one for each name.

    Tests that share a name become one step that asks for all of them: the descent leaves a name behind once it has
    taken it, and of an event's several values one may satisfy the first test and another the second.
    """
    steps = [to_step(test) for test in tests]
    if len({step.name for step in steps}) == len(steps):
        return steps
    shared: dict[TypedAttribute, dict[Any, PathStep]] = {}
    for step in steps:
        shared.setdefault(step.name, {})[step.kind, step.key] = step
    return [_merge_steps(name, list(parts.values())) for name, parts in shared.items()]


def _merge_steps(name: TypedAttribute, steps: list[PathStep]) -> PathStep:
    if len(steps) == 1:
        return steps[0]
    tests = [step.test for step in steps]
    return PathStep(name, OTHER, frozenset(tests), all_of(tests))


def is_exact(number: Any) -> bool:
    """Tell whether this is a number, and the same number in float64."""
    return type(number) in NUMBERS and float(number) == number


def close_ends(low: Any, high: Any, low_open: bool, high_open: bool) -> tuple[float, float] | None:
    """Return the closed ends of a range that holds the same float64 numbers; nothing where an end is not exact.

    >>> closed(1, 2, False, True)
    (1.0, 1.9999999999999998)
    """
    if not ((low is None or is_exact(low)) and (high is None or is_exact(high))):
        return None
    return (
        -math.inf if low is None else math.nextafter(low, math.inf) if low_open else float(low),
        math.inf if high is None else math.nextafter(high, -math.inf) if high_open else float(high),
    )
