"""A filter as written becomes a filter that means: names folded, units converted, regions and concepts looked up.

What binding cannot resolve (an unknown concept, unit or region) is the filter's mistake and is raised here,
before any event is seen. Bound filters are for the algebra and the matchers; people are shown what they wrote.
Most filters mean what they say: what needs no binding comes back as the same object, at a glance, since
millions of filters pass here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any

from tidings.algebra.law.requirements import Needs
from tidings.algebra.law.typed_attribute import without_unit
from tidings.concepts import Vocabulary
from tidings.errors import BadValue, FilterError, Mistake, UnitMismatch, UnknownRegion
from tidings.model import (
    Age,
    And,
    Compare,
    Exists,
    Has,
    In,
    InNetworks,
    Is,
    IsA,
    IsNull,
    Kind,
    Near,
    Not,
    Or,
    Quantity,
    Range,
    SameText,
    Test,
    TextTest,
    Within,
    WithinRegion,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Ontology, Regions
    from tidings.model import Condition, Filter, Schema

_PLAIN = frozenset((SameText, TextTest, Within, Near, InNetworks, Age, Exists, IsNull))
"""Conditions that name nothing to look up."""


def bind(tree: Filter, *, schema: Schema | None, ontology: Ontology, regions: Regions | None) -> Filter:
    """Return the filter with every name, unit, concept and region resolved; its contradictions are refused."""
    folded = fold_names(tree, ontology)
    Needs(schema, ontology).add(folded, "the filter")
    return Binder(schema, ontology, regions).bound(folded)


def fold_names(tree: Filter, ontology: Ontology) -> Filter:
    """Return the filter with attribute synonyms replaced by the canonical names."""
    if not (ontology.attributes or ontology.attribute_trees):
        return tree  # nothing has a synonym
    return _folded(tree, ontology)


def _folded(tree: Filter, ontology: Ontology) -> Filter:
    if not isinstance(tree, Test):
        return _rebuilt(tree, lambda part: _folded(part, ontology))
    name, meant = ontology.attribute(tree.attribute), _folded_condition(tree.condition, ontology)
    return tree if name == tree.attribute and meant is tree.condition else Test(name, meant, tree.quantifier)


def _rebuilt(tree: And | Or | Not, change: Callable[[Filter], Filter]) -> Filter:
    """Return an `and`, `or` or `not` with its parts changed; the same object when no part did."""
    if isinstance(tree, Not):
        part = change(tree.part)
        return tree if part is tree.part else Not(part)
    parts = [*map(change, tree.parts)]
    return tree if all(map(is_, parts, tree.parts)) else type(tree)(tuple(parts))


def _stays(condition: Condition, literal: bool) -> bool:
    """Tell at a glance that a condition means what it says; when in doubt, say no."""
    kind = type(condition)
    if kind is Is:
        value = type(condition.value)  # type: ignore[union-attr]
        return literal if value is str else value is not Quantity
    if kind is Range:
        return type(condition.low) is not Quantity and type(condition.high) is not Quantity  # type: ignore[union-attr]
    if kind is In:
        return literal and type(condition.values[0]) is str  # type: ignore[union-attr]
    return kind in _PLAIN


def _folded_condition(condition: Condition, ontology: Ontology) -> Condition:
    match condition:
        case Compare(op, other):
            name = ontology.attribute(other)
            return condition if name == other else Compare(op, name)
        case Has(inner):
            folded = _folded(inner, ontology)
            return condition if folded is inner else Has(folded)
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
        self._vocabulary = Vocabulary(schema, ontology, regions)
        self._ontology = ontology
        self._regions = regions
        self._needs = Needs(schema, ontology)
        self._known: dict[str, _Facts] = {}
        self._literal: set[str] = set()  # known attributes whose text is text, not the name of a concept

    def bound(self, tree: Filter, prefix: str = "") -> Filter:
        """Return the filter with its units, concepts and regions resolved."""
        if not isinstance(tree, Test):
            return _rebuilt(tree, partial(self.bound, prefix=prefix) if prefix else self.bound)
        condition = tree.condition
        name = prefix + tree.attribute if prefix else tree.attribute
        if _stays(condition, name in self._literal):
            return tree
        meant = self._condition(name, condition, tree.attribute)
        return tree if meant is condition else Test(tree.attribute, meant, tree.quantifier)

    def _condition(self, name: str, condition: Condition, attribute: str) -> Condition:
        try:
            match condition:
                case Is(value):
                    meant = self._scalar(name, value)
                    return condition if meant is value else Is(meant)
                case In(values):
                    return self._set(name, condition, values)
                case Range(low, high):
                    return self._range(name, condition, low, high)
        except BadValue as problem:
            mistake = Mistake(f"`{name}`: {problem}")
            raise FilterError(mistake.message, mistakes=(mistake,), text=None) from problem
        match condition:
            case Compare(op, other):
                demand = self._needs.compared(name, name[: len(name) - len(attribute)] + other)
                return Compare(op, other, demand.kind, demand.unit) if demand.kind else condition
            case IsA(concept):
                tree = self._facts(name).tree
                meant = IsA(self._ontology.require(concept, tree=tree), tree)
                return condition if meant == condition else meant
            case WithinRegion(region):
                return Within(self._area(region))
            case Has(inner):
                bound = self.bound(inner, f"{name}.")
                return condition if bound is inner else Has(bound)
        return condition

    def _set(self, name: str, condition: In, values: tuple[Any, ...]) -> Condition:
        meant = [self._scalar(name, value) for value in values]
        _refuse_unlike_units(name, meant)
        same = all(one is other for one, other in zip(meant, values, strict=True))
        return condition if same else one_of(meant)

    def _range(self, name: str, condition: Range, low: Any, high: Any) -> Range:
        if not isinstance(low, Quantity) and not isinstance(high, Quantity):
            return condition
        ends = [self._amount(name, end) if isinstance(end, Quantity) else end for end in (low, high)]
        _refuse_unlike_units(name, ends)
        meant = replace(condition, low=ends[0], high=ends[1])
        without_unit(meant)  # refuses ends that change places once their units agree
        return meant

    def _scalar(self, name: str, value: Any) -> Any:
        if isinstance(value, Quantity):
            return self._amount(name, value)
        if isinstance(value, str) and (facts := self._facts(name)).folded:
            own = self._ontology.require(value, tree=facts.tree)
            return value if own == value else own
        return value

    def _amount(self, name: str, value: Quantity) -> int | float | Quantity:
        """Return an amount in the unit that is declared; without one it keeps a unit, the one of its dimension."""
        unit = self._facts(name).unit
        if unit is not None:
            return self._ontology.convert(value.amount, value.unit, to=unit)
        base = self._ontology.base_unit(value.unit)
        meant = Quantity(self._ontology.convert(value.amount, value.unit, to=base), base)
        return value if meant == value else meant

    def _facts(self, name: str) -> _Facts:
        facts = self._known.get(name)
        if facts is None:
            told, unit = self._vocabulary.find_attribute(name), self._ontology.unit(name)
            folded = told is not None and told.kind is Kind.CONCEPT
            facts = _Facts(folded, told.tree if told else None, unit.unit if unit else None)
            self._known[name] = facts
            if not folded:
                self._literal.add(name)
        return facts

    def _area(self, region: str) -> Any:
        if self._regions is None:
            msg = f"no regions were given, so `@{region}` is not known; pass regions=td.Regions.load(...)"
            raise UnknownRegion(msg)
        return self._regions[region]


def _refuse_unlike_units(name: str, values: list[Any]) -> None:
    units = sorted({value.unit for value in values if isinstance(value, Quantity)})
    if len(units) > 1:
        msg = f"`{name}`: amounts in {' and '.join(units)} do not go together; they measure different things"
        raise UnitMismatch(msg)
    if units and any(isinstance(value, int | float) for value in values):
        msg = f"`{name}`: a number without a unit stands beside one in {units[0]}; write the unit of each"
        raise UnitMismatch(msg)
