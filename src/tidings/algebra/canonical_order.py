"""A total order on filters, so that equal filters become equal however they were written.

Keys are nested tuples that start with a rank wherever types may differ, so two keys always compare.
Numbers compare by value: `1` and `1.0` are one value and get one key.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tidings import model
from tidings.model.values import get_kind

Key: TypeAlias = "tuple[Any, ...]"


def make_filter_key(tree: model.Filter) -> Key:
    """Return the sort key of a filter: by attribute, then by condition, compounds last."""
    match tree:
        case model.Test(attribute, condition, quantifier):
            return (0, attribute, (type(condition).__name__, *_make_condition_key(condition)), str(quantifier))
        case model.Not(part):
            return (1, make_filter_key(part))
        case model.And(parts):
            return (2, tuple(map(make_filter_key, parts)))
        case model.Or(parts):
            return (3, tuple(map(make_filter_key, parts)))


def make_value_key(value: model.Scalar | None) -> Key:
    """Return the sort key of a value among values of any kind; `None` goes first."""
    match value:
        case None:
            return ("",)
        case model.Quantity(amount, unit):
            return ("quantity", unit, amount)
        case model.Point(lon, lat):
            return ("place", lon, lat)
    return (str(get_kind(value)), value)


def _make_condition_key(condition: model.Condition) -> Key:
    match condition:
        case model.Is(value):
            return (make_value_key(value),)
        case model.In(values):
            return tuple(map(make_value_key, values))
        case model.Range(low, high, low_open, high_open) | model.Age(model.Range(low, high, low_open, high_open)):
            return (make_value_key(low), make_value_key(high), low_open, high_open)
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
            return (make_value_key(center), metres)
        case model.InNetworks(networks):
            return tuple((block.version, int(block.network_address), block.prefixlen) for block in networks)
        case model.Compare(op, other):
            return (str(op), other)
        case model.Has(inner):
            return (make_filter_key(inner),)
    return ()
