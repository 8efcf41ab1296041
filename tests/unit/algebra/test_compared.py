"""Two attributes compared: what can be compared is settled at the edge, before any filter looks."""

import pytest

import tidings as td
from tidings.errors import KindConflict
from tidings.model import Quantity, Range

UNLIKE = {"a": 1, "b": "x"}


@pytest.mark.parametrize("text", ["a < b", "a < b or true", "true or a < b", "not (a < b)", "false and a < b", "a = b"])
def test_an_event_is_bad_wherever_in_the_filter_the_comparison_stands(text):
    with pytest.raises(td.BadEvent, match="cannot be decided"):
        td.evaluate(td.parse(text), UNLIKE)


def test_values_without_an_order_make_a_bad_event():
    with pytest.raises(td.BadEvent):
        td.evaluate(td.parse("a < b"), {"a": True, "b": False})
    assert not td.evaluate(td.parse("a = b"), {"a": True, "b": False})


def test_elements_of_an_array_are_compared_each_for_itself():
    tree = td.parse("items has (ask < bid)")
    assert td.evaluate(tree, {"items": [{"ask": 1, "bid": 2}, {"ask": "x", "bid": "w"}]})
    with pytest.raises(td.BadEvent, match="ask"):
        td.evaluate(tree, {"items": [{"ask": 1, "bid": "2"}]})


def test_an_attribute_is_read_in_the_unit_of_the_one_it_is_compared_with():
    tree = td.parse("size >= 40 GB and size < limit")
    assert td.evaluate(tree, {"size": "50 GB", "limit": "60000 MB"})
    assert not td.evaluate(tree, {"size": "50 GB", "limit": "40000 MB"})
    with pytest.raises(td.BadEvent, match="unit"):
        td.evaluate(tree, {"size": "50 GB", "limit": 60})


def test_a_declared_number_is_read_in_that_unit_too():
    schema = td.Schema({"size": "number", "limit": "number"})
    tree = td.parse("size >= 40 GB and size < limit", schema=schema)
    assert td.evaluate(tree, {"size": "50 GB", "limit": "60000 MB"}, schema=schema)


@pytest.mark.parametrize(
    "text", ["size > 40 GB and size < limit and limit > 5", "size > 40 GB and size < limit and limit > 5 km"]
)
def test_attributes_in_different_units_are_not_compared(text):
    with pytest.raises(KindConflict, match="unit"):
        td.evaluate(td.parse(text), {})


def test_units_are_compared_across_subscriptions():
    matcher = td.Matcher()
    matcher.add("compared", "size < limit")
    matcher.add("bare", "limit > 5")
    with pytest.raises(KindConflict, match="unit"):
        matcher.add("with a unit", "size > 40 GB")
    assert matcher.match({"size": 5, "limit": 6}) == ["compared", "bare"]


def test_an_amount_whose_unit_nobody_asked_for_is_not_compared():
    with pytest.raises(td.BadEvent):
        td.evaluate(td.parse("a < b"), {"a": Quantity(1, "GB"), "b": Quantity(2, "GB")})


def test_a_range_may_bring_units_where_units_are_asked_for():
    span = Range(Quantity(1, "GB"), Quantity(2, "GB"))
    assert td.evaluate(td.parse("size = 1500 MB"), {"size": span})
    assert not td.evaluate(td.parse("size > 2 GB"), {"size": span})
    with pytest.raises(td.BadEvent):
        td.evaluate(td.parse("size > 2"), {"size": span})
    with pytest.raises(td.BadEvent):
        td.evaluate(td.parse("size > 2 GB"), {"size": Range(Quantity(1, "GB"), Quantity(2, "MB"))})


def test_a_record_declared_as_one_is_not_a_list():
    schema = td.Schema({"seller": "record", "seller.name": "text"})
    tree = td.parse("seller has (name = 'x')")
    assert td.evaluate(tree, {"seller": {"name": "x"}}, schema=schema)
    with pytest.raises(td.BadEvent, match="one value"):
        td.evaluate(tree, {"seller": [{"name": "x"}]}, schema=schema)


def test_an_array_of_no_dimension_is_a_scalar():
    np = pytest.importorskip("numpy")
    assert td.evaluate(td.parse("a = 5"), {"a": np.array(5)})
    assert td.evaluate(td.parse("a = 5"), {"a": np.array([4, 5])})
