"""The planner's kernels: by which one or two literals a row is found.

There are five ways to find a row, from dear to cheap; the planner takes the one of least expected cost for an event:

    ALWAYS       every event visits the row's tile
    PACKED       an event whose value lies in the hull of the tile, in one column     price in [10 .. 20]
    PACKED_PAIR  ... in two columns                                                   price in .. and year in ..
    KEYED        an event whose value is the key, in one column                       make = 'ford'
    KEYED_PAIR   ... in two columns                                                   make = 'ford' and fuel = 'gas'

One row, and what is known of its literals:

    literal           price in [10 .. 20]   make = 'ford'   not fuel = 'gas'
    use               HULL                  POINT           NO_USE              what it can serve for
    rate              0.20                  0.01            -                   share of events that it accepts
    spanned           0.20                  0.01            -                   ... that lie between its ends
    popular           40,000 rows packed    200,000 rows keyed  -               rows that may use the column so
    -> KEYED by the literal of `make`: 0.01 of the work for a row in bitmaps, and a 200,000th of a look-up
       (the cluster of `ford` has 200,000 * 0.01 = 2,000 rows; from `SCANNED_BELOW` on the planner assumes tiles)

Cost of a way: (share of events that meet the row) * (work for a row that is met) + (its share of finding out). The last
term is what makes the choice mutual: a look-up or a hull is paid for once and shared by all rows that use the same
columns. So popularity is estimated (`count_popularity`, `count_popular_pairs`), rows choose (`choose`), the choices
are counted (`count_choices`), and rows choose again (`engine.index.planner.ROUNDS`).

How selective a literal is comes from `selectivity`. Building calls each kernel once or twice for a segment. Cost:
literals, and for pairs the square of the literals of a row, of which at most `CONSIDERED` take part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tidings.kernels.jit import jit, jit_inline
from tidings.kernels.match.layout import OP_BITS, OP_MASK, RowLiterals
from tidings.kernels.match.literals import ANY, KIND_MASK, UNION

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, CodeArray, Float, Float32Array, Int, Int32Array, IntArray

NO_USE, HULL, POINT, POINTS = 0, 1, 2, 3
"""What a literal can serve for: nothing, an interval of a hull, a key of one point, keys of a few points."""

ALWAYS, PACKED, PACKED_PAIR, KEYED, KEYED_PAIR = 0, 1, 2, 3, 4
"""How rows are found: by every event, by hulls in one or two columns, by a key of one or two points."""

MOST_COPIES = 8
"""A row is filed under at most so many keys: `x in (1, 2, 3)` takes three copies of the row, two sets their product."""

COPY_NS = 0.01
"""Nanoseconds that another copy of a row is taken to cost each event: none by itself, but it takes up cache."""

HULL_NS = 4.0
"""Nanoseconds for an event to see that it need not visit a tile, packed by one column or two; `explain` counts 2.0 for
each column (`engine.explain.cost_estimate.HULL_NS`), so a way by one looks cheaper there than when it was chosen."""

CONSIDERED = 12
"""Literals of a row that are considered, the most selective first: bounds the pairs of a row to 66."""

# The six values below were chosen in the first version of the planner. No measurement of them is on record.

SCANNED_BELOW = 256
"""The planner takes a cluster of fewer rows to be scanned. The builder scans those below `IndexTuning.tiled_from`,
which is 128: a cluster of 128 to 255 rows has tiles, though ways were compared as if it were scanned."""

COMMON_RATE = 0.9
"""A literal that accepts a greater share of events does not make its column popular: it hardly finds its row."""

HULL_SLACK = 0.1
"""By how much a hull is taken to be wider than a row's own interval while it is open how many rows share the pair."""

PAIR_ROUNDS, LEAST_PAIR_ROWS = 512, 64
"""The most pairs of columns that are taken, and the fewest rows that one must serve: a pair is a group of its own."""

GOOD_SHARE = 0.6
"""A pair serves a row well if it saves this share of what the row's best pair would save."""

Costs: TypeAlias = tuple[float, float, float, float]
"""Nanoseconds: of a row scanned, of a row in bitmaps, of a look-up, of a visit to a tile."""


class LiteralEstimates(NamedTuple):
    """Of each literal: its use, the shares of events it accepts and that lie between its ends, and have its column."""

    use: ByteArray
    rate: Float32Array
    spanned: Float32Array
    presence: Float32Array


