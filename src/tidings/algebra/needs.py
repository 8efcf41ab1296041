"""What a set of filters needs to know of each attribute: its kind, how many values, its unit.

Kinds come from a declared schema or ontology; where those are silent, from the filters, never from
events. Filters that contradict each other are refused, and the error names both. Demands are counted,
so that removing the last filter that asked for a kind sets the attribute free again.

A demand that is there already contradicts nothing that is there, so a filter that asks for nothing new is
only counted: one walk, half a microsecond a test. All others take the long way, with every check.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidings.algebra.demands import Demand, Pair, Tallies, compared
from tidings.concepts import declared, did_you_mean, knows
from tidings.errors import FilterError, KindConflict, Mistake, TidingsError
from tidings.model import Attribute, Comparison, Kind, Quantity, Test, condition_kind, scalars_of, tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tidings.concepts import Ontology
    from tidings.model import Condition, Filter, Schema


@dataclass(frozen=True, slots=True)
class Need:
    """How to read one attribute.

    `folded` names fold to their concept; without `bare`, a number must bring its unit. `compared` lists the
    attributes it must be comparable with: where the record stands that holds both, how, and which.
    """

    kind: Kind | None = None
    several: bool = True
    tree: str | None = None
    folded: bool = False
    unit: str | None = None
    unit_from: str | None = None
    bare: bool = True
    compared: tuple[Pair, ...] = ()


class Needs:
    """The demands of many filters, held against a schema and an ontology."""

    def __init__(self, schema: Schema | None, ontology: Ontology) -> None:
        """Start without filters; a declared attribute is needed from the start."""
        self._schema = schema
        self._ontology = ontology
        self._told: dict[str, Attribute | None] = {}
        closed = schema if schema is not None and schema.closed else ()
        self._tallies = Tallies(name for name in closed if not name.endswith(".*"))

    def add(self, tree: Filter, witness: str) -> None:
        """Count the filter's demands; nothing is counted when one of them contradicts."""
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
            self._discard(list(tests(tree)))
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
            self._check_compared(witness, undo=lambda: self.count(name, demand, -number))

    def demand(self, name: str, condition: Condition) -> Demand:
        """Return what a condition asks of the attribute with this full name."""
        return Demand(condition_kind(condition), self._asked_unit(name, condition))

    def to_dict(self) -> dict[str, list[list[Any]]]:
        """Return the counts in plain values: a snapshot keeps them beside its filters."""
        return self._tallies.to_dict()

    def restore(self, counts: Mapping[str, Any]) -> None:
        """Take over the counts that `to_dict` gave, for the same schema and ontology; nothing is judged again."""
        self._tallies.restore(counts)

    def merge(self, counts: Mapping[str, Any]) -> None:
        """Count what was counted elsewhere, as `to_dict` gave it; what contradicts is refused, and half counted."""
        other = Tallies()
        other.restore(counts)
        for tally in [tally for demands in other.demands.values() for tally in demands.values()]:
            self.count(tally.name, tally.demand, tally.count, witness=tally.witness)
        for pair, number in other.compared.items():
            for _ in range(number):
                self._tallies.put_pair(pair)
        self._check_compared("a comparison", undo=lambda: None)

    def resolved(self) -> dict[str, Need]:
        """Return the need of every attribute that a filter mentions or a closed schema declares."""
        found = {name: self.need(name) for name in self._tallies.demands}
        for pair in self._tallies.compared:
            left = found[pair.names[0]]
            found[pair.names[0]] = replace(left, compared=(*left.compared, pair))
        before: dict[str, Need] | None = None
        while before != found:  # what is known of one attribute goes along chains of comparisons
            before = dict(found)
            for left_name, right_name in (pair.names for pair in self._tallies.compared):
                found[left_name] = self._like(left_name, found[left_name], found[right_name])
                found[right_name] = self._like(right_name, found[right_name], found[left_name])
        return found

    def _like(self, name: str, one: Need, two: Need) -> Need:
        """Read an attribute that no test names a value of as the one it is compared with, in the same unit."""
        unnamed = not any(demand.kind for demand in self._tallies.of(name))
        if one.kind is None or (one.kind is two.kind and one.unit is None and unnamed):
            return replace(one, kind=two.kind, unit=two.unit, bare=two.bare)
        return one

    def need(self, name: str) -> Need:
        """Return the need of one attribute, mentioned or not."""
        told, unit = self._declared(name), self._ontology.unit(name)
        demands = [demand for demand in self._tallies.of(name) if demand.kind]
        kind = told.kind if told and told.kind else _joined(demands)
        asked_unit = next((demand.unit for demand in demands if demand.unit), None)
        return Need(
            kind=kind,
            several=told is None or self._several(name),
            tree=told.tree if told else None,
            folded=told is not None and told.kind is Kind.CONCEPT,
            unit=unit.unit if unit else asked_unit,
            unit_from=unit.unit_from if unit else None,
            bare=unit is not None or asked_unit is None,
        )

    def _several(self, name: str) -> bool:
        """Tell whether an attribute may have several values: by its word, its sources, or in an array."""
        parts = name.split(".")
        places = (self._declared(".".join(parts[:count])) for count in range(1, len(parts) + 1))
        return any(told is not None and told.several for told in places) or len(self._ontology.sources(name)) > 1

    def _declared(self, name: str) -> Attribute | None:
        if name not in self._told:
            self._told[name] = declared(name, self._schema, self._ontology)
        return self._told[name]

    def _add(self, found: list[tuple[str, Test]], witness: str) -> None:
        self._refuse_unknown(name for name, _ in found)
        asked = list(self._asked(found))
        for name, demand in asked:
            self._check(name, demand, witness)
        _check_within(asked)
        fresh = [self._tallies.put(name, demand, 1, witness=witness) for name, demand in asked]
        fresh += [self._tallies.put_pair(pair) for pair in compared(found)]
        self._tallies.remember(found)
        if any(fresh):
            self._check_compared(witness, undo=lambda: self._discard(found))

    def _discard(self, found: list[tuple[str, Test]]) -> None:
        for name, demand in self._asked(found):
            self._tallies.take(self._tallies.demands[name][demand])
        for pair in compared(found):
            self._tallies.take_pair(pair)

    def _asked(self, found: list[tuple[str, Test]]) -> Iterator[tuple[str, Demand]]:
        for name, test in found:
            yield name, self.demand(name, test.condition)
        for pair in compared(found):
            yield pair.names[1], Demand(None)

    def _asked_unit(self, name: str, condition: Condition) -> str | None:
        units = {value.unit for value in scalars_of(condition) if isinstance(value, Quantity)}
        if not units or self._ontology.unit(name) is not None:
            return None
        return self._ontology.base_unit(units.pop())

    def _check(self, name: str, demand: Demand, witness: str) -> None:
        if demand.kind is None:
            return
        told = self._declared(name)
        if told is not None and told.kind is not None:
            if not _compatible(told.kind, demand.kind):
                msg = f"`{name}` is declared {told.kind}, but {witness} uses it as {demand}"
                raise KindConflict(msg, attribute=name)
            return
        for other, tally in self._tallies.of(name).items():
            if other.kind is not None and not _agree(other, demand):
                msg = f"`{name}` is used as {other} by {tally.witness} and as {demand} by {witness}"
                raise KindConflict(msg, attribute=name)

    def _check_compared(self, witness: str, *, undo: Callable[[], None]) -> None:
        """Refuse compared attributes that, with what was just counted, differ in kind or unit, or have no order."""
        needs = self.resolved() if self._tallies.compared else {}
        for pair in self._tallies.compared:
            left, right = pair.names
            one, two = needs[left].kind, needs[right].kind
            units = [needs[name].unit for name in pair.names]
            reason = None
            if one and two and not _compatible(one, two) and not _compatible(two, one):
                reason = f"compares `{left}`, {one}, with `{right}`, {two}"
            elif pair.op is not Comparison.EQ and one and not one.ordered:
                reason = f"asks `{left}` {pair.op} `{right}`, but values of the kind {one} have no order"
            elif one is Kind.NUMBER and units[0] != units[1]:
                said = [f"in {unit}" if unit else "without a unit" for unit in units]
                reason = f"compares `{left}`, {said[0]}, with `{right}`, {said[1]}; declare one unit for both"
            if reason:
                undo()
                msg = f"{witness}, or an earlier one with it, {reason}"
                raise KindConflict(msg, attribute=left)

    def _refuse_unknown(self, found: Iterable[str]) -> None:
        if self._schema is None or not self._schema.closed:
            return
        names = dict.fromkeys(name for name in found if not knows(name, self._schema, self._ontology))
        if names:
            mistakes = tuple(Mistake(unknown_attribute(name, self._schema)) for name in names)
            raise FilterError("\n".join(m.message for m in mistakes), mistakes=mistakes, text=None)


