"""A filter as written becomes a filter that means: names folded, units converted, regions and concepts looked up.

What binding cannot resolve (an unknown concept, unit or region) is the filter's mistake and is raised here,
before any event is seen. Bound filters are for the algebra and the matchers; people are shown what they wrote.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidings.algebra.needs import Needs
from tidings.errors import FilterError, Mistake, TidingsError, UnknownRegion
from tidings.model import (
    And,
    Compare,
    Has,
    In,
    Is,
    IsA,
    Kind,
    Not,
    Or,
    Quantity,
    Range,
    Test,
    Within,
    WithinRegion,
    one_of,
)

if TYPE_CHECKING:
    from tidings.algebra.needs import Need
    from tidings.concepts import Ontology, Regions
    from tidings.model import Condition, Filter, Schema


def bind(tree: Filter, *, schema: Schema | None, ontology: Ontology, regions: Regions | None) -> Filter:
    """Return the filter with every name, unit, concept and region resolved."""
    needs = Needs(schema, ontology)
    folded = fold_names(tree, ontology)
    needs.add(folded, "the filter")
    return _Binder(needs, ontology, regions).filter(folded, "")


def fold_names(tree: Filter, ontology: Ontology) -> Filter:
    """Return the filter with attribute synonyms replaced by the canonical names."""
    match tree:
        case And(parts):
            return And(tuple(fold_names(part, ontology) for part in parts))
        case Or(parts):
            return Or(tuple(fold_names(part, ontology) for part in parts))
        case Not(part):
            return Not(fold_names(part, ontology))
        case Test(attribute, Compare(op, other), quantifier):
            return Test(ontology.attribute(attribute), Compare(op, ontology.attribute(other)), quantifier)
        case Test(attribute, Has(inner), quantifier):
            return Test(ontology.attribute(attribute), Has(fold_names(inner, ontology)), quantifier)
        case Test(attribute, condition, quantifier):
            return Test(ontology.attribute(attribute), condition, quantifier)


class _Binder:
    """One walk over one filter."""

    def __init__(self, needs: Needs, ontology: Ontology, regions: Regions | None) -> None:
        self._needs = needs.resolved()
        self._ontology = ontology
        self._regions = regions

    def filter(self, tree: Filter, prefix: str) -> Filter:
        match tree:
            case And(parts):
                return And(tuple(self.filter(part, prefix) for part in parts))
            case Or(parts):
                return Or(tuple(self.filter(part, prefix) for part in parts))
            case Not(part):
                return Not(self.filter(part, prefix))
            case Test(attribute, condition):
                return replace(tree, condition=self._condition(prefix + attribute, condition))

    def _condition(self, name: str, condition: Condition) -> Condition:
        need = self._needs[name]
        try:
            match condition:
                case Is(value):
                    return Is(self._scalar(need, value))
                case In(values):
                    return one_of(self._scalar(need, value) for value in values)
                case Range(low, high):
                    return replace(condition, low=self._end(need, low), high=self._end(need, high))
        except TidingsError:
            raise
        except ValueError as problem:  # ends that change places once their units agree
            mistake = Mistake(f"`{name}`: {problem}")
            raise FilterError(mistake.message, mistakes=(mistake,), text=None) from problem
        match condition:
            case IsA(concept):
                return IsA(self._ontology.require(concept, tree=need.tree), need.tree)
            case WithinRegion(region):
                return Within(self._area(region))
            case Has(inner):
                return Has(self.filter(inner, f"{name}."))
        return condition

    def _scalar(self, need: Need, value: Any) -> Any:
        if isinstance(value, Quantity):
            return self._ontology.convert(value.amount, value.unit, to=need.unit or value.unit)
        if need.folded and need.kind is Kind.CONCEPT and isinstance(value, str):
            return self._ontology.require(value, tree=need.tree)
        return value

    def _end(self, need: Need, value: Any) -> Any:
        return self._scalar(need, value) if isinstance(value, Quantity) else value

    def _area(self, region: str) -> Any:
        if self._regions is None:
            msg = f"no regions were given, so `@{region}` is not known; pass regions=td.Regions.load(...)"
            raise UnknownRegion(msg)
        return self._regions[region]
