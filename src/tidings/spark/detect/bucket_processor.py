"""What runs for each bucket: all rows of a batch at once, or a stream's rows as the watermark passes them.

The state of a stream's bucket is one packed value, and rows that wait for the watermark lie beside it in chunks, one
for each call: a call reads the chunks that have rows due, and writes one. A single timer is set to whatever is due
next: a row, the deadline of an absence, or the end of partial matches. Rows of a call are gathered before they are
sorted: Spark hands them over in any order and in several pieces.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tidings.patterns.run.graph_run import LONG_AGO
from tidings.spark.detect.bucket import (
    REPORTS_LATE,
    TIME,
    Bucket,
    build_late_rows,
    concat_rows,
    from_bytes,
    name_symbols,
    read_tables,
    renumber_symbols,
    sort_rows,
    to_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

    from tidings.patterns.run.portions import Portion
    from tidings.spark.detect.base import WorkerPlan

CHUNK = 1 << 16
"""Rows of one output packet."""

ARRIVAL = "arrival"
"""The column of waiting rows with their order of arrival."""

PACKED = "rows BINARY"
"""The output of a stream's buckets: rows as Arrow streams, which `make_unpacker` decodes."""

MILLISECOND = 1000
"""In microseconds; timers and watermarks are in milliseconds."""


def make_batch_processor(plan: WorkerPlan, schema: pa.Schema) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    """Return the function that processes all rows of a bucket in one pass, in the order of time.

    Then time passes to the newest event of all buckets.
    """

    # A plain function: Spark counts its arguments.
    def process(key: tuple[pa.Scalar, ...], packets: pa.Table) -> pa.Table:
        address = plan.open().resolve_bucket(key[0].as_py())
        tables = read_tables(packets)
        if address is None or not tables:
            return schema.empty_table()
        until = int(packets.column("newest").to_numpy().max())
        answer = Bucket(*address, plan).advance(sort_rows(concat_rows(tables)), until)
        return schema.empty_table() if answer is None else answer

    return process


def make_unpacker() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that decodes the output of a stream's buckets."""

    # A nested function is pickled by value: its workers need none of our modules, whose import takes a second.
    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for packet in batch.column(0).to_pylist():
                yield from pa.ipc.open_stream(pa.py_buffer(packet))

    return unpack


# Streams ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class BucketStatus:
    """What is known of a bucket without its packed state; stored as a JSON list, so the order of fields is fixed."""

    arrived: int = 0  # the number of rows so far
    chunks: dict[str, int] = field(default_factory=dict)  # the earliest time of each chunk of waiting rows
    deadline: int | None = None
    expiry: int | None = None
    timer: int | None = None
    seen: int = 0  # events of the whole stream, where forecasts need it

    def to_json(self) -> str:
        """Return the fields as JSON."""
        fields = [self.arrived, self.chunks, self.deadline, self.expiry, self.timer]
        return json.dumps([*fields, self.seen] if self.seen else fields)


