"""A schema from filters alone: what a set of subscriptions takes for granted of its events."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.algebra.law.bind import fold_names
from tidings.algebra.law.requirements import UNDECLARED, RequirementTracker
from tidings.concepts import Ontology
from tidings.model import Compare, Comparison, Schema, require_filter, tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.model import Attribute, Filter


def infer_schema(filters: Iterable[Filter], *, ontology: Ontology | None = None) -> Schema:
    """Return the attributes that the filters use, with their kinds; several values are normal.

    >>> from tidings import parse
    >>> infer_schema([parse("price < 9000"), parse("make = 'ford' and tags exists")])
    Schema({'price': 'several number', 'make': 'several text', 'tags': 'several any'})

    An attribute that filters use as different kinds is `any`: each of them reads it as the kind it asks for. So
    is one that is asked for in a unit, which only an ontology can declare. The schema refuses none of the filters.
    """
    used = ontology or Ontology()
    needs = RequirementTracker(None, used)
    trees = [fold_names(require_filter(tree), used) for tree in filters]
    for number, tree in enumerate(trees, 1):
        needs.add(tree, f"filter {number}")
    attributes = {name: _attribute(name, needs) for name in needs.to_requirements().attributes}
    for name, other in _incomparable(trees, attributes):
        attributes.update({one: UNDECLARED for one in (name, other) if needs.find_attribute(one).kind is None})
    return Schema(attributes)


def _attribute(name: str, needs: RequirementTracker) -> Attribute:
    """Return what is declared of an attribute or, where nothing is, the one kind that is asked of it."""
    attribute, kinds = needs.find_attribute(name), needs.find_kinds(name)
    if attribute.kind is not None or len(kinds) != 1:
        return attribute
    return replace(attribute, kind=kinds.pop())


def _incomparable(trees: list[Filter], attributes: dict[str, Attribute]) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a filter compares although, as they are asked for elsewhere, they do not compare."""
    for name, test in (each for tree in trees for each in tests(tree)):
        if isinstance(test.condition, Compare):
            other = name.removesuffix(test.attribute) + test.condition.other
            one, two = attributes[name].kind, attributes[other].kind
            kind = one or two
            ordered = kind is None or kind.ordered or test.condition.op is Comparison.EQ
            if not ordered or (one and two and one is not two):
                yield name, other
