"""The values of a table for one attribute: merged from the columns that feed it, and seen by the views of filters.

The leaves of an attribute tree are columns of their own, and a filter may name any node above them: its values are
those of all columns below, event by event. Each column is read once, however many names it feeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute, describe_type
from tidings.engine.arrays import compute_starts
from tidings.engine.compile.columns import EXACT, Column, ColumnValues, EventColumn, Numbers, Texts, View
from tidings.engine.events import event_columns
from tidings.engine.events.arrow_values import ArrayValues, NotPlain
from tidings.engine.events.views import select_encoder
from tidings.kernels.array_types import BoolArray, FloatArray, IntArray
from tidings.model.values import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tidings.algebra import Setting
    from tidings.algebra.law.mismatches import MismatchCounts
    from tidings.engine.events.event_columns import FinderLookup

_TWO_TO_63 = 2.0**63


@dataclass(frozen=True, slots=True)
class AttributeValues:
    """The values of a table for one attribute: one place for each event or, with `owners`, for each list element.

    `null` marks events with an explicit null, `refused` those that must be refused.
    """

    values: ArrayValues
    count: int
    null: BoolArray | None = None
    refused: BoolArray | None = None
    owners: IntArray | None = None

    def find_refused(self) -> BoolArray | None:
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
        value_count = self.count if self.owners is None else len(self.owners)
        mismatches.values[key] += value_count if values.present is None else int(np.count_nonzero(values.present))
        if values.index is not None:
            if any(isinstance(value, Mismatch) for value in values.distinct):
                counts = np.bincount(values.index[values.index >= 0], minlength=len(values.distinct)).tolist()
                for value, number in zip(values.distinct, counts, strict=True):
                    if isinstance(value, Mismatch) and number:
                        mismatches.add(key, describe_type(value.raw), number)
        elif values.numbers is not None and values.numbers.dtype.kind == "f" and np.isinf(values.numbers).any():
            mismatches.add(key, "number", int(np.count_nonzero(np.isinf(values.numbers))))

    def select(self, plain: BoolArray, count: int) -> AttributeValues:
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
        self._numbers: dict[Any, int] = {}
        self._distinct: tuple[Any, ...] = ()

    def number(self, index: IntArray, distinct: tuple[Any, ...]) -> IntArray:
        """Return the common numbers of a column's values, adding new ones."""
        numbers = [self._numbers.setdefault((type(word), word), len(self._numbers)) for word in distinct]
        common: IntArray = np.array(numbers, dtype=np.int64)[index]
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
    owners: IntArray
    values: ArrayValues

    @classmethod
    def from_attribute(cls, attribute: AttributeValues, words: SharedDictionary) -> SourceColumn:
        """Return the values of a column that can be read, each with the event that it belongs to."""
        values, present = attribute.values, attribute.values.present
        owners = np.arange(attribute.count) if attribute.owners is None else attribute.owners
        is_readable = np.ones(len(owners), dtype=bool) if present is None else present.copy()
        if values.unreadable is not None:
            is_readable &= ~values.unreadable
        kept = values.select(is_readable)
        if kept.index is not None:
            kept = ArrayValues(index=words.number(kept.index, kept.distinct))
        return cls(attribute, owners[is_readable], kept)


def merge_columns(pieces: Sequence[SourceColumn], *, several: bool, words: SharedDictionary) -> AttributeValues:
    """Return the values of several columns as one; unless `several`, events with more than one value are refused."""
    count = pieces[0].attribute.count
    filled = [piece for piece in pieces if len(piece.owners)]
    refused = _merge_masks([piece.attribute.find_refused() for piece in pieces])
    null = _merge_masks([piece.attribute.null for piece in pieces])
    if not filled:
        return AttributeValues(ArrayValues(np.zeros(count, dtype=bool)), count, null, refused)
    values = _concatenate_values([piece.values for piece in filled], words)
    owners = np.concatenate([piece.owners for piece in filled])
    counts = np.bincount(owners, minlength=count)
    null = None if null is None else null & (counts == 0)
    if counts.max() <= 1:
        return AttributeValues(_spread_over_events(values, owners, count), count, null, refused)
    if not several:
        refused = counts > 1 if refused is None else refused | (counts > 1)
    order = np.argsort(owners, kind="stable")
    return AttributeValues(values.select(order), count, null, refused, owners=owners[order])


def _merge_masks(masks: Sequence[BoolArray | None]) -> BoolArray | None:
    present_masks = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(present_masks) if present_masks else None


def _concatenate_values(parts: Sequence[ArrayValues], words: SharedDictionary) -> ArrayValues:
    """Return the values of parts one after another; they must be of the same sort."""
    if all(part.index is not None for part in parts):
        return ArrayValues(index=np.concatenate([part.index for part in parts]), distinct=words.distinct)
    if all(part.numbers is not None for part in parts):
        return ArrayValues(numbers=_concatenate_numbers([part.numbers for part in parts]))
    if all(part.times is not None for part in parts):
        return ArrayValues(times=np.concatenate([part.times for part in parts]))
    if all(part.points is not None for part in parts):
        lons, lats = (np.concatenate([part.points[side] for part in parts]) for side in (0, 1))  # type: ignore[index]
        return ArrayValues(points=(lons, lats))
    if all(values is None for part in parts for values in (part.index, part.numbers, part.times, part.points)):
        return parts[0]  # no view can read these values: they only exist
    raise NotPlain


