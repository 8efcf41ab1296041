"""Matching a batch of events: keys to clusters, bitmaps over tiles, the exact check of what survives.

For each event the keyed groups of its columns give clusters. Small clusters are checked row by row at
once; visits to large ones are put in order of cluster, so that a tile stays in cache while all its events
pass. In a tile the columns are taken in the order of their match rate for this event, the first few without
a branch, the rest only while a bit is alive. Ordinary rows come out as (event, slot); special ones as
(event, row), for the second phase.

The loops are long functions on purpose: handing thirty arrays to a function counts references for each of them,
which costs more than its work, and unsigned places spare the test for negative ones, which would keep the loops
over words from being vectorised.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.bits import lowest
from tidings.kernels.jit import inlined, jit
from tidings.kernels.layout import OP_BITS
from tidings.kernels.literals import ABSENT, NOT_ANY, SEVERAL, UNION, accepts

FIRST = 4
"""Columns whose bitmaps are taken together before asking whether anything lives."""

NOWHERE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""The place of bitmaps that are not there: no row of the tile constrains the column."""

POSITIVE = 0b100011
"""The ops, as bits, that ask a single value to lie inside: `ANY`, `ALL`, `NOT_NONE`."""

WAITING, TOUCHED = 4096, 64
"""Rows that wait for their check, and how many of them are touched together."""

SORTED_UP_TO = 64
"""With more dense columns than this, putting them in order costs more than it saves."""

U0, U1, U2, U3, U4, U5, U6, U7, U8, U9, U10, U11, U64 = (np.uint64(number) for number in (*range(12), 64))


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
        code = cell[event, head >> OP_BITS]
        op = np.int64(head & 7)
        if head & UNION or (code >= SEVERAL and code != ABSENT):
            if not accepts(
                code, head & 15, literal[at + U1], literal[at + U2],
                many[0], many[1], many[2], unions[0], unions[1], unions[2],
            ):  # fmt: skip
                return False
        elif code == ABSENT:
            if op < NOT_ANY:
                return False
        elif (code >= literal[at + U1] and code <= literal[at + U2]) != ((POSITIVE >> op) & 1 == 1):
            return False
        at += U3
    return True


@jit
def with_special(special, event, row):  # type: ignore[no-untyped-def]
    """Append a special row."""
    events, rows, count = special
    if count == len(events):
        events, rows = grown(events, 0), grown(rows, 0)
    events[count] = event
    rows[count] = row
    return events, rows, count + 1


@jit
def emitted(rows, sure_event, sure_row, sure, found, special):  # type: ignore[no-untyped-def]
    """Append rows that hold for certain."""
    entry, slot, special_row = rows.entry, rows.slot, rows.special
    out_event, out_slot, count = found
    shared = len(entry) > 0
    total = sure
    if shared:
        total = np.int64(0)
        for i in range(sure):
            total += np.int64(entry[np.uint64(sure_row[i]) + U1]) - np.int64(entry[sure_row[i]])
    if count + total > len(out_event):
        out_event, out_slot = grown(out_event, count + total), grown(out_slot, count + total)
    specials = 0
    for i in range(sure):
        row = np.uint64(sure_row[i])
        if special_row[row]:
            sure_event[specials], sure_row[specials] = sure_event[i], sure_row[i]
            specials += 1
        elif shared:
            for place in range(entry[row], entry[row + U1]):
                out_event[count] = sure_event[i]
                out_slot[count] = slot[place]
                count += 1
        else:
            out_event[count] = sure_event[i]
            out_slot[count] = slot[row]
            count += 1
    for i in range(specials):
        special = with_special(special, sure_event[i], sure_row[i])
    return (out_event, out_slot, count), special


