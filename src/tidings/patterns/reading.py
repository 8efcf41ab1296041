"""Events as runs take them: when they happened, which filters they satisfy, and the values of variables, as arrays.

All patterns' filters are one matcher's subscriptions, asked once for a batch. Where the attributes they look at have
few distinct values, only those are asked, and every event takes its kind's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import BadEvent
from tidings.kernels.events import by_event, by_kind, taken
from tidings.matcher import Matcher
from tidings.model import DeadLetter, Event, EventBatch
from tidings.model.events import values_of
from tidings.patterns.archive import Told, joined

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from tidings.patterns.names import Names

MICROSECONDS = 1_000_000
"""In a second."""

SOME = 1 << 14
"""Events that are looked at to see whether an attribute has few distinct values."""

NO_TIME = -(1 << 63)
"""Stands for a time that an event does not have."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

EARLIEST = int(datetime.min.replace(tzinfo=UTC).timestamp()) * MICROSECONDS
"""The first moment that a datetime can tell: of events without a time, when none came before."""

LATEST = int(datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()) * MICROSECONDS
"""The last one, to the second: a later number of seconds is most likely one of milliseconds."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Events in the order they are taken; filters' numbers in `symbols[symbols_at[i]:symbols_at[i + 1]]`."""

    times: np.ndarray
    told: Told
    symbols_at: np.ndarray
    symbols: np.ndarray
    values: dict[str, np.ndarray]  # of each attribute that gives a variable its value

    def __len__(self) -> int:
        """Count the events."""
        return len(self.times)

    def take(self, places: np.ndarray) -> Prepared:
        """Return the events at these places."""
        symbols_at, symbols = taken(self.symbols_at, self.symbols, places)
        values = {name: column[places] for name, column in self.values.items()}
        return Prepared(self.times[places], self.told.take(places), symbols_at, symbols, values)


