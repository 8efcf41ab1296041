"""A DataFrame's columns as attributes: their kinds, which of them filters read, and which Arrow can carry.

Scalar columns have one value, arrays several; structs and maps become dotted names. A column of strings is text, and
may be asked for as a concept or an address too; who wants one read as a number or a time says so in the schema. The
values of maps have no kind of their own. What Arrow cannot carry (year-month intervals, say) is opaque, and an error
only for who asks for it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
)

from tidings.concepts import did_you_mean
from tidings.errors import BadFrame, KindConflict
from tidings.model import Attribute, Kind, Schema
from tidings.model.arrow_types import attributes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pyspark.sql import Column

    from tidings.algebra import ReadSpec
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
    arrow = None if isinstance(field.dataType, _PACKED) else arrow_type_of(field.dataType)
    if arrow is None:
        return {field.name: Attribute(Kind.OPAQUE)}
    return attributes_of(pa.schema([(field.name, arrow)]))


def arrow_type_of(kind: DataType) -> pa.DataType | None:
    """Return the Arrow type a column crosses as, or nothing when it cannot cross."""
    if isinstance(kind, CharType | VarcharType):  # PySpark's own conversion does not know them
        return pa.string()
    # Nullable throughout: PySpark's own conversion refuses the element type of `array()` otherwise.
    nullable = StructType([StructField("c", kind)]).toNullable()["c"].dataType
    try:
        return to_arrow_type(nullable, timezone="UTC")
    except PySparkTypeError:
        return None


def find_columns(names: Iterable[str], columns: list[str]) -> list[str]:
    """Return the columns that feed the attributes: `seller.kind` is read from a column `seller.kind` or `seller`."""
    wanted = set(names)
    for name in names:
        while "." in name:
            name = name.rpartition(".")[0]
            wanted.add(name)
    return [column for column in columns if column in wanted]


def find_names_read(needs: Mapping[str, tuple[ReadSpec, ...]], ontology: Ontology) -> set[str]:
    """Return every name of an event that the needs look at: synonyms, units beside, inputs of derived attributes."""
    found: set[str] = set()
    waiting = [*needs, *(need.unit_from for of in needs.values() for need in of if need.unit_from)]
    while waiting:
        name = waiting.pop()
        if name in ontology.derived:
            waiting.extend(ontology.derived[name].inputs)
        else:
            found.update(ontology.sources(name))
    return found


def refuse_conflicts(needs: Mapping[str, tuple[ReadSpec, ...]], frame: Schema) -> None:
    """Refuse subscriptions that ask a column for a kind that it does not have, unless their own schema declares it."""
    mistakes: dict[str, str] = {}
    for name, ways in needs.items():
        column = frame.get(name)
        for need in ways if column is not None else ():
            if has_conflict(column, need):
                mistakes.setdefault(name, f"`{name}` is {column} in the DataFrame, but is used as {need.kind}")
    if mistakes:
        way_out = "declare it in the subscriptions' schema, cast the column, or change the filters"
        msg = "\n".join(mistakes.values()) + f"; {way_out}"
        raise KindConflict(msg, attribute=next(iter(mistakes)))


def has_conflict(column: Attribute | None, need: ReadSpec) -> bool:
    """Tell whether values of a column cannot be what is needed; text can be whatever a schema says that it is."""
    if column is None or column.kind is None or need.kind is None:
        return False
    if need.strict and column.kind not in _FIXED:
        return False
    return not column.accepts(need.kind)


Test: TypeAlias = "Callable[[Column], Column]"
"""Tells where values of a column are bad."""


def build_bad_value_reason(frame: StructType, declared: Collection[str], checked: Collection[str]) -> Column | None:
    """Return why a row breaks the types of its `declared` columns; null where it does not.

    Types are declarations: an event that breaks one is bad, whether a filter asks for the column, or for a field of it,
    or not. What a type lets through and we do not (infinities, times outside the years 1 to 9999, places off the globe,
    text that is not UTF-8) is looked for where the rows are, so that the columns need not cross into Python; all but
    the attributes that the matcher has `checked` itself.
    """
    names = Counter(name.lower() for name in frame.names)  # of two columns of one name neither can be asked for
    said = [
        F.when(is_broken(to_column(field.name)), F.lit(f"`{name}`: it is {reason}"))
        for field in frame
        if field.name in declared and names[field.name.lower()] == 1
        for name, is_broken, reason in _breaks(field.dataType, field.name)
        if name not in checked
    ]
    return F.coalesce(*said) if said else None


def find_breakable(frame: StructType) -> set[str]:
    """Return the attributes of a frame whose numbers, times and places may break their types."""
    every = (one for field in frame for one in _breaks(field.dataType, field.name))
    return {name for name, _, reason in every if reason != NOT_UTF8}


NOT_UTF8 = "not UTF-8"
"""What is wrong with text."""


def _breaks(kind: DataType, name: str) -> Iterator[tuple[str, Test, str]]:
    """Yield attributes of a type, with tests that tell where their values are bad, and what those are."""
    if isinstance(kind, FloatType | DoubleType):
        yield name, lambda value: F.abs(value) == float("inf"), "not a finite number"
    elif isinstance(kind, DateType | TimestampType | TimestampNTZType):
        yield name, lambda value: ~F.year(value).between(1, 9999), "outside the years 1 to 9999"
    elif isinstance(kind, StringType):
        yield name, lambda value: ~F.is_valid_utf8(value), NOT_UTF8
    elif isinstance(kind, StructType):
        yield from _breaks_inside(kind, name)
    elif isinstance(kind, ArrayType):
        for inner, is_broken, reason in _breaks(kind.elementType, name):
            yield inner, partial(_among, is_broken), reason


def _breaks_inside(kind: StructType, name: str) -> Iterator[tuple[str, Test, str]]:
    place = {"lon", "lat"} <= set(kind.names)
    if place:
        yield name, _is_nowhere, "not a place (lon, lat)"
    for field in kind:
        if not (place and field.name in ("lon", "lat")):
            for inner, is_broken, reason in _breaks(field.dataType, f"{name}.{field.name}"):
                yield inner, partial(_inside, field.name, is_broken), reason


def _inside(field: str, is_broken: Test, value: Column) -> Column:
    return is_broken(value[field])


def _among(is_broken: Test, values: Column) -> Column:
    return F.exists(values, lambda value: is_broken(value))  # noqa: PLW0108 - Spark counts a plain function's arguments


def _is_nowhere(place: Column) -> Column:
    lon, lat = place["lon"], place["lat"]
    on_earth = lon.between(-180, 180) & lat.between(-90, 90)
    return place.isNotNull() & ~F.coalesce(on_earth, F.lit(False))


def quote_name(name: str) -> str:
    """Return a column's name as SQL has it, so that dots and backticks are part of the name."""
    return "`" + name.replace("`", "``") + "`"


