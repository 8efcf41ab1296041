"""Events to buckets, without state: which filters each event satisfies, which keys it has, and their buckets.

A batch is matched against all filters at once. Events that satisfy no filter are dropped, unless a pattern is about the
very next event, or is forecast or trained. The rows of one bucket leave as one packet (`bucket.to_bytes`), with its
number in the order of arrival.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.kernels.patterns.symbol_lists import rename_symbols
from tidings.model import DeadLetter
from tidings.patterns.run.event_reader import EncodedEvents
from tidings.patterns.run.event_times import NO_TIME, read_times
from tidings.patterns.run.machine import compute_keys
from tidings.patterns.run.variable_values import ValueNumbers
from tidings.patterns.state.run_bytes import to_plain
from tidings.spark.detect.base import WorkerPlan
from tidings.spark.detect.bucket import (
    REPORTED,
    REPORTS_LATE,
    STREAM_POSITION,
    SYMBOLS,
    TIME,
    VALUE,
    WRITTEN_VALUE,
    name_symbols,
    to_bytes,
)
from tidings.spark.schema import find_columns, find_names_read, require_columns, to_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from tidings.forecast import Detector
    from tidings.kernels.array_types import BoolArray, IntArray
    from tidings.patterns.run.portions import Portion
    from tidings.spark.detect.worker_plan import DetectPlan, OpenPatterns

BUCKETS, BATCH_BUCKETS, SHARDS = 32, 64, 8
"""Default numbers of key buckets of a stream and of a batch, and of shards of patterns without a key.

Those of a stream do not depend on the cluster: its checkpoint does on them.
"""

PIECE = 1 << 17
"""Events that are processed at once: many rows for each packet, in little memory."""

MAX_KEPT_VALUES = 1 << 18
"""Values of variables that are kept between pieces."""

BUCKET_PACKETS = "bucket STRING, arrival_order BIGINT, newest BIGINT, seen BIGINT, rows BINARY"
"""The output: a bucket's name, the order of arrival (the task's number in the upper 32
bits, then a sequence number), the newest time in microseconds, and the rows.

A packet without rows closes a task: it has the newest time and the number of events (`seen`) of that task.
"""

TallyBuilder: TypeAlias = "Callable[[OpenPatterns, EncodedEvents], tuple[str, bytes]]"
"""Counts a piece of the stream for training, and returns the name of the bucket of such counts and a packet for it."""


@dataclass(frozen=True, slots=True)
class BucketStep:
    """The function Spark runs over Arrow batches, whose columns are called `columns`; the filters look at `read`.

    With `clock`, every bucket with patterns that time completes gets the newest time, also where it gets no row.
    Buckets whose forecasts depend on a key's share of the stream get the number of events. With `tally` a model is
    trained: then an event that satisfies no filter counts too, and every bucket needs the end of the history.
    """

    plan: WorkerPlan
    columns: tuple[str, ...]
    read: tuple[str, ...]
    clock: bool = False
    needs_stream_positions: bool = False  # rows are in order over all tasks, so their positions in the stream are known
    tally: TallyBuilder | None = None
    names_symbols: bool = False  # rows say what their symbols are: the buckets may number filters in another way
    has_documents: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield packets for buckets."""
        bucketer: EventBucketer | None = None
        for table in gather_batches(batches, self.columns):
            bucketer = bucketer or EventBucketer(self)
            yield from bucketer.bucket_table(table)
        if bucketer is not None:
            yield from bucketer.build_closing_packets()


