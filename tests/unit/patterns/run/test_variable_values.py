"""Values of variables as numbers: equal ones have one number, by rows and by columns."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.concepts import Vocabulary
from tidings.model.arrow_types import to_rows
from tidings.patterns.run.mismatch_counts import PatternMismatchCounts
from tidings.patterns.run.variable_values import NO_VALUE, ValueNumbers, VariableReader

VALUES = [0, 1, 2, 1.0, 0.0, 2.5, True, False, "1", "true", "", None, Decimal(1), float("nan")]


def alike(first, second):
    """Tell whether two values are one, by the law."""
    absent = [value is None or value != value for value in (first, second)]  # noqa: PLR0124 - not a number
    if any(absent):
        return False
    return isinstance(first, bool) == isinstance(second, bool) and first == second


@given(st.lists(st.sampled_from(VALUES), max_size=8))
def test_equal_values_have_one_number_and_others_another(values):
    names = ValueNumbers()
    numbers = [names.number(value) for value in values]
    for value, first in zip(values, numbers, strict=True):
        assert first == NO_VALUE or names.values[first] == value
        assert all(
            (first == second != NO_VALUE) == alike(value, two) for two, second in zip(values, numbers, strict=True)
        )


COLUMNS = [
    pa.array(["x", None, "y", "x"]),
    pa.array(["x", None, "y", "x"]).dictionary_encode(),
    pa.array(["x", None, "y", "x"], pa.large_string()),
    pa.array([1, None, 2, 1], pa.uint8()),
    pa.array([1.5, None, float("nan"), 1.5]),
    pa.array([True, None, False, True]),
    pa.array([0, None, 86_400_000, 0], pa.timestamp("ms", "UTC")),
    pa.array([0, None, 1, 0], pa.date32()),
    pa.array([Decimal("1.0"), None, Decimal("2.5"), Decimal("1.0")]),
    pa.chunked_array([["x", None], ["y", "x"]]),
    pa.chunked_array([pa.array(["x", None]).dictionary_encode(), pa.array(["y", "x"]).dictionary_encode()]),
    pa.chunked_array([], pa.string()),
    pa.nulls(3),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{type(column).__name__} {column.type}")
def test_a_column_has_the_numbers_of_its_values(column):
    names = ValueNumbers([1.5, "y"])
    assert names.number_column(column).tolist() == [names.number(value) for value in column.to_pylist()]


def test_columns_and_rows_agree_on_times():
    names, day = ValueNumbers(), dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
    number = names.number(day)
    assert names.number(day.replace(tzinfo=None)) == names.number(day.date()) == number
    for kind in (pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.date32(), pa.date64()):
        assert names.number_column(pa.array([day], pa.timestamp("us", "UTC")).cast(kind)).tolist() == [number]


def test_numbers_of_numpy_are_numbers():
    names = ValueNumbers([3, True])
    assert [names.number(np.int64(3)), names.number(np.float64(3)), names.number(np.bool_(True))] == [0, 0, 1]


ODD = [[1], {"a": 1}, {1}, object, b"1", float("inf"), -float("inf"), "\ud800", dt.timedelta(1), td.Range(1, 2)]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_what_no_variable_takes_has_no_number(value):
    names = ValueNumbers([1])
    assert names.number(value) == NO_VALUE
    assert len(names) == 1


@pytest.mark.parametrize("value", [np.datetime64("NaT"), np.float64("nan"), Decimal("nan")], ids=repr)
def test_nothing_has_no_number_however_it_is_written(value):
    assert ValueNumbers().number(value) == NO_VALUE


def test_numbers_beyond_64_bits_stay_apart():
    names = ValueNumbers([2**70, 2**70 + 1])
    assert [names.number(2**70), names.number(Decimal(2**70 + 1)), names.number(float(2**70))] == [0, 1, 0]


def test_tuples_are_absent_where_a_part_is():
    names = ValueNumbers(["x", "y"])
    numbers = names.number_tuples([np.array([0, 1, 0, -1, 0]), np.array([1, 1, 1, 0, -1])])
    assert numbers.tolist() == [2, 3, 2, NO_VALUE, NO_VALUE]
    assert names.values[2:] == [("x", "y"), ("y", "y")]
    assert names.number_tuples([np.empty(0, np.int64)] * 2).tolist() == []


def test_names_that_are_kept_are_numbered_anew():
    names = ValueNumbers(["x", True, ("x", 1)]).keep(np.array([1, 2]))
    assert [names.number(True), names.number(("x", 1.0)), names.number("x")] == [0, 1, 2]


SCALARS = {
    **{str(kind): pa.array([1, None, 2, 1], kind) for kind in (pa.int8(), pa.int64(), pa.uint64(), pa.float32())},
    **{str(kind): pa.array(["1", None, "y", "1"], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{str(kind): pa.array([0, None, 1, 0]).cast(kind) for kind in (pa.timestamp("us"), pa.timestamp("s", "UTC"))},
    "double": pa.array([1.0, None, float("inf"), float("nan")]),
    "decimal": pa.array([Decimal(1), None, Decimal("2.5"), Decimal(1)]),
    "bool": pa.array([True, None, False, True]),
    "date32": pa.array([0, None, 1, 0], pa.date32()),
    "date64": pa.array([0, None, 86_400_000, 0], pa.date64()),
    "dictionary": pa.array(["x", None, "y", "x"]).dictionary_encode(),
    "binary": pa.array([b"x", None, b"y", b"x"]),
    "duration": pa.array([0, None, 1, 0], pa.duration("us")),
    "time64": pa.array([0, None, 1, 0], pa.time64("us")),
    "null": pa.nulls(4),
}
SCHEMAS = [None, *(td.Schema({"v": kind}) for kind in ("text", "number", "bool", "time"))]


@pytest.mark.parametrize("schema", SCHEMAS, ids=repr)
@pytest.mark.parametrize("name", SCALARS)
def test_every_scalar_type_has_the_same_numbers_by_table_and_by_row(name, schema):
    table = pa.table({"v": SCALARS[name]})
    by_table, by_row = (VariableReader(["v"], Vocabulary(schema)) for _ in range(2))
    numbers, counts = ValueNumbers(), PatternMismatchCounts()
    rows = [by_row.read_row(row, numbers, counts) for row in to_rows(table)]
    assert by_table.read_table(table, numbers, PatternMismatchCounts())["v"].tolist() == [number for [number] in rows]
    assert by_table.takes_as_is("v", table["v"].type) is by_table.takes_as_is(
        "v", pa.dictionary(pa.int32(), table["v"].type)
    )
