r"""Matching a batch of events: from keys to clusters, through the bitmaps of tiles, to the exact check of survivors.

    event -- keys --> small clusters ------------------------> exact check --> (event, slot)
                 \--> large clusters --> tiles --> bitmaps --> exact check, or certain
    rows without a key: every event visits the tiles of their clusters (`loose`), most of which its hulls skip

The keyed groups of an event's columns give clusters (`keys`). Visits to large clusters are sorted by cluster, so that a
tile stays in cache while all its events pass (`tiles`). What the bitmaps cannot decide is compared literal by literal
(`exact_check`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit
from tidings.kernels.match.exact_check import WAITING
from tidings.kernels.match.keys import follow_keys
from tidings.kernels.match.tiles import match_tiles, prepare_events

if TYPE_CHECKING:
    from tidings.kernels.array_types import CodeArray, Int, Int32Array, IntArray
    from tidings.kernels.match.layout import EventCells, IndexPaths, IndexRows, IndexTiles, Visits


@jit
def sort_by_cluster(visits: Visits, clusters: Int) -> tuple[IntArray, Int32Array]:
    """Return where the visits of each cluster begin, and the events in order of cluster (counting sort)."""
    wanted, events, count = visits
    start = np.zeros(clusters + 1, np.int64)
    for i in range(count):
        start[wanted[i] + 1] += 1
    for cluster in range(clusters):
        start[cluster + 1] += start[cluster]
    filled = start[:-1].copy()
    ordered = np.empty(count, np.int32)
    for i in range(count):
        ordered[filled[wanted[i]]] = events[i]
        filled[wanted[i]] += 1
    return start, ordered


@jit
def match(
    rows: IndexRows, paths: IndexPaths, tiles: IndexTiles, cells: EventCells
) -> tuple[IntArray, CodeArray, IntArray, CodeArray, Int]:
    """Return (events, slots) of the ordinary rows and (events, rows) of the special rows that the events satisfy.

    The fifth value is the number of all pairs. Where it is more than were written (`exact_check.MOST`), the four arrays
    are incomplete and must not be used.
    """
    matches, special, visits = follow_keys(rows, paths, cells)
    if len(tiles.row) > 0:
        prepared = prepare_events(tiles, cells)
        everyone = np.arange(cells.cell.shape[0]).astype(np.int32)
        # Room for all rows of the largest tile: pairs are handed on between tiles, and never in the middle of one.
        size = WAITING
        for tile in range(len(tiles.row)):
            size = max(size, 64 + np.int64(tiles.end[tile]) - np.int64(tiles.row[tile]))
        room = (
            np.empty(size, np.uint32),
            np.empty(size, np.uint32),
            np.empty(size, np.uint32),
            np.empty(size, np.uint32),
        )
        for i in range(len(tiles.loose)):
            begin, end = paths.tiled_start[tiles.loose[i]], paths.tiled_start[tiles.loose[i] + 1]
            matches, special = match_tiles(rows, tiles, cells, begin, end, everyone, prepared, room, matches, special)
        start, ordered = sort_by_cluster(visits, len(paths.tiled_start) - 1)
        for cluster in range(len(paths.tiled_start) - 1):
            if start[cluster] < start[cluster + 1]:
                visitors = ordered[start[cluster] : start[cluster + 1]]
                begin, end = paths.tiled_start[cluster], paths.tiled_start[cluster + 1]
                matches, special = match_tiles(
                    rows, tiles, cells, begin, end, visitors, prepared, room, matches, special
                )
    count = matches[2] + special[2]
    return matches[0][: matches[2]], matches[1][: matches[2]], special[0][: special[2]], special[1][: special[2]], count
