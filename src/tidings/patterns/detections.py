"""What a detector reports: patterns that happened, and the events they happened through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidings.kernels.array_types import IntArray
from tidings.kernels.patterns.reports import O_AT, O_BEGIN, O_END, O_KEY, O_PATTERN, O_SEQ, O_VALUES
from tidings.patterns.run.event_times import to_datetime
from tidings.patterns.run.graph_run import Reports

if TYPE_CHECKING:
    from tidings.model import DeadLetter
    from tidings.patterns.run.event_archive import EventArchive, EventRecords


@dataclass(frozen=True, slots=True)
class Detection:
    """A pattern that happened: the ids of its events in the order of the steps, when, and the values of its variables.

    `at` is the time of the event that completed it, or (absence) when the time was up. `fields` holds, for each event,
    the fields that the detector keeps.
    """

    pattern: str
    events: tuple[Any, ...]
    at: datetime
    bindings: Mapping[str, Any] = field(default_factory=dict)
    fields: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event that came after its time had passed: it was not taken."""

    event: Any
    time: datetime


@dataclass(frozen=True, slots=True)
class ReportLayout:
    """How reports of one graph are read: its patterns' places in the detector, and the names of variables."""

    places: IntArray
    variables: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  # of each pattern: of the key, and the others


@dataclass(frozen=True, slots=True)
class ReportBatch:
    """Reports of one graph from one piece of the events."""

    reports: Reports
    layout: ReportLayout
    values: list[Any]


@dataclass(frozen=True, slots=True)
class ReportColumns:
    """Reports in the order they completed, as columns; `values[key]` is the value of a key's number.

    The ids of the events are end to end: those of report `i` are `events[offsets[i]:offsets[i + 1]]`.
    """

    patterns: IntArray
    keys: IntArray
    values: list[Any]
    at: IntArray
    events: IntArray
    offsets: IntArray


_PATTERN, _AT, _SEQ, _KEY, _BEGIN, _COUNT = range(6)


class Detections:
    """The detections of a batch, in the order they completed; late events and dead letters beside them.

    Detections are made when somebody reads them: a million cost little until then.
    """

    def __init__(
        self,
        parts: Sequence[ReportBatch],
        patterns: Sequence[str],
        archive: EventArchive,
        *,
        late: tuple[LateEvent, ...] = (),
        dead_letters: tuple[DeadLetter, ...] = (),
    ) -> None:
        self._parts, self._patterns, self._archive = tuple(parts), tuple(patterns), archive
        self.late, self.dead_letters = late, dead_letters
        self.forecasts: Any = ()  # of a detector with a model: what the same events made likely

    def __len__(self) -> int:
        return sum(len(part.reports.rows) for part in self._parts)

    def __iter__(self) -> Iterator[Detection]:
        records, offsets = self._events[0].to_lists(), self._events[1].tolist()
        rows = [(part, row) for part in self._parts for row in part.reports.rows.tolist()]
        for number, place in enumerate(self._order.tolist()):
            part, row = rows[place]
            begin, end = offsets[number], offsets[number + 1]
            yield Detection(
                self._patterns[part.layout.places[row[O_PATTERN]]],
                tuple(records.ids[begin:end]),
                to_datetime(row[O_AT]),
                _read_bindings(part, row),
                () if records.fields is None else tuple(records.fields[begin:end]),
            )

    def __repr__(self) -> str:
        return f"<Detections: {len(self):,}, {len(self.late):,} late, {len(self.dead_letters):,} dead letters>"

    def by_pattern(self) -> dict[str, int]:
        """Return how many detections each pattern has; patterns without one are left out."""
        counts = np.bincount(self._table[:, _PATTERN], minlength=len(self._patterns))
        return {name: int(count) for name, count in zip(self._patterns, counts, strict=True) if count}

    def to_arrow(self) -> pa.Table:
        """Return a table `pattern, at, events, bindings`; `fields` too where the detector keeps some."""
        (records, offsets), table = self._events, self._table[self._order]
        rows = [(part, row) for part in self._parts for row in part.reports.rows.tolist()]
        bound = [[(k, str(v)) for k, v in _read_bindings(*rows[place]).items()] for place in self._order.tolist()]
        ids = _to_arrow_ids(records.ids) if isinstance(records.ids, list) else records.ids
        columns = {
            "pattern": pa.array(self._patterns, pa.string()).take(table[:, _PATTERN]),
            "at": pa.array(table[:, _AT]).cast(pa.timestamp("us", "UTC")),
            "events": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids),
            "bindings": pa.array(bound, pa.map_(pa.string(), pa.string())),
        }
        if records.fields is not None:
            fields = records.fields
            kept = pa.array(fields) if isinstance(fields, list) else fields.to_struct_array()
            kept = pa.concat_arrays(kept.chunks) if isinstance(kept, pa.ChunkedArray) else kept
            columns["fields"] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), kept)
        return pa.table(columns)

    def to_columns(self, values: list[Any]) -> ReportColumns:
        """Return the reports as columns, for events whose ids are integers; `values` are those of the run's names."""
        (records, offsets), table = self._events, self._table[self._order]
        patterns, keys, at = (np.ascontiguousarray(table[:, column]) for column in (_PATTERN, _KEY, _AT))
        return ReportColumns(patterns, keys, values, at, np.asarray(records.ids, np.int64), offsets)

    @cached_property
    def _table(self) -> IntArray:
        """A row for each report, part by part; the events of all parts lie end to end."""
        tables, shift = [np.empty((0, 6), np.int64)], 0
        for part in self._parts:
            rows = part.reports.rows
            places, begin = part.layout.places[rows[:, O_PATTERN]], rows[:, O_BEGIN]
            moments = rows[:, [O_AT, O_SEQ, O_KEY]]
            tables.append(np.column_stack([places, moments, begin + shift, rows[:, O_END] - begin]))
            shift += len(part.reports.events)
        return np.concatenate(tables)

    @cached_property
    def _order(self) -> IntArray:
        """The places of the reports in the order of completion; a deadline comes before events of its time."""
        return np.lexsort((self._table[:, _PATTERN], self._table[:, _SEQ], self._table[:, _AT]))

    @cached_property
    def _events(self) -> tuple[EventRecords, IntArray]:
        """The events of all detections end to end, and where each one's begin."""
        begin, count = self._table[self._order, _BEGIN], self._table[self._order, _COUNT]
        offsets = np.append(0, np.cumsum(count))
        places = np.repeat(begin - offsets[:-1], count) + np.arange(offsets[-1])
        events = np.concatenate([np.empty(0, np.int64), *(part.reports.events for part in self._parts)])
        return self._archive.select(events[places]), offsets


def _to_arrow_ids(ids: list[Any]) -> pa.Array:
    """Return ids as Arrow keeps them; as text where they are of several kinds, or of one that it does not know."""
    try:
        return pa.array(ids)
    except pa.ArrowException:
        return pa.array([str(id_) for id_ in ids], pa.string())


def _read_bindings(part: ReportBatch, row: list[int]) -> dict[str, Any]:
    of_key, others = part.layout.variables[row[O_PATTERN]]
    bindings: dict[str, Any] = {}
    if of_key:
        value = part.values[row[O_KEY]]
        bindings = dict(zip(of_key, value if len(of_key) > 1 else (value,), strict=True))
    for number, name in enumerate(others):
        if row[O_VALUES + number] >= 0:
            bindings[name] = part.values[row[O_VALUES + number]]
    return bindings