def to_column(name: str) -> Column:
    """Return the column of exactly this name, dots and backticks included."""
    return F.col(quote_name(name))


def make_unused_name(name: str, columns: Iterable[str]) -> str:
    """Return a name for a column of ours that no column has."""
    taken = {one.lower() for one in columns}
    name = f"__tidings_{name}"
    while name in taken:
        name += "_"
    return name


def cast_for_arrow(frame: DataFrame) -> DataFrame:
    """Return the frame with columns that Arrow cannot carry written as text, which is what JSON makes of them."""
    stuck = {
        field.name: to_column(field.name).cast("string") for field in frame.schema if arrow_type_of(field.dataType) is None
    }
    return frame.withColumns(stuck) if stuck else frame


def require_frame(frame: object, subject: str) -> None:
    """Refuse what is not a DataFrame of Spark's."""
    if not isinstance(frame, DataFrame):
        msg = f"{subject} must be a DataFrame of Spark's, not `{type(frame).__name__}`; session.createDataFrame makes one"
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
    if arrow_type_of(fields[0].dataType) is None:
        kind = fields[0].dataType.simpleString()
        way_out = "cast it to a string, or leave it out by event_id= or keep="
        return f"{why}: `{name}` is {kind}, which Arrow cannot carry; {way_out}"
    return None
