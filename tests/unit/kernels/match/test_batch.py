"""Matching against two plain loops, whatever the rows, the cells and the plan are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.engine_worlds import any_plan
from tests.examples import examples
from tests.unit.kernels.match.random_rows import naive_matches, random_cells, random_table

from tidings.engine.index.builder import SegmentIndex, build_index
from tidings.engine.index.planner import EventStatistics
from tidings.engine.tuning import IndexTuning
from tidings.kernels.match import batch

WAYS = {
    "as planned": IndexTuning(),
    "any plan": IndexTuning(planner=any_plan),
    "hash tables": IndexTuning(planner=any_plan, direct_up_to=-(10**6)),
    "tiles": IndexTuning(planner=any_plan, tiled_from=1, tile_rows=8),
    "few buckets": IndexTuning(planner=any_plan, tiled_from=1, exact_up_to=2, bitmap_bits=8),
}

few = examples(25)


def found_by(built, cells):
    """Return the pairs of event and slot that the kernel finds; special rows count as found."""
    events, slots, odd_events, odd_rows, pairs = batch.match(built.rows, built.paths, built.tiles, cells)
    assert pairs == len(events) + len(odd_events)
    found = list(zip(events.tolist(), slots.tolist(), strict=True))
    entry, slot = built.rows.entry, built.rows.slot
    for event, row in zip(odd_events.tolist(), odd_rows.tolist(), strict=True):
        mine = slot[row : row + 1] if not len(entry) else slot[entry[row] : entry[row + 1]]
        found += [(event, int(one)) for one in mine]
    return found


@pytest.mark.parametrize("way", WAYS)
@given(st.integers(0, 2**32), st.sampled_from((1, 7, 40, 150)), st.integers(1, 6), st.sampled_from((2, 6, 40)))
@few
def test_every_pair_is_found_and_no_other(way, seed, rows, columns, ends):
    table = random_table(seed, rows=rows, columns=columns, ends=ends)
    cells, values = random_cells(seed + 1, columns=columns, ends=ends)
    built, _ = build_index(table, EventStatistics(), WAYS[way])
    found = found_by(built, cells)
    assert set(found) == naive_matches(table, values)


@given(st.integers(0, 2**32))
@few
def test_tiles_that_decide_decide_as_the_check_would(seed):
    table = random_table(seed, rows=60)
    cells, _ = random_cells(seed + 1)
    built, _ = build_index(table, EventStatistics(), IndexTuning(tiled_from=1))
    checked = SegmentIndex(
        built.rows,
        built.paths,
        built.tiles._replace(rest=np.full_like(built.tiles.rest, ~np.uint64(0))),
        built.origin,
        built.copy,
    )
    assert sorted(found_by(built, cells)) == sorted(found_by(checked, cells))


@given(st.integers(0, 2**32))
@few
def test_events_are_found_alone_as_among_others(seed):
    table = random_table(seed)
    cells, _ = random_cells(seed + 1)
    built, _ = build_index(table, EventStatistics(), IndexTuning())
    alone = []
    for event in range(len(cells.cell)):
        one = cells._replace(cell=cells.cell[event : event + 1], plain=cells.plain[event : event + 1])
        alone += [(event, slot) for _, slot in found_by(built, one)]
    assert sorted(alone) == sorted(found_by(built, cells))


def test_room_for_pairs_grows():
    table = random_table(3, rows=400, columns=1, ends=2)
    cells, values = random_cells(4, events=200, columns=1, ends=2)
    built, _ = build_index(table, EventStatistics(), IndexTuning())
    assert set(found_by(built, cells)) == naive_matches(table, values)
