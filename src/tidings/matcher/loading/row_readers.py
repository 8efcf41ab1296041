"""Rows out of a stream: lines as they arrive, and the rows that JSON lines, CSV and Parquet make of them.

A row that cannot be read is a row with a problem and never the end of the file. A batch ends where the stream
has nothing more to give at once, so that no row waits for the next one to be written.

`spark.pipeline.sources` reads the same formats into Arrow columns, from byte ranges in different workers. One reader
for both would be 16 times slower there, or lose line numbers and immediate answers here (docs/decisions/0017).
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.errors import FileError
from tidings.lang.diagnostics import refuse_constant
from tidings.matcher.tuning import FILE_TUNING, FileTuning

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some editors begin a file of UTF-8 with it; it is no part of the first line."""

SHOWN_BYTES = 200
"""Bytes that are kept of a line that is too large."""

Stream: TypeAlias = "io.BufferedReader | io.BytesIO | gzip.GzipFile"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its number from 0, its line from 1, and its values, or the problem that it has."""

    number: int
    line: int | None
    values: dict[str, Any] | None = None
    problem: str | None = None
    source: bytes | None = None

    @property
    def place(self) -> str:
        """The line or the number of the row, as messages name it."""
        return f"row {self.number + 1}" if self.line is None else f"line {self.line}"

    @property
    def raw(self) -> str:
        """The row as it was read; rows that are not lines of JSON are written as JSON."""
        if self.source is not None:
            return self.source.decode("utf-8", "backslashreplace").strip("\r\n")
        return json.dumps(self.values, default=str, ensure_ascii=False)


@contextmanager
def refuse_failure(action: str, *others: type[Exception], way_out: str = "") -> Iterator[None]:
    """Turn what files and damaged data raise, and `others`, into a `FileError`: what failed, why, and the way out.

    A name that no file can have is a `ValueError`.
    """
    failures: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, *others)
    try:
        yield
    except FileError:
        raise
    except failures as problem:
        reason = (problem.strerror if isinstance(problem, OSError) else None) or problem
        msg = f"cannot {action}: {reason}{way_out}"
        raise FileError(msg) from problem


# Lines -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class PartialLine:
    """A line whose end has not been read yet: all of it, or the first bytes of one that is larger than `largest`."""

    largest: int
    is_skipping: bool = False  # to its end: it is too large, or its beginning is read elsewhere
    start: bytes = b""
    skipped: int = 0  # bytes after `start` that were dropped
    refused: list[tuple[int, bytes]] = field(default_factory=list)  # sizes and first bytes of lines that ended

    def __len__(self) -> int:
        return len(self.start) + self.skipped

    def add(self, piece: bytes) -> None:
        """Append bytes; of a line that is too large, only the first bytes are kept."""
        if not self.is_skipping:
            piece, self.start = self.start + piece, b""
            if len(piece) <= self.largest:
                self.start = piece
                return
            self.is_skipping = True
        elif not self.start:
            return  # it is reported where it begins
        kept = piece[: SHOWN_BYTES - len(self.start)]
        self.start, self.skipped = self.start + kept, self.skipped + len(piece) - len(kept)

    def end(self, last: bytes) -> None:
        """End a line that is being skipped; one that began here is refused."""
        self.add(last)
        if self.start:
            self.refused.append((len(self), self.start))
        self.is_skipping, self.start, self.skipped = False, b"", 0

    def take(self) -> bytes:
        """Return the bytes so far, and start the next line."""
        rest, self.start = self.start, b""
        return rest


class LongLine(bytes):
    """The first bytes of a line that is longer than the limit, and why it is refused."""

    problem: str


class Lines:
    """The lines of a stream, as they arrive; `drained` tells that the next one has to be waited for."""

    def __init__(self, stream: Stream, name: str, tuning: FileTuning = FILE_TUNING) -> None:
        self._stream, self.name, self.tuning = stream, name, tuning
        self.drained = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines without their ends; of one that is too long the first bytes, as `LongLine`."""
        partial = PartialLine(self.tuning.longest_line)
        for chunk in self._read_chunks():
            if partial.is_skipping:
                head, end, chunk = chunk.partition(b"\n")
                if not end:
                    partial.add(head)
                    continue
                self.drained = not chunk
                yield self._end_long_line(partial, head)
            *lines, rest = (partial.take() + chunk).split(b"\n")
            last = len(lines) - 1
            for number, line in enumerate(lines):
                self.drained = number == last
                yield line
            partial.add(rest)
        self.drained = True
        if partial.is_skipping:
            yield self._end_long_line(partial, b"")
        elif rest := partial.take():
            yield rest

    def _end_long_line(self, partial: PartialLine, last: bytes) -> LongLine:
        partial.end(last)
        size, start = partial.refused.pop()
        line = LongLine(start)
        line.problem = f"a line of {size:,} bytes, and one may have {self.tuning.longest_line:,}"
        return line

    def _read_chunks(self) -> Iterator[bytes]:
        first = self.read_chunk()
        if b"\0" in first[:1024]:
            msg = f"cannot read `{self.name}`: it holds binary data, or text that is not UTF-8"
            raise FileError(msg)
        yield first.removeprefix(BYTE_ORDER_MARK)
        while chunk := self.read_chunk():
            yield chunk

    def read_chunk(self) -> bytes:
        """Return the next bytes of the stream; empty at its end."""
        with refuse_failure(f"read `{self.name}`"):
            return self._stream.read1(self.tuning.read_bytes)


