"""What a detector reports: patterns that happened, and the events they happened through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.array_types import IntArray
from tidings.kernels.patterns.reports import O_AT, O_BEGIN, O_END, O_KEY, O_PATTERN, O_SEQ, O_VALUES
from tidings.patterns.run.event_times import datetime_of
from tidings.patterns.run.graph_run import Reports

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.model import DeadLetter
    from tidings.patterns.run.event_archive import EventArchive, EventRecords


@dataclass(frozen=True, slots=True)
class Detection:
    """A pattern that happened: the ids of its events in the order of the steps, when, and the values of its variables.

    `at` is the time of the event that completed it, or (absence) when the time was up. `fields` holds, for each event,
    what the detector was told to keep.
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

    The ids of the events are end to end: those of report `i` are `events[ends[i]:ends[i + 1]]`.
    """

    patterns: IntArray
    keys: IntArray
    values: list[Any]
    at: IntArray
    events: IntArray
    ends: IntArray


class Detections:
    """The detections of a batch, in the order they completed; late events and dead letters beside them.

    Detections are made when somebody reads them: a million cost little until then.
    """

    __slots__ = ("_archive", "_events", "_order", "_parts", "_patterns", "dead_letters", "forecasts", "late")

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
        self._order: IntArray | None = None
        self._events: tuple[EventRecords, IntArray] | None = None

    def __len__(self) -> int:
        return sum(len(part.reports.rows) for part in self._parts)

    def __iter__(self) -> Iterator[Detection]:
        records, ends = self._gather_events()
        records = records.to_lists()
        places = [(part, row) for part in self._parts for row in part.reports.rows.tolist()]
        for number, at in enumerate(self._sort_reports().tolist()):
            part, row = places[at]
            begin, end = int(ends[number]), int(ends[number + 1])
            yield Detection(
                self._patterns[part.layout.places[row[O_PATTERN]]],
                tuple(records.ids[begin:end]),
                datetime_of(row[O_AT]),
                _read_bindings(part, row),
                () if records.fields is None else tuple(records.fields[begin:end]),
            )

    def __repr__(self) -> str:
        return f"<Detections: {len(self):,}, {len(self.late):,} late, {len(self.dead_letters):,} dead letters>"

    def by_pattern(self) -> dict[str, int]:
        """Return how many detections each pattern has; patterns without one are left out."""
        numbers = self._join_column(lambda part: part.layout.places[part.reports.rows[:, O_PATTERN]])
        counts = np.bincount(numbers, minlength=len(self._patterns))
        return {name: int(count) for name, count in zip(self._patterns, counts, strict=True) if count}

    def to_arrow(self) -> pa.Table:
        """Return a table `pattern, at, events, bindings`; `fields` too where the detector keeps some."""
        import pyarrow as pa

        records, ends = self._gather_events()
        order = self._sort_reports()
        numbers = self._join_column(lambda part: part.layout.places[part.reports.rows[:, O_PATTERN]])[order]
        names = pa.array(self._patterns, pa.string()).take(numbers)
        at = pa.array(self._join_column(lambda part: part.reports.rows[:, O_AT])[order]).cast(pa.timestamp("us", "UTC"))
        ids = _to_arrow_ids(records.ids) if isinstance(records.ids, list) else records.ids
        rows = [(part, row) for part in self._parts for row in part.reports.rows.tolist()]
        bound = [[(k, str(v)) for k, v in _read_bindings(*rows[place]).items()] for place in order.tolist()]
        columns = {
            "pattern": names,
            "at": at,
            "events": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), ids),
            "bindings": pa.array(bound, pa.map_(pa.string(), pa.string())),
        }
        if records.fields is not None:
            kept = (
                pa.array(records.to_lists().fields)
                if isinstance(records.fields, list)
                else records.fields.to_struct_array()
            )
            kept = pa.concat_arrays(kept.chunks) if isinstance(kept, pa.ChunkedArray) else kept
            columns["fields"] = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), kept)
        return pa.table(columns)

    def to_columns(self, values: list[Any]) -> ReportColumns:
        """Return the reports as columns, for events whose ids are integers; `values` are those of the run's names."""
        records, ends = self._gather_events()
        order = self._sort_reports()
        patterns = self._join_column(lambda part: part.layout.places[part.reports.rows[:, O_PATTERN]])[order]
        keys, at = (self._join_column(lambda part, at=at: part.reports.rows[:, at])[order] for at in (O_KEY, O_AT))
        return ReportColumns(patterns, keys, values, at, np.asarray(records.ids, np.int64), ends)

    def _join_column(self, of: Any) -> IntArray:
        columns = [of(part) for part in self._parts]
        return np.concatenate(columns) if columns else np.empty(0, np.int64)

    def _sort_reports(self) -> IntArray:
        """Return the places of the reports in the order of completion; a deadline comes before events of its time."""
        if self._order is None:
            at, seq = (self._join_column(lambda part, c=c: part.reports.rows[:, c]) for c in (O_AT, O_SEQ))
            pattern = self._join_column(lambda part: part.layout.places[part.reports.rows[:, O_PATTERN]])
            self._order = np.lexsort((pattern, seq, at)) if len(at) else np.empty(0, np.int64)
        return self._order

    def _gather_events(self) -> tuple[EventRecords, IntArray]:
        """Return the events of all detections end to end, and where each one's begin."""
        if self._events is None:
            begins = [part.reports.rows[:, O_BEGIN] for part in self._parts]
            lengths = [part.reports.rows[:, O_END] - part.reports.rows[:, O_BEGIN] for part in self._parts]
            shift, starts = 0, []
            for part, begin in zip(self._parts, begins, strict=True):
                starts.append(begin + shift)
                shift += len(part.reports.events)
            events = (
                np.concatenate([part.reports.events for part in self._parts]) if self._parts else np.empty(0, np.int64)
            )
            order = self._sort_reports()
            start = np.concatenate(starts)[order] if starts else np.empty(0, np.int64)
            length = np.concatenate(lengths)[order] if lengths else np.empty(0, np.int64)
            ends = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
            places = np.repeat(start - ends[:-1], length) + np.arange(ends[-1])
            self._events = self._archive.take(events[places]), ends
        return self._events


def _to_arrow_ids(ids: list[Any]) -> pa.Array:
    """Return ids as Arrow keeps them; as text where they are of several kinds, or of one that it does not know."""
    import pyarrow as pa

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
