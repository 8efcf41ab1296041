"""What must be read of each attribute: as which kinds, in which units, one value or several.

`requirements` derives these specifications from filters and declarations; `event_reading` and the engine's columns read
events by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidings.algebra.law.typed_attribute import Label, TypedAttribute, to_kind_word
from tidings.model import Kind


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """How to read one attribute: kind, unit, cardinality, and the `labels` under which tests look the values up.

    `folded`: concept names are canonicalized. Without `bare`, a number must carry its unit. An unreadable value makes
    the event bad if `strict`, and is a `Mismatch` otherwise.
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

    def list_keys(self, name: str) -> list[TypedAttribute]:
        """Return the typed attributes under which tests look these values up."""
        own: Label = (to_kind_word(self.kind), "" if self.bare else self.unit or "", self.bare)
        return [TypedAttribute(name, *label) for label in self.labels or (own,)]


@dataclass(frozen=True, slots=True)
class Requirements:
    """The read specifications of each declared or used attribute; `wildcards` apply to all names below a prefix."""

    attributes: Mapping[str, tuple[ReadSpec, ...]] = field(default_factory=dict)
    wildcards: tuple[tuple[str, ReadSpec], ...] = ()

    def enter(self, array: str) -> Requirements:
        """Return the requirements of an array's elements, by names below its own."""
        prefix = f"{array}."
        below = {name.removeprefix(prefix): specs for name, specs in self.attributes.items() if name.startswith(prefix)}
        return Requirements(below)

    def find_lenient(self) -> frozenset[TypedAttribute]:
        """Return the typed attributes whose unreadable values are mismatches instead of making the event bad."""
        return frozenset(
            spec.list_keys(name)[0]
            for name, specs in self.attributes.items()
            for spec in specs
            if not spec.strict and spec.kind is not None
        )
