"""What a set of filters needs to read of each attribute: as which kinds, how many values, in which units.

Kinds are declared, by a schema or an ontology; a filter that asks a declared attribute for another kind, or for a
unit that is not declared, is refused. Of other attributes each filter reads what it asks for, side by side with
those that ask for something else: no filter is refused because of another one, and none changes what another one
hears. Demands are counted, so that what nobody asks for any more is no longer read.

A demand that is there already has been judged, so a filter that asks for nothing new is only counted: one walk,
half a microsecond a test. All others take the long way, with every check.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tidings.algebra.law.requirement_counts import Demand, Tallies
from tidings.algebra.law.typed_attribute import AS_IS, Label, TypedAttribute, kind_word
from tidings.concepts import Vocabulary, did_you_mean
from tidings.errors import FilterError, KindConflict, Mistake, TidingsError
from tidings.model import Attribute, Compare, Comparison, Kind, Quantity, Test, condition_kind, scalars_of, tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.concepts import Ontology
    from tidings.model import Condition, Filter, Schema

UNDECLARED = Attribute(several=True)
"""What is known of an attribute that nobody declares."""


@dataclass(frozen=True, slots=True)
class Need:
    """One way to read an attribute; tests find what was read under its `labels`, or by what is asked for.

    `folded` names fold to their concept; without `bare`, a number must bring its unit. A value that cannot be
    read makes the event bad where the reading is `strict`, and is a `Mismatch` otherwise.
    """

    kind: Kind | None = None
    several: bool = True
    tree: str | None = None
    folded: bool = False
    unit: str | None = None
    unit_from: str | None = None
    bare: bool = True
    strict: bool = False
    labels: tuple[Label, ...] = ()

    def keys(self, name: str) -> list[TypedAttribute]:
        """Return what tests call this reading of the attribute."""
        own: Label = (kind_word(self.kind), "" if self.bare else self.unit or "", self.bare)
        return [TypedAttribute(name, *label) for label in self.labels or (own,)]


@dataclass(frozen=True, slots=True)
class Requirements:
    """How to read each attribute that is declared or asked for; `wildcards` are for every name below a prefix."""

    attributes: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    wildcards: tuple[tuple[str, Need], ...] = ()

    def lenient(self) -> frozenset[TypedAttribute]:
        """Return the readings in which a value that does not fit is a mismatch, and not a mistake of the event."""
        return frozenset(
            need.keys(name)[0]
            for name, needs in self.attributes.items()
            for need in needs
            if not need.strict and need.kind is not None
        )


class Needs:
    """The demands of many filters, held against a schema and an ontology."""

    def __init__(self, schema: Schema | None, ontology: Ontology) -> None:
        """Start without filters; declared attributes are read from the start: bad events do not depend on filters."""
        self._schema = schema
        self._ontology = ontology
        self._vocabulary = Vocabulary(schema, ontology)
        self._attributes: dict[str, Attribute | None] = {}
        names = [name for name in schema or () if not name.endswith(".*")]
        self._tallies = Tallies(dict.fromkeys([*map(ontology.attribute, names), *ontology.declared_names]))

    def add(self, tree: Filter, witness: str) -> None:
        """Count the filter's demands; nothing is counted when one of them is refused."""
        known = self._tallies.known(tree)
        if known is None:
            self._add(list(tests(tree)), witness)
            return
        for tally in known:
            tally.count += 1

    def discard(self, tree: Filter) -> None:
        """Take the filter's demands back."""
        known = self._tallies.known(tree)
        if known is None:
            for name, demand in self._asked(list(tests(tree))):
                self._tallies.take(self._tallies.demands[name][demand])
            return
        for tally in known:
            self._tallies.take(tally)

    def count(self, name: str, demand: Demand, number: int, *, witness: str = "a filter") -> None:
        """Count so many tests more, or fewer when `number` is below zero, that ask the attribute for the demand.

        For loads and removals of many filters at once, whose tests are told apart by `demand`. What `add` refuses
        is refused here, and then nothing is counted. Comparisons of attributes go through `add` and `discard`.
        """
        number = int(number)
        tally = self._tallies.of(name).get(demand)
        if number < 0:
            if tally is None or tally.count < -number:
                msg = f"`{name}` is asked for as {demand} {tally.count if tally else 0} times, not {-number}"
                raise TidingsError(msg)
            self._tallies.take(tally, -number)
        elif number and tally is not None:
            tally.count += number
        elif number:
            self._refuse_unknown([name])
            self._check(name, demand, witness)
            self._tallies.put(name, demand, number, witness=witness)

    def demand(self, name: str, condition: Condition) -> Demand:
        """Return what a condition asks of the attribute with this full name."""
        return Demand(condition_kind(condition), self._asked_unit(name, condition))

    def kinds_asked(self, name: str) -> set[Kind | None]:
        """Return the kinds that filters ask the attribute for; amounts whose unit is not declared are of none."""
        asked = [demand for demand in self._tallies.of(name) if demand.kind is not None]
        return {None if demand.unit and not demand.bare else demand.kind for demand in asked}

    def witness(self, name: str, demand: Demand) -> str | None:
        """Return who was the first to ask the attribute for this, if anybody does."""
        tally = self._tallies.of(name).get(demand)
        return None if tally is None else tally.witness

    def units(self) -> dict[str, str]:
        """Return the unit that filters ask of each attribute whose unit is not declared; of several, one."""
        return {name: demand.unit for name, of in self._tallies.demands.items() for demand in of if demand.unit}

    def to_dict(self) -> dict[str, list[list[Any]]]:
        """Return the counts in plain values: a snapshot keeps them beside its filters."""
        return self._tallies.to_dict()

    def restore(self, counts: Mapping[str, Any]) -> None:
        """Take over the counts that `to_dict` gave, for the same schema and ontology; nothing is judged again."""
        pairs = _read_pairs(counts.get("compared", ()))
        self._tallies.restore(counts)
        for name, test, count in pairs:
            self._restore_pair(name, test, count)

    def _restore_pair(self, name: str, test: Test, count: int) -> None:
        """Count a comparison as it was counted before format 4: apart, and as a demand for nothing of both sides."""
        for side, demand in self._asked([(name, test)]):
            tally = self._tallies.of(side).get(Demand(None))
            if tally is not None:
                self._tallies.take(tally, count)
            self._tallies.put(side, demand, count, witness="a comparison")

    def merge(self, counts: Mapping[str, Any]) -> None:
        """Count what was counted elsewhere, as `to_dict` gave it; what contradicts is refused, and half counted."""
        other = Tallies()
        other.restore(counts)
        for tally in [tally for demands in other.demands.values() for tally in demands.values()]:
            self.count(tally.name, tally.demand, tally.count, witness=tally.witness)

    def resolved(self) -> Requirements:
        """Return how to read every attribute that is declared, or that a filter mentions."""
        found = {name: needs for name in self._tallies.demands if (needs := self.needs(name))}
        return Requirements(found, tuple(self._wildcards()))

    def needs(self, name: str) -> tuple[Need, ...]:
        """Return the ways in which an attribute is read."""
        attribute = self.attribute(name)
        demands = list(self._tallies.of(name))
        if attribute.kind is not None:
            return self._declared_needs(name, attribute, demands)
        labels = {_label(demand): demand for demand in demands}
        if self._declared(name) is not None and not attribute.several:
            labels.setdefault(AS_IS, Demand(None))  # a list is bad, whoever asks
        return tuple(
            _undeclared(label, demand, several=attribute.several)
            for label, demand in sorted(labels.items(), key=_by_label)
        )

    def reads_all(self, name: str, reads: Label) -> bool:
        """Tell whether no value of a good event is a mismatch to tests that read the attribute so."""
        attribute = self.attribute(name)
        return attribute.kind is not None and kind_word(attribute.kind) == reads[0] and self._is_strict(name)

    def attribute(self, name: str) -> Attribute:
        """Return what is declared of an attribute; whether it may have several values follows from all around it."""
        attribute = self._declared(name)
        return UNDECLARED if attribute is None else replace(attribute, several=self._several(name))

    def _declared_needs(self, name: str, attribute: Attribute, demands: list[Demand]) -> tuple[Need, ...]:
        assert attribute.kind is not None
        own: Label = (kind_word(attribute.kind), "", True)
        unit = self._ontology.unit(name)
        refined = attribute.refinable and any(demand.kind is Kind.IP for demand in demands)
        # A unit that is not declared is refused; of a snapshot that holds one all the same, nothing is read.
        alike = [
            _label(demand) for demand in demands if demand.kind is not Kind.IP and (demand.bare or not demand.unit)
        ]
        first = Need(
            kind=attribute.kind,
            several=attribute.several,
            tree=attribute.tree,
            folded=attribute.kind is Kind.CONCEPT,
            unit=unit.unit if unit else None,
            unit_from=unit.unit_from if unit else None,
            strict=self._is_strict(name),
            labels=tuple(dict.fromkeys([own, *alike])),
        )
        if not refined:
            return (first,)
        return first, Need(Kind.IP, several=attribute.several, labels=((Kind.IP.value, "", True),))

    def _is_strict(self, name: str) -> bool:
        """Tell whether an unreadable value makes the event bad: what only a derivation gives is not declared."""
        if name not in self._ontology.derived:
            return True
        told = None if self._schema is None else self._schema.get(name)
        return told is not None and told.kind is not None

    def _wildcards(self) -> Iterator[tuple[str, Need]]:
        for name in self._schema or ():
            attribute = self._schema[name] if self._schema is not None else UNDECLARED
            if not name.endswith(".*") or (attribute.kind is None and attribute.several):
                continue
            several = attribute.several or self._several(name[:-2])
            folded = attribute.kind is Kind.CONCEPT
            yield name[:-2], Need(attribute.kind, several, attribute.tree, folded, strict=attribute.kind is not None)

    def _several(self, name: str) -> bool:
        """Tell whether an attribute may have several values: by its word, its sources, or in an array."""
        parts = name.split(".")
        places = (self._declared(".".join(parts[:count])) for count in range(1, len(parts) + 1))
        return any(told is not None and told.several for told in places) or len(self._ontology.sources(name)) > 1

    def _declared(self, name: str) -> Attribute | None:
        if name not in self._attributes:
            self._attributes[name] = self._vocabulary.find_attribute(name)
        return self._attributes[name]

    def _add(self, found: list[tuple[str, Test]], witness: str) -> None:
        compared = [(name, test) for name, test in found if isinstance(test.condition, Compare)]
        others = [_beside(name, test) for name, test in compared]
        self._refuse_unknown([*(name for name, _ in found), *others])
        for (name, test), other in zip(compared, others, strict=True):
            self._check_compared(name, test, other, witness)
        asked = list(self._asked(found))
        for name, demand in asked:
            self._check(name, demand, witness)
        for name, demand in asked:
            self._tallies.put(name, demand, 1, witness=witness)
        self._tallies.remember(found)

    def _asked(self, found: list[tuple[str, Test]]) -> Iterator[tuple[str, Demand]]:
        for name, test in found:
            if isinstance(test.condition, Compare):
                other = _beside(name, test)
                demand = self.compared(name, other)
                yield name, demand
                yield other, demand
            else:
                yield name, self.demand(name, test.condition)

    def compared(self, name: str, other: str) -> Demand:
        """Return what a comparison asks of both attributes: a declared side gives the kind, and the unit."""
        sides = [(self.attribute(one), self._ontology.unit(one)) for one in (name, other)]
        sides.sort(key=lambda side: side[0].refinable)  # a column of strings compares as what the other side is
        for attribute, unit in sides:
            if attribute.kind is not None:
                kind = Kind.TEXT if attribute.kind is Kind.CONCEPT else attribute.kind
                return Demand(kind, unit.unit, bare=True) if unit else Demand(kind)
        return Demand(None)

    def _asked_unit(self, name: str, condition: Condition) -> str | None:
        units = {value.unit for value in scalars_of(condition) if isinstance(value, Quantity)}
        if not units or self._ontology.unit(name) is not None:
            return None
        return self._ontology.base_unit(units.pop())

    def _check(self, name: str, demand: Demand, witness: str) -> None:
        """Refuse what a declared attribute does not have: another kind, or a unit."""
        told = self._declared(name)
        if demand.kind is None or told is None or told.kind is None:
            return
        if not told.accepts(demand.kind):
            way_out = f"ask for {told}, or change the declaration"
            msg = f"`{name}` is declared {told}, but {witness} uses it as {demand}; {way_out}"
            raise KindConflict(msg, attribute=name)
        if demand.unit is not None and not demand.bare:
            way_out = f"write the number alone, or declare the unit of `{name}` in the ontology"
            msg = f"`{name}` is declared {told} without a unit, but {witness} uses it as {demand}; {way_out}"
            raise KindConflict(msg, attribute=name)

    def _check_compared(self, name: str, test: Test, other: str, witness: str) -> None:
        """Refuse to compare declared attributes that differ in kind or unit, or have no order."""
        assert isinstance(test.condition, Compare)
        told = [self.attribute(one) for one in (name, other)]
        one, two = (attribute.kind for attribute in told)
        kind, units = one or two, [self._ontology.unit(one) for one in (name, other)]
        reason = None
        if one and two and not told[0].accepts(two) and not told[1].accepts(one):
            reason = f"compares `{name}`, declared {one}, with `{other}`, declared {two}"
        elif test.condition.op is not Comparison.EQ and kind and not kind.ordered:
            reason = f"asks `{name}` {test.condition.op} `{other}`, but values of the kind {kind} have no order"
        elif one is Kind.NUMBER and two is Kind.NUMBER and len({unit.unit if unit else None for unit in units}) > 1:
            said = [f"in {unit.unit}" if unit else "without a unit" for unit in units]
            reason = f"compares `{name}`, {said[0]}, with `{other}`, {said[1]}; declare one unit for both"
        if reason:
            msg = f"{witness} {reason}"
            raise KindConflict(msg, attribute=name)

    def _refuse_unknown(self, found: Iterable[str]) -> None:
        if self._schema is None or not self._schema.closed:
            return
        names = dict.fromkeys(name for name in found if not self._vocabulary.has_attribute(name))
        if names:
            mistakes = tuple(Mistake(unknown_attribute(name, self._schema)) for name in names)
            raise FilterError("\n".join(m.message for m in mistakes), mistakes=mistakes, text=None)


