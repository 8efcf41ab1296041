"""Events on their way to segments: columns for the index, a reading where the law must decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tidings.engine.events.event_columns import FinderLookup, build_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidings.algebra import Reading, Requirements, Setting
    from tidings.engine.compile.columns import Column, EventColumns


class EventSource(Protocol):
    """A batch of good events."""

    setting: Setting

    def __len__(self) -> int:
        """Count the events."""

    def select_columns(self, wanted: Iterable[Column], automata: FinderLookup) -> EventColumns:
        """Return the wanted columns of all events."""

    def read_event(self, event: int) -> Reading:
        """Return one event as the law sees it."""


class ReadEvents:
    """Events that have been read one by one."""

    def __init__(self, readings: Sequence[Reading], setting: Setting) -> None:
        """Hold the readings."""
        self._readings = readings
        self.setting = setting

    def __len__(self) -> int:
        """Count the events."""
        return len(self._readings)

    def select_columns(self, wanted: Iterable[Column], automata: FinderLookup) -> EventColumns:
        """Return the wanted columns of all events."""
        return build_columns(self._readings, wanted, setting=self.setting, automata=automata)

    def read_event(self, event: int) -> Reading:
        """Return one event as the law sees it."""
        return self._readings[event]


class ArrowEvents:
    """The rows of an Arrow table that are read column by column; a row is read only when the law asks for it."""

    def __init__(
        self,
        table: Any,
        required: Requirements,
        setting: Setting,
        read: Callable[[Any], Reading],
        *,
        known: tuple[tuple[Column, ...], EventColumns],
    ) -> None:
        """Hold the table, all of whose rows are plain, with the columns that are `known`; `read` reads one row."""
        self._table, self._required, self.setting, self._read = table, required, setting, read
        self._asked, self._batch = frozenset(known[0]), known[1]
        self._readings: dict[int, Reading] = {}

    def __len__(self) -> int:
        """Count the events."""
        return int(self._table.num_rows)

    def select_columns(self, wanted: Iterable[Column], automata: FinderLookup) -> EventColumns:
        """Return the wanted columns of all events."""
        from tidings.engine.events.arrow_table import build_table_columns

        wanted = tuple(wanted)
        if self._asked.issuperset(wanted):
            return {column: self._batch[column] for column in wanted if column in self._batch}
        arrived = build_table_columns(
            self._table, self._required, wanted=wanted, setting=self.setting, automata=automata
        )
        assert arrived is not None, "the table was plain before"
        return arrived.batch

    def read_event(self, event: int) -> Reading:
        """Return one event as the law sees it."""
        if event not in self._readings:
            self._readings[event] = self._read(self._table.slice(event, 1))
        return self._readings[event]
