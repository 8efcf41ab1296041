"""Where events come from: each kind of source as one streaming DataFrame of the declared columns.

Beside the columns (and, for Kafka, what Kafka says of the record) and the derived ones there are two hidden
columns at the end: `_refused`, why a row could not be read, and `_raw`, its raw text. Good rows have null in both.
Nothing that stands in a file or a record stops the query, and every line is one row here, good or refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from tidings.errors import BadFrame
from tidings.spark.pipeline.sinks.batch_folders import local_path
from tidings.spark.pipeline.sources.derived_columns import with_derived
from tidings.spark.pipeline.sources.directory import LISTING, PACKED, UNPACKED, lines_of_files, rows_of_files
from tidings.spark.pipeline.sources.json_decode import decoded, plain_text
from tidings.spark.pipeline.sources.size_limits import bounded
from tidings.spark.schema import to_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from tidings.spark.pipeline.config.settings import SourceSettings

KAFKA = "key STRING, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, headers MAP<STRING, STRING>"
"""What Kafka says of a record, in the column `kafka`."""

_BLANK = " \t\r\u00a0"


def events_of(session: SparkSession, source: SourceSettings, derived: Mapping[str, str]) -> DataFrame:
    """Return the source's events as a stream: columns, derived columns, `_refused`, `_raw`."""
    match source.kind:
        case "csv" | "parquet":
            events = rows_of_files(session, source, columns_of(source))
        case "rate":
            rows = session.readStream.format("rate").options(**source.options).load()
            nothing = F.lit(None).cast("string")
            events = rows.select("timestamp", "value", nothing.alias("_refused"), nothing.alias("_raw"))
        case "json":
            events = _of_lines(session, source)
        case "socket":
            lines = bounded(_socket(session, source), source.largest)
            events = _sound(_decoded(_written(lines), source, "_broken", "_file"))
        case "kafka":
            records = bounded(_records(session, source), source.largest)
            events = _sound(_decoded(records, source, "kafka", "_broken", "_file"))
    return with_derived(events, derived)


def columns_of(source: SourceSettings) -> StructType:
    """Return the columns that filters and derived SQL see; a session must run, since Spark reads the words."""
    if source.kind == "rate":
        return StructType([StructField("timestamp", TimestampType()), StructField("value", LongType())])
    columns = _declared(source)
    if source.kind == "kafka":
        return StructType([*columns, StructField("kafka", StructType.fromDDL(KAFKA))])
    return columns


def _declared(source: SourceSettings) -> StructType:
    """Return the declared columns, each nullable whatever was said: any of them may be missing in an event."""
    if source.kind in ("kafka", "socket") and source.value == "text":
        return StructType([StructField("value", StringType())])
    columns = StructType.fromDDL(source.columns or "")
    if not isinstance(columns, StructType) or not columns.names:
        msg = f"the source's columns must be names and types, such as `id BIGINT, price DOUBLE`, not `{source.columns}`"
        raise BadFrame(msg)
    return columns.toNullable()


def _decoded(texts: DataFrame, source: SourceSettings, *kept: str) -> DataFrame:
    """Return the texts as columns; what Kafka says of a record comes after them."""
    columns = _declared(source)
    is_text = source.kind != "json" and source.value == "text"
    rows = plain_text(texts, kept=kept) if is_text else decoded(texts, columns, kept=kept, options=source.options)
    if not kept:
        return rows
    order = [name for name in rows.columns if name not in (*kept, "_refused", "_raw")]
    return rows.select(*map(to_column, order), *kept, "_refused", "_raw")


def _written(lines: DataFrame) -> DataFrame:
    """Leave out the lines where nothing is written."""
    return lines.filter((F.btrim(F.col("_text"), F.lit(_BLANK)) != "") | F.col("_broken").isNotNull())


def _lines(session: SparkSession, source: SourceSettings) -> DataFrame:
    reader = session.readStream.format("text").options(**{**LISTING, **source.options})
    return reader.load(source.path).select(F.col("value").alias("_text"))


def _of_lines(session: SparkSession, source: SourceSettings) -> DataFrame:
    """Return the events of files of JSON lines.

    There are two streams of files, those that are packed and all others, unless the options choose the files: so it
    was when Spark read the latter, and the checkpoint of a pipeline counts its streams.
    """
    chosen = "pathGlobFilter" in source.options
    others = source if chosen else replace(source, options={**source.options, "pathGlobFilter": UNPACKED})
    if _is_ours(source):
        texts = _as_text(lines_of_files(session, source, named=None if chosen else UNPACKED))
    else:
        texts = bounded(_lines(session, others), source.largest)
    if not chosen:
        texts = texts.unionByName(_as_text(lines_of_files(session, source, named=PACKED)))
    return _sound(_decoded(_written(texts), source, "_broken", "_file"))


def _is_ours(source: SourceSettings) -> bool:
    """Tell whether our workers read the lines; what is remote may need Spark's own settings to be reached."""
    usual = not {"lineSep", "wholetext"} & set(source.options)
    return usual and source.path is not None and local_path(source.path) is not None


def _as_text(lines: DataFrame) -> DataFrame:
    return lines.select(F.col("_text").cast("string").alias("_text"), "_broken", "_file")


def _sound(rows: DataFrame) -> DataFrame:
    """Put together why a row could not be read, and what it was: what was wrong before it was decoded comes first."""
    told = {"_refused": F.coalesce("_broken", "_refused"), "_raw": F.coalesce("_file", "_raw")}
    return rows.withColumns(told).drop("_broken", "_file")


def _socket(session: SparkSession, source: SourceSettings) -> DataFrame:
    reader = session.readStream.format("socket").options(**source.options)
    lines = reader.option("host", source.host or "localhost").option("port", source.port or 0).load()
    return lines.select(F.col("value").alias("_text"))


def _records(session: SparkSession, source: SourceSettings) -> DataFrame:
    reader = session.readStream.format("kafka").option("includeHeaders", "true").options(**source.options)
    if source.servers is not None:
        reader = reader.option("kafka.bootstrap.servers", source.servers)
    if source.topic is not None:
        reader = reader.option("subscribe", source.topic)
    about: list[Column] = [text_of("key"), *map(F.col, ("topic", "partition", "offset", "timestamp")), _headers()]
    return reader.load().select(F.struct(*about).alias("kafka"), F.col("value").cast("string").alias("_text"))


def text_of(name: str) -> Column:
    """Return bytes of Kafka's as text; what is not UTF-8 is marked in it."""
    return F.make_valid_utf8(F.col(name).cast("string")).alias(name)


def _headers() -> Column:
    """Return the headers as a map; a name may stand several times in Kafka, and the last one counts."""
    entries = F.col("headers")
    last = F.filter(
        entries,
        lambda one, place: (
            ~F.exists(F.slice(entries, place + 2, F.size(entries)), lambda later: later["key"] == one["key"])
        ),
    )
    pairs = F.transform(last, lambda one: F.struct(one["key"], F.make_valid_utf8(one["value"].cast("string"))))
    return F.map_from_entries(pairs).alias("headers")