@jit
def sifted(rows, cells, wait_event, wait_row, waiting):  # type: ignore[no-untyped-def]
    """Check rows that wait with their events; those that hold move to the front. Returns their number.

    What a row needs is seldom in cache, so a few dozen are touched before the first is checked: their lines come in
    together. Literals are taken four at a time without a branch, since which of them fails cannot be foreseen;
    other ops, unions and several values go through `holds_from`.
    """
    start, literal = rows.start, rows.literal
    unions = (rows.union_start, rows.union_low, rows.union_high)
    cell, plain, many = cells.cell, cells.plain, (cells.many_start, cells.many_low, cells.many_high)
    flat, stride = cell.ravel(), np.uint64(cell.shape[1])
    touched, good = U0, 0
    for chunk in range(0, waiting, TOUCHED):
        end = min(waiting, chunk + TOUCHED)
        for i in range(chunk, end):
            touched ^= np.uint64(start[wait_row[i]])
        for i in range(chunk, end):
            row = np.uint64(wait_row[i])
            if start[row] < start[row + U1]:
                touched ^= np.uint64(literal[U3 * np.uint64(start[row])])
                touched ^= np.uint64(literal[U3 * np.uint64(start[row + U1]) - U1])
        for i in range(chunk, end):
            row = np.uint64(wait_row[i])
            of_event = stride * np.uint64(wait_event[i])
            first, last = np.uint64(start[row]), np.uint64(start[row + U1])
            bad, odd = False, plain[wait_event[i]] == 0
            while first + U4 <= last and not (bad | odd):
                at = U3 * first
                one, two, three, four = literal[at], literal[at + U3], literal[at + U6], literal[at + U9]
                code = flat[of_event + np.uint64(one >> OP_BITS)]
                bad = (code < literal[at + U1]) | (code > literal[at + U2])
                code = flat[of_event + np.uint64(two >> OP_BITS)]
                bad |= (code < literal[at + U4]) | (code > literal[at + U5])
                code = flat[of_event + np.uint64(three >> OP_BITS)]
                bad |= (code < literal[at + U7]) | (code > literal[at + U8])
                code = flat[of_event + np.uint64(four >> OP_BITS)]
                bad |= (code < literal[at + U10]) | (code > literal[at + U11])
                odd = (one | two | three | four) & 15 != 0
                first += U4
            while first < last and not (bad | odd):
                at = U3 * first
                code = flat[of_event + np.uint64(literal[at] >> OP_BITS)]
                bad = (code < literal[at + U1]) | (code > literal[at + U2])
                odd = literal[at] & 15 != 0
                first += U1
            if odd:
                bad = not holds_from(U3 * np.uint64(start[row]), U3 * last, literal, unions, cell, many, wait_event[i])
            if bad:
                continue
            wait_event[good], wait_row[good] = wait_event[i], wait_row[i]
            good += 1
    if touched == ~U0 and waiting < 0:  # never: only keeps the loops that touch from being dropped
        good = 0
    return good


@jit
def checked(rows, cells, wait_event, wait_row, waiting, found, special):  # type: ignore[no-untyped-def]
    """Check rows that wait with their events, and append those that hold."""
    good = sifted(rows, cells, wait_event, wait_row, waiting)
    return emitted(rows, wait_event, wait_row, good, found, special)


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
            rank_end, rank2_end = (np.int64(high) + 1) >> 1, (np.int64(high2) + 1) >> 1
            pairs = (rank_end - (np.int64(low) >> 1)) * (rank2_end - (np.int64(low2) >> 1))
            if paths.mask[group] != 0 and pairs > paths.mask[group]:  # fewer keys than pairs: go through the keys
                for at in range(paths.base[group], paths.base[group] + paths.mask[group] + 1):
                    rank, rank2 = np.int64(paths.hash_first[at]), np.int64(paths.hash_second[at])
                    inside = rank >= low >> 1 and rank < rank_end and rank2 >= low2 >> 1 and rank2 < rank2_end
                    if paths.hash_cluster[at] == 0 or not inside:
                        continue
                    if count == len(found):
                        found = grown(found, 0)
                    found[count] = np.int64(paths.hash_cluster[at]) - 1
                    count += 1
                continue
            for rank in range(np.int64(low) >> 1, rank_end):
                for rank2 in range(np.int64(low2) >> 1, rank2_end):
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
def hits_of_plain(paths, cell, event, hit_of):  # type: ignore[no-untyped-def]
    """Write the clusters that a plain event's values are keys of; return their number."""
    by_column, by_column_start, second_of = paths.by_column, paths.by_column_start, paths.second
    base, width, mask, direct = paths.base, paths.width, paths.mask, paths.direct
    hash_first, hash_second, hash_cluster = paths.hash_first, paths.hash_second, paths.hash_cluster
    hits = 0
    for column in range(cell.shape[1]):
        one = cell[event, column]
        if one == ABSENT or one & np.uint32(1) == 0:
            continue
        for at in range(by_column_start[column], by_column_start[column + 1]):
            group = by_column[at]
            second = second_of[group]
            two = np.uint32(1) if second < 0 else cell[event, second]
            if two == ABSENT or two & np.uint32(1) == 0:
                continue
            first_rank, second_rank = np.int64(one) >> 1, np.int64(two) >> 1
            if mask[group] == 0:
                cluster = np.int64(direct[base[group] + first_rank * width[group] + second_rank]) - 1
            else:
                cluster = cluster_of(
                    first_rank, second_rank, group, base, width, mask, direct, hash_first, hash_second, hash_cluster
                )
            if cluster >= 0:
                hit_of[hits] = cluster
                hits += 1
    return hits


