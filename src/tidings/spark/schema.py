"""A DataFrame's columns as attributes: their kinds, which of them filters read, and which Arrow can carry.

Scalar columns have one value, arrays several; structs and maps become dotted names. Text columns have no kind
of their own: an address, a concept or (from CSV) a number come as text, and the filters say which. What Arrow
cannot carry (year-month intervals, say) is opaque, and an error only for who asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    CharType,
    DataType,
    GeographyType,
    GeometryType,
    StructField,
    StructType,
    VarcharType,
    VariantType,
)

from tidings.concepts import did_you_mean
from tidings.errors import BadFrame, KindConflict
from tidings.model import Attribute, Kind, Schema
from tidings.model.arrow import attributes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column

    from tidings.algebra import Need
    from tidings.concepts import Ontology

_PACKED = (VariantType, GeometryType, GeographyType)
"""Arrow carries these as structs of bytes, which are nobody's attributes."""

_FIXED = (Kind.NUMBER, Kind.BOOL, Kind.TIME, Kind.OPAQUE)
"""The kinds of columns whose values fit no other kind."""


def schema_of(frame: StructType | DataFrame) -> Schema:
    """Return the attributes of a frame, open: a filter may name a column that is not there, which is then absent."""
    frame = frame.schema if isinstance(frame, DataFrame) else frame
    if not isinstance(frame, StructType):
        others = "td.Schema takes a mapping, td.Schema.from_arrow an Arrow schema"
        msg = f"schema_of takes a DataFrame or Spark's StructType, not `{type(frame).__name__}`; {others}"
        raise BadFrame(msg)
    found: dict[str, Attribute] = {}
    for field in frame:
        found.update(_attributes(field))
    return Schema(found).opened()


def _attributes(field: StructField) -> Mapping[str, Attribute]:
    arrow = None if isinstance(field.dataType, _PACKED) else arrow_type(field.dataType)
    if arrow is None:
        return {field.name: Attribute(Kind.OPAQUE)}
    return attributes_of(pa.schema([(field.name, arrow)]))


def arrow_type(kind: DataType) -> pa.DataType | None:
    """Return the Arrow type a column crosses as, or nothing when it cannot cross."""
    if isinstance(kind, CharType | VarcharType):  # PySpark's own conversion does not know them
        return pa.string()
    # Nullable throughout: PySpark's own conversion refuses the element type of `array()` otherwise.
    nullable = StructType([StructField("c", kind)]).toNullable()["c"].dataType
    try:
        return to_arrow_type(nullable, timezone="UTC")
    except PySparkTypeError:
        return None


def columns_read(names: Iterable[str], columns: list[str]) -> list[str]:
    """Return the columns that feed the attributes: `seller.kind` is read from a column `seller.kind` or `seller`."""
    wanted = set(names)
    for name in names:
        while "." in name:
            name = name.rpartition(".")[0]
            wanted.add(name)
    return [column for column in columns if column in wanted]


def names_read(needs: Mapping[str, Need], ontology: Ontology) -> set[str]:
    """Return every name of an event that the needs look at: synonyms, units beside, inputs of derived attributes."""
    found: set[str] = set()
    waiting = [name for need_of, need in needs.items() for name in (need_of, need.unit_from) if name]
    while waiting:
        name = waiting.pop()
        if name in ontology.derived:
            waiting.extend(ontology.derived[name].inputs)
        else:
            found.update(ontology.sources(name))
    return found


def refuse_conflicts(needs: Mapping[str, Need], frame: Schema) -> None:
    """Refuse subscriptions that use a column as something none of its values can be."""
    for name, need in needs.items():
        column = frame.get(name)
        if column is None or need.kind is None or column.kind is need.kind:
            continue
        if column.kind in _FIXED:
            what = f"`{name}` is {column.kind} in the DataFrame, but the subscriptions use it as {need.kind}"
            msg = f"{what}; cast the column, or change the filters"
            raise KindConflict(msg, attribute=name)


def quoted(name: str) -> str:
    """Return a column's name as SQL has it, so that dots and backticks are part of the name."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """Return the column of exactly this name, dots and backticks included."""
    return F.col(quoted(name))


def unused(name: str, columns: Iterable[str]) -> str:
    """Return a name for a column of ours that no column has."""
    taken = {one.lower() for one in columns}
    name = f"__tidings_{name}"
    while name in taken:
        name += "_"
    return name


def crossable(frame: DataFrame) -> DataFrame:
    """Return the frame with columns that Arrow cannot carry written as text, which is what JSON makes of them."""
    stuck = {
        field.name: column(field.name).cast("string") for field in frame.schema if arrow_type(field.dataType) is None
    }
    return frame.withColumns(stuck) if stuck else frame


def require_frame(frame: object, what: str) -> None:
    """Refuse what is not a DataFrame of Spark's."""
    if not isinstance(frame, DataFrame):
        msg = f"{what} must be a DataFrame of Spark's, not `{type(frame).__name__}`; session.createDataFrame makes one"
        raise BadFrame(msg)


def require_columns(wanted: Iterable[str], frame: StructType, *, why: str) -> None:
    """Refuse names that are not columns, are several columns, or that Arrow cannot carry; all of them together."""
    mistakes = [mistake for name in wanted if (mistake := _mistake(name, frame, why))]
    if mistakes:
        raise BadFrame("\n".join(mistakes))


def _mistake(name: str, frame: StructType, why: str) -> str | None:
    fields = [field for field in frame if field.name == name]
    if not fields:
        near = did_you_mean(name, frame.names) or "; the columns are " + ", ".join(f"`{n}`" for n in frame.names)
        return f"{why}: the DataFrame has no column `{name}`{near}"
    if len(fields) > 1:
        return f"{why}: the DataFrame has {len(fields)} columns called `{name}`; rename or drop one"
    if arrow_type(fields[0].dataType) is None:
        kind = fields[0].dataType.simpleString()
        way_out = "cast it to a string, or leave it out by event_id= or keep="
        return f"{why}: `{name}` is {kind}, which Arrow cannot carry; {way_out}"
    return None
