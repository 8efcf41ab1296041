"""CSV and Parquet files as declared columns, read in Spark's Python workers, by name and never by place.

Spark's CSV reader goes by position, so a new column in the middle would shift every value after it; its Parquet reader
stops the query at a column of another type and at a broken file. Here a missing column is null, a new one is
ignored, a value that does not fit its column refuses that row, and what cannot be read of a file is one refused
row that names it. A file is read in batches of some megabytes, whatever its size. Nothing here imports pyspark.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.fs as pfs
import pyarrow.parquet as pq

from tidings.spark.pipeline.fit import Fitted, fitted
from tidings.spark.pipeline.mend import Mended, unmended

BLOCK = 16 << 20
"""Bytes of a CSV file, and about as many of a Parquet file, that are in memory at once; no row may be larger."""

LINES, PIECE = 4 << 20, 1 << 16
"""Bytes of a file of lines that make up a batch, and that are read at once."""

ROWS = 8192
"""Rows of a batch at most."""

SHOWN = 80
"""Characters of a value that a reason shows."""

Refusal: TypeAlias = tuple[str, str]
"""Why, and what is refused."""


@dataclass(frozen=True, slots=True)
class Table:
    """What every file is read as: the declared columns, and their types in Spark's words, for reasons."""

    schema: pa.Schema
    words: tuple[str, ...]

    def batch(self, found: Mapping[str, pa.Array], raw: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows as declared; `raw` is what refused ones are shown as."""
        columns: list[pa.Array] = []
        reasons: dict[int, list[str]] = {}
        for field, word in zip(self.schema, self.words, strict=True):
            fit = _column(found.get(field.name), field.type, raw.num_rows)
            columns.append(fit.values)
            for row in np.flatnonzero(fit.bad).tolist():
                shown = _shown(found[field.name][row].as_py())
                reasons.setdefault(row, []).append(f"`{field.name}`: {shown} does not fit {word}")
        refused = {row: ("; ".join(said), _json(raw.slice(row, 1).to_pylist()[0])) for row, said in reasons.items()}
        return _with(columns, refused)

    def refusals(self, refused: Sequence[Refusal]) -> pa.RecordBatch:
        """Return rows that hold nothing but a reason and what is refused."""
        return _with([pa.nulls(len(refused), field.type) for field in self.schema], dict(enumerate(refused)))


Reader: TypeAlias = Callable[[str, Table], Iterator[pa.RecordBatch]]
"""Reads one file."""


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How a CSV file is written; without a header the declared columns are those of the file, in order."""

    header: bool = True
    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    null: str = ""
    encoding: str = "utf-8"
    several_lines: bool = True


def read_safely(path: str, table: Table, read: Reader) -> Iterator[pa.RecordBatch]:
    """Read a file; what cannot be read of it becomes one refused row."""
    done = 0
    try:
        for batch in read(path, table):
            yield batch
            done += batch.num_rows
    except Exception as problem:  # whatever a broken file makes a reader raise, the query goes on
        after = f" after {done} rows" if done else ""
        reason = f"the file cannot be read{after}: {_first_line(problem)}"
        yield table.refusals([(reason, _json({"file": path}))])


def read_parquet(path: str, table: Table) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file, a part of a row group at a time."""
    files, inner = opened(path)
    # Buffered instead of fetched ahead: a row group may be larger than a worker's memory.
    # Checksums, where the writer made them: what was damaged on the way could pass for values otherwise.
    how = {"buffer_size": 1 << 20, "pre_buffer": False, "page_checksum_verification": True}
    with pq.ParquetFile(files.open_input_file(inner), **how) as file:
        names = file.schema_arrow.names
        _require_some(table, names)
        wanted = [name for name in table.schema.names if name in names]
        for batch in file.iter_batches(_rows_at_once(file.metadata), columns=wanted, use_threads=False):
            yield table.batch(dict(zip(batch.schema.names, batch.columns, strict=True)), batch)


def read_csv(path: str, table: Table, form: CsvForm) -> Iterator[pa.RecordBatch]:
    """Read a CSV file by the names in its header."""
    names = _header(path, form) if form.header else table.schema.names
    if not names:
        return  # an empty file has no rows
    _require_some(table, [name.strip() for name in names])
    wrong: list[Refusal] = []
    files, inner = opened(path)
    with files.open_input_stream(inner) as stream:
        text = Mended(stream, form.encoding)
        for block in _blocks(text, names, form, wrong):
            for start in range(0, block.num_rows, ROWS):
                part = block.slice(start, ROWS)
                columns = map(unmended, part.columns) if text.marks else part.columns
                yield table.batch(dict(zip(map(str.strip, names), columns, strict=True)), part)
            if wrong:
                yield table.refusals(wrong)
                wrong.clear()
    if wrong:
        yield table.refusals(wrong)


def read_lines(path: str, table: Table) -> Iterator[pa.RecordBatch]:  # noqa: ARG001 - what a `Reader` takes
    """Read the lines of a file, unpacked where its name says so, as bytes: what they say is decided later."""
    files, inner = opened(path)
    lines, rest, held = list[bytes](), b"", 0
    with files.open_input_stream(inner) as stream:
        try:
            while block := stream.read(PIECE):
                *whole, rest = (rest + block).split(b"\n")
                lines += whole
                held += len(block)
                if held >= LINES:
                    yield _with([pa.array(lines, pa.binary())], {})
                    lines, held = [], 0
            lines += [rest] if rest else []
        except Exception:  # where the file is broken, what came before is good
            yield _with([pa.array(lines, pa.binary())], {})
            raise
    yield _with([pa.array(lines, pa.binary())], {})


def opened(path: str) -> tuple[pfs.FileSystem, str]:
    """Return the file system of a path as Spark writes it, and the path in it: `file:/a b.csv`, `s3a://bucket/key`."""
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme:
        return pfs.LocalFileSystem(), path
    if scheme == "file":
        # Spark does not escape here: a name may hold `%`, `#` and `?`, which in a URI mean something else.
        return pfs.LocalFileSystem(), "/" + rest.lstrip("/")
    # The bucket or host alone is a URI without anything to escape.
    host, _, inner = rest.lstrip("/").partition("/")
    files, root = pfs.FileSystem.from_uri(f"{'s3' if scheme in {'s3a', 's3n'} else scheme}://{host}/")
    return files, f"{root.rstrip('/')}/{inner}"


def _header(path: str, form: CsvForm) -> list[str]:
    files, inner = opened(path)
    with files.open_input_stream(inner) as stream:
        start = stream.read(1 << 20).decode(form.encoding, errors="replace")
    rows = csv.reader(
        io.StringIO(start.removeprefix("\ufeff"), newline=""), delimiter=form.separator, quotechar=form.quote
    )
    return next((row for row in rows if row), [])


def _blocks(text: Mended, names: list[str], form: CsvForm, wrong: list[Refusal]) -> Iterator[pa.RecordBatch]:
    """Read block after block, every column as bytes; rows with too many or too few values go to `wrong`."""

    def aside(row: Any) -> str:
        wrong.append((f"{row.actual_columns} values where the header has {row.expected_columns}", row.text))
        return "skip"

    given = None if form.header else names
    nulls = list({"", form.null})
    yield from pcsv.open_csv(
        text,
        pcsv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=given),
        pcsv.ParseOptions(
            delimiter=form.separator,
            quote_char=form.quote,
            escape_char=form.escape or False,
            newlines_in_values=form.several_lines,
            invalid_row_handler=aside,
        ),
        # As bytes: one value that is not UTF-8 must not cost the others.
        pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=nulls,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _rows_at_once(about: pq.FileMetaData) -> int:
    """Return how many rows of a Parquet file come to about a block."""
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(ROWS, BLOCK // max(widest, 1)))


def _require_some(table: Table, names: Sequence[str]) -> None:
    """Refuse a file that has none of the columns: its rows would all be empty, and that would pass for events."""
    if not set(names) & set(table.schema.names):
        found = ", ".join(f"`{name[:SHOWN]}`" for name in names[:10])
        msg = f"none of the declared columns is in it; it has {found}"
        raise ValueError(msg)


def _column(column: pa.Array | None, kind: pa.DataType, rows: int) -> Fitted:
    if column is None:
        return Fitted(pa.nulls(rows, kind), np.zeros(rows, np.bool_))
    return fitted(column, kind)


def _with(columns: list[pa.Array], refused: Mapping[int, Refusal]) -> pa.RecordBatch:
    """Add the reasons and what is refused; Spark goes by place, and names only have to differ."""
    rows = len(columns[0])
    for part in (0, 1):
        said = [refused[row][part] if row in refused else None for row in range(rows)] if refused else None
        columns = [*columns, pa.nulls(rows, pa.string()) if said is None else pa.array(said, pa.string())]
    return pa.RecordBatch.from_arrays(columns, list(map(str, range(len(columns)))))


def _shown(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return f"'{text[:SHOWN]}…'" if len(text) > SHOWN else f"'{text}'"


def _json(row: Mapping[str, Any]) -> str:
    """Return a row as JSON; what JSON has no word for, as text."""
    try:
        return json.dumps(row, default=_word, ensure_ascii=False, allow_nan=False)
    except ValueError:  # NaN or an infinity, somewhere
        return json.dumps({name: _word(value) for name, value in row.items()}, ensure_ascii=False)


def _word(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0] or type(problem).__name__
