"""New files of a directory as rows: Spark finds them and keeps the account, our workers read them.

Spark's file stream (which files are new, how many in a batch, what a retried batch had) is used as it is, through
the format `binaryFile` with the path alone selected: Spark then does not open the files. `fileread` reads each
of them inside `mapInArrow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from tidings.errors import BadFrame
from tidings.spark.pipeline.decode import word_for
from tidings.spark.pipeline.fileread import CsvForm, Reader, Table, read_csv, read_lines, read_parquet, read_safely
from tidings.spark.schema import arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from tidings.spark.pipeline.config import Options, Source

LISTED = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
"""The columns of the format `binaryFile`; a stream must be told."""

LISTING = {
    # Without it a folder `day=1` beside plain files hides those, and a `?` in one name doubles others (Spark 4.3).
    "recursiveFileLookup": "true",
    # A file that was renamed or removed before its batch would stop the query, and every restart of it.
    "ignoreMissingFiles": "true",
}
"""What every directory is listed with, unless the options say otherwise."""

PACKED, UNPACKED = "*z", "*[^z]"
"""Names of files that are packed (`.gz`), and of all others; a name that only ends so is read as it is."""

FORM = {"header", "sep", "delimiter", "quote", "escape", "nullValue", "encoding", "charset", "multiLine"}
"""Options of Spark's CSV reader that ours knows too; the others are for the listing."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The function Spark runs: paths in, rows out."""

    table: Table
    read: Reader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of every file."""
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from read_safely(path, self.table, self.read)


def rows_of_files(session: SparkSession, source: Source, columns: StructType) -> DataFrame:
    """Return the rows of a directory's CSV or Parquet files: the columns, `_refused` and `_raw`."""
    read: Reader = read_parquet if source.kind == "parquet" else partial(read_csv, form=csv_form(source.options))
    own = FORM if source.kind == "csv" else set()
    listing = {name: value for name, value in source.options.items() if name not in own}
    listed = session.readStream.format("binaryFile").schema(LISTED).options(**{**LISTING, **listing})
    hidden = [StructField(name, StringType()) for name in ("_refused", "_raw")]
    step = Reading(table_of(columns, nested=source.kind != "csv"), read)
    return listed.load(source.path).select("path").mapInArrow(step, StructType([*columns, *hidden]))


def lines_of_files(session: SparkSession, source: Source) -> DataFrame:
    """Return the lines of packed files as bytes in `_text`, and why a file could not be read to its end.

    Spark's own reader stops the query at a packed file that is broken, and at every restart again.
    """
    named = {**LISTING, **source.options, "pathGlobFilter": PACKED}
    listed = session.readStream.format("binaryFile").schema(LISTED).options(**named).load(source.path)
    table = Table(pa.schema([("_text", pa.binary())]), ("BINARY",))
    return listed.select("path").mapInArrow(Reading(table, read_lines), "_text BINARY, _broken STRING, _file STRING")


def table_of(columns: StructType, *, nested: bool) -> Table:
    """Return the columns as Arrow has them; those that a file cannot hold are refused together."""
    kinds = [(field, arrow_type(field.dataType)) for field in columns]
    wrong = [field for field, kind in kinds if kind is None or (not nested and pa.types.is_nested(kind))]
    if wrong:
        said = ", ".join(f"`{field.name}` {word_for(field.dataType)}" for field in wrong)
        msg = f"these columns cannot be read from such files: {said}; declare them STRING, or leave them out"
        raise BadFrame(msg)
    return Table(pa.schema([(field.name, kind) for field, kind in kinds]), tuple(word_for(f.dataType) for f in columns))


def csv_form(options: Options) -> CsvForm:
    """Return how the files are written, by Spark's own names for it."""
    return CsvForm(
        header=_true(options.get("header", "true")),
        separator=options.get("sep", options.get("delimiter", ",")),
        quote=options.get("quote", '"'),
        escape=options.get("escape"),
        null=options.get("nullValue", ""),
        encoding=options.get("encoding", options.get("charset", "utf-8")),
        several_lines=_true(options.get("multiLine", "true")),
    )


def _true(text: str) -> bool:
    return text.strip().lower() == "true"
