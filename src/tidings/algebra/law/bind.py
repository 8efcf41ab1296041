"""Binding: resolve the names in a filter. Attribute synonyms, units, concepts and regions are looked up.

What cannot be resolved (an unknown concept, unit or region) raises here, before any event is seen. The algebra and
the matchers work on bound filters; users are shown the filter they wrote. Most filters contain nothing to resolve:
those come back as the same object after a type check, since millions of filters pass here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import is_
from typing import TYPE_CHECKING

from tidings import model
from tidings.algebra.law.requirements import RequirementTracker
from tidings.algebra.law.typed_attribute import strip_unit
from tidings.errors import BadValue, FilterError, Mistake, UnitMismatch, UnknownRegion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.concepts import Ontology, Vocabulary

_SELF_CONTAINED = frozenset(
    (model.SameText, model.TextTest, model.Within, model.Near, model.InNetworks, model.Age, model.Exists, model.IsNull)
)
"""Conditions that contain no name to resolve."""


def bind(tree: model.Filter, vocabulary: Vocabulary) -> model.Filter:
    """Return the filter with every name, unit, concept and region resolved; kind conflicts raise."""
    folded = fold_names(tree, vocabulary.concepts)
    RequirementTracker(vocabulary).add(folded, "the filter")
    return Binder(vocabulary).bind_filter(folded)


def fold_names(tree: model.Filter, ontology: Ontology) -> model.Filter:
    """Return the filter with attribute synonyms replaced by the canonical names."""
    if not (ontology.attributes or ontology.attribute_trees):
        return tree  # no attribute has a synonym
    return _fold_tree(tree, ontology)


def _fold_tree(tree: model.Filter, ontology: Ontology) -> model.Filter:
    if not isinstance(tree, model.Test):
        return model.change_parts(tree, lambda part: _fold_tree(part, ontology))
    name, condition = ontology.attribute(tree.attribute), tree.condition
    match condition:
        case model.Compare(op, other) if (other_name := ontology.attribute(other)) != other:
            condition = model.Compare(op, other_name)
        case model.Has(inner) if (folded := _fold_tree(inner, ontology)) is not inner:
            condition = model.Has(folded)
    unchanged = name == tree.attribute and condition is tree.condition
    return tree if unchanged else model.Test(name, condition, tree.quantifier)


def _needs_no_binding(condition: model.Condition, literal: bool) -> bool:
    """Tell by type alone that a condition needs no binding; `False` means it may.

    `literal`: text of this attribute is known to be text, not the name of a concept.
    """
    kind = type(condition)
    if kind is model.Is:
        value = type(condition.value)  # type: ignore[union-attr]
        return literal if value is str else value is not model.Quantity
    if kind is model.Range:
        return type(condition.low) is not model.Quantity and type(condition.high) is not model.Quantity  # type: ignore[union-attr]
    if kind is model.In:
        return literal and type(condition.values[0]) is str  # type: ignore[union-attr]
    return kind in _SELF_CONTAINED


@dataclass(frozen=True, slots=True)
class _AttributeBinding:
    """How the values of an attribute are bound: whether its text names concepts, of which tree, and its unit."""

    is_concept: bool
    tree: str | None
    unit: str | None


class Binder:
    """Binds filters whose attribute names are canonical and whose kinds were checked; caches lookups by attribute."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._ontology = vocabulary, vocabulary.concepts
        self._tracker = RequirementTracker(vocabulary)
        self._bindings: dict[str, _AttributeBinding] = {}
        self._literal_text: set[str] = set()  # attributes whose text is text, not the name of a concept

    def bind_filter(self, tree: model.Filter, prefix: str = "") -> model.Filter:
        """Return the filter with its units, concepts and regions resolved."""
        if not isinstance(tree, model.Test):
            return model.change_parts(tree, partial(self.bind_filter, prefix=prefix) if prefix else self.bind_filter)
        condition = tree.condition
        name = prefix + tree.attribute if prefix else tree.attribute
        if _needs_no_binding(condition, name in self._literal_text):
            return tree
        bound = self._bind_condition(name, condition, tree.attribute)
        return tree if bound is condition else model.Test(tree.attribute, bound, tree.quantifier)

    def _bind_condition(self, name: str, condition: model.Condition, attribute: str) -> model.Condition:
        try:
            match condition:
                case model.Is(value):
                    resolved = self._bind_scalar(name, value)
                    return condition if resolved is value else model.Is(resolved)
                case model.In(values):
                    bound_values = [self._bind_scalar(name, value) for value in values]
                    _refuse_unlike_units(name, bound_values)
                    return condition if all(map(is_, bound_values, values)) else model.one_of(bound_values)
                case model.Range():
                    return self._bind_range(name, condition)
                case model.Compare(op, other):
                    demand = self._tracker.derive_comparison_demand(name, name.removesuffix(attribute) + other)
                    return model.Compare(op, other, demand.kind, demand.unit) if demand.kind else condition
                case model.IsA(concept):
                    tree = self._look_up(name).tree
                    own = model.IsA(self._ontology.require(concept, tree=tree), tree)
                    return condition if own == condition else own
                case model.WithinRegion(region):
                    return model.Within(self._find_area(region))
                case model.Has(inner):
                    bound = self.bind_filter(inner, f"{name}.")
                    return condition if bound is inner else model.Has(bound)
        except BadValue as problem:
            mistake = Mistake(f"`{name}`: {problem}")
            raise FilterError(mistake.message, mistakes=(mistake,), text=None) from problem
        return condition

    def _bind_range(self, name: str, condition: model.Range) -> model.Range:
        ends = [condition.low, condition.high]
        if not any(isinstance(end, model.Quantity) for end in ends):
            return condition
        ends = [self._bind_amount(name, end) if isinstance(end, model.Quantity) else end for end in ends]
        _refuse_unlike_units(name, ends)
        resolved = replace(condition, low=ends[0], high=ends[1])
        strip_unit(resolved)  # raises if the ends are out of order once their units agree
        return resolved

    def _bind_scalar(self, name: str, value: model.Scalar) -> model.Scalar:
        if isinstance(value, model.Quantity):
            return self._bind_amount(name, value)
        if isinstance(value, str) and (binding := self._look_up(name)).is_concept:
            own = self._ontology.require(value, tree=binding.tree)
            return value if own == value else own
        return value

    def _bind_amount(self, name: str, value: model.Quantity) -> int | float | model.Quantity:
        """Convert an amount to the declared unit; without one, to the base unit of its dimension, which it keeps."""
        unit = self._look_up(name).unit
        if unit is not None:
            return self._ontology.convert(value.amount, value.unit, to=unit)
        base = self._ontology.base_unit(value.unit)
        converted = model.Quantity(self._ontology.convert(value.amount, value.unit, to=base), base)
        return value if converted == value else converted

    def _look_up(self, name: str) -> _AttributeBinding:
        binding = self._bindings.get(name)
        if binding is None:
            attribute, unit = self._vocabulary.find_attribute(name), self._ontology.unit(name)
            is_concept = attribute is not None and attribute.kind is model.Kind.CONCEPT
            binding = _AttributeBinding(is_concept, attribute.tree if attribute else None, unit.unit if unit else None)
            self._bindings[name] = binding
            if not is_concept:
                self._literal_text.add(name)
        return binding

    def _find_area(self, region: str) -> model.Area:
        if self._vocabulary.regions is None:
            msg = f"no regions were given, so `@{region}` is not known; pass regions=td.Regions.load(...)"
            raise UnknownRegion(msg)
        return self._vocabulary.regions[region]


def _refuse_unlike_units(name: str, values: Sequence[object]) -> None:
    units = sorted({value.unit for value in values if isinstance(value, model.Quantity)})
    if len(units) > 1:
        msg = f"`{name}`: amounts in {' and '.join(units)} do not go together; they measure different things"
        raise UnitMismatch(msg)
    if units and any(isinstance(value, int | float) for value in values):
        msg = f"`{name}`: a number without a unit stands beside one in {units[0]}; write the unit of each"
        raise UnitMismatch(msg)
