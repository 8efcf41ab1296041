"""The cost of each access path of a segment: how many rows an event sees there, and how long that takes.

A few hundred events are followed through keys and hulls, without matching them. They are sampled ones where some are
known; else their values are drawn from the end points that the subscriptions name, each column independently, which is
what the planner assumes too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.arrays import expand_ranges, find_starts
from tidings.engine.events.event_codes import encode_events
from tidings.engine.index.planner import estimate_bitmap_ns
from tidings.engine.tuning import IndexTuning
from tidings.kernels.match.keys import find_hits_of_plain
from tidings.kernels.match.layout import OP_BITS, IndexPaths, IndexRows
from tidings.kernels.match.literals import ABSENT, ANY, KIND_MASK, SEVERAL, UNION
from tidings.kernels.match.selectivity import estimate_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tidings.engine.compile.columns import EventSample
    from tidings.engine.segment import Segment
    from tidings.kernels.array_types import CodeArray, FloatArray, IntArray

COSTS = IndexTuning()
"""The default costs of the planner: a segment does not keep those that it was planned with (`EngineTuning.index`)."""

EVENTS = 256
"""Events that are followed."""

DRAWN_FROM = 1 << 18
"""Literals that values are drawn from, when no events are known."""

HULL_NS = 2.0
"""Nanoseconds to look at a tile's hull in one column; for one or two the planner counts 4 (`access_choice.HULL_NS`)."""

SELECTIVE = 0.5
"""A predicate that accepts more of the events than this does not help to find its filter."""


@dataclass(frozen=True, slots=True)
class AccessPath:
    """Rows that are found in the same way; an event sees `candidates` of them on average."""

    columns: tuple[int, ...]
    kind: str
    rows: int
    clusters: int
    tiles: int
    candidates: float
    nanoseconds: float

    @property
    def rows_per_candidate(self) -> float:
        """The number of rows for each that an event sees."""
        return self.rows / max(self.candidates, 1 / EVENTS)


def estimate_segment(segment: Segment, sample: EventSample | None) -> tuple[list[AccessPath], CodeArray]:
    """Return what events read on each access path, in the order of its rows, and the codes of these events."""
    codes = _choose_codes(segment, sample)
    paths = segment.index.paths
    starts = np.append(_find_first_clusters(paths), len(paths.cluster_start) - 1)
    has_key = np.zeros(len(paths.first), bool)
    has_key[paths.by_column] = True
    visited_clusters = _follow_keys(paths, codes)
    access_paths = []
    for group, (first, last) in enumerate(pairwise(starts.tolist())):
        clusters = range(first, last)
        if has_key[group]:
            access_paths.append(_estimate_keyed_path(segment, codes, group, clusters, visited_clusters))
        else:
            access_paths.append(_estimate_packed_path(segment, codes, group, clusters))
    return access_paths, codes


def find_unselective(segment: Segment, paths: Sequence[AccessPath], codes: CodeArray) -> IntArray:
    """Return the rows that most events see, because none of their literals rejects half of the events."""
    are_seen = np.array([path.candidates > SELECTIVE * path.rows for path in paths], bool)
    wanted = np.flatnonzero(np.repeat(are_seen, np.array([path.rows for path in paths], np.int64)))
    return wanted[reduce_rates(np.minimum, segment, wanted, codes) > SELECTIVE]


def reduce_rates(by: np.ufunc, segment: Segment, wanted: IntArray, codes: CodeArray) -> FloatArray:
    """Return the least, or the product, of the shares of events that the literals of each row accept.

    The product is the share that satisfies the row, taking literals as independent.
    """
    rows = segment.index.rows
    first = rows.start[wanted].astype(np.int64)
    sizes = rows.start[wanted + 1].astype(np.int64) - first
    begin = np.cumsum(sizes) - sizes
    literal = rows.literal.reshape(-1, 3)[expand_ranges(first, sizes)]
    result = np.ones(len(wanted))
    has_literals = sizes > 0
    if has_literals.any():
        result[has_literals] = by.reduceat(_estimate_rates(rows, literal, codes), begin[has_literals])
    return result


