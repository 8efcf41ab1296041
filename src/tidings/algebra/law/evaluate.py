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

from tidings.algebra.law.bind import Binder, fold_names
from tidings.algebra.law.coerce import coerce
from tidings.algebra.law.event_reading import Reader, Reading
from tidings.algebra.law.requirements import needs_of
from tidings.algebra.law.typed_attribute import Mismatch, compared_with, typed, without_unit
from tidings.concepts import Ontology, Vocabulary, parse_now
from tidings.errors import AmbiguousConcept
from tidings.model import (
    Age,
    And,
    Compare,
    Comparison,
    Exists,
    Has,
    In,
    InNetworks,
    Is,
    IsA,
    IsNull,
    Kind,
    Near,
    Not,
    Or,
    Point,
    Quantifier,
    Range,
    SameText,
    Test,
    TextTest,
    Within,
    require_filter,
)
from tidings.model.text_tests import text_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Regions
    from tidings.model import Condition, EventLike, Filter, Schema

EARTH_RADIUS_M = 6_371_008.8
"""The mean radius of the Earth; `near` is the great circle on this sphere."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a filter's meaning depends on beside the event: the concepts, and what time it is."""

    ontology: Ontology
    now: datetime


def evaluate(
    tree: Filter,
    event: EventLike,
    *,
    schema: Schema | None = None,
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
    Vocabulary.of(schema, ontology, regions)
    bound, reader, used = prepared(require_filter(tree), schema, ontology, regions)
    setting = Setting(used, parse_now(now) or datetime.now(UTC))
    return holds(bound, reader.read(event, setting.now), setting)


@lru_cache(maxsize=4096)
def prepared(
    tree: Filter, schema: Schema | None, ontology: Ontology | None, regions: Regions | None
) -> tuple[Filter, Reader, Ontology]:
    """Bind a filter and build its reader, once for each filter and surroundings."""
    used = ontology or Ontology()
    folded = fold_names(tree, used)
    needs = needs_of([folded], schema=schema, ontology=used)
    return Binder(schema, used, regions).bound(folded), Reader(needs, used), used


def holds(tree: Filter, reading: Reading, setting: Setting) -> bool:
    """Tell whether a bound filter accepts a reading."""
    match tree:
        case Test(attribute, condition, quantifier):
            return _test(attribute, condition, quantifier, reading, setting)
        case And(parts):
            return all(holds(part, reading, setting) for part in parts)
        case Or(parts):
            return any(holds(part, reading, setting) for part in parts)
        case Not(part):
            return not holds(part, reading, setting)


_OF_MORE = frozenset((Exists, IsNull, Has, Compare))
"""Conditions that ask for more than values one by one; most tests are of others, so these are told at a glance."""


def _test(name: str, condition: Condition, quantifier: Quantifier, reading: Reading, setting: Setting) -> bool:
    values = reading.values.get(typed(name, condition), ())
    if type(condition) in _OF_MORE:
        return _test_more(name, condition, quantifier, values, reading, setting)
    return _quantified(quantifier, values, lambda value: satisfies(value, condition, setting))


def _test_more(
    name: str, condition: Condition, quantifier: Quantifier, values: tuple[Any, ...], reading: Reading, setting: Setting
) -> bool:
    match condition:
        case IsNull():
            return name in reading.nulls
        case Has(inner):
            return _quantified(quantifier, reading.elements.get(name, ()), lambda part: _has(part, inner, setting))
        case Compare(op):
            others = reading.values.get(compared_with(condition), ())
            return bool(others) and _quantified(
                quantifier, values, lambda value: any(compares(op, value, right) for right in others)
            )
    return bool(values) or bool(reading.elements.get(name))  # `exists`


def _has(part: Reading | Mismatch, inner: Filter, setting: Setting) -> bool:
    """Tell whether one element satisfies a filter; what is no record satisfies none, not even a negation."""
    return isinstance(part, Reading) and holds(inner, part, setting)


def _quantified(quantifier: Quantifier, values: tuple[Any, ...], accepts: Callable[[Any], bool]) -> bool:
    """Any, all or none of the values; where there is no value, each of them is false."""
    if not values:
        return False
    match quantifier:
        case Quantifier.ANY:
            return any(map(accepts, values))
        case Quantifier.ALL:
            return all(map(accepts, values))
        case Quantifier.NONE:
            return not any(map(accepts, values))


def satisfies(value: Any, condition: Condition, setting: Setting) -> bool:
    """Tell whether one value satisfies a condition; one that could not be read satisfies none."""
    if type(value) is Mismatch:
        return False
    match without_unit(condition):
        case Is(wanted):
            return _equals(value, wanted)
        case In(wanted):
            return any(_equals(value, one) for one in wanted)
        case Range() as span:
            return meets(value, span)
        case SameText() as same:
            return isinstance(value, str) and value.casefold() in same.folded
        case TextTest() as test:
            return text_test(test)(value)
        case IsA(concept, tree):
            return _is_a(value, concept, tree, setting.ontology)
        case Within(area):
            return area.holds(value)
        case Near(center, metres):
            return distance_m(center, value) <= metres
        case InNetworks(networks):
            return any(value in network for network in networks)
        case Age(seconds):
            return meets(_age(value, setting.now), seconds)
    msg = f"{condition!r} is not a condition on one value"
    raise TypeError(msg)


def _is_a(value: str, concept: str, tree: str | None, ontology: Ontology) -> bool:
    """Tell whether a name is below a concept; one that several concepts share is below none."""
    try:
        return ontology.is_a(value, concept, tree=tree)
    except AmbiguousConcept:
        return False


def _equals(value: Any, wanted: Any) -> bool:
    return meets(wanted, value) if isinstance(value, Range) else bool(value == wanted)


def meets(value: Any, span: Range) -> bool:
    """Tell whether a value, or some point of a value that is a range, lies in the span."""
    low, high, low_open, high_open = _ends(value)
    if not _reaches(span.low, span.high, span.low_open or span.high_open):  # `(2 .. 2)` holds no point
        return False
    return _reaches(low, span.high, low_open or span.high_open) and _reaches(span.low, high, span.low_open or high_open)


def _ends(value: Any) -> tuple[Any, Any, bool, bool]:
    if isinstance(value, Range):
        return value.low, value.high, value.low_open, value.high_open
    return value, value, False, False


def _reaches(low: Any, high: Any, strictly: bool) -> bool:
    if low is None or high is None:
        return True
    return bool(low < high if strictly else low <= high)


def _age(value: Any, now: datetime) -> float | Range:
    if isinstance(value, Range):
        youngest, oldest = (None if end is None else _seconds(now, end) for end in (value.high, value.low))
        return Range(youngest, oldest, value.high_open, value.low_open)
    return _seconds(now, value)


def _seconds(now: datetime, then: Any) -> float:
    return float((now - then).total_seconds())


def compares(op: Comparison, left: Any, right: Any) -> bool:
    """Compare two values, or some points of two ranges; values that are unlike do not satisfy."""
    left, right = _alike(left, right)
    if not comparable(op, left, right):
        return False
    low, high, low_open, high_open = _ends(left)
    low2, high2, low2_open, high2_open = _ends(right)
    match op:
        case Comparison.EQ:
            return meets(left, right) if isinstance(right, Range) else _equals(left, right)
        case Comparison.LT:
            return _reaches(low, high2, strictly=True)
        case Comparison.LE:
            return _reaches(low, high2, low_open or high2_open)
        case Comparison.GT:
            return _reaches(low2, high, strictly=True)
        case Comparison.GE:
            return _reaches(low2, high, low2_open or high_open)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Read text beside a number or a time as that; where it is none, the two stay unlike."""
    if isinstance(left, str) is isinstance(right, str):
        return left, right
    text, other = (left, right) if isinstance(left, str) else (right, left)
    kind = other.kind if isinstance(other, Range) else _SORTS.get(type(other))
    if kind not in (Kind.NUMBER, Kind.TIME):
        return left, right
    try:
        read = coerce(text, kind)
    except ValueError:
        return left, right
    return (read, right) if text is left else (left, read)


_SORTS = {int: Kind.NUMBER, float: Kind.NUMBER, datetime: Kind.TIME, str: Kind.TEXT, bool: Kind.BOOL, Point: Kind.PLACE}


def comparable(op: Comparison, left: Any, right: Any) -> bool:
    """Tell whether two values are of one sort and, unless they are to be equal, of one that has an order."""
    if type(left) is Mismatch or type(right) is Mismatch:
        return False
    one, two = (value.kind if isinstance(value, Range) else _sort(value) for value in (left, right))
    if one is None or two is None:  # a range without ends is of numbers or of times, as the other side is
        return (one or two or Kind.NUMBER) in (Kind.NUMBER, Kind.TIME)
    return one == two and (op is Comparison.EQ or one in (Kind.NUMBER, Kind.TEXT, Kind.TIME))


def _sort(value: Any) -> Kind | type:
    if isinstance(value, IPv4Address | IPv6Address):
        return Kind.IP
    return _SORTS.get(type(value), type(value))


def distance_m(one: Point, two: Point) -> float:
    """Return the great-circle distance in metres."""
    lat1, lat2 = math.radians(one.lat), math.radians(two.lat)
    dlat, dlon = lat2 - lat1, math.radians(two.lon - one.lon)
    chord = math.sin(dlat / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(dlon / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(chord)))
