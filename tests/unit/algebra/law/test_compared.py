"""Two attributes compared: as a declared side says, otherwise as the values are; unlike values do not satisfy."""

from datetime import UTC, datetime

import pytest

import tidings as td
from tidings.errors import KindConflict
from tidings.model import Point, Quantity, Range


def accepts(text, event, **around):
    return td.evaluate(td.parse(text), event, **around)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a < b", False), ("a = b", False), ("a != b", True), ("all(a) < b", False), ("none(a) < b", True)],
)
def test_unlike_values_do_not_satisfy(text, expected):
    unlike = [(1, "x"), (True, 1), (Point(1, 2), "x"), ({"x": 1}, 5), (float("inf"), float("inf")), (2**70, 2**70)]
    for left, right in unlike:
        assert accepts(text, {"a": left, "b": right}) is expected


def test_values_without_an_order_are_equal_and_nothing_more():
    assert accepts("a = b", {"a": True, "b": True})
    assert not accepts("a <= b or a >= b", {"a": True, "b": True})
    assert accepts("a = b", {"a": Point(1, 2), "b": Point(1, 2)})


def test_text_beside_a_number_or_a_time_is_read_as_that():
    assert accepts("a < b", {"a": "9", "b": 10})
    assert not accepts("a < b", {"a": "9", "b": "10"})  # two texts are texts
    assert accepts("a < b", {"a": "2024-01-01", "b": td.Range(datetime(2024, 6, 1, tzinfo=UTC), None)})
    assert accepts("a = b", {"a": ["x", "5"], "b": [True, 5.0]})


def test_a_range_without_ends_is_of_numbers_or_of_times():
    assert accepts("a < b", {"a": Range(), "b": 5})
    assert not accepts("a < b or a = b", {"a": Range(), "b": "x"})
    assert not accepts("a = b", {"a": Range(), "b": True})


def test_elements_of_an_array_are_compared_each_for_itself():
    tree = "items has (ask < bid)"
    assert accepts(tree, {"items": [{"ask": 1, "bid": 2}, {"ask": "x", "bid": "w"}]})
    assert accepts(tree, {"items": [{"ask": 1, "bid": "2"}]})
    assert not accepts(tree, {"items": [{"ask": 1, "bid": "x"}, 5]})


def test_a_declared_side_gives_both_their_kind():
    schema = td.Schema({"a": "number", "b": "any"})
    assert accepts("a < b and b > a", {"a": 9, "b": "10"}, schema=schema)
    assert not accepts("a < b or a = b", {"a": 9, "b": "x"}, schema=schema)
    assert accepts("b != a", {"a": 9, "b": "x"}, schema=schema)
    texts = td.Schema({"a": "text", "b": "any"})
    assert not accepts("a = b", {"a": "5", "b": 5}, schema=texts)


def test_a_declared_unit_goes_for_both():
    shop = td.Ontology.from_dict({"attributes": {"size": {"unit": "GB"}}})
    assert accepts("size < limit", {"size": 50, "limit": "60000 MB"}, ontology=shop)
    assert accepts("size < limit", {"size": "50 GB", "limit": 60}, ontology=shop)
    assert not accepts("size < limit", {"size": 50, "limit": "60 km"}, ontology=shop)


def test_what_other_tests_ask_of_an_attribute_does_not_bear_on_a_comparison():
    assert accepts("size >= 40 GB and size < limit", {"size": ["50 GB", 5], "limit": 60})
    assert not accepts("size >= 40 GB and size < limit", {"size": "50 GB", "limit": 60})
    assert accepts("a < b and a = 'x' and b = 1", {"a": ["x", 0], "b": 1})


@pytest.mark.parametrize(
    "kinds", [{"a": "number", "b": "text"}, {"a": "time", "b": "number"}, {"a": "bool", "b": "any"}], ids=str
)
def test_declared_attributes_that_do_not_compare_are_refused(kinds):
    with pytest.raises(KindConflict):
        accepts("a < b", {}, schema=td.Schema(kinds))


def test_an_amount_is_compared_as_an_amount_only_where_a_unit_is_declared():
    assert not accepts("a < b", {"a": Quantity(1, "GB"), "b": Quantity(2, "GB")})


def test_a_range_may_bring_units_where_units_are_asked_for():
    span = Range(Quantity(1, "GB"), Quantity(2, "GB"))
    assert accepts("size = 1500 MB", {"size": span})
    assert not accepts("size > 2 GB", {"size": span})
    assert accepts("none(size) > 2", {"size": span})
    assert accepts("none(size) > 0 GB", {"size": Range(Quantity(1, "GB"), Quantity(2, "MB"))})


def test_a_record_declared_as_one_is_not_a_list():
    schema = td.Schema({"seller": "record", "seller.name": "text"})
    assert accepts("seller has (name = 'x')", {"seller": {"name": "x"}}, schema=schema)
    with pytest.raises(td.BadEvent, match="one value"):
        accepts("seller has (name = 'x')", {"seller": [{"name": "x"}]}, schema=schema)


def test_an_array_of_no_dimension_is_a_scalar():
    np = pytest.importorskip("numpy")
    assert accepts("a = 5", {"a": np.array(5)})
    assert accepts("a = 5", {"a": np.array([4, 5])})
