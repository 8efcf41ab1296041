"""What a table holds for one attribute, and the same of several columns that feed one attribute.

The leaves of an attribute tree are columns of their own, and a filter may ask for any name above them: what it asks
for is the values of all columns below, event by event. Each column is read once, however many names it feeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.algebra.law.typed_attribute import Mismatch, describe_type
from tidings.engine.events.arrow_values import ArrayValues, Mask, NotPlain
from tidings.engine.events.event_columns import EXACT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.algebra.law.mismatches import MismatchCounts
    from tidings.algebra.law.typed_attribute import TypedAttribute


@dataclass(frozen=True, slots=True)
class AttributeValues:
    """What a table holds for one attribute: one place for each event or, with `owners`, for each list element."""

    values: ArrayValues
    count: int
    null: Mask | None = None
    refused: Mask | None = None
    owners: NDArray[np.int64] | None = None

    def find_refused(self) -> Mask | None:
        """Return the events that hold something the reader refuses."""
        bad = self.values.unreadable
        if self.owners is None or bad is None:
            return self.refused if bad is None else bad
        found = np.zeros(self.count, dtype=bool)
        found[self.owners[bad]] = True
        return found

    def tally_mismatches(self, key: TypedAttribute, mismatches: MismatchCounts) -> None:
        """Count the values, and by what they are those that could not be read as they are asked for."""
        held = self.values
        places = self.count if self.owners is None else len(self.owners)
        mismatches.values[key] += places if held.present is None else int(np.count_nonzero(held.present))
        if held.index is not None:
            if any(isinstance(value, Mismatch) for value in held.distinct):
                counts = np.bincount(held.index[held.index >= 0], minlength=len(held.distinct)).tolist()
                for value, number in zip(held.distinct, counts, strict=True):
                    if isinstance(value, Mismatch) and number:
                        mismatches.add(key, describe_type(value.raw), number)
        elif held.numbers is not None and held.numbers.dtype.kind == "f" and np.isinf(held.numbers).any():
            mismatches.add(key, "number", int(np.count_nonzero(np.isinf(held.numbers))))

    def select(self, plain: Mask, count: int) -> AttributeValues:
        """Return what the plain events hold, of which there are `count`."""
        null = None if self.null is None else self.null[plain]
        if self.owners is None:
            return AttributeValues(self.values.select(plain), count, null)
        places, renumbered = plain[self.owners], np.cumsum(plain) - 1
        if self.values.present is not None:
            places &= self.values.present
        return AttributeValues(self.values.select(places), count, null, owners=renumbered[self.owners[places]])


class SharedDictionary:
    """The distinct values of columns that are read alike, numbered once for all of them."""

    def __init__(self) -> None:
        """Start without any."""
        self._numbers: dict[Any, int] = {}
        self._told: tuple[Any, ...] = ()

    def number(self, index: NDArray[np.int64], distinct: tuple[Any, ...]) -> NDArray[np.int64]:
        """Return the common numbers of a column's values."""
        numbers = [self._numbers.setdefault((type(word), word), len(self._numbers)) for word in distinct]
        found: NDArray[np.int64] = np.array(numbers, dtype=np.int64)[index]
        return found

    @property
    def distinct(self) -> tuple[Any, ...]:
        """Return the values by number; the same tuple, as long as there are no more of them."""
        if len(self._told) < len(self._numbers):
            self._told = tuple(word for _, word in self._numbers)
        return self._told


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column of several: the events that have a value there, and the values, a place for each.

    The `index` of distinct values is into the words that all pieces share.
    """

    attribute: AttributeValues
    owners: NDArray[np.int64]
    values: ArrayValues

    @classmethod
    def from_attribute(cls, found: AttributeValues, words: SharedDictionary) -> SourceColumn:
        """Return what is there of a column, without the places where nothing is."""
        held, there = found.values, found.values.present
        owners = np.arange(found.count) if found.owners is None else found.owners
        places = np.ones(len(owners), dtype=bool) if there is None else there.copy()
        if held.unreadable is not None:
            places &= ~held.unreadable
        kept = held.select(places)
        if kept.index is not None:
            kept = ArrayValues(index=words.number(kept.index, kept.distinct))
        return cls(found, owners[places], kept)


def merge_columns(pieces: Sequence[SourceColumn], *, several: bool, words: SharedDictionary) -> AttributeValues:
    """Return what several columns hold together; where an attribute has one value, events with more are refused."""
    count = pieces[0].attribute.count
    there = [piece for piece in pieces if len(piece.owners)]
    owners = np.concatenate([piece.owners for piece in there]) if there else np.zeros(0, dtype=np.int64)
    held = (
        _concatenate_values([piece.values for piece in there], words)
        if there
        else ArrayValues(np.zeros(count, dtype=bool))
    )
    refused = _union_masks([piece.attribute.find_refused() for piece in pieces])
    if not there:
        return AttributeValues(held, count, _union_masks([piece.attribute.null for piece in pieces]), refused)
    counts = np.bincount(owners, minlength=count)
    null = _union_masks([piece.attribute.null for piece in pieces])
    null = None if null is None else null & (counts == 0)
    if counts.max() <= 1:
        return AttributeValues(_spread_over_events(held, owners, count), count, null, refused)
    if not several:
        refused = counts > 1 if refused is None else refused | (counts > 1)
    order = np.argsort(owners, kind="stable")
    return AttributeValues(_reorder(held, order), count, null, refused, owners=owners[order])


def _union_masks(masks: Sequence[Mask | None]) -> Mask | None:
    found: Mask | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found | mask
    return found


def _concatenate_values(parts: Sequence[ArrayValues], words: SharedDictionary) -> ArrayValues:
    """Return the values of parts one after another; they must be kept the same way."""
    first = parts[0]
    if all(part.index is not None for part in parts):
        return ArrayValues(index=np.concatenate([part.index for part in parts]), distinct=words.distinct)
    if all(part.numbers is not None for part in parts):
        return ArrayValues(numbers=_concatenate_numbers([part.numbers for part in parts]))
    if all(part.times is not None for part in parts):
        return ArrayValues(times=np.concatenate([part.times for part in parts]))
    if all(part.points is not None for part in parts):
        both = [np.concatenate([part.points[side] for part in parts]) for side in (0, 1)]  # type: ignore[index]
        return ArrayValues(points=(both[0], both[1]))
    if all(_has_no_values(part) for part in parts):
        return first  # nothing that any view could see: only that it exists
    raise NotPlain


def _has_no_values(part: ArrayValues) -> bool:
    return part.index is None and part.numbers is None and part.times is None and part.points is None


def _concatenate_numbers(parts: Sequence[Any]) -> NDArray[Any]:
    """Return numbers of one type; integers beside floats must be such as floats hold."""
    if len({part.dtype.kind for part in parts}) > 1:
        if any(part.dtype.kind != "f" and np.abs(part.astype(np.float64)).max(initial=0) >= EXACT for part in parts):
            raise NotPlain
        parts = [part.astype(np.float64) for part in parts]
    return np.concatenate(parts)


def _reorder(held: ArrayValues, order: NDArray[np.int64]) -> ArrayValues:
    """Return the values in another order."""
    return ArrayValues(
        numbers=None if held.numbers is None else held.numbers[order],
        times=None if held.times is None else held.times[order],
        points=None if held.points is None else (held.points[0][order], held.points[1][order]),
        index=None if held.index is None else held.index[order],
        distinct=held.distinct,
    )


def _spread_over_events(held: ArrayValues, owners: NDArray[np.int64], count: int) -> ArrayValues:
    """Return values with a place for each event, there where an event has one."""
    if len(owners) == count:
        there, place = None, np.argsort(owners, kind="stable")
    else:
        there, place = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64)
        there[owners] = True
        place[owners] = np.arange(len(owners))
    found = _reorder(held, place)
    index = found.index if there is None or found.index is None else np.where(there, found.index, -1)
    return ArrayValues(there, None, found.numbers, found.times, found.points, index, found.distinct)
