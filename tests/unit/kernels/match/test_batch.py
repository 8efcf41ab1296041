"""Matching against two plain loops, whatever the rows, the cells and the plan are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.engine_worlds import choose_any_plan
from tests.examples import examples
from tests.unit.kernels.match.random_rows import draw_cells, draw_table, find_naive_matches

from tidings.engine.index.builder import SegmentIndex, build_index
from tidings.engine.index.planner import EventStatistics
from tidings.engine.tuning import IndexTuning
from tidings.kernels.match import batch

WAYS = {
    "as planned": IndexTuning(),
    "any plan": IndexTuning(planner=choose_any_plan),
    "hash tables": IndexTuning(planner=choose_any_plan, direct_up_to=-(10**6)),
    "tiles": IndexTuning(planner=choose_any_plan, tiled_from=1, tile_rows=8),
    "few buckets": IndexTuning(planner=choose_any_plan, tiled_from=1, exact_up_to=2, bitmap_bits=8),
}

few = examples(25)


def find_pairs(built, cells):
    """Return the pairs of event and slot that the kernel finds; special rows count as found."""
    events, slots, odd_events, odd_rows, pairs = batch.match(built.rows, built.paths, built.tiles, cells)
    assert pairs == len(events) + len(odd_events)
    event_slots = list(zip(events.tolist(), slots.tolist(), strict=True))
    entry, slot = built.rows.entry, built.rows.slot
    for event, row in zip(odd_events.tolist(), odd_rows.tolist(), strict=True):
        mine = slot[row : row + 1] if not len(entry) else slot[entry[row] : entry[row + 1]]
        event_slots += [(event, int(slot)) for slot in mine]
    return event_slots


@pytest.mark.parametrize("way", WAYS)
@given(st.integers(0, 2**32), st.sampled_from((1, 7, 40, 150)), st.integers(1, 6), st.sampled_from((2, 6, 40)))
@few
def test_every_pair_is_found_and_no_other(way, seed, rows, columns, ends):
    table = draw_table(seed, rows=rows, columns=columns, ends=ends)
    cells, values = draw_cells(seed + 1, columns=columns, ends=ends)
    built, _ = build_index(table, EventStatistics(), WAYS[way])
    pairs = find_pairs(built, cells)
    assert set(pairs) == find_naive_matches(table, values)


@given(st.integers(0, 2**32))
@few
def test_tiles_that_decide_decide_as_the_check_would(seed):
    table = draw_table(seed, rows=60)
    cells, _ = draw_cells(seed + 1)
    built, _ = build_index(table, EventStatistics(), IndexTuning(tiled_from=1))
    checked = SegmentIndex(
        built.rows,
        built.paths,
        built.tiles._replace(rest=np.full_like(built.tiles.rest, ~np.uint64(0))),
        built.origin,
        built.copy,
    )
    assert sorted(find_pairs(built, cells)) == sorted(find_pairs(checked, cells))


@given(st.integers(0, 2**32))
@few
def test_events_are_found_alone_as_among_others(seed):
    table = draw_table(seed)
    cells, _ = draw_cells(seed + 1)
    built, _ = build_index(table, EventStatistics(), IndexTuning())
    alone = []
    for event in range(len(cells.cell)):
        single = cells._replace(cell=cells.cell[event : event + 1], plain=cells.plain[event : event + 1])
        alone += [(event, slot) for _, slot in find_pairs(built, single)]
    assert sorted(alone) == sorted(find_pairs(built, cells))


def test_room_for_pairs_grows():
    table = draw_table(3, rows=400, columns=1, ends=2)
    cells, values = draw_cells(4, events=200, columns=1, ends=2)
    built, _ = build_index(table, EventStatistics(), IndexTuning())
    assert set(find_pairs(built, cells)) == find_naive_matches(table, values)
