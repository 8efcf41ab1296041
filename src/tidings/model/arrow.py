"""Arrow types as attribute kinds, and Arrow rows as event mappings.

Scalars have one value, lists several, structs dotted names, maps any name below theirs. A struct with
fields `lon` and `lat` is also a place. Text columns carry no kind of their own: an address, a concept
or (from CSV) a number all come as text, and the filters say which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        yield from _of_type(f"{name}.*", kind.item_type, several=several)
    else:
        yield name, Attribute(_scalar(kind), several=several)


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
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind) or t.is_null(kind):
        return None
    return Kind.OPAQUE


def rows_of(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows as mappings; map columns become mappings too, nanoseconds become microseconds."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    columns = {name: _column(table.column(i)) for i, name in enumerate(table.column_names)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] or [
        {} for _ in range(table.num_rows)
    ]


def _column(column: pa.ChunkedArray) -> list[Any]:
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    values = column.to_pylist()
    return [_mapped(value, column.type) for value in values] if _holds_map(column.type) else values


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
