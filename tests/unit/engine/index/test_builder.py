"""Indexes: whatever the plan, every row is filed where the events that satisfy it come by."""

from dataclasses import replace

import numpy as np
import pytest
from tests.differential.engine_worlds import WAYS, Drawer, set_to
from tests.unit.engine.invariants import check_segment

import tidings as td
from tidings.engine.index.builder import build_index
from tidings.engine.index.planner import EventStatistics
from tidings.engine.tuning import IndexTuning


def segment_of(filters, way="compiled", **keywords):
    with set_to(way):
        matcher = td.Matcher(**keywords)
        matcher.add_many(filters.items())
    [part] = matcher.backend.state.parts
    return part.segment


@pytest.mark.parametrize("way", [way for way in WAYS if way != "everything waits"])
def test_every_index_is_whole(way):
    for seed in range(8):
        world = Drawer(600 + seed).world(60, 0)
        check_segment(segment_of(world.filters, way, **world.keywords))


def test_check_sees_what_is_broken():
    segment = segment_of({id: f"a = {id % 5} and b < {id}" for id in range(60)}, "keys wherever they can be")
    check_segment(segment)
    for name in ("direct", "cluster_start", "tiled_start"):
        array = getattr(segment.index.paths, name)
        broken = segment.index.paths._replace(**{name: np.roll(array, 1)})
        if not np.array_equal(np.roll(array, 1), array):
            with pytest.raises((AssertionError, KeyError, IndexError)):
                check_segment(replace(segment, index=replace(segment.index, paths=broken)))


def test_codes_are_narrow_while_they_fit():
    assert segment_of({1: "a = 1"}).index.rows.literal.dtype == np.uint16


def test_selective_points_become_keys():
    filters = {id: f"a = {id % 500} and b in [0 .. {id % 7}]" for id in range(3000)}
    segment = segment_of(filters)
    assert segment.choice.get("key", 0) + segment.choice.get("key of two columns", 0) > 2500


def test_a_segment_of_nothing_finds_nothing():
    segment = segment_of({1: "false", 2: "false"})
    check_segment(segment)
    assert len(segment.index.rows.start) == 1


def test_true_is_found_by_every_event():
    with set_to("compiled"):
        matcher = td.Matcher()
        matcher.add_many([(1, "true"), (2, "not (false)"), (3, "not (a exists)")])
        assert [sorted(ids) for ids in matcher.match_many([{}, {"a": 1}, {"b": [1, 2]}]).by_event()] == [
            [1, 2, 3],
            [1, 2],
            [1, 2, 3],
        ]


def test_an_empty_table_has_an_index():
    from tidings.concepts import Ontology
    from tidings.engine.compile.draft import FilterDraft
    from tidings.engine.compile.row_table import RowTable

    index, choice = build_index(RowTable.from_draft(FilterDraft(Ontology())), EventStatistics(), IndexTuning())
    assert len(index.rows.start) == 1
    assert len(choice.kind) == 0
