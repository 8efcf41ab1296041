"""Files of subscriptions and events: JSON lines, CSV and Parquet, plain or gzipped; `-` is standard input.

Rows come in batches, as they arrive: what one read of the stream brought is one batch, so that a pipe that
trickles is answered line by line and a large file in thousands. A row that cannot be read is a row with a
problem, never the end of the file; what is refused as a whole is what is not such a file at all (missing, a
folder, binary). Memory: one batch, except for Parquet from a pipe, whose index stands at its end.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tidings.errors import BadSubscriptions, FileError, TidingsError
from tidings.matcher.loading import row_readers
from tidings.matcher.loading.parameter_table import has_parameters
from tidings.matcher.loading.row_readers import CsvRows, Lines, ParquetRows, Row, refuse_failure
from tidings.matcher.loading.subscription_input import WatchedSubscriptions
from tidings.matcher.tuning import FILE_TUNING, FileTuning
from tidings.model import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from tidings.matcher.loading.row_readers import Stream
    from tidings.matcher.loading.subscription_input import Watch
    from tidings.matcher.matcher import Matcher


class Form(StrEnum):
    """How a file writes its rows."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


class RowFile:
    """The rows of one file, in batches; a file that cannot be read as a whole is refused when it is opened.

    The form is that of the name (`.jsonl`, `.csv`, `.parquet`, each also with `.gz`), else by `form`, else it is
    JSON lines. A line of JSON is numbered by its line, rows of CSV and Parquet by their own count.
    """

    def __init__(self, path: str | Path, *, form: str | None = None, tuning: FileTuning = FILE_TUNING) -> None:
        """Open the file; a pipe is not read before its rows are."""
        self._path, self._form, self._tuning = path, form, tuning
        self.name = "standard input" if str(path) == "-" else str(path)
        self._file = _open_stream(path, self.name)
        self._size = _find_size(self._file)
        self._csv: CsvRows | None = None
        self._rows: Iterable[list[Row]] | None = None
        if self._size is not None:
            self._open_rows()

    def __iter__(self) -> Iterator[list[Row]]:
        return iter(self._open_rows())

    def open_parameters(self) -> Iterable[pa.RecordBatch] | None:
        """Return the file as columns where they are parameters of subscriptions: Parquet with `id` and no `filter`."""
        rows = self._open_rows()
        return rows.read_tables() if isinstance(rows, ParquetRows) and has_parameters(rows.schema.names) else None

    def find_columns(self) -> Schema | None:
        """Return the names that its rows have, of any kind; nothing where each row has its own, as in JSON."""
        rows = self._open_rows()
        if isinstance(rows, ParquetRows):
            return Schema.from_arrow(rows.schema)
        return None if self._csv is None else Schema(dict.fromkeys(self._csv.header, "any"))

    def detect_form(self) -> tuple[Form, Stream]:
        """Look at the name and the first bytes: return the form, and the stream with nothing taken from it."""
        with refuse_failure(f"read `{self.name}`"):
            packed = self._file.peek(2)[:2] == b"\x1f\x8b"
        stream: Stream = gzip.GzipFile(fileobj=cast("BinaryIO", self._file)) if packed else self._file
        suffix = Path(str(self._path).removesuffix(".gz")).suffix.lower()
        if suffix in (".jsonl", ".csv", ".parquet"):
            return Form(suffix[1:]), stream
        if not packed and self._file.peek(4)[:4] == b"PAR1":
            return Form.PARQUET, stream
        return Form(self._form or Form.JSONL), stream

    def _open_rows(self) -> Iterable[list[Row]]:
        if self._rows is None:
            form, stream = self.detect_form()
            if form is Form.PARQUET:
                self._rows = ParquetRows(stream, self.name, self._tuning)
            else:
                lines = Lines(stream, self.name, self._tuning)
                self._csv = CsvRows(lines) if form is Form.CSV else None
                self._rows = row_readers.batch_rows(self._csv or row_readers.parse_json_rows(lines), lines)
        return self._rows

    @property
    def share(self) -> float | None:
        """How much of the file has been read, from 0 to 1; nothing for a pipe."""
        if isinstance(self._rows, ParquetRows):
            return self._rows.share
        return self._file.tell() / self._size if self._size else None

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; standard input stays open, it is not ours."""
        if str(self._path) != "-":
            self._file.close()


def _open_stream(path: str | Path, name: str) -> io.BufferedReader:
    with refuse_failure(f"read `{name}`", ValueError):
        if str(path) != "-":
            return Path(path).open("rb")
        if sys.stdin is None:
            raise OSError("it is closed")  # noqa: EM101 - joins the reasons of the system
        stream = sys.stdin.buffer
        return stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", stream))


def _find_size(file: io.BufferedReader) -> int | None:
    try:
        info = os.fstat(file.fileno())
    except OSError:  # standard input that a test has replaced
        return None
    return info.st_size if stat.S_ISREG(info.st_mode) else None


def read_event(path: str | Path, *, row: int | None = None, form: str | None = None) -> dict[str, Any]:
    """Return the only event of a file, or the one with this number; a JSON object may go over several lines."""
    with RowFile(path, form=form) as file:
        detected, stream = file.detect_form()
        batches: Iterable[list[Row]] = file
        if detected is Form.JSONL:
            with refuse_failure(f"read `{file.name}`"):
                data = stream.read()
            if row in (None, 0) and (event := _parse_object(data)) is not None:
                return event
            lines = Lines(io.BytesIO(data), file.name)
            batches = row_readers.batch_rows(row_readers.parse_json_rows(lines), lines)
        return _pick_row([candidate for batch in batches for candidate in batch], row, file.name)


def _parse_object(data: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _pick_row(rows: list[Row], number: int | None, name: str) -> dict[str, Any]:
    picked = [row for row in rows if number is None or row.number == number]
    if len(picked) != 1:
        several = f"{len(rows):,} events; choose one by its number, from 0"
        msg = f"`{name}` has {several if number is None else f'no event {number}'}"
        raise FileError(msg)
    if picked[0].values is None:
        msg = f"cannot read the event in `{name}`, {picked[0].place}: {picked[0].problem}"
        raise FileError(msg)
    return picked[0].values


# Subscriptions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refusal:
    """A subscription that was not taken: where it stands, its id where it has one, and why."""

    place: str
    id: object
    reason: str

    def __str__(self) -> str:
        """Return the message; the lines of a filter and its carets stay under each other."""
        name = self.place if self.id is None else f"{self.place}, `{self.id}`"
        return f"{name}: {self.reason}".replace("\n", "\n  ")


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What became of the rows of a file: how many there were, how many replaced another, and the refusals in order."""

    rows: int
    replaced: int
    refused: list[Refusal]

    def build_error(self, name: str) -> BadSubscriptions:
        """Return the error that lists every refusal."""
        listed = "\n".join(f"  {refusal}".replace("\n", "\n  ") for refusal in self.refused)
        msg = f"{len(self.refused):,} of {self.rows:,} subscriptions in `{name}` were refused:\n{listed}"
        errors = tuple((refusal.id, TidingsError(refusal.reason)) for refusal in self.refused)
        return BadSubscriptions(msg, errors=errors)