def list_bad_events(
    batches: Iterator[pa.RecordBatch], *, plan: DetectPlan, names: tuple[str, ...], read: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of events that cannot be read, and the reason; the columns are those of a `BucketStep`."""
    for table in gather_batches(batches, names):
        if letters := read_events(plan.open(), table, read, ValueNumbers()).letters:
            rows = table.take([letter.index for letter in letters])
            rows = rows.append_column("reason", pa.array([letter.reason for letter in letters], pa.string()))
            yield from rows.rename_columns(list(map(str, range(rows.num_columns)))).to_batches()


def gather_batches(batches: Iterator[pa.RecordBatch], names: tuple[str, ...]) -> Iterator[pa.Table]:
    """Yield batches concatenated into large tables, with these column names."""
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
class ReadableEvents:
    """Events that could be read, the rows they came from, and dead letters for the other rows."""

    rows: pa.Table
    events: EncodedEvents
    letters: tuple[DeadLetter, ...]


def read_events(
    opened: OpenPatterns, table: pa.Table, read: tuple[str, ...], value_numbers: ValueNumbers
) -> ReadableEvents:
    """Read events; those without a time, and those that break a declared type, become dead letters.

    Only their times order the rows of a DataFrame, so here every event needs one, whatever its patterns.
    """
    time = opened.patterns.settings.time
    letters: list[DeadLetter] = []
    places = np.arange(table.num_rows)
    missing = read_times(table, time) == NO_TIME
    if missing.any():
        letters = [DeadLetter(place, f"the event has no `{time}`") for place in np.flatnonzero(missing).tolist()]
        places = np.flatnonzero(~missing)
        table = table.take(places)
    events, dead = opened.patterns.reader.read(table.select(list(read)), value_numbers, 0, collect=True)
    if dead:
        letters += [DeadLetter(int(places[letter.index]), letter.reason) for letter in dead]
        alive = np.ones(table.num_rows, bool)
        alive[[letter.index for letter in dead]] = False
        table = table.take(np.flatnonzero(alive))
    return ReadableEvents(table, events, tuple(sorted(letters, key=lambda letter: letter.index)))


class EventBucketer:
    """Sends the events of one task to buckets."""

    def __init__(self, step: BucketStep) -> None:
        task = TaskContext.get()
        self._step, self._open = step, step.plan.open()
        self._arrival_order = (task.partitionId() if task is not None else 0) << 32
        self._newest, self._seen = -(1 << 62), 0
        self._value_numbers = ValueNumbers()
        self._buckets: dict[str, IntArray] = {}  # of all values so far, for each portion: a value is hashed once

    def bucket_table(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the packets for the buckets of all portions."""
        yield from self.bucket_events(read_events(self._open, table, self._step.read, self.prepare_value_numbers()))

    def prepare_value_numbers(self) -> ValueNumbers:
        """Return the numbers of values for the next piece; they begin anew where there are too many."""
        if len(self._value_numbers) > MAX_KEPT_VALUES:
            self._value_numbers, self._buckets = ValueNumbers(), {}
        return self._value_numbers

    def bucket_events(self, readable: ReadableEvents) -> Iterator[pa.RecordBatch]:
        """Yield the packets of events for the buckets of all portions."""
        if not len(readable.events):
            return
        self._newest = max(self._newest, int(readable.events.times.max()))
        sent = np.zeros(len(readable.events), bool)
        for portion in self._open.portions:
            yield from self._to_batches(self._bucket_portion(portion, readable, sent))
        if self._step.tally is not None:
            yield from self._to_batches([self._step.tally(self._open, readable.events)])
        self._seen += len(readable.events)
        self._arrival_order += 1

    def build_closing_packets(self) -> Iterator[pa.RecordBatch]:
        """Yield the newest time and the number of events for all buckets that need them."""
        clock, trains = self._step.clock, self._step.tally is not None
        portions = [
            portion
            for portion in self._open.portions
            if self._open.needs_stream_positions(portion) or (clock and (trains or portion.has_absence))
        ]
        if portions and self._seen:
            names = [portion.name_bucket(bucket) for portion in portions for bucket in range(portion.buckets)]
            yield _build_packets(names, self._arrival_order, self._newest, [None] * len(names), seen=self._seen)

    def build_packet(self, bucket: str, rows: bytes) -> pa.RecordBatch:
        """Return rows as a packet for a bucket of any name."""
        return _build_packets([bucket], self._arrival_order, self._newest, [rows])

    def _to_batches(self, packets: list[tuple[str, bytes]]) -> Iterator[pa.RecordBatch]:
        if packets:
            names, rows = zip(*packets, strict=True)
            yield _build_packets(names, self._arrival_order, self._newest, rows)

    def _bucket_portion(self, portion: Portion, readable: ReadableEvents, sent: BoolArray) -> list[tuple[str, bytes]]:
        """Return the rows of each bucket of a portion; `sent` marks the events that some bucket has."""
        events = readable.events
        offsets, symbols = rename_symbols(events.symbols_at, events.symbols, portion.symbols)
        needs_all = self._step.tally is not None or portion.is_contiguous or self._open.has_forecasts(portion)
        wanted = np.full(len(events), True) if needs_all else np.diff(offsets) > 0
        rows, buckets = self._pair_with_buckets(portion, events, wanted)
        if not len(rows):
            return []
        columns = {
            TIME: pa.array(events.times),
            SYMBOLS: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(symbols, pa.int32())),
        }
        if self._step.needs_stream_positions and portion.has_keys:
            columns[STREAM_POSITION] = pa.array(self._seen + np.arange(len(events)))
        columns |= {REPORTED + name: readable.rows.column(name) for name in self._step.plan.reported_columns}
        columns |= dict(self._read_variable(name, readable) for name in portion.patterns.attributes)
        sorted_rows = pa.table(columns).take(rows).combine_chunks()
        sorted_rows = sorted_rows.append_column(REPORTS_LATE, pa.array(_mark_first(rows, sent)))
        if self._step.names_symbols:
            sorted_rows = name_symbols(sorted_rows, portion)
        edges = np.flatnonzero(np.diff(buckets, prepend=-1, append=-1))
        return [
            (portion.name_bucket(int(buckets[begin])), to_bytes(sorted_rows.slice(begin, end - begin)))
            for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]

    def _pair_with_buckets(
        self, portion: Portion, events: EncodedEvents, wanted: BoolArray
    ) -> tuple[IntArray, IntArray]:
        """Return pairs of an event and a bucket, by bucket and then in the order of arrival."""
        if not portion.has_keys:
            rows = np.flatnonzero(wanted)
            return rows, np.zeros(len(rows), np.int64)
        pairs = []
        for way in portion.ways:
            keys = compute_keys(way, events, self._value_numbers)
            rows = np.flatnonzero(wanted & (keys >= 0))
            pairs.append((self._find_buckets(portion)[keys[rows]], rows))
        buckets, rows = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        if len(pairs) > 1:
            both = np.unique(buckets * len(events) + rows)
            return both % len(events), both // len(events)
        order = np.argsort(buckets.astype(np.uint16 if portion.buckets < 1 << 16 else np.int64), kind="stable")
        return rows[order], buckets[order]

    def _find_buckets(self, portion: Portion) -> IntArray:
        """Return the bucket of each value by its number."""
        buckets = self._buckets.get(portion.name, np.empty(0, np.int64))
        fresh = [portion.find_bucket(value) for value in self._value_numbers.values[len(buckets) :]]
        self._buckets[portion.name] = np.concatenate([buckets, np.array(fresh, np.int64)]) if fresh else buckets
        return self._buckets[portion.name]

    def _read_variable(self, name: str, readable: ReadableEvents) -> tuple[str, pa.Array | pa.ChunkedArray]:
        """Return a column of a variable's values, and its name.

        It is the column itself where its type allows that, else the values that were read. Those of documents may be of
        several kinds, so they are written as text.
        """
        is_column = not self._step.has_documents and name in readable.rows.column_names
        column = readable.rows.column(name) if is_column else None
        if column is not None and self._open.patterns.reader.variables.takes_as_is(name, column.type):
            # A date as its midnight: a state keeps times, and a date would come back as text.
            return VALUE + name, column.cast(pa.timestamp("us", "UTC")) if pa.types.is_date(column.type) else column
        numbers, places = np.unique(readable.events.values[name], return_inverse=True)
        values = [None if number < 0 else self._value_numbers.values[number] for number in numbers.tolist()]
        if self._step.has_documents:
            texts = [None if value is None else json.dumps(to_plain(value)) for value in values]
            return WRITTEN_VALUE + name, pa.array(texts, pa.string()).take(places.reshape(-1))
        return VALUE + name, pa.array(values).take(places.reshape(-1))


