"""Events as runs take them: when they happened, which filters they satisfy, and the values of variables, as arrays.

All patterns' filters are subscriptions of one matcher, which matches a batch once. Where the attributes they read have
few distinct values, only the distinct rows are matched, and every event takes the answer of its row.

Which events are bad is decided by the matcher, from declarations alone. A value that no variable takes is none, and an
event without a time that can be read is marked: patterns that ask for times do not see it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from tidings.algebra import AttributeReader, Requirements
from tidings.algebra.law.mismatches import MismatchCounts
from tidings.algebra.law.typed_attribute import Mismatch, describe_type
from tidings.concepts import Ontology
from tidings.errors import BadEvent
from tidings.kernels.array_types import BoolArray, IntArray
from tidings.kernels.patterns.symbol_lists import group_by_event, take_lists
from tidings.matcher import Matcher
from tidings.model import DeadLetter, Event, EventBatch
from tidings.model.arrow_types import to_rows
from tidings.model.events import get_values
from tidings.model.values import EPOCH
from tidings.patterns.run.event_archive import EventRecords, concat_records
from tidings.patterns.run.event_times import EARLIEST, NO_TIME, look_up, read_time, read_times
from tidings.patterns.run.mismatch_counts import PatternMismatchCounts
from tidings.patterns.run.variable_values import ValueNumbers, VariableReader, list_path_prefixes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.model import EventLike, Matches


Events: TypeAlias = "EventBatch | pa.Table | pa.RecordBatch | Iterable[EventLike]"
"""Events as callers have them."""

SAMPLE = 1 << 14
"""The first events of a long column, which tell whether it has few distinct values."""


@dataclass(frozen=True, slots=True)
class EncodedEvents:
    """Events in the order they are taken; the filters of event `i` are `symbols[symbols_at[i]:symbols_at[i + 1]]`."""

    times: IntArray
    records: EventRecords
    symbols_at: IntArray
    symbols: IntArray
    values: dict[str, IntArray]  # of each attribute that gives a variable its value
    timed: BoolArray | None = None  # whether each has a time of its own; None: all of them

    def __len__(self) -> int:
        return len(self.times)

    def select(self, indexes: IntArray) -> EncodedEvents:
        """Return the events at these indexes."""
        symbols_at, symbols = take_lists(self.symbols_at, self.symbols, indexes)
        values = {name: column[indexes] for name, column in self.values.items()}
        timed = None if self.timed is None else self.timed[indexes]
        return EncodedEvents(self.times[indexes], self.records.select(indexes), symbols_at, symbols, values, timed)

    def slice(self, first: int, end: int) -> EncodedEvents:
        """Return the events from `first` to before `end` as views; copies took a seventh of a simple pattern's time."""
        at = self.symbols_at[first : end + 1]
        values = {name: column[first:end] for name, column in self.values.items()}
        timed = None if self.timed is None else self.timed[first:end]
        records = self.records.slice(first, end)
        return EncodedEvents(self.times[first:end], records, at - at[0], self.symbols[at[0] : at[-1]], values, timed)


