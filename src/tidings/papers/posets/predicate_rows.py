"""Conjunctions sorted into what can be looked up and what has to be asked, for the counting matcher.

Equality is looked up by its value, a range of numbers or times by the numbers the event has; everything else (text
patterns, text ranges, places, concepts, ages, quantifiers, negations, records, two attributes compared, ends that
float64 cannot hold) is a predicate that the law decides.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.algebra.law.typed_attribute import resolve_attribute, resolve_test, strip_unit
from tidings.algebra.normal_form import list_conjunctions
from tidings.errors import TooLarge
from tidings.kernels.papers.counting import HIGH_OPEN, LOW_OPEN
from tidings.model import And, In, Is, IsNull, Quantifier, Range, Test
from tidings.papers.common.intervals import EXACT_INT, to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.algebra import Reading
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.model import Filter

INFINITE = float("inf")

MAX_LOOKED_UP = 200
"""So many predicates of a row are looked up; a counter has eight bits of needs. The rest are asked."""

Equality: TypeAlias = "tuple[TypedAttribute, *tuple[Any, ...]]"
"""An attribute as it is read, and its value or the values of a set."""

Segment: TypeAlias = "tuple[float, int, float, int]"
"""The two ends of a number or range of an event, each with its side: -1 just below the number, 1 just above."""


RangePredicate: TypeAlias = "tuple[TypedAttribute, float, float, int]"
"""A range predicate: the attribute, the ends, and the bits of those that are open. Plain, since there are millions."""


class PredicateRow(NamedTuple):
    """One conjunction: all of these must hold."""

    equalities: tuple[Equality, ...]
    ranges: tuple[RangePredicate, ...]
    evaluated: tuple[Filter, ...]


def to_rows(tree: Filter) -> tuple[PredicateRow, ...]:
    """Return the conjunctions of a filter that can hold at all; one too large for that is a single predicate."""
    parts = tree.parts if isinstance(tree, And) else (tree,)
    if all(type(part) is Test for part in parts):  # the usual filter
        conjunctions: Sequence[Sequence[Filter]] = (parts,)
    else:
        try:
            conjunctions = list_conjunctions(tree)
        except TooLarge:
            conjunctions = ((tree,),)
    return tuple(row for literals in conjunctions if (row := _to_row(literals)) is not None)


def _to_row(literals: Sequence[Filter]) -> PredicateRow | None:
    equalities: dict[Equality, None] = {}
    ranges: dict[RangePredicate, None] = {}
    asked: dict[Filter, None] = {}
    for literal in literals:
        looked_up = len(equalities) + len(ranges) < MAX_LOOKED_UP
        if not looked_up or type(literal) is not Test or literal.quantifier is not Quantifier.ANY:
            asked[literal] = None
            continue
        condition, key = strip_unit(literal.condition), resolve_attribute(literal.attribute, literal.condition)
        if type(condition) is Is:
            equalities[key, condition.value] = None
        elif type(condition) is Range and (interval := _to_range_predicate(key, condition)):
            if interval[1] == interval[2] and interval[3]:
                return None  # `(2 .. 2)` holds no point
            ranges[interval] = None
        elif type(condition) is In:
            equalities[key, *condition.values] = None
        else:
            asked[literal] = None
    return PredicateRow(tuple(equalities), tuple(ranges), tuple(asked))


def _to_range_predicate(key: TypedAttribute, ends: Range) -> RangePredicate | None:
    low = -INFINITE if ends.low is None else _to_exact_float(ends.low)
    high = INFINITE if ends.high is None else _to_exact_float(ends.high)
    if low is None or high is None:
        return None
    return key, low, high, LOW_OPEN * ends.low_open + HIGH_OPEN * ends.high_open


def _to_exact_float(end: Any) -> float | None:
    """Return an end as a float64 number, if it is one."""
    if type(end) is float:
        return end
    if type(end) is int and -EXACT_INT <= end <= EXACT_INT:
        return float(end)
    spot = _nearest_float(end)
    return spot[0] if spot is not None and not spot[1] else None


def _nearest_float(value: Any) -> tuple[float, int] | None:
    """Return the float64 number next to a number or time, and on which side of it that lies."""
    if type(value) is float:
        return value, 0
    if type(value) is datetime:
        value = to_micros(value)
    elif type(value) is not int:
        return None
    near = float(value)
    return near, (value > near) - (value < near)


def to_segments(values: Sequence[Any]) -> list[Segment]:
    """Return what an attribute's numbers, times and ranges cover, ascending and apart; other values have no place.

    A range of no width, which only the conversion of units can leave, stays as it is: see `odd`.
    """
    if len(values) == 1:
        segment = _to_segment(values[0])
        return [] if segment is None else [segment]
    segments = sorted(segment for value in values if (segment := _to_segment(value)) is not None)
    if any(map(is_inverted, segments)):
        return segments
    merged: list[Segment] = []
    for segment in segments:
        if merged and segment[:2] <= merged[-1][2:]:
            merged[-1] = (*merged[-1][:2], *max(merged[-1][2:], segment[2:]))
        else:
            merged.append(segment)
    return merged


def is_inverted(segment: Segment) -> bool:
    """Tell whether a segment ends before it begins; the law still compares its ends."""
    return segment[:2] > segment[2:]


def _to_segment(value: Any) -> Segment | None:
    if type(value) is not Range:
        spot = _nearest_float(value)
        return None if spot is None else (*spot, *spot)
    low = (-INFINITE, 0) if value.low is None else _nearest_float(value.low)
    high = (INFINITE, 0) if value.high is None else _nearest_float(value.high)
    if low is None or high is None:
        return None
    return low[0], low[1] or int(value.low_open), high[0], high[1] or -int(value.high_open)


def find_required_attribute(literal: Filter) -> TypedAttribute | None:
    """Return the attribute without which a predicate cannot hold, if there is one, as the predicate reads it."""
    return resolve_test(literal) if type(literal) is Test and type(literal.condition) is not IsNull else None


def has_attribute(key: TypedAttribute | None, reading: Reading) -> bool:
    """Tell whether an event has the attribute that is needed."""
    return key is None or bool(reading.values.get(key)) or bool(reading.elements.get(key.name))
