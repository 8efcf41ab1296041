"""Whatever an event holds, it is read or it is bad: never a crash, one event or a batch."""

import contextlib
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, ip_network

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.model import Point, Quantity
from tidings.testing.strategies import bad_values, cases, filters, scalars, worlds

KINDS = ("number", "text", "bool", "time", "place", "concept", "ip", "record")

NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001 - without a zone, on purpose
EARLIEST, LATEST = datetime.min, datetime.max  # noqa: DTZ901

ODD = (
    None, True, 0, 10**400, -(10**30), float("nan"), float("-inf"), 1j, Fraction(1, 3), Decimal("sNaN"),
    Decimal("1e999999"), "", "\ud800", "1" * 5000, "0" * 40, "1e5000", "٣", "２", "1 GB", "GB", "5 furlng", "$5",
    "2024-W01-1", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", b"", bytearray(b"x"), memoryview(b"x"),
    set(), {1, "a"}, frozenset({None}), range(3), (), {}, {"lon": 1, "lat": 2}, {"lon": None, "lat": "x"},
    {"lon": [1], "lat": [2]}, {1: 2}, {"": None}, object(), type, time(1), timedelta(1), date.min, date.max,
    EARLIEST, LATEST, LATEST.replace(tzinfo=UTC), np.float64("nan"), np.int64(5), np.uint64(2**64 - 1),
    np.bool_(True), np.datetime64("NaT"), np.datetime64("2024-01-01"), np.datetime64("2024-01-01T00:00:00.000000001"),
    np.str_("x"), np.array(5), np.array([1, 2]), np.array([[1.0, 2.0]]), np.array([], dtype=object),
    IPv4Address("10.0.0.1"), ip_network("10.0.0.0/30"), Point(1, 2), Quantity(5, "GB"), Quantity(5, "no such unit"),
    td.Range(), td.Range(1, 2), td.Range("a", "b"), td.Range(1, 1, True), td.Range(Quantity(1, "GB"), 5),
    td.Range(Quantity(1, "GB"), Quantity(1, "MB")), td.Range(NAIVE),
    td.Event(values={"a": 1}), lambda: 1, "a\x00b", [[[[[]]]]],
    [None, [None]],
)  # fmt: skip

junk = st.recursive(
    st.sampled_from(ODD) | st.text(max_size=5) | st.one_of([scalars(kind) for kind in KINDS]) | bad_values("number"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("a", "lon", "sku", "x.y", "")), inner, max_size=3)
    ),
    max_leaves=6,
)


def reads_or_refuses(tree, event, world):
    with contextlib.suppress(td.BadEvent):
        assert td.evaluate(tree, event, **world.keywords) in (True, False)


@given(worlds(), st.data())
@examples(400)
def test_any_value_is_read_or_makes_the_event_bad(world, data):
    tree = data.draw(filters(world, depth=2))
    names = st.sampled_from([spelled for name in world.slots for spelled in (name, name.partition(".")[0])])
    reads_or_refuses(tree, data.draw(st.dictionaries(names, junk, max_size=4)), world)


@given(cases(recipes=("size", "money", "length", "twice"), events=1, filters=1), st.data())
@examples(200)
def test_any_amount_is_read_or_makes_the_event_bad(case, data):
    (event,) = case.events
    reads_or_refuses(case.filters[0], {**event, **{key: data.draw(junk) for key in ("currency", "once")}}, case.world)


@pytest.mark.parametrize(
    "odd", [None, 5, "text", b"", [], [{}], object(), 1.5, {1, 2}, td.Event, np.array([1])], ids=repr
)
def test_what_is_not_a_mapping_is_a_bad_event(odd):
    with pytest.raises(td.BadEvent):
        td.evaluate(td.parse("a = 1"), odd)


def test_what_is_nested_beyond_reason_is_bad_where_it_is_declared_and_nobodys_elsewhere():
    deep, wide = [], {}
    for _ in range(100_000):
        deep, wide = [deep], {"a": wide}
    around = []
    around.append(around)
    for value in (deep, wide, around):
        assert not td.evaluate(td.parse("a = 1"), {"a": value})
        assert td.evaluate(td.parse("none(a) = 1 and b = 2"), {"a": value, "b": 2}) or value is deep
        with pytest.raises(td.BadEvent):
            td.evaluate(td.parse("a = 1"), {"a": [value, value]}, schema=td.Schema({"a": "several number"}))
