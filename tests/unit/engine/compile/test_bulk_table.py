"""Bulk tables: literals made from whole columns accept what the values of each row say."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from tests.examples import examples

from tidings.engine.arrays import pack_bytes
from tidings.engine.compile.bulk_table import EndColumn, EqualityColumn, RangeColumn, SetColumn, build_bulk_table
from tidings.engine.compile.code_spaces import ByteSpace, LinearSpace, RankedSpace
from tidings.engine.compile.columns import Column, Numbers, View
from tidings.engine.tuning import EngineTuning
from tidings.kernels.match.column_literals import CLOSED, NONE, OPEN
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import UNION
from tidings.model import Kind

A, B = (Column(name, View.NUMBER, kind=Kind.NUMBER) for name in "ab")
whole = st.integers(-5, 5) | st.sampled_from([2**40, -(2**50)])
real = st.sampled_from([-1e300, -2.5, -0.0, 0.0, 0.1, 0.25, 3.0, 1e300])


def ends(draw, cell, count, states=(0, 1)):
    values = np.array(draw(st.lists(cell, min_size=count, max_size=count)))
    chosen = draw(st.lists(st.sampled_from(states), min_size=count, max_size=count))
    return EndColumn(values.astype(np.float64 if values.dtype.kind == "f" else np.int64), np.array(chosen, np.uint8))


@st.composite
def conjunctions(draw):
    cell, count = draw(st.sampled_from([whole, real])), draw(st.integers(1, 8))
    states = (NONE, CLOSED, OPEN)
    points = EqualityColumn(A, ends(draw, cell, count))
    spans = RangeColumn(A, ends(draw, cell, count, states), ends(draw, cell, count, states))
    sizes = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    flat = np.array([draw(cell) for _ in range(start[-1])], np.float64)
    sets = SetColumn(B, EndColumn(flat, np.ones(len(flat), np.uint8)), start, np.array(sizes, bool).view(np.uint8))
    return draw(st.permutations([points, spans, sets])), count


def accepts(test, row, value):
    """Return what a test says of a value, or nothing where the row does not ask it."""
    match test:
        case EqualityColumn(ends=first):
            return value == first.values[row] if first.mask[row] else None
        case SetColumn(ends=first, start=start, mask=asked):
            return value in first.values[start[row] : start[row + 1]] if asked[row] else None
        case RangeColumn(low=low, high=high):
            if not low.mask[row] and not high.mask[row]:
                return None
            above = {NONE: True, CLOSED: value >= low.values[row], OPEN: value > low.values[row]}[low.mask[row]]
            return (
                above
                and {NONE: True, CLOSED: value <= high.values[row], OPEN: value < high.values[row]}[high.mask[row]]
            )


def meet_value(table, at, value):
    """Return the column of a literal, and whether it accepts a value."""
    head, low, high = (int(array[at]) for array in table.literals[:3])
    column = head >> OP_BITS
    code = int(table.spaces[column].encode(Numbers(np.array([value], np.float64)))[0])
    if not head & UNION:
        return table.columns[column], low <= code <= high
    first, last = table.literals.union_start[low : low + 2]
    parts = zip(table.literals.union_low[first:last], table.literals.union_high[first:last], strict=True)
    return table.columns[column], any(array <= code <= second for array, second in parts)


@given(conjunctions(), st.lists(whole | real, min_size=3, max_size=8))
@examples(150)
def test_a_row_has_the_literals_of_its_tests_in_their_order(made, values):
    tests, count = made
    table = build_bulk_table(tests, np.arange(count), {})
    for row in range(count):
        asked = [test for test in tests if accepts(test, row, 0) is not None]
        literals = range(table.start[row], table.start[row + 1])
        for test, at in zip(asked, literals, strict=True):
            for value in values:
                assert meet_value(table, at, value) == (test.column, bool(accepts(test, row, value)))


@pytest.mark.parametrize("block", [1, 3])
def test_blocks_make_no_difference(block):
    rng = np.random.default_rng(3)
    states = rng.integers(0, 2, (2, 50)).astype(np.uint8)
    tests = [
        EqualityColumn(column, EndColumn(rng.integers(0, 9, 50), mask))
        for column, mask in zip((A, B), states, strict=True)
    ]
    whole_table = build_bulk_table(tests, np.arange(50), {})
    other_table = build_bulk_table(tests, np.arange(50), {}, EngineTuning(bulk_block=block))
    for first, other in zip(whole_table.literals, other_table.literals, strict=True):
        assert np.array_equal(first, other)


def test_integers_get_the_space_that_fits_them():
    def space(values):
        return build_bulk_table(
            [EqualityColumn(A, EndColumn(values, np.ones(len(values), np.uint8)))], np.arange(len(values)), {}
        ).spaces[0]

    assert space(np.arange(1000, 101_000)) == LinearSpace(1000, 100_000)
    few = space(np.array([7, 3, 7, 100]))
    assert isinstance(few, RankedSpace)
    assert few.ends.tolist() == [3, 7, 100]
    far = space(np.array([0, 2**52]))
    assert isinstance(far, RankedSpace)
    assert far.ends.tolist() == [0, 2**52]


def test_rows_that_are_left_out_have_no_literals():
    test = EqualityColumn(A, EndColumn(np.array([1, 2, 3]), np.array([1, 0, 1], np.uint8)))
    table = build_bulk_table([test], np.array([0, 2]), {})
    assert table.start.tolist() == [0, 1, 2]
    assert table.slot.tolist() == [0, 2]


def test_text_comes_ranked():
    column = Column("t", View.TEXT, kind=Kind.TEXT)
    space = ByteSpace(*pack_bytes([b"a", b"b"]))
    table = build_bulk_table(
        [EqualityColumn(column, EndColumn(np.array([1, 0]), np.ones(2, np.uint8)))], np.arange(2), {column: space}
    )
    assert table.literals.low.tolist() == [3, 1]
    assert table.spaces == (space,)
