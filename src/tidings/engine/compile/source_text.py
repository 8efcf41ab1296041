"""Filters as they were written: most are read back from their rows, the others are kept beside them.

A filter that was compiled without loss (`FilterDraft.add`) is decompiled from its one row when somebody asks for it, so
it need not be stored a second time (docs/decisions/0009). Of the others, `FilterSources` keeps the text or the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings import model
from tidings.engine.arrays import pack_bytes
from tidings.engine.compile.columns import View
from tidings.engine.exact.exact_checks import quantify
from tidings.kernels.array_types import BoolArray, IntArray
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import KIND_MASK, UNION
from tidings.lang import parse_rendered, render
from tidings.model import Filter
from tidings.model.values import to_datetime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.engine.segment import Segment

FilterSource: TypeAlias = str | Filter
"""A filter as it was written: as text, or as a tree."""


@dataclass(frozen=True, slots=True)
class FilterSources:
    """The written filters of some slots; `slots` ascends."""

    slots: IntArray
    filters: Sequence[FilterSource]

    @classmethod
    def from_slots(cls, filters: dict[int, FilterSource]) -> FilterSources:
        """Return the sources of filters by slot; the slots must ascend."""
        return cls(np.fromiter(filters, np.int64, len(filters)), list(filters.values()))

    def get(self, slot: int) -> FilterSource | None:
        """Return the written filter of a slot; None: it is to be read back from the row."""
        index = int(np.searchsorted(self.slots, slot))
        return self.filters[index] if index < len(self.slots) and self.slots[index] == slot else None

    def find_written(self, slots: IntArray) -> BoolArray:
        """Return a mask of those slots whose filters are here."""
        return np.searchsorted(self.slots, slots, "right") > np.searchsorted(self.slots, slots)

    def renumber(self, new_slot: IntArray) -> dict[int, FilterSource]:
        """Return the filters by new slot; `new_slot[slot]` is -1 where a slot is deleted."""
        new = new_slot[self.slots].tolist()
        return {slot: self.filters[index] for index, slot in enumerate(new) if slot >= 0}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot: text as it is, trees as JSON."""
        blob, start = pack_bytes(
            [
                f"t{source}".encode() if isinstance(source, str) else f"j{render(source, notation='json')}".encode()
                for source in self.filters
            ]
        )
        return {"slots": self.slots, "start": start, "blob": blob}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> FilterSources:
        """Return the filters of a snapshot; each is decoded when it is read."""
        return cls(arrays["slots"], PackedSources(arrays["start"], arrays["blob"]))


class PackedSources(Sequence[FilterSource]):
    """Written filters in the arrays of `FilterSources.to_arrays`, each decoded when it is read."""

    def __init__(self, start: NDArray[Any], blob: NDArray[Any]) -> None:
        self._start, self._blob = start, blob

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self._blob.nbytes + self._start.nbytes

    def __len__(self) -> int:
        return len(self._start) - 1

    def __getitem__(self, index: Any) -> Any:
        data = self._blob[self._start[index] : self._start[index + 1]].tobytes()
        return data[1:].decode() if data[:1] == b"t" else parse_rendered(data[1:].decode())


def decompile_filter(segment: Segment, slot: int) -> Filter:
    """Return the filter of a slot, which must have been compiled without loss (`FilterDraft.add`)."""
    rows, row = segment.index.rows, int(segment.row_of[slot])
    tests = []
    for head, low, high in rows.literal.reshape(-1, 3)[int(rows.start[row]) : int(rows.start[row + 1])].tolist():
        number = head >> OP_BITS
        condition = _decode_condition(segment, number, low, high, union=bool(head & UNION))
        tests.append(quantify(segment.columns[number].attribute, condition, head & KIND_MASK))
    return model.all_of(tests)


def _decode_condition(segment: Segment, number: int, low: int, high: int, *, union: bool) -> model.Condition:
    column, rows = segment.columns[number], segment.index.rows
    match column.view:
        case View.EXISTS:
            return model.Exists()
        case View.NULL:
            return model.IsNull()
        case View.PATTERNS:
            return segment.automata[column.attribute].tests[int(_decode_values(segment, number, [low])[0])]
    if union:
        codes = rows.union_low[int(rows.union_start[low]) : int(rows.union_start[low + 1])].tolist()
        return model.In(tuple(_decode_values(segment, number, codes)))
    # Odd codes are end points; an even one is a gap, so an interval that begins or ends there is open at its neighbour.
    if low == high and low % 2:
        return model.Is(_decode_values(segment, number, [low])[0])
    first = None if low == 0 else _decode_values(segment, number, [low - 1 + low % 2])[0]
    size = 2 * len(segment.spaces[number])
    last = None if high == size else _decode_values(segment, number, [high + 1 - high % 2])[0]
    return model.Range(first, last, low_open=low > 0 and low % 2 == 0, high_open=high < size and high % 2 == 0)


def _decode_values(segment: Segment, number: int, codes: list[int]) -> list[Any]:
    """Return the end points of odd codes as values of the column's kind."""
    values = segment.spaces[number].decode(np.array(codes, np.int64) >> 1)
    match segment.columns[number].value_kind:
        case model.Kind.TIME:
            return [to_datetime(value) for value in values]
        case model.Kind.BOOL:
            return [bool(value) for value in values]
        case model.Kind.TEXT if segment.columns[number].view is View.TEXT:
            return [value.decode() for value in values]
    return values
