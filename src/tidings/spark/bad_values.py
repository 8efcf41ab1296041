"""SQL expressions that find bad values in the columns of events, where the rows are.

The type of a column is a declaration: an event that breaks one is bad, whether a filter reads the column, or a field of
it, or not. Spark's types let values through that Tidings does not: infinities, times outside the years 1 to 9999,
places off the globe, text that is not UTF-8. They are searched for in the JVM, so that a column that no filter reads
need not cross into Python.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql import types as T  # noqa: N812 - likewise

from tidings.spark.schema import to_column

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pyspark.sql import Column

ColumnTest: TypeAlias = "Callable[[Column], Column]"
"""Takes a column and returns a boolean one: where its values are bad."""

NOT_UTF8 = "not UTF-8"
"""The reason for bad text."""


def build_bad_value_reason(frame: T.StructType, declared: Collection[str], checked: Collection[str]) -> Column | None:
    """Return a column with the reason why a row breaks the types of its `declared` columns, null where it does not.

    Attributes in `checked` are left out: the matcher checks them itself.
    """
    counts = Counter(name.lower() for name in frame.names)  # two columns of one name cannot be referred to
    reasons = [
        F.when(is_broken(to_column(field.name)), F.lit(f"`{name}`: it is {reason}"))
        for field in frame
        if field.name in declared and counts[field.name.lower()] == 1
        for name, is_broken, reason in _list_tests(field.dataType, field.name)
        if name not in checked
    ]
    return F.coalesce(*reasons) if reasons else None


def find_breakable(frame: T.StructType) -> set[str]:
    """Return the attributes of a frame whose numbers, times and places may break their types."""
    tests = (test for field in frame for test in _list_tests(field.dataType, field.name))
    return {name for name, _, reason in tests if reason != NOT_UTF8}


def _list_tests(kind: T.DataType, name: str) -> Iterator[tuple[str, ColumnTest, str]]:
    """Yield the attributes of a type, each with a test for bad values and the words for what is wrong."""
    if isinstance(kind, T.FloatType | T.DoubleType):
        yield name, lambda value: F.abs(value) == float("inf"), "not a finite number"
    elif isinstance(kind, T.DateType | T.TimestampType | T.TimestampNTZType):
        yield name, lambda value: ~F.year(value).between(1, 9999), "outside the years 1 to 9999"
    elif isinstance(kind, T.StringType):
        yield name, lambda value: ~F.is_valid_utf8(value), NOT_UTF8
    elif isinstance(kind, T.StructType):
        yield from _list_field_tests(kind, name)
    elif isinstance(kind, T.ArrayType):
        for inner, is_broken, reason in _list_tests(kind.elementType, name):
            yield inner, partial(_is_any_broken, is_broken), reason


def _list_field_tests(kind: T.StructType, name: str) -> Iterator[tuple[str, ColumnTest, str]]:
    is_place = {"lon", "lat"} <= set(kind.names)
    if is_place:
        yield name, _is_nowhere, "not a place (lon, lat)"
    for field in kind:
        if not (is_place and field.name in ("lon", "lat")):
            for inner, is_broken, reason in _list_tests(field.dataType, f"{name}.{field.name}"):
                yield inner, partial(_is_field_broken, field.name, is_broken), reason


def _is_field_broken(field: str, is_broken: ColumnTest, value: Column) -> Column:
    return is_broken(value[field])


def _is_any_broken(is_broken: ColumnTest, values: Column) -> Column:
    return F.exists(values, lambda value: is_broken(value))  # noqa: PLW0108 - Spark counts a plain function's arguments


def _is_nowhere(place: Column) -> Column:
    lon, lat = place["lon"], place["lat"]
    on_earth = lon.between(-180, 180) & lat.between(-90, 90)
    return place.isNotNull() & ~F.coalesce(on_earth, F.lit(False))
