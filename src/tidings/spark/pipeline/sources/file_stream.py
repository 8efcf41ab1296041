"""New files of a directory as rows: Spark lists and remembers the files, our workers read them.

Spark's file stream (which files are new, how many in a batch, what a retried batch had) is used as it is, through
the format `binaryFile` with the path alone selected: Spark then does not open the files. `table_files` reads each
of them inside `mapInArrow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import StringType, StructField, StructType

from tidings.errors import BadFrame
from tidings.spark.pipeline.sources import table_files
from tidings.spark.pipeline.sources.csv_stream import CsvFormat
from tidings.spark.pipeline.sources.json_decode import format_type
from tidings.spark.pipeline.sources.line_cutter import END_OF_FILE
from tidings.spark.pipeline.sources.size_limits import DEFAULT_TUNING, ReadTuning
from tidings.spark.pipeline.sources.table_files import FileReader, TargetTable
from tidings.spark.schema import find_arrow_type
from tidings.spark.subscriptions.compile_frame import count_tasks_per_shard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidings.spark.pipeline.config.settings import Options, SourceSettings

LISTING_COLUMNS = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
"""The columns of the format `binaryFile`, which a stream must declare."""

LISTING_OPTIONS = {
    # Without it a folder `day=1` beside plain files hides those, and a `?` in one name doubles others (Spark 4.3).
    "recursiveFileLookup": "true",
    # A file that was renamed or removed before its batch would stop the query, and every restart of it.
    "ignoreMissingFiles": "true",
}
"""Options for listing a directory; those of the source win."""

LINE_COLUMNS = "_text BINARY, _broken STRING, _file STRING"
"""The columns of lines: the bytes, and of what could not be read why, and what is known of it."""

BatchStep: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What workers run over Arrow batches."""

COMPRESSED_NAMES, PLAIN_NAMES = "*z", "*[^z]"
"""Glob patterns of compressed files (`.gz`, `.lz4`), and of all others; any other name on `z` is read as it is."""

LINE_TABLE = TargetTable(pa.schema([("_text", pa.binary())]), ("BINARY",))
"""The column of a file of lines."""

CSV_OPTIONS = {"header", "sep", "delimiter", "quote", "escape", "nullValue", "encoding", "charset", "multiLine"}
"""Options of Spark's CSV reader that ours knows too; all others go to the listing."""


class LineDecoder(NamedTuple):
    """A step that makes columns of lines, and those columns."""

    step: BatchStep
    columns: StructType


def read_files(batches: Iterator[pa.RecordBatch], *, table: TargetTable, read: FileReader) -> Iterator[pa.RecordBatch]:
    """Read, in a worker, the files of the column `path`; other columns are keyword arguments of `read`: a range."""
    for batch in batches:
        for row in batch.to_pylist():
            path = row.pop("path")
            yield from table_files.read_safely(path, table, partial(read, **row))


def stream_rows(session: SparkSession, source: SourceSettings, columns: StructType) -> DataFrame:
    """Return the rows of a directory's CSV or Parquet files: the columns, `_refused` and `_raw`."""
    read, csv_options = partial(table_files.read_parquet, largest=source.largest), set[str]()
    if source.kind == "csv":
        form = to_csv_format(source.options)
        read, csv_options = partial(table_files.read_csv, form=form, largest=source.largest), CSV_OPTIONS
    listing = {name: value for name, value in source.options.items() if name not in csv_options}
    listed = session.readStream.format("binaryFile").schema(LISTING_COLUMNS).options(**{**LISTING_OPTIONS, **listing})
    hidden = [StructField(name, StringType()) for name in ("_refused", "_raw")]
    step = partial(read_files, table=to_target_table(columns, nested=source.kind != "csv"), read=read)
    return listed.load(source.path).select("path").mapInArrow(step, StructType([*columns, *hidden]))


