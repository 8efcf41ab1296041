"""What was written, for the filters whose rows do not say it all: a few by slot, the rest is read back from rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidings.lang import render
from tidings.model import Filter

FilterSource: TypeAlias = str | Filter
"""A filter as text, or as a tree."""


@dataclass(frozen=True, slots=True)
class FilterSources:
    """Written filters of some slots; `slots` ascends."""

    slots: NDArray[np.int64]
    filters: Sequence[FilterSource]

    @classmethod
    def from_slots(cls, written: dict[int, FilterSource]) -> FilterSources:
        """Take filters by slot, in the order of slots."""
        return cls(np.fromiter(written, np.int64, len(written)), list(written.values()))

    def get(self, slot: int) -> FilterSource | None:
        """Return what was written for a slot, if it is kept."""
        at = int(np.searchsorted(self.slots, slot))
        return self.filters[at] if at < len(self.slots) and self.slots[at] == slot else None

    def renumber(self, new_slot: NDArray[np.int64]) -> dict[int, FilterSource]:
        """Return the filters of slots that live on, by their new numbers."""
        new = new_slot[self.slots].tolist()
        return {slot: self.filters[at] for at, slot in enumerate(new) if slot >= 0}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a snapshot keeps: text as it is, trees as JSON."""
        texts = [_pack_source(one) for one in self.filters]
        start = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=start[1:])
        return {"slots": self.slots, "start": start, "blob": np.frombuffer(b"".join(texts), np.uint8)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> FilterSources:
        """Return the filters that a snapshot kept; each is decoded when it is asked for."""
        return cls(arrays["slots"], PackedSources(arrays["start"], arrays["blob"]))


def _pack_source(written: FilterSource) -> bytes:
    if isinstance(written, str):
        return b"t" + written.encode()
    return b"j" + render(written, notation="json").encode()


class PackedSources(Sequence[FilterSource]):
    def __init__(self, start: NDArray[Any], blob: NDArray[Any]) -> None:
        self._start, self._blob = start, blob

    def __len__(self) -> int:
        return len(self._start) - 1

    def __getitem__(self, at: Any) -> Any:
        from tidings.lang import parse

        data = self._blob[self._start[at] : self._start[at + 1]].tobytes()
        return data[1:].decode() if data[:1] == b"t" else parse(data[1:].decode(), notation="json")
