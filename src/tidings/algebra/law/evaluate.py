"""The law: whether an event satisfies a filter. Written for reading; every matcher is held to it.

`docs/language.md` says the same in words. A value that is itself a range satisfies a condition when
some point of it does; an attribute that is absent satisfies no test, so `not` of a test accepts it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from tidings import model
from tidings.algebra.law.bind import Binder, fold_names
from tidings.algebra.law.coerce import coerce
from tidings.algebra.law.event_reading import AttributeReader, Reading
from tidings.algebra.law.requirements import collect_requirements
from tidings.algebra.law.typed_attribute import Mismatch, resolve_attribute, resolve_compared, strip_unit
from tidings.concepts import Ontology, Vocabulary, parse_now
from tidings.errors import AmbiguousConcept
from tidings.model.text_tests import compile_text_test
from tidings.model.values import KIND_BY_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Regions

EARTH_RADIUS_M = 6_371_008.8
"""The mean radius of the Earth; `near` is the great circle on this sphere."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What the result of a bound filter depends on besides the event: the ontology and the current time."""

    ontology: Ontology
    now: datetime


def evaluate(
    tree: model.Filter,
    event: model.EventLike,
    *,
    schema: model.Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> bool:
    """Tell whether the event satisfies the filter.

    >>> from tidings import parse
    >>> evaluate(parse("make = 'ford' and price < 9000"), {"make": "ford", "price": 8500})
    True

    Kinds come from `schema` and `ontology`; an event that breaks these raises `BadEvent`. Of what is not declared,
    each test reads the values as the kind it asks for, and what it cannot read does not satisfy it. For many
    filters or events use `td.Matcher`, which prepares them once.
    """
    vocabulary = Vocabulary.of(schema, ontology, regions)
    bound, reader = prepare_filter(model.require_filter(tree), vocabulary)
    setting = Setting(vocabulary.concepts, parse_now(now) or datetime.now(UTC))
    return holds(bound, reader.read(event, setting.now), setting)


@lru_cache(maxsize=4096)
def prepare_filter(tree: model.Filter, vocabulary: Vocabulary) -> tuple[model.Filter, AttributeReader]:
    """Bind a filter and build its reader; cached by filter and vocabulary."""
    folded = fold_names(tree, vocabulary.concepts)
    reader = AttributeReader(collect_requirements([folded], vocabulary), vocabulary.concepts)
    return Binder(vocabulary).bind_filter(folded), reader


def holds(tree: model.Filter, reading: Reading, setting: Setting) -> bool:
    """Tell whether a bound filter accepts a reading."""
    match tree:
        case model.Test():
            return _evaluate_test(tree, reading, setting)
        case model.And(parts):
            return all(holds(part, reading, setting) for part in parts)
        case model.Or(parts):
            return any(holds(part, reading, setting) for part in parts)
        case model.Not(part):
            return not holds(part, reading, setting)


_SPECIAL = frozenset((model.Exists, model.IsNull, model.Has, model.Compare))
"""Conditions that are not decided value by value; most tests have others, so they are told apart by type."""


def _evaluate_test(test: model.Test, reading: Reading, setting: Setting) -> bool:
    condition = test.condition
    values = reading.values.get(resolve_attribute(test.attribute, condition), ())
    if type(condition) in _SPECIAL:
        return _evaluate_special(test, values, reading, setting)
    return _quantify(test.quantifier, values, lambda value: satisfies(value, condition, setting))


def _evaluate_special(test: model.Test, values: tuple[Any, ...], reading: Reading, setting: Setting) -> bool:
    name, condition, quantifier = test.attribute, test.condition, test.quantifier
    match condition:
        case model.IsNull():
            return name in reading.nulls
        case model.Has(inner):
            elements = reading.elements.get(name, ())
            # An element that is no record (a mismatch) satisfies no filter, not even a `not`.
            return _quantify(quantifier, elements, lambda part: type(part) is Reading and holds(inner, part, setting))
        case model.Compare(op):
            others = reading.values.get(resolve_compared(condition), ())
            satisfied = _quantify(quantifier, values, lambda left: any(compares(op, left, right) for right in others))
            return bool(others) and satisfied
    return bool(values) or bool(reading.elements.get(name))  # `exists`


def _quantify(quantifier: model.Quantifier, values: tuple[Any, ...], accepts: Callable[[Any], bool]) -> bool:
    """Apply a quantifier (any, all, none) to the values; without a value, each of them is false."""
    if not values:
        return False
    match quantifier:
        case model.Quantifier.ANY:
            return any(map(accepts, values))
        case model.Quantifier.ALL:
            return all(map(accepts, values))
        case model.Quantifier.NONE:
            return not any(map(accepts, values))


def satisfies(value: Any, condition: model.Condition, setting: Setting) -> bool:
    """Tell whether one value satisfies a condition; a mismatch satisfies none."""
    if type(value) is Mismatch:
        return False
    match strip_unit(condition):
        case model.Is(wanted):
            return _equals(value, wanted)
        case model.In(wanted):
            return any(_equals(value, value_wanted) for value_wanted in wanted)
        case model.Range() as span:
            return meets(value, span)
        case model.SameText() as same:
            return isinstance(value, str) and value.casefold() in same.folded
        case model.TextTest() as test:
            return compile_text_test(test)(value)
        case model.IsA(concept, tree):
            return _is_a(value, concept, tree, setting.ontology)
        case model.Within(area):
            return area.holds(value)
        case model.Near(center, metres):
            return compute_distance_m(center, value) <= metres
        case model.InNetworks(networks):
            return any(value in network for network in networks)
        case model.Age(seconds):
            return meets(_compute_age(value, setting.now), seconds)
    msg = f"{condition!r} is not a condition on one value"
    raise TypeError(msg)


def _is_a(value: str, concept: str, tree: str | None, ontology: Ontology) -> bool:
    """Tell whether a name is a concept or below it; an ambiguous name is below none."""
    try:
        return ontology.is_a(value, concept, tree=tree)
    except AmbiguousConcept:
        return False


def _equals(value: Any, wanted: Any) -> bool:
    return meets(wanted, value) if isinstance(value, model.Range) else bool(value == wanted)


def meets(value: Any, span: model.Range) -> bool:
    """Tell whether a value, or some point of a value that is a range, lies in the span."""
    low, high, low_open, high_open = _split_ends(value)
    if not _reaches(span.low, span.high, span.low_open or span.high_open):  # `(2 .. 2)` holds no point
        return False
    return _reaches(low, span.high, low_open or span.high_open) and _reaches(span.low, high, span.low_open or high_open)


def _split_ends(value: Any) -> tuple[Any, Any, bool, bool]:
    if isinstance(value, model.Range):
        return value.low, value.high, value.low_open, value.high_open
    return value, value, False, False


def _reaches(low: Any, high: Any, strictly: bool) -> bool:
    if low is None or high is None:
        return True
    return bool(low < high if strictly else low <= high)


def _compute_age(value: Any, now: datetime) -> float | model.Range:
    if isinstance(value, model.Range):
        ends: tuple[Any, Any] = (value.high, value.low)  # times: an age is asked of no other range
        youngest, oldest = (None if end is None else (now - end).total_seconds() for end in ends)
        return model.Range(youngest, oldest, value.high_open, value.low_open)
    return float((now - value).total_seconds())


def compares(op: model.Comparison, left: Any, right: Any) -> bool:
    """Compare two values, or ranges by some pair of their points; values of different kinds do not satisfy."""
    left, right = _align_types(left, right)
    if not is_comparable(op, left, right):
        return False
    low, high, low_open, high_open = _split_ends(left)
    low2, high2, low2_open, high2_open = _split_ends(right)
    match op:
        case model.Comparison.EQ:
            return meets(left, right) if isinstance(right, model.Range) else _equals(left, right)
        case model.Comparison.LT:
            return _reaches(low, high2, strictly=True)
        case model.Comparison.LE:
            return _reaches(low, high2, low_open or high2_open)
        case model.Comparison.GT:
            return _reaches(low2, high, strictly=True)
        case model.Comparison.GE:
            return _reaches(low2, high, low2_open or high_open)


def _align_types(left: Any, right: Any) -> tuple[Any, Any]:
    """Parse text that is compared with a number or a time as that kind; unparseable text is left as it is."""
    if isinstance(left, str) is isinstance(right, str):
        return left, right
    text, other = (left, right) if isinstance(left, str) else (right, left)
    kind = other.kind if isinstance(other, model.Range) else KIND_BY_TYPE.get(type(other))
    if kind not in (model.Kind.NUMBER, model.Kind.TIME):
        return left, right
    try:
        parsed = coerce(text, kind)
    except ValueError:
        return left, right
    return (parsed, right) if text is left else (left, parsed)


def is_comparable(op: model.Comparison, left: Any, right: Any) -> bool:
    """Tell whether two values have the same kind and, for anything but equality, one that is ordered."""
    if type(left) is Mismatch or type(right) is Mismatch:
        return False
    left_kind, right_kind = (
        value.kind if isinstance(value, model.Range) else _find_kind(value) for value in (left, right)
    )
    if left_kind is None or right_kind is None:  # a range without ends is of numbers or of times, as the other side is
        return (left_kind or right_kind or model.Kind.NUMBER) in (model.Kind.NUMBER, model.Kind.TIME)
    return left_kind == right_kind and (
        op is model.Comparison.EQ or left_kind in (model.Kind.NUMBER, model.Kind.TEXT, model.Kind.TIME)
    )


def _find_kind(value: Any) -> model.Kind | type:
    if isinstance(value, IPv4Address | IPv6Address):
        return model.Kind.IP
    return KIND_BY_TYPE.get(type(value), type(value))


def compute_distance_m(start: model.Point, end: model.Point) -> float:
    """Return the great-circle distance in metres."""
    lat1, lat2 = math.radians(start.lat), math.radians(end.lat)
    dlat, dlon = lat2 - lat1, math.radians(end.lon - start.lon)
    chord = math.sin(dlat / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(dlon / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(chord)))
