"""Arrow types as attribute kinds, and Arrow rows as event mappings.

`find_kind` is the one table from scalar types to kinds: schemas, event columns and columns of parameters use it.
`to_rows` reads a table as mappings, the form in which events come that are not matched column by column. Nothing here
needs schemas or events, so both build on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.model.values import EventValue, Kind, Unreadable

if TYPE_CHECKING:
    import pyarrow as pa

# PyArrow is imported inside the functions: it takes a tenth of a second or more, and a program that only parses or
# matches mappings never needs it.


# Types ---------------------------------------------------------------------------------------------


def is_arrow(value: object) -> bool:
    """Tell whether a value is Arrow's, without importing Arrow to ask."""
    return type(value).__module__.partition(".")[0] == "pyarrow"


def find_kind(kind: pa.DataType) -> Kind | None:
    """Return the attribute kind of a scalar Arrow type: `OPAQUE` where there is none, None for nulls alone.

    >>> import pyarrow as pa
    >>> find_kind(pa.date32()), find_kind(pa.dictionary(pa.int8(), pa.string())), find_kind(pa.binary())
    (<Kind.TIME: 'time'>, <Kind.TEXT: 'text'>, <Kind.OPAQUE: 'opaque'>)
    """
    import pyarrow.types as t

    if t.is_boolean(kind):
        return Kind.BOOL
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return Kind.NUMBER
    if t.is_timestamp(kind) or t.is_date(kind):
        return Kind.TIME
    if t.is_dictionary(kind):
        return find_kind(kind.value_type)
    if is_text_type(kind):
        return Kind.TEXT
    return None if t.is_null(kind) else Kind.OPAQUE


def is_text_type(kind: pa.DataType) -> bool:
    """Tell whether a type is one of Arrow's types of text."""
    import pyarrow.types as t

    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def is_list_type(kind: pa.DataType) -> bool:
    """Tell whether a type is one of Arrow's types of lists."""
    import pyarrow.types as t

    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def limit_timestamp(kind: pa.TimestampType) -> pa.TimestampType:
    """Return the timestamp type nearest to `kind` that Python can hold: no nanoseconds, and UTC for any zone."""
    import pyarrow as pa

    return pa.timestamp("us" if kind.unit == "ns" else kind.unit, "UTC" if kind.tz else None)


# Rows ----------------------------------------------------------------------------------------------


def to_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, EventValue]]:
    """Return the rows as mappings; a value that Python cannot hold is `Unreadable`, and the others are read."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not table.num_columns:
        return [{} for _ in range(table.num_rows)]
    columns = [_to_list(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def to_values(array: pa.Array | pa.ChunkedArray) -> list[EventValue]:
    """Return the values of an array; one that Python cannot hold is `Unreadable`."""
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        return [_to_value(scalar) for scalar in array]


def _to_value(scalar: pa.Scalar) -> EventValue:
    """Return a value as Python's, part by part: what Python cannot hold is `Unreadable`."""
    import pyarrow.types as t

    try:
        return scalar.as_py()
    except (OverflowError, ValueError) as problem:
        if t.is_struct(scalar.type):
            return {name: _to_value(part) for name, part in scalar.items()}
        if t.is_list(scalar.type) or t.is_large_list(scalar.type):
            return [_to_value(part) for part in scalar.values]
        return Unreadable(str(problem))


def _to_list(column: pa.ChunkedArray) -> list[EventValue]:
    kind = _limit_timestamps(column.type)
    # The whole column first: one value that Python cannot hold makes `to_pylist` fail for all of them, and only then
    # is the column read value by value, which is many times slower.
    try:
        # Unsafe, because dropping nanoseconds loses digits: times of events are compared in microseconds everywhere.
        values = (column if kind == column.type else column.cast(kind, safe=False)).to_pylist()
    except (OverflowError, ValueError):
        if len(column) == 1:
            return [_to_value(column[0])]
        return [value for index in range(len(column)) for value in _to_list(column.slice(index, 1))]
    return [_to_dicts(value, column.type) for value in values] if _has_map(column.type) else values


def _limit_timestamps(kind: pa.DataType) -> pa.DataType:
    """Return the type with `limit_timestamp` applied wherever it has a timestamp."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(kind):
        return limit_timestamp(kind)
    if t.is_large_list(kind):
        return pa.large_list(_limit_field(kind.value_field))
    if t.is_list(kind):
        return pa.list_(_limit_field(kind.value_field))
    if t.is_struct(kind):
        return pa.struct([_limit_field(kind.field(number)) for number in range(kind.num_fields)])
    if t.is_map(kind):
        return pa.map_(kind.key_field, _limit_field(kind.item_field))
    return kind


def _limit_field(field: pa.Field) -> pa.Field:
    return field.with_type(_limit_timestamps(field.type))


def _has_map(kind: pa.DataType) -> bool:
    import pyarrow.types as t

    return t.is_map(kind) or any(_has_map(kind.field(number).type) for number in range(kind.num_fields))


def _to_dicts(value: EventValue, kind: pa.DataType) -> EventValue:
    """Return a value with its maps, which Arrow gives as lists of pairs, as mappings."""
    import pyarrow.types as t

    if value is None or not _has_map(kind):
        return value
    if t.is_map(kind):
        return {str(key): _to_dicts(item, kind.item_type) for key, item in value}
    if t.is_struct(kind):
        return {name: _to_dicts(item, kind.field(name).type) for name, item in value.items()}
    return [_to_dicts(item, kind.value_type) for item in value]