def _estimate_rates(rows: IndexRows, literal: NDArray[Any], codes: CodeArray) -> NDArray[Any]:
    """Return the share of events that each literal accepts; 1 where its op is not `ANY`."""
    ordered = [np.sort(column[column != ABSENT]) for column in codes.T]
    bounds = np.cumsum([0, *map(len, ordered)])
    head, low, high = (np.ascontiguousarray(literal[:, place]).astype(np.uint32) for place in range(3))
    unions = (rows.union_start, rows.union_low.astype(np.uint32), rows.union_high.astype(np.uint32))
    joined = np.concatenate([*ordered, np.zeros(0, np.uint32)]).astype(np.uint32)
    inside, _ = estimate_rates(head, low, high, *unions, bounds, joined)
    present = np.append(np.diff(bounds), 0)[np.minimum(head >> OP_BITS, len(ordered))] / max(1, len(codes))
    return np.where((head & KIND_MASK) == ANY, inside * present, 1.0)


def _follow_keys(paths: IndexPaths, codes: CodeArray) -> IntArray:
    """Return the clusters that events reach by their keys, each as often as it is reached."""
    cells, hits = np.ascontiguousarray(codes), np.empty(len(paths.first) + 1, np.uint64)
    visited_clusters: list[int] = []
    for event in range(len(cells)):
        visited_clusters += hits[: find_hits_of_plain(paths, cells, event, hits)].tolist()
    return np.array(visited_clusters, np.int64)


def _estimate_keyed_path(
    segment: Segment, codes: CodeArray, group: int, clusters: range, visited_clusters: IntArray
) -> AccessPath:
    paths = segment.index.paths
    first, second = int(paths.first[group]), int(paths.second[group])
    first_code, second_code = codes[:, first], codes[:, second] if second >= 0 else np.ones(len(codes), np.uint32)
    has_key = (first_code & second_code & 1 == 1) & (first_code != ABSENT) & (second_code != ABSENT)
    cluster = visited_clusters[(visited_clusters >= clusters.start) & (visited_clusters < clusters.stop)]
    size = np.diff(paths.cluster_start[clusters.start : clusters.stop + 1].astype(np.int64))
    tiled = paths.cluster_tiled[clusters.start : clusters.stop]
    tiles = np.where(tiled >= 0, np.append(np.diff(paths.tiled_start), 0)[tiled], 0)
    seen_rows, visits = size[cluster - clusters.start], tiles[cluster - clusters.start]
    row_ns, own_tiled = 0.0, tiled[tiled >= 0]
    if len(own_tiled):
        first_tile, last_tile = paths.tiled_start[own_tiled[0]], paths.tiled_start[own_tiled[-1] + 1]
        row_ns = _estimate_row_ns(segment, int(first_tile), int(last_tile))
    # Events whose values are end points look the key up; rows of clusters without tiles are scanned.
    cost = COSTS.look_ns * np.count_nonzero(has_key) + COSTS.scan_ns * seen_rows[visits == 0].sum()
    cost += COSTS.tile_ns * visits.sum() + row_ns * seen_rows[visits > 0].sum()
    events = max(1, len(codes))
    columns, kind = ((first,), "key") if second < 0 else ((first, second), "key of two")
    return AccessPath(
        columns, kind, int(size.sum()), len(size), int(tiles.sum()), seen_rows.sum() / events, cost / events
    )


def _estimate_packed_path(segment: Segment, codes: CodeArray, group: int, clusters: range) -> AccessPath:
    paths, tiles = segment.index.paths, segment.index.tiles
    columns = tuple(int(column) for column in (paths.first[group], paths.second[group]) if column >= 0)
    number = int(paths.cluster_tiled[clusters.start])
    first, last = int(paths.tiled_start[number]), int(paths.tiled_start[number + 1])
    size = tiles.end[first:last].astype(np.int64) - tiles.row[first:last]
    is_visited = np.ones((last - first, len(codes)), bool)
    for side in range(2):
        column = tiles.hull_column.reshape(-1, 2)[first:last, side]
        if len(column) and column[0] >= 0:
            code = codes[:, column[0]][None, :]
            low, high = (ends.reshape(-1, 2)[first:last, side][:, None] for ends in (tiles.hull_low, tiles.hull_high))
            is_visited &= (code >= low) & (code <= high) & (code != ABSENT)
    events = max(1, len(codes))
    candidates, visits = float((size @ is_visited).sum()) / events, np.count_nonzero(is_visited) / events
    # Every event compares all hulls, and visits the tiles whose hulls its values lie in.
    cost = HULL_NS * len(size) * len(columns) + COSTS.tile_ns * visits
    cost += _estimate_row_ns(segment, first, last) * candidates
    kind = ("always", "hull", "hulls")[len(columns)]
    return AccessPath(columns, kind, int(size.sum()), len(clusters), len(size), candidates, cost)


