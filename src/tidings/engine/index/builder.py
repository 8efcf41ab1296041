"""The index of a segment: rows in order of how they are found, tables of keys, tiles.

Rows of one group lie together; of a keyed group, those of one key; of a packed group, those whose intervals
lie close, so that the hulls of tiles are tight. Clusters with many rows are cut into tiles, others are scanned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.engine.compile.row_table import several_rows
from tidings.engine.index.planner import TILE, Choice, chosen
from tidings.engine.index.tiles import tiles_of
from tidings.engine.ranges import runs
from tidings.kernels.match import index_build
from tidings.kernels.match import plan as kernel
from tidings.kernels.match.layout import OP_BITS, RowLiterals, IndexPaths, IndexRows, IndexTiles

if TYPE_CHECKING:
    from tidings.engine.compile.row_table import Table

TILED_FROM = 128
"""Clusters with fewer rows are scanned."""

DIRECT_UP_TO = 8
"""A group's table has a place for every pair of points if that makes at most so many places for each row."""


@dataclass(frozen=True, slots=True)
class Index:
    """Rows, paths and tiles; `origin` is each row's row of the table, `copy` marks all but the first of its filings."""

    rows: IndexRows
    paths: IndexPaths
    tiles: IndexTiles
    origin: NDArray[np.uint32]
    copy: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Filed:
    """Rows by group and place in it, in their final order."""

    group: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    owner: NDArray[np.uint32]
    kinds: NDArray[np.int64]  # of each group
    columns: NDArray[np.int64]  # two of each group; -1: none


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where tiles begin and end, the cluster of each, and the tiled clusters that every event visits."""

    row: NDArray[np.uint32]
    end: NDArray[np.uint32]
    cluster: NDArray[np.int64]
    loose: NDArray[np.int32]


def index_of(
    table: Table,
    sample: dict[int, NDArray[np.uint32]] | None = None,
    present: NDArray[np.float32] | None = None,
) -> tuple[Index, Choice]:
    """Plan and build; see `plan.chosen` for what is known of events."""
    choice = chosen(table, sample, present)
    filed = _filed(table, choice)
    start, head, low, high = index_build.gather_rows(filed.owner, table.start, *table.literals.arrays[:3])
    rows = RowLiterals(start, head, low, high, *table.literals.unions)
    cluster_start, cluster_group = _clusters(filed)
    paths, cut = _paths(table, filed, cluster_start, cluster_group)
    group = cluster_group[cut.cluster]
    keyed = filed.kinds[group] >= kernel.KEYED
    two = filed.columns.reshape(-1, 2)[group]
    none = np.full_like(two, -1)
    tiles = tiles_of(
        rows,
        cut.row,
        cut.end,
        columns=len(table.columns),
        keys=np.where(keyed[:, None], two, none).ravel(),
        hull_column=np.where(keyed[:, None], none, two).ravel(),
        loose=cut.loose,
    )
    copy = np.zeros(0, np.uint8)
    if len(filed.owner) > len(table.start) - 1:
        _, where = np.unique(filed.owner, return_index=True)
        copy = np.ones(len(filed.owner), np.uint8)
        copy[where] = 0
    return Index(_ready(table, filed.owner, rows), paths, tiles, filed.owner, copy), choice


def _filed(table: Table, choice: Choice) -> _Filed:
    lits = table.literals
    owner, first, second = kernel.file_rows(
        choice.kind,
        choice.one,
        choice.two,
        lits.low,
        lits.high,
        lits.head,
        choice.use,
        lits.union_start,
        lits.union_low,
    )
    column = np.full((len(choice.kind), 2), -1, np.int64)
    for side, at in enumerate((choice.one, choice.two)):
        there = at >= 0
        column[there, side] = lits.head[at[there]] >> OP_BITS
    width = len(table.columns) + 1
    label = (choice.kind.astype(np.int64) * width + column[:, 0] + 1) * width + column[:, 1] + 1
    labels, number = np.unique(label, return_inverse=True)
    group = number[owner]
    kinds = labels // (width * width)
    columns = np.stack([labels // width % width - 1, labels % width - 1], axis=1)
    first, second = _packed(group, first, second, kinds)
    order = np.lexsort((second, first, group))
    return _Filed(group[order], first[order], second[order], owner[order], kinds, columns.ravel())


def _packed(
    group: NDArray[Any], first: NDArray[Any], second: NDArray[Any], kinds: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """In groups packed by two columns, turn the first middle into a strip: rows near in both lie together."""
    pairs = np.flatnonzero(kinds[group] == kernel.PACKED_PAIR)
    if not len(pairs):
        return first, second
    order = pairs[np.lexsort((first[pairs], group[pairs]))]
    size = np.bincount(group[order], minlength=len(kinds))
    begin = np.cumsum(size) - size
    strips = np.maximum(1, np.sqrt(size / TILE).astype(np.int64))
    place = np.arange(len(order)) - begin[group[order]]
    first = first.copy()
    first[order] = place * strips[group[order]] // np.maximum(1, size[group[order]])
    return first, second


def _ready(table: Table, owner: NDArray[Any], rows: RowLiterals) -> IndexRows:
    """Return the rows as they are matched, with literals of 16 bits where they fit."""
    widest = max((2 * len(space) for space in table.spaces), default=0)
    few = len(table.columns) <= 1 << (16 - OP_BITS) and len(rows.union_start) < 0xFFFF
    narrow = widest < 0xFFFF and few
    code_type = np.uint16 if narrow else np.uint32
    literal = np.empty((len(rows.head), 3), code_type)
    for place, codes in enumerate((rows.head, rows.low, rows.high)):
        literal[:, place] = np.minimum(codes, 0xFFFF) if narrow else codes
    most = np.iinfo(code_type).max
    low, high = (np.minimum(one, most).astype(code_type) for one in (rows.union_low, rows.union_high))
    special = several_rows(table.entry, table.slot).astype(np.uint8)
    special[table.item_row] = 1
    if table.asked is not None:
        owners = np.repeat(np.arange(len(special)), np.diff(table.entry))
        special[owners[np.isin(table.slot, [slot for slot, _ in table.asked.trees])]] = 1
    entry, slot = _entries(table, owner)
    return IndexRows(rows.start, literal.ravel(), rows.union_start, low, high, entry, slot, special[owner])


def _entries(table: Table, owner: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the slots of rows in their new order, and where each row's begin (nothing: each row has one)."""
    if len(table.slot) == len(table.start) - 1:
        return np.zeros(0, np.uint32), table.slot[owner]
    sizes = np.diff(table.entry)[owner].astype(np.int64)
    entry = np.zeros(len(owner) + 1, np.uint32)
    np.cumsum(sizes, out=entry[1:])
    return entry, table.slot[runs(table.entry[owner], sizes)]


