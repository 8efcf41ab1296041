"""Filters in text by whole columns: the same filters, refusals and answers as one by one."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.lang import render
from tidings.matcher.loading import text_load
from tidings.matcher.loading.text_load import is_worth_columns, lay_out, read_texts
from tidings.testing.strategies import cases

NAMES = st.sampled_from(["a", "b", "price", "year_from", "x9", "_y", "in", "And", "größe", "s.t", "kind"])
NUMBERS = st.one_of(
    st.integers(-20, 20).map(str),
    st.integers(-(10**16), 10**16).map(str),
    st.sampled_from(["1.5", "-0", "007", "2.50", "1e5", "0.1", "-3.25", "123456789012345", "1234567890.123456", "9."]),
)
STRINGS = st.sampled_from(["'x'", "'y z'", "'salt and pepper'", "''", r"'it\'s'", "'ß'", "'x', 'x'", '"q"', "'(a'"])
VALUES = st.one_of(NUMBERS, STRINGS)
SPACES = st.sampled_from(["", " ", " ", " ", "  "])


@st.composite
def pieces(draw):
    name, space = draw(NAMES), draw(SPACES)
    match draw(st.sampled_from(["op", "op", "range", "range", "set", "odd"])):
        case "op":
            return f"{name}{space}{draw(st.sampled_from(['=', '<', '<=', '>', '>=', '!=', '==']))}{space}{draw(VALUES)}"
        case "range":
            low, high = draw(st.one_of(st.just(""), NUMBERS)), draw(st.one_of(st.just(""), NUMBERS))
            left, right = draw(st.sampled_from("[(")), draw(st.sampled_from("])"))
            return f"{name} in {left}{low} .. {high}{right}"
        case "set":
            return f"{name} in{space}({', '.join(draw(st.lists(VALUES, min_size=1, max_size=3)))})"
        case _:
            return draw(
                st.sampled_from([f"{name} exists", f"not {name} = 1", f"{name} < 5 km", f"{name} in", "(a = 1)"])
            )


written = st.lists(pieces(), min_size=1, max_size=4).map(" and ".join)


def load_texts(texts, *, by_column):
    """Return a matcher, what it refused, and by which way it was loaded."""
    matcher = td.Matcher()
    table = pa.table({"id": [f"s{n}" for n in range(len(texts))], "filter": pa.array(texts, pa.string())})
    if by_column:
        load = text_load.build_text_load(table, matcher.admission, matcher.backend, bulk_rows=1)
        errors = [(table["id"][row].as_py(), problem) for row, problem in load.enter(keep_good=True)]
    else:
        errors = matcher.add_many(list(zip(*table.to_pydict().values(), strict=True)), on_error="collect")
    return matcher, [(id, str(problem)) for id, problem in errors]


def same(first, second):
    assert first[1] == second[1]
    assert sorted(first[0]) == sorted(second[0])
    assert {id: render(first[0][id]) for id in first[0]} == {id: render(second[0][id]) for id in second[0]}
    assert {id: first[0][id] for id in first[0]} == {id: second[0][id] for id in second[0]}
    assert first[0].needs() == second[0].needs()


def answer(matcher, event):
    """Return who hears of an event; of several bad attributes either may be the one that is named."""
    try:
        return sorted(matcher.match(event))
    except td.BadEvent:
        return "bad"


@given(st.lists(written, min_size=1, max_size=12))
def test_text_by_columns_is_text_one_by_one(texts):
    first, second = load_texts(texts, by_column=True), load_texts(texts, by_column=False)
    same(first, second)
    values = [None, -7, 0, 1, 1.5, 5, 13, "x", "y z", "salt and pepper", [1, 7], ["x", 3]]
    for value in values:
        event = {"a": value, "b": 1, "price": value, "x9": value, "_y": "x", "kind": value}
        assert answer(first[0], event) == answer(second[0], event)


@given(cases())
def test_filters_of_every_kind_go_in_the_same_way(case):
    texts = [render(tree) for tree in case.filters]
    table = pa.table({"id": [str(n) for n in range(len(texts))], "filter": pa.array(texts, pa.string())})
    made = []
    for by_column in (True, False):
        matcher = td.Matcher(**case.world.keywords)
        if by_column:
            load = text_load.build_text_load(table, matcher.admission, matcher.backend, bulk_rows=1)
            errors = [(table["id"][row].as_py(), problem) for row, problem in load.enter(keep_good=True)]
        else:
            errors = matcher.add_many(list(zip(*table.to_pydict().values(), strict=True)), on_error="collect")
        made.append((matcher, [(id, str(problem)) for id, problem in errors]))
    same(*made)
    for event in case.events:
        assert answer(made[0][0], event) == answer(made[1][0], event)


def test_typical_searches_are_read_by_the_kernel():
    texts = ["make = 'ford' and price in [1000 .. 9000]", "fuel in ('gas', 'diesel')", "a<5", "year >= 2015.5"]
    laid = lay_out(read_texts(pa.array(texts)))
    assert not laid.unparsed.any()
    assert laid.columns["price_from"].to_pylist() == [1000, None, None, None]
    assert laid.columns["fuel"].to_pylist() == [None, ["gas", "diesel"], None, None]
    assert laid.columns["a_below"].to_pylist() == [None, None, 5, None]
    assert laid.columns["year_from"].to_pylist() == [None, None, None, 2015.5]


@pytest.mark.parametrize(
    "text",
    ["a = 1 and a = 2", "a < 5 km", "a in [1 .. 2", "a in (1, 'x')", "a = 1 or b = 2", "a = 'it\\'s'", "", "a = 01",
     "a = 1234567890123456", "in = 1", "a.b = 1", "x_from = 1", "a = 1 and", "a = 1and b = 2", "a = 1 and b", "a in 5"],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_parser(text):
    assert lay_out(read_texts(pa.array([text]))).unparsed.tolist() == [True]


def test_rows_whose_tests_stand_in_another_order_keep_their_text():
    texts = ["a = 1 and b = 2"] * 5 + ["b = 2 and a = 1"]
    matcher, _ = load_texts(texts, by_column=True)
    assert render(matcher["s5"]) == "b = 2 and a = 1"
    assert render(matcher["s0"]) == "a = 1 and b = 2"


def test_large_tables_of_text_take_this_way_and_others_do_not():
    many = pa.table({"id": np.arange(text_load.MIN_KERNEL_ROWS), "filter": ["a = 1"] * text_load.MIN_KERNEL_ROWS})
    assert is_worth_columns(many)
    assert not is_worth_columns(many.slice(1))
    assert not is_worth_columns(many.set_column(1, "filter", pa.array(["a exists"] * text_load.MIN_KERNEL_ROWS)))
    assert not is_worth_columns(many.append_column("notation", pa.array(["url"] * text_load.MIN_KERNEL_ROWS)))
    matcher = td.Matcher()
    matcher.add_many(many)
    assert len(matcher.match({"a": 1})) == text_load.MIN_KERNEL_ROWS


def test_texts_that_begin_in_the_middle_of_a_buffer_are_read_there():
    whole = pa.array(["x = 9", "a = 1", "b = 'y'", None])
    laid = lay_out(read_texts(whole.slice(1)))
    assert laid.columns["a"].to_pylist() == [1, None, None]
    assert laid.columns["b"].to_pylist() == [None, "y", None]
    assert laid.unparsed.tolist() == [False, False, True]


def test_many_pairs_go_this_way_and_refusals_name_their_own_ids():
    ids = [f"s{n}" for n in range(text_load.MIN_KERNEL_ROWS)]
    texts = [(id, "price < 5 and make = 'x'") for id in ids]
    texts[7], texts[1999] = (ids[7], "price <"), (ids[1999], "price = 'low")
    matcher = td.Matcher()
    errors = matcher.add_many(texts, on_error="collect")
    assert [id for id, _ in errors] == ["s7", "s1999"]
    assert errors[0][0] is ids[7]
    assert len(matcher) == text_load.MIN_KERNEL_ROWS - 2
    with pytest.raises(td.TidingsError, match=r"(?s)2 of 2000 subscriptions were refused.*`s7`.*`s1999`"):
        td.Matcher().add_many(texts)