@jit
def classify_uses(literals: RowLiterals) -> ByteArray:
    """Return what each literal can serve for.

    Only `ANY` says where an event's values are. A key must be the row's only literal on its column: with two, an event
    of several values could satisfy each by another value, and the key of either would have to find the row.
    """
    start, head, low, high, union_start, union_low, union_high = literals
    result = np.zeros(len(head), np.uint8)
    for row in range(len(start) - 1):
        for at in range(start[row], start[row + 1]):
            op = head[at] & OP_MASK
            if op & KIND_MASK != ANY:
                continue
            result[at] = HULL
            alone = True
            for other in range(start[row], start[row + 1]):
                if other != at and head[other] >> OP_BITS == head[at] >> OP_BITS:
                    alone = False
            if not alone:
                continue
            if op == ANY:
                # Odd codes are end points themselves, even ones the gaps between them: a gap is not a key.
                if low[at] == high[at] and low[at] & 1:
                    result[at] = POINT
            else:  # `ANY | UNION`: one of several intervals
                first, last = union_start[low[at]], union_start[low[at] + 1]
                is_point_set = last - first <= MOST_COPIES
                for part in range(first, last):
                    if union_low[part] != union_high[part] or union_low[part] & 1 == 0:
                        is_point_set = False
                if is_point_set:
                    result[at] = POINTS
    return result


@jit_inline
def count_copies(use: ByteArray, low: CodeArray, union_start: CodeArray, at: Int) -> Int:
    """Count the keys under which a literal files its row: the points of its set."""
    return np.int64(union_start[low[at] + 1]) - np.int64(union_start[low[at]]) if use[at] == POINTS else np.int64(1)


@jit
def choose(
    literals: RowLiterals, estimates: LiteralEstimates, columns: Int, popular: Float32Array,
    popular_pairs: Float32Array, tile: Int, costs: Costs,
) -> tuple[ByteArray, Int32Array, Int32Array]:  # fmt: skip
    """Return how each row is found and by which literals (-1: none), given how popular columns and pairs are.

    `popular[2 * column]` counts the rows that may be keyed by a column, `popular[2 * column + 1]` those that may be
    packed by it; `popular_pairs` has the same for `first * columns + second`. `presence` is the share of events that
    have a literal's column at all: the others visit none of the tiles packed by it.
    """
    start, head, low, union_start = literals.start, literals.head, literals.low, literals.union_start
    use, rate, spanned, presence = estimates
    rows = len(start) - 1
    kind = np.zeros(rows, np.uint8)
    first_literal = np.full(rows, -1, np.int32)
    second_literal = np.full(rows, -1, np.int32)
    scan_ns, bits_ns, look_ns, tile_ns = costs
    best_of = np.empty(CONSIDERED, np.int64)
    pairs = len(popular_pairs) > 0
    for row in range(rows):
        # The most selective literals of the row, by insertion into a list of fixed length.
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
                # The cluster of a key has this many rows: a small one is scanned, a large one has tiles.
                size = popular[2 * column] * rate[at]
                work = scan_ns if size < SCANNED_BELOW else bits_ns + tile_ns / tile
                cost = rate[at] * work + COPY_NS * (count_copies(use, low, union_start, at) - 1)
                cost += look_ns / max(1.0, popular[2 * column])
                if cost < least:
                    least, kind[row], first_literal[row], second_literal[row] = cost, KEYED, at, -1
            # A tile's hull is wider than the row itself, by about a tile's share of all rows packed by this column:
            # the more rows choose the column, the narrower all of their tiles become.
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
                filed = count_copies(use, low, union_start, at) * count_copies(use, low, union_start, other)
                if use[at] >= POINT and use[other] >= POINT and filed <= MOST_COPIES:
                    cost = rate[at] * rate[other] * scan_ns + COPY_NS * (filed - 1)
                    cost += look_ns / max(1.0, popular_pairs[pair])
                    if cost < least:
                        least, kind[row], first_literal[row], second_literal[row] = cost, KEYED_PAIR, at, other
                # In two columns a tile is a square: its side is the root of its share.
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
def count_popularity(literals: RowLiterals, estimates: LiteralEstimates, columns: Int) -> Float32Array:
    """Count the rows that may use each column, for keys (even places) and for hulls (odd places)."""
    start, head, use, rate = literals.start, literals.head, estimates.use, estimates.rate
    popular = np.zeros(2 * columns, np.float32)
    for row in range(len(start) - 1):
        for at in range(start[row], start[row + 1]):
            if use[at] == NO_USE or rate[at] > COMMON_RATE:
                continue
            column = np.int64(head[at] >> OP_BITS)
            popular[2 * column] += use[at] >= POINT
            popular[2 * column + 1] += 1
    return popular


