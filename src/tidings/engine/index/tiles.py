"""Tiles: a thousand rows with a bitmap for each bucket of each column that some of them constrain.

A column bucket is a stretch of a column's codes; its bitmap marks the rows that may accept a value there (drawing:
`kernels.match.tiles`; docs/decisions/0006). With few distinct ends every end is an edge between buckets: then the
bitmaps are exact, and the surviving rows need no check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.engine.arrays import compute_starts, invert
from tidings.kernels.match import index_build
from tidings.kernels.match.index_build import TileBuckets
from tidings.kernels.match.layout import IndexTiles, RowLiterals

if TYPE_CHECKING:
    from tidings.engine.tuning import IndexTuning
    from tidings.kernels.array_types import ByteArray, CodeArray, Int32Array, IntArray, WordArray

EXACT_AT_MOST, EXACT_BITS = 256, 768
"""A column with at most so many edges is exact too, while all exact columns together have so many bits for a row (96
bytes): it needs no bitmaps of doubt, and where all columns are exact nothing is checked. Chosen, not measured."""

DOUBTED_UP_TO = 12
"""With at most so many columns whose buckets do not tell all ends apart, bitmaps say in which rows there is doubt. They
are all read for an event with survivors; with more columns, all survivors are checked. Chosen, not measured."""

SAMPLED = 4096
"""Edges of a column from which quantiles are taken: 64 or more for each bucket, as there are at most 64 buckets."""


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
    constrained = index_build.find_tile_columns(rows.start, rows.head, cuts.row, cuts.end, keys, columns)
    constrained[constrained.sum(axis=1) * tuning.word_ns / 64 > tuning.scan_ns] = 0  # scanning is cheaper there
    bitmap_columns = np.flatnonzero(constrained.any(axis=0))  # in kernels and files: the dense columns
    buckets = _choose_buckets(rows, cuts, invert(bitmap_columns, columns + 1, missing=-1), len(bitmap_columns), tuning)
    place, words, rest, rest_start = _fill_bitmaps(rows, cuts, constrained[:, bitmap_columns], buckets, keys)
    hull_low, hull_high = (np.zeros(len(hull_column), np.uint32) for _ in range(2))
    index_build.fill_hulls(rows, cuts.row, cuts.end, hull_column, hull_low, hull_high)
    rate_start = compute_starts(np.diff(buckets.edge_start) + 2)
    counts = index_build.count_buckets(cuts.row, cuts.end, place, buckets.edge_start, words, rate_start)
    return IndexTiles(
        row=cuts.row,
        end=cuts.end,
        rest=rest,
        rest_start=rest_start,
        doubted=np.flatnonzero(buckets.state == index_build.DOUBTED).astype(np.int64),
        hull_column=hull_column,
        hull_low=hull_low,
        hull_high=hull_high,
        place=place.astype(np.uint64).ravel(),  # -1 becomes `tiles.NOWHERE`
        words=words,
        dense=bitmap_columns,
        edge_start=buckets.edge_start,
        edges=buckets.edges,
        rate_start=rate_start,
        rates=(counts / max(1, 64 * len(rest))).astype(np.float32),
        loose=cuts.loose,
    )


def _choose_buckets(
    rows: RowLiterals, cuts: TileCuts, dense_of: IntArray, width: int, tuning: IndexTuning
) -> TileBuckets:
    """Choose the edges of each column with bitmaps (`dense_of` numbers them); in an exact one every end is an edge."""
    most = max(tuning.exact_up_to, EXACT_AT_MOST)
    listed, count, sample, sampled = index_build.collect_edges(rows, cuts.row, cuts.end, dense_of, width, most, SAMPLED)
    exact = count <= tuning.exact_up_to
    bits = int(count[exact].sum())
    for number in np.argsort(count, kind="stable").tolist():  # more of them, while there is room
        if not exact[number] and count[number] <= EXACT_AT_MOST and bits + count[number] <= EXACT_BITS:
            exact[number] = True
            bits += int(count[number])
    room = tuning.bitmap_bits if width > DOUBTED_UP_TO else 2 * tuning.bitmap_bits
    buckets = min(64, max(8, room // max(1, width)))
    lists: list[CodeArray] = []
    for number in range(width):
        if exact[number]:
            lists.append(listed[number, : count[number]])
        else:
            ends = np.sort(sample[number, : sampled[number]])
            lists.append(np.unique(ends[(np.arange(1, buckets) * len(ends)) // buckets]))
    rough = index_build.DOUBTED if np.count_nonzero(~exact) <= DOUBTED_UP_TO else index_build.CHECKED
    state = np.where(exact, index_build.EXACT, rough).astype(np.uint8)
    edges = np.concatenate([*lists, np.zeros(0)]).astype(np.uint32)
    return TileBuckets(dense_of, compute_starts([len(edges) for edges in lists]), edges, state)


def _fill_bitmaps(
    rows: RowLiterals, cuts: TileCuts, constrained: ByteArray, buckets: TileBuckets, keys: IntArray
) -> tuple[IntArray, WordArray, WordArray, IntArray]:
    """Return where the bitmaps of each tile and column begin (-1: none), the bitmaps, and the rows to check."""
    counts = np.diff(buckets.edge_start) + 2
    maps = np.where(buckets.state == index_build.DOUBTED, 2 * counts - 1, counts)  # a missing value is never in doubt
    words = (cuts.end.astype(np.int64) - cuts.row + 63) >> 6
    sizes = constrained * (words[:, None] * maps[None, :])
    place = np.where(constrained > 0, np.cumsum(sizes).reshape(sizes.shape) - sizes, -1)
    bits, rest_start = np.zeros(int(sizes.sum()), np.uint64), compute_starts(words)
    rest = np.zeros(int(rest_start[-1]), np.uint64)
    index_build.fill_tiles(rows, cuts.row, cuts.end, place, buckets, bits, rest, rest_start, keys)
    return place, bits, rest, rest_start
