"""A filter as written becomes a filter that means: names folded, units converted, regions and concepts looked up.

What binding cannot resolve (an unknown concept, unit or region) is the filter's mistake and is raised here,
before any event is seen. Bound filters are for the algebra and the matchers; people are shown what they wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidings.algebra.needs import Needs
from tidings.concepts import declared
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
    from tidings.concepts import Ontology, Regions
    from tidings.model import Condition, Filter, Schema


def bind(tree: Filter, *, schema: Schema | None, ontology: Ontology, regions: Regions | None) -> Filter:
    """Return the filter with every name, unit, concept and region resolved; its contradictions are refused."""
    folded = fold_names(tree, ontology)
    Needs(schema, ontology).add(folded, "the filter")
    return Binder(schema, ontology, regions).bound(folded)


def fold_names(tree: Filter, ontology: Ontology) -> Filter:
    """Return the filter with attribute synonyms replaced by the canonical names."""
    match tree:
        case Test(attribute, condition, quantifier):
            name, meant = ontology.attribute(attribute), _folded_condition(condition, ontology)
            return tree if name == attribute and meant is condition else Test(name, meant, quantifier)
        case And(parts):
            return And(tuple(fold_names(part, ontology) for part in parts))
        case Or(parts):
            return Or(tuple(fold_names(part, ontology) for part in parts))
        case Not(part):
            return Not(fold_names(part, ontology))


def _folded_condition(condition: Condition, ontology: Ontology) -> Condition:
    match condition:
        case Compare(op, other):
            return Compare(op, ontology.attribute(other))
        case Has(inner):
            return Has(fold_names(inner, ontology))
    return condition


@dataclass(frozen=True, slots=True)
class _Facts:
    """What binding must know of an attribute: whether its names fold to concepts, of which tree, and its unit."""

    folded: bool
    tree: str | None
    unit: str | None


class Binder:
    """Binds filters whose names are folded and whose kinds agree; keeps what it looked up of each attribute."""

    def __init__(self, schema: Schema | None, ontology: Ontology, regions: Regions | None) -> None:
        """Bind against these."""
        self._schema = schema
        self._ontology = ontology
        self._regions = regions
        self._known: dict[str, _Facts] = {}

    def bound(self, tree: Filter, prefix: str = "") -> Filter:
        """Return the filter with its units, concepts and regions resolved."""
        match tree:
            case Test(attribute, condition, quantifier):
                meant = self._condition(prefix + attribute, condition)
                return tree if meant is condition else Test(attribute, meant, quantifier)
            case And(parts):
                return And(tuple(self.bound(part, prefix) for part in parts))
            case Or(parts):
                return Or(tuple(self.bound(part, prefix) for part in parts))
            case Not(part):
                return Not(self.bound(part, prefix))

    def _condition(self, name: str, condition: Condition) -> Condition:
        try:
            match condition:
                case Is(value):
                    meant = self._scalar(name, value)
                    return condition if meant is value else Is(meant)
                case In(values):
                    return self._set(name, condition, values)
                case Range(low, high):
                    return self._range(name, condition, low, high)
        except TidingsError:
            raise
        except ValueError as problem:  # ends that change places once their units agree
            mistake = Mistake(f"`{name}`: {problem}")
            raise FilterError(mistake.message, mistakes=(mistake,), text=None) from problem
        match condition:
            case IsA(concept):
                tree = self._facts(name).tree
                return IsA(self._ontology.require(concept, tree=tree), tree)
            case WithinRegion(region):
                return Within(self._area(region))
            case Has(inner):
                return Has(self.bound(inner, f"{name}."))
        return condition

    def _set(self, name: str, condition: In, values: tuple[Any, ...]) -> Condition:
        meant = [self._scalar(name, value) for value in values]
        same = all(one is other for one, other in zip(meant, values, strict=True))
        return condition if same else one_of(meant)

    def _range(self, name: str, condition: Range, low: Any, high: Any) -> Range:
        if not isinstance(low, Quantity) and not isinstance(high, Quantity):
            return condition
        ends = [self._amount(name, end) if isinstance(end, Quantity) else end for end in (low, high)]
        return replace(condition, low=ends[0], high=ends[1])

    def _scalar(self, name: str, value: Any) -> Any:
        if isinstance(value, Quantity):
            return self._amount(name, value)
        if isinstance(value, str) and (facts := self._facts(name)).folded:
            return self._ontology.require(value, tree=facts.tree)
        return value

    def _amount(self, name: str, value: Quantity) -> int | float:
        unit = self._facts(name).unit or self._ontology.base_unit(value.unit)
        return self._ontology.convert(value.amount, value.unit, to=unit)

    def _facts(self, name: str) -> _Facts:
        if name not in self._known:
            told, unit = declared(name, self._schema, self._ontology), self._ontology.unit(name)
            folded = told is not None and told.kind is Kind.CONCEPT
            self._known[name] = _Facts(folded, told.tree if told else None, unit.unit if unit else None)
        return self._known[name]

    def _area(self, region: str) -> Any:
        if self._regions is None:
            msg = f"no regions were given, so `@{region}` is not known; pass regions=td.Regions.load(...)"
            raise UnknownRegion(msg)
        return self._regions[region]