class BucketProcessor(StatefulProcessor):
    """Spark's stateful operator: one call for each bucket that has rows, or something due.

    A watermark is in milliseconds: the newest event is a fraction of one behind it. With `takes_newest` rows of its
    millisecond are due too, and those that come later in it count as no earlier than the ones before. Rows of a bucket
    called `passing` leave as they are.
    """

    def __init__(self, plan: WorkerPlan, *, takes_newest: bool = False, passing: str | None = None) -> None:
        self._plan, self._takes_newest, self._passing = plan, takes_newest, passing  # pickled with the operator

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state; its names and types are part of the checkpoint."""
        self._handle = handle
        self._state = handle.getValueState("bucket", "standing STRING, state BINARY")
        self._waiting = handle.getMapState("waiting", "chunk BIGINT", "rows BINARY")

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Process a bucket's rows of a micro-batch."""
        if key[0] == self._passing:
            yield from (Row(rows=bytes(row.rows)) for row in rows)
            return
        pieces = [(row.arrival_order, row.seen, row.rows) for row in rows]
        packets = sorted((order, packet) for order, _, packet in pieces if packet is not None)
        fresh = [from_bytes(packet) for _, packet in packets]
        seen = sum(seen for _, seen, _ in pieces)
        yield from self._advance(key[0], fresh, timerValues.getCurrentWatermarkInMs(), seen=seen)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: tuple[str],
        timerValues: TimerValues,  # noqa: N803 - Spark's name
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        """Let time pass to the watermark."""
        fired = expiredTimerInfo.getExpiryTimeInMs()
        yield from self._advance(key[0], [], timerValues.getCurrentWatermarkInMs(), fired=fired)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _advance(
        self, name: str, packets: list[pa.Table], watermark: int, fired: int | None = None, seen: int = 0
    ) -> Iterator[Row]:
        """Process what is due, and let the rest wait; `fired` is the timer that Spark is about to remove."""
        address = self._plan.open().resolve_bucket(name)
        if address is None:  # its patterns are gone
            self._state.clear()
            self._waiting.clear()
            return
        until = watermark * MILLISECOND if watermark > 0 else LONG_AGO
        status, state = self._read_status()
        status.seen += seen
        fresh = concat_rows([renumber_symbols(rows, address[0]) for rows in packets]) if packets else None
        late, fresh = _split_late(None if fresh is None else self._select(fresh), until, status)
        ready = self._take_due_rows(fresh, until + (MILLISECOND - 1) * self._takes_newest, status, address[0])
        answers = [] if late is None else [build_late_rows(late, self._plan)]
        if ready is not None or any(time is not None and time <= until for time in (status.deadline, status.expiry)):
            bucket = Bucket(*address, self._plan, arrived=status.arrived, seen=status.seen)
            if state is not None:
                bucket.resume(state)
            answer = bucket.advance(ready, until)
            answers += [] if answer is None else [answer]
            state = bucket.to_state()
            answers += self._inspect(bucket)
            _update_status(status, bucket, address[0], until, idle=ready is None)
        self._set_timer(status, fired)
        self._state.update((status.to_json(), state))
        for answer in self._finish_answers(answers, status):
            for start in range(0, answer.num_rows, CHUNK):
                yield Row(rows=to_bytes(answer.slice(start, CHUNK)))

    def _select(self, fresh: pa.Table) -> pa.Table:
        """Return the rows of a micro-batch that count."""
        return fresh

    def _inspect(self, bucket: Bucket) -> list[pa.Table]:  # noqa: ARG002 - for subclasses
        """Return output rows about a bucket that has taken its rows."""
        return []

    def _finish_answers(self, answers: list[pa.Table], status: BucketStatus) -> list[pa.Table]:  # noqa: ARG002 - for subclasses
        """Return the output rows as the query declares them."""
        return answers

    def _read_status(self) -> tuple[BucketStatus, bytes | None]:
        stored = self._state.get() if self._state.exists() else None  # Spark warns when a missing value is read
        if stored is None:
            return BucketStatus(), None
        written, state = stored
        return BucketStatus(*json.loads(written)), None if state is None else bytes(state)

    def _take_due_rows(
        self, fresh: pa.Table | None, until: int, status: BucketStatus, portion: Portion
    ) -> pa.Table | None:
        """Return the rows that the watermark has passed, sorted, and store the others."""
        next_number = max(map(int, status.chunks), default=0) + 1
        tables = [] if fresh is None else [fresh]
        for number in [number for number, least in status.chunks.items() if least <= until]:
            stored = self._waiting.getValue((int(number),))
            assert stored is not None
            tables.append(renumber_symbols(from_bytes(bytes(stored[0])), portion))
            self._waiting.removeKey((int(number),))
            del status.chunks[number]
        if not tables:
            return None
        rows = concat_rows(tables)
        times = rows.column(TIME).to_numpy()
        if (times > until).any():
            waiting = rows.take(np.flatnonzero(times > until))
            self._waiting.updateValue((next_number,), (to_bytes(name_symbols(waiting, portion)),))
            status.chunks[str(next_number)] = int(times[times > until].min())
            rows = rows.take(np.flatnonzero(times <= until))
        return sort_rows(rows, rows.column(ARRIVAL).to_numpy()) if rows.num_rows else None

    def _set_timer(self, status: BucketStatus, fired: int | None) -> None:
        """Set the timer to the earliest time at which a row, a deadline or an expiry is due."""
        # In milliseconds; it fires when the watermark reaches it.
        times = [-(-time // MILLISECOND) for time in (status.deadline, status.expiry) if time is not None]
        times += [
            (time if self._takes_newest else time + MILLISECOND - 1) // MILLISECOND for time in status.chunks.values()
        ]
        timer = min(times, default=None)
        if timer != status.timer:
            if status.timer is not None and status.timer != fired:
                self._handle.deleteTimer(status.timer)
            if timer is not None:
                self._handle.registerTimer(timer)
        status.timer = timer


def _split_late(fresh: pa.Table | None, until: int, status: BucketStatus) -> tuple[pa.Table | None, pa.Table | None]:
    """Return the late rows that this bucket reports, and the others with their order of arrival."""
    if fresh is None:
        return None, None
    numbers = np.arange(status.arrived, status.arrived + fresh.num_rows)
    fresh = fresh.append_column(ARRIVAL, pa.array(numbers))
    status.arrived += fresh.num_rows
    behind = fresh.column(TIME).to_numpy() < until
    if not behind.any():
        return None, fresh
    reported = behind & np.asarray(fresh.column(REPORTS_LATE))
    late = fresh.take(np.flatnonzero(reported)) if reported.any() else None
    return late, fresh.take(np.flatnonzero(~behind)) if not behind.all() else None


def _update_status(status: BucketStatus, bucket: Bucket, portion: Portion, until: int, *, idle: bool) -> None:
    # Unbounded partial matches stay for ever: after a call without rows, another expiry would change nothing.
    is_repeated = idle and (status.expiry is None or status.expiry <= until)
    expires = portion.span and bucket.held_events and not is_repeated
    status.deadline, status.expiry = bucket.deadline, until + portion.span + MILLISECOND if expires else None
