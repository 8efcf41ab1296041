"""One bucket of keys: its rows as Arrow tables in bytes, its run of the patterns, and both as state.

Rows of a bucket cross Spark's shuffle as a few large packets, not one by one: an Arrow stream for each bucket and
131,072 events (`bucketing.PIECE`). A row has its time in microseconds, the filters it satisfies, its id and the kept
fields, the values of variables, and whether this is the bucket that reports the event when it is late.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidings.engine.arrays import compute_starts, expand_ranges
from tidings.forecast.forecasts import Forecasts
from tidings.kernels.patterns.symbol_lists import rename_symbols
from tidings.patterns import Run
from tidings.patterns.detections import ReportColumns
from tidings.patterns.run.event_archive import EventRecords
from tidings.patterns.run.event_reader import EncodedEvents
from tidings.patterns.run.graph_run import LONG_AGO
from tidings.patterns.run.partial_counts import find_heavy_patterns
from tidings.patterns.run.portions import format_key
from tidings.patterns.run.variable_values import NO_VALUE, to_dictionary
from tidings.patterns.state.graph_bytes import pack_state, unpack_state
from tidings.patterns.state.run_bytes import from_plain, run_from_bytes, run_to_bytes
from tidings.spark.detect.bucket_forecasts import PositionedGaps, find_owned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.forecast.forecasts import ForecastBatch
    from tidings.kernels.array_types import IntArray
    from tidings.patterns.run.portions import Portion
    from tidings.patterns.run.variable_values import ValueNumbers
    from tidings.spark.detect.base import WorkerPlan

TIME, REPORTS_LATE, SYMBOLS, STREAM_POSITION = "time", "tells", "symbols", "place"
REPORTED, VALUE, WRITTEN_VALUE = "tell:", "value:", "written:"
"""The columns of a bucket's rows; prefixes of reported columns, of values of variables, and of such values as JSON.

