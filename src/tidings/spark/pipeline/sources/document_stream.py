"""Texts of JSON objects as events that stay whole: the column `document`, and those of the id and the time.

The id and the time are fields of the document, also of a nested object (`ce.source`), and columns of their own, which
`[duplicates]`, lateness and sinks need. What is no JSON object, or has no id where one is asked for, is refused. With
Kafka, an id such as `kafka.key` is the record's and not the document's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from tidings.spark.documents import DecodeStep, DocumentFields
from tidings.spark.pipeline.sources.file_stream import LineDecoder
from tidings.spark.schema import to_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidings.spark.pipeline.config.settings import SourceSettings

_RECORD = "kafka."
"""What names of a record's own fields begin with."""


def build_columns(source: SourceSettings) -> StructType:
    """Return the columns of documents: the text, the id and the time."""
    kinds = {find_fields(source).time: TimestampType()}
    return StructType([StructField(name, kinds.get(name, StringType())) for name in find_fields(source).names])


def find_fields(source: SourceSettings) -> DocumentFields:
    """Return the fields of documents that are columns of their own."""
    id, time = (
        None if name is None or (source.kind == "kafka" and name.startswith(_RECORD)) else name
        for name in (source.id, source.time)
    )
    return DocumentFields(id, time)


def build_decoder(source: SourceSettings) -> LineDecoder:
    """Return what makes documents of lines; its columns are called by their places, until `name_columns`."""
    return LineDecoder(DecodeStep(find_fields(source)), _number_columns(source))


def _number_columns(source: SourceSettings) -> StructType:
    kinds = {field.name: field.dataType for field in build_columns(source)}
    names = [*find_fields(source).names, "_refused", "_raw"]
    return StructType([StructField(f"_{place}", kinds.get(name, StringType())) for place, name in enumerate(names)])


def name_columns(rows: DataFrame, source: SourceSettings) -> DataFrame:
    """Return rows of a decoder under their names."""
    names = [*find_fields(source).names, *rows.columns[len(find_fields(source).names) : -2], "_refused", "_raw"]
    return rows.select(*(to_column(column).alias(name) for column, name in zip(rows.columns, names, strict=True)))


def decode(texts: DataFrame, source: SourceSettings) -> DataFrame:
    """Return the texts in `_text` as documents, in a worker; other columns come along after them."""
    others = tuple(name for name in texts.columns if name not in ("_text", "_broken", "_file"))
    step = DecodeStep(find_fields(source), others, drops_blank=source.kind != "kafka")
    kinds = _number_columns(source)
    fields = [*kinds.fields[:-2], *(texts.schema[name] for name in others), *kinds.fields[-2:]]
    texts = texts.withColumn("_text", F.col("_text").cast("binary"))
    return name_columns(texts.mapInArrow(step, StructType(fields)), source)
