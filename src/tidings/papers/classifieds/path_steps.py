"""The tests of a conjunction on each name, as a step of a path; and ranges of numbers as closed float64 intervals.

A name is an attribute as tests read it, so values of one name are all of one kind, or could not be read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings.algebra.law.typed_attribute import TypedAttribute, resolve_attribute, strip_unit
from tidings.model import Filter, In, Is, Quantifier, Range, Test, all_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

FIXED, SET, RANGE, OTHER = "fixed", "sets", "ranges", "others"
"""The kinds of steps; each is also the name of the table of `NodeGroup` that keeps its nodes."""

ANY = Quantifier.ANY

NUMBERS = (int, float, bool)
"""Types whose values are compared as float64."""


class PathStep(NamedTuple):
    """The requirement of a path on one name: its kind, the key that equal steps share, and the test itself."""

    name: TypedAttribute
    kind: str
    key: Any
    test: Filter


def to_step(test: Test) -> PathStep:
    """Return the step of one test."""
    name, condition = resolve_attribute(test.attribute, test.condition), strip_unit(test.condition)
    if test.quantifier is ANY:
        if isinstance(condition, Is):
            return PathStep(name, FIXED, condition.value, test)
        if isinstance(condition, Range):
            ends = (condition.low, condition.high, condition.low_open, condition.high_open)
            return PathStep(name, RANGE, ends, test)
        if isinstance(condition, In):
            return PathStep(name, SET, frozenset(condition.values), test)
    return PathStep(name, OTHER, (test,), test)


def to_steps(tests: Iterable[Test]) -> list[PathStep]:
    """Return the steps of a conjunction, one for each name.

    Tests that share a name become one step that requires all of them: the descent drops a name once it has taken a
    step of it, and of an event's several values one may satisfy the first test and another the second.
    """
    steps = [to_step(test) for test in tests]
    if len({step.name for step in steps}) == len(steps):
        return steps
    shared: dict[TypedAttribute, dict[Hashable, PathStep]] = {}
    for step in steps:
        shared.setdefault(step.name, {})[step.kind, step.key] = step
    return [_merge_steps(list(parts.values())) for parts in shared.values()]


def _merge_steps(steps: list[PathStep]) -> PathStep:
    tests = [step.test for step in steps]
    return steps[0] if len(steps) == 1 else PathStep(steps[0].name, OTHER, frozenset(tests), all_of(tests))


def is_exact(number: Any) -> bool:
    """Tell whether this is a number, and the same number in float64."""
    return type(number) in NUMBERS and float(number) == number


def close_ends(low: Any, high: Any, low_open: bool, high_open: bool) -> tuple[float, float] | None:
    """Return the closed ends of a range that holds the same float64 numbers; None where an end is not exact.

    >>> close_ends(1, 2, False, True)
    (1.0, 1.9999999999999998)
    """
    if not ((low is None or is_exact(low)) and (high is None or is_exact(high))):
        return None
    return (
        -math.inf if low is None else math.nextafter(low, math.inf) if low_open else float(low),
        math.inf if high is None else math.nextafter(high, -math.inf) if high_open else float(high),
    )
