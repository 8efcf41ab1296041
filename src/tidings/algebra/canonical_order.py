"""A total order on filters, so that equal filters become equal however they were written.

Keys are nested tuples that start with a rank wherever types may differ, so two keys always compare.
Numbers compare by value: `1` and `1.0` are one value and get one key.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tidings import model
from tidings.model.values import kind_of

Key: TypeAlias = "tuple[Any, ...]"


def filter_key(tree: model.Filter) -> Key:
    """Return the sort key of a filter: by attribute, then by condition, compounds last."""
    match tree:
        case model.Test(attribute, condition, quantifier):
            return (0, attribute, condition_key(condition), str(quantifier))
        case model.Not(part):
            return (1, filter_key(part))
        case model.And(parts):
            return (2, tuple(map(filter_key, parts)))
        case model.Or(parts):
            return (3, tuple(map(filter_key, parts)))


def condition_key(condition: model.Condition) -> Key:
    """Return the sort key of a condition: by its class, then by its content."""
    return (type(condition).__name__, *_content_key(condition))


def value_key(value: model.Scalar | None) -> Key:
    """Return the sort key of a value among values of any kind; `None` goes first."""
    match value:
        case None:
            return ("",)
        case model.Quantity(amount, unit):
            return ("quantity", unit, amount)
        case model.Point(lon, lat):
            return ("place", lon, lat)
    return (str(kind_of(value)), value)


def network_key(network: model.Network) -> Key:
    """Return the sort key of an address block: IPv4 first, then by address."""
    return (network.version, int(network.network_address), network.prefixlen)


def _content_key(condition: model.Condition) -> Key:
    match condition:
        case model.Is(value):
            return (value_key(value),)
        case model.In(values):
            return tuple(map(value_key, values))
        case model.Range() | model.Age(model.Range()):
            return _range_key(condition if isinstance(condition, model.Range) else condition.seconds)
        case model.SameText(values):
            return values
        case model.TextTest(op, pattern, ignoring_case):
            return (str(op), pattern, ignoring_case)
        case model.IsA(concept, tree):
            return (concept, tree or "")
        case model.Within(area):
            return area.polygons
        case model.WithinRegion(region):
            return (region,)
        case model.Near(center, metres):
            return (value_key(center), metres)
        case model.InNetworks(networks):
            return tuple(map(network_key, networks))
        case model.Compare(op, other):
            return (str(op), other)
        case model.Has(inner):
            return (filter_key(inner),)
    return ()


def _range_key(span: model.Range) -> Key:
    return (value_key(span.low), value_key(span.high), span.low_open, span.high_open)
