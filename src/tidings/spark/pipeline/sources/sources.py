"""Each kind of source as a streaming DataFrame with the declared columns.

After the columns (for Kafka also the record's metadata) and the derived ones come two hidden columns: `_refused`, why
a row could not be read, and `_raw`, its raw text. Good rows have null in both. No content of a file or a record
stops the query: every line is one row, good or refused. A source without columns gives documents (`document_stream`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from tidings.configuration.local_paths import to_local_path
from tidings.errors import BadFrame
from tidings.spark.pipeline.sources import document_stream, file_stream
from tidings.spark.pipeline.sources.event_folder import EventFolderSettings, stream_folder
from tidings.spark.pipeline.sources.file_stream import COMPRESSED_NAMES, PLAIN_NAMES, stream_lines
from tidings.spark.pipeline.sources.json_decode import decode_json, decode_plain_text
from tidings.spark.pipeline.sources.size_limits import DEFAULT_TUNING, ReadTuning, cut_large_texts
from tidings.spark.schema import to_column

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import Column, SparkSession

    from tidings.spark.pipeline.config.settings import SourceSettings

KAFKA_COLUMNS = (
    "key STRING, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, headers MAP<STRING, STRING>"
)
"""The metadata of a Kafka record, in the column `kafka`."""

HIDDEN = ("_refused", "_raw")
"""The last columns of every source: why a row was refused, and its raw text."""

_BLANK = " \t\r\u00a0"


def stream_events(
    session: SparkSession,
    source: SourceSettings,
    derived: Mapping[str, str],
    tuning: ReadTuning = DEFAULT_TUNING,
    *,
    log: Path | None = None,
) -> DataFrame:
    """Return the source's events as a stream: columns, derived columns, `_refused`, `_raw`.

    `log` is the query's own file of what it has read of a service's folder of events (`event_folder`).
    """
    if isinstance(source, EventFolderSettings):
        return add_derived_columns(stream_folder(session, source, log), derived)
    if source.has_documents:
        return add_derived_columns(_stream_documents(session, source, tuning), derived)
    match source.kind:
        case "csv" | "parquet":
            events = file_stream.stream_rows(session, source, build_columns(source))
        case "rate":
            rows = session.readStream.format("rate").options(**source.options).load()
            nothing = F.lit(None).cast("string")
            events = rows.select("timestamp", "value", nothing.alias("_refused"), nothing.alias("_raw"))
        case "json":
            events = _decode(_drop_blank_lines(_stream_json_lines(session, source, tuning)), source)
        case "socket":
            events = _decode(_drop_blank_lines(_stream_socket(session, source)), source)
        case "kafka":
            events = _decode(cut_large_texts(_stream_records(session, source), source.largest), source)
    return add_derived_columns(events, derived)


def build_columns(source: SourceSettings) -> StructType:
    """Return the columns that filters and derived SQL see; needs a session, since Spark parses the types."""
    if source.kind == "rate":
        return StructType([StructField("timestamp", TimestampType()), StructField("value", LongType())])
    columns = document_stream.build_columns(source) if source.has_documents else _parse_columns(source)
    if source.kind == "kafka":
        return StructType([*columns, StructField("kafka", StructType.fromDDL(KAFKA_COLUMNS))])
    return columns


def _parse_columns(source: SourceSettings) -> StructType:
    """Return the declared columns, all nullable: any of them may be missing in an event."""
    if source.kind in ("kafka", "socket") and source.value == "text":
        return StructType([StructField("value", StringType())])
    columns = StructType.fromDDL(source.columns or "")
    if not isinstance(columns, StructType) or not columns.names:
        msg = f"the source's columns must be names and types, such as `id BIGINT, price DOUBLE`, not `{source.columns}`"
        raise BadFrame(msg)
    return columns.toNullable()


def _stream_documents(session: SparkSession, source: SourceSettings, tuning: ReadTuning) -> DataFrame:
    """Return events as documents; those in files of this machine are decoded where they are read."""
    match source.kind:
        case "kafka":
            return document_stream.decode(cut_large_texts(_stream_records(session, source), source.largest), source)
        case "socket":
            return document_stream.decode(_stream_socket(session, source), source)
        case _:
            if not _is_read_by_workers(source):
                return document_stream.decode(_stream_json_lines(session, source, tuning), source)
            decoder = document_stream.build_decoder(source)
            patterns = [None] if "pathGlobFilter" in source.options else [PLAIN_NAMES, COMPRESSED_NAMES]
            streams = [
                stream_lines(session, source, pattern=pattern, tuning=tuning, decode=decoder) for pattern in patterns
            ]
            return document_stream.name_columns(reduce(DataFrame.unionByName, streams), source)


def _decode(texts: DataFrame, source: SourceSettings) -> DataFrame:
    """Return the texts in `_text` as columns; a row that reading has refused (`_broken`, `_file`) stays refused."""
    keep = [name for name in texts.columns if name != "_text"]
    if source.kind != "json" and source.value == "text":
        rows = decode_plain_text(texts, keep=keep)
    else:
        rows = decode_json(texts, _parse_columns(source), keep=keep, options=source.options)
    refusals = (F.coalesce("_broken", "_refused").alias("_refused"), F.coalesce("_file", "_raw").alias("_raw"))
    order = [*(name for name in rows.columns if name not in (*keep, *HIDDEN)), *keep]
    return rows.select(*(to_column(name) for name in order if name not in ("_broken", "_file")), *refusals)


def _drop_blank_lines(lines: DataFrame) -> DataFrame:
    return lines.filter((F.btrim(F.col("_text"), F.lit(_BLANK)) != "") | F.col("_broken").isNotNull())


def _stream_json_lines(session: SparkSession, source: SourceSettings, tuning: ReadTuning) -> DataFrame:
    """Return the lines of files of JSON lines.

    There are two streams, of compressed files and of all others, unless the options select files by name: Spark's
    checkpoint counts the streams of a query, so their number is part of the checkpoint's format.
    """
    chosen = "pathGlobFilter" in source.options
    if _is_read_by_workers(source):
        texts = _cast_to_text(stream_lines(session, source, pattern=None if chosen else PLAIN_NAMES, tuning=tuning))
    else:
        options = {**file_stream.LISTING_OPTIONS, "pathGlobFilter": PLAIN_NAMES, **source.options}
        lines = session.readStream.format("text").options(**options).load(source.path)
        texts = cut_large_texts(lines.select(F.col("value").alias("_text")), source.largest)
    if not chosen:
        texts = texts.unionByName(_cast_to_text(stream_lines(session, source, pattern=COMPRESSED_NAMES, tuning=tuning)))
    return texts


def _is_read_by_workers(source: SourceSettings) -> bool:
    """Tell whether our workers read the files of lines, and not Spark.

    A remote path may need Spark's settings to be reached, and Spark alone knows its own ends of lines.
    """
    is_local = source.path is not None and to_local_path(source.path) is not None
    return is_local and not {"lineSep", "wholetext"} & set(source.options)


def _stream_socket(session: SparkSession, source: SourceSettings) -> DataFrame:
    reader = session.readStream.format("socket").options(**source.options)
    lines = reader.option("host", source.host or "localhost").option("port", source.port or 0).load()
    return cut_large_texts(lines.select(F.col("value").alias("_text")), source.largest)


def _cast_to_text(lines: DataFrame) -> DataFrame:
    return lines.select(F.col("_text").cast("string").alias("_text"), "_broken", "_file")


def _stream_records(session: SparkSession, source: SourceSettings) -> DataFrame:
    reader = session.readStream.format("kafka").option("includeHeaders", "true").options(**source.options)
    if source.servers is not None:
        reader = reader.option("kafka.bootstrap.servers", source.servers)
    if source.topic is not None:
        reader = reader.option("subscribe", source.topic)
    metadata = F.struct(to_text_column("key"), "topic", "partition", "offset", "timestamp", _build_headers())
    return reader.load().select(metadata.alias("kafka"), F.col("value").cast("string").alias("_text"))


def to_text_column(name: str) -> Column:
    """Return a binary column of Kafka as text; invalid UTF-8 is replaced."""
    return F.make_valid_utf8(F.col(name).cast("string")).alias(name)


def _build_headers() -> Column:
    """Return the headers as a map; of a name that occurs several times, the last one counts."""
    entries = F.col("headers")
    last = F.filter(
        entries,
        lambda header, place: (
            ~F.exists(F.slice(entries, place + 2, F.size(entries)), lambda later: later["key"] == header["key"])
        ),
    )
    pairs = F.transform(last, lambda header: F.struct(header["key"], F.make_valid_utf8(header["value"].cast("string"))))
    return F.map_from_entries(pairs).alias("headers")


# Derived columns ---------------------------------------------------------------------------------


def add_derived_columns(frame: DataFrame, derived: Mapping[str, str]) -> DataFrame:
    """Add columns that Spark SQL derives, each of which may use the earlier ones; a row on which one fails is refused.

    Spark 4 throws at `1/0`, at a bad cast, at an index out of bounds, and one such row would stop the query. Turning
    that off for the session would not do: numbers would overflow in silence, and `raise_error`, `url_decode` or a bad
    regular expression throw all the same. So every expression is tried first: Spark's `try_to_binary` gives null for
    whatever its argument throws (tests/spark/pipeline/sources/test_sources.py checks that), and only where that
    succeeds is the value computed. An expression is computed twice, which for the usual ones is little beside decoding
    the event.
    """
    for name, sql in derived.items():
        tried = frame.withColumn("_went_well", F.when(F.col("_refused").isNull(), _can_compute(F.expr(sql))))
        value = F.when(F.col("_went_well"), F.expr(sql)).alias(name)
        failed = F.when(~F.col("_went_well"), F.lit(f"derived `{name}` cannot be computed from this row"))
        columns = [to_column(column) for column in frame.columns if column not in HIDDEN]
        frame = tried.select(*columns, value, F.coalesce("_refused", failed).alias("_refused"), "_raw")
    return frame


def _can_compute(expression: Column) -> Column:
    """Return whether the expression can be computed, by computing it.

    The size of an array needs its elements but not their values. The partition's number is no constant to Spark, so
    this is not merged with the projection that computes the value: merged, Spark may compute the common part
    first, outside of the try.
    """
    size = F.size(F.array(expression)).cast("string")
    return F.try_to_binary(size, F.lit("utf-8")).isNotNull() & (F.spark_partition_id() >= 0)
