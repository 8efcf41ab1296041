"""What runs where the events lie: bad events and counts leave at once, the rest goes to the buckets of its patterns.

It is a `BucketStep` for patterns that follow a store. One pass does everything, since each pass over a micro-batch
costs time whatever is in it: events of the source that cannot be read become dead letters, and events are counted.
These rows go through the stateful operator in a bucket of their own, which has no state. Which events are bad depends
on the columns and the vocabulary, never on the patterns.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from tidings.patterns.run.event_times import read_times
from tidings.spark.detect.bucket import to_bytes
from tidings.spark.detect.bucketing import BucketStep, EventBucketer, ReadableEvents, gather_batches, read_events
from tidings.spark.detect.followed.followed_plan import BATCH, SEGMENTS, FollowedPlan
from tidings.spark.detect.followed.seen_ids import NewIds
from tidings.spark.documents import build_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.patterns.run.variable_values import ValueNumbers
    from tidings.spark.detect.worker_plan import OpenPatterns

PASSING = "passing"
"""The bucket of rows that leave as they are; no portion has this name."""


@dataclass(frozen=True, slots=True)
class FollowedColumns:
    """The columns of a row that are ours: its event's id, the time `moves` and why the source refused it (`reason`).

    `moves` is what the event moves the stream to: its time, or an earlier one. `raw` has the text of what could not be
    decoded; `tick` is not null where the row is a tick of the clock and no event; dead letters do not show those that
    are `hidden`.
    """

    id: str
    moves: str
    reason: str
    raw: str
    tick: str | None = None
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowedStep:
    """The function that Spark runs over Arrow batches, whose columns are called `names`; the filters look at `read`.

    `schema` is that of the output rows, those of `detect_followed`.
    """

    plan: FollowedPlan
    names: tuple[str, ...]
    read: tuple[str, ...]
    columns: FollowedColumns
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield packets for buckets."""
        bucketer: EventBucketer | None = None
        ids: NewIds | None = None
        step = BucketStep(self.plan, self.names, self.read, names_symbols=True, has_documents=self.has_documents)
        for table in gather_batches(batches, self.names):
            bucketer, ids = bucketer or EventBucketer(step), ids or self._open_ids()
            events = self._drop_ticks(table)
            if events.num_rows:
                yield from self._send(events, bucketer, ids)
        if ids is not None:
            ids.write()

    def _open_ids(self) -> NewIds | None:
        """Return what tells new ids from those that came before; None where ids may come again."""
        facts, task = self.plan.read_facts(), TaskContext.get()
        number = 0 if task is None else task.partitionId()
        return NewIds(Path(self.plan.folder), facts[SEGMENTS], facts[BATCH], number) if SEGMENTS in facts else None

    @property
    def has_documents(self) -> bool:
        """Whether events are JSON objects."""
        return self.plan.document is not None

    def _drop_ticks(self, table: pa.Table) -> pa.Table:
        tick = self.columns.tick
        return table if tick is None else table.filter(pc.is_null(table.column(tick)))

    def _send(self, table: pa.Table, bucketer: EventBucketer, ids: NewIds | None) -> Iterator[pa.RecordBatch]:
        reasons = table.column(self.columns.reason)
        good, letters = table, list[tuple[pa.Table, list[str]]]()
        if reasons.null_count < table.num_rows:
            bad = table.filter(reasons.is_valid())
            letters.append((bad, bad.column(self.columns.reason).to_pylist()))
            good = table.filter(reasons.is_null())
        if ids is not None and good.num_rows:
            good = good.filter(pa.array(ids.find_new(good.column(self.columns.id).cast(pa.string()).to_pylist())))
        opened = self.plan.open()
        newest = read_times(good, self.columns.moves).max() if good.num_rows else None
        if opened.portions and good.num_rows:
            readable = self._read(opened, good, bucketer.prepare_value_numbers())
            if readable.letters:
                rows = good.take([letter.index for letter in readable.letters])
                letters.append((rows, [letter.reason for letter in readable.letters]))
            yield from bucketer.bucket_events(readable)
        rows = pa.concat_tables(
            [self._build_tally(table.num_rows, newest), *(self._build_letters(*letter) for letter in letters)]
        )
        yield bucketer.build_packet(PASSING, to_bytes(rows))

    def _read(self, opened: OpenPatterns, table: pa.Table, numbers: ValueNumbers) -> ReadableEvents:
        return (
            read_documents_of(opened, table, self.plan, numbers)
            if self.has_documents
            else read_events(opened, table, self.read, numbers)
        )

    # Rows that leave as they are ---------------------------------------------------------------

    def _build_tally(self, count: int, newest: int | None) -> pa.Table:
        at = pa.array([newest], pa.int64()).cast(pa.timestamp("us", "UTC"))
        return complete_rows(
            {"kind": pa.array(["tally"]), "at": at, "seen": pa.array([count], pa.int64())}, self.schema
        )

    def _build_letters(self, rows: pa.Table, reasons: list[str]) -> pa.Table:
        texts = rows.column(self.columns.id).cast(pa.string())
        columns = {"kind": pa.repeat("letter", len(rows)), "event": texts, "reason": pa.array(reasons, pa.string())}
        return complete_rows(columns | {"row": self._describe(rows)}, self.schema)

    def _describe(self, rows: pa.Table) -> pa.Array:
        """Return rows as JSON: documents as they came, what could not be decoded with its raw text."""
        document, raw = self.plan.document, self.columns.raw
        if document is not None:
            texts = rows.column(document)
            return pc.coalesce(texts, rows.column(raw)) if raw in rows.column_names else texts
        hidden = {*self.columns.hidden}
        shown = rows.select([name for name in rows.column_names if name not in hidden])
        return pa.array([_to_json(row, raw) for row in shown.to_pylist()], pa.string())


def read_documents_of(
    opened: OpenPatterns, table: pa.Table, plan: FollowedPlan, value_numbers: ValueNumbers
) -> ReadableEvents:
    """Read documents as matching does, as the mappings that they stand for; their times are those of the column."""
    assert plan.document is not None
    beside = {name: table.column(name) for name in plan.beside}
    documents = build_events(table.column(plan.document).combine_chunks(), beside)
    events, dead = opened.patterns.reader.read(documents, value_numbers, 0, collect=True)
    rows = table
    if dead:
        rows = table.take(np.delete(np.arange(table.num_rows), [letter.index for letter in dead]))
    return ReadableEvents(rows, replace(events, times=read_times(rows, plan.time)), tuple(dead))


def complete_rows(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """Return output rows with all columns of a schema, null where `columns` has none."""
    count = len(columns["kind"])
    return pa.table([_fill(columns.get(field.name), field.type, count) for field in schema], schema=schema)


def _fill(column: Any, kind: pa.DataType, count: int) -> Any:
    return pa.nulls(count, kind) if column is None else column


def _to_json(row: dict[str, Any], raw: str) -> str:
    text = row.pop(raw, None)
    if text is not None:  # not decoded: its other columns only say where it came from
        row = {**{name: value for name, value in row.items() if value is not None}, "raw": text}
    return json.dumps(row, default=_to_json_value, ensure_ascii=False)


def _to_json_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