def _estimate_row_ns(segment: Segment, first: int, last: int) -> float:
    """Return what a row of some tiles costs; tiles without bitmaps are scanned."""
    tiles = segment.index.tiles
    width = len(tiles.dense)
    has_bitmap = tiles.place[first * width : last * width].reshape(last - first, width) < max(1, len(tiles.words))
    columns = np.count_nonzero(has_bitmap, axis=1)
    costs = [estimate_bitmap_ns(int(count), COSTS) if count else COSTS.scan_ns for count in np.unique(columns).tolist()]
    return float(np.mean(costs)) if costs else 0.0


def _find_first_clusters(paths: IndexPaths) -> IntArray:
    """Return the first cluster of each group: those without a key come first, one cluster each."""
    result = np.arange(len(paths.first))
    for table, entries in ((paths.direct, paths.mask == 0), (paths.hash_cluster, paths.mask > 0)):
        own_groups = np.sort(paths.by_column[entries[paths.by_column]])
        # A group's clusters are numbered one after the other, and its table ends where the next one begins: the first
        # cluster is the least in the table, which has numbers + 1, and 0 where there is none.
        own_groups = own_groups[np.argsort(paths.base[own_groups], kind="stable")]
        if len(own_groups):
            clusters = np.where(table == 0, np.iinfo(np.int64).max, table.astype(np.int64) - 1)
            result[own_groups] = np.minimum.reduceat(clusters, paths.base[own_groups])
    return result


def _choose_codes(segment: Segment, sample: EventSample | None) -> CodeArray:
    """Return codes of events by column: sampled ones for columns that were sampled, else guessed ones."""
    guessed = _guess_codes(segment)
    if sample is None:
        return guessed
    batch, events = sample
    numbers = segment.column_numbers
    cells = encode_events(batch, numbers, segment.spaces, events)
    many = (cells.cell >= SEVERAL) & (cells.cell != ABSENT)
    # Of several values, the first.
    cells.cell[many] = cells.many_low[cells.many_start[cells.cell[many] & np.uint32(0x7FFFFFFF)]]
    sampled = [number for column, number in numbers.items() if column in batch]
    codes = np.resize(guessed.T, (len(segment.columns), min(events, EVENTS))).T if events < EVENTS else guessed
    codes[:, sampled] = cells.cell[:EVENTS, sampled]
    return codes


def _guess_codes(segment: Segment) -> CodeArray:
    """Draw codes from the ends that literals name, each column independently."""
    rng = np.random.default_rng(0)
    rows = segment.index.rows
    literal = rows.literal.reshape(-1, 3)[:: max(1, len(rows.literal) // 3 // DRAWN_FROM)]
    head, low, high = (literal[:, place].astype(np.int64) for place in range(3))
    union = np.flatnonzero(head & UNION)
    begin, end = (rows.union_start[low[union] + more].astype(np.int64) for more in (0, 1))
    part = begin + (rng.random(len(union)) * (end - begin)).astype(np.int64)
    if len(rows.union_low):
        low[union] = high[union] = rows.union_low[np.minimum(part, len(rows.union_low) - 1)]
    top = np.array([2 * len(space) for space in segment.spaces], np.int64)
    column = head >> OP_BITS
    # One end of each literal; where it is missing, the other.
    side = (rng.random(len(head)) < 0.5) & (low > 0) | (high >= top[column])
    code = np.where(side, low, high)
    order = np.argsort(column, kind="stable")
    bounds = find_starts(column[order], len(top))
    codes = 2 * (rng.random((EVENTS, len(top))) * (top // 2 + 1)).astype(np.uint32)
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        own_literals = order[bounds[number] : bounds[number + 1]]
        drawn = np.minimum(code[own_literals[rng.integers(0, len(own_literals), EVENTS)]], top[number])
        # The fewer values filters name, the more values events may have that none names: their codes are even.
        named = rng.random(EVENTS) >= 2 / (top[number] // 2 + 2)
        codes[named, number] = drawn[named]
    return codes
