"""Concepts: `is a` is the depth-first range of the subtree, so height costs nothing; several parents, a few ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import EncodedPredicate
from tidings.errors import TidingsError
from tidings.model import IsA, Kind

if TYPE_CHECKING:
    from tidings.concepts import Ontology
    from tidings.model import Condition


def encode_concept(attribute: str, condition: Condition, ontology: Ontology) -> EncodedPredicate | None:
    """Return the ranges of a concept and all below it, or None where no tree, or more than one, has it."""
    assert isinstance(condition, IsA)
    label = condition.tree or _find_tree(condition.concept, ontology)
    if label is None:
        return None
    try:
        ranges = ontology.ranges(condition.concept, tree=label)
    except TidingsError:
        return None
    column = Column(attribute, View.CONCEPT, label)
    return EncodedPredicate(column, tuple((low, high, 0) for low, high in ranges), Kind.CONCEPT)


def _find_tree(concept: str, ontology: Ontology) -> str | None:
    """Return the one tree that has the concept, by its exact spelling if there is one, else ignoring case."""
    homes = [label for label, tree in ontology.trees.items() if tree.has_spelling(concept)]
    homes = homes or [label for label, tree in ontology.trees.items() if concept in tree]
    return homes[0] if len(homes) == 1 else None
