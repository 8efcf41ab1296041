"""`overlaps`: some event suits both filters; false only when none does."""

from datetime import UTC, datetime

import pytest

import tidings as td
from tidings.model import Is, Test, all_of, any_of

ONE = td.Schema({"a": "number", "b": "number", "t": "text", "p": "place", "posted": "time"})


def overlap(first, second, **around):
    both = td.overlaps(td.parse(first), td.parse(second), **around)
    assert both is td.overlaps(td.parse(second), td.parse(first), **around)
    return both


def test_two_ranges_overlap_by_an_event_with_two_values_unless_a_schema_says_one():
    assert overlap("a < 2", "a > 3")
    assert not overlap("a < 2", "a > 3", schema=ONE)


def test_all_values_below_and_all_above_is_an_event_range_unless_a_schema_says_one():
    assert td.evaluate(td.parse("all(a) < 1 and all(a) > 9"), {"a": td.Range(0, 10)})
    assert overlap("all(a) < 1", "all(a) > 9")
    assert not overlap("all(a) < 1", "all(a) > 9", schema=ONE)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a = 1", "b = 1", True),
        ("a = 1", "not a = 1", False),
        ("a = 1", "a != 1", False),
        ("a != 1", "not a exists", False),
        ("not a = 1", "not a exists", True),
        ("a is null", "a exists", False),
        ("a is null", "not a = 1", True),
        ("a = 1", "none(a) in [0 .. 2]", False),
        ("a in [0 .. 5]", "none(a) in [0 .. 2]", True),
        ("a in (1, 2)", "none(a) in (1, 2, 3)", False),
        ("all(t) starts with 'ab'", "t starts with 'ac'", False),
        ("all(t) ends with 'b'", "t ends with 'ab'", True),
        ("all(t) ends with 'b'", "t ends with 'ba'", False),
        ("all(t) like 'a*b'", "t = 'acb'", True),
        ("all(t) like 'a*b'", "t = 'ac'", False),
        ("none(t) contains 'b'", "t starts with 'abc'", False),
        ("none(t) contains 'b'", "t contains 'abc'", False),
        ("none(t) contains 'B' ignoring case", "t starts with 'abc'", False),
        ("all(i) in 10.0.0.0/8", "i in 10.1.0.0/16", True),
        ("all(i) in 10.0.0.0/8", "i in 11.0.0.0/8", False),
        ("all(i) in 10.0.0.0/8", "i in ::/0", False),
        ("all(flag) = true", "flag = false", False),
        ("a < b", "none(a) <= b", False),
        ("a < b", "not b exists", False),
        ("items has (q > 2)", "none(items) has (q > 1)", False),
        ("items has (q > 2)", "none(items) has (q > 3)", True),
        ("items has (q > 2 and none(q) > 1)", "x = 1", False),
    ],
)
def test_what_overlaps_without_a_schema(first, second, expected):
    assert overlap(first, second) is expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a <= 2", "a >= 2", True),
        ("a < 2", "a >= 2", False),
        ("t > 'a'", "t < 'b'", True),
        ("t = 'abc'", "t contains 'x'", False),
        ("t matches /a.c/", "t = 'abc'", True),
        ("t matches /a.c/", "t = 'ab'", False),
        ("t ends with 'a'", "t ends with 'b'", False),
        ("p within POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", "p within POLYGON((3 3, 4 3, 4 4, 3 4, 3 3))", False),
        ("p within POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", "p within POLYGON((2 2, 4 2, 4 4, 2 4, 2 2))", True),
        (
            "p within POLYGON((179 0, 181 0, 181 2, 179 2, 179 0))",
            "p within POLYGON((-180 0, -179 0, -179 1, -180 0))",
            True,
        ),
        ("p near (0, 0) 50 km", "p near (1, 0) 50 km", False),
        ("p near (0, 0) 60 km", "p near (1, 0) 60 km", True),
        ("p near (0, 0) 60 km", "p within POLYGON((3 3, 4 3, 4 4, 3 4, 3 3))", False),
        ("a < b", "a > b", False),
        ("a <= b", "a >= b", True),
        ("age(posted) < 7 days", "age(posted) >= 7 days", False),
        ("age(posted) < 7 days", "posted < 2020-01-01", True),
    ],
)
def test_what_overlaps_where_each_attribute_has_one_value(first, second, expected):
    assert overlap(first, second, schema=ONE) is expected


def test_ages_and_times_are_told_apart_once_it_is_known_what_time_it_is():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert not overlap("age(posted) < 7 days", "posted < 2020-01-01", schema=ONE, now=now)


@pytest.mark.parametrize("first", ["all(a) = 1", "all(a) > 5 GB", "none(a) = true", "all(a) near (1, 2) 5 km"])
@pytest.mark.parametrize("second", ["all(a) = '1'", "all(a) in 10.0.0.0/8", "all(a) > 5 km", "all(a) has (b = 1)"])
def test_one_attribute_used_as_two_kinds_overlaps(first, second):
    assert overlap(first, second)
    assert not td.covers(td.parse(first), td.parse(second))
    assert overlap(first, second, schema=td.Schema({"a": "any", "a.b": "any"}))


def test_text_that_is_a_number_satisfies_both():
    assert td.evaluate(td.parse("all(a) = 1 and all(a) = '1'"), {"a": "1"})


def test_presence_is_shared_by_all_kinds():
    assert not overlap("a = 1", "a = 'x' and not a exists")
    assert not overlap("none(a) = 1", "a is null")
    assert not overlap("a = 1 and a = 'x'", "none(a) = 'x'")


def test_what_is_too_large_to_decide_overlaps():
    wide = all_of(any_of([Test(f"a{at}", Is(0)), Test(f"b{at}", Is(0))]) for at in range(40))
    assert td.overlaps(wide, td.parse("a = 1"))
    assert not td.overlaps(all_of([wide, td.parse("a != 1")]), td.parse("a = 1"))
