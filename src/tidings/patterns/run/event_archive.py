"""The ids and kept fields of events, for as long as a detection may still name them.

Whole batches are kept as they came; when they hold far more than is still needed, what is needed moves together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.kernels.array_types import IntArray


@dataclass(frozen=True, slots=True)
class EventRecords:
    """Some events' ids and fields, in one order; Arrow where they came as Arrow, else lists."""

    ids: pa.Array | list[Any]
    fields: pa.Table | list[dict[str, Any]] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, indexes: IntArray) -> EventRecords:
        """Return the events at these indexes."""
        if isinstance(self.ids, list):
            ids: Any = [self.ids[index] for index in indexes.tolist()]
        else:
            ids = self.ids.take(indexes)
        if isinstance(self.fields, list):
            return EventRecords(ids, [self.fields[index] for index in indexes.tolist()])
        return EventRecords(ids, None if self.fields is None else self.fields.take(indexes))

    def slice(self, first: int, end: int) -> EventRecords:
        """Return the events from `first` to before `end`, of Arrow's without a copy."""
        ids, fields = self.ids, self.fields
        ids = ids[first:end] if isinstance(ids, list) else ids.slice(first, end - first)
        if fields is None or isinstance(fields, list):
            return EventRecords(ids, fields and fields[first:end])
        return EventRecords(ids, fields.slice(first, end - first))

    def to_lists(self) -> EventRecords:
        """Return the same as lists."""
        ids = self.ids if isinstance(self.ids, list) else self.ids.to_pylist()
        fields = self.fields
        return EventRecords(ids, fields if fields is None or isinstance(fields, list) else fields.to_pylist())


def concat_records(pieces: list[EventRecords]) -> EventRecords:
    """Return pieces end to end; as lists unless all are Arrow's and of one type."""
    if len(pieces) == 1:
        return pieces[0]
    kinds = {_find_type(piece) for piece in pieces}
    if len(kinds) == 1 and None not in kinds:
        tables = [piece.fields for piece in pieces if piece.fields is not None]
        ids = pa.concat_arrays([piece.ids for piece in pieces])
        return EventRecords(ids, pa.concat_tables(tables) if tables else None)
    lists = [piece.to_lists() for piece in pieces]
    fields = [row for piece in lists for row in piece.fields or ()]
    return EventRecords([id_ for piece in lists for id_ in piece.ids], None if lists[0].fields is None else fields)


def _find_type(records: EventRecords) -> tuple[Any, Any] | None:
    """Return the Arrow types of ids and fields; `None` for lists."""
    if isinstance(records.ids, list) or isinstance(records.fields, list):
        return None
    return records.ids.type, None if records.fields is None else records.fields.schema


def unite_numbers(pieces: list[IntArray]) -> IntArray:
    """Return the numbers of all pieces, ascending, each once."""
    return np.unique(np.concatenate(pieces)).astype(np.int64) if pieces else np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class EventArchive:
    """Events by their numbers. Immutable: adding returns a new archive, and detections keep the old one."""

    chunks: tuple[tuple[IntArray, EventRecords], ...] = ()  # ascending numbers, and what they are called
    size: int = 0  # events in all chunks: to add them up for each event that comes alone took a tenth of its time

    @classmethod
    def of(cls, numbers: IntArray, records: EventRecords) -> EventArchive:
        """Return an archive of some events and their numbers, which ascend."""
        return cls(((numbers, records),), len(numbers)) if len(numbers) else cls()

    def __len__(self) -> int:
        return self.size

    def add(self, first: int, records: EventRecords) -> EventArchive:
        """Return the archive with a batch more, numbered from `first`."""
        if not len(records):
            return self
        numbers = np.arange(first, first + len(records))
        return EventArchive((*self.chunks, (numbers, records)), self.size + len(numbers))

    def select(self, seqs: IntArray) -> EventRecords:
        """Return the events of these numbers, in their order."""
        if len(seqs) == 0:  # of the kind that the last ones were
            return self.chunks[-1][1].select(seqs) if self.chunks else EventRecords([])
        starts = np.array([chunk[0] for chunk, _ in self.chunks])
        chunk_of = np.searchsorted(starts, seqs, side="right") - 1
        pieces: list[EventRecords] = []
        for number in np.unique(chunk_of):
            chunk, records = self.chunks[number]
            pieces.append(records.select(np.searchsorted(chunk, seqs[chunk_of == number])))
        if len(pieces) == 1:
            return pieces[0]
        back = np.empty(len(chunk_of), np.int64)
        back[np.argsort(chunk_of, kind="stable")] = np.arange(len(chunk_of))
        return concat_records(pieces).select(back)

    def keep(self, numbers: IntArray) -> EventArchive:
        """Return the archive of these numbers alone."""
        return EventArchive.of(numbers, self.select(numbers))