def concat_events(pieces: list[EncodedEvents]) -> EncodedEvents:
    """Return events end to end."""
    if len(pieces) == 1:
        return pieces[0]
    counts = np.concatenate([np.diff(piece.symbols_at) for piece in pieces])
    names = pieces[0].values
    untimed = any(piece.timed is not None for piece in pieces)
    marks = [np.full(len(piece), True) if piece.timed is None else piece.timed for piece in pieces]
    return EncodedEvents(
        np.concatenate([piece.times for piece in pieces]),
        concat_records([piece.records for piece in pieces]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate([piece.symbols for piece in pieces]),
        {name: np.concatenate([piece.values[name] for piece in pieces]) for name in names},
        np.concatenate(marks) if untimed else None,
    )


def adapt_events(events: EncodedEvents, filters: Iterable[int], attributes: Iterable[str]) -> EncodedEvents:
    """Adapt events that were read for other patterns: drop old filters, add empty columns for new attributes."""
    is_wanted = np.isin(events.symbols, np.fromiter(filters, np.int64))
    offsets = np.append(0, np.cumsum(is_wanted))[events.symbols_at].astype(np.int64)
    absent = np.full(len(events), -1, np.int64)
    values = {name: events.values.get(name, absent) for name in attributes}
    return replace(events, symbols_at=offsets, symbols=events.symbols[is_wanted], values=values)


@dataclass(frozen=True, slots=True)
class EventReader:
    """Reads events into arrays: matches the filters, numbers the values of variables, and finds times and ids."""

    matcher: Matcher
    variables: VariableReader
    time: str
    event_id: str
    keep: tuple[str, ...]
    counts: PatternMismatchCounts

    def read(
        self, events: Events, value_numbers: ValueNumbers, first: int, *, collect: bool = False
    ) -> tuple[EncodedEvents, list[DeadLetter]]:
        """Return the events that can be read, and the dead letters; the id of an event without one is its number.

        Those without a time that can be read have the time `NO_TIME`.
        """
        batch = EventBatch.of(events)
        if batch.table is not None:
            prepared, dead = self._read_table(batch.table, value_numbers, first, collect=collect)
        else:
            prepared, dead = self._read_rows(list(batch), value_numbers, first, collect=collect)
        self.counts.events += len(prepared)
        self.counts.untimed += int((prepared.times == NO_TIME).sum())
        return prepared, dead

    def _read_table(
        self, table: pa.Table | pa.RecordBatch, value_numbers: ValueNumbers, first: int, *, collect: bool
    ) -> tuple[EncodedEvents, list[DeadLetter]]:
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        offsets, symbols, dead = self._match_table(table, collect=collect)
        records = EventRecords(self._read_ids(table, first), _select_fields(table, self.keep) if self.keep else None)
        if dead:
            indexes = np.setdiff1d(np.arange(table.num_rows), [letter.index for letter in dead])
            table, records = table.take(indexes), records.select(indexes)
            offsets, symbols = take_lists(offsets, symbols, indexes)
        values = self.variables.read_table(table, value_numbers, self.counts)
        return EncodedEvents(read_times(table, self.time), records, offsets, symbols, values), dead

    def _read_ids(self, table: pa.Table, first: int) -> pa.Array | list[Any]:
        if self.event_id not in table.column_names:
            return pa.array(np.arange(first, first + table.num_rows))
        column = table.column(self.event_id)
        if column.null_count:  # some events have none: those alone are called by their numbers
            return [first + place if id_ is None else id_ for place, id_ in enumerate(column.to_pylist())]
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)

    def _match_table(self, table: pa.Table, *, collect: bool) -> tuple[IntArray, IntArray, list[DeadLetter]]:
        """Return the filters each event satisfies, by their numbers."""
        few = self._find_distinct_rows(table)
        if few is not None:
            distinct_rows, row_of_event = few
            counts = MismatchCounts()
            try:
                matches = self.matcher.match_many(distinct_rows, counts=counts)
                self._recount(counts, distinct_rows, row_of_event)
                numbers = _filter_numbers(matches)
                offsets, symbols = group_by_event(matches.event_index, numbers, distinct_rows.num_rows)
                return (*take_lists(offsets, symbols, row_of_event), [])
            except BadEvent:
                pass  # asked one by one below, where the bad ones are named
        matches = self.matcher.match_many(self._select_columns(table), on_error="collect" if collect else "raise")
        offsets, symbols = group_by_event(matches.event_index, _filter_numbers(matches), table.num_rows)
        return offsets, symbols, list(matches.dead_letters)

    def _select_columns(self, table: pa.Table) -> pa.Table:
        """Leave out columns that filters do not read, so that values there which Python cannot represent do no harm."""
        required, ontology = self.matcher.get_view().required, self.matcher.ontology or Ontology()
        if required.wildcards or ontology.derived:
            return table
        unit_attributes = [need.unit_from for needs in required.attributes.values() for need in needs if need.unit_from]
        needed = [*required.attributes, *unit_attributes]
        prefixes = list_path_prefixes(source for name in needed for source in ontology.sources(name))
        wanted = [name for name in table.column_names if name in prefixes]
        return table.select(wanted) if wanted else table

    def _recount(self, counts: MismatchCounts, distinct_rows: pa.Table, row_of_event: IntArray) -> None:
        """Count mismatches by events: what was counted so far is each distinct row once."""
        often = np.bincount(row_of_event, minlength=distinct_rows.num_rows)
        needs, total = self.matcher.needs(), self.matcher.mismatch_counts
        for key, _ in counts:
            of_key = tuple(need for need in needs[key.name] if key in need.list_keys(key.name))
            reader = AttributeReader(Requirements({key.name: of_key}), self.matcher.ontology or Ontology())
            for events, row in zip(often.tolist(), to_rows(distinct_rows.select([key.name])), strict=True):
                values = reader.read(row, EPOCH).values.get(key, ())
                total.values[key] += events * len(values)
                for value in values:
                    if isinstance(value, Mismatch):
                        total.add(key, describe_type(value.raw), events)

    def _find_distinct_rows(self, table: pa.Table) -> tuple[pa.Table, IntArray] | None:
        """Return the distinct rows of the columns that filters read, and the row of each event; `None` if too many."""
        attributes = [name for name in self.matcher.needs() if name in table.column_names]
        if self._reaches_further() or len(attributes) > 3 or table.num_rows < 256:
            return None
        codes, size = np.zeros(table.num_rows, np.int64), 1
        columns: dict[str, pa.Array] = {}
        for name in attributes:
            coded = _encode_few(table.column(name))
            if coded is None or size * (len(coded.dictionary) + 1) > table.num_rows // 4:
                return None
            numbers = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
            values = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
            columns = {other: column.take(np.repeat(np.arange(size), len(values))) for other, column in columns.items()}
            columns[name] = values.take(np.tile(np.arange(len(values)), size))
            codes, size = codes * len(values) + numbers, size * len(values)
        used = np.flatnonzero(np.bincount(codes, minlength=size))
        row_of_code = np.zeros(size, np.int64)
        row_of_code[used] = np.arange(len(used))
        if not columns:
            return None
        return pa.table({name: column.take(used) for name, column in columns.items()}), row_of_code[codes]

    def _reaches_further(self) -> bool:
        """Tell whether an attribute is fed by more than the column of its name: below it, beside it, or derived."""
        ontology = self.matcher.ontology or Ontology()
        return bool(ontology.derived) or any(
            "." in name or "*" in name or ontology.sources(name) != (name,) or any(need.unit_from for need in needs)
            for name, needs in self.matcher.needs().items()
        )

    def _read_rows(
        self, events: list[EventLike], value_numbers: ValueNumbers, first: int, *, collect: bool
    ) -> tuple[EncodedEvents, list[DeadLetter]]:
        matches = self.matcher.match_many(events, on_error="collect" if collect else "raise")
        dead = {letter.index: letter for letter in matches.dead_letters}
        indexes = [index for index in range(len(events)) if index not in dead]
        rows = [self._read_row(events[index], first + index, value_numbers) for index in indexes]
        offsets, symbols = group_by_event(matches.event_index, _filter_numbers(matches), len(events))
        if dead:
            offsets, symbols = take_lists(offsets, symbols, np.array(indexes, np.int64))
        table = np.array([row[3] for row in rows], np.int64).reshape(len(rows), len(self.variables.names))
        columns = {name: np.ascontiguousarray(table[:, at]) for at, name in enumerate(self.variables.names)}
        records = EventRecords([row[1] for row in rows], [row[2] for row in rows] if self.keep else None)
        times = np.array([row[0] for row in rows], np.int64)
        return EncodedEvents(times, records, offsets, symbols, columns), [dead[index] for index in sorted(dead)]

    def _read_row(
        self, event: EventLike, number: int, value_numbers: ValueNumbers
    ) -> tuple[int, Any, dict[str, Any], list[int]]:
        values = get_values(event)
        time = event.time if isinstance(event, Event) and event.time is not None else look_up(values, self.time)
        id_ = event.id if isinstance(event, Event) and event.id is not None else values.get(self.event_id)
        fields = {name: look_up(values, name) for name in self.keep}
        numbers = self.variables.read_row(values, value_numbers, self.counts)
        return read_time(time), number if id_ is None else id_, fields, numbers


