"""The values of a table for one attribute, and the merge of several columns that feed one attribute.

The leaves of an attribute tree are columns of their own, and a filter may name any node above them: its values are
those of all columns below, event by event. Each column is read once, however many names it feeds.
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
    """The values of a table for one attribute: one place for each event or, with `owners`, for each list element.

    `null` marks events with an explicit null, `refused` those that must be refused.
    """

    values: ArrayValues
    count: int
    null: Mask | None = None
    refused: Mask | None = None
    owners: NDArray[np.int64] | None = None

    def find_refused(self) -> Mask | None:
        """Return a mask of the events with a value that must be refused, or None."""
        bad = self.values.unreadable
        if self.owners is None or bad is None:
            return self.refused if bad is None else bad
        refused = np.zeros(self.count, dtype=bool)
        refused[self.owners[bad]] = True
        return refused

    def tally_mismatches(self, key: TypedAttribute, mismatches: MismatchCounts) -> None:
        """Count the values, and by their sort those that could not be read as the attribute's kind."""
        values = self.values
        places = self.count if self.owners is None else len(self.owners)
        mismatches.values[key] += places if values.present is None else int(np.count_nonzero(values.present))
        if values.index is not None:
            if any(isinstance(value, Mismatch) for value in values.distinct):
                counts = np.bincount(values.index[values.index >= 0], minlength=len(values.distinct)).tolist()
                for value, number in zip(values.distinct, counts, strict=True):
                    if isinstance(value, Mismatch) and number:
                        mismatches.add(key, describe_type(value.raw), number)
        elif values.numbers is not None and values.numbers.dtype.kind == "f" and np.isinf(values.numbers).any():
            mismatches.add(key, "number", int(np.count_nonzero(np.isinf(values.numbers))))

    def select(self, plain: Mask, count: int) -> AttributeValues:
        """Return the values of the events in the mask `plain`, of which there are `count`."""
        null = None if self.null is None else self.null[plain]
        if self.owners is None:
            return AttributeValues(self.values.select(plain), count, null)
        selected, renumbered = plain[self.owners], np.cumsum(plain) - 1
        if self.values.present is not None:
            selected &= self.values.present
        return AttributeValues(self.values.select(selected), count, null, owners=renumbered[self.owners[selected]])


class SharedDictionary:
    """The distinct values of several columns that are read in the same way, numbered in common."""

    def __init__(self) -> None:
        """Start empty."""
        self._numbers: dict[Any, int] = {}
        self._distinct: tuple[Any, ...] = ()

    def number(self, index: NDArray[np.int64], distinct: tuple[Any, ...]) -> NDArray[np.int64]:
        """Return the common numbers of a column's values, adding new ones."""
        numbers = [self._numbers.setdefault((type(word), word), len(self._numbers)) for word in distinct]
        common: NDArray[np.int64] = np.array(numbers, dtype=np.int64)[index]
        return common

    @property
    def distinct(self) -> tuple[Any, ...]:
        """The values by number; the same tuple until more are added."""
        if len(self._distinct) < len(self._numbers):
            self._distinct = tuple(word for _, word in self._numbers)
        return self._distinct


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One of several columns that feed an attribute: the events that have a value in it, and their values.

    The `index` of distinct values points into the dictionary that all columns share.
    """

    attribute: AttributeValues
    owners: NDArray[np.int64]
    values: ArrayValues

    @classmethod
    def from_attribute(cls, attribute: AttributeValues, words: SharedDictionary) -> SourceColumn:
        """Return the places of a column that have a readable value."""
        values, present = attribute.values, attribute.values.present
        owners = np.arange(attribute.count) if attribute.owners is None else attribute.owners
        places = np.ones(len(owners), dtype=bool) if present is None else present.copy()
        if values.unreadable is not None:
            places &= ~values.unreadable
        kept = values.select(places)
        if kept.index is not None:
            kept = ArrayValues(index=words.number(kept.index, kept.distinct))
        return cls(attribute, owners[places], kept)


def merge_columns(pieces: Sequence[SourceColumn], *, several: bool, words: SharedDictionary) -> AttributeValues:
    """Return the values of several columns as one; unless `several`, events with more than one value are refused."""
    count = pieces[0].attribute.count
    filled = [piece for piece in pieces if len(piece.owners)]
    owners = np.concatenate([piece.owners for piece in filled]) if filled else np.zeros(0, dtype=np.int64)
    values = (
        _concatenate_values([piece.values for piece in filled], words)
        if filled
        else ArrayValues(np.zeros(count, dtype=bool))
    )
    refused = _union_masks([piece.attribute.find_refused() for piece in pieces])
    if not filled:
        return AttributeValues(values, count, _union_masks([piece.attribute.null for piece in pieces]), refused)
    counts = np.bincount(owners, minlength=count)
    null = _union_masks([piece.attribute.null for piece in pieces])
    null = None if null is None else null & (counts == 0)
    if counts.max() <= 1:
        return AttributeValues(_spread_over_events(values, owners, count), count, null, refused)
    if not several:
        refused = counts > 1 if refused is None else refused | (counts > 1)
    order = np.argsort(owners, kind="stable")
    return AttributeValues(_reorder(values, order), count, null, refused, owners=owners[order])


def _union_masks(masks: Sequence[Mask | None]) -> Mask | None:
    union: Mask | None = None
    for mask in masks:
        if mask is not None:
            union = mask if union is None else union | mask
    return union


def _concatenate_values(parts: Sequence[ArrayValues], words: SharedDictionary) -> ArrayValues:
    """Return the values of parts one after another; they must be of the same sort."""
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
        return first  # no view can read these values: they only exist
    raise NotPlain


def _has_no_values(part: ArrayValues) -> bool:
    return part.index is None and part.numbers is None and part.times is None and part.points is None


def _concatenate_numbers(parts: Sequence[Any]) -> NDArray[Any]:
    """Return numbers of one type; integers beside floats must be exact as floats."""
    if len({part.dtype.kind for part in parts}) > 1:
        if any(part.dtype.kind != "f" and np.abs(part.astype(np.float64)).max(initial=0) >= EXACT for part in parts):
            raise NotPlain
        parts = [part.astype(np.float64) for part in parts]
    return np.concatenate(parts)


def _reorder(values: ArrayValues, order: NDArray[np.int64]) -> ArrayValues:
    """Return the values in another order."""
    return ArrayValues(
        numbers=None if values.numbers is None else values.numbers[order],
        times=None if values.times is None else values.times[order],
        points=None if values.points is None else (values.points[0][order], values.points[1][order]),
        index=None if values.index is None else values.index[order],
        distinct=values.distinct,
    )


def _spread_over_events(values: ArrayValues, owners: NDArray[np.int64], count: int) -> ArrayValues:
    """Return values with a place for each event, present where an event has one."""
    if len(owners) == count:
        present, place = None, np.argsort(owners, kind="stable")
    else:
        present, place = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64)
        present[owners] = True
        place[owners] = np.arange(len(owners))
    spread = _reorder(values, place)
    index = spread.index if present is None or spread.index is None else np.where(present, spread.index, -1)
    return ArrayValues(present, None, spread.numbers, spread.times, spread.points, index, spread.distinct)
