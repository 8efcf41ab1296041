"""Matching a batch of events: keys to clusters, bitmaps over tiles, the exact check of what survives.

For each event the keyed groups of its columns give clusters. Small clusters are checked row by row at
once; visits to large ones are put in order of cluster, so that a tile stays in cache while all its events
pass. In a tile the columns are taken in the order of their match rate for this event, the first few without
a branch, the rest only while a bit is alive. Ordinary rows come out as (event, slot); special ones as
(event, row), for the second phase.

The loops are long functions on purpose: handing thirty arrays to a function costs more than its work, and
unsigned places spare the test for negative ones, which would keep the loops over words from being vectorised.
The exact check stands in both for the same reason (as a function, inlined or not, it counts references for each
row: 40 ns against 6). It takes the first four literals of a row without a branch, since which of them fails
cannot be foreseen; only unions, quantifiers and several values go through `holds_from`.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.bits import lowest
from tidings.kernels.jit import inlined, jit
from tidings.kernels.layout import OP_BITS
from tidings.kernels.literals import ABSENT, SEVERAL, accepts

FIRST = 4
"""Columns whose bitmaps are taken together without asking whether anything lives."""

SORTED_UP_TO = 64
"""With more dense columns than this, putting them in order costs more than it saves."""

U0, U1, U2, U3, U4, U64 = (np.uint64(number) for number in (0, 1, 2, 3, 4, 64))


@jit
def grown(array, least):  # type: ignore[no-untyped-def]
    """Return the array with at least twice the room."""
    larger = np.empty(max(2 * len(array), least), array.dtype)
    larger[: len(array)] = array
    return larger


@jit
def holds_from(at, last, literal, unions, cell, many, event):  # type: ignore[no-untyped-def]
    """Tell whether an event satisfies the literals from one place up to another, whatever they are."""
    while at < last:
        head = literal[at]
        if not accepts(
            cell[event, head >> OP_BITS], head & 15, literal[at + U1], literal[at + U2],
            many[0], many[1], many[2], unions[0], unions[1], unions[2],
        ):  # fmt: skip
            return False
        at += U3
    return True


@jit
def cluster_of(first, second, group, base, width, mask, direct, hash_first, hash_second, hash_cluster):  # type: ignore[no-untyped-def]
    """Return the cluster of a keyed group for the ranks of its points, or -1."""
    if mask[group] == 0:
        return np.int64(direct[base[group] + first * width[group] + second]) - 1
    at = (first * np.int64(2654435761) + second * np.int64(40503)) & mask[group]
    while hash_cluster[base[group] + at] != 0:
        here = base[group] + at
        if hash_first[here] == first and hash_second[here] == second:
            return np.int64(hash_cluster[here]) - 1
        at = (at + 1) & mask[group]
    return np.int64(-1)


@jit
def keys_of_several(cell, many, paths, event, group):  # type: ignore[no-untyped-def]
    """Return the clusters of a keyed group for an event whose key columns have several values, or ranges."""
    found = np.empty(16, np.int64)
    count = 0
    one, two = cell[event, paths.first[group]], np.uint32(1)
    if paths.second[group] >= 0:
        two = cell[event, paths.second[group]]
    starts, lows, highs = many
    begin, end = np.int64(0), np.int64(1)
    if one >= SEVERAL:
        begin, end = starts[one & np.uint32(0x7FFFFFFF)], starts[(one & np.uint32(0x7FFFFFFF)) + 1]
    begin2, end2 = np.int64(0), np.int64(1)
    if two >= SEVERAL:
        begin2, end2 = starts[two & np.uint32(0x7FFFFFFF)], starts[(two & np.uint32(0x7FFFFFFF)) + 1]
    for i in range(begin, end):
        low, high = (lows[i], highs[i]) if one >= SEVERAL else (one, one)
        for j in range(begin2, end2):
            low2, high2 = (lows[j], highs[j]) if two >= SEVERAL else (two, two)
            # A range visits every key it holds; a point only its own, if it is one.
            for rank in range(np.int64(low) >> 1, (np.int64(high) + 1) >> 1):
                for rank2 in range(np.int64(low2) >> 1, (np.int64(high2) + 1) >> 1):
                    cluster = cluster_of(
                        rank, rank2, group, paths.base, paths.width, paths.mask, paths.direct,
                        paths.hash_first, paths.hash_second, paths.hash_cluster,
                    )  # fmt: skip
                    if cluster < 0:
                        continue
                    if count == len(found):
                        found = grown(found, 0)
                    found[count] = cluster
                    count += 1
    return found[:count]


@jit
def follow_keys(rows, paths, cells):  # type: ignore[no-untyped-def]
    """Go from the values of every event to the clusters keyed by them; check the small, list the large.

    Returns found (events, slots), special (events, rows) and visits (tiled clusters, events).
    """
    start, literal, entry, slot, special = rows.start, rows.literal, rows.entry, rows.slot, rows.special
    unions = (rows.union_start, rows.union_low, rows.union_high)
    cell, many = cells.cell, (cells.many_start, cells.many_low, cells.many_high)
    by_column, by_column_start, second_of = paths.by_column, paths.by_column_start, paths.second
    base, width, mask, direct = paths.base, paths.width, paths.mask, paths.direct
    hash_first, hash_second, hash_cluster = paths.hash_first, paths.hash_second, paths.hash_cluster
    cluster_start, cluster_tiled = paths.cluster_start, paths.cluster_tiled
    shared = len(entry) > 0
    number, columns = cell.shape
    out_event, out_slot, count = np.empty(16 * number + 64, np.int64), np.empty(16 * number + 64, np.uint32), 0
    special_event, special_row, specials = np.empty(64, np.int64), np.empty(64, np.uint32), 0
    visit_cluster, visit_event, visits = np.empty(64, np.int32), np.empty(64, np.int32), 0
    hit_begin, hit_end = np.empty(len(second_of) + 64, np.uint64), np.empty(len(second_of) + 64, np.uint64)
    touched = U0
    for event in range(number):
        hits = 0
        for column in range(columns):
            one = cell[event, column]
            if one == ABSENT or (one < SEVERAL and one & np.uint32(1) == 0):
                continue
            for at in range(by_column_start[column], by_column_start[column + 1]):
                group = by_column[at]
                second = second_of[group]
                two = np.uint32(1) if second < 0 else cell[event, second]
                if one < SEVERAL and two < SEVERAL:
                    if two & np.uint32(1) == 0:
                        continue
                    first_rank, second_rank = np.int64(one) >> 1, np.int64(two) >> 1
                    if mask[group] == 0:
                        cluster = np.int64(direct[base[group] + first_rank * width[group] + second_rank]) - 1
                    else:
                        cluster = cluster_of(
                            first_rank, second_rank, group, base, width, mask, direct,
                            hash_first, hash_second, hash_cluster,
                        )  # fmt: skip
                    if cluster >= 0:
                        hit_begin[hits] = cluster
                        hits += 1
                elif two != ABSENT:
                    clusters = keys_of_several(cell, many, paths, event, group)
                    while hits + len(clusters) + len(second_of) >= len(hit_begin):
                        hit_begin, hit_end = grown(hit_begin, 0), grown(hit_end, 0)
                    for i in range(len(clusters)):
                        hit_begin[hits] = clusters[i]
                        hits += 1
        # Three short loops over the hits, so that what each waits for from memory comes in for many at once.
        small = 0
        for hit in range(hits):
            cluster = hit_begin[hit]
            if cluster_tiled[cluster] >= 0:
                if visits == len(visit_cluster):
                    visit_cluster, visit_event = grown(visit_cluster, 0), grown(visit_event, 0)
                visit_cluster[visits] = cluster_tiled[cluster]
                visit_event[visits] = event
                visits += 1
            else:
                hit_begin[small] = cluster_start[cluster]
                hit_end[small] = cluster_start[cluster + U1]
                small += 1
        for hit in range(small):
            touched ^= np.uint64(literal[U3 * np.uint64(start[hit_begin[hit]])])
        for hit in range(small):
            for row in range(hit_begin[hit], hit_end[hit]):
                first, last = np.uint64(start[row]), np.uint64(start[row + U1])
                bad, odd = False, False
                for number in range(first, min(first + U4, last)):
                    head = literal[U3 * number]
                    code = cell[event, head >> OP_BITS]
                    strange = (head & 15 != 0) | (code >= SEVERAL) & (code != ABSENT)
                    odd |= strange
                    bad |= (not strange) & ((code < literal[U3 * number + U1]) | (code > literal[U3 * number + U2]))
                if bad:
                    continue
                for number in range(min(first + U4, last), last):
                    head = literal[U3 * number]
                    code = cell[event, head >> OP_BITS]
                    if (head & 15 != 0) | (code >= SEVERAL) & (code != ABSENT):
                        odd = True
                    elif (code < literal[U3 * number + U1]) | (code > literal[U3 * number + U2]):
                        bad = True
                        break
                if bad or (odd and not holds_from(U3 * first, U3 * last, literal, unions, cell, many, event)):
                    continue
                if special[row]:
                    if specials == len(special_event):
                        special_event, special_row = grown(special_event, 0), grown(special_row, 0)
                    special_event[specials] = event
                    special_row[specials] = row
                    specials += 1
                    continue
                first_entry, last_entry = np.int64(row), np.int64(row) + 1
                if shared:
                    first_entry, last_entry = np.int64(entry[row]), np.int64(entry[row + U1])
                if count + last_entry - first_entry > len(out_event):
                    room = count + last_entry - first_entry
                    out_event, out_slot = grown(out_event, room), grown(out_slot, room)
                for place in range(first_entry, last_entry):
                    out_event[count] = event
                    out_slot[count] = slot[place]
                    count += 1
    if touched == ~U0 and number < 0:  # never: only keeps the loop that touches from being dropped
        count = 0
    return (
        (out_event, out_slot, count), (special_event, special_row, specials), (visit_cluster, visit_event, visits),
    )  # fmt: skip


@inlined
def bucket(edges, low, high, code):  # type: ignore[no-untyped-def]
    """Return the bucket of a code: how many of the edges from `low` up to `high` are not above it."""
    begin = low
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= code:
            low = middle + 1
        else:
            high = middle
    return low - begin


@jit
def prepare(tiles, cells):  # type: ignore[no-untyped-def]
    """Return each event's bucket in every dense column (-1: several), and the columns by match rate."""
    edge_start, edges, dense_column = tiles.edge_start, tiles.edges, tiles.dense
    count, width = cells.cell.shape[0], len(dense_column)
    buckets = np.empty((count, width), np.int32)
    order = np.empty((count, width), np.int32)
    rate = np.empty(width, np.float32)
    for event in range(count):
        for dense in range(width):
            cell = cells.cell[event, dense_column[dense]]
            if cell == ABSENT:
                known = edge_start[dense + 1] - edge_start[dense] + 1
            elif cell < SEVERAL:
                known = bucket(edges, edge_start[dense], edge_start[dense + 1], cell)
            else:
                known = -1
            buckets[event, dense] = known
            rate[dense] = 1.0 if known < 0 else tiles.rates[tiles.rate_start[dense] + known]
            at = dense
            while at > 0 and width <= SORTED_UP_TO and rate[order[event, at - 1]] > rate[dense]:
                order[event, at] = order[event, at - 1]
                at -= 1
            order[event, at] = dense
    return buckets, order


