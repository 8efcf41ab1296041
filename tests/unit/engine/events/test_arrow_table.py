"""Arrow tables into columns: which rows are plain, which are odd, and which tables are read row by row."""

import pickle
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.algebra import ReadSpec, Requirements, Setting
from tidings.concepts import Ontology
from tidings.engine.compile.columns import Column, View, split_number
from tidings.engine.events.arrow_attribute import to_exact_numbers
from tidings.engine.events.arrow_table import build_table_columns
from tidings.engine.events.arrow_values import find_valid
from tidings.model import EventBatch, Kind

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
INT64 = st.integers(-(2**63), 2**63 - 1)
NEAR_LIMITS = st.sampled_from([2**53, -(2**53), 2**63 - 1, -(2**63), 2**62]).flatmap(
    lambda limit: st.integers(max(limit - 2000, -(2**63)), min(limit + 2000, 2**63 - 1))
)


def convert_table(table, kinds, *views):
    needs = Requirements({name: (ReadSpec(kind, strict=True), ReadSpec()) for name, kind in kinds.items()})
    wanted = [Column(name, view, kind=kind) for name, kind in kinds.items() for view in views]
    return build_table_columns(table, needs, wanted=wanted, setting=Setting(Ontology(), NOW), automata=None)


@given(st.lists(INT64 | NEAR_LIMITS, min_size=1))
def test_integers_are_split_as_one_by_one(values):
    numbers = to_exact_numbers(np.array(values, dtype=np.int64))
    rest = numbers.rest if numbers.rest is not None else np.zeros(len(values), dtype=np.int16)
    assert list(zip(numbers.near.tolist(), rest.tolist(), strict=True)) == [split_number(value) for value in values]


@given(st.lists(st.none() | st.integers(0, 9), max_size=40), st.integers(0, 20))
def test_nulls_are_found_in_any_slice(values, start):
    array = pa.array(values, type=pa.int64())[start:]
    valid = find_valid(array)
    valid_list = [True] * len(array) if valid is None else valid.tolist()
    assert valid_list == [value is not None for value in array.to_pylist()]


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=1))
def test_ages_round_as_single_ages_do(times):
    table = pa.table({"a": pa.array(times, type=pa.timestamp("us", "UTC"))})
    batch = convert_table(table, {"a": Kind.TIME}, View.AGE)
    ages = batch.batch[Column("a", View.AGE, kind=Kind.TIME)].low.near.tolist()
    assert ages == [(NOW - time).total_seconds() for time in times]


def test_rows_that_cannot_be_read_are_odd_and_the_others_keep_their_order():
    table = pa.table({"a": [1.0, float("inf"), 3.0, None], "b": ["1", "2", "x", "4"]})
    batch = convert_table(table, {"a": Kind.NUMBER, "b": Kind.NUMBER}, View.NUMBER)
    assert (batch.plain.tolist(), batch.odd.tolist()) == ([0, 3], [1, 2])
    assert batch.batch[Column("b", View.NUMBER, kind=Kind.NUMBER)].low.near.tolist() == [1, 4]


def test_a_table_of_odd_rows_alone_has_no_columns():
    batch = convert_table(pa.table({"a": [float("inf")]}), {"a": Kind.NUMBER}, View.NUMBER, View.EXISTS)
    assert (batch.plain.tolist(), batch.odd.tolist(), batch.batch) == ([], [0], {})


def test_columns_that_nobody_needs_are_not_looked_at():
    beyond = pa.array([2**62], type=pa.timestamp("s"))
    batch = convert_table(pa.table({"a": [1], "b": beyond, "c": [{"x": [[1]]}]}), {"a": Kind.NUMBER}, View.NUMBER)
    assert batch.odd.tolist() == []


def test_a_needed_attribute_makes_rows_odd_even_if_no_column_is_wanted():
    batch = convert_table(pa.table({"a": ["x", "1"]}), {"a": Kind.NUMBER})
    assert batch.odd.tolist() == [0]


@pytest.mark.parametrize(("value", "name"), [([[1]], "a"), ({"b": [{"c": 1}]}, "a.b.c")])
def test_lists_in_lists_and_arrays_of_records_are_read_row_by_row(value, name):
    assert convert_table(pa.table({"a": [value]}), {name: Kind.NUMBER}, View.NUMBER) is None


def test_a_null_record_has_no_fields_and_a_null_field_is_null():
    table = pa.table({"a": pa.array([{"n": 1}, None, {"n": None}])})
    batch = convert_table(table, {"a.n": Kind.NUMBER}, View.NULL, View.EXISTS)
    nulls = batch.batch[Column("a.n", View.NULL, kind=Kind.NUMBER)].low.near
    assert np.isnan(nulls).tolist() == [True, True, False]
    assert np.isnan(batch.batch[Column("a.n", View.EXISTS, kind=Kind.NUMBER)].low.near).tolist() == [False, True, True]


def test_a_record_batch_and_a_table_in_pieces_give_the_same():
    table = pa.table({"a": [1, 2, None, 4], "b": ["x", None, "x", "y"]})
    pieces = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    for source in (pieces, table.to_batches()[0]):
        batch = convert_table(source, {"a": Kind.NUMBER, "b": Kind.TEXT}, View.NUMBER, View.TEXT)
        words = batch.batch[Column("b", View.TEXT, kind=Kind.TEXT)].low
        assert [None if at < 0 else words.distinct[at] for at in words.index] == [b"x", None, b"x", b"y"]
        assert batch.batch[Column("a", View.NUMBER, kind=Kind.NUMBER)].low.near[[0, 1, 3]].tolist() == [1, 2, 4]


def test_what_kernels_are_given_can_be_written():
    """Numba compiles once more for read-only arrays, and Arrow's memory is such."""
    table = pa.table({"a": [1.5, 2.5], "b": [NOW, NOW - timedelta(days=1)]})
    batch = convert_table(table, {"a": Kind.NUMBER, "b": Kind.TIME}, View.NUMBER, View.AGE)
    assert all(column.low.near.flags.writeable for column in batch.batch.values())


def test_an_empty_table_has_no_rows_of_either_sort():
    batch = convert_table(pa.table({"a": pa.array([], type=pa.int64())}), {"a": Kind.NUMBER}, View.NUMBER)
    assert (len(batch.plain), len(batch.odd), batch.batch) == (0, 0, {})


def test_an_event_batch_keeps_its_table_and_makes_rows_when_asked():
    table = pa.table({"a": [1, 2]})
    batch = EventBatch.of(table)
    assert batch.table is table
    assert len(batch) == 2
    assert list(batch) == list(batch) == [{"a": 1}, {"a": 2}]
    assert list(pickle.loads(pickle.dumps(EventBatch.of(table)))) == [{"a": 1}, {"a": 2}]
    assert EventBatch([{"a": 1}]).table is None