def load_subscriptions(matcher: Matcher, batches: Iterable[list[Row]], *, watch: Watch | None = None) -> LoadReport:
    """Add the subscriptions of the rows, all at once; the good ones are added, the bad ones listed with their places.

    They wait until the last is read: to index them in parts would mean to merge the parts again and again.
    """
    count, submissions, places, bad = 0, [], [], []
    for batch in batches:
        count += len(batch)
        for row in batch:
            values = row.values or {}
            if (reason := _find_problem(row)) is not None:
                bad.append((row.number, Refusal(row.place, values.get("id"), reason)))
            else:
                submissions.append((values["id"], values["filter"], values.get("notation") or "text"))
                places.append((row.number, row.line))
    before = len(matcher)
    refusals = matcher.enter_rows(WatchedSubscriptions(submissions, watch), keep_good=True)
    for row_number, problem in refusals:
        number, line = places[row_number]
        bad.append((number, Refusal(Row(number, line).place, submissions[row_number][0], str(problem))))
    refused = [refusal for _, refusal in sorted(bad, key=lambda numbered: numbered[0])]
    return LoadReport(count, len(submissions) - len(refusals) - (len(matcher) - before), refused)


def load_parameters(matcher: Matcher, tables: Iterable[pa.RecordBatch]) -> LoadReport:
    """Add the subscriptions of a table that has a column for each parameter."""
    import pyarrow as pa

    table = pa.Table.from_batches(list(tables))
    before = len(matcher)
    ids, refusals = table.column("id"), matcher.enter_table(table, keep_good=True)
    replaced = table.num_rows - len(refusals) - (len(matcher) - before)
    refused = [Refusal(Row(row, None).place, ids[row].as_py(), str(problem)) for row, problem in refusals]
    return LoadReport(table.num_rows, replaced, refused)


def _find_problem(row: Row) -> str | None:
    if row.values is None:
        return row.problem
    missing = [name for name in ("id", "filter") if row.values.get(name) is None]
    if missing:
        reason = f"there is no {' and no '.join(f'`{name}`' for name in missing)}; a subscription has `id` and `filter`"
        in_columns = missing == ["filter"] and row.values.keys() - {"notation"} > {"id"} and "filter" not in row.values
        return f"{reason}; columns of parameters such as `price_to` are read from Parquet" if in_columns else reason
    return None
