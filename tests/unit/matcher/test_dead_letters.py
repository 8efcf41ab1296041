"""`dead_letters` tells what matching would: the events that cannot be read, and why; and counts that are merged."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.errors import KindConflict
from tidings.testing.strategies import NOW, cases

COMPARED = ("a < b", "b = c", "not a = c", "items has (qty > least)")
PLAIN = ("a = 1", "a = 'x'", "b > 1 and a < 5", "b = 'z' or c = 'y'", "c exists", "none(c) = 'w'", "c = true")
GOOD = ({"a": 1, "b": 2, "c": "y"}, {"a": "x", "b": "z"}, {"a": 4, "c": ["w", "y"]}, {"b": 3, "c": True}, {})
ODD = ({"a": 1, "b": "x"}, {"a": "1", "b": 2.5, "c": 3}, {"a": [1, "y"], "b": None}, {"c": float("nan")}, {"a": {}})


@examples(60)
@given(cases())
def test_dead_letters_are_those_of_matching(case):
    world = case.world
    matcher = td.Matcher(schema=world.schema, ontology=world.ontology, regions=world.regions, now=NOW)
    matcher.add_many(enumerate(case.filters), on_error="collect")
    assert_same_letters(matcher, list(case.events))


@examples(40)
@given(
    st.lists(st.sampled_from((*COMPARED, *PLAIN)), min_size=1, max_size=4),
    st.lists(st.sampled_from((*ODD, *GOOD)), min_size=1, max_size=40),
)
def test_dead_letters_of_comparisons_are_those_of_matching(filters, events):
    matcher = td.Matcher()
    matcher.add_many(enumerate(filters), on_error="collect")
    assert_same_letters(matcher, events)


def assert_same_letters(matcher, events):
    matches = matcher.match_many(events, on_error="collect").dead_letters
    assert list(matches) == matcher.dead_letters(events)
    rows = table_of(events)
    if rows is not None:
        matches = matcher.match_many(rows, on_error="collect").dead_letters
        assert sorted(matches, key=lambda letter: letter.index) == matcher.dead_letters(rows)


def table_of(events):
    try:
        return pa.Table.from_pylist(events, schema=None) if events else None
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeError):
        return None


def test_counts_that_are_merged_are_held_to_the_declaration():
    first, second = td.Matcher(schema=td.Schema({"price": "number"})), td.Matcher()
    first.add("s1", "price < 9")
    second.add("s2", "price = 'much'")
    with pytest.raises(KindConflict, match="declared number, but subscription `s2` uses it as text"):
        first.admission.needs.merge(second.admission.needs.to_dict())
    second.admission.needs.merge(first.admission.needs.to_dict())
    assert [need.kind for need in second.admission.needs.to_requirements().attributes["price"]] == ["number", "text"]