def fill_times(prepared: EncodedEvents, latest: int) -> EncodedEvents:
    """Give events without a time the latest time before them; the others keep theirs, so late events stay late."""
    timed = prepared.times != NO_TIME
    if timed.all():
        return prepared
    floor = np.append(max(latest, EARLIEST), prepared.times)
    times = np.where(timed, prepared.times, np.maximum.accumulate(floor)[1:])
    return replace(prepared, times=times, timed=timed)


def _select_fields(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return the kept fields as a table; a field that is absent is null."""
    columns: dict[str, Any] = {}
    for name in names:
        head = name.partition(".")[0]
        if name in table.column_names:
            columns[name] = table.column(name)
        elif head in table.column_names:
            columns[name] = pa.array([look_up({head: value}, name) for value in table.column(head).to_pylist()])
        else:
            columns[name] = pa.nulls(table.num_rows)
    return pa.table(columns)


def _filter_numbers(matches: Matches) -> IntArray:
    if not len(matches):
        return np.empty(0, np.int64)
    return np.asarray(matches.id_array().cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _encode_few(column: pa.ChunkedArray) -> pa.DictionaryArray | None:
    """Dictionary-encode a column; `None` for types that seldom have few distinct values."""
    if t.is_dictionary(column.type):
        unified = column.unify_dictionaries()
        return pa.concat_arrays(unified.chunks) if unified.num_chunks else None
    # Not of string views: Arrow cannot `take` them.
    if not any(is_kind(column.type) for is_kind in (t.is_string, t.is_large_string, t.is_boolean, t.is_integer)):
        return None
    if len(column) > SAMPLE and len(column.slice(0, SAMPLE).unique()) > SAMPLE // 2:  # before all of them are coded
        return None
    coded = column.dictionary_encode()
    return coded.combine_chunks() if coded.num_chunks == 1 else pa.concat_arrays(coded.unify_dictionaries().chunks)
