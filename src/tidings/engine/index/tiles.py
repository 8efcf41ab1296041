"""Tiles: a thousand rows with a bitmap for each bucket of each column that constrains some of them.

A bucket is a stretch of a column's codes; its bitmap marks the rows that may accept a value there. So a value costs
one bitmap, where cumulative bitmaps at edges cost two (docs/decisions). An event visits a tile by and-ing the bitmaps
of its values, 64 rows in one instruction. With few distinct ends every end is an edge between buckets: then the
bitmaps are exact, and the surviving rows need no check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.match import index_build
from tidings.kernels.match.layout import IndexTiles, RowLiterals

if TYPE_CHECKING:
    from tidings.engine.tuning import IndexTuning
    from tidings.kernels.array_types import ByteArray, CodeArray, Int32Array, IntArray

EXACT_AT_MOST, EXACT_BITS = 256, 768
"""A column with at most so many edges is exact too, while all exact columns together have so many bits for a row."""

DOUBTED_UP_TO = 12
"""With at most so many columns whose buckets do not tell all ends apart, bitmaps say in which rows there is doubt."""

SAMPLED = 4096
"""Edges of a column from which quantiles are taken."""


class TileCuts(NamedTuple):
    """The first row of each tile and the row after its last, its cluster, and the clusters that every event visits."""

    row: CodeArray
    end: CodeArray
    cluster: IntArray
    loose: Int32Array  # numbers among the tiled clusters


def build_tiles(
    rows: RowLiterals, cuts: TileCuts, *, columns: int, keys: IntArray, hull_column: IntArray, tuning: IndexTuning
) -> IndexTiles:
    """Build the bitmaps and hulls of tiles; `keys` and `hull_column` are two columns of each tile, -1: none.

    A key column needs no bitmap: all rows of the tile have the key that led there.
    """
    tile_row, tile_end = cuts.row, cuts.end
    constrained = index_build.find_tile_columns(rows.start, rows.head, tile_row, tile_end, keys, columns)
    constrained[constrained.sum(axis=1) * tuning.word_ns / 64 > tuning.scan_ns] = 0  # scanning is cheaper there
    dense = np.flatnonzero(constrained.any(axis=0))
    dense_of = np.full(columns + 1, -1, np.int64)
    dense_of[dense] = np.arange(len(dense))
    edge_start, edges, exact_column = _choose_edges(rows, cuts, dense_of, len(dense), tuning)
    buckets = np.diff(edge_start) + 2
    state = np.where(exact_column, index_build.EXACT, index_build.CHECKED).astype(np.uint8)
    if np.count_nonzero(exact_column == 0) <= DOUBTED_UP_TO:
        state[exact_column == 0] = index_build.DOUBTED
    maps = np.where(state == index_build.DOUBTED, 2 * buckets - 1, buckets)  # a missing value is never in doubt
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
        loose=cuts.loose,
    )


def _choose_edges(
    rows: RowLiterals, cuts: TileCuts, dense_of: IntArray, dense: int, tuning: IndexTuning
) -> tuple[IntArray, CodeArray, ByteArray]:
    """Return for each dense column the edges between its buckets, and whether every end is an edge (exact)."""
    most = max(tuning.exact_up_to, EXACT_AT_MOST)
    listed, count, sample, sampled = index_build.collect_edges(rows, cuts.row, cuts.end, dense_of, dense, most, SAMPLED)
    exact = (count <= tuning.exact_up_to).astype(np.uint8)
    spent = int(count[exact == 1].sum())
    for number in np.argsort(count, kind="stable").tolist():  # more of them, while there is room
        if not exact[number] and count[number] <= EXACT_AT_MOST and spent + count[number] <= EXACT_BITS:
            exact[number] = 1
            spent += int(count[number])
    room = tuning.bitmap_bits if dense > DOUBTED_UP_TO else 2 * tuning.bitmap_bits
    buckets = min(64, max(8, room // max(1, dense)))
    lists: list[CodeArray] = []
    for number in range(dense):
        if exact[number]:
            lists.append(listed[number, : count[number]])
            continue
        ends = np.sort(sample[number, : sampled[number]])
        lists.append(np.unique(ends[(np.arange(1, buckets) * len(ends)) // buckets]))
    edge_start = np.zeros(dense + 1, np.int64)
    np.cumsum([len(edges) for edges in lists], out=edge_start[1:])
    return edge_start, np.concatenate([*lists, np.zeros(0)]).astype(np.uint32), exact
