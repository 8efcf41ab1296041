"""How events get in: Arrow tables column by column where they are plain, everything else row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.engine.events.event_source import Plain, Read
from tidings.errors import BadEvent
from tidings.model import DeadLetter
from tidings.model.arrow_types import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tidings.algebra import Reader, Reading, Requirements, Setting
    from tidings.algebra.law.mismatches import Mismatches
    from tidings.engine.compile.columns import Column
    from tidings.engine.events.event_source import Arrivals
    from tidings.model import EventBatch


class Arrived(NamedTuple):
    """Good events with their places in the batch; several of these make up a batch."""

    arrivals: Arrivals
    places: NDArray[np.int64]


class Arriving:
    """Reads batches of events for one moment's needs."""

    def __init__(
        self, reader: Reader, required: Requirements, setting: Setting, mismatches: Mismatches | None = None
    ) -> None:
        """Take what is needed of events, and how to read it; what cannot be read as asked is counted."""
        self._reader, self._required, self._setting, self._mismatches = reader, required, setting, mismatches
        self.dead: list[DeadLetter] = []
        self.readings: list[Reading] = []  # of the events that were read one by one

    def batch(self, batch: EventBatch, wanted: Iterable[Column] | None, *, collect: bool) -> list[Arrived]:
        """Return the good events; `wanted` are the columns to try a table's fast way with (nothing: do not)."""
        table = batch.table
        if wanted is not None and table is not None:
            from tidings.engine.events.arrow_table import columns_of_table

            found = columns_of_table(
                table,
                self._required,
                wanted=list(wanted),
                setting=self._setting,
                automata=lambda _: None,  # type: ignore[arg-type,return-value]
                mismatches=self._mismatches,
            )
            if found is not None:
                plain = table if not len(found.odd) else table.take(found.plain)
                arrivals = Plain(plain, self._required, self._setting, self._of_row, known=(tuple(wanted), found.batch))
                odd = self._rows(rows_of(table.take(found.odd)), found.odd, collect=collect) if len(found.odd) else []
                return [Arrived(arrivals, found.plain), *odd]
        return self._rows(batch, np.arange(len(batch)), collect=collect)

    def _of_row(self, table: Any) -> Reading:
        return self._reader.read(rows_of(table)[0], self._setting.now)

    def _rows(self, events: Iterable[Any], indexes: NDArray[np.int64], *, collect: bool) -> list[Arrived]:
        readings, good = [], []
        for index, event in zip(indexes.tolist(), events, strict=True):
            try:
                readings.append(self._reader.read(event, self._setting.now))
                good.append(index)
            except BadEvent as problem:
                if not collect:
                    msg = f"event {index}: {problem}"
                    raise BadEvent(msg, attribute=problem.attribute, index=index) from problem
                self.dead.append(DeadLetter(index, str(problem)))
        self.readings += readings
        return [Arrived(Read(readings, self._setting), np.array(good, np.int64))] if good else []
