"""Exact checks: what no interval decides, for the few pairs of event and row that pass the index.

An area or a circle is decided by a kernel; comparisons of attributes and filters on elements by `algebra.holds`, which
defines what filters mean (the law). Each distinct item is decided once for an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.algebra import holds
from tidings.engine.arrays import expand_ranges
from tidings.engine.compile.columns import Column, EventColumns, Numbers, View
from tidings.engine.exact.place_tests import PlaceTable
from tidings.kernels.array_types import BoolArray, ByteArray, CodeArray, Int32Array, IntArray
from tidings.kernels.match.literals import ALL, ANY, NOT_ANY, NOT_NONE
from tidings.model import Condition, Filter, Near, Not, Quantifier, Test, Within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.engine.events.event_source import EventSource

QUANTIFIERS = (Quantifier.ANY, Quantifier.ALL, Quantifier.NONE)


def quantify(attribute: str, condition: Condition, op: int) -> Filter:
    """Return the test, or its negation, that a literal's op stands for (`kernels.match.literals`)."""
    test = Test(attribute, condition, QUANTIFIERS[op % 3])
    return Not(test) if op >= NOT_ANY else test


@dataclass(frozen=True, slots=True)
class PlaceItem:
    """Some, all or none of the places of an attribute lie in an area (`op` as in `kernels.match.literals`)."""

    attribute: str
    op: int
    condition: Within | Near

    @property
    def filter(self) -> Filter:
        """The same test as a filter."""
        return quantify(self.attribute, self.condition, self.op)


@dataclass(frozen=True, slots=True)
class LawItem:
    """A test, or its negation, that `algebra.holds` decides."""

    filter: Filter


ExactItem: TypeAlias = PlaceItem | LawItem


@dataclass(frozen=True, slots=True)
class ExactChecks:
    """The items of a segment, and pairs of a row and an item that it needs; `row` is sorted.

    What places need is in arrays too, so that an opened snapshot decodes items only for `algebra.holds`. The names of
    these fields are those of a snapshot's arrays.
    """

    items: Sequence[ExactItem]
    row: CodeArray
    item: CodeArray
    places: PlaceTable
    place_of: IntArray  # item -> its number among `places`, -1: none
    names: tuple[str, ...]  # the attributes of places
    name_of: Int32Array  # item -> its attribute among `names`, -1: a law item
    op_of: ByteArray  # item -> the op of a place

    @classmethod
    def build(cls, items: Sequence[ExactItem], row: CodeArray, item: CodeArray) -> ExactChecks:
        """Build from all items and the sorted pairs of row and item; the areas go into a table."""
        areas = {number: place_item for number, place_item in enumerate(items) if isinstance(place_item, PlaceItem)}
        numbers: dict[str, int] = {}
        place_of, name_of = np.full(len(items), -1, np.int64), np.full(len(items), -1, np.int32)
        op_of = np.zeros(len(items), np.uint8)
        for place, (number, place_item) in enumerate(areas.items()):
            place_of[number], op_of[number] = place, place_item.op
            name_of[number] = numbers.setdefault(place_item.attribute, len(numbers))
        places = PlaceTable.build(place_item.condition for place_item in areas.values())
        return cls(items, row, item, places, place_of, tuple(numbers), name_of, op_of)

    def filter_pairs(
        self, batch: EventColumns, source: EventSource, events: NDArray[Any], rows: NDArray[Any]
    ) -> BoolArray:
        """Return a mask of the pairs of event and row that satisfy all items of the row."""
        good = np.ones(len(rows), bool)
        if not len(self.row):
            return good
        first = np.searchsorted(self.row, rows)
        sizes = np.searchsorted(self.row, rows, "right") - first
        pair = np.repeat(np.arange(len(rows)), sizes)
        item = self.item[expand_ranges(first, sizes)]
        keys, where = np.unique(events[pair] * len(self.items) + item, return_inverse=True)
        decided = self.decide(batch, source, keys // len(self.items), keys % len(self.items))
        good[pair[~decided[where]]] = False
        return good

    def decide(self, batch: EventColumns, source: EventSource, events: NDArray[Any], items: NDArray[Any]) -> BoolArray:
        """Decide pairs of event and item: single places by the kernel, everything else by `algebra.holds`."""
        result = np.zeros(len(items), bool)
        open_pairs = np.ones(len(items), bool)
        for number, name in enumerate(self.names):
            pairs = np.flatnonzero(self.name_of[items] == number)
            decided = self._decide_places(batch, name, events[pairs], items[pairs])
            if decided is not None:
                result[pairs] = decided
                open_pairs[pairs] = False
        for pair in np.flatnonzero(open_pairs).tolist():
            reading = source.read_event(int(events[pair]))
            result[pair] = holds(self.items[int(items[pair])].filter, reading, source.setting)
        return result

    def _decide_places(
        self, batch: EventColumns, name: str, events: NDArray[Any], items: NDArray[Any]
    ) -> BoolArray | None:
        """Decide items on an attribute that has at most one place in every event; else return None."""
        ops = self.op_of[items]
        lon, lat = (batch.get(Column(name, view)) for view in (View.LONGITUDE, View.LATITUDE))
        if lon is None or lat is None:
            return np.asarray(ops >= NOT_ANY)  # absent in all events
        if lon.starts is not None or lat.starts is not None:
            return None
        assert isinstance(lon.low, Numbers)
        assert isinstance(lat.low, Numbers)
        east, north = lon.low.near[events], lat.low.near[events]
        # A value that is not a place exists, and lies in no area.
        inside = self.places.decide(self.place_of[items], east, north) & np.isfinite(east)
        wants_inside = np.isin(ops, (ANY, ALL, NOT_NONE))
        return np.asarray(np.where(np.isnan(east), ops >= NOT_ANY, inside == wants_inside))
