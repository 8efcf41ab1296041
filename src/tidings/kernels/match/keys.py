"""From an event's values to the clusters of rows that are keyed by them.

A keyed group is one column, or a pair, by whose points rows are filed; a cluster has the rows of one key. The key is
the rank of a point (its code >> 1) or two ranks, and a group has one of two tables:

    direct   direct[base + first * width + second]             cluster + 1, or 0; where points are dense
    hashed   hash_first, hash_second, hash_cluster [base + ...]   linear probing; `mask` is its size - 1

    group (make, fuel) of two makes and three fuels, `width` 3     direct from `base` on  [ 0 0 2 | 5 0 0 ]
    make = 'ford' and fuel = 'gas', their ranks 1 and 0            at 1 * 3 + 0 stands 5: cluster 4

An event looks up each group whose columns it has: O(groups of its columns), whatever the number of rows. Small clusters
are checked row by row at once; visits to large ones are collected for `tiles`. Invariant: a cluster is found at most
once for an event with one value in each column; with several values it may come twice, and the caller drops duplicates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.growth import grow
from tidings.kernels.jit import jit
from tidings.kernels.match.exact_check import U1, WAITING, check_rows
from tidings.kernels.match.literals import ABSENT, SEVERAL

if TYPE_CHECKING:
    from tidings.kernels.array_types import CodeArray, Int, IntArray, WordArray
    from tidings.kernels.match.layout import EventCells, IndexPaths, IndexRows, Intervals, Pairs, Visits


# Flat, as it is called for each keyed group of each event: to hand a group of arrays on counts references of all of
# them, which costs more than the look-up (`layout`). The callers have unpacked their groups before the loop.
@jit
def find_cluster(
    first: Int, second: Int, group: Int, base: IntArray, width: IntArray, mask: IntArray, direct: CodeArray,
    hash_first: CodeArray, hash_second: CodeArray, hash_cluster: CodeArray,
) -> Int:  # fmt: skip
    """Return the cluster of a keyed group for the ranks of its points, or -1."""
    if mask[group] == 0:
        return np.int64(direct[base[group] + first * width[group] + second]) - 1
    at = (first * np.int64(2654435761) + second * np.int64(40503)) & mask[group]
    while hash_cluster[base[group] + at] != 0:
        entry = base[group] + at
        if hash_first[entry] == first and hash_second[entry] == second:
            return np.int64(hash_cluster[entry]) - 1
        at = (at + 1) & mask[group]
    return np.int64(-1)


@jit
def find_clusters_of_several(cell: CodeArray, many: Intervals, paths: IndexPaths, event: Int, group: Int) -> IntArray:
    """Return the clusters of a keyed group for an event whose key columns hold several values, or ranges of them."""
    clusters = np.empty(16, np.int64)
    count = 0
    first_cell, second_cell = cell[event, paths.first[group]], np.uint32(1)
    if paths.second[group] >= 0:
        second_cell = cell[event, paths.second[group]]
    starts, lows, highs = many
    begin, end = np.int64(0), np.int64(1)
    if first_cell >= SEVERAL:
        begin, end = starts[first_cell & np.uint32(0x7FFFFFFF)], starts[(first_cell & np.uint32(0x7FFFFFFF)) + 1]
    begin2, end2 = np.int64(0), np.int64(1)
    if second_cell >= SEVERAL:
        begin2, end2 = starts[second_cell & np.uint32(0x7FFFFFFF)], starts[(second_cell & np.uint32(0x7FFFFFFF)) + 1]
    for i in range(begin, end):
        low, high = (lows[i], highs[i]) if first_cell >= SEVERAL else (first_cell, first_cell)
        for j in range(begin2, end2):
            low2, high2 = (lows[j], highs[j]) if second_cell >= SEVERAL else (second_cell, second_cell)
            # A range visits every key it holds; a point only its own, if it is one.
            rank_end, rank2_end = (np.int64(high) + 1) >> 1, (np.int64(high2) + 1) >> 1
            pairs = (rank_end - (np.int64(low) >> 1)) * (rank2_end - (np.int64(low2) >> 1))
            if paths.mask[group] != 0 and pairs > paths.mask[group]:  # fewer keys than pairs: go through the keys
                for at in range(paths.base[group], paths.base[group] + paths.mask[group] + 1):
                    rank, rank2 = np.int64(paths.hash_first[at]), np.int64(paths.hash_second[at])
                    inside = rank >= low >> 1 and rank < rank_end and rank2 >= low2 >> 1 and rank2 < rank2_end
                    if paths.hash_cluster[at] == 0 or not inside:
                        continue
                    if count == len(clusters):
                        clusters = grow(clusters, 0)
                    clusters[count] = np.int64(paths.hash_cluster[at]) - 1
                    count += 1
                continue
            for rank in range(np.int64(low) >> 1, rank_end):
                for rank2 in range(np.int64(low2) >> 1, rank2_end):
                    cluster = find_cluster(
                        rank, rank2, group, paths.base, paths.width, paths.mask, paths.direct,
                        paths.hash_first, paths.hash_second, paths.hash_cluster,
                    )  # fmt: skip
                    if cluster < 0:
                        continue
                    if count == len(clusters):
                        clusters = grow(clusters, 0)
                    clusters[count] = cluster
                    count += 1
    return clusters[:count]


@jit
def find_hits_of_plain(paths: IndexPaths, cell: CodeArray, event: Int, hit_of: WordArray) -> Int:
    """Write the clusters whose key an event has, when each of its columns has one value; return their number."""
    by_column, by_column_start, second_of = paths.by_column, paths.by_column_start, paths.second
    base, width, mask, direct = paths.base, paths.width, paths.mask, paths.direct
    hash_first, hash_second, hash_cluster = paths.hash_first, paths.hash_second, paths.hash_cluster
    hits = 0
    for column in range(cell.shape[1]):
        first_cell = cell[event, column]
        # Even codes lie between end points: no row is keyed by them.
        if first_cell == ABSENT or first_cell & np.uint32(1) == 0:
            continue
        for at in range(by_column_start[column], by_column_start[column + 1]):
            group = by_column[at]
            second = second_of[group]
            second_cell = np.uint32(1) if second < 0 else cell[event, second]
            if second_cell == ABSENT or second_cell & np.uint32(1) == 0:
                continue
            first_rank, second_rank = np.int64(first_cell) >> 1, np.int64(second_cell) >> 1
            if mask[group] == 0:
                cluster = np.int64(direct[base[group] + first_rank * width[group] + second_rank]) - 1
            else:
                cluster = find_cluster(
                    first_rank, second_rank, group, base, width, mask, direct, hash_first, hash_second, hash_cluster
                )
            if cluster >= 0:
                hit_of[hits] = cluster
                hits += 1
    return hits


@jit
def find_hits_of_several(paths: IndexPaths, cell: CodeArray, many: Intervals, event: Int) -> WordArray:
    """Return the clusters whose key an event has, when some of its columns have several values."""
    hit_of = np.empty(64, np.uint64)
    hits = 0
    for column in range(cell.shape[1]):
        if cell[event, column] == ABSENT:
            continue
        for at in range(paths.by_column_start[column], paths.by_column_start[column + 1]):
            group = paths.by_column[at]
            if paths.second[group] >= 0 and cell[event, paths.second[group]] == ABSENT:
                continue
            clusters = find_clusters_of_several(cell, many, paths, event, group)
            while hits + len(clusters) > len(hit_of):
                hit_of = grow(hit_of, 0)
            for i in range(len(clusters)):
                hit_of[hits] = clusters[i]
                hits += 1
    return hit_of[:hits]


@jit
def follow_keys(rows: IndexRows, paths: IndexPaths, cells: EventCells) -> tuple[Pairs, Pairs, Visits]:
    """Find the clusters of every event; check the rows of small ones, and list visits to large ones.

    Returns matches (events, slots), special (events, rows) and visits (tiled clusters, events).
    """
    cell, many = cells.cell, (cells.many_start, cells.many_low, cells.many_high)
    cluster_start, cluster_tiled = paths.cluster_start, paths.cluster_tiled
    number = cell.shape[0]
    matches = (np.empty(16 * number + 64, np.int64), np.empty(16 * number + 64, np.uint32), 0)
    special = (np.empty(64, np.int64), np.empty(64, np.uint32), 0)
    visit_cluster, visit_event, visits = np.empty(64, np.int32), np.empty(64, np.int32), 0
    wait_event, wait_row, waiting = np.empty(WAITING, np.uint32), np.empty(WAITING, np.uint32), 0
    own_hits = np.empty(len(paths.second) + 1, np.uint64)
    for event in range(number):
        # Arrays change hands here, once for an event, and not in the loops below: each time is counted.
        hit_of = own_hits
        if cells.plain[event]:
            hits = find_hits_of_plain(paths, cell, event, own_hits)
        else:
            hit_of = find_hits_of_several(paths, cell, many, event)
            hits = len(hit_of)
        # Room is made once for an event, before its rows are written.
        total = 0
        for hit in range(hits):
            if cluster_tiled[hit_of[hit]] < 0:
                total += np.int64(cluster_start[hit_of[hit] + U1]) - np.int64(cluster_start[hit_of[hit]])
        if waiting + total > len(wait_row):
            matches, special = check_rows(rows, cells, wait_event, wait_row, waiting, matches, special)
            waiting = 0
            if total > len(wait_row):
                wait_event, wait_row = grow(wait_event, total), grow(wait_row, total)
        if visits + hits > len(visit_cluster):
            visit_cluster, visit_event = grow(visit_cluster, visits + hits), grow(visit_event, visits + hits)
        for hit in range(hits):
            cluster = hit_of[hit]
            if cluster_tiled[cluster] >= 0:
                visit_cluster[visits] = cluster_tiled[cluster]
                visit_event[visits] = event
                visits += 1
                continue
            for row in range(cluster_start[cluster], cluster_start[cluster + U1]):
                wait_event[waiting] = event
                wait_row[waiting] = row
                waiting += 1
    matches, special = check_rows(rows, cells, wait_event, wait_row, waiting, matches, special)
    return matches, special, (visit_cluster, visit_event, visits)
