"""Casts of Arrow columns to declared types that find the rows which do not fit.

A whole column is cast in one call. Only when that fails is it halved, again and again, until each bad value is alone:
n good values and k bad ones cost about k log n small casts, and no value becomes a Python object. Text is parsed as
a number, a time or a boolean; numbers are cast to other number types when nothing is lost; anything is cast to text.
A number is never read as a time or a boolean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_FINER_SECONDS = r"(\.\d{6})\d+"
"""Digits of a second beyond microseconds, which Arrow's parser refuses and Spark does not keep."""


@dataclass(frozen=True, slots=True)
class CastColumn:
    """A column of the declared type, null where a value did not fit, and which rows those are."""

    values: pa.Array
    bad: npt.NDArray[np.bool_]


def cast_column(column: pa.Array, kind: pa.DataType) -> CastColumn:
    """Cast a column to a type."""
    column = _remove_encoding(column)
    if column.type.equals(kind):
        return CastColumn(column, np.zeros(len(column), np.bool_))
    if _get_family(column.type) == "bytes" and _get_family(kind) != "bytes":
        text = _cast(column, pa.string())
        parsed = cast_column(text.values, kind)
        return CastColumn(parsed.values, parsed.bad | text.bad)
    if not _can_cast(column.type, kind):
        return _reject_all(column, kind)
    if pa.types.is_string(column.type) and not pa.types.is_string(kind):
        return _parse_texts(column, kind)
    return _cast(column, kind)


def _remove_encoding(column: pa.Array) -> pa.Array:
    """Convert dictionary and large types into plain ones with the same values."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _remove_encoding(column.cast(kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    return column


def _parse_texts(column: pa.Array, kind: pa.DataType) -> CastColumn:
    """Parse texts; spaces around them, as in `1, 2`, are ignored."""
    trimmed = pc.utf8_trim_whitespace(column)
    if not pa.types.is_timestamp(kind):
        return _cast(trimmed, kind)
    trimmed = pc.replace_substring_regex(trimmed, _FINER_SECONDS, r"\1")
    return _cast(trimmed, kind) if kind.tz is None else _parse_moments(trimmed, kind)


def _parse_moments(column: pa.Array, kind: pa.DataType) -> CastColumn:
    """Parse times with a zone, then those without one as UTC."""
    zoned = _cast(column, kind)
    if not zoned.bad.any():
        return zoned
    rest = pc.if_else(pa.array(zoned.bad), column, pa.scalar(None, pa.string()))
    naive = _cast(rest, pa.timestamp(kind.unit))
    return CastColumn(pc.coalesce(zoned.values, naive.values.cast(kind)), naive.bad)


def _cast(column: pa.Array, kind: pa.DataType) -> CastColumn:
    # A time finer than Spark's microseconds loses what Spark cannot hold anyway.
    options = pc.CastOptions(kind, allow_time_truncate=True)
    try:
        return CastColumn(pc.cast(column, options=options), np.zeros(len(column), np.bool_))
    except pa.ArrowNotImplementedError:
        return _reject_all(column, kind)
    except pa.ArrowInvalid:
        if len(column) == 1:
            return _reject_all(column, kind)
    half = len(column) // 2
    left, right = _cast(column[:half], kind), _cast(column[half:], kind)
    return CastColumn(pa.concat_arrays([left.values, right.values]), np.concatenate([left.bad, right.bad]))


def _reject_all(column: pa.Array, kind: pa.DataType) -> CastColumn:
    """Return only nulls; every value that is not null is bad."""
    return CastColumn(pa.nulls(len(column), kind), column.is_valid().to_numpy(zero_copy_only=False))


def _can_cast(kind: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_string(kind) or pa.types.is_null(kind):
        return not pa.types.is_nested(other)
    if pa.types.is_string(other):
        return not pa.types.is_nested(kind)
    return _get_family(kind) == _get_family(other)


def _get_family(kind: pa.DataType) -> str:
    """Return the family of a type; only types of one family are cast into each other."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "time"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "bytes"
    if types.is_map(kind):
        return "map"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    return "struct" if types.is_struct(kind) else str(kind)