def unknown_attribute(name: str, known: Iterable[str]) -> str:
    """Say that an attribute is not known, and which one may be meant."""
    names = list(known)
    near = did_you_mean(name, names) or "; the schema has " + ", ".join(f"`{n}`" for n in names[:8])
    return f"unknown attribute `{name}`{near}"


def needs_of(trees: Iterable[Filter], *, schema: Schema | None, ontology: Ontology) -> Requirements:
    """Return what these filters need, or refuse what a declaration does not have."""
    needs = Needs(schema, ontology)
    for tree in trees:
        needs.add(tree, "the filter")
    return needs.resolved()


def _beside(name: str, test: Test) -> str:
    """Return the full name of the attribute that a test compares its own with: both are of one record."""
    assert isinstance(test.condition, Compare)
    return name[: len(name) - len(test.attribute)] + test.condition.other


def _read_pairs(rows: Any) -> list[tuple[str, Test, int]]:
    """Read the comparisons that were counted apart, or refuse what does not read as such."""
    try:
        pairs = [(row[0] + row[1], Test(row[1], Compare(Comparison(row[2]), row[3])), int(row[4])) for row in rows]
    except (IndexError, TypeError, ValueError) as problem:
        msg = f"these are no counts of demands: {type(problem).__name__}: {problem}"
        raise TidingsError(msg) from problem
    return pairs


def _label(demand: Demand) -> Label:
    return kind_word(demand.kind), demand.unit or "", demand.bare or demand.unit is None


def _by_label(item: tuple[Label, Demand]) -> Label:
    return item[0]


def _undeclared(label: Label, demand: Demand, *, several: bool) -> Need:
    kind = Kind.TEXT if demand.kind is Kind.CONCEPT else demand.kind
    return Need(kind, several=several, unit=demand.unit, bare=label[2], labels=(label,))