def unknown_attribute(name: str, known: Iterable[str]) -> str:
    """Say that an attribute is not known, and which one may be meant."""
    names = list(known)
    near = did_you_mean(name, names) or "; the schema has " + ", ".join(f"`{n}`" for n in names[:8])
    return f"unknown attribute `{name}`{near}"


def needs_of(trees: Iterable[Filter], *, schema: Schema | None, ontology: Ontology) -> dict[str, Need]:
    """Return what these filters need, or refuse their contradictions."""
    needs = Needs(schema, ontology)
    for tree in trees:
        needs.add(tree, "the filter")
    return needs.resolved()


def _check_within(asked: list[tuple[str, Demand]]) -> None:
    seen: dict[str, Demand] = {}
    for name, demand in asked:
        if demand.kind is None:
            continue
        other = seen.setdefault(name, demand)
        if not _agree(other, demand):
            msg = f"the filter uses `{name}` as {other} and as {demand}"
            raise KindConflict(msg, attribute=name)


def _joined(demands: list[Demand]) -> Kind | None:
    kinds = {demand.kind for demand in demands}
    return Kind.CONCEPT if Kind.CONCEPT in kinds else next(iter(kinds), None)


def _agree(one: Demand, two: Demand) -> bool:
    if one.kind is Kind.NUMBER and two.kind is Kind.NUMBER:
        return one.unit == two.unit
    return one.kind is two.kind or {one.kind, two.kind} == {Kind.TEXT, Kind.CONCEPT}


def _compatible(declared: Kind, asked: Kind) -> bool:
    return declared is asked or (declared is Kind.CONCEPT and asked is Kind.TEXT)
