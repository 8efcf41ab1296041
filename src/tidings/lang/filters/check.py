"""A parsed filter against a schema, an ontology and regions: are its names known, do its values fit?

Literals that the notation could only write as text take the attribute's kind here (a time, an address),
so the same filter in two notations is the same tree. All mistakes are collected, each at its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.concepts import Ontology, Vocabulary, did_you_mean
from tidings.errors import TidingsError
from tidings.lang.filters import literals
from tidings.model import (
    And,
    Attribute,
    Compare,
    Has,
    In,
    InNetworks,
    Is,
    IsA,
    Kind,
    Not,
    Or,
    Point,
    Quantity,
    Range,
    Test,
    WithinRegion,
    condition_kind,
    one_of,
    scalars_of,
)

if TYPE_CHECKING:
    from tidings.concepts import Regions
    from tidings.errors import Mistake
    from tidings.lang.filters.source_spans import Spots
    from tidings.model import Condition, Filter, Schema


class Checker:
    """One walk over one filter; `mistakes` holds what it found."""

    def __init__(self, schema: Schema | None, ontology: Ontology | None, regions: Regions | None) -> None:
        """Check against what is given; what is not given is not checked."""
        self._schema, self._ontology, self._regions = schema, ontology, regions
        self._vocabulary = Vocabulary(schema, ontology, regions)
        self._lore = self._vocabulary.concepts
        self.mistakes: list[Mistake] = []
        self._spots: Spots | None = None

    def check(self, tree: Filter, spots: Spots) -> Filter:
        """Return the filter with its literals in the attributes' kinds."""
        self._spots = spots
        return self._filter(tree, "")

    def _filter(self, tree: Filter, prefix: str) -> Filter:
        match tree:
            case And(parts):
                return And(tuple(self._filter(part, prefix) for part in parts))
            case Or(parts):
                return Or(tuple(self._filter(part, prefix) for part in parts))
            case Not(part):
                return Not(self._filter(part, prefix))
            case Test():
                return self._test(tree, prefix)

    def _test(self, test: Test, prefix: str) -> Filter:
        name = prefix + test.attribute
        self._attribute(test, name)
        if isinstance(test.condition, Compare):
            self._compare(test, prefix, test.condition)
        if isinstance(test.condition, Has):
            return replace(test, condition=Has(self._filter(test.condition.filter, f"{name}.")))
        attribute = self._declared(name)
        try:
            condition = _as_kind(test.condition, attribute.kind)
            self._fits(name, attribute, condition)
            self._names(name, condition)
        except (ValueError, TidingsError) as problem:
            self._mistake(test, str(problem), "value")
            return test
        return replace(test, condition=condition)

    def _attribute(self, test: Test, name: str) -> None:
        if not self._knows(name):
            near = did_you_mean(name, self._known())
            self._mistake(test, f"unknown attribute `{name}`{near}", "attribute")

    def _compare(self, test: Test, prefix: str, condition: Compare) -> None:
        other = prefix + condition.other
        if not self._knows(other):
            near = did_you_mean(other, self._known()) or f"; text goes in quotes: '{condition.other}'"
            self._mistake(test, f"unknown attribute `{other}`{near}", "value")
            return
        one, two = self._declared(prefix + test.attribute), self._declared(other)
        if one.kind and two.kind and not one.accepts(two.kind) and not two.accepts(one.kind):
            self._mistake(test, f"`{prefix}{test.attribute}` is declared {one.kind} and `{other}` {two.kind}", "value")

    def _fits(self, name: str, attribute: Attribute, condition: Condition) -> None:
        asked, kind = condition_kind(condition), attribute.kind
        if asked is None or attribute.accepts(asked):
            if kind is Kind.NUMBER and self._lore.unit(name) is None:
                _refuse_units(name, condition)
            return
        msg = f"`{name}` is declared {kind}, and this is {asked}"
        if isinstance(condition, Is) and isinstance(condition.value, Point):
            msg += f"; a set is written `{name} in ({condition.value.lon:.15g}, {condition.value.lat:.15g})`"
        raise ValueError(msg + _WAYS_OUT.get((str(kind), str(asked)), ""))

    def _names(self, name: str, condition: Condition) -> None:
        """Look up concepts, units and regions, where there is something to look them up in."""
        if isinstance(condition, WithinRegion) and self._regions is not None:
            self._regions[condition.region]
        if self._ontology is None:
            return
        tree = self._tree(name)
        if isinstance(condition, IsA):
            self._ontology.require(condition.concept, tree=tree)
        elif self._declared(name).kind is Kind.CONCEPT and isinstance(condition, Is | In):
            for value in scalars_of(condition):
                self._ontology.require(value, tree=tree)
        for value in scalars_of(condition):
            if isinstance(value, Quantity):
                self._unit(name, value)

    def _unit(self, name: str, value: Quantity) -> None:
        assert self._ontology is not None
        unit = self._ontology.unit(name)
        if unit is None:
            self._ontology.base_unit(value.unit)
        else:
            self._ontology.convert(value.amount, value.unit, to=unit.unit)

    def _knows(self, name: str) -> bool:
        return self._schema is None or not self._schema.closed or self._vocabulary.has_attribute(name)

    def _known(self) -> list[str]:
        return [*(self._schema or ()), *self._lore.derived]

    def _declared(self, name: str) -> Attribute:
        return self._vocabulary.find_attribute(self._lore.attribute(name)) or Attribute()

    def _tree(self, name: str) -> str | None:
        attribute = self._vocabulary.find_attribute(name)
        return attribute.tree if attribute is not None else None

    def _mistake(self, test: Test, message: str, part: str) -> None:
        assert self._spots is not None
        self.mistakes.append(self._spots.of(test).mistake(message, part))


_WAYS_OUT = {
    ("number", "text"): "; write the number without quotes",
    ("text", "number"): "; write the text in quotes, or declare it number",
    ("text", "time"): "; write the text in quotes, or declare it time",
}
"""What else to write, by the declared kind and the one that was asked for."""


def _refuse_units(name: str, condition: Condition) -> None:
    """Refuse an amount in a unit, where a number is declared without one."""
    unit = next((value.unit for value in scalars_of(condition) if isinstance(value, Quantity)), None)
    if unit is not None:
        way_out = f"write the number alone, or declare the unit of `{name}` in the ontology"
        msg = f"`{name}` is declared number without a unit, and this is in `{unit}`; {way_out}"
        raise ValueError(msg)


def _as_kind(condition: Condition, kind: Kind | None) -> Condition:
    """Read text literals as times or addresses where that is what the attribute holds."""
    if kind not in (Kind.TIME, Kind.IP) or condition_kind(condition) is not Kind.TEXT:
        return condition
    match condition, kind:
        case ((Is() | In()), Kind.IP):
            return InNetworks(tuple(literals.network(value) for value in scalars_of(condition)))
        case ((Is() | In()), Kind.TIME):
            return one_of(literals.moment(value) for value in scalars_of(condition))
        case Range(low, high), Kind.TIME:
            ends = [None if end is None else literals.moment(str(end)) for end in (low, high)]
            return replace(condition, low=ends[0], high=ends[1])
    return condition
