"""Arrow rows as events, whatever Spark puts into them.

Spark holds times that Python cannot (the year 12345) and names zones that Python does not know (`GMT+2`). Zones are
undone by asking for UTC, which moves no data. A row whose values cannot become Python's is a dead letter; it
is looked for one row at a time, and only in a batch that holds one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from tidings.model import DeadLetter, EventBatch, Matches

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNREADABLE = (OverflowError, ValueError)


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a batch. Where a row could not be read there is an empty one, and a letter."""

    batch: EventBatch
    letters: tuple[DeadLetter, ...] = ()

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> Events:
        """Read the rows."""
        rows = in_utc(rows)
        try:
            return cls(EventBatch.from_arrow(rows))
        except _UNREADABLE:
            singly = [_read_one(rows.slice(index, 1)) for index in range(rows.num_rows)]
        letters = (DeadLetter(index, found) for index, found in enumerate(singly) if isinstance(found, str))
        return cls(EventBatch([{} if isinstance(found, str) else found for found in singly]), tuple(letters))

    def without_unread(self, matches: Matches) -> Matches:
        """Return the matches of the rows that were read, and all dead letters."""
        if not self.letters:
            return matches
        unread = np.array([letter.index for letter in self.letters])
        true = ~np.isin(matches.event_index, unread)
        ids: Any = [id_ for id_, kept in zip(matches.ids, true.tolist(), strict=True) if kept]
        letters = [letter for letter in matches.dead_letters if letter.index not in unread]
        return Matches(matches.event_index[true], ids, matches.events, (*letters, *self.letters))


def _read_one(row: pa.RecordBatch) -> Any:
    """Return the one event, or the reason why it cannot be read."""
    try:
        return next(iter(EventBatch.from_arrow(row)))
    except _UNREADABLE as problem:
        return next(_reasons(row), str(problem))


def _reasons(row: pa.RecordBatch) -> Iterator[str]:
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            column.to_pylist()
        except _UNREADABLE as problem:
            yield f"`{name}`: {problem}"


def in_utc(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same moments, told in UTC."""
    wanted = [_utc_type(kind) for kind in rows.schema.types]
    if wanted == rows.schema.types:
        return rows
    told = [column.cast(kind) for column, kind in zip(rows.columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(told, rows.schema.names)


def _utc_type(kind: pa.DataType) -> pa.DataType:
    if t.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC") if kind.tz else kind
    if t.is_large_list(kind):
        return pa.large_list(_utc_field(kind.value_field))
    if t.is_list(kind):
        return pa.list_(_utc_field(kind.value_field))
    if t.is_struct(kind):
        return pa.struct([_utc_field(kind.field(place)) for place in range(kind.num_fields)])
    if t.is_map(kind):
        return pa.map_(kind.key_field, _utc_field(kind.item_field))
    return kind


def _utc_field(field: pa.Field) -> pa.Field:
    return field.with_type(_utc_type(field.type))