@jit
def hits_of_several(paths, cell, many, event):  # type: ignore[no-untyped-def]
    """Return the clusters that an event's values are keys of, when some of its columns have several."""
    found = np.empty(64, np.uint64)
    hits = 0
    for column in range(cell.shape[1]):
        if cell[event, column] == ABSENT:
            continue
        for at in range(paths.by_column_start[column], paths.by_column_start[column + 1]):
            group = paths.by_column[at]
            if paths.second[group] >= 0 and cell[event, paths.second[group]] == ABSENT:
                continue
            clusters = keys_of_several(cell, many, paths, event, group)
            while hits + len(clusters) > len(found):
                found = grown(found, 0)
            for i in range(len(clusters)):
                found[hits] = clusters[i]
                hits += 1
    return found[:hits]


@jit
def follow_keys(rows, paths, cells):  # type: ignore[no-untyped-def]
    """Go from the values of every event to the clusters keyed by them; check the small, list the large.

    Returns found (events, slots), special (events, rows) and visits (tiled clusters, events).
    """
    cell, many = cells.cell, (cells.many_start, cells.many_low, cells.many_high)
    cluster_start, cluster_tiled = paths.cluster_start, paths.cluster_tiled
    number = cell.shape[0]
    found = (np.empty(16 * number + 64, np.int64), np.empty(16 * number + 64, np.uint32), 0)
    special = (np.empty(64, np.int64), np.empty(64, np.uint32), 0)
    visit_cluster, visit_event, visits = np.empty(64, np.int32), np.empty(64, np.int32), 0
    wait_event, wait_row, waiting = np.empty(WAITING, np.uint32), np.empty(WAITING, np.uint32), 0
    own_hits = np.empty(len(paths.second) + 1, np.uint64)
    for event in range(number):
        # Arrays change hands here, once for an event, and not in the loops below: each time is counted.
        hit_of = own_hits
        if cells.plain[event]:
            hits = hits_of_plain(paths, cell, event, own_hits)
        else:
            hit_of = hits_of_several(paths, cell, many, event)
            hits = len(hit_of)
        total = 0
        for hit in range(hits):
            if cluster_tiled[hit_of[hit]] < 0:
                total += np.int64(cluster_start[hit_of[hit] + U1]) - np.int64(cluster_start[hit_of[hit]])
        if waiting + total > len(wait_row):
            found, special = checked(rows, cells, wait_event, wait_row, waiting, found, special)
            waiting = 0
            if total > len(wait_row):
                wait_event, wait_row = grown(wait_event, total), grown(wait_row, total)
        if visits + hits > len(visit_cluster):
            visit_cluster, visit_event = grown(visit_cluster, visits + hits), grown(visit_event, visits + hits)
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
    found, special = checked(rows, cells, wait_event, wait_row, waiting, found, special)
    return found, special, (visit_cluster, visit_event, visits)


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
    """Return for each event the dense columns by match rate, its bucket in each of these, and its bucket in all."""
    edge_start, edges, dense_column = tiles.edge_start, tiles.edges, tiles.dense
    count, width = cells.cell.shape[0], len(dense_column)
    order = np.empty(count * width, np.uint32)
    buckets = np.empty(count * width, np.uint32)
    by_dense = np.empty(count * width, np.uint32)
    rate = np.empty(width, np.float32)
    for event in range(count):
        first = event * width
        known = by_dense[first : first + width]
        for dense in range(width):
            cell = cells.cell[event, dense_column[dense]]
            if cell == ABSENT:
                known[dense] = edge_start[dense + 1] - edge_start[dense] + 1
            elif cell < SEVERAL:
                known[dense] = bucket(edges, edge_start[dense], edge_start[dense + 1], cell)
            else:
                known[dense] = SEVERAL
            rate[dense] = 1.0 if known[dense] == SEVERAL else tiles.rates[tiles.rate_start[dense] + known[dense]]
            at = first + dense
            while at > first and width <= SORTED_UP_TO and rate[order[at - 1]] > rate[dense]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = dense
        for at in range(first, first + width):
            buckets[at] = known[order[at]]
    return order, buckets, by_dense


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
def survivors(tiles, cells, last_tile, visitors, prepared, cursor, wait_event, wait_row, sure_event, sure_row):  # type: ignore[no-untyped-def]
    """Pass events through the bitmaps of tiles, from `cursor` on, until all are through or the room is used up.

    Writes pairs of event and row: those that wait for their check, and those that the bitmaps are sure of.
    Returns the next tile, the next visitor, and how many pairs there are of each.
    """
    cell, plain, many = cells.cell, cells.plain, (cells.many_start, cells.many_low, cells.many_high)
    bits, places_of = tiles.words, tiles.place
    hull_column, hull_low, hull_high = tiles.hull_column, tiles.hull_low, tiles.hull_high
    tile_begin, tile_end, rest, rest_start, doubted = tiles.row, tiles.end, tiles.rest, tiles.rest_start, tiles.doubted
    edges, edge_start, dense_column = tiles.edges, tiles.edge_start, tiles.dense
    order, buckets, by_dense = prepared
    width = np.uint64(len(tiles.dense))
    places = np.empty(FIRST, np.uint64)
    alive, doubt = np.empty(len(wait_row) >> 6, np.uint64), np.empty(len(wait_row) >> 6, np.uint64)
    first_tile, first_visitor = cursor
    waiting = sure = 0
    for tile in range(first_tile, last_tile):
        begin, end = np.int64(tile_begin[tile]), np.int64(tile_end[tile])
        words = np.uint64((end - begin + 63) >> 6)
        tail = ~U0 if (end - begin) & 63 == 0 else (U1 << np.uint64((end - begin) & 63)) - U1
        column, column2 = hull_column[2 * tile], hull_column[2 * tile + 1]
        low1, high1, low2, high2 = (
            hull_low[2 * tile], hull_high[2 * tile], hull_low[2 * tile + 1], hull_high[2 * tile + 1],
        )  # fmt: skip
        for visitor in range(first_visitor, len(visitors)):
            if max(waiting, sure) + (end - begin) > len(wait_row):
                return tile, visitor, waiting, sure
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
            at, last_column = width * np.uint64(event), width * np.uint64(event) + width
            of_tile = width * np.uint64(tile)
            fresh, left = True, U1
            while left != U0:
                known = 0
                while known < FIRST and at < last_column:
                    place = places_of[of_tile + np.uint64(order[at])]
                    if place != NOWHERE and buckets[at] != SEVERAL:
                        places[known] = place + np.uint64(buckets[at]) * words
                        known += 1
                    at += U1
                if known == 0:
                    break
                for i in range(known, FIRST):  # the same once more changes nothing, and the loop below stays one
                    places[i] = places[0]
                a, b, c, d = places[0], places[1], places[2], places[3]
                left = U0
                if fresh:
                    fresh = False
                    for word in range(words):
                        one_word = bits[a + word] & bits[b + word] & bits[c + word] & bits[d + word]
                        alive[word] = one_word
                        left |= one_word
                else:
                    for word in range(words):
                        one_word = alive[word] & bits[a + word] & bits[b + word] & bits[c + word] & bits[d + word]
                        alive[word] = one_word
                        left |= one_word
            if left == U0:
                continue
            if fresh:
                for word in range(words):
                    alive[word] = ~U0
            if not plain[event]:
                for i in range(width * np.uint64(event), last_column):
                    place = places_of[of_tile + np.uint64(order[i])]
                    if buckets[i] == SEVERAL and place != NOWHERE:
                        dense = order[i]
                        several_bits(
                            edges, edge_start[dense], edge_start[dense + 1], bits,
                            cell[event, dense_column[dense]], many, np.int64(place), np.int64(words), alive,
                        )  # fmt: skip
            alive[words - U1] &= tail
            if plain[event] == 0:
                for word in range(words):
                    doubt[word] = ~U0
            else:
                for word in range(words):
                    doubt[word] = rest[np.uint64(rest_start[tile]) + word]
                for i in range(len(doubted)):
                    dense = np.uint64(doubted[i])
                    place = places_of[of_tile + dense]
                    number = np.uint64(by_dense[width * np.uint64(event) + dense])
                    count = np.uint64(edge_start[dense + U1] - edge_start[dense]) + U2
                    if place != NOWHERE and number < count - U1:
                        first_word = place + (count + number) * words
                        for word in range(words):
                            doubt[word] |= bits[first_word + word]
            for word in range(words):
                left = alive[word] & doubt[word]
                while left != U0:
                    wait_event[waiting] = event
                    wait_row[waiting] = np.uint64(begin) + U64 * word + np.uint64(lowest(left))
                    waiting += 1
                    left &= left - U1
                left = alive[word] & ~doubt[word]
                while left != U0:
                    sure_event[sure] = event
                    sure_row[sure] = np.uint64(begin) + U64 * word + np.uint64(lowest(left))
                    sure += 1
                    left &= left - U1
        first_visitor = 0
    return last_tile, 0, waiting, sure


