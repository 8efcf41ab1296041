"""Assertions on segments and states of the engine: what must be true after every change.

Everything is checked row by row in plain Python, independently of the code that built it, so only small ones fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.code_spaces import ByteSpace, RankedSpace
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import ANY, NOT_NONE, UNION
from tidings.kernels.match.row_codes import EMPTY_LOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.engine.segment import Segment
    from tidings.engine.state import EngineState

Span = tuple[int, int]
"""A closed interval of codes."""


def check_state(state: EngineState) -> None:
    """Assert that every id is in one place, that deleted slots are counted, and that segments are consistent."""
    ids = list(state.iterate_ids())
    assert len(set(ids)) == len(ids) == len(state), "an id is in two places"
    for part in state.parts:
        dead = 0 if part.deleted is None else int(part.deleted.sum())
        assert dead == part.deleted_count
        check_segment(part.segment)


def check_segment(segment: Segment) -> None:
    """Assert that a segment's arrays fit each other, and that every row is filed where its values lead."""
    _check_spaces(segment)
    _check_rows(segment)
    _check_clusters(segment)
    _check_keys(segment)
    _check_tiles(segment)
    _check_asked(segment)
    slots = segment.sources.slots
    assert (np.diff(slots) > 0).all()
    assert not len(slots) or slots[-1] < len(segment)


def iterate_literals(segment: Segment, row: int) -> Iterator[tuple[int, int, list[Span]]]:
    """Yield the literals of a row: column, op, and the intervals that accept something."""
    rows = segment.index.rows
    empty = 0xFFFF if rows.literal.dtype == np.uint16 else EMPTY_LOW
    literals = rows.literal.reshape(-1, 3)[int(rows.start[row]) : int(rows.start[row + 1])]
    for head, low, high in literals.tolist():
        spans = [(low, high)]
        if head & UNION:
            parts = range(int(rows.union_start[low]), int(rows.union_start[low + 1]))
            spans = [(int(rows.union_low[at]), int(rows.union_high[at])) for at in parts]
        yield head >> OP_BITS, head & 7, [span for span in spans if span[0] != empty]


def _assert_ascending(array: Any, last: int) -> None:
    assert array[0] == 0
    assert array[-1] == last
    assert (np.diff(array.astype(np.int64)) >= 0).all()


def _check_spaces(segment: Segment) -> None:
    assert len(segment.columns) == len(segment.spaces) == len(set(segment.columns))
    for space in segment.spaces:
        ends: list[Any] = []
        if isinstance(space, RankedSpace):
            rest = np.zeros(len(space)) if space.rest is None else space.rest
            ends = list(zip(space.ends.tolist(), rest.tolist(), strict=True))
        elif isinstance(space, ByteSpace):
            ends = space.decode(np.arange(len(space)))
        assert sorted(set(ends)) == ends, "end points ascend and are distinct"


