"""CSV and Parquet files as declared columns, read in Spark's Python workers by column name.

Spark's CSV reader goes by position, so a new column in the middle would shift every value after it; its Parquet reader
stops the query at a column of another type and at a broken file. Here a missing column is null, a new one is
ignored, a value that does not fit its column refuses that row, and what cannot be read of a file is one refused
row that names it. A file is read in batches of some megabytes, whatever its size.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.fs as pfs
import pyarrow.parquet as pq

from tidings.configuration.local_paths import to_local_path
from tidings.matcher.loading.row_readers import SHOWN_BYTES
from tidings.spark.pipeline.sources.arrow_cast import cast_column
from tidings.spark.pipeline.sources.csv_stream import CsvFormat, Utf8Stream, WholeRowReader, restore_invalid
from tidings.spark.pipeline.sources.line_cutter import RefusedText, cut_lines
from tidings.spark.pipeline.sources.size_limits import (
    DEFAULT_MAX_BYTES,
    DEFAULT_TUNING,
    QUOTED_LENGTH,
    ReadTuning,
    describe_too_large,
)

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".zst", ".lz4")
"""Suffixes of files that Arrow decompresses while reading."""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The declared columns that every file is read as, with Spark's names of their types for reasons."""

    schema: pa.Schema
    type_names: tuple[str, ...]

    def build_batch(self, columns: Mapping[str, pa.Array], raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the declared columns; refused ones have their row of `raw` as JSON."""
        values: list[pa.Array] = []
        reasons: dict[int, list[str]] = {}
        for field, type_name in zip(self.schema, self.type_names, strict=True):
            cast = cast_column(columns.get(field.name, pa.nulls(raw.num_rows)), field.type)
            values.append(cast.values)
            for row in np.flatnonzero(cast.bad).tolist():
                quoted = _quote(columns[field.name][row].as_py())
                reasons.setdefault(row, []).append(f"`{field.name}`: {quoted} does not fit {type_name}")
        refused = {
            row: ("; ".join(texts), _to_json(raw.slice(row, 1).to_pylist()[0])) for row, texts in reasons.items()
        }
        return _append_refusals(values, refused)

    def build_refusals(self, refused: Sequence[RefusedText]) -> pa.RecordBatch:
        """Return rows with nothing but a reason and the refused text."""
        return _append_refusals([pa.nulls(len(refused), field.type) for field in self.schema], dict(enumerate(refused)))


FileReader: TypeAlias = Callable[[str, TargetTable], Iterator[pa.RecordBatch]]
"""Reads one file."""


def read_safely(path: str, table: TargetTable, read: FileReader) -> Iterator[pa.RecordBatch]:
    """Read a file; what cannot be read of it becomes one refused row."""
    rows = 0
    try:
        for batch in read(path, table):
            yield batch
            rows += batch.num_rows
    except Exception as problem:  # noqa: BLE001 - whatever a broken file makes a reader raise, the query goes on
        after = f" after {rows} rows" if rows else ""
        message = str(problem).strip().partition("\n")[0] or type(problem).__name__
        reason = f"the file cannot be read{after}: {message}"
        yield table.build_refusals([(reason, _to_json({"file": path}))])


def read_parquet(
    path: str, table: TargetTable, *, largest: int = DEFAULT_MAX_BYTES, tuning: ReadTuning = DEFAULT_TUNING
) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file, a part of a row group at a time."""
    files, inner = open_file_system(path)
    # Buffered instead of fetched ahead: a row group may be larger than a worker's memory.
    # Checksums, where the writer made them: what was damaged on the way could pass for values otherwise.
    options = {"buffer_size": 1 << 20, "pre_buffer": False, "page_checksum_verification": True}
    with pq.ParquetFile(files.open_input_file(inner), **options) as file:
        names = file.schema_arrow.names
        _require_some(table, names)
        wanted = [name for name in table.schema.names if name in names]
        for batch in file.iter_batches(_count_rows_at_once(file.metadata, tuning), columns=wanted, use_threads=False):
            refused: list[RefusedText] = []
            for part in _split_large_rows(batch, largest, refused):
                yield table.build_batch(dict(zip(part.schema.names, part.columns, strict=True)), part)
            if refused:
                yield table.build_refusals(refused)


def _split_large_rows(batch: pa.RecordBatch, largest: int, refused: list[RefusedText]) -> Iterator[pa.RecordBatch]:
    """Yield the batch in slices without rows that are too large: it is halved until such a row is alone."""
    if batch.nbytes <= largest:
        yield batch
    elif batch.num_rows == 1:
        start = _to_json(batch.to_pylist()[0])[:SHOWN_BYTES]
        refused.append((describe_too_large(batch.nbytes, largest), start))
    else:
        half = batch.num_rows // 2
        yield from _split_large_rows(batch.slice(0, half), largest, refused)
        yield from _split_large_rows(batch.slice(half), largest, refused)


def read_csv(
    path: str,
    table: TargetTable,
    form: CsvFormat,
    *,
    largest: int = DEFAULT_MAX_BYTES,
    tuning: ReadTuning = DEFAULT_TUNING,
) -> Iterator[pa.RecordBatch]:
    """Read a CSV file by the names in its header."""
    names = _read_header(path, form) if form.header else table.schema.names
    if not names:
        return  # an empty file has no rows
    _require_some(table, [name.strip() for name in names])
    wrong: list[RefusedText] = []
    files, inner = open_file_system(path)
    with files.open_input_stream(inner) as stream:
        text = Utf8Stream(stream, form.encoding)
        rows = WholeRowReader(text, form, largest=largest, tuning=tuning)
        for block in _read_blocks(rows, names, form, wrong, size=max(tuning.block_bytes, 2 * largest)):
            for start in range(0, block.num_rows, tuning.batch_rows):
                part = block.slice(start, tuning.batch_rows)
                columns = map(restore_invalid, part.columns) if text.has_marks else part.columns
                yield table.build_batch(dict(zip(map(str.strip, names), columns, strict=True)), part)
            yield from _take_refusals(table, wrong, rows)
        yield from _take_refusals(table, wrong, rows)


def _take_refusals(table: TargetTable, wrong: list[RefusedText], rows: WholeRowReader) -> Iterator[pa.RecordBatch]:
    """Yield the rows refused since the last call; Arrow may be adding some in a thread of its own."""
    refused = [wrong.pop(0) for _ in range(len(wrong))] + rows.take_refusals()
    if refused:
        yield table.build_refusals(refused)


def read_lines(path: str, table: TargetTable, *, start: int, stop: int, largest: int) -> Iterator[pa.RecordBatch]:
    """Read the lines of a range, or of a whole compressed file, as bytes; they are decoded later."""
    files, inner = open_file_system(path)
    is_compressed = path.endswith(COMPRESSED_SUFFIXES)
    with files.open_input_stream(inner) if is_compressed else files.open_input_file(inner) as stream:
        for lines, refused in cut_lines(stream, start=start, stop=stop, largest=largest):
            yield _append_refusals([lines], {})
            if refused:
                yield table.build_refusals(refused)


def open_file_system(path: str) -> tuple[pfs.FileSystem, str]:
    """Return the file system of a path as Spark writes it, and the path in it: `file:/a b.csv`, `s3a://bucket/key`."""
    local = to_local_path(path)  # not a URI's: Spark does not escape `%`, `#` and `?` in a name
    if local is not None:
        return pfs.LocalFileSystem(), str(local)
    scheme, _, rest = path.partition(":")
    # The bucket or host alone is a URI without anything to escape.
    host, _, inner = rest.lstrip("/").partition("/")
    files, root = pfs.FileSystem.from_uri(f"{'s3' if scheme in {'s3a', 's3n'} else scheme}://{host}/")
    return files, f"{root.rstrip('/')}/{inner}"


def _read_header(path: str, form: CsvFormat) -> list[str]:
    files, inner = open_file_system(path)
    with files.open_input_stream(inner) as stream:
        start = stream.read(1 << 20).decode(form.encoding, errors="replace")
    rows = csv.reader(
        io.StringIO(start.removeprefix("\ufeff"), newline=""), delimiter=form.separator, quotechar=form.quote
    )
    return next((row for row in rows if row), [])


def _read_blocks(
    text: WholeRowReader, names: list[str], form: CsvFormat, wrong: list[RefusedText], *, size: int
) -> Iterator[pa.RecordBatch]:
    """Read block after block, every column as bytes; rows with too many or too few values go to `wrong`."""

    def put_aside(row: pcsv.InvalidRow) -> str:
        wrong.append((f"{row.actual_columns} values where the header has {row.expected_columns}", row.text))
        return "skip"

    yield from pcsv.open_csv(
        text,
        pcsv.ReadOptions(use_threads=False, block_size=size, column_names=None if form.header else names),
        pcsv.ParseOptions(
            delimiter=form.separator,
            quote_char=form.quote,
            escape_char=form.escape or False,
            newlines_in_values=form.several_lines,
            invalid_row_handler=put_aside,
        ),
        # As bytes: one value that is not UTF-8 must not cost the others.
        pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=list({"", form.null}),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _count_rows_at_once(metadata: pq.FileMetaData, tuning: ReadTuning) -> int:
    """Return how many rows of a Parquet file have about the bytes of a block."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(tuning.batch_rows, tuning.block_bytes // max(widest, 1)))


def _require_some(table: TargetTable, names: Sequence[str]) -> None:
    """Refuse a file that has none of the columns: its rows would all be empty, and that would pass for events."""
    if not set(names) & set(table.schema.names):
        listing = ", ".join(f"`{name[:QUOTED_LENGTH]}`" for name in names[:10])
        msg = f"the file has none of the declared columns; it has {listing}"
        raise ValueError(msg)


def _append_refusals(columns: list[pa.Array], refused: Mapping[int, RefusedText]) -> pa.RecordBatch:
    """Add the columns of reasons and refused texts; Spark goes by position, so names only have to differ."""
    rows = len(columns[0])
    for part in (0, 1):
        texts = [refused[row][part] if row in refused else None for row in range(rows)] if refused else None
        columns = [*columns, pa.nulls(rows, pa.string()) if texts is None else pa.array(texts, pa.string())]
    return pa.RecordBatch.from_arrays(columns, list(map(str, range(len(columns)))))


def _quote(value: object) -> str:
    text = _to_text(value)
    return f"'{text[:QUOTED_LENGTH]}…'" if len(text) > QUOTED_LENGTH else f"'{text}'"


def _to_json(row: Mapping[str, object]) -> str:
    """Return a row as JSON, with values that JSON does not have as text."""
    try:
        return json.dumps(row, default=_to_text, ensure_ascii=False, allow_nan=False)
    except ValueError:  # NaN or an infinity, somewhere
        return json.dumps({name: _to_text(value) for name, value in row.items()}, ensure_ascii=False)


def _to_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
