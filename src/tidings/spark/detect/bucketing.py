"""Events to buckets, without state: which filters each satisfies, which keys it gives, and where those are kept.

All filters are asked once for a batch. Events that satisfy nothing go nowhere, unless a pattern asks for the very next
event, or is foretold or trained. What goes to one bucket leaves as one value (`buckets.to_bytes`), with its place in
the order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from tidings.kernels.patterns.symbol_lists import rename_symbols
from tidings.model import DeadLetter
from tidings.patterns.run.event_reader import EncodedEvents
from tidings.patterns.run.event_times import NO_TIME, times_of
from tidings.patterns.run.value_numbers import ValueNumbers
from tidings.spark.detect.bucket import PLACE, SYMBOLS, TELL, TELLS, TIME, VALUE, to_bytes
from tidings.spark.detect.worker_plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.patterns.run.portions import Portion
    from tidings.spark.detect.worker_plan import Opened

PIECE = 1 << 17
"""Events that are dealt at once: a bucket's value is worth its cost, and memory stays small."""

MANY = 1 << 18
"""Values of variables that are remembered between pieces."""

DEALT = "bucket STRING, arrived BIGINT, newest BIGINT, seen BIGINT, rows BINARY"
"""What comes out: a bucket's name, the order of arrival, the newest time in microseconds, and the rows.

Without rows it is a task's last word: the newest time of all, and how many events were `seen`.
"""


@dataclass(frozen=True, slots=True)
class Deal:
    """The function Spark runs over Arrow batches, whose columns are called `names`; the filters look at `read`.

    With `clock`, every bucket that waits for time to pass is told the newest time, also where it gets no row. Buckets
    whose keys are foretold by their shares of the stream are told how many events there were.
    """

    plan: Plan
    names: tuple[str, ...]
    read: tuple[str, ...]
    clock: bool = False
    placed: bool = False  # rows are in order over all tasks, and tell their places

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield values for buckets."""
        dealer: Dealer | None = None
        for table in gathered(batches, self.names):
            dealer = dealer or self.dealer()
            yield from dealer.dealt(table)
        if dealer is not None:
            yield from dealer.last_words(clock=self.clock)

    def dealer(self) -> Dealer:
        """Return what deals the events of one task."""
        return Dealer(self.plan, self.read, placed=self.placed)


@dataclass(frozen=True, slots=True)
class Letters:
    """The same for the events that cannot be read: their columns, and the reason."""

    plan: Plan
    names: tuple[str, ...]
    read: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of bad events."""
        for table in gathered(batches, self.names):
            letters = readable(self.plan.open(), table, self.read, ValueNumbers()).letters
            if letters:
                rows = table.take([letter.index for letter in letters])
                rows = rows.append_column("reason", pa.array([letter.reason for letter in letters], pa.string()))
                yield from rows.rename_columns(list(map(str, range(rows.num_columns)))).to_batches()


