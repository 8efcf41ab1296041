"""Arrow types as attribute kinds, and Arrow rows as event mappings.

Scalars have one value, lists several, structs dotted names, maps any name below theirs. A struct with
fields `lon` and `lat` is also a place. Columns of text are text that may also be asked for as a concept or an
address; who wants one read as a number or a time says so in a schema. Values of maps have no kind of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.model.events import Unreadable
from tidings.model.schema import Attribute
from tidings.model.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def attributes_of(schema: pa.Schema) -> dict[str, Attribute]:
    """Return the attributes of an Arrow schema, by dotted name."""
    found: dict[str, Attribute] = {}
    for field in schema:
        found.update(_of_type(field.name, field.type, several=False))
    return found


def _of_type(name: str, kind: pa.DataType, *, several: bool) -> Iterator[tuple[str, Attribute]]:
    import pyarrow.types as t

    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        yield from _of_type(name, kind.value_type, several=True)
    elif t.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        place = {"lon", "lat"} <= {field.name for field in fields}
        yield name, Attribute(Kind.PLACE if place else Kind.RECORD, several=several)
        for field in fields:
            yield from _of_type(f"{name}.{field.name}", field.type, several=several)
    elif t.is_map(kind):
        yield name, Attribute(Kind.RECORD, several=several)
        yield f"{name}.*", Attribute(several=True)
    else:
        scalar = _scalar(kind)
        yield name, Attribute(scalar, several=several, refinable=scalar is Kind.TEXT)


def _scalar(kind: pa.DataType) -> Kind | None:
    import pyarrow.types as t

    if t.is_boolean(kind):
        return Kind.BOOL
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return Kind.NUMBER
    if t.is_timestamp(kind) or t.is_date(kind):
        return Kind.TIME
    if t.is_dictionary(kind):
        return _scalar(kind.value_type)
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return Kind.TEXT
    if t.is_null(kind):
        return None
    return Kind.OPAQUE


def rows_of(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows as mappings; a value that Python cannot hold is looked for, and is `Unreadable`."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    try:
        return _rows(table)
    except (OverflowError, ValueError):
        return [_row(table.slice(index, 1)) for index in range(table.num_rows)]


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    if not table.num_columns:
        return [{} for _ in range(table.num_rows)]
    columns = [_column(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _row(table: pa.Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            found[name] = _column(column)[0]
        except (OverflowError, ValueError):
            found[name] = _held(column[0])
    return found


def _held(value: pa.Scalar) -> Any:
    """Return a value as Python's, part by part: what Python cannot hold is `Unreadable`."""
    import pyarrow.types as t

    try:
        return value.as_py()
    except (OverflowError, ValueError) as problem:
        if t.is_struct(value.type):
            return {name: _held(part) for name, part in value.items()}
        if t.is_list(value.type) or t.is_large_list(value.type):
            return [_held(part) for part in value.values]
        return Unreadable(str(problem))


def _column(column: pa.ChunkedArray) -> list[Any]:
    told = _in_utc(column.type)
    if told != column.type:
        column = column.cast(told, safe=False)
    values = column.to_pylist()
    return [_mapped(value, column.type) for value in values] if _holds_map(column.type) else values


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """Return the type with times as Python can hold them: microseconds, and UTC for any zone Arrow can name."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(kind):
        return pa.timestamp("us" if kind.unit == "ns" else kind.unit, "UTC" if kind.tz else None)
    if t.is_large_list(kind):
        return pa.large_list(_field_in_utc(kind.value_field))
    if t.is_list(kind):
        return pa.list_(_field_in_utc(kind.value_field))
    if t.is_struct(kind):
        return pa.struct([_field_in_utc(kind.field(place)) for place in range(kind.num_fields)])
    if t.is_map(kind):
        return pa.map_(kind.key_field, _field_in_utc(kind.item_field))
    return kind


def _field_in_utc(field: pa.Field) -> pa.Field:
    return field.with_type(_in_utc(field.type))


def _holds_map(kind: pa.DataType) -> bool:
    import pyarrow.types as t

    return t.is_map(kind) or any(_holds_map(kind.field(i).type) for i in range(kind.num_fields))


def _mapped(value: Any, kind: pa.DataType) -> Any:
    import pyarrow.types as t

    if value is None or not _holds_map(kind):
        return value
    if t.is_map(kind):
        return {str(key): _mapped(item, kind.item_type) for key, item in value}
    if t.is_struct(kind):
        return {name: _mapped(item, kind.field(name).type) for name, item in value.items()}
    return [_mapped(item, kind.value_type) for item in value]
