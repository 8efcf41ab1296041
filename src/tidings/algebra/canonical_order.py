"""A total order on filters, so that equal filters become equal however they were written.

Keys are nested tuples that start with a rank wherever types may differ, so two keys always compare.
Numbers compare by value: `1` and `1.0` are one value and get one key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.model import (
    Age,
    And,
    Compare,
    Has,
    In,
    InNetworks,
    Is,
    IsA,
    Near,
    Not,
    Or,
    Point,
    Quantity,
    Range,
    SameText,
    Test,
    TextTest,
    Within,
    WithinRegion,
)
from tidings.model.values import kind_of

if TYPE_CHECKING:
    from tidings.model import Condition, Filter, Network, Scalar

Key: TypeAlias = "tuple[Any, ...]"


def filter_key(tree: Filter) -> Key:
    """Return the sort key of a filter: by attribute, then by condition, compounds last."""
    match tree:
        case Test(attribute, condition, quantifier):
            return (0, attribute, condition_key(condition), str(quantifier))
        case Not(part):
            return (1, filter_key(part))
        case And(parts):
            return (2, tuple(map(filter_key, parts)))
        case Or(parts):
            return (3, tuple(map(filter_key, parts)))


def condition_key(condition: Condition) -> Key:
    """Return the sort key of a condition: by its class, then by its content."""
    return (type(condition).__name__, *_content_key(condition))


def value_key(value: Scalar | None) -> Key:
    """Return the sort key of a value among values of any kind; `None` goes first."""
    match value:
        case None:
            return ("",)
        case Quantity(amount, unit):
            return ("quantity", unit, amount)
        case Point(lon, lat):
            return ("place", lon, lat)
    return (str(kind_of(value)), value)


def network_key(network: Network) -> Key:
    """Return the sort key of an address block: IPv4 first, then by address."""
    return (network.version, int(network.network_address), network.prefixlen)


def _content_key(condition: Condition) -> Key:
    match condition:
        case Is(value):
            return (value_key(value),)
        case In(values):
            return tuple(map(value_key, values))
        case Range() | Age(Range()):
            return _range_key(condition if isinstance(condition, Range) else condition.seconds)
        case SameText(values):
            return values
        case TextTest(op, pattern, ignoring_case):
            return (str(op), pattern, ignoring_case)
        case IsA(concept, tree):
            return (concept, tree or "")
        case Within(area):
            return area.polygons
        case WithinRegion(region):
            return (region,)
        case Near(center, metres):
            return (value_key(center), metres)
        case InNetworks(networks):
            return tuple(map(network_key, networks))
        case Compare(op, other):
            return (str(op), other)
        case Has(inner):
            return (filter_key(inner),)
    return ()


def _range_key(span: Range) -> Key:
    return (value_key(span.low), value_key(span.high), span.low_open, span.high_open)