def stream_lines(
    session: SparkSession,
    source: SourceSettings,
    *,
    pattern: str | None,
    tuning: ReadTuning = DEFAULT_TUNING,
    decode: LineDecoder | None = None,
) -> DataFrame:
    """Return the lines of files as bytes in `_text`, and in `_broken` and `_file` what could not be read, and why.

    Spark's own reader stops the query at a broken compressed file, at every restart again, and keeps a line of any
    length in memory. `pattern` selects files by name. With `decode`, what that makes of them, in the same workers.
    """
    options = {**LISTING_OPTIONS, **source.options}
    listed = session.readStream.format("binaryFile").schema(LISTING_COLUMNS).options(**options)
    listed = listed.option("pathGlobFilter", pattern) if pattern is not None else listed
    ranges = _spread_ranges(session, listed.load(source.path).select("path", "length"), tuning.range_bytes)
    step = partial(read_files, table=LINE_TABLE, read=partial(table_files.read_lines, largest=source.largest))
    if decode is None:
        return ranges.mapInArrow(step, LINE_COLUMNS)
    return ranges.mapInArrow(partial(decode_lines, step=step, decode=decode.step), decode.columns)


def decode_lines(batches: Iterator[pa.RecordBatch], *, step: BatchStep, decode: BatchStep) -> Iterator[pa.RecordBatch]:
    """Decode, in a worker, the lines that a step reads."""
    return decode(batch.rename_columns(["_text", "_broken", "_file"]) for batch in step(batches))


def _spread_ranges(session: SparkSession, files: DataFrame, range_bytes: int) -> DataFrame:
    """Cut files into ranges and assign them to tasks: one large file is read by several, in order.

    Small files stay in the partitions that Spark chose by size; of a large one, a later range never goes to an
    earlier task.
    """
    length, tasks = F.col("length"), count_tasks_per_shard(session, 1)
    is_packed = reduce(Column.__or__, (F.col("path").endswith(end) for end in table_files.COMPRESSED_SUFFIXES))
    whole = is_packed | (length <= range_bytes)
    cut = F.sequence(F.lit(0), length - 1, F.lit(range_bytes))
    starts = F.when(whole, F.array(F.lit(0).cast("long"))).otherwise(cut)
    task = F.when(whole, F.spark_partition_id() % tasks).otherwise(F.floor(F.col("start") * tasks / length)).cast("int")
    stop = F.when(whole, F.lit(END_OF_FILE)).otherwise(F.col("start") + range_bytes)
    ranges = files.select("path", "length", F.explode(starts).alias("start"))
    ranges = ranges.select("path", "start", stop.alias("stop"), task.alias("task"))
    return ranges.repartitionById(tasks, F.col("task")).select("path", "start", "stop")


def to_target_table(columns: StructType, *, nested: bool) -> TargetTable:
    """Return the columns with Arrow types; those that such files cannot hold are refused together."""
    kinds = [(field, find_arrow_type(field.dataType)) for field in columns]
    wrong = [field for field, kind in kinds if kind is None or (not nested and pa.types.is_nested(kind))]
    if wrong:
        listing = ", ".join(f"`{field.name}` {format_type(field.dataType)}" for field in wrong)
        msg = f"these columns cannot be read from such files: {listing}; declare them STRING, or leave them out"
        raise BadFrame(msg)
    return TargetTable(
        pa.schema([(field.name, kind) for field, kind in kinds]),
        tuple(format_type(field.dataType) for field in columns),
    )


def to_csv_format(options: Options) -> CsvFormat:
    """Return the CSV dialect that Spark's options describe."""
    return CsvFormat(
        header=options.get("header", "true").strip().lower() == "true",
        separator=options.get("sep", options.get("delimiter", ",")),
        quote=options.get("quote", '"'),
        escape=options.get("escape"),
        null=options.get("nullValue", ""),
        encoding=options.get("encoding", options.get("charset", "utf-8")),
        several_lines=options.get("multiLine", "true").strip().lower() == "true",
    )
