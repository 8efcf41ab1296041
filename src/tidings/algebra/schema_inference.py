"""Infer a schema from filters alone: which attributes they use, and as which kinds."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from tidings.algebra.law.bind import fold_names
from tidings.algebra.law.requirements import UNDECLARED, RequirementTracker
from tidings.concepts import Vocabulary
from tidings.model import Compare, Comparison, Schema, get_other_name, require_filter, walk_tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.concepts import Ontology
    from tidings.model import Attribute, Filter


def infer_schema(filters: Iterable[Filter], *, ontology: Ontology | None = None) -> Schema:
    """Return the attributes that the filters use, with their kinds; several values are normal.

    >>> from tidings import parse
    >>> infer_schema([parse("price < 9000"), parse("make = 'ford' and tags exists")])
    Schema({'price': 'several number', 'make': 'several text', 'tags': 'several any'})

    An attribute that filters use as different kinds is `any`: each of them reads it as the kind it asks for. So
    is one that is asked for in a unit, which only an ontology can declare. The schema refuses none of the filters.
    """
    vocabulary = Vocabulary(ontology=ontology)
    tracker = RequirementTracker(vocabulary)
    trees = [fold_names(require_filter(tree), vocabulary.concepts) for tree in filters]
    for number, tree in enumerate(trees, 1):
        tracker.add(tree, f"filter {number}")
    attributes: dict[str, Attribute] = {}
    for name in tracker.to_requirements().attributes:
        attribute, kinds = tracker.find_attribute(name), tracker.find_kinds(name)
        if attribute.kind is None and len(kinds) == 1:  # not declared, and the only kind that filters use it as
            attribute = replace(attribute, kind=kinds.pop())
        attributes[name] = attribute
    for name, other in _find_incomparable(trees, attributes):
        attributes.update({side: UNDECLARED for side in (name, other) if tracker.find_attribute(side).kind is None})
    return Schema(attributes)


def _find_incomparable(trees: list[Filter], attributes: dict[str, Attribute]) -> Iterator[tuple[str, str]]:
    """Yield pairs of attributes that a filter compares although other filters use them as incomparable kinds."""
    for name, test in chain.from_iterable(map(walk_tests, trees)):
        if isinstance(test.condition, Compare):
            other = get_other_name(name, test)
            left, right = attributes[name].kind, attributes[other].kind
            kind = left or right
            ordered = kind is None or kind.has_order or test.condition.op is Comparison.EQ
            if not ordered or (left and right and left is not right):
                yield name, other