@jit
def count_popular_pairs(
    literals: RowLiterals, estimates: LiteralEstimates, columns: Int, rows: IntArray, scale: Float, tile: Int,
    costs: Costs,
) -> Float32Array:  # fmt: skip
    """Return how many rows each pair of columns would find if only a few pairs were used.

    Greedy set cover on the sample `rows`, each of which stands for `scale` rows: take the pair of columns with the
    greatest gain, close the rows that it serves well (`GOOD_SHARE`), and go on with the rest until a pair would serve
    too few (`LEAST_PAIR_ROWS`). The gain of a pair is what its rows save against their best single literal. Were every
    row to count for each of its pairs, as `count_popularity` does for columns, popularity would be spread over pairs
    that nobody ends up using.

    Cost: at most `PAIR_ROUNDS` rounds of two passes over the sample; phase 0 adds up gains, phase 1 closes rows.
    """
    start, head = literals.start, literals.head
    use, rate, spanned, presence = estimates
    scan_ns, bits_ns, _, tile_ns = costs
    work = bits_ns + tile_ns / tile
    popular = np.zeros(2 * columns * columns, np.float32)
    count = len(rows)
    open_rows = np.ones(count, np.uint8)
    gains = np.zeros(2 * columns * columns, np.float32)
    numbers = np.zeros(2 * columns * columns, np.int32)
    slack = np.float32(HULL_SLACK)
    for _ in range(PAIR_ROUNDS):
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
                # A row is closed if the pair gives it most of what its best pair would; others wait for theirs.
                if phase == 1 and here_gain > 0 and here_gain >= GOOD_SHARE * top:
                    open_rows[i] = 0
            if best < 0:
                break
        if best < 0 or numbers[best] * scale < LEAST_PAIR_ROWS:
            break
        popular[best] = numbers[best] * scale
    return popular


@jit
def count_choices(
    head: CodeArray, kind: ByteArray, first_literal: Int32Array, second_literal: Int32Array, columns: Int, pairs: bool
) -> tuple[Float32Array, Float32Array]:
    """Count the rows that did choose each column and pair, in the layout of `choose`."""
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
def file_rows(
    literals: RowLiterals, use: ByteArray, kind: ByteArray, first_literal: Int32Array, second_literal: Int32Array
) -> tuple[CodeArray, IntArray, IntArray]:
    """Return one entry for each key under which each row is filed: the row, and the ranks of its one or two points.

    Rows that are not keyed have one entry, whose numbers are twice the middles of its intervals: the builder sorts by
    them, so that rows with neighbouring intervals share a tile and the tile's hull is narrow (docs/decisions/0007).
    """
    _, head, low, high, union_start, union_low, _ = literals
    count = np.int64(0)
    for row in range(len(kind)):
        number = np.int64(1)
        if kind[row] >= KEYED:
            number *= count_copies(use, low, union_start, first_literal[row])
            if second_literal[row] >= 0:
                number *= count_copies(use, low, union_start, second_literal[row])
        count += number
    origin = np.empty(count, np.uint32)
    first = np.zeros(count, np.int64)
    second = np.zeros(count, np.int64)
    at = 0
    for row in range(len(kind)):
        if kind[row] < KEYED:
            origin[at] = row
            if first_literal[row] >= 0:
                first[at] = get_middle(head, low, high, union_start, union_low, first_literal[row])
            if second_literal[row] >= 0:
                second[at] = get_middle(head, low, high, union_start, union_low, second_literal[row])
            at += 1
            continue
        for i in range(count_copies(use, low, union_start, first_literal[row])):
            for j in range(count_copies(use, low, union_start, second_literal[row]) if second_literal[row] >= 0 else 1):
                origin[at] = row
                first[at] = get_point(low, use, union_start, union_low, first_literal[row], i) >> 1
                if second_literal[row] >= 0:
                    second[at] = get_point(low, use, union_start, union_low, second_literal[row], j) >> 1
                at += 1
    return origin, first, second


@jit_inline
def get_point(
    low: CodeArray, use: ByteArray, union_start: CodeArray, union_low: CodeArray, at: Int, number: Int
) -> Int:
    """Return the code of the point with this number in a literal's set."""
    return np.int64(union_low[union_start[low[at]] + number]) if use[at] == POINTS else np.int64(low[at])


@jit_inline
def get_middle(
    head: CodeArray, low: CodeArray, high: CodeArray, union_start: CodeArray, union_low: CodeArray, at: Int
) -> Int:
    """Return twice the middle of a literal's interval; for a union, twice where it begins."""
    if head[at] & UNION:
        first = union_start[low[at]]
        # A union that accepts nothing has no beginning, and the last one of all points behind the array.
        return np.int64(2) * np.int64(union_low[first]) if first < len(union_low) else np.int64(0)
    return np.int64(low[at]) + np.int64(high[at])
