"""Conjunctions sorted into predicates that are looked up and predicates that are evaluated, for the counting matcher.

Equality is looked up by its value, a range of numbers or times by the numbers the event has; everything else (text
patterns, text ranges, places, concepts, ages, quantifiers, negations, records, two attributes compared, ends that
float64 cannot hold) is evaluated by `algebra.holds`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.algebra.law.typed_attribute import resolve_attribute, resolve_test, strip_unit
from tidings.algebra.normal_form import list_conjunctions
from tidings.errors import TooLarge
from tidings.model import And, In, Is, IsNull, Quantifier, Range, Test
from tidings.papers.common.intervals import INFINITY, to_interval, to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.algebra import Reading
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.model import Filter

MAX_LOOKED_UP = 200
"""Predicates of a row that are looked up at most, since its required count has eight bits; the rest are evaluated."""

Equality: TypeAlias = "tuple[TypedAttribute, *tuple[Any, ...]]"
"""An attribute as it is read, and its value or the values of a set."""

Segment: TypeAlias = "tuple[float, int, float, int]"
"""The two ends of a number or range of an event, each with its side: -1 just below the number, 1 just above."""

RangePredicate: TypeAlias = "tuple[TypedAttribute, float, float, int]"
"""A range predicate: the attribute, the ends, and the bits of those that are open; a tuple, as there are millions."""


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
    evaluated: dict[Filter, None] = {}
    for literal in literals:
        looked_up = len(equalities) + len(ranges) < MAX_LOOKED_UP
        if not looked_up or type(literal) is not Test or literal.quantifier is not Quantifier.ANY:
            evaluated[literal] = None
            continue
        condition, key = strip_unit(literal.condition), resolve_attribute(literal.attribute, literal.condition)
        if type(condition) is Is:
            equalities[key, condition.value] = None
        elif type(condition) is Range and (interval := to_interval(condition)):
            if interval.low == interval.high and interval.ends:
                return None  # `(2 .. 2)` holds no point
            ranges[key, *interval] = None
        elif type(condition) is In:
            equalities[key, *condition.values] = None
        else:
            evaluated[literal] = None
    return PredicateRow(tuple(equalities), tuple(ranges), tuple(evaluated))


def _nearest_float(value: Any) -> tuple[float, int] | None:
    """Return the float64 number nearest to a number or time, and on which side of it that lies."""
    if type(value) is float:
        return value, 0
    if type(value) is datetime:
        value = to_micros(value)
    elif type(value) is not int:
        return None
    near = float(value)
    return near, (value > near) - (value < near)


def to_segments(values: Sequence[Any]) -> list[Segment]:
    """Return the segments that an attribute's numbers, times and ranges cover, ascending and apart.

    Other values have none. A range that is inverted, which only the conversion of units can leave, stays as it is.
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
    """Tell whether a segment ends before it begins; evaluation still compares its ends one by one."""
    return segment[:2] > segment[2:]


def _to_segment(value: Any) -> Segment | None:
    if type(value) is not Range:
        spot = _nearest_float(value)
        return None if spot is None else (*spot, *spot)
    low = (-INFINITY, 0) if value.low is None else _nearest_float(value.low)
    high = (INFINITY, 0) if value.high is None else _nearest_float(value.high)
    if low is None or high is None:
        return None
    return low[0], low[1] or int(value.low_open), high[0], high[1] or -int(value.high_open)


def find_required_attribute(literal: Filter) -> TypedAttribute | None:
    """Return the attribute without which a predicate cannot hold, if there is one, as the predicate reads it."""
    return resolve_test(literal) if type(literal) is Test and type(literal.condition) is not IsNull else None


def has_attribute(key: TypedAttribute | None, reading: Reading) -> bool:
    """Tell whether an event has the attribute that is needed."""
    return key is None or bool(reading.values.get(key)) or bool(reading.elements.get(key.name))
