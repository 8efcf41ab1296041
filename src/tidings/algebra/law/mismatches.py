"""Counts of values that could not be read as the kind a test asked for, by typed attribute; diagnostics only.

`model: 483 of 500 values are text, asked as number` tells the author of `model > 5` why nothing matches. Only
undeclared attributes are counted; an unreadable value of a declared one makes its event bad instead. Counts accumulate
over batches and merge by addition. They are not locked: two threads may lose an increment, which is harmless here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute, describe_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.algebra.law.event_reading import Reading


@dataclass(frozen=True, slots=True)
class MismatchCount:
    """How many of an attribute's values are mismatches; `types` says what they are instead, most frequent first."""

    values: int
    mismatched: int
    types: tuple[tuple[str, int], ...]


class MismatchCounts:
    """The mismatch counts of one matcher."""

    def __init__(self) -> None:
        self.values: Counter[TypedAttribute] = Counter()
        self.types: dict[TypedAttribute, Counter[str]] = {}

    def count(self, readings: Iterable[Reading], attributes: frozenset[TypedAttribute]) -> None:
        """Count the values and mismatches of these attributes in some readings."""
        if not attributes:
            return
        totals: dict[TypedAttribute, int] = {}
        mismatches: list[tuple[TypedAttribute, Any]] = []
        for reading in readings:
            for key, values in reading.values.items():
                if key in attributes:
                    totals[key] = totals.get(key, 0) + len(values)
                    mismatches += [(key, value.raw) for value in values if type(value) is Mismatch]
        self.values.update(totals)
        for (key, type_word), number in Counter((key, describe_type(raw)) for key, raw in mismatches).items():
            self.add(key, type_word, number)

    def add(self, key: TypedAttribute, type_word: str, amount: int) -> None:
        """Add to the number of mismatches of one type."""
        self.types.setdefault(key, Counter())[type_word] += amount

    def merge(self, rows: Iterable[Any]) -> None:
        """Add counts written by another instance's `to_rows`."""
        for name, kind, unit, bare, values, types in rows:
            key = TypedAttribute(name, kind, unit, bare)
            self.values[key] += values
            for type_word, number in types.items():
                self.add(key, type_word, number)

    def to_rows(self) -> list[list[Any]]:
        """Return the counts of all attributes with mismatches as plain values."""
        return [[*key, self.values[key], dict(types)] for key, types in self.types.items()]

    def __iter__(self) -> Iterator[tuple[TypedAttribute, MismatchCount]]:
        """Yield the counts of each typed attribute with mismatches, the largest first."""
        for key, types in sorted(self.types.items(), key=lambda item: (-item[1].total(), item[0])):
            yield key, MismatchCount(self.values[key], types.total(), tuple(types.most_common()))
