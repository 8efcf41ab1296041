"""Each kind of source as a streaming DataFrame with the declared columns.

After the columns (for Kafka also the record's metadata) and the derived ones come two hidden columns: `_refused`, why
a row could not be read, and `_raw`, its raw text. Good rows have null in both. No content of a file or a record
stops the query: every line is one row, good or refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from tidings.errors import BadFrame
from tidings.spark.pipeline.sinks.batch_folders import to_local_path
from tidings.spark.pipeline.sources.derived_columns import add_derived_columns
from tidings.spark.pipeline.sources.directory import (
    COMPRESSED_NAMES,
    LISTING_OPTIONS,
    PLAIN_NAMES,
    stream_lines,
    stream_rows,
)
from tidings.spark.pipeline.sources.json_decode import decode_json, decode_plain_text
from tidings.spark.pipeline.sources.size_limits import DEFAULT_TUNING, ReadTuning, cut_large_texts
from tidings.spark.schema import to_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from tidings.spark.pipeline.config.settings import SourceSettings

KAFKA_COLUMNS = (
    "key STRING, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, headers MAP<STRING, STRING>"
)
"""The metadata of a Kafka record, in the column `kafka`."""

_BLANK = " \t\r\u00a0"


def stream_events(
    session: SparkSession, source: SourceSettings, derived: Mapping[str, str], tuning: ReadTuning = DEFAULT_TUNING
) -> DataFrame:
    """Return the source's events as a stream: columns, derived columns, `_refused`, `_raw`."""
    match source.kind:
        case "csv" | "parquet":
            events = stream_rows(session, source, build_columns(source))
        case "rate":
            rows = session.readStream.format("rate").options(**source.options).load()
            nothing = F.lit(None).cast("string")
            events = rows.select("timestamp", "value", nothing.alias("_refused"), nothing.alias("_raw"))
        case "json":
            events = _stream_json_lines(session, source, tuning)
        case "socket":
            lines = cut_large_texts(_stream_socket(session, source), source.largest)
            events = _merge_refusals(_decode(_drop_blank_lines(lines), source, "_broken", "_file"))
        case "kafka":
            records = cut_large_texts(_stream_records(session, source), source.largest)
            events = _merge_refusals(_decode(records, source, "kafka", "_broken", "_file"))
    return add_derived_columns(events, derived)


def build_columns(source: SourceSettings) -> StructType:
    """Return the columns that filters and derived SQL see; needs a session, since Spark parses the types."""
    if source.kind == "rate":
        return StructType([StructField("timestamp", TimestampType()), StructField("value", LongType())])
    columns = _parse_columns(source)
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


def _decode(texts: DataFrame, source: SourceSettings, *keep: str) -> DataFrame:
    """Return the texts as columns, with the columns of `keep` after them."""
    columns = _parse_columns(source)
    is_text = source.kind != "json" and source.value == "text"
    rows = (
        decode_plain_text(texts, keep=keep)
        if is_text
        else decode_json(texts, columns, keep=keep, options=source.options)
    )
    if not keep:
        return rows
    order = [name for name in rows.columns if name not in (*keep, "_refused", "_raw")]
    return rows.select(*map(to_column, order), *keep, "_refused", "_raw")


def _drop_blank_lines(lines: DataFrame) -> DataFrame:
    """Drop blank lines."""
    return lines.filter((F.btrim(F.col("_text"), F.lit(_BLANK)) != "") | F.col("_broken").isNotNull())


def _stream_remote_lines(session: SparkSession, source: SourceSettings) -> DataFrame:
    reader = session.readStream.format("text").options(**{**LISTING_OPTIONS, **source.options})
    return reader.load(source.path).select(F.col("value").alias("_text"))


def _stream_json_lines(session: SparkSession, source: SourceSettings, tuning: ReadTuning) -> DataFrame:
    """Return the events of files of JSON lines.

    There are two streams, of compressed files and of all others, unless the options select files by name: Spark's
    checkpoint counts the streams of a query, so their number is part of the checkpoint's format.
    """
    chosen = "pathGlobFilter" in source.options
    others = source if chosen else replace(source, options={**source.options, "pathGlobFilter": PLAIN_NAMES})
    if _is_read_here(source):
        texts = _cast_to_text(stream_lines(session, source, pattern=None if chosen else PLAIN_NAMES, tuning=tuning))
    else:
        texts = cut_large_texts(_stream_remote_lines(session, others), source.largest)
    if not chosen:
        texts = texts.unionByName(_cast_to_text(stream_lines(session, source, pattern=COMPRESSED_NAMES, tuning=tuning)))
    return _merge_refusals(_decode(_drop_blank_lines(texts), source, "_broken", "_file"))


def _is_read_here(source: SourceSettings) -> bool:
    """Tell whether our workers read the lines; a remote path may need Spark's settings to be reached."""
    usual = not {"lineSep", "wholetext"} & set(source.options)
    return usual and source.path is not None and to_local_path(source.path) is not None


def _cast_to_text(lines: DataFrame) -> DataFrame:
    return lines.select(F.col("_text").cast("string").alias("_text"), "_broken", "_file")


def _merge_refusals(rows: DataFrame) -> DataFrame:
    """Merge the refusals of reading and of decoding a row; those of reading win."""
    merged = {"_refused": F.coalesce("_broken", "_refused"), "_raw": F.coalesce("_file", "_raw")}
    return rows.withColumns(merged).drop("_broken", "_file")


def _stream_socket(session: SparkSession, source: SourceSettings) -> DataFrame:
    reader = session.readStream.format("socket").options(**source.options)
    lines = reader.option("host", source.host or "localhost").option("port", source.port or 0).load()
    return lines.select(F.col("value").alias("_text"))


def _stream_records(session: SparkSession, source: SourceSettings) -> DataFrame:
    reader = session.readStream.format("kafka").option("includeHeaders", "true").options(**source.options)
    if source.servers is not None:
        reader = reader.option("kafka.bootstrap.servers", source.servers)
    if source.topic is not None:
        reader = reader.option("subscribe", source.topic)
    about: list[Column] = [
        to_text_column("key"),
        *map(F.col, ("topic", "partition", "offset", "timestamp")),
        _build_headers(),
    ]
    return reader.load().select(F.struct(*about).alias("kafka"), F.col("value").cast("string").alias("_text"))


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
