"""JSON texts into declared columns by Spark's `from_json`; a row that does not fit is refused with a reason.

The text is wrapped as `{"r": TEXT}` first: `from_json` reads a text up to the end of its first value and ignores what
follows, so of `{"id":1} {"id":2}` the second would be lost. Rows that decode cost one `from_json`. The others are
parsed once more with every column as text, which finds the fields at fault; a number in quotes ("8500") is accepted.
New fields are ignored, missing ones are null; names are case-sensitive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql import types
from pyspark.sql.types import DataType, StringType, StructField, StructType

from tidings.spark.pipeline.sources.size_limits import QUOTED_LENGTH
from tidings.spark.schema import to_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

_CORRUPT = "_tidings_corrupt"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",  # Spark would take {'a': NaN} for JSON
    "allowNonNumericNumbers": "false",
}
FORMATS = ("dateFormat", "timestampFormat", "timestampNTZFormat", "timeZone", "locale")
"""Options of Spark's JSON reader that are passed to `from_json`."""

_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
"""Text that is a number; Spark's cast would take `5d` and `NaN` too."""

_NESTED = (StructType, types.ArrayType, types.MapType, types.VariantType)


def decode_json(frame: DataFrame, columns: StructType, *, keep: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Decode the JSON texts in `_text`: the columns of `keep`, the declared ones, `_refused` and `_raw`."""
    parser_options = {**_OPTIONS, **{name: options[name] for name in FORMATS if name in options}}
    texts = StructType([StructField(field.name, StringType()) for field in columns])
    first, again = F.col("_first"), F.col("_again")
    frame = frame.select(*keep, "_text", _parse(F.col("_text"), columns, parser_options).alias("_first"))
    whole = first[_CORRUPT].isNull() & first["r"].isNotNull() & F.is_valid_utf8("_text")
    frame = frame.withColumn("_whole", F.coalesce(whole, F.lit(False)))
    frame = frame.withColumn("_again", F.when(~F.col("_whole"), _parse(F.col("_text"), texts, parser_options)))
    read = [_build_value(field, first, again).alias(field.name) for field in columns]
    frame = frame.select(*keep, "_text", "_whole", "_again", *read)
    reason = _build_reason(columns, again, parser_options).alias("_refused")
    frame = frame.select(*keep, *map(to_column, columns.names), reason, "_text")
    return frame.select(*keep, *map(to_column, columns.names), "_refused", build_raw().alias("_raw"))


def decode_plain_text(frame: DataFrame, *, keep: Sequence[str]) -> DataFrame:
    """Rename the texts in `_text`: the columns of `keep`, `value`, `_refused` and `_raw`."""
    frame = frame.select(*keep, "_text", _explain_unreadable().alias("_refused"))
    value = F.when(F.col("_refused").isNull(), F.col("_text"))
    return frame.select(*keep, value.alias("value"), "_refused", build_raw().alias("_raw"))


def build_raw() -> Column:
    """Return the text of a refused row, in valid UTF-8, which Python workers need."""
    return F.when(F.col("_refused").isNotNull(), F.make_valid_utf8("_text"))


def format_type(kind: DataType) -> str:
    """Return a type as `pipeline.toml` writes it."""
    return kind.simpleString() if isinstance(kind, _NESTED) else kind.simpleString().upper()


def _parse(text: Column, kind: DataType, options: Mapping[str, str]) -> Column:
    schema = StructType([StructField("r", kind), StructField(_CORRUPT, StringType())])
    return F.from_json(F.concat(F.lit('{"r":'), text, F.lit("}")), schema, dict(options))


def _build_value(field: StructField, first: Column, again: Column) -> Column:
    read = first["r"].getField(field.name)
    if not isinstance(field.dataType, types.NumericType):
        return read
    text = again["r"].getField(field.name)
    return F.coalesce(read, F.when(text.rlike(_NUMBER), text.try_cast(field.dataType)))


def _build_reason(columns: StructType, again: Column, options: Mapping[str, str]) -> Column:
    """Return the reason of a refused row: every field that does not fit, or what the text is instead of an object."""
    faults = F.concat_ws("; ", *(_build_fault(field, again["r"].getField(field.name), options) for field in columns))
    is_object = again[_CORRUPT].isNull() & again["r"].isNotNull()
    return (
        F.when(F.col("_whole"), None)  # first: good rows pay for nothing below
        .when(_explain_unreadable().isNotNull(), _explain_unreadable())
        .when(~F.coalesce(is_object, F.lit(False)), _explain_no_object())
        .when(faults != "", faults)
    )


def _build_fault(field: StructField, text: Column, options: Mapping[str, str]) -> Column:
    """Return what is wrong with a field, or null; of a nested value, a part may fit where another does not."""
    if isinstance(field.dataType, StringType):
        return F.lit(None).cast("string")
    bad = to_column(field.name).isNull()
    if isinstance(field.dataType, _NESTED):
        bad |= _parse(text, field.dataType, options)[_CORRUPT].isNotNull()
    words = F.concat(F.lit(f"`{field.name}`: "), _quote(text), F.lit(f" does not fit {format_type(field.dataType)}"))
    return F.when(text.isNotNull() & bad, words)


def _explain_unreadable() -> Column:
    """Return the reason of a text that is null or not UTF-8, or null."""
    text = F.col("_text")
    not_utf8 = F.concat(F.lit("not UTF-8: "), _quote(F.make_valid_utf8(text)))
    return F.when(text.isNull(), "no value (null)").when(~F.is_valid_utf8(text), not_utf8)


def _explain_no_object() -> Column:
    text = F.col("_text")
    prefix = F.when(F.try_parse_json(text).isNotNull(), "not one JSON object: ").otherwise("not JSON: ")
    return F.when(text == "", "an empty value").otherwise(F.concat(prefix, _quote(text)))


def _quote(text: Column) -> Column:
    short = F.concat(F.left(text, F.lit(QUOTED_LENGTH)), F.lit("…"))
    return F.concat(F.lit("'"), F.when(F.length(text) > QUOTED_LENGTH, short).otherwise(text), F.lit("'"))
