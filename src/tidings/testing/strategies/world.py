"""A world: which attributes there are, what each holds, and everything a filter's meaning depends on.

Filters and events drawn for one world fit together: every concept, unit and region is known, and events aim at
the values that filters name. What is declared is asked for as what it is, and events hold what they should. In a
mixed world, what is not declared may be asked for as anything, and hold anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from tidings.concepts import Ontology, Regions
from tidings.model import Kind, Schema
from tidings.testing.strategies.values import NOW


@dataclass(frozen=True, slots=True)
class Slot:
    """What one attribute of a world holds.

    `declared` kinds are known without any filter's word; text that is `refinable` may be asked for as a concept or
    an address too. `units` are what amounts may be written in;
    unless `bare`, every amount must be, and `unit_from` names an attribute that may carry the unit.
    `words` are the spellings of concepts. Filters may write any of `spellings` for the attribute's name,
    and events those and the narrower names of `below`. A derived attribute is twice the number in `half`.
    """

    kind: Kind
    several: bool = True
    declared: bool = False
    refinable: bool = False
    units: tuple[str, ...] = ()
    bare: bool = True
    unit_from: str | None = None
    words: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    half: str | None = None
    fields: Mapping[str, Slot] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Show what is not as usual, so that a failing case can be read."""
        usual = Slot(self.kind)
        shown = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) != getattr(usual, name)}
        return f"Slot({', '.join([self.kind.value, *(f'{name}={value!r}' for name, value in shown.items())])})"


@dataclass(frozen=True, slots=True)
class Lore:
    """What a world's ontology was made from, in plain tables, for opinions that must not ask the ontology.

    `parents` lists, for each tree, its concepts with those right above; `synonyms` gives a concept's other
    spellings; `trees` the tree of an attribute; `units` the unit an attribute is kept in.
    """

    parents: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trees: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)


WORTH: Mapping[str, tuple[str, Fraction]] = {
    "GB": ("bit", Fraction(8 * 10**9)),
    "MB": ("bit", Fraction(8 * 10**6)),
    "km": ("meter", Fraction(1000)),
    "m": ("meter", Fraction(1)),
    "cm": ("meter", Fraction(1, 100)),
    "USD": ("USD", Fraction(1)),
    "EUR": ("USD", Fraction(5, 4)),
    "JPY": ("USD", Fraction(1, 128)),
}
"""The units of worlds: their family's base unit, and how much of it they are."""


@dataclass(frozen=True, slots=True)
class World:
    """The attributes, and the surroundings that `evaluate`, `parse` and `Matcher` take as keywords.

    In a `mixed` world, filters ask for undeclared attributes as several kinds and in several units, and events hold
    values of any kind there.
    """

    slots: Mapping[str, Slot]
    schema: Schema | None = None
    ontology: Ontology = field(default_factory=Ontology)
    regions: Regions | None = None
    now: datetime = NOW
    lore: Lore = field(default_factory=Lore, repr=False)
    mixed: bool = False

    @property
    def keywords(self) -> dict[str, Any]:
        """What to pass on: `evaluate(tree, event, **world.keywords)`."""
        return {"schema": self.schema, "ontology": self.ontology, "regions": self.regions, "now": self.now}

    def canonical(self, name: str) -> str:
        """Return the attribute that a filter means by a name."""
        return next((own for own, slot in self.slots.items() if name in slot.spellings), name)

    def alike(self, name: str) -> list[str]:
        """Return the attributes that may be compared with this one."""
        slot = self.slots[name]
        return [other for other, beside in self.slots.items() if _comparable(slot, beside, mixed=self.mixed)]

    def has_order(self, name: str, other: str) -> bool:
        """Tell whether the two may be asked which one is less."""
        slots = [self.slots[name], self.slots[other]]
        declared = [slot.kind for slot in slots if slot.declared]
        return all(kind.has_order for kind in declared or ([] if self.mixed else [slots[0].kind]))


def _comparable(one: Slot, two: Slot, *, mixed: bool) -> bool:
    if mixed and not (one.declared and two.declared) and Kind.RECORD not in (one.kind, two.kind):
        return True
    if one.kind is not two.kind or one.units != two.units or one.kind is Kind.RECORD or not one.bare:
        return False
    # Text stands for an address only where both sides are known to be addresses.
    return one.kind is not Kind.IP or (one.declared and two.declared)
