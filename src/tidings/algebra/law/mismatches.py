"""How many values could not be read as tests asked for them, by attribute and kind: shown to people, never fatal.

`model: 483 of 500 values are text, asked as number` tells the author of `model > 5` why nothing comes. Only what
filters ask of attributes that nobody declares is counted; a declared attribute makes such events bad instead.
Counts are kept from batch to batch and merge by addition. Two threads may lose a count between them: these are
for the eye.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute, sort_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.algebra.law.event_reading import Reading


@dataclass(frozen=True, slots=True)
class MismatchCount:
    """So many of so many values of an attribute are not what tests ask for; `sorts` says what they are instead."""

    values: int
    mismatched: int
    sorts: tuple[tuple[str, int], ...]


class Mismatches:
    """The counts of one matcher."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.values: Counter[TypedAttribute] = Counter()
        self.sorts: dict[TypedAttribute, Counter[str]] = {}

    def count(self, readings: Iterable[Reading], counted: frozenset[TypedAttribute]) -> None:
        """Count the values that events gave for these attributes."""
        if not counted:
            return
        totals: dict[TypedAttribute, int] = {}
        odd: list[tuple[TypedAttribute, Any]] = []
        for reading in readings:
            for key, values in reading.values.items():
                if key in counted:
                    totals[key] = totals.get(key, 0) + len(values)
                    odd += [(key, value.raw) for value in values if type(value) is Mismatch]
        self.values.update(totals)
        for (key, sort), number in Counter((key, sort_of(raw)) for key, raw in odd).items():
            self.add(key, sort, number)

    def add(self, key: TypedAttribute, sort: str, number: int) -> None:
        """Count so many values of one sort that could not be read."""
        self.sorts.setdefault(key, Counter())[sort] += number

    def merge(self, rows: Iterable[Any]) -> None:
        """Add counts that were made elsewhere, as `to_rows` gave them."""
        for name, kind, unit, bare, values, sorts in rows:
            key = TypedAttribute(name, kind, unit, bare)
            self.values[key] += values
            for sort, number in sorts.items():
                self.add(key, sort, number)

    def to_rows(self) -> list[list[Any]]:
        """Return the counts of all attributes that have mismatches, in plain values."""
        return [[*key, self.values[key], dict(sorts)] for key, sorts in self.sorts.items()]

    def __iter__(self) -> Iterator[tuple[TypedAttribute, MismatchCount]]:
        """Yield the counts of each attribute and kind that has mismatches, most of them first."""
        for key, sorts in sorted(self.sorts.items(), key=lambda item: (-item[1].total(), item[0])):
            yield key, MismatchCount(self.values[key], sorts.total(), tuple(sorts.most_common()))
