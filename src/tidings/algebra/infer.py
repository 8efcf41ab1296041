"""A schema from filters alone: what a set of subscriptions takes for granted of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.bind import fold_names
from tidings.algebra.needs import Needs
from tidings.concepts import Ontology
from tidings.model import Attribute, Schema, require_filter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.model import Filter


def infer_schema(filters: Iterable[Filter], *, ontology: Ontology | None = None) -> Schema:
    """Return the attributes that the filters use, with their kinds; several values are normal.

    >>> from tidings import parse
    >>> infer_schema([parse("price < 9000"), parse("make = 'ford' and tags exists")])
    Schema({'price': 'several number', 'make': 'several text', 'tags': 'several any'})

    Filters that use one attribute as two kinds raise an error that names both.
    """
    used = ontology or Ontology()
    needs = Needs(None, used)
    for number, tree in enumerate(filters, 1):
        needs.add(fold_names(require_filter(tree), used), f"filter {number}")
    found = needs.resolved().items()
    return Schema({name: Attribute(need.kind, several=need.several, tree=need.tree) for name, need in found})
