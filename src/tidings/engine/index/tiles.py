"""Tiles: a thousand rows with a bitmap for each bucket of each column that constrains some of them.

A bucket is a stretch of a column's codes; its bitmap has the rows that may accept a value there. So a value
costs one bitmap, where cumulative bitmaps at edges cost two (docs/decisions). With few distinct ends every
end is an edge: then the bitmaps decide, and survivors need no check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.index.planner import SCAN_NS, WORD_NS
from tidings.kernels.match import index_build
from tidings.kernels.match.layout import RowLiterals, IndexTiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXACT_UP_TO = 48
"""A column with at most so many edges has a bucket for each stretch between them."""

EXACT_AT_MOST, EXACT_BITS = 256, 768
"""So has one with at most so many, while all exact columns together have at most so many bits for a row."""

DOUBTED_UP_TO = 12
"""With at most so many columns whose buckets do not tell all ends apart, bitmaps say in which rows there is doubt."""

SAMPLED = 4096
"""Edges of a column from which quantiles are taken."""

BITS = 320
"""Bits of bitmaps for each row, twice as many where columns are few: they say how many buckets the others have."""


def tiles_of(
    rows: RowLiterals,
    tile_row: NDArray[np.uint32],
    tile_end: NDArray[np.uint32],
    *,
    columns: int,
    keys: NDArray[np.int64],
    hull_column: NDArray[np.int64],
    loose: NDArray[np.int32],
) -> IndexTiles:
    """Build the bitmaps over the rows from `tile_row` up to `tile_end`; `keys` are the two key columns of each tile."""
    constrained = index_build.find_tile_columns(rows.start, rows.head, tile_row, tile_end, keys, columns)
    constrained[constrained.sum(axis=1) * WORD_NS / 64 > SCAN_NS] = 0  # scanning is cheaper there
    dense = np.flatnonzero(constrained.any(axis=0))
    dense_of = np.full(columns + 1, -1, np.int64)
    dense_of[dense] = np.arange(len(dense))
    edge_start, edges, exact_column = _edges(rows, tile_row, tile_end, dense_of, len(dense))
    buckets = np.diff(edge_start) + 2
    state = np.where(exact_column, index_build.EXACT, index_build.CHECKED).astype(np.uint8)
    if np.count_nonzero(exact_column == 0) <= DOUBTED_UP_TO:
        state[exact_column == 0] = index_build.DOUBTED
    maps = np.where(state == index_build.DOUBTED, 2 * buckets - 1, buckets)  # of no value there is no doubt
    words = (tile_end.astype(np.int64) - tile_row + 63) >> 6
    sizes = constrained[:, dense] * (words[:, None] * maps[None, :])
    place = np.cumsum(sizes).reshape(sizes.shape) - sizes
    bits = np.zeros(int(sizes.sum()), np.uint64)
    place = np.where(constrained[:, dense] > 0, place, -1)
    rest_start = np.zeros(len(words) + 1, np.int64)
    np.cumsum(words, out=rest_start[1:])
    rest = np.zeros(int(rest_start[-1]), np.uint64)
    index_build.fill_tiles(
        rows, tile_row, tile_end, place, dense_of, edge_start, edges, state, bits, rest, rest_start, keys
    )
    hull_low, hull_high = np.zeros(2 * len(words), np.uint32), np.zeros(2 * len(words), np.uint32)
    index_build.fill_hulls(rows, tile_row, tile_end, hull_column, hull_low, hull_high)
    rate_start = np.zeros(len(dense) + 1, np.int64)
    np.cumsum(buckets, out=rate_start[1:])
    counts = index_build.count_buckets(tile_row, tile_end, place, edge_start, bits, rate_start)
    total = max(1, int(words.sum()) * 64)
    return IndexTiles(
        row=tile_row,
        end=tile_end,
        rest=rest,
        rest_start=rest_start,
        doubted=np.flatnonzero(state == index_build.DOUBTED).astype(np.int64),
        hull_column=hull_column,
        hull_low=hull_low,
        hull_high=hull_high,
        place=place.astype(np.uint64).ravel(),  # -1 becomes `tiles.NOWHERE`
        words=bits,
        dense=dense,
        edge_start=edge_start,
        edges=edges,
        rate_start=rate_start,
        rates=(counts / total).astype(np.float32),
        loose=loose,
    )


def _edges(
    rows: RowLiterals, tile_row: NDArray[Any], tile_end: NDArray[Any], dense_of: NDArray[Any], dense: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]:
    """Return for each dense column where its buckets begin, and whether they tell all its ends apart."""
    most = max(EXACT_UP_TO, EXACT_AT_MOST)
    known, count, sample, sampled = index_build.collect_edges(rows, tile_row, tile_end, dense_of, dense, most, SAMPLED)
    exact = (count <= EXACT_UP_TO).astype(np.uint8)
    spent = int(count[exact == 1].sum())
    for number in np.argsort(count, kind="stable").tolist():  # more of them, while there is room
        if not exact[number] and count[number] <= EXACT_AT_MOST and spent + count[number] <= EXACT_BITS:
            exact[number] = 1
            spent += int(count[number])
    room = BITS if dense > DOUBTED_UP_TO else 2 * BITS
    buckets = min(64, max(8, room // max(1, dense)))
    lists: list[NDArray[Any]] = []
    for number in range(dense):
        if exact[number]:
            lists.append(known[number, : count[number]])
            continue
        ends = np.sort(sample[number, : sampled[number]])
        lists.append(np.unique(ends[(np.arange(1, buckets) * len(ends)) // buckets]))
    edge_start = np.zeros(dense + 1, np.int64)
    np.cumsum([len(one) for one in lists], out=edge_start[1:])
    return edge_start, np.concatenate([*lists, np.zeros(0)]).astype(np.uint32), exact
