"""New files of a directory as rows: Spark finds them and keeps the account, our workers read them.

Spark's file stream (which files are new, how many in a batch, what a retried batch had) is used as it is, through
the format `binaryFile` with the path alone selected: Spark then does not open the files. `fileread` reads each
of them inside `mapInArrow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import StringType, StructField, StructType

from tidings.errors import BadFrame
from tidings.spark.pipeline.sources.json_decode import word_for
from tidings.spark.pipeline.sources.line_cutter import END
from tidings.spark.pipeline.sources.table_files import PACKED as PACKED_NAMES
from tidings.spark.pipeline.sources.table_files import (
    CsvForm,
    Reader,
    Table,
    read_csv,
    read_lines,
    read_parquet,
    read_safely,
)
from tidings.spark.schema import arrow_type_of
from tidings.spark.subscriptions.shared_folder import count_tasks_per_shard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from tidings.spark.pipeline.config.settings import Options, SourceSettings

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

RANGE = 16 << 20
"""Bytes of a file of lines that one task reads at a time; those of a packed file are read by one."""

LINE = Table(pa.schema([("_text", pa.binary())]), ("BINARY",))
"""What a file of lines is read as."""

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


def rows_of_files(session: SparkSession, source: SourceSettings, columns: StructType) -> DataFrame:
    """Return the rows of a directory's CSV or Parquet files: the columns, `_refused` and `_raw`."""
    form = {} if source.kind == "parquet" else {"form": csv_form(source.options)}
    read: Reader = partial(read_csv if form else read_parquet, largest=source.largest, **form)  # type: ignore[arg-type]
    own = FORM if source.kind == "csv" else set()
    listing = {name: value for name, value in source.options.items() if name not in own}
    listed = session.readStream.format("binaryFile").schema(LISTED).options(**{**LISTING, **listing})
    hidden = [StructField(name, StringType()) for name in ("_refused", "_raw")]
    step = Reading(table_of(columns, nested=source.kind != "csv"), read)
    return listed.load(source.path).select("path").mapInArrow(step, StructType([*columns, *hidden]))


@dataclass(frozen=True, slots=True)
class LineReading:
    """The function Spark runs for files of lines: a path and a range of it in, lines out."""

    largest: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the lines of every range."""
        for batch in batches:
            for path, start, stop in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                read = partial(read_lines, start=start, stop=stop, largest=self.largest)
                yield from read_safely(path, LINE, read)


def lines_of_files(session: SparkSession, source: SourceSettings, *, named: str | None) -> DataFrame:
    """Return the lines of files as bytes in `_text`, and in `_broken` and `_file` what could not be read, and why.

    Spark's own reader stops the query at a packed file that is broken, and at every restart again; and it holds a line
    of any length. `named` is the pattern of the files' names, unless the options have one.
    """
    options = {**LISTING, **source.options}
    listed = session.readStream.format("binaryFile").schema(LISTED).options(**options)
    listed = listed.option("pathGlobFilter", named) if named is not None else listed
    ranges = _dealt(session, listed.load(source.path).select("path", "length"))
    return ranges.mapInArrow(LineReading(source.largest), "_text BINARY, _broken STRING, _file STRING")


def _dealt(session: SparkSession, files: DataFrame) -> DataFrame:
    """Cut files into ranges and deal them to tasks: one large file is read by several, in order.

    Small files stay where Spark has put them, which is by their size; of a large one, a later range never goes to
    an earlier task.
    """
    length, tasks = F.col("length"), count_tasks_per_shard(session, 1)
    is_packed = reduce(Column.__or__, (F.col("path").endswith(end) for end in PACKED_NAMES))
    whole = is_packed | (length <= RANGE)
    starts = F.when(whole, F.array(F.lit(0).cast("long"))).otherwise(F.sequence(F.lit(0), length - 1, F.lit(RANGE)))
    task = F.when(whole, F.spark_partition_id() % tasks).otherwise(F.floor(F.col("start") * tasks / length)).cast("int")
    stop = F.when(whole, F.lit(END)).otherwise(F.col("start") + RANGE)
    ranges = files.select("path", "length", F.explode(starts).alias("start"))
    ranges = ranges.select("path", "start", stop.alias("stop"), task.alias("task"))
    return ranges.repartitionById(tasks, F.col("task")).select("path", "start", "stop")


def table_of(columns: StructType, *, nested: bool) -> Table:
    """Return the columns as Arrow has them; those that a file cannot hold are refused together."""
    kinds = [(field, arrow_type_of(field.dataType)) for field in columns]
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