def _check_rows(segment: Segment) -> None:
    rows, second = segment.index.rows, segment.exact_checks
    count = len(rows.start) - 1
    _assert_ascending(rows.start, len(rows.literal) // 3)
    _assert_ascending(rows.union_start, len(rows.union_low))
    if len(rows.entry):
        _assert_ascending(rows.entry, len(rows.slot))
    else:
        assert len(rows.slot) == count
    assert not len(rows.slot) or int(rows.slot.max()) < len(segment)
    assert (np.diff(second.row.astype(np.int64)) >= 0).all()
    assert not len(second.item) or int(second.item.max()) < len(second.items)
    assert rows.special[second.row].all(), "a row with items must be special"
    for row in range(count):
        for column, op, spans in iterate_literals(segment, row):
            top = 2 * len(segment.spaces[column])
            assert op <= NOT_NONE
            assert all(0 <= low <= high <= top for low, high in spans)


def _check_asked(segment: Segment) -> None:
    """Every candidate tree is found by one row, filed once or often, and has no items."""
    if segment.candidate_trees is None:
        return
    rows, forest = segment.index.rows, segment.candidate_trees.forest
    assert not len(segment.candidate_trees.items)
    assert len(set(forest.slots.tolist())) == len(forest)
    for place, slot in enumerate(forest.slots.tolist()):
        assert segment.candidate_trees.number_of[slot] == place
        entries = np.flatnonzero(rows.slot == slot)
        owner = entries if not len(rows.entry) else np.searchsorted(rows.entry, entries, "right") - 1
        assert rows.special[owner].all(), "a row that finds a tree must be special"
        copy = segment.index.copy
        assert len(owner if not len(copy) else owner[copy[owner] == 0]) == 1


def _check_clusters(segment: Segment) -> None:
    """Every row lies in one cluster; of a tiled cluster, in one tile."""
    paths, tiles = segment.index.paths, segment.index.tiles
    _assert_ascending(paths.cluster_start, len(segment.index.rows.start) - 1)
    _assert_ascending(paths.tiled_start, len(tiles.row))
    for cluster, tiled in enumerate(paths.cluster_tiled.tolist()):
        if tiled < 0:
            continue
        first, last = int(paths.tiled_start[tiled]), int(paths.tiled_start[tiled + 1])
        bounds = [int(paths.cluster_start[cluster]), *tiles.end[first:last].tolist()]
        assert bounds[:-1] == tiles.row[first:last].tolist()
        assert bounds[-1] == int(paths.cluster_start[cluster + 1])


def _check_keys(segment: Segment) -> None:
    """Every cluster is visited by all events or found by one key, which each of its rows requires."""
    paths, tiles = segment.index.paths, segment.index.tiles
    seen = {int(np.flatnonzero(paths.cluster_tiled == tiled)[0]) for tiled in tiles.loose.tolist()}
    for group in paths.by_column.tolist():
        columns = [column for column in (int(paths.first[group]), int(paths.second[group])) if column >= 0]
        for cluster, ranks in _iterate_keys(segment, group, columns):
            assert cluster not in seen, "a cluster is found in two ways"
            seen.add(cluster)
            for row in range(int(paths.cluster_start[cluster]), int(paths.cluster_start[cluster + 1])):
                asked = {column: spans for column, op, spans in iterate_literals(segment, row) if op == ANY}
                for column, rank in zip(columns, ranks, strict=False):
                    assert (2 * rank + 1, 2 * rank + 1) in asked[column]
    assert seen == set(range(len(paths.cluster_tiled))), "a cluster is never found"


def _iterate_keys(segment: Segment, group: int, columns: list[int]) -> Iterator[tuple[int, Span]]:
    paths = segment.index.paths
    base, width = int(paths.base[group]), int(paths.width[group])
    if paths.mask[group] == 0:
        for place, cluster in enumerate(paths.direct[base : base + len(segment.spaces[columns[0]]) * width].tolist()):
            if cluster:
                yield cluster - 1, divmod(place, width)
        return
    for at in range(base, base + int(paths.mask[group]) + 1):
        if paths.hash_cluster[at]:
            yield int(paths.hash_cluster[at]) - 1, (int(paths.hash_first[at]), int(paths.hash_second[at]))


def _check_tiles(segment: Segment) -> None:
    """The interval of a row in a hull's column lies in the hull."""
    tiles = segment.index.tiles
    for tile in range(len(tiles.row)):
        for side in (2 * tile, 2 * tile + 1):
            hull = int(tiles.hull_low[side]), int(tiles.hull_high[side])
            for row in range(int(tiles.row[tile]), int(tiles.end[tile])):
                matching = [
                    spans
                    for column, op, spans in iterate_literals(segment, row)
                    if (column, op) == (tiles.hull_column[side], ANY)
                ]
                if tiles.hull_column[side] >= 0:
                    assert matching, "a row lies in tiles of a column that it does not constrain"
                    assert any(all(hull[0] <= low and high <= hull[1] for low, high in spans) for spans in matching)
