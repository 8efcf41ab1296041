"""The writer of rows that matches, detections and forecasts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidings.cli import render

Record = TypeVar("Record")
"""What a row shows: a pair of event and subscription, a detection, a forecast."""


@dataclass(slots=True)
class RowWriter(Generic[Record]):
    """Writes records to standard output, one line each; `count` is how many it has written."""

    format_row: Callable[[Record], str] = str
    heading: str | None = None  # above the first row of a table
    count: int = 0

    def write(self, records: Iterable[Record]) -> None:
        """Write the records of one batch."""
        self.write_rows([self.format_row(record) for record in records])

    def write_rows(self, rows: list[str]) -> None:
        """Write the rows of one batch at once, so that a reader of the pipe sees them before the next batch."""
        if rows:
            render.write("\n".join(rows if self.count or self.heading is None else [self.heading, *rows]))
        self.count += len(rows)
