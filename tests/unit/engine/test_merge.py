"""Merging: the living of several segments in one, with the same answers."""

from dataclasses import replace

import numpy as np
import pytest
from tests.differential.engine_worlds import WAYS, Drawer, EngineWorld, set_to
from tests.unit.engine.invariants import check_segment

import tidings as td
from tidings.engine.compile.columns import View
from tidings.engine.merge import extract_table, merge_tables
from tidings.engine.tuning import use_tuning


def matcher_of(*batches, way="compiled", growth=0):
    """Return a matcher with one segment for each batch of filters."""
    tuning = replace(WAYS[way], growth=growth, inline_merge_limit=-1, merges_in_background=False)
    with use_tuning(tuning):
        matcher = td.Matcher()
        for batch in batches:
            matcher.add_many(batch.items())
    return matcher


def segments(matcher):
    return [part.segment for part in matcher.backend.state.parts]


def test_codes_of_patterns_are_numbered_anew():
    matcher = matcher_of(
        {1: "t contains 'a'", 2: "t contains 'b'"}, {3: "t contains 'b'", 4: "t like 'c*'", 5: "u contains 'a'"}
    )
    assert len(segments(matcher)) == 2
    before = [set(matcher.match({"t": text})) for text in ("a", "b", "cab", "")]
    matcher.compact()
    [segment] = segments(matcher)
    assert (
        [set(matcher.match({"t": text})) for text in ("a", "b", "cab", "")]
        == before
        == [{1}, {2, 3}, {1, 2, 3, 4}, set()]
    )
    assert {name: len(automaton.tests) for name, automaton in segment.automata.items()} == {"t": 3, "u": 1}


def test_an_end_at_the_rim_stays_at_the_rim():
    """`a > 5` has no end above: in a larger space it goes on to the new last code."""
    matcher = matcher_of({1: "a > 5", 2: "a < 5", 3: "a in (5 .. 5)"}, {4: "a > 100", 5: "a < -100", 6: "not (a > 5)"})
    matcher.compact()
    assert [set(matcher.match({"a": value})) for value in (-200, 0, 5, 50, 200)] == [
        {2, 5, 6},
        {2, 6},
        {6},
        {1},
        {1, 4},
    ]


def test_unions_of_several_segments_do_not_mix():
    matcher = matcher_of({1: "a in (1, 2, 3)"}, {2: "a in (10, 20)", 3: "b in ('x', 'y')"}, {4: "a in (2, 20, 30)"})
    matcher.compact()
    assert [set(matcher.match({"a": value})) for value in (1, 2, 10, 20, 30, 4)] == [
        {1},
        {1, 4},
        {2},
        {2, 4},
        {4},
        set(),
    ]
    assert matcher.match({"b": "y"}) == [3]


def test_the_dead_leave_with_their_rows_and_sources():
    matcher = matcher_of(
        {1: "a = 1", 2: "a = 1", 3: "b = 1 or b = 2"}, {4: "c starts with 'x'", 5: "p near (1, 1) 5 km"}
    )
    matcher.remove_many([1, 3, 5])
    matcher.compact()
    [segment] = segments(matcher)
    assert (len(segment), sorted(segment.ids)) == (2, [2, 4])
    assert len(segment.sources.slots) == 1
    assert len(segment.exact_checks.row) == 0
    assert matcher.match({"a": 1, "b": 1, "c": "xy", "p": (1, 1)}) in ([2, 4], [4, 2])


def test_rows_filed_under_several_keys_are_taken_once():
    with set_to("keys wherever they can be"):
        matcher = td.Matcher()
        matcher.add_many([(id, f"a in (1, {id + 2}, 3)") for id in range(30)])
        [segment] = segments(matcher)
        assert segment.index.copy.sum() > 0
        table = extract_table(segment, np.arange(30))
    assert len(table.start) - 1 == len(segment.index.copy) - segment.index.copy.sum() == 30


@pytest.mark.parametrize("way", ["compiled", "any plan", "trees"])
@pytest.mark.parametrize("seed", range(4))
def test_a_merged_segment_answers_as_its_parts_did(way, seed):
    world = Drawer(300 + seed).world(60, 40)
    ids = list(world.filters)
    with set_to(way):
        matcher = world.build_matcher()
        for at in range(0, 60, 15):
            matcher.add_many((id, world.filters[id]) for id in ids[at : at + 15])
        matcher.remove_many(ids[::5])
        matcher.compact()
    living = EngineWorld(
        {id: tree for at, (id, tree) in enumerate(world.filters.items()) if at % 5}, world.events, world.keywords
    )
    assert [set(ids) for ids in matcher.match_many(world.events).by_event()] == living.evaluate_by_law()
    for segment in segments(matcher):
        check_segment(segment)


def test_one_table_joined_is_itself():
    matcher = matcher_of({1: "a = 1 and t contains 'x'", 2: "a in (1, 2)"})
    [segment] = segments(matcher)
    table = extract_table(segment, np.arange(2))
    again = merge_tables([table])
    assert again.columns == table.columns
    assert [literal.tolist() for literal in again.literals] == [literal.tolist() for literal in table.literals]
    assert View.PATTERNS in [column.view for column in again.columns]
