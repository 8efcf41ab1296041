"""How events get in: Arrow tables column by column where they are plain, everything else row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.engine.events.event_columns import refuse_patterns
from tidings.engine.events.event_source import ArrowEvents, EventSource, ReadEvents
from tidings.errors import BadEvent
from tidings.model import DeadLetter, EventBatch
from tidings.model.arrow_types import to_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from tidings.algebra import AttributeReader, Reading, Requirements, Setting
    from tidings.algebra.law.mismatches import MismatchCounts
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.engine.compile.columns import Column
    from tidings.kernels.array_types import IntArray
    from tidings.matcher.backend import BackendState


class EventGroup(NamedTuple):
    """Good events that were read in one way, and their indexes in the batch; several groups make up a batch."""

    source: EventSource
    event_index: IntArray


class MatchView(NamedTuple):
    """How to read events, and the subscriptions to match them with, at one moment; every change replaces both."""

    reader: AttributeReader
    required: Requirements
    counted: frozenset[TypedAttribute]  # the readings of which mismatches are counted
    state: BackendState


class BatchReader:
    """Reads batches of events for the filters of one view; `dead` collects the events that cannot be read."""

    def __init__(self, view: MatchView, setting: Setting, counts: MismatchCounts | None = None) -> None:
        """Start without events; values of another kind than asked for are counted in `counts`."""
        self.view, self._setting, self._counts = view, setting, counts
        self.dead: list[DeadLetter] = []
        self._readings: list[Reading] = []  # of the events that were read one by one

    def read_batch(self, batch: EventBatch, columns: Sequence[Column], *, collect: bool) -> list[EventGroup]:
        """Return the good events; `columns` are those that a table is read into, where the backend has segments.

        A bad event raises `BadEvent`, or with `collect` is noted in `dead`.
        """
        if batch.table is not None and self.view.state.parts is not None:
            groups = self._read_table(batch.table, columns, collect=collect)
            if groups is not None:
                return groups
        return self._read_rows(batch, np.arange(len(batch)), collect=collect)

    def _read_table(self, table: pa.Table, columns: Sequence[Column], *, collect: bool) -> list[EventGroup] | None:
        """Read a table by whole columns, and its odd rows one by one; None where every row must be read by itself."""
        from tidings.engine.events.arrow_table import build_table_columns

        result = build_table_columns(
            table,
            self.view.required,
            wanted=list(columns),
            setting=self._setting,
            automata=refuse_patterns,
            mismatches=self._counts,
        )
        if result is None:
            return None
        plain = table if not len(result.odd) else table.take(result.plain)
        ready = (tuple(columns), result.batch)
        events = ArrowEvents(plain, self.view.required, self._setting, self._read_row, ready=ready)
        groups = [EventGroup(events, result.plain)]
        if len(result.odd):
            groups += self._read_rows(to_rows(table.take(result.odd)), result.odd, collect=collect)
        return groups

    def count_mismatches(self) -> None:
        """Count the mismatches of the events that were read row by row; those of tables are counted on reading."""
        if self._counts is not None:
            self._counts.count(self._readings, self.view.counted)

    def _read_row(self, table: Any) -> Reading:
        return self.view.reader.read(to_rows(table)[0], self._setting.now)

    def _read_rows(self, events: Iterable[Any], event_index: IntArray, *, collect: bool) -> list[EventGroup]:
        readings, good = [], []
        for index, event in zip(event_index.tolist(), events, strict=True):
            try:
                readings.append(self.view.reader.read(event, self._setting.now))
                good.append(index)
            except BadEvent as problem:
                if not collect:
                    msg = f"event {index}: {problem}"
                    raise BadEvent(msg, attribute=problem.attribute, index=index) from problem
                self.dead.append(DeadLetter(index, str(problem)))
        self._readings += readings
        return [EventGroup(ReadEvents(readings, self._setting), np.array(good, np.int64))] if good else []
