"""The written filters of a segment, for those that cannot be read back from their rows (`compile.decompile`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.engine.compile.code_spaces import pack_bytes
from tidings.kernels.array_types import IntArray
from tidings.lang import parse, render
from tidings.model import Filter

if TYPE_CHECKING:
    from numpy.typing import NDArray

FilterSource: TypeAlias = str | Filter
"""A filter as it was written: as text, or as a tree."""


@dataclass(frozen=True, slots=True)
class FilterSources:
    """The written filters of some slots; `slots` ascends."""

    slots: IntArray
    filters: Sequence[FilterSource]

    @classmethod
    def from_slots(cls, filters: dict[int, FilterSource]) -> FilterSources:
        """Take filters by slot, in the order of slots."""
        return cls(np.fromiter(filters, np.int64, len(filters)), list(filters.values()))

    def get(self, slot: int) -> FilterSource | None:
        """Return the written filter of a slot; None: it is to be read back from the row."""
        at = int(np.searchsorted(self.slots, slot))
        return self.filters[at] if at < len(self.slots) and self.slots[at] == slot else None

    def renumber(self, new_slot: IntArray) -> dict[int, FilterSource]:
        """Return the filters by new slot; `new_slot[slot]` is -1 where a slot is deleted."""
        new = new_slot[self.slots].tolist()
        return {slot: self.filters[at] for at, slot in enumerate(new) if slot >= 0}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot: text as it is, trees as JSON."""
        blob, start = pack_bytes([_pack_source(source) for source in self.filters])
        return {"slots": self.slots, "start": start, "blob": blob}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> FilterSources:
        """Return the filters of a snapshot; each is decoded when it is read."""
        return cls(arrays["slots"], PackedSources(arrays["start"], arrays["blob"]))


def _pack_source(source: FilterSource) -> bytes:
    if isinstance(source, str):
        return b"t" + source.encode()
    return b"j" + render(source, notation="json").encode()


class PackedSources(Sequence[FilterSource]):
    """Written filters in one array of bytes, each decoded when it is read."""

    def __init__(self, start: NDArray[Any], blob: NDArray[Any]) -> None:
        """Take the arrays of `FilterSources.to_arrays`."""
        self._start, self._blob = start, blob

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self._blob.nbytes + self._start.nbytes

    def __len__(self) -> int:
        return len(self._start) - 1

    def __getitem__(self, at: Any) -> Any:
        data = self._blob[self._start[at] : self._start[at + 1]].tobytes()
        return data[1:].decode() if data[:1] == b"t" else parse(data[1:].decode(), notation="json")