Waiting rows are part of a stream's state, so the names are part of its format.
"""


def to_bytes(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Return rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    """Return the rows of an Arrow stream."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def concat_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """Return rows end to end; where columns differ (the patterns have changed), missing values are null."""
    if len(tables) == 1 or all(table.schema.equals(tables[0].schema) for table in tables):
        return pa.concat_tables(tables)
    return pa.concat_tables(tables, promote_options="permissive")


def sort_rows(rows: pa.Table, arrival: IntArray | None = None) -> pa.Table:
    """Return rows sorted by time; rows of one time keep the order of arrival."""
    times = _to_int64(rows.column(TIME))
    if arrival is None:
        if (times[1:] >= times[:-1]).all():
            return rows
        return rows.take(np.argsort(times, kind="stable"))
    return rows.take(np.lexsort((arrival, times)))


class Bucket:
    """The run of a portion's patterns over one bucket, and the rows of events that reports may still name.

    `arrived` is how many rows came to this bucket, `seen` how many events to the stream, waiting ones included.
    """

    def __init__(self, portion: Portion, number: int, plan: WorkerPlan, *, arrived: int = 0, seen: int = 0) -> None:
        self._portion, self._number, self._plan = portion, number, plan
        self._forecasting = plan.open().build_observer(portion)
        self._run = Run(portion.patterns, observers=[self._forecasting] if self._forecasting else ())
        self._rows: pa.Table | None = None
        self._seqs = np.empty(0, np.int64)
        self._arrived, self._seen, self._stream_position = arrived, seen, 0

    def resume(self, state: bytes) -> None:
        """Resume from a state of `to_state`; patterns may have been added or removed since."""
        header, arrays = unpack_state(state)
        run_from_bytes(self._run, arrays["where"])
        self._stream_position = header.get("place", 0)
        if header["held"]:
            self._rows, self._seqs = from_bytes(arrays["rows"]), arrays["seqs"]

    def to_state(self) -> bytes:
        """Return the run and the rows as bytes, for `resume`."""
        run = run_to_bytes(self._run)
        self._drop_unused()
        rows = b"" if self._rows is None else to_bytes(self._rows)
        header = {"held": self._rows is not None, "place": self._stream_position}
        return pack_state(header, {"where": run, "rows": rows, "seqs": self._seqs})

    @property
    def deadline(self) -> int | None:
        """The time, in microseconds, at which the earliest absence may complete."""
        return self._run.next_deadline

    def find_heavy_patterns(self, most: int) -> list[str]:
        """Return the names of the patterns that hold more than `most` partial matches here."""
        return find_heavy_patterns(self._run, most)

    @property
    def held_events(self) -> int:
        """How many events are kept because a partial match may still report them."""
        return len(self._seqs)

    def advance(self, rows: pa.Table | None, until: int = LONG_AGO) -> pa.Table | None:
        """Process rows, which are in order, and let time pass to `until`; return the output rows, if any."""
        base = self._run.position
        reported = events = None
        if rows is not None:
            reported = rows.select([name for name in rows.column_names if name.startswith(REPORTED)])
            events = encode_rows(rows, base, self._portion, self._run.value_numbers)
            # No row is earlier, but for the rest of a millisecond that a watermark cannot tell from the next.
            events = replace(events, times=np.maximum(events.times, self._run.latest))
            self._run.latest = max(self._run.latest, int(events.times[-1]))
        if rows is not None and self._forecasting and self._plan.open().needs_stream_positions(self._portion):
            self._run.prepare()
            assert self._forecasting.forecaster is not None
            positions = self._locate_rows(rows)
            for follower in self._forecasting.forecaster.followers:
                follower.key_gaps = PositionedGaps(positions, follower.seen, follower.key_gaps)
        reports = self._run.advance(events, until)
        pieces = [table for table in (self._rows, reported) if table is not None]
        records = concat_rows(pieces) if pieces else None
        seqs = np.concatenate([self._seqs, np.arange(base, self._run.position)])
        self._rows, self._seqs = records, seqs
        if records is None:
            return None
        answers = [self._build_matches(self._keep_wanted(reports), records)] if len(reports.patterns) else []
        if self._forecasting:
            answers += [self._build_forecasts(batch, records) for batch in self._forecasting.collect()]
        tables = [answer for answer in answers if answer is not None]
        return pa.concat_tables(tables) if tables else None

    def _locate_rows(self, rows: pa.Table) -> IntArray:
        """Return the stream positions of rows: their own, else spread evenly over the events since the last."""
        if STREAM_POSITION in rows.column_names:
            return _to_int64(rows.column(STREAM_POSITION))
        count, position = rows.num_rows, self._run.position + rows.num_rows
        start = self._stream_position
        # The share of this bucket's rows that is processed by now stands for the share of the whole stream.
        self._stream_position = max(start + count, round(self._seen * position / max(1, self._arrived)))
        return np.asarray(start + np.arange(1, count + 1) * (self._stream_position - start) // max(1, count) - 1)

    def _keep_wanted(self, reports: ReportColumns) -> ReportColumns:
        """Return the reports without those for keys of other buckets, and of patterns that are forecast alone."""
        silent = self._plan.open().only_forecasts.intersection(self._portion.patterns.names)
        if len(self._portion.ways) == 1 and not silent:
            return reports
        rows = find_owned(self._portion, self._number, reports.keys, reports.values)
        if silent:
            is_silent = np.array([name in silent for name in self._portion.patterns.names])
            rows = rows[~is_silent[reports.patterns[rows]]]
        lengths = np.diff(reports.offsets)[rows]
        offsets = compute_starts(lengths)
        events = reports.events[expand_ranges(reports.offsets[rows], lengths)]
        patterns, keys, at = (column[rows] for column in (reports.patterns, reports.keys, reports.at))
        return ReportColumns(patterns, keys, reports.values, at, events, offsets)

    def _build_matches(self, reports: ReportColumns, records: pa.Table) -> pa.Table | None:
        if not len(reports.patterns):
            return None
        names = pa.array(self._portion.patterns.names, pa.string())
        keys = pa.nulls(len(reports.keys), pa.string())
        if self._portion.has_keys:
            numbers, places = np.unique(reports.keys, return_inverse=True)
            texts = [format_key(reports.values[number]) for number in numbers.tolist()]
            keys = pa.array(texts, pa.string()).take(places.reshape(-1))
        events = records.take(np.searchsorted(self._seqs, reports.events))
        lists = build_event_lists(events, reports.offsets, self._plan)
        return build_rows("match", names.take(reports.patterns), keys, reports.at, lists)

    def _build_forecasts(self, batch: ForecastBatch, records: pa.Table) -> pa.Table | None:
        mine = find_owned(self._portion, self._number, batch.rows.key, batch.values)
        if not len(mine):
            return None
        columns = Forecasts([batch]).to_arrow().take(mine)
        events = records.take(np.searchsorted(self._seqs, _to_int64(columns["event"])))
        lists = build_event_lists(events, np.arange(len(mine) + 1), self._plan)
        at = _to_int64(columns["at"].cast(pa.int64()))
        forecasts = {name: columns[name] for name in FORECAST_TYPES}
        return build_rows("forecast", columns["pattern"], columns["key"], at, lists, **forecasts)

    def _drop_unused(self) -> None:
        """Drop the rows of events that no report can name any more."""
        needed = self._run.find_used_events()
        if self._rows is not None and len(needed) < len(self._seqs):
            places = np.flatnonzero(np.isin(self._seqs, needed, assume_unique=True))
            self._rows, self._seqs = self._rows.take(places), self._seqs[places]
        if not len(self._seqs):
            self._rows = None


def list_packets(packets: pa.Table) -> list[tuple[int, bytes]]:
    """Return the packets of a bucket in the order of arrival, each with its task; closing packets have no rows."""
    rows, arrival_order = packets.column("rows").to_pylist(), _to_int64(packets.column("arrival_order"))
    order = np.argsort(arrival_order, kind="stable").tolist()
    return [(int(arrival_order[place] >> 32), rows[place]) for place in order if rows[place] is not None]


def read_tables(packets: pa.Table) -> list[pa.Table]:
    """Return the rows of a bucket in the order of arrival; positions in a task become those in the whole stream."""
    seen, tasks = _to_int64(packets.column("seen")), _to_int64(packets.column("arrival_order")) >> 32
    tables = []
    for task, packet in list_packets(packets):
        table = from_bytes(packet)
        if STREAM_POSITION in table.column_names:
            positions = _to_int64(table.column(STREAM_POSITION)) + int(seen[tasks < task].sum())
            column = table.column_names.index(STREAM_POSITION)
            table = table.set_column(column, STREAM_POSITION, pa.array(positions))
        tables.append(table)
    return tables


def encode_rows(rows: pa.Table, base: int, portion: Portion, value_numbers: ValueNumbers) -> EncodedEvents:
    """Return rows as events of a run; their ids are their positions in the bucket, from `base` on."""
    rows = rows.combine_chunks()
    lists = rows.column(SYMBOLS).chunk(0) if rows.num_rows else pa.array([], pa.list_(pa.int32()))
    values = {}
    for name in portion.patterns.attributes:
        values[name] = np.full(rows.num_rows, -1, np.int64)
        if VALUE + name in rows.column_names:
            values[name] = value_numbers.number_column(rows.column(VALUE + name))
        elif WRITTEN_VALUE + name in rows.column_names:
            values[name] = _number_written(rows.column(WRITTEN_VALUE + name), value_numbers)
    ids = pa.array(np.arange(base, base + rows.num_rows))
    symbols = lists.values.to_numpy().astype(np.int64)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return EncodedEvents(_to_int64(rows.column(TIME)), EventRecords(ids), offsets, symbols, values)


def _number_written(column: pa.ChunkedArray, value_numbers: ValueNumbers) -> IntArray:
    """Return the numbers of values that are written as JSON."""
    coded = to_dictionary(column)
    numbers = [value_numbers.number(from_plain(json.loads(text))) for text in coded.dictionary.to_pylist()]
    codes = coded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
    return np.asarray(np.array([*numbers, NO_VALUE], np.int64)[codes])


# Symbols: a packet, or a row that waits, may be read with other patterns than it was written with ------


def name_symbols(rows: pa.Table, portion: Portion) -> pa.Table:
    """Add the filters of the symbols to the metadata of rows."""
    used = np.unique(rows.column(SYMBOLS).combine_chunks().flatten().to_numpy()).tolist()
    names = portion.filter_names
    return rows.replace_schema_metadata({"symbols": json.dumps({number: names[number] for number in used})})


def renumber_symbols(rows: pa.Table, portion: Portion) -> pa.Table:
    """Return rows with the symbols that their filters have in the current patterns; filters that are gone go."""
    written = json.loads((rows.schema.metadata or {}).get(b"symbols", b"{}"))
    names = portion.filter_names if written else {}
    if all(names.get(int(number)) == name for number, name in written.items()):
        return rows.replace_schema_metadata(None)
    now = {name: number for number, name in names.items()}
    numbers = np.full(max(map(int, written)) + 1, -1, np.int64)
    for number, name in written.items():
        numbers[int(number)] = now.get(name, -1)
    lists = rows.column(SYMBOLS).combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
    offsets, symbols = lists.offsets.to_numpy().astype(np.int64), lists.values.to_numpy().astype(np.int64)
    offsets, symbols = rename_symbols(offsets, symbols, numbers)
    column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(symbols, pa.int32()))
    return rows.replace_schema_metadata(None).set_column(rows.column_names.index(SYMBOLS), SYMBOLS, column)


# Output rows -----------------------------------------------------------------------------------------


FORECAST_TYPES = {"probability": pa.float64(), "horizon": pa.string(), "estimator": pa.string()}
"""The columns of forecasts, null in other rows."""


def build_rows(
    kind: str, patterns: pa.Array, keys: pa.Array, at: IntArray, events: pa.Array, **forecasts: pa.Array
) -> pa.Table:
    """Return rows of the output."""
    nulls = {name: pa.nulls(len(at), column_type) for name, column_type in FORECAST_TYPES.items()}
    moments = pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = {"kind": pa.repeat(kind, len(at)), "pattern": patterns, "key": keys, "at": moments, "events": events}
    return pa.table(columns | nulls | forecasts)


def build_late_rows(rows: pa.Table, plan: WorkerPlan) -> pa.Table:
    """Return the output rows for events that came too late."""
    nothing, events = pa.nulls(len(rows), pa.string()), build_event_lists(rows, np.arange(len(rows) + 1), plan)
    return build_rows("late", nothing, nothing, _to_int64(rows.column(TIME)), events)


def build_event_lists(rows: pa.Table, offsets: IntArray, plan: WorkerPlan) -> pa.Array:
    """Return lists of events, cut at `offsets`: of ids, or of records of the id and the kept fields."""
    columns = [_combine(rows.column(REPORTED + name)) for name in plan.reported_columns]
    inner = pa.StructArray.from_arrays(columns, list(plan.reported_columns)) if plan.keep else columns[0]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner)


def _combine(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _to_int64(column: pa.ChunkedArray) -> IntArray:
    return np.asarray(column.to_numpy(), np.int64)
