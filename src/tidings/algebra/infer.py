"""A schema from filters alone: what a set of subscriptions takes for granted of its events."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.algebra.bind import fold_names
from tidings.algebra.needs import Needs
from tidings.concepts import Ontology
from tidings.model import Attribute, Schema, require_filter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra.needs import Need
    from tidings.model import Filter


def infer_schema(filters: Iterable[Filter], *, ontology: Ontology | None = None) -> Schema:
    """Return the attributes that the filters use, with their kinds; several values are normal.

    >>> from tidings import parse
    >>> infer_schema([parse("price < 9000"), parse("make = 'ford' and tags exists")])
    Schema({'price': 'several number', 'make': 'several text', 'tags': 'several any'})

    An attribute that filters use as different kinds is `any`: each of them reads it as the kind it asks for.
    """
    used = ontology or Ontology()
    needs = Needs(None, used)
    for number, tree in enumerate(filters, 1):
        needs.add(fold_names(require_filter(tree), used), f"filter {number}")
    asked = needs.resolved().attributes.items()
    return Schema({name: _attribute(needs.attribute(name), ways) for name, ways in asked})


def _attribute(attribute: Attribute, ways: tuple[Need, ...]) -> Attribute:
    """Return what is declared of an attribute or, where nothing is, the one kind that is asked of it."""
    kinds = {need.kind for need in ways if need.kind is not None}
    if attribute.kind is not None or len(kinds) != 1:
        return attribute
    return replace(attribute, kind=kinds.pop())