def _concatenate_numbers(parts: Sequence[Any]) -> NDArray[Any]:
    """Return numbers of one type; integers beside floats must be exact as floats."""
    if len({part.dtype.kind for part in parts}) > 1:
        if any(part.dtype.kind != "f" and np.abs(part.astype(np.float64)).max(initial=0) >= EXACT for part in parts):
            raise NotPlain
        parts = [part.astype(np.float64) for part in parts]
    return np.concatenate(parts)


def _spread_over_events(values: ArrayValues, owners: IntArray, count: int) -> ArrayValues:
    """Return values with a place for each event, present where an event has one."""
    if len(owners) == count:
        present, place = None, np.argsort(owners, kind="stable")
    else:
        present, place = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64)
        present[owners] = True
        place[owners] = np.arange(len(owners))
    spread = values.select(place)
    index = spread.index if present is None or spread.index is None else np.where(present, spread.index, -1)
    return replace(spread, present=present, index=index)


def build_view(
    column: Column, attribute: AttributeValues, setting: Setting, automata: FinderLookup
) -> EventColumn | None:
    """Return the values of an attribute as a column; None: no event has one."""
    if column.view is View.NULL:
        return None if attribute.null is None else event_columns.build_flags(attribute.null)
    if column.view is View.EXISTS:
        if attribute.owners is not None:
            return event_columns.build_flags(np.bincount(attribute.owners, minlength=attribute.count) > 0)
        present = attribute.values.present
        return event_columns.build_flags(np.ones(attribute.count, dtype=bool) if present is None else present)
    if column.view is View.PATTERNS:
        return _build_patterns(column, attribute, automata)
    points = _to_points(column, attribute.values, setting)
    if points is None or not len(points):
        return None
    if attribute.owners is None:
        return EventColumn(points)
    return EventColumn(points, starts=compute_starts(np.bincount(attribute.owners, minlength=attribute.count)))


def _build_patterns(column: Column, attribute: AttributeValues, automata: FinderLookup) -> EventColumn | None:
    index, words = attribute.values.index, attribute.values.distinct
    if index is None:
        return None
    present = index >= 0
    if not present.any():
        return None
    owners = np.arange(attribute.count) if attribute.owners is None else attribute.owners
    readable = np.array([isinstance(word, str) for word in words])
    texts = [word if isinstance(word, str) else "" for word in words]
    index = np.where(readable[index], index, -1)[present]
    return event_columns.build_pattern_column(attribute.count, owners[present], index, texts, automata(column))


def _to_points(column: Column, values: ArrayValues, setting: Setting) -> ColumnValues | None:
    """Return the values of a column's view, or None where the view has none."""
    if values.present is not None and not values.present.any():
        return None
    if values.index is not None:
        return _view_distinct(column, values.index, values.distinct, setting)
    if values.points is not None and column.view in (View.LONGITUDE, View.LATITUDE):
        return _to_floats(values.points[column.view is View.LATITUDE], values.present)
    if values.times is not None and column.view is View.AGE:
        return _to_floats(_to_seconds(to_microseconds(setting.now) - values.times), values.present)
    if values.times is not None and column.view is View.NUMBER:
        return to_exact_numbers(values.times, values.present)
    if values.numbers is not None and column.view is View.NUMBER:
        convert = to_exact_numbers if values.numbers.dtype.kind == "i" else _to_floats
        return convert(values.numbers, values.present)
    return None


def _view_distinct(column: Column, index: IntArray, distinct: tuple[Any, ...], setting: Setting) -> ColumnValues | None:
    """Encode each distinct value once; -1 in `index` points to the last place, which stands for no value."""
    encode = select_encoder(column, setting)
    codes = [None if value is None else event_columns.replace_unread(encode(value)) for value in distinct]
    if all(code is None for code in codes):
        return None
    if column.view.is_bytewise:
        words = event_columns.pack_texts([*codes, None])
        return Texts(words.index[index], words.distinct)
    numbers = event_columns.pack_numbers([*codes, None])
    return Numbers(numbers.near[index], None if numbers.rest is None else numbers.rest[index])


def _to_floats(values: NDArray[Any], present: BoolArray | None) -> Numbers:
    # A copy: Arrow's memory is read-only, and kernels would be compiled once more for it.
    near = values.astype(np.float64)
    if present is not None:
        near[~present] = np.nan
    return Numbers(near)


def _to_seconds(ages: IntArray) -> FloatArray:
    """Return microseconds as seconds, rounded like `timedelta.total_seconds`."""
    if np.abs(ages).max(initial=0) <= EXACT:
        return ages / 1e6
    return np.array([age / 1_000_000 for age in ages.tolist()])


def to_exact_numbers(values: IntArray, present: BoolArray | None = None) -> Numbers:
    """Return integers as `Numbers`, with NaN where no value is present.

    >>> to_exact_numbers(np.array([1, 2**53 + 1])).rest
    array([0, 1], dtype=int16)
    """
    near = values.astype(np.float64)
    rest = None
    if np.abs(near).max(initial=0) >= EXACT:
        over = near >= _TWO_TO_63  # the largest integers round up to 2**63, which is not an int64
        exact_rest = values - np.where(over, 0, near).astype(np.int64)
        exact_rest[over] = values[over] - (2**63 - 1) - 1
        rest = exact_rest.astype(np.int16)
    if present is not None:
        near[~present] = np.nan
        rest = None if rest is None else np.where(present, rest, 0).astype(np.int16)
    return Numbers(near, rest if rest is not None and rest.any() else None)
