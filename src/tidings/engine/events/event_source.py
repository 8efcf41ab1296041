"""Sources of events: what a segment needs of a batch, however the events came.

The index takes whole columns; the few tests that `algebra.holds` decides take one event at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tidings.engine.events.event_columns import FinderLookup, build_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidings.algebra import Reading, Requirements, Setting
    from tidings.engine.compile.columns import Column, EventColumns


class EventSource(Protocol):
    """A batch of events that could all be read; `setting` has the ontology and the time they are matched at."""

    setting: Setting

    def __len__(self) -> int:
        """Count the events."""

    def select_columns(self, wanted: Iterable[Column], automata: FinderLookup) -> EventColumns:
        """Return these columns of all events, without those that have no value; `automata` finds text patterns."""

    def read_event(self, event: int) -> Reading:
        """Return one event as `algebra.holds` takes it."""


class ReadEvents:
    """Events that were read one by one."""

    def __init__(self, readings: Sequence[Reading], setting: Setting) -> None:
        self._readings = readings
        self.setting = setting

    def __len__(self) -> int:
        return len(self._readings)

    def select_columns(self, wanted: Iterable[Column], automata: FinderLookup) -> EventColumns:
        """Return these columns of all events, without those that have no value; `automata` finds text patterns."""
        return build_columns(self._readings, wanted, setting=self.setting, automata=automata)

    def read_event(self, event: int) -> Reading:
        """Return one event as `algebra.holds` takes it."""
        return self._readings[event]


class ArrowEvents:
    """The rows of an Arrow table, read column by column; single rows are read only where `algebra.holds` decides."""

    def __init__(
        self,
        table: Any,
        required: Requirements,
        setting: Setting,
        read: Callable[[Any], Reading],
        *,
        ready: tuple[tuple[Column, ...], EventColumns],
    ) -> None:
        """Take a table whose rows can all be read column by column; `read` reads one row.

        `ready` are the columns that were built already, by name and by value.
        """
        self._table, self._required, self.setting, self._read = table, required, setting, read
        self._ready, self._batch = frozenset(ready[0]), ready[1]
        self._readings: dict[int, Reading] = {}

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def select_columns(self, wanted: Iterable[Column], automata: FinderLookup) -> EventColumns:
        """Return these columns of all events, without those that have no value; `automata` finds text patterns."""
        from tidings.engine.events.arrow_table import build_table_columns

        wanted = tuple(wanted)
        if self._ready.issuperset(wanted):
            return {column: self._batch[column] for column in wanted if column in self._batch}
        columns = build_table_columns(
            self._table, self._required, wanted=wanted, setting=self.setting, automata=automata
        )
        assert columns is not None, "the table was read by columns before"
        return columns.batch

    def read_event(self, event: int) -> Reading:
        """Return one event as `algebra.holds` takes it."""
        if event not in self._readings:
            self._readings[event] = self._read(self._table.slice(event, 1))
        return self._readings[event]
