"""Planning: how selective each literal is, and which one or two literals a row is found by.

A row can be found by the key of one or two points, by the hull of its tile in one or two columns, or only
by visiting it for every event. The cost of a choice depends on how many rows choose the same columns, so
the choice is made, counted, and made again.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import jit, jit_inline
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import ANY, UNION

NO_USE, HULL, POINT, POINTS = 0, 1, 2, 3
"""What a literal can serve for: nothing, an interval of a hull, a key of one point, of a few points."""

ALWAYS, PACKED, PACKED_PAIR, KEYED, KEYED_PAIR = 0, 1, 2, 3, 4
"""How rows are found: by every event, by hulls in one or two columns, by a key of one or two points."""

MOST_COPIES = 8
"""A row is filed under at most so many keys."""

COPY_NS = 0.01
"""What another copy of a row costs each event: nothing by itself, but memory that others need."""

HULL_NS = 4.0
"""What an event pays for each tile to see that it need not go there."""

CONSIDERED = 12
"""Literals of a row that are considered, the most selective first."""


@jit
def sample_ends(head, low, high, union_start, union_low, union_high, top, most):  # type: ignore[no-untyped-def]
    """Return about `most` ends that the literals of a column name, and their number; `top`: twice its end points."""
    columns = len(top)
    total = np.zeros(columns, np.int64)
    for at in range(len(head)):
        total[head[at] >> OP_BITS] += 1
    ends = np.empty((columns, 2 * most + 2), np.uint32)
    count = np.zeros(columns, np.int64)
    seen = np.zeros(columns, np.int64)
    for at in range(len(head)):
        column = np.int64(head[at] >> OP_BITS)
        seen[column] += 1
        if seen[column] % (1 + total[column] // most) != 0 or head[at] & 7 != ANY:
            continue
        first, last = np.int64(low[at]), np.int64(high[at])
        if head[at] & UNION:
            if union_start[first] == union_start[first + 1]:
                continue
            parts = np.int64(union_start[first + 1]) - np.int64(union_start[first])
            part = np.int64(union_start[first]) + seen[column] % parts  # one of them, each time another
            first, last = np.int64(union_low[part]), np.int64(union_high[part])
        if first > last:
            continue
        for end in (first, last):
            if 0 < end < top[column] and count[column] < ends.shape[1]:
                ends[column, count[column]] = end
                count[column] += 1
    return ends, count


@jit
def estimate_rates(head, low, high, union_start, union_low, union_high, sample_start, sample):  # type: ignore[no-untyped-def]
    """Return the share of sampled codes that each literal accepts, and the share that lies between its ends.

    The two differ for unions. `sample` is sorted by column.
    """
    result = np.empty(len(head), np.float32)
    spanned = np.empty(len(head), np.float32)
    for at in range(len(head)):
        column = np.int64(head[at] >> OP_BITS)
        codes = sample[sample_start[column] : sample_start[column + 1]]
        if len(codes) == 0:
            result[at] = spanned[at] = 1.0
            continue
        inside, between = 0, 0
        if head[at] & UNION:
            least, most = np.int64(1) << 40, np.int64(0)
            for part in range(union_start[low[at]], union_start[low[at] + 1]):
                inside += np.searchsorted(codes, union_high[part], "right") - np.searchsorted(codes, union_low[part])
                least, most = min(least, np.int64(union_low[part])), max(most, np.int64(union_high[part]))
            if least <= most:
                between = np.searchsorted(codes, most, "right") - np.searchsorted(codes, least)
        elif low[at] <= high[at]:
            inside = np.searchsorted(codes, high[at], "right") - np.searchsorted(codes, low[at])
            between = inside
        result[at] = min(1.0, (inside + 0.5) / (len(codes) + 1))
        spanned[at] = min(1.0, (between + 0.5) / (len(codes) + 1))
    return result, spanned


@jit
def classify_uses(start, head, low, high, union_start, union_low, union_high):  # type: ignore[no-untyped-def]
    """Return what each literal can serve for."""
    result = np.zeros(len(head), np.uint8)
    for row in range(len(start) - 1):
        for at in range(start[row], start[row + 1]):
            op = head[at] & 15
            if op & 7 != ANY:
                continue
            result[at] = HULL
            alone = True
            for other in range(start[row], start[row + 1]):
                if other != at and head[other] >> OP_BITS == head[at] >> OP_BITS:
                    alone = False
            if not alone:
                continue
            if op == ANY:
                if low[at] == high[at] and low[at] & 1:
                    result[at] = POINT
            else:
                first, last = union_start[low[at]], union_start[low[at] + 1]
                points = last - first <= MOST_COPIES
                for part in range(first, last):
                    if union_low[part] != union_high[part] or union_low[part] & 1 == 0:
                        points = False
                if points:
                    result[at] = POINTS
    return result


@jit_inline
def count_copies(use, head, low, union_start, at):  # type: ignore[no-untyped-def]
    """Count the keys under which a literal files its row."""
    return np.int64(union_start[low[at] + 1]) - np.int64(union_start[low[at]]) if use[at] == POINTS else np.int64(1)


@jit
def choose(start, head, low, union_start, use, rate, spanned, presence, columns, popular, popular_pairs, tile, costs):  # type: ignore[no-untyped-def]
    """Return how each row is found and by which literals (-1: none), given how popular columns and pairs are.

    `costs` are nanoseconds: of a row scanned, of a row in bitmaps, of a look-up, of a visit to a tile.
    `popular` counts, for keys and for hulls apart, the rows that may use a column or a pair of columns. `there` is
    the share of events that have a literal's column at all; the others visit none of the tiles packed by it.
    """
    rows = len(start) - 1
    kind = np.zeros(rows, np.uint8)
    first_literal = np.full(rows, -1, np.int32)
    second_literal = np.full(rows, -1, np.int32)
    scan_ns, bits_ns, look_ns, tile_ns = costs
    best_of = np.empty(CONSIDERED, np.int64)
    pairs = len(popular_pairs) > 0
    for row in range(rows):
        count = 0
        for at in range(start[row], start[row + 1]):
            if use[at] == NO_USE:
                continue
            place = min(count, CONSIDERED - 1)
            if count >= CONSIDERED and rate[best_of[place]] <= rate[at]:
                continue
            while place > 0 and rate[best_of[place - 1]] > rate[at]:
                best_of[place] = best_of[place - 1]
                place -= 1
            best_of[place] = at
            count = min(count + 1, CONSIDERED)
        least = bits_ns + tile_ns / tile
        for i in range(count):
            at = best_of[i]
            column = np.int64(head[at] >> OP_BITS)
            if use[at] >= POINT:
                size = popular[2 * column] * rate[at]
                work = scan_ns if size < 256 else bits_ns + tile_ns / tile
                cost = rate[at] * work + COPY_NS * (count_copies(use, head, low, union_start, at) - 1)
                cost += look_ns / max(1.0, popular[2 * column])
                if cost < least:
                    least, kind[row], first_literal[row], second_literal[row] = cost, KEYED, at, -1
            slack = min(1.0, tile / max(1.0, popular[2 * column + 1]))
            full = min(tile, max(1.0, popular[2 * column + 1]))
            cost = presence[at] * min(1.0, spanned[at] + slack) * (bits_ns + tile_ns / full) + HULL_NS / full
            if cost < least:
                least, kind[row], first_literal[row], second_literal[row] = cost, PACKED, at, -1
            for j in range(i + 1, count if pairs else 0):
                other = best_of[j]
                second = np.int64(head[other] >> OP_BITS)
                if second == column:
                    continue
                pair = 2 * (min(column, second) * columns + max(column, second))
                filed = count_copies(use, head, low, union_start, at) * count_copies(use, head, low, union_start, other)
                if use[at] >= POINT and use[other] >= POINT and filed <= MOST_COPIES:
                    cost = rate[at] * rate[other] * scan_ns + COPY_NS * (filed - 1)
                    cost += look_ns / max(1.0, popular_pairs[pair])
                    if cost < least:
                        least, kind[row], first_literal[row], second_literal[row] = cost, KEYED_PAIR, at, other
                slack = min(1.0, np.sqrt(tile / max(1.0, popular_pairs[pair + 1])))
                cost = presence[at] * presence[other] * min(1.0, spanned[at] + slack) * min(1.0, spanned[other] + slack)
                full = min(tile, max(1.0, popular_pairs[pair + 1]))
                cost = cost * (bits_ns + tile_ns / full) + HULL_NS / full
                if cost < least:
                    least, kind[row], first_literal[row], second_literal[row] = cost, PACKED_PAIR, at, other
        if second_literal[row] >= 0 and head[first_literal[row]] >> OP_BITS > head[second_literal[row]] >> OP_BITS:
            first_literal[row], second_literal[row] = second_literal[row], first_literal[row]
    return kind, first_literal, second_literal


@jit
def count_popularity(start, head, use, rate, columns):  # type: ignore[no-untyped-def]
    """Count the rows that may use each column, for keys (even places) and for hulls (odd places)."""
    popular = np.zeros(2 * columns, np.float32)
    for row in range(len(start) - 1):
        for at in range(start[row], start[row + 1]):
            if use[at] == NO_USE or rate[at] > 0.9:
                continue
            column = np.int64(head[at] >> OP_BITS)
            popular[2 * column] += use[at] >= POINT
            popular[2 * column + 1] += 1
    return popular


@jit
def count_popular_pairs(start, head, use, rate, spanned, presence, columns, rows, scale, tile, costs):  # type: ignore[no-untyped-def]
    """Return how many rows each pair of columns would find if few pairs are used: one pair at a time, the most gained.

    Works on the sample `rows`; `scale` rows stand behind each. The gain of a pair is what its rows save against
    being found by their best single literal.
    """
    scan_ns, bits_ns, _, tile_ns = costs
    work = bits_ns + tile_ns / tile
    popular = np.zeros(2 * columns * columns, np.float32)
    count = len(rows)
    open_rows = np.ones(count, np.uint8)
    gains = np.zeros(2 * columns * columns, np.float32)
    numbers = np.zeros(2 * columns * columns, np.int32)
    slack = np.float32(0.1)
    for _ in range(512):
        gains[:] = 0
        numbers[:] = 0
        best, most = np.int64(-1), np.float32(0)
        for phase in range(2):
            for i in range(count):
                if not open_rows[i]:
                    continue
                row = rows[i]
                first = np.int64(start[row])
                last = min(np.int64(start[row + 1]), first + CONSIDERED)
                single = work
                top = np.float32(0)
                for at in range(first, last):
                    if use[at] == NO_USE:
                        continue
                    if use[at] >= POINT:
                        single = min(single, rate[at] * scan_ns)
                    single = min(single, presence[at] * (spanned[at] + slack) * work)
                here_gain = np.float32(0)
                for at in range(first, last):
                    if use[at] == NO_USE:
                        continue
                    for other in range(at + 1, last):
                        if use[other] == NO_USE:
                            continue
                        first_column, second_column = np.int64(head[at] >> OP_BITS), np.int64(head[other] >> OP_BITS)
                        if first_column == second_column:
                            continue
                        place = 2 * (min(first_column, second_column) * columns + max(first_column, second_column))
                        keyed = use[at] >= POINT and use[other] >= POINT
                        cost = presence[at] * min(1.0, spanned[at] + slack) * work
                        cost *= presence[other] * min(1.0, spanned[other] + slack)
                        if keyed:
                            cost = min(cost, rate[at] * rate[other] * scan_ns)
                        else:
                            place += 1
                        gain = np.float32(single - cost)
                        if gain <= 0:
                            continue
                        if phase == 0:
                            gains[place] += gain
                            numbers[place] += 1
                            if gains[place] > most:
                                best, most = place, gains[place]
                        else:
                            top = max(top, gain)
                            if place == best:
                                here_gain = gain
                if phase == 1 and here_gain > 0 and here_gain >= 0.6 * top:
                    open_rows[i] = 0
            if best < 0:
                break
        if best < 0 or numbers[best] * scale < 64:
            break
        popular[best] = numbers[best] * scale
    return popular


@jit
def count_choices(head, kind, first_literal, second_literal, columns, pairs):  # type: ignore[no-untyped-def]
    """Count the rows that did choose each column and pair."""
    popular = np.zeros(2 * columns, np.float32)
    popular_pairs = np.zeros(2 * columns * columns if pairs else 0, np.float32)
    for row in range(len(kind)):
        if kind[row] == ALWAYS:
            continue
        hull = 1 if kind[row] <= PACKED_PAIR else 0
        column = np.int64(head[first_literal[row]] >> OP_BITS)
        if second_literal[row] < 0:
            popular[2 * column + hull] += 1
        else:
            second = np.int64(head[second_literal[row]] >> OP_BITS)
            popular_pairs[2 * (column * columns + second) + hull] += 1
    return popular, popular_pairs


@jit
def file_rows(kind, first_literal, second_literal, low, high, head, use, union_start, union_low):  # type: ignore[no-untyped-def]
    """Return one entry for each key under which each row is filed: the row, and the ranks of its points.

    Rows that are not keyed have one entry, whose numbers are twice the middles of its two intervals.
    """
    count = np.int64(0)
    for row in range(len(kind)):
        number = np.int64(1)
        if kind[row] >= KEYED:
            number *= count_copies(use, head, low, union_start, first_literal[row])
            if second_literal[row] >= 0:
                number *= count_copies(use, head, low, union_start, second_literal[row])
        count += number
    owner = np.empty(count, np.uint32)
    first = np.zeros(count, np.int64)
    second = np.zeros(count, np.int64)
    at = 0
    for row in range(len(kind)):
        if kind[row] < KEYED:
            owner[at] = row
            if first_literal[row] >= 0:
                first[at] = get_middle(head, low, high, union_start, union_low, first_literal[row])
            if second_literal[row] >= 0:
                second[at] = get_middle(head, low, high, union_start, union_low, second_literal[row])
            at += 1
            continue
        for i in range(count_copies(use, head, low, union_start, first_literal[row])):
            for j in range(count_copies(use, head, low, union_start, second_literal[row]) if second_literal[row] >= 0 else 1):
                owner[at] = row
                first[at] = get_point(head, low, use, union_start, union_low, first_literal[row], i) >> 1
                if second_literal[row] >= 0:
                    second[at] = get_point(head, low, use, union_start, union_low, second_literal[row], j) >> 1
                at += 1
    return owner, first, second


@jit_inline
def get_point(head, low, use, union_start, union_low, at, number):  # type: ignore[no-untyped-def]
    """Return the code of a literal's point of this number."""
    return np.int64(union_low[union_start[low[at]] + number]) if use[at] == POINTS else np.int64(low[at])


@jit_inline
def get_middle(head, low, high, union_start, union_low, at):  # type: ignore[no-untyped-def]
    """Return twice the middle of a literal's interval; of a union, of where it begins."""
    if head[at] & UNION:
        return np.int64(2) * np.int64(union_low[union_start[low[at]]])
    return np.int64(low[at]) + np.int64(high[at])