def _mark_first(rows: IntArray, sent: BoolArray) -> BoolArray:
    """Tell for each row whether no bucket has the event yet: that one reports it when it is late."""
    is_first = np.zeros(len(rows), bool)
    events, first = np.unique(rows, return_index=True)
    is_first[first] = ~sent[events]
    sent[events] = True
    return is_first


def _build_packets(
    names: Sequence[str], arrival_order: int, newest: int, rows: Sequence[bytes | None], *, seen: int = 0
) -> pa.RecordBatch:
    numbers = [pa.repeat(pa.scalar(number, pa.int64()), len(names)) for number in (arrival_order, newest, seen)]
    columns = [pa.array(names, pa.string()), *numbers, pa.array(rows, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["bucket", "arrival_order", "newest", "seen", "rows"])


# In the driver ----------------------------------------------------------------------------------


def find_columns_read(events: DataFrame, detector: Detector) -> tuple[str, ...]:
    """Return the columns that filters read, those that give variables their values, and the time."""
    compiled = detector.compile()
    names = find_names_read(compiled.matcher.needs(), compiled.vocabulary.ontology)
    names |= {detector.time, *compiled.attributes}
    read = tuple(find_columns(names, events.columns))
    require_columns(read, events.schema, why="the patterns")
    return read


def select_numbered_columns(events: DataFrame, names: Sequence[str], *, time: str | None = None) -> DataFrame:
    """Return these columns, renamed `_0`, `_1`, ...; with `time`, rows in the order of that column.

    Rows of equal time keep their order in the DataFrame.
    """
    # mapInArrow would take a dot in a column's name for a field of a struct.
    columns = [to_column(name).alias(f"_{number}") for number, name in enumerate(names)]
    if time is None:
        return events.select(*columns)
    row = "row"  # the name of no numbered column
    rows = events.select(*columns, F.monotonically_increasing_id().alias(row))
    return rows.orderBy(f"_{list(names).index(time)}", row).drop(row)


def send_to_buckets(
    events: DataFrame,
    plan: DetectPlan,
    detector: Detector,
    *,
    clock: bool,
    needs_stream_positions: bool,
    tally: TallyBuilder | None = None,
) -> DataFrame:
    """Return the packets for buckets; only columns that are read or reported cross into Python."""
    read = find_columns_read(events, detector)
    names = tuple(dict.fromkeys([*read, *plan.reported_columns]))
    rows = select_numbered_columns(events, names, time=plan.time if needs_stream_positions else None)
    return rows.mapInArrow(BucketStep(plan, names, read, clock, needs_stream_positions, tally), BUCKET_PACKETS)
