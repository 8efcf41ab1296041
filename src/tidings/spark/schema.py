"""A DataFrame's columns as attributes: their kinds, which of them filters read, and which Arrow can carry.

Scalar columns have one value, arrays several; structs and maps become dotted names. A column of strings is text, and
filters may also read it as a concept or an address; to read one as a number or a time, declare it in the schema. The
values of maps have no kind of their own. A type that Arrow cannot carry (a year-month interval, say) is opaque, and an
error only where a filter or the output uses the column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql import types as T  # noqa: N812 - likewise
from pyspark.sql.pandas.types import to_arrow_type

from tidings.concepts import Vocabulary, did_you_mean
from tidings.errors import BadFrame, KindConflict
from tidings.model import Attribute, Kind, Schema
from tidings.model.schema import find_attributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column

    from tidings.algebra import ReadSpec
    from tidings.concepts import Ontology

_PACKED = (T.VariantType, T.GeometryType, T.GeographyType)
"""Arrow carries these as structs of bytes, whose fields are no attributes."""

_FIXED = (Kind.NUMBER, Kind.BOOL, Kind.TIME, Kind.OPAQUE)
"""Kinds of columns whose values can be read as no other kind."""


def schema_of(frame: T.StructType | DataFrame) -> Schema:
    """Return the attributes of a frame as an open schema: a filter may name other attributes, which are absent."""
    frame = frame.schema if isinstance(frame, DataFrame) else frame
    if not isinstance(frame, T.StructType):
        others = "td.Schema takes a mapping, td.Schema.from_arrow an Arrow schema"
        msg = f"schema_of takes a DataFrame or Spark's StructType, not `{type(frame).__name__}`; {others}"
        raise BadFrame(msg)
    attributes: dict[str, Attribute] = {}
    for field in frame:
        arrow = None if isinstance(field.dataType, _PACKED) else find_arrow_type(field.dataType)
        opaque = {field.name: Attribute(Kind.OPAQUE)}
        attributes.update(opaque if arrow is None else find_attributes(pa.schema([(field.name, arrow)])))
    return Schema(attributes).opened()


def find_arrow_type(kind: T.DataType) -> pa.DataType | None:
    """Return the Arrow type of a column's values, or None where Arrow has none."""
    if isinstance(kind, T.CharType | T.VarcharType):  # PySpark's own conversion does not know them
        return pa.string()
    # Nullable throughout: PySpark's own conversion refuses the element type of `array()` otherwise.
    nullable = T.StructType([T.StructField("c", kind)]).toNullable()["c"].dataType
    try:
        return to_arrow_type(nullable, timezone="UTC")
    except PySparkTypeError:
        return None


def find_columns(names: Iterable[str], columns: list[str]) -> list[str]:
    """Return the columns that have the attributes: `seller.kind` is read from a column `seller.kind` or `seller`."""
    wanted = set(names)
    for name in names:
        while "." in name:
            name = name.rpartition(".")[0]
            wanted.add(name)
    return [column for column in columns if column in wanted]


def find_names_read(needs: Mapping[str, tuple[ReadSpec, ...]], ontology: Ontology | None) -> set[str]:
    """Return every name of an event that the needs read: synonyms, unit columns, inputs of derived attributes."""
    concepts = Vocabulary(ontology=ontology).concepts
    names: set[str] = set()
    waiting = [*needs, *(spec.unit_from for specs in needs.values() for spec in specs if spec.unit_from)]
    while waiting:
        name = waiting.pop()
        if name in concepts.derived:
            waiting.extend(concepts.derived[name].inputs)
        else:
            names.update(concepts.sources(name))
    return names


def refuse_conflicts(needs: Mapping[str, tuple[ReadSpec, ...]], frame: Schema) -> None:
    """Refuse subscriptions that read a column as a kind that it is not, unless their own schema declares it."""
    mistakes: dict[str, str] = {}
    for name, specs in needs.items():
        column = frame.get(name)
        for spec in specs if column is not None else ():
            if has_conflict(column, spec):
                mistakes.setdefault(name, f"`{name}` is {column} in the DataFrame, but is used as {spec.kind}")
    if mistakes:
        way_out = "declare it in the subscriptions' schema, cast the column, or change the filters"
        msg = "\n".join(mistakes.values()) + f"; {way_out}"
        raise KindConflict(msg, attribute=next(iter(mistakes)))


