"""Arrow types as attribute kinds, and Arrow rows as event mappings.

`find_kind` is the one table from scalar types to kinds: schemas, event columns and columns of parameters use it.
Scalars have one value, lists several, structs dotted names, maps any name below theirs. A struct with fields `lon` and
`lat` is also a place. Columns of text are text that may also be asked for as a concept or an address; to have one read
as a number or a time, declare it in a schema. Values of maps have no kind of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.model.events import Unreadable
from tidings.model.schema import Attribute
from tidings.model.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


# Types ---------------------------------------------------------------------------------------------


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


def find_attributes(schema: pa.Schema) -> dict[str, Attribute]:
    """Return the attributes of an Arrow schema, by dotted name."""
    attributes: dict[str, Attribute] = {}
    for field in schema:
        attributes.update(_iterate_attributes(field.name, field.type, several=False))
    return attributes


def _iterate_attributes(name: str, kind: pa.DataType, *, several: bool) -> Iterator[tuple[str, Attribute]]:
    import pyarrow.types as t

    if is_list_type(kind):
        yield from _iterate_attributes(name, kind.value_type, several=True)
    elif t.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        is_place = {"lon", "lat"} <= {field.name for field in fields}
        yield name, Attribute(Kind.PLACE if is_place else Kind.RECORD, several=several)
        for field in fields:
            yield from _iterate_attributes(f"{name}.{field.name}", field.type, several=several)
    elif t.is_map(kind):
        yield name, Attribute(Kind.RECORD, several=several)
        yield f"{name}.*", Attribute(several=True)
    else:
        scalar = find_kind(kind)
        yield name, Attribute(scalar, several=several, refinable=scalar is Kind.TEXT)


# Rows ----------------------------------------------------------------------------------------------


def to_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows as mappings; a value that Python cannot hold is `Unreadable`, and the others are read."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not table.num_columns:
        return [{} for _ in range(table.num_rows)]
    try:
        columns = [_to_list(column) for column in table.columns]
    except (OverflowError, ValueError):
        return [_to_row(table.slice(index, 1)) for index in range(table.num_rows)]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _to_row(table: pa.Table) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            row[name] = _to_list(column)[0]
        except (OverflowError, ValueError):
            row[name] = _to_value(column[0])
    return row


def _to_value(scalar: pa.Scalar) -> Any:
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


def _to_list(column: pa.ChunkedArray) -> list[Any]:
    kind = _limit_timestamps(column.type)
    if kind != column.type:
        column = column.cast(kind, safe=False)
    values = column.to_pylist()
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


def _to_dicts(value: Any, kind: pa.DataType) -> Any:
    """Return a value with its maps, which Arrow gives as lists of pairs, as mappings."""
    import pyarrow.types as t

    if value is None or not _has_map(kind):
        return value
    if t.is_map(kind):
        return {str(key): _to_dicts(item, kind.item_type) for key, item in value}
    if t.is_struct(kind):
        return {name: _to_dicts(item, kind.field(name).type) for name, item in value.items()}
    return [_to_dicts(item, kind.value_type) for item in value]