@jit
def match_tiles(rows, tiles, cells, first_tile, last_tile, visitors, prepared, room, found, special):  # type: ignore[no-untyped-def]
    """Match the events `visitors` with some tiles; return found and special with what was added."""
    wait_event, wait_row, sure_event, sure_row = room
    tile, visitor = np.int64(first_tile), np.int64(0)
    while tile < last_tile:
        tile, visitor, waiting, sure = survivors(
            tiles,
            cells,
            np.int64(last_tile),
            visitors,
            prepared,
            (tile, visitor),
            wait_event,
            wait_row,
            sure_event,
            sure_row,
        )
        found, special = checked(rows, cells, wait_event, wait_row, waiting, found, special)
        found, special = emitted(rows, sure_event, sure_row, sure, found, special)
    return found, special


@jit
def match(rows, paths, tiles, cells):  # type: ignore[no-untyped-def]
    """Return (events, slots) of the ordinary rows and (events, rows) of the special rows that the events satisfy."""
    found, special, visits = follow_keys(rows, paths, cells)
    if len(tiles.row) > 0:
        prepared = prepare(tiles, cells)
        everyone = np.arange(cells.cell.shape[0]).astype(np.int32)
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
            found, special = match_tiles(rows, tiles, cells, begin, end, everyone, prepared, room, found, special)
        start, ordered = by_cluster(visits, len(paths.tiled_start) - 1)
        for cluster in range(len(paths.tiled_start) - 1):
            if start[cluster] < start[cluster + 1]:
                visitors = ordered[start[cluster] : start[cluster + 1]]
                begin, end = paths.tiled_start[cluster], paths.tiled_start[cluster + 1]
                found, special = match_tiles(rows, tiles, cells, begin, end, visitors, prepared, room, found, special)
    return found[0][: found[2]], found[1][: found[2]], special[0][: special[2]], special[1][: special[2]]
