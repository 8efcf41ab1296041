"""Filters as boxes, which is all that range matchers support: for each attribute one interval of numbers or of times.

A box is a conjunction of intervals on different attributes; a filter is one box or, through its normal form, several.
Two tests of one attribute are intersected: that is exact for an event with one value, and on events with several the
filters themselves are evaluated. Ends are float64, exactly or not at all; a time is its microseconds. Everything else
is refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute, resolve_attribute, strip_unit
from tidings.algebra.normal_form import list_conjunctions
from tidings.engine.compile.columns import EXACT
from tidings.errors import Unsupported
from tidings.kernels.papers.domain_cells import HIGH_OPEN, LOW_OPEN
from tidings.lang import render
from tidings.model import And, Exists, Filter, In, Is, Kind, Or, Quantifier, Range, Test
from tidings.model.values import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidings.algebra.law.event_reading import ReadValue
    from tidings.model import Condition

INFINITY = float("inf")

NO_COORDINATE = float("nan")
"""The coordinate of an attribute that an event lacks."""


class Interval(NamedTuple):
    """Everything between two ends; `ends` says which of them are open."""

    low: float
    high: float
    ends: int = 0

    def intersect(self, other: Interval) -> Interval | None:
        """Return the intersection, or None if it is empty."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        ends = 0
        for interval in (self, other):
            ends |= (interval.ends & LOW_OPEN if interval.low == low else 0) | (
                interval.ends & HIGH_OPEN if interval.high == high else 0
            )
        return None if low > high or (low == high and ends) else Interval(low, high, ends)


IntervalBox: TypeAlias = "Mapping[TypedAttribute, Interval]"
"""Intervals by attribute and how it is read."""

ALL = Interval(-INFINITY, INFINITY)
"""The interval of `exists`: any value."""


def to_boxes(tree: Filter, kind: str) -> list[dict[TypedAttribute, Interval]]:
    """Return the filter as boxes of which one must contain the event; a part that is not an interval is refused."""
    parts = tree.parts if type(tree) is And else (tree,)
    intervals = list(map(_find_interval, parts))
    if None not in intervals:  # a conjunction of plain tests, the usual filter
        boxes = [_build_box(parts, intervals)]
    else:
        rows = list_conjunctions(_expand_sets(tree, kind))
        boxes = [_build_box(row, map(_find_interval, row)) for row in rows]
    return [box for box in boxes if box is not None]


def _make_unsupported(kind: str, part: Filter, *, reason: str = "") -> Unsupported:
    text = render(part)
    msg = (
        f"the matcher `{kind}` compares numbers and times with ranges and equality, under `and` and `or`;"
        f" {reason or f'`{text}` is beyond it'}; use td.Matcher(), which takes every filter"
    )
    return Unsupported(msg, kind=kind, part=text)


def _find_interval(part: Filter) -> Interval | None:
    return to_interval(part.condition) if type(part) is Test and part.quantifier is Quantifier.ANY else None


def _expand_sets(tree: Filter, kind: str) -> Filter:
    """Return the filter with sets as `or`s of equalities; refuse whatever is not an interval."""
    match tree:
        case And(parts):
            return And(tuple(_expand_sets(part, kind) for part in parts))
        case Or(parts):
            return Or(tuple(_expand_sets(part, kind) for part in parts))
        case Test(attribute, In(values), Quantifier.ANY) if to_interval(Is(values[0])) is not None:
            return Or(tuple(_check_test(Test(attribute, Is(value)), kind) for value in values))
        case Test(quantifier=Quantifier.ANY):
            return _check_test(tree, kind)
    raise _make_unsupported(kind, tree)


def _check_test(test: Test, kind: str) -> Test:
    condition = test.condition
    if to_interval(condition) is not None:
        return test
    text = render(test)
    is_number = isinstance(condition, Is | Range) and condition.kind is Kind.NUMBER
    reason = f"its ends are 64-bit floats, and those of `{text}` are none" if is_number else ""
    raise _make_unsupported(kind, test, reason=reason)


def _build_box(tests: Iterable[Any], intervals: Iterable[Any]) -> dict[TypedAttribute, Interval] | None:
    """Return a conjunction of tests, each with its interval, as a box; None, if two of them exclude each other."""
    box: dict[TypedAttribute, Interval] = {}
    for test, interval in zip(tests, intervals, strict=True):
        key = resolve_attribute(test.attribute, test.condition)
        common = box[key].intersect(interval) if key in box else interval
        if common is None:
            return None
        box[key] = common
    return box


def to_interval(condition: Condition) -> Interval | None:
    """Return a condition as an interval, or None if it is none; `(2 .. 2)` gives an interval without points."""
    condition = strip_unit(condition)
    if type(condition) is Range:
        low = -INFINITY if condition.low is None else to_point(condition.low)
        high = INFINITY if condition.high is None else to_point(condition.high)
        if low is None or high is None:
            return None
        return Interval(low, high, LOW_OPEN * condition.low_open | HIGH_OPEN * condition.high_open)
    if type(condition) is Is:
        point = to_point(condition.value)
        return None if point is None else Interval(point, point)
    return ALL if type(condition) is Exists else None


def to_point(value: object) -> float | None:
    """Return a number or a time as a float that equals it, or None."""
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value) if -EXACT <= value <= EXACT or int(float(value)) == value else None
    if type(value) is datetime:
        return to_point(to_microseconds(value))
    return None


def to_coordinate(values: tuple[ReadValue, ...]) -> float | None:
    """Return an event's only value as a coordinate; None for several values, ranges and what no float equals.

    A value that could not be read lies in no interval, as if the attribute were absent: NaN.
    """
    if len(values) == 1 and type(values[0]) is not Mismatch:
        return to_point(values[0])
    readable = [value for value in values if type(value) is not Mismatch]
    return NO_COORDINATE if not readable else to_point(readable[0]) if len(readable) == 1 else None