def _clusters(filed: _Filed) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return where clusters begin, with one more at the end, and the group of each."""
    count = len(filed.group)
    if not count:
        return np.zeros(1, np.uint32), np.zeros(0, np.int64)
    keyed = filed.kinds[filed.group] >= kernel.KEYED
    new = np.ones(count, bool)
    same = filed.group[1:] == filed.group[:-1]
    key = (filed.first[1:] == filed.first[:-1]) & (filed.second[1:] == filed.second[:-1])
    new[1:] = ~same | (keyed[1:] & ~key)
    begin = np.flatnonzero(new)
    return np.append(begin, count).astype(np.uint32), filed.group[begin]


def _paths(table: Table, filed: _Filed, cluster_start: NDArray[Any], cluster_group: NDArray[Any]) -> tuple[IndexPaths, _Cut]:
    """Return the paths, and how clusters are cut into tiles."""
    sizes: NDArray[Any] = np.diff(cluster_start.astype(np.int64))
    keyed = filed.kinds[cluster_group] >= kernel.KEYED
    tiled = np.flatnonzero((sizes >= TILED_FROM) | ~keyed)
    tiled_of = np.full(len(sizes), -1, np.int32)
    tiled_of[tiled] = np.arange(len(tiled))
    counts = -(-sizes[tiled] // TILE)
    tiled_start = np.zeros(len(tiled) + 1, np.int32)
    np.cumsum(counts, out=tiled_start[1:])
    tile_cluster = np.repeat(tiled, counts)
    within = np.arange(len(tile_cluster)) - np.repeat(tiled_start[:-1], counts)
    even = sizes[tile_cluster] * within // np.maximum(1, np.repeat(counts, counts))
    tile_row = cluster_start[tile_cluster].astype(np.int64) + even
    ends = cluster_start[tile_cluster + 1].astype(np.int64)
    tile_end = np.append(tile_row[1:], 0) if len(tile_row) else tile_row
    last_of_cluster = within == np.repeat(counts, counts) - 1
    tile_end = np.where(last_of_cluster, ends, tile_end)
    paths = _tables(table, filed, cluster_start, cluster_group, tiled_of, tiled_start)
    loose = tiled_of[np.flatnonzero(~keyed)].astype(np.int32)
    return paths, _Cut(tile_row.astype(np.uint32), tile_end.astype(np.uint32), tile_cluster, loose)


def _tables(
    table: Table,
    filed: _Filed,
    cluster_start: NDArray[Any],
    cluster_group: NDArray[Any],
    tiled_of: NDArray[Any],
    tiled_start: NDArray[Any],
) -> IndexPaths:
    groups = len(filed.kinds)
    columns = filed.columns.reshape(-1, 2)
    ranks = np.array([len(space) for space in table.spaces] + [1], np.int64)
    base, width, mask = (np.zeros(groups, np.int64) for _ in range(3))
    begin = cluster_start[:-1].astype(np.int64)
    first, second = filed.first[begin] if len(begin) else begin, filed.second[begin] if len(begin) else begin
    direct: list[NDArray[Any]] = []
    hashed: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    direct_size = hash_size = 0
    bounds = np.searchsorted(cluster_group, np.arange(groups + 1))
    row_counts = np.diff(np.searchsorted(filed.group, np.arange(groups + 1)))
    for group in np.flatnonzero(filed.kinds >= kernel.KEYED).tolist():
        mine = np.arange(bounds[group], bounds[group + 1])
        width[group] = ranks[columns[group, 1]]
        places = int(ranks[columns[group, 0]] * width[group])
        if places <= DIRECT_UP_TO * int(row_counts[group]) + 1024:
            part = np.zeros(places, np.uint32)
            part[first[mine] * width[group] + second[mine]] = mine + 1
            base[group] = direct_size
            direct.append(part)
            direct_size += places
            continue
        size = 1 << int(np.ceil(np.log2(max(2, 2 * len(mine)))))
        parts = tuple(np.zeros(size, np.uint32) for _ in range(3))
        base[group], mask[group] = hash_size, size - 1
        index_build.fill_hash(first[mine], second[mine], mine, size - 1, *parts, 0)
        hashed.append(parts)  # type: ignore[arg-type]
        hash_size += size
    keyed = np.flatnonzero(filed.kinds >= kernel.KEYED)
    by_column = keyed[np.argsort(columns[keyed, 0], kind="stable")]
    by_column_start = np.searchsorted(columns[by_column, 0], np.arange(len(table.columns) + 1))
    return IndexPaths(
        by_column=by_column.astype(np.int32),
        by_column_start=by_column_start.astype(np.int64),
        first=columns[:, 0].astype(np.int32),
        second=columns[:, 1].astype(np.int32),
        base=base,
        width=width,
        mask=mask,
        direct=np.concatenate([*direct, np.zeros(0, np.uint32)]).astype(np.uint32),
        hash_first=np.concatenate([*(part[0] for part in hashed), np.zeros(0, np.uint32)]).astype(np.uint32),
        hash_second=np.concatenate([*(part[1] for part in hashed), np.zeros(0, np.uint32)]).astype(np.uint32),
        hash_cluster=np.concatenate([*(part[2] for part in hashed), np.zeros(0, np.uint32)]).astype(np.uint32),
        cluster_start=cluster_start,
        cluster_tiled=tiled_of,
        tiled_start=tiled_start,
    )
