"""A world: attributes, the values each can have, and everything that a filter's meaning depends on.

Filters and events drawn for one world fit together: every concept, unit and region is known, and events aim at
the values that filters name. Declared attributes are read as their kind, and events hold values of it. In a mixed
world, undeclared attributes may be read as any kind, and hold any value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tidings.concepts import Ontology, Regions
from tidings.model import Kind, Schema
from tidings.testing.strategies.values import NOW


@dataclass(frozen=True, slots=True)
class Slot:
    """One attribute of a world.

    A `declared` kind stands in the schema or the ontology; `refinable` text may also be read as a concept or an
    address. `units` are the units of amounts; unless `bare`, every amount has one, and `unit_from` names an attribute
    that may carry the unit.
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
    fields: Mapping[str, Slot] = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        """Show the fields that differ from the defaults, so that a failing case is readable."""
        usual = Slot(self.kind)
        fields = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) != getattr(usual, name)}
        return f"Slot({', '.join([self.kind.value, *(f'{name}={value!r}' for name, value in fields.items())])})"


@dataclass(frozen=True, slots=True)
class Lore:
    """The contents of a world's ontology as plain tables, for oracles that must not use the ontology itself.

    `parents` lists, for each tree, its concepts with their parents; `synonyms` gives a concept's other
    spellings; `trees` the tree of an attribute; `units` the unit of an attribute.
    """

    parents: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trees: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """The attributes, and the keywords that `evaluate`, `parse` and `Matcher` take.

    In a `mixed` world, filters read undeclared attributes as several kinds and in several units, and events hold
    values of any kind in them.
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
        """Keyword arguments: `evaluate(tree, event, **world.keywords)`."""
        return {"schema": self.schema, "ontology": self.ontology, "regions": self.regions, "now": self.now}

    def canonical(self, name: str) -> str:
        """Return the attribute that a filter means by a name."""
        return next((own for own, slot in self.slots.items() if name in slot.spellings), name)

    def alike(self, name: str) -> list[str]:
        """Return the attributes that may be compared with this one."""
        slot = self.slots[name]
        return [other for other, beside in self.slots.items() if _is_comparable(slot, beside, mixed=self.mixed)]

    def has_order(self, name: str, other: str) -> bool:
        """Tell whether the two attributes can be compared by `<`."""
        slots = [self.slots[name], self.slots[other]]
        declared = [slot.kind for slot in slots if slot.declared]
        return all(kind.has_order for kind in declared or ([] if self.mixed else [slots[0].kind]))


def _is_comparable(left: Slot, right: Slot, *, mixed: bool) -> bool:
    if mixed and not (left.declared and right.declared) and Kind.RECORD not in (left.kind, right.kind):
        return True
    if left.kind is not right.kind or left.units != right.units or left.kind is Kind.RECORD or not left.bare:
        return False
    # Text is read as an address only where both sides are declared to be addresses.
    return left.kind is not Kind.IP or (left.declared and right.declared)