@jit
def outside(cell, many, low, high):  # type: ignore[no-untyped-def]
    """Tell whether no value of a cell, nor anything between two of them, lies in the hull."""
    if cell == ABSENT:
        return True
    if cell < SEVERAL:
        return cell < low or cell > high
    least, most = span_of(cell, many)
    return most < low or least > high


@jit
def span_of(cell, many):  # type: ignore[no-untyped-def]
    """Return the least and the greatest value of a cell that has several."""
    place = cell & np.uint32(0x7FFFFFFF)
    least, most = many[1][many[0][place]], many[2][many[0][place]]
    for at in range(many[0][place] + 1, many[0][place + 1]):
        least = min(least, many[1][at])
        most = max(most, many[2][at])
    return least, most


@jit
def several_bits(edges, first, last, bits, cell, many, place, words, alive):  # type: ignore[no-untyped-def]
    """Keep the rows that live in some bucket between the least and the greatest value of a cell."""
    least, most = span_of(cell, many)
    begin, end = bucket(edges, first, last, least), bucket(edges, first, last, most)
    for word in range(words):
        some = np.uint64(0)
        for at in range(begin, end + 1):
            some |= bits[place + at * words + word]
        alive[word] &= some


@jit
def by_cluster(visits, clusters):  # type: ignore[no-untyped-def]
    """Put the visits in order of cluster (counting sort)."""
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
def match_tiles(rows, tiles, cells, first_tile, last_tile, visitors, prepared, found, specials_found):  # type: ignore[no-untyped-def]
    """Match the events `visitors` with some tiles; return found and special with what was added."""
    start, literal, entry, slot, special = rows.start, rows.literal, rows.entry, rows.slot, rows.special
    unions = (rows.union_start, rows.union_low, rows.union_high)
    cell, plain, many = cells.cell, cells.plain, (cells.many_start, cells.many_low, cells.many_high)
    bits, tile_place = tiles.words, tiles.place
    hull_column, hull_low, hull_high = tiles.hull_column, tiles.hull_low, tiles.hull_high
    buckets, order = prepared
    out_event, out_slot, count = found
    special_event, special_row, specials = specials_found
    width = order.shape[1]
    shared = len(entry) > 0
    places = np.empty(width + 1, np.uint64)
    alive = np.empty(1, np.uint64)
    for tile in range(first_tile, last_tile):
        begin, end = np.int64(tiles.row[tile]), np.int64(tiles.end[tile])
        words = np.uint64((end - begin + 63) >> 6)
        if len(alive) < words:
            alive = np.empty(np.int64(words), np.uint64)
        tail = ~U0 if (end - begin) & 63 == 0 else (U1 << np.uint64((end - begin) & 63)) - U1
        room = np.int64(entry[end]) - np.int64(entry[begin]) if shared else end - begin
        column, column2 = hull_column[2 * tile], hull_column[2 * tile + 1]
        low1, high1, low2, high2 = (
            hull_low[2 * tile], hull_high[2 * tile], hull_low[2 * tile + 1], hull_high[2 * tile + 1],
        )  # fmt: skip
        for visitor in range(len(visitors)):
            event = visitors[visitor]
            if column >= 0:
                one = cell[event, column]
                if one < SEVERAL:
                    if one < low1 or one > high1:
                        continue
                elif outside(one, many, low1, high1):
                    continue
            if column2 >= 0:
                one = cell[event, column2]
                if one < SEVERAL:
                    if one < low2 or one > high2:
                        continue
                elif outside(one, many, low2, high2):
                    continue
            known = 0
            for i in range(width):
                dense = order[event, i]
                place = tile_place[tile, dense]
                if place >= 0 and buckets[event, dense] >= 0:
                    places[known] = np.uint64(place) + np.uint64(buckets[event, dense]) * words
                    known += 1
            if known >= FIRST:
                a, b, c, d = places[0], places[1], places[2], places[3]
                left = U0
                for word in range(words):
                    one_word = bits[a + word] & bits[b + word] & bits[c + word] & bits[d + word]
                    alive[word] = one_word
                    left |= one_word
                at = FIRST
            else:
                left = U1
                for word in range(words):
                    alive[word] = ~U0
                at = 0
            while left != U0 and at + 3 < known:
                a, b, c, d = places[at], places[at + 1], places[at + 2], places[at + 3]
                left = U0
                for word in range(words):
                    one_word = alive[word] & bits[a + word] & bits[b + word] & bits[c + word] & bits[d + word]
                    alive[word] = one_word
                    left |= one_word
                at += 4
            while left != U0 and at < known:
                a = places[at]
                left = U0
                for word in range(words):
                    one_word = alive[word] & bits[a + word]
                    alive[word] = one_word
                    left |= one_word
                at += 1
            if left == U0:
                continue
            if not plain[event]:
                for i in range(width):
                    dense = order[event, i]
                    if buckets[event, dense] < 0 and tile_place[tile, dense] >= 0:
                        several_bits(
                            tiles.edges, tiles.edge_start[dense], tiles.edge_start[dense + 1], bits,
                            cell[event, tiles.dense[dense]], many, tile_place[tile, dense], np.int64(words), alive,
                        )  # fmt: skip
            alive[words - U1] &= tail
            decided = tiles.exact[tile] != 0 and plain[event] != 0
            if count + room > len(out_event):
                out_event, out_slot = grown(out_event, count + room), grown(out_slot, count + room)
            for word in range(words):
                left = alive[word]
                while left != U0:
                    row = np.uint64(begin) + U64 * word + np.uint64(lowest(left))
                    left &= left - U1
                    if not decided:
                        first, last = np.uint64(start[row]), np.uint64(start[row + U1])
                        bad, odd = False, False
                        for number in range(first, min(first + U4, last)):
                            head = literal[U3 * number]
                            code = cell[event, head >> OP_BITS]
                            strange = (head & 15 != 0) | (code >= SEVERAL) & (code != ABSENT)
                            odd |= strange
                            bad |= (not strange) & ((code < literal[U3 * number + U1]) | (code > literal[U3 * number + U2]))
                        if bad:
                            continue
                        for number in range(min(first + U4, last), last):
                            head = literal[U3 * number]
                            code = cell[event, head >> OP_BITS]
                            if (head & 15 != 0) | (code >= SEVERAL) & (code != ABSENT):
                                odd = True
                            elif (code < literal[U3 * number + U1]) | (code > literal[U3 * number + U2]):
                                bad = True
                                break
                        if bad or (odd and not holds_from(U3 * first, U3 * last, literal, unions, cell, many, event)):
                            continue
                    if special[row]:
                        if specials == len(special_event):
                            special_event, special_row = grown(special_event, 0), grown(special_row, 0)
                        special_event[specials] = event
                        special_row[specials] = row
                        specials += 1
                    elif shared:
                        for place_of in range(entry[row], entry[row + U1]):
                            out_event[count] = event
                            out_slot[count] = slot[place_of]
                            count += 1
                    else:
                        out_event[count] = event
                        out_slot[count] = slot[row]
                        count += 1
    return (out_event, out_slot, count), (special_event, special_row, specials)


@jit
def match(rows, paths, tiles, cells):  # type: ignore[no-untyped-def]
    """Return (events, slots) of the ordinary rows and (events, rows) of the special rows that the events satisfy."""
    found, special, visits = follow_keys(rows, paths, cells)
    if len(tiles.row) > 0:
        prepared = prepare(tiles, cells)
        everyone = np.arange(cells.cell.shape[0]).astype(np.int32)
        for i in range(len(tiles.loose)):
            begin, end = paths.tiled_start[tiles.loose[i]], paths.tiled_start[tiles.loose[i] + 1]
            found, special = match_tiles(rows, tiles, cells, begin, end, everyone, prepared, found, special)
        start, ordered = by_cluster(visits, len(paths.tiled_start) - 1)
        for cluster in range(len(paths.tiled_start) - 1):
            if start[cluster] < start[cluster + 1]:
                visitors = ordered[start[cluster] : start[cluster + 1]]
                begin, end = paths.tiled_start[cluster], paths.tiled_start[cluster + 1]
                found, special = match_tiles(rows, tiles, cells, begin, end, visitors, prepared, found, special)
    return found[0][: found[2]], found[1][: found[2]], special[0][: special[2]], special[1][: special[2]]