def has_conflict(column: Attribute | None, spec: ReadSpec) -> bool:
    """Tell whether no value of a column can be read as the spec's kind; text can be any kind that a schema declares."""
    if column is None or column.kind is None or spec.kind is None:
        return False
    if spec.strict and column.kind not in _FIXED:
        return False
    return not column.accepts(spec.kind)


def quote_name(name: str) -> str:
    """Return a column's name quoted for SQL, so that dots and backticks are part of the name."""
    return "`" + name.replace("`", "``") + "`"


def to_column(name: str) -> Column:
    """Return the column of exactly this name, dots and backticks included."""
    return F.col(quote_name(name))


def to_json_row(names: Iterable[str]) -> Column:
    """Return these columns as one JSON object, nulls included."""
    return F.to_json(F.struct(*map(to_column, names)), {"ignoreNullFields": "false"})


def make_unused_name(name: str, columns: Iterable[str]) -> str:
    """Return a name for an internal column that none of the columns has, whatever the case."""
    used = {column.lower() for column in columns}
    name = f"__tidings_{name}"
    while name in used:
        name += "_"
    return name


def cast_for_arrow(events: DataFrame) -> DataFrame:
    """Return events with columns that Arrow cannot carry cast to text, which is what JSON makes of them."""
    names = [field.name for field in events.schema if find_arrow_type(field.dataType) is None]
    frame = events.withColumns({name: to_column(name).cast("string") for name in names}) if names else events
    require_columns(dict.fromkeys(events.columns), frame.schema, why="the events")
    return frame


def select_letters(letters: DataFrame, names: Iterable[str], *, event_id: str | None, reason: str) -> DataFrame:
    """Return dead letters as users see them: `event`, where an id is named, `reason`, and the columns as JSON in `row`.

    JSON is made after the workers, where only the bad rows are left.
    """
    event = [] if event_id is None else [to_column(event_id).alias("event")]
    return letters.select(*event, to_column(reason).alias("reason"), to_json_row(names).alias("row"))


def require_frame(frame: object, subject: str) -> None:
    """Refuse an object that is not a DataFrame of Spark's."""
    if not isinstance(frame, DataFrame):
        way_out = "session.createDataFrame makes one"
        msg = f"{subject} must be a DataFrame of Spark's, not `{type(frame).__name__}`; {way_out}"
        raise BadFrame(msg)


def check_counts(**counts: int | None) -> None:
    """Refuse a count that is no positive integer; one that is left out is none."""
    for name, count in counts.items():
        if count is not None and (type(count) is not int or count < 1):
            msg = f"{name} is a number from 1 up, not {count!r}"
            raise BadFrame(msg)


def check_shards(shards: int) -> None:
    """Refuse a number of shards that is no positive integer."""
    if type(shards) is not int or shards < 1:
        msg = f"shards is 1 or more, not {shards!r}"
        raise BadFrame(msg)


def check_keep(keep: Sequence[str] | None) -> None:
    """Refuse the name of a column where a list of them is meant."""
    if isinstance(keep, str):
        msg = f"keep is a list of columns: keep=[{keep!r}]"
        raise BadFrame(msg)


def require_columns(wanted: Iterable[str], frame: T.StructType, *, why: str) -> None:
    """Refuse names that are not columns, are several columns, or that Arrow cannot carry; all of them together."""
    mistakes = [mistake for name in wanted if (mistake := _find_mistake(name, frame, why))]
    if mistakes:
        raise BadFrame("\n".join(mistakes))


def _find_mistake(name: str, frame: T.StructType, why: str) -> str | None:
    fields = [field for field in frame if field.name == name]
    if not fields:
        near = did_you_mean(name, frame.names) or "; the columns are " + ", ".join(
            f"`{column}`" for column in frame.names
        )
        return f"{why}: the DataFrame has no column `{name}`{near}"
    if len(fields) > 1:
        return f"{why}: the DataFrame has {len(fields)} columns called `{name}`; rename or drop one"
    if find_arrow_type(fields[0].dataType) is None:
        kind = fields[0].dataType.simpleString()
        way_out = "cast it to a string, or leave it out by event_id= or keep="
        return f"{why}: `{name}` is {kind}, which Arrow cannot carry; {way_out}"
    return None
