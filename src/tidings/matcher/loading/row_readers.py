"""Rows out of a stream: lines as they arrive, and the rows that JSON lines, CSV and Parquet make of them.

A row that cannot be read is a row with a problem and never the end of the file. A batch ends where the stream
has nothing more to give at once, so that no row waits for the next one to be written.

`spark.pipeline.sources` reads the same formats in another way, and the two share no code. Here rows become Python
mappings, one stream is read from its start, a pipe is answered line by line, and a row keeps its line number. There
rows become Arrow columns of declared types: byte ranges of a file are read by different workers, carriage returns end
lines, the size of a row is limited by that of an event, and CSV is parsed by Arrow with any separator, quote and
encoding. One reader for both would be slower there, would lose line numbers and immediate answers here, and would make
every worker that only reads files import this package, which loads the engine.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.errors import FileError
from tidings.lang.filters.parse_json import refuse_constant
from tidings.matcher.tuning import FILE_TUNING, FileTuning

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator

    import pyarrow as pa


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some editors begin a file of UTF-8 with it; it is no part of the first line."""

SHOWN = 200
"""Bytes that are kept of a line that is too long."""

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
        """Where to look for it."""
        return f"row {self.number + 1}" if self.line is None else f"line {self.line}"

    @property
    def raw(self) -> str:
        """The row as it was read; rows that are not lines of JSON are written as JSON."""
        if self.source is not None:
            return self.source.decode("utf-8", "backslashreplace").strip("\r\n")
        return json.dumps(self.values, default=str, ensure_ascii=False)


def build_read_error(name: str, problem: object) -> FileError:
    """Return the error of a file that cannot be read as a whole."""
    reason = (problem.strerror if isinstance(problem, OSError) else None) or problem
    return FileError(f"cannot read `{name}`: {reason}")


# Lines -----------------------------------------------------------------------------------------


class LongLine(bytes):
    """The first bytes of a line that is longer than memory is kept for, and why it is refused."""

    problem: str

    @classmethod
    def of(cls, start: bytes, size: int, *, longest: int) -> LongLine:
        """Return the beginning of a line of `size` bytes."""
        line = cls(start)
        line.problem = f"a line of {size:,} bytes, and one may have {longest:,}"
        return line


class Lines:
    """The lines of a stream, as they arrive; `drained` tells that the next one has to be waited for."""

    def __init__(self, stream: Stream, name: str, tuning: FileTuning = FILE_TUNING) -> None:
        """Read nothing yet."""
        self._stream, self.name, self.tuning = stream, name, tuning
        self.drained = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines without their ends; of one that is too long the first bytes, as `LongLine`."""
        rest, size = b"", 0  # a size above zero is that of a line whose bytes are let go
        for chunk in self._chunks():
            if size:
                head, end, chunk = chunk.partition(b"\n")
                size += len(head)
                if not end:
                    continue
                self.drained = not chunk
                yield LongLine.of(rest, size, longest=self.tuning.longest_line)
                rest, size = b"", 0
            *lines, rest = (rest + chunk).split(b"\n")
            last = len(lines) - 1
            for at, line in enumerate(lines):
                self.drained = at == last
                yield line
            if len(rest) > self.tuning.longest_line:
                rest, size = rest[:SHOWN], len(rest)
        self.drained = True
        if size:
            yield LongLine.of(rest, size, longest=self.tuning.longest_line)
        elif rest:
            yield rest

    def _chunks(self) -> Iterator[bytes]:
        first = self.read_chunk()
        if b"\0" in first[:1024]:
            msg = f"cannot read `{self.name}`: it holds binary data, or text that is not UTF-8"
            raise FileError(msg)
        yield first.removeprefix(BYTE_ORDER_MARK)
        while chunk := self.read_chunk():
            yield chunk

    def read_chunk(self) -> bytes:
        """Return the next bytes of the stream; empty at its end."""
        try:
            return self._stream.read1(self.tuning.read_bytes)
        except (OSError, EOFError, zlib.error) as problem:
            raise build_read_error(self.name, problem) from problem


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
        yield _json_row(number, line) if bare else None


def _json_row(number: int, line: bytes) -> Row:
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


_SHAPES = {
    list: "an array",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "null",
}


class CsvRows:
    """The rows of CSV under the names of its first line; an empty cell is null."""

    def __init__(self, lines: Lines) -> None:
        """Read nothing yet."""
        # Bytes that are not UTF-8 go through as lone surrogates, so that only the row that holds them is bad.
        self._reader = csv.reader(line.decode("utf-8", "surrogateescape") + "\n" for line in _whole(lines))
        self._name = lines.name

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns."""
        return _header(self._reader, self._name)

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
                yield _csv_row(number, line, header, cells)
            number += 1


def _whole(lines: Lines) -> Iterator[bytes]:
    """Yield the lines of CSV; of one that is too long nobody knows whether the next one goes on with its row."""
    for line in lines:
        if isinstance(line, LongLine):
            msg = f"cannot read `{lines.name}`: {line.problem}"
            raise FileError(msg)
        yield line


def _header(reader: Iterator[list[str]], name: str) -> list[str]:
    try:
        header = next(reader, [])
        "".join(header).encode()
    except (csv.Error, UnicodeEncodeError) as problem:
        msg = f"cannot read the header of `{name}`: it is not CSV in UTF-8"
        raise FileError(msg) from problem
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        msg = f"the header of `{name}` has the column `{twice}` twice"
        raise FileError(msg)
    return header


def _csv_row(number: int, line: int, header: list[str], cells: list[str]) -> Row:
    problem = None
    if len(cells) != len(header):
        problem = f"{len(cells)} cells, and the header has {len(header)}"
    elif not all(map(str.isascii, cells)) and not _is_utf8(cells):
        problem = "not UTF-8 text"
    if problem:
        return Row(number, line, problem=problem, source=",".join(cells).encode("utf-8", "surrogateescape"))
    return Row(number, line, {column: cell or None for column, cell in zip(header, cells, strict=True)})


def _is_utf8(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


# Parquet ---------------------------------------------------------------------------------------


class ParquetRows:
    """The rows of a Parquet file, a batch at a time."""

    def __init__(self, stream: Stream, name: str, tuning: FileTuning = FILE_TUNING) -> None:
        """Read the file's index; what has none is no Parquet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._name, self._tuning, self._done = name, tuning, 0
        try:
            whole = isinstance(stream, gzip.GzipFile) or not stream.seekable()
            self._file = pq.ParquetFile(pa.BufferReader(stream.read()) if whole else stream)
        except (pa.ArrowException, OSError, EOFError, zlib.error) as problem:
            raise build_read_error(name, problem) from problem

    def __iter__(self) -> Iterator[list[Row]]:
        """Yield the rows in batches."""
        import pyarrow as pa

        from tidings.model.arrow_types import to_rows

        try:
            for table in self._file.iter_batches(self._tuning.batch_rows):
                rows = [Row(at, None, row) for at, row in enumerate(to_rows(table), self._done)]
                self._done += len(rows)
                yield rows
        except (pa.ArrowException, OSError, ValueError, OverflowError) as problem:
            raise build_read_error(self._name, problem) from problem

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return self._file.schema_arrow

    def tables(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow has them, in batches, instead."""
        import pyarrow as pa

        try:
            for table in self._file.iter_batches(self._tuning.table_rows):
                self._done += table.num_rows
                yield table
        except (pa.ArrowException, OSError) as problem:
            raise build_read_error(self._name, problem) from problem

    @property
    def share(self) -> float:
        """How much has been read."""
        return self._done / (self._file.metadata.num_rows or 1)
