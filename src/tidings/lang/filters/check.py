"""A parsed filter checked against a vocabulary: are its names declared, do its values fit the declared kinds?

Literals that a notation can only write as text are converted to the attribute's kind (a time, an address), so that
the same filter in two notations is the same tree. All mistakes are collected, each with its position.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings import model
from tidings.concepts import did_you_mean
from tidings.errors import TidingsError
from tidings.lang.filters import value_text
from tidings.lang.source_map import ATTRIBUTE, VALUE

if TYPE_CHECKING:
    from tidings.concepts import Vocabulary
    from tidings.errors import Mistake
    from tidings.lang.source_map import SourceMap


class FilterChecker:
    """Checks filters against one vocabulary; `mistakes` collects those of all `check` calls."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ontology = vocabulary.ontology
        self.mistakes: list[Mistake] = []
        self._source_map: SourceMap | None = None

    def check(self, tree: model.Filter, source_map: SourceMap) -> model.Filter:
        """Return the filter with its literals converted to the kinds of their attributes."""
        self._source_map = source_map
        return self._check_filter(tree, "")

    def _check_filter(self, tree: model.Filter, prefix: str) -> model.Filter:
        if isinstance(tree, model.Test):
            return self._check_test(tree, prefix)
        return model.change_parts(tree, lambda part: self._check_filter(part, prefix))

    def _check_test(self, test: model.Test, prefix: str) -> model.Filter:
        name = prefix + test.attribute
        if not self._vocabulary.allows(name):
            near = did_you_mean(name, self._list_names())
            self._add_mistake(test, f"unknown attribute `{name}`{near}", ATTRIBUTE)
        if isinstance(test.condition, model.Compare):
            self._check_comparison(test, prefix, test.condition)
        if isinstance(test.condition, model.Has):
            return replace(test, condition=model.Has(self._check_filter(test.condition.filter, f"{name}.")))
        attribute = self._find_declaration(name)
        try:
            condition = _convert_literals(test.condition, attribute.kind)
            self._check_kind(name, attribute, condition)
            self._check_names(name, condition)
        except (ValueError, TidingsError) as problem:
            self._add_mistake(test, str(problem), VALUE)
            return test
        return replace(test, condition=condition)

    def _check_comparison(self, test: model.Test, prefix: str, condition: model.Compare) -> None:
        other = prefix + condition.other
        if not self._vocabulary.allows(other):
            near = did_you_mean(other, self._list_names()) or f"; text goes in quotes: '{condition.other}'"
            self._add_mistake(test, f"unknown attribute `{other}`{near}", VALUE)
            return
        left, right = self._find_declaration(prefix + test.attribute), self._find_declaration(other)
        if left.kind and right.kind and not left.accepts(right.kind) and not right.accepts(left.kind):
            message = f"`{prefix}{test.attribute}` is declared {left.kind} and `{other}` {right.kind}"
            self._add_mistake(test, message, VALUE)

    def _check_kind(self, name: str, attribute: model.Attribute, condition: model.Condition) -> None:
        required, kind = condition.kind, attribute.kind
        if required is None or attribute.accepts(required):
            if kind is model.Kind.NUMBER and self._vocabulary.concepts.unit(name) is None:
                _refuse_units(name, condition)
            return
        msg = f"`{name}` is declared {kind}, and this is {required}"
        if isinstance(condition, model.Is) and isinstance(condition.value, model.Point):
            msg += f"; a set is written `{name} in ({condition.value.lon:.15g}, {condition.value.lat:.15g})`"
        raise ValueError(msg + _WAYS_OUT.get((str(kind), str(required)), ""))

    def _check_names(self, name: str, condition: model.Condition) -> None:
        """Look up concepts, units and regions in those parts of the vocabulary that exist."""
        regions = self._vocabulary.regions
        if isinstance(condition, model.WithinRegion) and regions is not None:
            regions[condition.region]  # raises if there is no such region
        if self._ontology is None:
            return
        attribute = self._vocabulary.find_attribute(name)
        tree = attribute.tree if attribute is not None else None
        if isinstance(condition, model.IsA):
            self._ontology.require(condition.concept, tree=tree)
        elif self._find_declaration(name).kind is model.Kind.CONCEPT and isinstance(condition, model.Is | model.In):
            for value in model.list_scalars(condition):
                self._ontology.require(value, tree=tree)
        for value in model.list_scalars(condition):
            if isinstance(value, model.Quantity):
                unit = self._ontology.unit(name)
                if unit is None:
                    self._ontology.base_unit(value.unit)
                else:
                    self._ontology.convert(value.amount, value.unit, to=unit.unit)

    def _list_names(self) -> list[str]:
        return [*(self._vocabulary.schema or ()), *self._vocabulary.concepts.derived]

    def _find_declaration(self, name: str) -> model.Attribute:
        return self._vocabulary.find_attribute(self._vocabulary.concepts.attribute(name)) or model.Attribute()

    def _add_mistake(self, test: model.Test, message: str, part: int) -> None:
        assert self._source_map is not None
        self.mistakes.append(self._source_map.locate(test, part).make_mistake(message))


_WAYS_OUT = {
    ("number", "text"): "; write the number without quotes",
    ("text", "number"): "; write the text in quotes, or declare it number",
    ("text", "time"): "; write the text in quotes, or declare it time",
}
"""What to write instead, by the declared kind and the kind that the condition requires."""


def _refuse_units(name: str, condition: model.Condition) -> None:
    """Refuse an amount with a unit where the attribute is a number without one."""
    unit = next((value.unit for value in model.list_scalars(condition) if isinstance(value, model.Quantity)), None)
    if unit is not None:
        way_out = f"write the number alone, or declare the unit of `{name}` in the ontology"
        msg = f"`{name}` is declared number without a unit, and this is in `{unit}`; {way_out}"
        raise ValueError(msg)


def _convert_literals(condition: model.Condition, kind: model.Kind | None) -> model.Condition:
    """Convert text literals to times or addresses where the attribute is of that kind."""
    if kind not in (model.Kind.TIME, model.Kind.IP) or condition.kind is not model.Kind.TEXT:
        return condition
    match condition, kind:
        case ((model.Is() | model.In()), model.Kind.IP):
            return model.InNetworks(tuple(value_text.parse_network(value) for value in model.list_scalars(condition)))
        case ((model.Is() | model.In()), model.Kind.TIME):
            return model.one_of(value_text.parse_moment(value) for value in model.list_scalars(condition))
        case model.Range(low, high), model.Kind.TIME:
            ends = [None if end is None else value_text.parse_moment(str(end)) for end in (low, high)]
            return replace(condition, low=ends[0], high=ends[1])
    return condition