def batch_rows(rows: Iterable[Row | None], lines: Lines) -> Iterator[list[Row]]:
    """Yield the rows in batches that end where the lines have to be waited for."""
    batch: list[Row] = []
    for row in rows:  # a blank line is no row, yet what came before it must not wait for the next one
        if row is not None:
            batch.append(row)
        if batch and (lines.drained or len(batch) >= lines.tuning.batch_rows):
            yield batch
            batch = []
    if batch:
        yield batch


_JSON = json.JSONDecoder(parse_constant=refuse_constant)


def parse_json_rows(lines: Lines) -> Iterator[Row | None]:
    """Yield a row for each line of JSON, and nothing for a blank line."""
    has_rows = False
    for number, line in enumerate(lines):
        bare = line.strip()
        if not has_rows and bare in (b"[", b"{"):
            msg = (
                f"cannot read `{lines.name}`: its JSON goes over several lines, and one object on each line is expected"
                f" (`jq -c {'.[]' if bare == b'[' else '.'}` makes it so)"
            )
            raise FileError(msg)
        has_rows = has_rows or bool(bare)
        yield _parse_json_row(number, line) if bare else None


def _parse_json_row(number: int, line: bytes) -> Row:
    if isinstance(line, LongLine):
        return Row(number, number + 1, None, line.problem, line)
    try:
        values = _JSON.decode(line.decode())
        problem = None if isinstance(values, dict) else f"an object `{{...}}` is expected, not {_SHAPES[type(values)]}"
    except json.JSONDecodeError as mistake:
        problem = f"not JSON: {mistake.msg} (column {mistake.colno})"
    except UnicodeDecodeError as mistake:
        problem = f"not UTF-8 text (byte {mistake.start})"
    except RecursionError:
        problem = "not JSON that can be read: it is nested too deeply"
    except ValueError as mistake:
        problem = f"not JSON: {mistake}"
    return Row(number, number + 1, None if problem else values, problem, line)


_SHAPES = {list: "an array", str: "text", int: "a number", float: "a number", bool: "a truth value", type(None): "null"}


class CsvRows:
    """The rows of CSV under the names of its first line; an empty cell is null."""

    def __init__(self, lines: Lines) -> None:
        # Bytes that are not UTF-8 go through as lone surrogates, so that only the row that holds them is bad.
        self._reader = csv.reader(line.decode("utf-8", "surrogateescape") + "\n" for line in _refuse_long(lines))
        self._name = lines.name

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns."""
        try:
            header = next(self._reader, [])
            "".join(header).encode()
        except (csv.Error, UnicodeEncodeError) as problem:
            msg = f"cannot read the header of `{self._name}`: it is not CSV in UTF-8"
            raise FileError(msg) from problem
        twice = next((column for column in header if header.count(column) > 1), None)
        if twice is not None:
            msg = f"the header of `{self._name}` has the column `{twice}` twice"
            raise FileError(msg)
        return header

    def __iter__(self) -> Iterator[Row | None]:
        """Yield a row for each, and nothing for a blank line."""
        header, number = self.header, 0
        while True:
            line = self._reader.line_num + 1
            try:
                cells = next(self._reader)
            except StopIteration:
                return
            except csv.Error as mistake:
                yield Row(number, line, problem=f"not CSV: {mistake}", source=b"")
            else:
                if not cells:
                    yield None
                    continue
                yield _build_csv_row(number, line, header, cells)
            number += 1


def _refuse_long(lines: Lines) -> Iterator[bytes]:
    """Yield the lines of CSV; of one that is too long nobody knows whether the next one goes on with its row."""
    for line in lines:
        if isinstance(line, LongLine):
            msg = f"cannot read `{lines.name}`: {line.problem}"
            raise FileError(msg)
        yield line


def _build_csv_row(number: int, line: int, header: list[str], cells: list[str]) -> Row:
    problem = None
    if len(cells) != len(header):
        problem = f"{len(cells)} cells, and the header has {len(header)}"
    elif not all(map(str.isascii, cells)):
        try:
            "".join(cells).encode()
        except UnicodeEncodeError:
            problem = "not UTF-8 text"
    if problem:
        return Row(number, line, problem=problem, source=",".join(cells).encode("utf-8", "surrogateescape"))
    return Row(number, line, {column: cell or None for column, cell in zip(header, cells, strict=True)})


# Parquet ---------------------------------------------------------------------------------------


class ParquetRows:
    """The rows of a Parquet file, a batch at a time."""

    def __init__(self, stream: Stream, name: str, tuning: FileTuning = FILE_TUNING) -> None:
        """Read the footer of the file; `FileError` if it has none."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._name, self._tuning, self._done = name, tuning, 0
        with refuse_failure(f"read `{name}`", pa.ArrowException):
            whole = isinstance(stream, gzip.GzipFile) or not stream.seekable()
            self._file = pq.ParquetFile(pa.BufferReader(stream.read()) if whole else stream)

    def __iter__(self) -> Iterator[list[Row]]:
        """Yield the rows in batches."""
        import pyarrow as pa

        from tidings.model.arrow_types import to_rows

        with refuse_failure(f"read `{self._name}`", pa.ArrowException, ValueError, OverflowError):
            for table in self._file.iter_batches(self._tuning.batch_rows):
                rows = [Row(number, None, row) for number, row in enumerate(to_rows(table), self._done)]
                self._done += len(rows)
                yield rows

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return self._file.schema_arrow

    def read_tables(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow batches."""
        import pyarrow as pa

        with refuse_failure(f"read `{self._name}`", pa.ArrowException):
            for table in self._file.iter_batches(self._tuning.table_rows):
                self._done += table.num_rows
                yield table

    @property
    def share(self) -> float:
        """The share of the rows that has been read, from 0 to 1."""
        return self._done / (self._file.metadata.num_rows or 1)