def gathered(batches: Iterator[pa.RecordBatch], names: tuple[str, ...]) -> Iterator[pa.Table]:
    """Yield batches put together into large ones, under their columns' names."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= PIECE:
            yield pa.Table.from_batches(waiting).rename_columns(list(names))
            waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting).rename_columns(list(names))


@dataclass(frozen=True, slots=True)
class Readable:
    """Events that could be read, the rows they came from, and letters about the others, by their rows."""

    rows: pa.Table
    events: EncodedEvents
    letters: tuple[DeadLetter, ...]


def readable(opened: Opened, table: pa.Table, read: tuple[str, ...], names: ValueNumbers) -> Readable:
    """Read events; those without a time, and those that break what is declared, are letters.

    A DataFrame has no order but that of time, so here every pattern needs it, whatever it asks for.
    """
    time = opened.whole.settings.time
    letters: list[DeadLetter] = []
    places = np.arange(table.num_rows)
    missing = times_of(table, time) == NO_TIME
    if missing.any():
        letters = [DeadLetter(place, f"the event has no `{time}`") for place in np.flatnonzero(missing).tolist()]
        places = np.flatnonzero(~missing)
        table = table.take(places)
    events, dead = opened.whole.reader.read(table.select(list(read)), names, 0, collect=True)
    if dead:
        letters += [DeadLetter(int(places[one.index]), one.reason) for one in dead]
        alive = np.ones(table.num_rows, bool)
        alive[[one.index for one in dead]] = False
        table = table.take(np.flatnonzero(alive))
    return Readable(table, events, tuple(sorted(letters, key=lambda one: one.index)))


class Dealer:
    """Deals the events of one task."""

    def __init__(self, plan: Plan, read: tuple[str, ...], *, placed: bool) -> None:
        """Open the patterns."""
        task = TaskContext.get()
        self._plan, self._read, self._opened, self._placed = plan, read, plan.open(), placed
        self._arrived = (task.partitionId() if task is not None else 0) << 32
        self._newest, self._seen = -(1 << 62), 0
        self._names, self._buckets = ValueNumbers(), _Buckets()

    def dealt(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the values that go to buckets, of all portions."""
        if len(self._names) > MANY:
            self._names, self._buckets = ValueNumbers(), _Buckets()
        found = readable(self._opened, table, self._read, self._names)
        if not len(found.events):
            return
        self._newest = max(self._newest, int(found.events.times.max()))
        told = np.zeros(len(found.events), bool)
        for portion in self._opened.portions:
            yield from self._values(self._portion(portion, found, told))
        yield from self._values(self.besides(found.events))
        self._seen += len(found.events)
        self._arrived += 1

    def besides(self, events: EncodedEvents) -> list[tuple[str, bytes]]:  # noqa: ARG002 - for those that add something
        """Return what goes to buckets that are no portion's: nothing."""
        return []

    def counts_all(self, portion: Portion) -> bool:
        """Tell whether a portion needs every event of its stream."""
        return portion.is_contiguous or self._opened.has_forecasts(portion)

    def clocked(self, portion: Portion) -> bool:
        """Tell whether a portion's buckets wait for time to pass."""
        return portion.has_absence

    def last_words(self, *, clock: bool) -> Iterator[pa.RecordBatch]:
        """Yield the newest time and the number of events, for all buckets that need to know."""
        told = [
            one for one in self._opened.portions if self._opened.needs_positions(one) or (clock and self.clocked(one))
        ]
        if told and self._seen:
            names = [portion.name_bucket(bucket) for portion in told for bucket in range(portion.buckets)]
            yield _values(names, self._arrived, self._newest, [None] * len(names), seen=self._seen)

    def _values(self, values: list[tuple[str, bytes]]) -> Iterator[pa.RecordBatch]:
        if values:
            names, rows = zip(*values, strict=True)
            yield _values(names, self._arrived, self._newest, rows)

    def _portion(self, portion: Portion, found: Readable, told: np.ndarray) -> list[tuple[str, bytes]]:
        events = found.events
        ends, symbols = rename_symbols(events.symbols_at, events.symbols, portion.symbols)
        wanted = np.full(len(events), True) if self.counts_all(portion) else np.diff(ends) > 0
        rows, buckets = self._pairs(portion, events, wanted)
        if not len(rows):
            return []
        columns = {
            TIME: pa.array(events.times),
            SYMBOLS: pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(symbols, pa.int32())),
        }
        if self._placed and portion.is_keyed:
            columns[PLACE] = pa.array(self._seen + np.arange(len(events)))
        columns |= {TELL + name: found.rows.column(name) for name in self._plan.told}
        columns |= {VALUE + name: self._value(name, found) for name in portion.patterns.attributes}
        sorted_rows = pa.table(columns).take(rows).combine_chunks()
        sorted_rows = sorted_rows.append_column(TELLS, pa.array(_first(rows, told)))
        edges = np.flatnonzero(np.diff(buckets, prepend=-1, append=-1))
        return [
            (portion.name_bucket(int(buckets[begin])), to_bytes(sorted_rows.slice(begin, end - begin)))
            for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]

    def _pairs(self, portion: Portion, events: EncodedEvents, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the events and the buckets they go to, by bucket and then in the order of arrival."""
        if not portion.is_keyed:
            rows = np.flatnonzero(wanted)
            return rows, np.zeros(len(rows), np.int64)
        pairs = []
        for way in portion.ways:
            columns = [events.values[name] for name in way]
            keys = columns[0] if len(columns) == 1 else self._names.tuples(columns)
            rows = np.flatnonzero(wanted & (keys >= 0))
            pairs.append((self._buckets.of(portion, self._names)[keys[rows]], rows))
        buckets, rows = (np.concatenate(one) for one in zip(*pairs, strict=True))
        if len(pairs) > 1:
            both = np.unique(buckets * len(events) + rows)
            return both % len(events), both // len(events)
        order = np.argsort(buckets.astype(np.uint16 if portion.buckets < 1 << 16 else np.int64), kind="stable")
        return rows[order], buckets[order]

    def _value(self, name: str, found: Readable) -> Any:
        """Return a variable's values: the column where it gives them as they are, or else what was read."""
        column = found.rows.column(name) if name in found.rows.column_names else None
        if column is not None and self._opened.whole.reader.variables.takes_as_is(name, column.type):
            # A date as its midnight: a state keeps times, and a date would come back as text.
            return column.cast(pa.timestamp("us", "UTC")) if pa.types.is_date(column.type) else column
        numbers = found.events.values[name]
        known, places = np.unique(numbers, return_inverse=True)
        values = [None if number < 0 else self._names.values[number] for number in known.tolist()]
        return pa.array(values).take(places.reshape(-1))


class _Buckets:
    """The buckets of all values that were seen, for each portion: a value is hashed once."""

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def of(self, portion: Portion, names: ValueNumbers) -> np.ndarray:
        known = self._known.get(portion.name, np.empty(0, np.int64))
        fresh = [portion.bucket_of(value) for value in names.values[len(known) :]]
        self._known[portion.name] = np.concatenate([known, np.array(fresh, np.int64)]) if fresh else known
        return self._known[portion.name]


def _first(rows: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Tell of each row whether no bucket has it yet: that one tells when it comes late."""
    tells = np.zeros(len(rows), bool)
    which, first = np.unique(rows, return_index=True)
    tells[first] = ~told[which]
    told[which] = True
    return tells


def _values(names: Any, arrived: int, newest: int, rows: Any, *, seen: int = 0) -> pa.RecordBatch:
    columns = [
        pa.array(names, pa.string()),
        pa.repeat(pa.scalar(arrived, pa.int64()), len(names)),
        pa.repeat(pa.scalar(newest, pa.int64()), len(names)),
        pa.repeat(pa.scalar(seen, pa.int64()), len(names)),
        pa.array(rows, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, ["bucket", "arrived", "newest", "seen", "rows"])
