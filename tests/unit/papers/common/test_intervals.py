"""Filters as boxes, boxes as rows of a table, events as vectors."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.algebra import bind
from tidings.algebra.law.typed_attribute import Mismatch
from tidings.concepts import Vocabulary
from tidings.errors import TidingsError, Unsupported
from tidings.kernels.papers.domain_cells import HIGH_OPEN, LOW_OPEN, WANTED
from tidings.model import Range
from tidings.papers.common.intervals import ALL, INFINITY, Interval, to_boxes, to_coordinate
from tidings.papers.common.name_order import describe_attribute
from tidings.papers.hem.range_table import RangeTable

ENDS = st.sampled_from([-INFINITY, -1.0, 0.0, 0.5, 1.0, 2.0, INFINITY])
INTERVALS = st.builds(Interval, ENDS, ENDS, st.integers(0, 3))
POINTS = [-1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0]


def holds(interval, value):
    """Tell whether an interval holds a value, end by end."""
    if interval is None:
        return False
    low = value > interval.low if interval.ends & LOW_OPEN else value >= interval.low
    high = value < interval.high if interval.ends & HIGH_OPEN else value <= interval.high
    return low and high


@given(INTERVALS, INTERVALS)
def test_two_intervals_meet_in_what_both_hold(first, second):
    met = first.intersect(second)
    for value in POINTS:
        assert holds(met, value) == (holds(first, value) and holds(second, value))


def boxes(text):
    tree = bind(td.parse(text), Vocabulary())
    return [{describe_attribute(key): interval for key, interval in box.items()} for box in to_boxes(tree, "some")]


def above(low):
    return Interval(low, INFINITY, LOW_OPEN)


def below(high):
    return Interval(-INFINITY, high, HIGH_OPEN)


def point(value):
    return Interval(value, value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < 3", [{"a as number": Interval(-INFINITY, 3.0, HIGH_OPEN)}]),
        ("a >= 3", [{"a as number": Interval(3.0, INFINITY)}]),
        ("a = 3 and b in (1 .. 2]", [{"a as number": Interval(3.0, 3.0), "b as number": Interval(1.0, 2.0, LOW_OPEN)}]),
        ("a exists", [{"a": ALL}]),
        ("a > 1 and a < 2 and a <= 5", [{"a as number": Interval(1.0, 2.0, LOW_OPEN | HIGH_OPEN)}]),
        ("a > 2 and a < 1", []),
        ("a >= 2 and a < 2", []),
        ("true", [{}]),
        ("false", []),
        ("a in (1, 2)", [{"a as number": Interval(1.0, 1.0)}, {"a as number": Interval(2.0, 2.0)}]),
        ("a > 5 and a > 2 GB", [{"a as number": above(5.0), "a as number in bit": above(16e9)}]),
        ("a in (1 GB, 2 MB)", [{"a as number in bit": point(8e9)}, {"a as number in bit": point(16e6)}]),
        ("a >= 3 and a < 1970-01-02", [{"a as number": Interval(3.0, INFINITY), "a as time": below(864e8)}]),
        ("a < 3 and a exists", [{"a as number": below(3.0), "a": ALL}]),
        ("a = 9007199254740992", [{"a as number": Interval(2.0**53, 2.0**53)}]),
    ],
)
def test_a_filter_is_boxes(text, expected):
    assert sorted(map(str, boxes(text))) == sorted(map(str, expected))


def test_or_makes_a_box_of_each_conjunction():
    assert len(boxes("(a = 1 or b = 2) and (c = 3 or d = 4)")) == 4


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a = 1 and make = 'ford'", "make = 'ford'"),
        ("a = 1 or not b > 2", "not b > 2"),
        ("all(a) = 1", "all(a) = 1"),
        ("a in ('x', 'y')", "a in ('x', 'y')"),
        ("a = true", "a = true"),
        ("b = 1 and a > 9007199254740993", "a > 9007199254740993"),
    ],
)
def test_what_is_no_interval_is_named(text, part):
    with pytest.raises(Unsupported) as caught:
        boxes(text)
    assert caught.value.part == part
    assert f"`{part}`" in str(caught.value)
    assert "`some`" in str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((3,), 3.0),
        ((2.5,), 2.5),
        ((2**53 + 1,), None),
        ((2**53 + 2,), 2.0**53 + 2),
        ((-(2**60),), -(2.0**60)),
        ((1, 1), None),
        ((Range(1, 2),), None),
        (("x",), None),
        ((True,), None),
        ((datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),), 1e6),
        ((datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),), None),
        ((datetime(9999, 12, 31, tzinfo=UTC),), 253402214400e6),
        ((Mismatch("x"), 3), 3.0),
        ((Mismatch("x"), 3, 4), None),
    ],
)
def test_a_coordinate_is_one_value_that_a_float_equals(values, expected):
    assert to_coordinate(values) == expected


def test_what_cannot_be_read_lies_nowhere():
    assert math.isnan(to_coordinate((Mismatch("x"),)))
    assert math.isnan(to_coordinate((Mismatch("x"), Mismatch(True))))


BOXES = st.lists(st.dictionaries(st.sampled_from("abcdefg"), INTERVALS, max_size=4), max_size=6)


@examples(60)
@given(st.lists(st.tuples(BOXES, st.sets(st.integers(0, 30))), max_size=8))
def test_a_table_has_what_was_added_and_not_discarded(steps):
    table, twin = RangeTable("some"), {}
    for more, places in steps:
        rows = table.add(more)
        assert len(set(rows.tolist()) | set(twin)) == len(more) + len(twin)
        twin.update(zip(rows.tolist(), more, strict=True))
        gone = [row for at, row in enumerate(sorted(twin)) if at in places]
        table.discard(np.array(gone, np.int32))
        for row in gone:
            del twin[row]
        assert np.flatnonzero(table.alive).tolist() == sorted(twin)
        assert table.count == len(twin)
        for row, box in twin.items():
            for name, column in table.columns.items():
                cell = box.get(name)
                expected = (-INFINITY, INFINITY, 0) if cell is None else (cell.low, cell.high, cell.ends | WANTED)
                ends = table.lows[column, row], table.highs[column, row], table.ends[column, row]
                assert ends == expected


def test_a_table_that_would_be_too_large_is_refused_and_left_as_it_was():
    table = RangeTable("some", most_bytes=10_000)
    table.add([{"a": ALL}])
    with pytest.raises(TidingsError, match="`some` keeps a cell"):
        table.add([{f"x{number}": ALL for number in range(100)}])
    assert list(table.columns) == ["a"]
    assert table.add([{"b": ALL}]).tolist() == [1]
    assert (table.count, list(table.columns)) == (2, ["a", "b"])