def together(pieces: list[Prepared]) -> Prepared:
    """Return events end to end."""
    if len(pieces) == 1:
        return pieces[0]
    counts = np.concatenate([np.diff(piece.symbols_at) for piece in pieces])
    names = pieces[0].values
    return Prepared(
        np.concatenate([piece.times for piece in pieces]),
        joined([piece.told for piece in pieces]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate([piece.symbols for piece in pieces]),
        {name: np.concatenate([piece.values[name] for piece in pieces]) for name in names},
    )


def answering(events: Prepared, filters: Iterable[int], attributes: Iterable[str]) -> Prepared:
    """Return events read before for other patterns: what is not asked any more goes, what is new is empty."""
    asked = np.isin(events.symbols, np.fromiter(filters, np.int64))
    ends = np.append(0, np.cumsum(asked))[events.symbols_at].astype(np.int64)
    absent = np.full(len(events), -1, np.int64)
    values = {name: events.values.get(name, absent) for name in attributes}
    return replace(events, symbols_at=ends, symbols=events.symbols[asked], values=values)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads events: which filters to ask, which attributes give variables, and what the time and the id are called."""

    matcher: Matcher
    attributes: tuple[str, ...]
    time: str
    event_id: str
    keep: tuple[str, ...]
    needs_time: bool

    def read(
        self, events: Any, names: Names, first: int, *, collect: bool = False
    ) -> tuple[Prepared, list[DeadLetter]]:
        """Return the events that can be read, and the dead letters; an event without an id is called by its number."""
        batch = EventBatch.of(events)
        if batch.table is not None:
            return self._table(batch.table, names, first, collect=collect)
        return self._rows(list(batch), names, first, collect=collect)

    # Arrow -------------------------------------------------------------------------------------

    def _table(
        self, table: pa.Table | pa.RecordBatch, names: Names, first: int, *, collect: bool
    ) -> tuple[Prepared, list[DeadLetter]]:
        import pyarrow as pa

        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        times = self._times(table)
        values = self._values(table, names) if times is not None else None
        if times is None or values is None:  # one by one, to name the events that cannot be read
            return self._rows(list(EventBatch.from_arrow(table)), names, first, collect=collect)
        symbols_at, symbols, dead = self._matched(table, collect=collect)
        prepared = Prepared(times, self._told(table, first), symbols_at, symbols, values)
        if dead:
            lost = {letter.index for letter in dead}
            places = np.array([place for place in range(len(prepared)) if place not in lost], np.int64)
            prepared = prepared.take(places)
        return prepared, dead

    def _times(self, table: pa.Table) -> np.ndarray | None:
        """Return the times in microseconds; nothing when the rows have to be looked at one by one."""
        import pyarrow as pa
        import pyarrow.types as t

        if self.time not in table.column_names:
            return None if self.needs_time else np.full(table.num_rows, NO_TIME, np.int64)
        column = table.column(self.time)
        if column.null_count or not (
            t.is_timestamp(column.type) or t.is_integer(column.type) or t.is_date(column.type)
        ):
            return None
        if t.is_integer(column.type):
            seconds = column.to_numpy()
            ends = [int(seconds.min()), int(seconds.max())] if len(seconds) else []
            sound = all(EARLIEST <= end * MICROSECONDS <= LATEST for end in ends)
            return np.asarray(seconds, np.int64) * MICROSECONDS if sound else None
        try:
            moments = column.cast(
                pa.timestamp("us", column.type.tz if t.is_timestamp(column.type) else None), safe=False
            )
        except pa.ArrowInvalid:
            return None
        return np.asarray(moments.cast(pa.int64()).to_numpy())

    def _values(self, table: pa.Table, names: Names) -> dict[str, np.ndarray] | None:
        found = {}
        for name in self.attributes:
            if name in table.column_names:
                try:
                    found[name] = names.numbers(table.column(name))
                except BadEvent:
                    return None
            elif "." in name:
                return None
            else:
                found[name] = np.full(table.num_rows, -1, np.int64)
        return found

    def _told(self, table: pa.Table, first: int) -> Told:
        return Told(self._ids(table, first), _kept(table, self.keep) if self.keep else None)

    def _ids(self, table: pa.Table, first: int) -> pa.Array | list[Any]:
        import pyarrow as pa

        if self.event_id not in table.column_names:
            return pa.array(np.arange(first, first + table.num_rows))
        column = table.column(self.event_id)
        if column.null_count:  # some events have none: those alone are called by their numbers
            return [first + place if one is None else one for place, one in enumerate(column.to_pylist())]
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)

    def _matched(self, table: pa.Table, *, collect: bool) -> tuple[np.ndarray, np.ndarray, list[DeadLetter]]:
        """Return the filters each event satisfies, by their numbers."""
        few = self._kinds(table)
        if few is not None:
            kinds, codes = few
            try:
                found = self.matcher.match_many(kinds)
                ends, symbols = by_event(found.event_index, _numbers(found), kinds.num_rows)
                return (*by_kind(ends, symbols, codes), [])
            except BadEvent:
                pass  # asked one by one below, where the bad ones are named
        found = self.matcher.match_many(table, on_error="collect" if collect else "raise")
        ends, symbols = by_event(found.event_index, _numbers(found), table.num_rows)
        return ends, symbols, list(found.dead_letters)

    def _kinds(self, table: pa.Table) -> tuple[pa.Table, np.ndarray] | None:
        """Return the distinct rows of what filters look at, and which of them each event is; nothing if too many."""
        import pyarrow as pa

        asked = [name for name in self.matcher.needs() if name in table.column_names]
        nested = any("." in name or "*" in name for name in self.matcher.needs())
        if nested or len(asked) > 3 or table.num_rows < 256:
            return None
        codes, size = np.zeros(table.num_rows, np.int64), 1
        columns: dict[str, pa.Array] = {}
        for name in asked:
            coded = _few(table.column(name))
            if coded is None or size * (len(coded.dictionary) + 1) > table.num_rows // 4:
                return None
            numbers = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
            values = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
            columns = {other: column.take(np.repeat(np.arange(size), len(values))) for other, column in columns.items()}
            columns[name] = values.take(np.tile(np.arange(len(values)), size))
            codes, size = codes * len(values) + numbers, size * len(values)
        used = np.flatnonzero(np.bincount(codes, minlength=size))
        places = np.zeros(size, np.int64)
        places[used] = np.arange(len(used))
        if not columns:
            return None
        return pa.table({name: column.take(used) for name, column in columns.items()}), places[codes]

    # Rows --------------------------------------------------------------------------------------

    def _rows(self, events: list[Any], names: Names, first: int, *, collect: bool) -> tuple[Prepared, list[DeadLetter]]:
        found = self.matcher.match_many(events, on_error="collect" if collect else "raise")
        dead = {letter.index: letter for letter in found.dead_letters}
        rows: list[tuple[int, Any, dict[str, Any], list[int]]] = []
        places = []
        for place, event in enumerate(events):
            if place in dead:
                continue
            try:
                rows.append(self._row(event, first + place, names))
                places.append(place)
            except BadEvent as problem:
                if not collect:
                    raise
                dead[place] = DeadLetter(place, str(problem))
        ends, symbols = by_event(found.event_index, _numbers(found), len(events))
        if len(places) < len(events):
            ends, symbols = taken(ends, symbols, np.array(places, np.int64))
        values = [row[3] for row in rows]
        table = np.array(values, np.int64).reshape(len(rows), len(self.attributes))
        columns = {name: np.ascontiguousarray(table[:, at]) for at, name in enumerate(self.attributes)}
        told = Told([row[1] for row in rows], [row[2] for row in rows] if self.keep else None)
        times = np.array([row[0] for row in rows], np.int64)
        return Prepared(times, told, ends, symbols, columns), [dead[place] for place in sorted(dead)]

    def _row(self, event: Any, number: int, names: Names) -> tuple[int, Any, dict[str, Any], list[int]]:
        values = values_of(event)
        time = event.time if isinstance(event, Event) and event.time is not None else values.get(self.time)
        at = moment_of(time) if time is not None else NO_TIME
        if at == NO_TIME and self.needs_time:
            msg = f"the event has no `{self.time}`, and a pattern asks for times; name the field with time="
            raise BadEvent(msg)
        id_ = event.id if isinstance(event, Event) and event.id is not None else values.get(self.event_id)
        fields = {name: looked_up(values, name) for name in self.keep}
        numbers = [names.number(looked_up(values, name)) for name in self.attributes]
        return at, number if id_ is None else id_, fields, numbers


def with_times(prepared: Prepared, latest: int) -> Prepared:
    """Give events without a time the latest before them; others keep theirs, so that what is late stays late."""
    if not (prepared.times == NO_TIME).any():
        return prepared
    floor = np.append(max(latest, EARLIEST), prepared.times)
    times = np.where(prepared.times == NO_TIME, np.maximum.accumulate(floor)[1:], prepared.times)
    return replace(prepared, times=times)


def _kept(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return the fields that travel along; one that is not there is empty, as it is in rows."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name in names:
        head = name.partition(".")[0]
        if name in table.column_names:
            columns[name] = table.column(name)
        elif head in table.column_names:
            columns[name] = pa.array([looked_up({head: one}, name) for one in table.column(head).to_pylist()])
        else:
            columns[name] = pa.nulls(table.num_rows)
    return pa.table(columns)


def looked_up(values: Mapping[str, Any], name: str) -> Any:
    """Return an attribute's value; a dotted name looks into records."""
    if name in values:
        return values[name]
    head, _, rest = name.partition(".")
    inner = values.get(head)
    return looked_up(inner, rest) if rest and isinstance(inner, Mapping) else None


def moment_of(time: Any) -> int:
    """Return a time in microseconds: a datetime (without a zone: UTC), a date, ISO text, or seconds since 1970."""
    match time:
        case datetime():
            aware = time if time.tzinfo else time.replace(tzinfo=UTC)
            apart = aware - _EPOCH
            return (apart.days * 86_400 + apart.seconds) * MICROSECONDS + apart.microseconds
        case date():
            return moment_of(datetime(time.year, time.month, time.day, tzinfo=UTC))
        case bool():
            pass
        case int() | np.integer() if EARLIEST <= int(time) * MICROSECONDS <= LATEST:
            return int(time) * MICROSECONDS
        case float() if EARLIEST <= time * MICROSECONDS <= LATEST:
            return round(time * MICROSECONDS)
        case str():
            try:
                return moment_of(datetime.fromisoformat(time))
            except ValueError:
                pass
    msg = f"an event's time is a datetime, ISO text or seconds since 1970, not `{time!r}`"
    raise BadEvent(msg)


def datetime_of(moment: int) -> datetime:
    """Return a time in microseconds as a datetime in UTC."""
    from datetime import timedelta

    try:
        return _EPOCH + timedelta(microseconds=int(moment))
    except OverflowError:  # an absence that lasts longer than Python's calendar
        return datetime.max.replace(tzinfo=UTC)


def _numbers(found: Any) -> np.ndarray:
    import pyarrow as pa

    if not len(found):
        return np.empty(0, np.int64)
    return np.asarray(found.id_array().cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _few(column: pa.ChunkedArray) -> pa.DictionaryArray | None:
    """Return a column by its distinct values; nothing for kinds that seldom have few."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        unified = column.unify_dictionaries()
        return pa.concat_arrays(unified.chunks) if unified.num_chunks else None
    if not (
        t.is_string(column.type)
        or t.is_large_string(column.type)
        or t.is_boolean(column.type)
        or t.is_integer(column.type)
    ):
        return None
    some = column.slice(0, SOME)
    if len(column) > SOME and len(some.unique()) > SOME // 2:  # a look at a few, before all are coded
        return None
    coded = column.dictionary_encode()
    return coded.combine_chunks() if coded.num_chunks == 1 else pa.concat_arrays(coded.unify_dictionaries().chunks)
