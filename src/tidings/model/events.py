"""Events: an id, a time, values, and bytes that travel along.

A plain mapping is an event too; `Event` is for when the id, the time or the payload matter.
`EventBatch` is many events in order, from rows or from Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, TypeAlias

from tidings.errors import BadEvent
from tidings.model.arrow_types import is_arrow, to_rows
from tidings.model.values import EventValue

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Event:
    """An event: filters read its `values`; the payload travels along unread."""

    id: str | int | None = None
    time: datetime | None = None
    values: Mapping[str, EventValue] = field(default_factory=dict)
    payload: bytes = b""

    def __post_init__(self) -> None:
        """Refuse what cannot be an event where it is made, not where it is matched."""
        _refuse_unless(isinstance(self.values, Mapping), "values are a mapping of names to values", self.values)
        _refuse_unless(isinstance(self.time, date | None), "time is a datetime", self.time)
        _refuse_unless(isinstance(self.payload, bytes), "payload is bytes", self.payload)
        named = type(self.id) is not bool and isinstance(self.id, str | int | None)
        _refuse_unless(named, "id is text or an integer (what it says goes in values={...})", self.id)


def _refuse_unless(fits: bool, rule: str, value: object) -> None:
    if not fits:
        msg = f"an event's {rule}, not `{value!r}`"
        raise BadEvent(msg)


EventLike: TypeAlias = Event | Mapping[str, EventValue]
"""What public functions take as an event; `get_values` gives the mapping that filters see."""


class EventBatch:
    """Many events, in order; built from rows or from an Arrow table.

    An Arrow table is kept as it is in `table`, and turned into rows when somebody asks for them.

    >>> len(EventBatch([{"a": 1}, {"a": 2}]))
    2
    """

    __slots__ = ("_rows", "schema", "table")

    def __init__(self, rows: Iterable[EventLike], *, schema: pa.Schema | None = None) -> None:
        """Hold the rows; `schema` is Arrow's, where they came from Arrow."""
        self._rows: Sequence[EventLike] | None = rows if isinstance(rows, list | tuple) else list(rows)
        self.schema = schema
        self.table: pa.Table | pa.RecordBatch | None = None

    @classmethod
    def of(cls, events: EventBatch | pa.Table | pa.RecordBatch | Iterable[EventLike]) -> EventBatch:
        """Take a batch, an Arrow table or record batch, or any iterable of events."""
        if isinstance(events, EventBatch):
            return events
        if is_arrow(events):
            return cls.from_arrow(events)
        if isinstance(events, Mapping | str | bytes) or not isinstance(events, Iterable):
            msg = "match_many takes a list of events, an Arrow table or an EventBatch; match takes one event"
            raise BadEvent(msg)
        return cls(events)

    @classmethod
    def from_arrow(cls, table: pa.Table | pa.RecordBatch) -> EventBatch:
        """Take the rows of an Arrow table or record batch."""
        # A matcher reads most tables column by column and never asks for rows, which cost a dictionary each.
        batch = cls((), schema=table.schema)
        batch._rows, batch.table = None, table
        return batch

    def __len__(self) -> int:
        rows = self._rows if self.table is None else self.table
        assert rows is not None
        return len(rows)

    def slice(self, start: int, length: int) -> EventBatch:
        """Return some of the events."""
        if self.table is not None:
            return EventBatch.from_arrow(self.table.slice(start, length))
        assert self._rows is not None
        return EventBatch(self._rows[start : start + length], schema=self.schema)

    def __iter__(self) -> Iterator[EventLike]:
        if self._rows is None:
            self._rows = to_rows(self.table)
        return iter(self._rows)


def get_values(event: EventLike) -> Mapping[str, EventValue]:
    """Return what filters see of an event."""
    if isinstance(event, Event):
        event = event.values
    if not isinstance(event, Mapping):
        msg = f"an event is a mapping or a td.Event, not {type(event).__name__}"
        raise BadEvent(msg)
    return event
