import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.sql.types import StructType

from tidings.errors import BadFrame
from tidings.model import Kind
from tidings.spark.schema import require_columns, schema_of

pytestmark = pytest.mark.usefixtures("spark")  # PySpark asks the session to read DDL


def kinds(ddl):
    return schema_of(StructType.fromDDL(ddl)).to_dict()


@pytest.mark.parametrize("number", ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(20,3)"])
def test_every_numeric_column_is_a_number(number):
    assert kinds(f"a {number}") == {"a": "number"}


@pytest.mark.parametrize("time", ["date", "timestamp", "timestamp_ntz"])
def test_dates_and_timestamps_are_times(time):
    assert kinds(f"a {time}") == {"a": "time"}


@pytest.mark.parametrize("text", ["string", "varchar(10)", "char(3)"])
def test_text_columns_are_text_that_may_also_be_asked_as_a_concept_or_an_address(text):
    assert kinds(f"a {text}") == {"a": "string"}
    column = schema_of(StructType.fromDDL(f"a {text}"))["a"]
    assert [kind for kind in Kind if column.accepts(kind)] == [Kind.TEXT, Kind.CONCEPT, Kind.IP]


def test_booleans_and_bytes():
    assert kinds("a boolean, b binary") == {"a": "bool", "b": "opaque"}


def test_arrays_have_several_values():
    assert kinds("a array<int>, b array<array<string>>") == {"a": "several number", "b": "several string"}


def test_structs_become_dotted_names_at_any_depth():
    expected = {"a": "record", "a.b": "number", "a.c": "record", "a.c.d": "time"}
    assert kinds("a struct<b: int, c: struct<d: date>>") == expected


def test_arrays_of_structs_are_records_of_several_values():
    expected = {"a": "several record", "a.sku": "several string", "a.qty": "several number"}
    assert kinds("a array<struct<sku: string, qty: int>>") == expected


def test_a_struct_of_lon_and_lat_is_a_place():
    assert kinds("a struct<lon: double, lat: double>")["a"] == "place"


@pytest.mark.parametrize("value", ["int", "string", "struct<b: int>"])
def test_maps_speak_for_every_name_below_theirs_and_give_no_kind(value):
    assert kinds(f"a map<string, {value}>") == {"a": "record", "a.*": "several any"}


@pytest.mark.parametrize("odd", ["interval year to month", "interval day to second", "variant", "time"])
def test_what_no_filter_can_use_is_opaque(odd):
    assert kinds(f"a {odd}") == {"a": "opaque"}


def test_empty_arrays_and_nulls_without_a_type_are_columns_too():
    assert kinds("a array<void>, b void") == {"a": "several any", "b": "any"}


def test_the_schema_is_open():
    assert not schema_of(StructType.fromDDL("a int")).closed


def test_all_wrong_columns_are_named_together_with_what_may_be_meant():
    frame = StructType.fromDDL("price int, month interval year to month")
    with pytest.raises(BadFrame) as caught:
        require_columns(["prize", "month", "price"], frame, why="keep")
    first, second = str(caught.value).splitlines()
    assert first == "keep: the DataFrame has no column `prize`; did you mean `price`?"
    assert second.startswith("keep: `month` is interval year to month, which Arrow cannot carry; cast it")
