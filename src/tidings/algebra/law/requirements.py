"""Tracks what must be read of each attribute for a set of filters that come and go, and refuses what cannot be.

A schema or an ontology declares kinds; a filter that uses a declared attribute as another kind, or in a unit that is
not declared, is refused. Undeclared attributes are read once for each kind that some filter uses, side by side, so no
filter is refused because of another one and none changes what another one matches. Demands are reference-counted: when
the last filter with a demand goes, it is no longer read.

Cost: a filter whose demands are all counted already takes one walk, half a microsecond a test; only new demands take
the slow path with every check.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidings.algebra.law.read_specs import ReadSpec, Requirements
from tidings.algebra.law.requirement_counts import Demand, DemandCounts
from tidings.algebra.law.typed_attribute import AS_IS, Label, to_kind_word
from tidings.concepts import did_you_mean
from tidings.errors import FilterError, KindConflict, Mistake, TidingsError
from tidings.model import (
    Attribute,
    Compare,
    Comparison,
    Kind,
    Quantity,
    Schema,
    Test,
    get_other_name,
    list_scalars,
    walk_tests,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidings.concepts import Vocabulary
    from tidings.model import Condition, Filter

UNDECLARED = Attribute(several=True)
"""The attribute that stands for every undeclared one: any kind, several values."""


class RequirementTracker:
    """Reference-counts the demands of many filters and checks them against a schema and an ontology."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Start without filters; declared attributes are required from the start, so filters cannot make events bad."""
        self._vocabulary, self._ontology = vocabulary, vocabulary.concepts
        self._schema = Schema(closed=False) if vocabulary.schema is None else vocabulary.schema
        self._attributes: dict[str, Attribute | None] = {}
        names = [name for name in self._schema if not name.endswith(".*")]
        self._counts = DemandCounts([*map(self._ontology.attribute, names), *self._ontology.declared_names])

    def add(self, tree: Filter, witness: str) -> None:
        """Count the demands of a filter; if one is refused, nothing is counted. `witness` names it in errors."""
        counts = self._counts.find_counts(tree)
        if counts is None:
            self._add(list(walk_tests(tree)), witness)
            return
        for count in counts:
            count.count += 1

    def discard(self, tree: Filter) -> None:
        """Uncount the demands of a filter that `add` counted."""
        counts = self._counts.find_counts(tree)
        if counts is None:
            for name, demand in self._iterate_demands(list(walk_tests(tree))):
                self._counts.decrease(self._counts.demands[name][demand])
            return
        for count in counts:
            self._counts.decrease(count)

    def count(self, name: str, demand: Demand, number: int, *, witness: str = "a filter") -> None:
        """Add `number` (possibly negative) to the count of tests that demand this of the attribute.

        For bulk loads and removals, grouped by `derive_demand`. Refuses what `add` refuses, and then counts nothing.
        Comparisons between attributes go through `add` and `discard`.
        """
        number = int(number)
        tally = self._counts.find(name).get(demand)
        if number < 0:
            if tally is None or tally.count < -number:
                msg = f"`{name}` is asked for as {demand} {tally.count if tally else 0} times, not {-number}"
                raise TidingsError(msg)
            self._counts.decrease(tally, -number)
        elif number and tally is not None:
            tally.count += number
        elif number:
            self._refuse_unknown([name])
            self._check(name, demand, witness)
            self._counts.increase(name, demand, number, witness=witness)

    def derive_demand(self, name: str, condition: Condition) -> Demand:
        """Return the kind and unit that a condition demands of the attribute with this full name."""
        units = {value.unit for value in list_scalars(condition) if isinstance(value, Quantity)}
        asks_unit = units and self._ontology.unit(name) is None
        return Demand(condition.kind, self._ontology.base_unit(units.pop()) if asks_unit else None)

    def find_kinds(self, name: str) -> set[Kind | None]:
        """Return the kinds that filters use the attribute as; amounts in an undeclared unit count as `None`."""
        demands = [demand for demand in self._counts.find(name) if demand.kind is not None]
        return {None if demand.unit and not demand.bare else demand.kind for demand in demands}

    def find_units(self) -> dict[str, str]:
        """Return for each attribute without a declared unit one of the units that filters use."""
        return {
            name: demand.unit for name, demands in self._counts.demands.items() for demand in demands if demand.unit
        }

    def to_dict(self) -> dict[str, list[list[Any]]]:
        """Return the counts as plain values, in the form that snapshots store."""
        return self._counts.to_dict()

    def restore(self, counts: Mapping[str, Any]) -> None:
        """Restore counts written by `to_dict` for the same schema and ontology, without checking them again."""
        pairs = _read_pairs(counts.get("compared", ()))
        self._counts.restore(counts)
        # Snapshot formats before 4 counted both sides of a comparison apart and without a kind.
        for name, test, count in pairs:
            for side, demand in self._iterate_demands([(name, test)]):
                tally = self._counts.find(side).get(Demand(None))
                if tally is not None:
                    self._counts.decrease(tally, count)
                self._counts.increase(side, demand, count, witness="a comparison")

    def merge(self, counts: Mapping[str, Any]) -> None:
        """Add counts written by another tracker's `to_dict`; a contradiction raises and may leave a part added."""
        other = DemandCounts()
        other.restore(counts)
        for tally in [tally for demands in other.demands.values() for tally in demands.values()]:
            self.count(tally.name, tally.demand, tally.count, witness=tally.witness)

    def to_requirements(self) -> Requirements:
        """Return the read specifications of every attribute that is declared or used by a filter."""
        attributes = {name: specs for name in self._counts.demands if (specs := self.read_specs(name))}
        return Requirements(attributes, tuple(self._iterate_wildcards()))

    def read_specs(self, name: str) -> tuple[ReadSpec, ...]:
        """Return the specifications of one attribute: one if it is declared, else one for each kind in use."""
        attribute = self.find_attribute(name)
        demands = list(self._counts.find(name))
        if attribute.kind is not None:
            return self._build_declared_specs(name, attribute, demands)
        labels = {demand.label: demand for demand in demands}
        if self._find_declared(name) is not None and not attribute.several:
            labels.setdefault(AS_IS, Demand(None))  # a single-valued attribute rejects lists even if no filter uses it
        specs = []
        for label in sorted(labels):
            kind, unit = labels[label].kind, labels[label].unit
            kind = Kind.TEXT if kind is Kind.CONCEPT else kind
            specs.append(ReadSpec(kind, several=attribute.several, unit=unit, bare=label[2], labels=(label,)))
        return tuple(specs)

    def reads_all(self, name: str, reads: Label) -> bool:
        """Tell whether every value of a good event is readable under this label, so that no mismatch can occur."""
        attribute = self.find_attribute(name)
        return attribute.kind is not None and to_kind_word(attribute.kind) == reads[0] and self._is_strict(name)

    def find_attribute(self, name: str) -> Attribute:
        """Return the declaration of an attribute; its ancestors and sources may make it multivalued."""
        attribute = self._find_declared(name)
        return UNDECLARED if attribute is None else replace(attribute, several=self._is_multivalued(name))

    def _build_declared_specs(self, name: str, attribute: Attribute, demands: list[Demand]) -> tuple[ReadSpec, ...]:
        assert attribute.kind is not None
        own: Label = (to_kind_word(attribute.kind), "", True)
        unit = self._ontology.unit(name)
        # An undeclared unit is refused by `add`; an old snapshot may hold one all the same, and it is not read.
        labels = [demand.label for demand in demands if demand.kind is not Kind.IP and (demand.bare or not demand.unit)]
        first = ReadSpec(
            kind=attribute.kind,
            several=attribute.several,
            tree=attribute.tree,
            folded=attribute.kind is Kind.CONCEPT,
            unit=unit.unit if unit else None,
            unit_from=unit.unit_from if unit else None,
            strict=self._is_strict(name),
            labels=tuple(dict.fromkeys([own, *labels])),
        )
        if attribute.refinable and any(demand.kind is Kind.IP for demand in demands):
            return first, ReadSpec(Kind.IP, several=attribute.several, labels=((Kind.IP.value, "", True),))
        return (first,)

    def _is_strict(self, name: str) -> bool:
        """Tell whether an unreadable value makes the event bad; not if the kind comes from a derivation alone."""
        if name not in self._ontology.derived:
            return True
        attribute = self._schema.get(name)
        return attribute is not None and attribute.kind is not None

    def _iterate_wildcards(self) -> Iterator[tuple[str, ReadSpec]]:
        for name in self._schema:
            attribute = self._schema[name]
            if not name.endswith(".*") or (attribute.kind is None and attribute.several):
                continue
            kind, prefix = attribute.kind, name[:-2]
            several, folded = attribute.several or self._is_multivalued(prefix), kind is Kind.CONCEPT
            yield prefix, ReadSpec(kind, several, attribute.tree, folded, strict=kind is not None)

    def _is_multivalued(self, name: str) -> bool:
        """Tell whether an attribute may have several values: by declaration, several sources, or an array above it."""
        parts = name.split(".")
        ancestors = (self._find_declared(".".join(parts[:count])) for count in range(1, len(parts) + 1))
        return (
            any(attribute is not None and attribute.several for attribute in ancestors)
            or len(self._ontology.sources(name)) > 1
        )

    def _find_declared(self, name: str) -> Attribute | None:
        if name not in self._attributes:
            self._attributes[name] = self._vocabulary.find_attribute(name)
        return self._attributes[name]

    def _add(self, tests: list[tuple[str, Test]], witness: str) -> None:
        comparisons = [(name, test) for name, test in tests if isinstance(test.condition, Compare)]
        others = [get_other_name(name, test) for name, test in comparisons]
        self._refuse_unknown([*(name for name, _ in tests), *others])
        for (name, test), other in zip(comparisons, others, strict=True):
            self._check_comparison(name, test, other, witness)
        demands = list(self._iterate_demands(tests))
        for name, demand in demands:
            self._check(name, demand, witness)
        for name, demand in demands:
            self._counts.increase(name, demand, 1, witness=witness)
        self._counts.remember(tests)

    def _iterate_demands(self, tests: list[tuple[str, Test]]) -> Iterator[tuple[str, Demand]]:
        for name, test in tests:
            if isinstance(test.condition, Compare):
                other = get_other_name(name, test)
                demand = self.derive_comparison_demand(name, other)
                yield name, demand
                yield other, demand
            else:
                yield name, self.derive_demand(name, test.condition)

    def derive_comparison_demand(self, name: str, other: str) -> Demand:
        """Return the demand of a comparison on both attributes: kind and unit of the side that is declared."""
        sides = [(self.find_attribute(side_name), self._ontology.unit(side_name)) for side_name in (name, other)]
        sides.sort(key=lambda side: side[0].refinable)  # a string column takes the kind of the other side
        for attribute, unit in sides:
            if attribute.kind is not None:
                kind = Kind.TEXT if attribute.kind is Kind.CONCEPT else attribute.kind
                return Demand(kind, unit.unit, bare=True) if unit else Demand(kind)
        return Demand(None)

    def _check(self, name: str, demand: Demand, witness: str) -> None:
        """Raise `KindConflict` if a demand contradicts the declared kind or asks for an undeclared unit."""
        attribute = self._find_declared(name)
        if demand.kind is None or attribute is None or attribute.kind is None:
            return
        if not attribute.accepts(demand.kind):
            way_out = f"ask for {attribute}, or change the declaration"
            msg = f"`{name}` is declared {attribute}, but {witness} uses it as {demand}; {way_out}"
            raise KindConflict(msg, attribute=name)
        if demand.unit is not None and not demand.bare:
            way_out = f"write the number alone, or declare the unit of `{name}` in the ontology"
            msg = f"`{name}` is declared {attribute} without a unit, but {witness} uses it as {demand}; {way_out}"
            raise KindConflict(msg, attribute=name)

    def _check_comparison(self, name: str, test: Test, other: str, witness: str) -> None:
        """Raise `KindConflict` if two compared attributes differ in declared kind or unit, or have no order."""
        assert isinstance(test.condition, Compare)
        attributes = [self.find_attribute(side) for side in (name, other)]
        left, right = (attribute.kind for attribute in attributes)
        kind, units = left or right, [self._ontology.unit(side) for side in (name, other)]
        reason = None
        if left and right and not attributes[0].accepts(right) and not attributes[1].accepts(left):
            reason = f"compares `{name}`, declared {left}, with `{other}`, declared {right}"
        elif test.condition.op is not Comparison.EQ and kind and not kind.has_order:
            reason = f"asks `{name}` {test.condition.op} `{other}`, but values of the kind {kind} have no order"
        elif left is Kind.NUMBER and right is Kind.NUMBER and len({unit.unit if unit else None for unit in units}) > 1:
            unit_words = [f"in {unit.unit}" if unit else "without a unit" for unit in units]
            reason = f"compares `{name}`, {unit_words[0]}, with `{other}`, {unit_words[1]}; declare one unit for both"
        if reason:
            msg = f"{witness} {reason}"
            raise KindConflict(msg, attribute=name)

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        names = dict.fromkeys(name for name in names if not self._vocabulary.allows(name))
        if names:
            mistakes = tuple(Mistake(describe_unknown_attribute(name, self._schema)) for name in names)
            raise FilterError("\n".join(m.message for m in mistakes), mistakes=mistakes, text=None)


def describe_unknown_attribute(name: str, attributes: Iterable[str]) -> str:
    """Return the message for an unknown attribute, with the nearest known names."""
    names = list(attributes)
    near = did_you_mean(name, names) or "; the schema has " + ", ".join(f"`{n}`" for n in names[:8])
    return f"unknown attribute `{name}`{near}"


def collect_requirements(trees: Iterable[Filter], vocabulary: Vocabulary) -> Requirements:
    """Return the requirements of some filters; one that contradicts a declaration raises."""
    tracker = RequirementTracker(vocabulary)
    for tree in trees:
        tracker.add(tree, "the filter")
    return tracker.to_requirements()


def _read_pairs(rows: Any) -> list[tuple[str, Test, int]]:
    """Parse the comparison counts of snapshot formats before 4; malformed rows raise."""
    try:
        pairs = [(row[0] + row[1], Test(row[1], Compare(Comparison(row[2]), row[3])), int(row[4])) for row in rows]
    except (IndexError, TypeError, ValueError) as problem:
        msg = f"these are no counts of demands: {type(problem).__name__}: {problem}"
        raise TidingsError(msg) from problem
    return pairs
