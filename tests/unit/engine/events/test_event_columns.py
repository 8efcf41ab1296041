"""Readings into columns: what each view holds, with one value, several, a range or none."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

import numpy as np
import pytest

from tidings.algebra import Reading, Setting
from tidings.algebra.law.typed_attribute import Mismatch
from tidings.concepts import Ontology, Tree
from tidings.engine.compile.columns import UNREADABLE, UNREADABLE_TEXT, Column, View, to_typed_attribute
from tidings.engine.events.event_columns import build_columns
from tidings.engine.events.views import AMBIGUOUS
from tidings.model import Kind, Point, Range

KINDS = {int: Kind.NUMBER, float: Kind.NUMBER, bool: Kind.BOOL, datetime: Kind.TIME, Range: Kind.NUMBER}
KINDS |= {IPv4Address: Kind.IP, IPv6Address: Kind.IP}
NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
SHOP = Ontology(trees={"goods": Tree({"thing": [], "car": ["thing"], "van": ["car"]}, {"car": ["x"], "van": ["x"]})})


class Substrings:
    def find_many(self, texts):
        codes = [[at for at, word in enumerate(("o", "fo", "z")) if word in text] for text in texts]
        return np.cumsum([0, *map(len, codes)]), np.array([at for each in codes for at in each], dtype=np.int64)


def column(view, *cells, tree=None, ontology=SHOP):
    """The column that events with these values of `a` have in a view."""
    wanted = Column("a", view, tree, KINDS.get(type(next((v for cell in cells for v in cell), None))))
    readings = [Reading({to_typed_attribute(wanted): cell}) for cell in cells]
    batch = build_columns(readings, [wanted], setting=Setting(ontology, NOW), automata=lambda _: Substrings())
    return batch.get(wanted)


def test_numbers_keep_what_floats_cannot_hold():
    cells = column(View.NUMBER, (1.5,), (2**53 + 1,), (2**63 - 1,), ())
    assert cells.low.near[:3].tolist() == [1.5, 2.0**53, 2.0**63]
    assert cells.low.rest.tolist() == [0, 1, -1, 0]
    assert np.isnan(cells.low.near[3])


def test_small_numbers_need_no_rest():
    assert column(View.NUMBER, (1,), (2**53 - 1,)).low.rest is None


def test_times_are_microseconds_also_before_1970():
    cells = column(View.NUMBER, (datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),), (NOW,))
    assert cells.low.near.tolist() == [-1, NOW.timestamp() * 1e6]


def test_truth_is_nought_and_one():
    assert column(View.NUMBER, (True,), (False,)).low.near.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (View.TEXT, "Aße"),
        (View.REVERSED, "eßA"),
        (View.FOLDED, "asse"),
        (View.FOLDED_REVERSED, "essa"),
    ],
)
def test_text_is_seen_forwards_backwards_and_folded(view, expected):
    for cells in ([("Aße",)], [("Aße",), ("Aße",), ()]):
        seen = column(view, *cells)
        assert seen.low.distinct == [expected.encode()]
        assert seen.low.index.tolist() == [0 if cell else -1 for cell in cells]


def test_addresses_are_bytes_that_tell_their_version():
    cells = column(View.TEXT, (ip_address("10.0.0.1"),), (ip_address("::1"),))
    assert cells.low.distinct == [b"\x04\x0a\x00\x00\x01", b"\x06" + bytes(15) + b"\x01"]


def test_several_values_are_listed_event_by_event_each_once():
    cells = column(View.FOLDED, ("A", "a", "b"), (), ("b",))
    assert cells.starts.tolist() == [0, 2, 2, 3]
    assert [cells.low.distinct[at] for at in cells.low.index] == [b"a", b"b", b"b"]


def test_a_range_has_two_ends_and_says_which_are_open_or_missing():
    cells = column(View.NUMBER, (Range(1, 5, low_open=True),), (Range(None, 7, high_open=True),), (3,), ())
    assert cells.open.tolist() == [1, 2 | 4, 0, 0]
    assert cells.high.near[:3].tolist() == [5, 7, 3]
    assert np.isnan([cells.low.near[3], cells.high.near[3]]).all()


def test_the_age_of_a_range_turns_its_ends():
    early, late = NOW - timedelta(seconds=9), NOW - timedelta(seconds=4)
    cells = column(View.AGE, (Range(early, late, low_open=True),), (Range(early, None),), (late,))
    assert cells.low.near[0] == 4
    assert cells.high.near.tolist() == [9, 9, 4]
    assert cells.open.tolist() == [2, 4, 0]


def test_concepts_have_their_trees_numbers_and_unknown_ones_none():
    assert column(View.CONCEPT, ("van",), ("CAR",), ("?",), tree="goods").low.near.tolist() == [2, 1, -1]


def test_a_name_that_concepts_of_a_tree_share_is_marked():
    assert column(View.CONCEPT, ("x",)).low.near.tolist() == [AMBIGUOUS]


def test_a_concept_column_must_name_its_tree_among_several():
    two = Ontology(trees={"one": Tree({"a": []}), "two": Tree({"b": []})})
    with pytest.raises(ValueError, match="must name its tree"):
        column(View.CONCEPT, ("a",), ontology=two)


def test_places_are_seen_by_longitude_and_latitude():
    assert column(View.LONGITUDE, (Point(1, 2),), (Point(3, 4),)).low.near.tolist() == [1, 3]
    assert column(View.LATITUDE, (Point(1, 2),)).low.near.tolist() == [2]


def test_patterns_of_all_values_come_once_and_in_order_and_none_is_minus_one():
    cells = column(View.PATTERNS, ("zoo", "fo"), ("?",), (), ("o",))
    assert cells.starts.tolist() == [0, 3, 4, 4, 5]
    assert cells.low.near.tolist() == [0, 1, 2, -1, 0]


def test_being_there_and_being_null_are_columns():
    exists, null = Column("a", View.EXISTS), Column("a", View.NULL)
    readings = [
        Reading({to_typed_attribute(exists): (1,)}),
        Reading(nulls=frozenset("a")),
        Reading(elements={"a": (Reading(),)}),
        Reading(),
    ]
    for group in (readings, *([reading] for reading in readings)):
        batch = build_columns(group, [exists, null], setting=Setting(SHOP, NOW), automata=lambda _: Substrings())
        expected = {exists: [bool(r.values or r.elements) for r in group], null: [bool(r.nulls) for r in group]}
        for column, expected_values in expected.items():
            present = (~np.isnan(batch[column].low.near)).tolist() if column in batch else [False] * len(group)
            assert present == expected_values


@pytest.mark.parametrize("view", [view for view in View if view not in (View.EXISTS, View.NULL)])
def test_what_a_view_cannot_see_is_there_and_unreadable(view):
    odd = Mismatch(object())
    single, many = column(view, (odd,)), column(view, (odd, odd), (), (odd,))
    if view is View.PATTERNS:
        assert (single.low.near.tolist(), many.low.near.tolist()) == ([-1], [-1, -1])
    elif view.is_bytewise:
        assert (single.low.index.tolist(), many.low.index.tolist()) == ([UNREADABLE_TEXT], [UNREADABLE_TEXT] * 2)
    else:
        assert (single.low.near.tolist(), many.low.near.tolist()) == ([UNREADABLE], [UNREADABLE] * 2)
    assert many.starts.tolist() == [0, 1, 1, 2]


def test_a_batch_without_events_has_no_columns():
    assert column(View.NUMBER) is None
    assert column(View.TEXT, (), ()) is None
