"""The index of a segment: rows in the order in which they are found, tables of keys, tiles.

A group is the rows that are found by the same columns in the same way; it lies together. Inside a keyed group the rows
of one key are a cluster; a packed group is one cluster, sorted so that rows with close intervals are neighbours and the
hulls of tiles are tight. Clusters with many rows are cut into tiles, others are scanned.

    rows     | group 0: packed by `price`  | group 1: keyed by `make`       |
    clusters | one cluster                 | ford | opel | fiat ...         |
    tiles    | tile | tile | tile | tile   | tile |   (fiat: scanned)       |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.arrays import compute_starts, expand_ranges, find_starts, invert, list_owners
from tidings.engine.compile.row_table import RowTable, mask_multi_row
from tidings.engine.index.planner import AccessPlan, EventStatistics, plan_rows
from tidings.engine.index.tiles import TileCuts, build_tiles
from tidings.kernels.array_types import BoolArray, ByteArray, CodeArray, Int32Array, IntArray
from tidings.kernels.match import access_choice as kernel
from tidings.kernels.match import index_build
from tidings.kernels.match.layout import OP_BITS, IndexPaths, IndexRows, IndexTiles, RowLiterals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.engine.tuning import IndexTuning


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """Rows, paths and tiles; `origin[i]`: the table's row behind row i; `copy[i]`: 1 for its second and later copies.

    A row with a set as its key is filed under each value. The names of the fields are those of a snapshot's arrays.
    """

    rows: IndexRows
    paths: IndexPaths
    tiles: IndexTiles
    origin: CodeArray
    copy: ByteArray


@dataclass(frozen=True, slots=True)
class _FiledRows:
    """Rows by group and place in it, in their final order; `first` and `second` are ranks of keys, or sort keys."""

    group: IntArray
    first: IntArray
    second: IntArray
    origin: CodeArray  # the row of the table
    kinds: IntArray  # of each group
    columns: IntArray  # of shape (groups, 2): the one or two of each group; -1: none

    @property
    def is_keyed(self) -> BoolArray:
        """Which groups have keys."""
        return self.kinds >= kernel.KEYED


def build_index(table: RowTable, statistics: EventStatistics, tuning: IndexTuning) -> tuple[SegmentIndex, AccessPlan]:
    """Plan how rows are found, and lay them out so; the rows of the table need not be in any order."""
    # Choose a way for each row, and put rows of the same way, then of the same key, side by side.
    plan = (tuning.planner or plan_rows)(table, statistics, tuning)
    filed = _file_rows(table, plan, tuning.tile_rows)
    start, head, low, high = index_build.gather_rows(filed.origin, table.start, *table.literals[:3])
    rows = RowLiterals(start, head, low, high, *table.literals[3:])
    # Find the clusters, cut the large ones into tiles, and give each tile the columns of its cluster's group.
    cluster_start = _find_clusters(filed)
    cluster_group = filed.group[cluster_start[:-1]]
    tiled_of, tiled_start, cuts = _cut_tiles(cluster_start, filed.is_keyed[cluster_group], tuning)
    group = cluster_group[cuts.cluster]
    is_keyed, group_columns = filed.is_keyed[group][:, None], filed.columns[group]
    # A tile has keys or hulls, not both. All its rows have its key, so key columns need no bitmaps there.
    none = np.full_like(group_columns, -1)
    tiles = build_tiles(
        rows,
        cuts,
        columns=len(table.columns),
        keys=np.where(is_keyed, group_columns, none).ravel(),
        hull_column=np.where(is_keyed, none, group_columns).ravel(),
        tuning=tuning,
    )
    # Mark all but the first copy of a row that is filed under several keys: merging and counting take each row once.
    copy = np.zeros(0, np.uint8)
    if len(filed.origin) > len(table.start) - 1:
        _, where = np.unique(filed.origin, return_index=True)
        copy = np.ones(len(filed.origin), np.uint8)
        copy[where] = 0
    # An event looks groups up by its columns, so keyed groups are listed by their first column.
    keyed = np.flatnonzero(filed.is_keyed)
    by_column = keyed[np.argsort(filed.columns[keyed, 0], kind="stable")]
    ranks = np.array([*map(len, table.spaces), 1], np.int64)
    paths = IndexPaths(
        by_column=by_column.astype(np.int32),
        by_column_start=find_starts(filed.columns[by_column, 0], len(table.columns)),
        first=filed.columns[:, 0].astype(np.int32),
        second=filed.columns[:, 1].astype(np.int32),
        **_build_key_tables(filed, cluster_start, ranks, tuning.direct_up_to),
        cluster_start=cluster_start,
        cluster_tiled=tiled_of,
        tiled_start=tiled_start,
    )
    return SegmentIndex(_finish_rows(table, filed.origin, rows), paths, tiles, filed.origin, copy), plan


def _file_rows(table: RowTable, plan: AccessPlan, tile_rows: int) -> _FiledRows:
    """Sort the rows by group and, inside a group, by key or by the middle of their intervals.

    A group is a kind and the one or two columns of it, written as one number; with `width` = columns + 1:

        label = kind * width ** 2 + (first column + 1) * width + (second column + 1)        a column of -1: none

    Ascending labels put rows without a key first, as `cost_estimate` expects, and give groups consecutive numbers.
    """
    literals = table.literals
    flat = RowLiterals(table.start, *literals)
    origin, first, second = kernel.file_rows(flat, plan.use, plan.kind, plan.first, plan.second)
    column = np.full((len(plan.kind), 2), -1, np.int64)
    for side, literal in enumerate((plan.first, plan.second)):
        is_used = literal >= 0
        column[is_used, side] = literals.head[literal[is_used]] >> OP_BITS
    width = len(table.columns) + 1
    label = (plan.kind.astype(np.int64) * width + column[:, 0] + 1) * width + column[:, 1] + 1
    labels, number = np.unique(label, return_inverse=True)
    group = number[origin]
    kinds = labels // (width * width)
    columns = np.stack([labels // width % width - 1, labels % width - 1], axis=1)
    first = _sort_into_strips(group, first, kinds, tile_rows)
    order = np.lexsort((second, first, group))
    return _FiledRows(group[order], first[order], second[order], origin[order], kinds, columns)


def _sort_into_strips(group: IntArray, first: IntArray, kinds: IntArray, tile_rows: int) -> IntArray:
    """In groups packed by two columns, replace the first middle by the number of a strip.

    Sorted by strip and then by the second middle, rows near in both columns lie together.
    """
    pairs = np.flatnonzero(kinds[group] == kernel.PACKED_PAIR)
    if not len(pairs):
        return first
    order = pairs[np.lexsort((first[pairs], group[pairs]))]
    size = np.bincount(group[order], minlength=len(kinds))
    begin = np.cumsum(size) - size
    strips = np.maximum(1, np.sqrt(size / tile_rows).astype(np.int64))
    place = np.arange(len(order)) - begin[group[order]]
    first = first.copy()
    first[order] = place * strips[group[order]] // np.maximum(1, size[group[order]])
    return first


def _finish_rows(table: RowTable, origin: CodeArray, rows: RowLiterals) -> IndexRows:
    """Return the rows as they are matched, with literals of 16 bits where they fit."""
    widest = max((2 * len(space) for space in table.spaces), default=0)
    few_columns = len(table.columns) <= 1 << (16 - OP_BITS)
    narrow = widest < 0xFFFF and few_columns and len(rows.union_start) < 0xFFFF
    code_type: np.dtype[Any] = np.dtype(np.uint16 if narrow else np.uint32)
    literal = np.empty((len(rows.head), 3), code_type)
    for place, codes in enumerate((rows.head, rows.low, rows.high)):
        literal[:, place] = np.minimum(codes, 0xFFFF) if narrow else codes
    most = np.iinfo(code_type).max
    low, high = (np.minimum(ends, most).astype(code_type) for ends in (rows.union_low, rows.union_high))
    special = mask_multi_row(table.entry, table.slot).astype(np.uint8)
    special[table.item_row] = 1
    if table.candidate_trees is not None:
        special[list_owners(table.entry)[np.isin(table.slot, [slot for slot, _ in table.candidate_trees.trees])]] = 1
    entry, slot = np.zeros(0, np.uint32), table.slot[origin]  # every row has one slot
    if len(table.slot) != len(table.start) - 1:
        sizes = np.diff(table.entry)[origin].astype(np.int64)
        entry, slot = compute_starts(sizes, np.uint32), table.slot[expand_ranges(table.entry[origin], sizes)]
    return IndexRows(rows.start, literal.ravel(), rows.union_start, low, high, entry, slot, special[origin])


def _find_clusters(filed: _FiledRows) -> CodeArray:
    """Return where clusters begin, with the end of the last one behind."""
    begins = np.ones(len(filed.group) + 1, bool)
    same_group = filed.group[1:] == filed.group[:-1]
    same_key = (filed.first[1:] == filed.first[:-1]) & (filed.second[1:] == filed.second[:-1])
    begins[1:-1] = ~same_group | (filed.is_keyed[filed.group[1:]] & ~same_key)
    return np.flatnonzero(begins).astype(np.uint32)


def _cut_tiles(start: CodeArray, keyed: BoolArray, tuning: IndexTuning) -> tuple[Int32Array, Int32Array, TileCuts]:
    """Cut the clusters without a key, and the large ones with a key, into tiles of nearly equal size.

    `start` has where each cluster begins, `keyed` marks those that have a key. Return the number of each cluster among
    the tiled ones (-1: it is scanned), where the tiles of each of these begin, and the tiles.
    """
    begin = start.astype(np.int64)
    sizes = np.diff(begin)
    tiled = np.flatnonzero((sizes >= tuning.tiled_from) | ~keyed)
    tiled_of = invert(tiled, len(sizes), missing=-1).astype(np.int32)
    counts = -(-sizes[tiled] // tuning.tile_rows)
    tiled_start = compute_starts(counts, np.int32)
    cluster = np.repeat(tiled, counts)
    within = np.arange(len(cluster)) - np.repeat(tiled_start[:-1], counts)
    even = sizes[cluster] * within // np.maximum(1, np.repeat(counts, counts))
    row = begin[cluster] + even
    is_last = within == np.repeat(counts, counts) - 1
    end = np.where(is_last, begin[cluster + 1], np.append(row, 0)[1:])
    loose = tiled_of[np.flatnonzero(~keyed)].astype(np.int32)
    return tiled_of, tiled_start, TileCuts(row.astype(np.uint32), end.astype(np.uint32), cluster, loose)


def _build_key_tables(
    filed: _FiledRows, cluster_start: CodeArray, ranks: IntArray, direct_up_to: int
) -> dict[str, NDArray[Any]]:
    """Return the tables of keyed groups: one place for every pair of ranks, or a hash table.

    `ranks` is the number of end points of each column and, at its end, 1 for a second column that is none.
    """
    groups, columns, begin = len(filed.kinds), filed.columns, cluster_start[:-1]
    base, width, mask = (np.zeros(groups, np.int64) for _ in range(3))
    first, second = filed.first[begin], filed.second[begin]
    bounds, row_counts = find_starts(filed.group[begin], groups), np.diff(find_starts(filed.group, groups))
    direct, hashed = [np.zeros(0, np.uint32)], [np.zeros((3, 0), np.uint32)]
    direct_size = hash_size = 0
    for group in np.flatnonzero(filed.is_keyed).tolist():
        own = np.arange(bounds[group], bounds[group + 1])
        width[group] = ranks[columns[group, 1]]
        places = int(ranks[columns[group, 0]] * width[group])
        if places <= direct_up_to * int(row_counts[group]) + 1024:
            direct.append(np.zeros(places, np.uint32))
            direct[-1][first[own] * width[group] + second[own]] = own + 1
            base[group], direct_size = direct_size, direct_size + places
        else:
            size = 1 << int(np.ceil(np.log2(max(2, 2 * len(own)))))
            hashed.append(np.zeros((3, size), np.uint32))
            index_build.fill_hash(first[own], second[own], own, size - 1, *hashed[-1])
            mask[group], base[group], hash_size = size - 1, hash_size, hash_size + size
    names = ("hash_first", "hash_second", "hash_cluster")
    tables = dict(zip(names, np.concatenate(hashed, axis=1), strict=True))
    return {"base": base, "width": width, "mask": mask, "direct": np.concatenate(direct), **tables}
