"""Boolean trees decided for a block of 512 events at once, one bit an event.

Filters whose normal form is large stay trees, and a block costs no more branches than one event (docs/decisions/0008).
`truths` is a flat table of *truth rows* of 512 bits: one for each distinct leaf, then one for each shared sub-tree.
"Row" means a truth row in this module, in `tree_code` and in `vector_words`, not a conjunction.

                        event   0 1 2 3 ... 511
    truths   leaf 0             1 0 1 1 ...          decided once for a block, however many trees have it
             leaf 1             0 0 1 0 ...
             shared 0           0 0 1 0 ...          e.g. leaf 0 and leaf 1; written by its program
    program of a tree           AND leaf 0, AND not leaf 1, ...   ->   its row of 512 answers

Leaves are decided column by column: the codes of a block are sorted once, and `upto` row `i` has the events of the `i`
least codes. The events in an interval are then the XOR of two rows of `upto`, whatever their number.

Trees run as the straight code of `tree_code`. An `and` that no event survives ends at once: of 100,000 trees whose root
is an `and`, three in five did. The rows of trees with a bit set are transposed, 64 by 64 bits, into slots by event.
Best of eight on a busy core: 7 us an event for 100,000 leaves, 90 us for a million trees, 70 us for writing the 34,000
slots that match.

`run_for_event` decides a few trees for one event, where a key has found them; it costs two to three times as much for a
tree as the block does, and nothing for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.bits import count_bits, find_lowest_bit
from tidings.kernels.growth import ensure_room
from tidings.kernels.jit import jit, jit_inline
from tidings.kernels.match.literals import ABSENT, KIND_MASK, NONE, NOT_ALL, NOT_ANY, SEVERAL, UNION, accepts
from tidings.kernels.match.tree_code import FLIP, POP, PUSH, ROW, STOP, TURN
from tidings.kernels.match.vector_words import (
    EVENTS,
    WORDS,
    flip,
    has_bits,
    intersect,
    load,
    make_ones,
    mask_words,
    prefetch,
    shift_left,
    shift_right,
    store,
    unite,
    xor,
)

if TYPE_CHECKING:
    from tidings.kernels.array_types import BoolArray, CodeArray, Int, IntArray, WordArray
    from tidings.kernels.match.layout import EventCells, ForestCode, LeafArrays

_KIND, _FLIP, _TURN, _STOP = np.uint64(3), np.uint64(FLIP), np.uint64(TURN), np.uint64(STOP)
_TO_FLIP, _TO_TURN, _TO_ROW = np.uint64(2), np.uint64(3), np.uint64(ROW)
_PUSH, _POP, _ZERO, _ONE = np.uint64(PUSH), np.uint64(POP), np.uint64(0), np.uint64(1)
_AHEAD = 48  # instructions; asking for rows that early saved a fifth to a quarter of the time


@jit_inline
def _mark(row: WordArray, event: Int) -> None:
    """Set an event's bit in a row that is an array of its own."""
    row[event >> 6] |= _ONE << np.uint64(event & 63)


@jit
def _count_below(codes: IntArray, count: Int, ranks: IntArray, code: Int) -> Int:
    """Count the sorted codes that are less than `code`: looked up in `ranks` if that is built, else searched for."""
    if len(ranks) > 0:
        return ranks[min(code, len(ranks) - 1)]
    base, left = 0, count
    while left > 1:
        half = left >> 1
        base += half if codes[base + half - 1] < code else 0
        left -= half
    return np.int64(base + (1 if left == 1 and codes[base] < code else 0))


@jit
def _build_ranks(codes: IntArray, count: Int, leaves: Int, room: IntArray) -> IntArray:
    """Return how many codes are less than 0, 1, 2 ... up to one more than the greatest.

    Searching took twice as long. An empty array if the table would be much longer than the leaves it serves.
    """
    length = codes[count - 1] + 2 if count else 1
    if length > min(len(room), 64 + 8 * leaves):
        return room[:0]
    at = 0
    for code in range(length):
        while at < count and codes[at] < code:
            at += 1
        room[code] = at
    return room[:length]


@jit
def decide_leaves(cells: EventCells, leaves: LeafArrays, column_starts: IntArray, truths: WordArray) -> None:
    """Write the rows of all leaves for a block of at most 512 events.

    `cells[event, column]` and the literals are as `literals` says; the leaves of column `c` are those from
    `column_starts[c]` up to `column_starts[c + 1]`. Bits of events that are not there are 0.
    """
    cell, many_start, many_low, many_high = cells.cell, cells.many_start, cells.many_low, cells.many_high
    _, leaf_op, leaf_low, leaf_high, union_start, union_low, union_high = leaves
    n_events, n_columns = cell.shape
    absent, single = np.empty(WORDS, np.uint64), np.empty(WORDS, np.uint64)
    keys, codes = np.empty(EVENTS, np.int64), np.empty(EVENTS, np.int64)
    several, room = np.empty(EVENTS, np.int64), np.empty(16 * EVENTS, np.int64)
    upto = np.zeros((EVENTS + 1) * WORDS, np.uint64)  # row i: the events of the i least codes
    for column in range(n_columns):
        if column_starts[column] == column_starts[column + 1]:
            continue
        absent[:] = 0
        single[:] = 0
        count, n_several = 0, 0
        for event in range(n_events):
            code = cell[event, column]
            if code == ABSENT:
                _mark(absent, event)
            elif code < SEVERAL:
                _mark(single, event)
                keys[count] = np.int64(code) << 16 | event
                count += 1
            else:
                several[n_several] = event
                n_several += 1
        # Code and event in one number: one sort, and no argsort that would allocate.
        keys[:count].sort()
        for i in range(count):
            codes[i] = keys[i] >> 16
            store(upto, np.uint64(i + 1), load(upto, np.uint64(i)))
            _mark(upto[(i + 1) * WORDS : (i + 2) * WORDS], keys[i] & 0xFFFF)
        ranks = _build_ranks(codes, count, column_starts[column + 1] - column_starts[column], room)
        absent_row, single_row = load(absent, _ZERO), load(single, _ZERO)
        for leaf in range(column_starts[column], column_starts[column + 1]):
            op = leaf_op[leaf]
            kind = op & KIND_MASK
            if op < UNION:
                low = _count_below(codes, count, ranks, np.int64(leaf_low[leaf]))
                high = max(low, _count_below(codes, count, ranks, np.int64(leaf_high[leaf]) + 1))
                inside = xor(load(upto, np.uint64(low)), load(upto, np.uint64(high)))
            else:
                inside = flip(make_ones(), _ONE)
                place = leaf_low[leaf]
                for at in range(union_start[place], union_start[place + 1]):
                    low = _count_below(codes, count, ranks, np.int64(union_low[at]))
                    high = max(low, _count_below(codes, count, ranks, np.int64(union_high[at]) + 1))
                    inside = unite(inside, xor(load(upto, np.uint64(low)), load(upto, np.uint64(high))))
            # Of one value `any`, `all` and their like ask the same: inside or not. An absent one satisfies negations.
            outside = _ONE if kind in (NONE, NOT_ANY, NOT_ALL) else _ZERO
            strict = _ZERO if kind >= NOT_ANY else _ONE
            row = intersect(flip(inside, outside), single_row)
            store(truths, np.uint64(leaf), unite(row, intersect(absent_row, flip(make_ones(), strict))))
            for i in range(n_several):
                event = several[i]
                if accepts(
                    cell[event, column], op, leaf_low[leaf], leaf_high[leaf],
                    many_start, many_low, many_high, union_start, union_low, union_high,
                ):  # fmt: skip
                    _mark(truths[leaf * WORDS : leaf * WORDS + WORDS], event)


@jit
def run_block(
    forest: ForestCode, slots: CodeArray, truths: WordArray, n_leaves: Int, n_events: Int, rows: WordArray,
    row_slots: CodeArray,
) -> Int:  # fmt: skip
    """Decide every tree for a block; keep the rows that have a bit, and their slots; return how many.

    The programs of shared sub-trees come first and write their rows of `truths`. `rows` and `row_slots` must have room
    for every tree.
    """
    code, starts, negated = forest
    n_shared = len(starts) - 1 - len(slots)
    kept = np.empty(64 * WORDS, np.uint64)
    present = np.zeros(WORDS, np.uint64)
    for event in range(n_events):
        _mark(present, event)
    present_row = load(present, _ZERO)
    count = _ZERO
    for program in range(len(starts) - 1):
        tree = program - n_shared
        # A stack machine over rows of 512 bits: `acc` is a vector register, `kept` the stack.
        acc, top = make_ones(), _ZERO
        for at in range(starts[program], starts[program + 1]):
            instruction = np.uint64(code[at])
            if at + _AHEAD < len(code):
                prefetch(truths, np.uint64(code[at + _AHEAD]) >> _TO_ROW)
            kind = instruction & _KIND
            acc = flip(acc, (instruction >> _TO_TURN) & _ONE)
            if kind == _POP:
                top -= _ONE
                acc = intersect(acc, load(kept, top))
            else:
                row = flip(load(truths, instruction >> _TO_ROW), (instruction >> _TO_FLIP) & _ONE)
                if kind == _PUSH:
                    store(kept, top, acc)
                    top += _ONE
                    acc = row
                else:
                    acc = intersect(acc, row)
            if instruction & _STOP and not has_bits(acc):
                break
        if tree < 0:
            store(truths, np.uint64(n_leaves + program), acc)
            continue
        acc = intersect(flip(acc, np.uint64(negated[tree])), present_row)
        if has_bits(acc):
            store(rows, count, acc)
            row_slots[count] = slots[tree]
            count += _ONE
    return np.int64(count)


@jit
def _transpose(group: WordArray) -> None:
    """Transpose eight blocks of 64 by 64 bits side by side: bit `i` of row `j` becomes bit `j` of row `i`.

    Swaps quadrants of 32, then 16, ... then 1 (Hacker's Delight, 7-3): 6 * 32 steps for all eight blocks.
    """
    width, mask = np.uint64(32), np.uint64(0x0000_0000_FFFF_FFFF)
    while width > _ZERO:
        row = _ZERO
        while row < np.uint64(64):
            first, second = load(group, row), load(group, row + width)
            moved = mask_words(xor(shift_right(first, width), second), mask)
            store(group, row, xor(first, shift_left(moved, width)))
            store(group, row + width, xor(second, moved))
            row = (row + width + _ONE) & ~width  # the next one that lacks the bit `width`
        width >>= _ONE
        mask ^= mask << width


@jit
def transpose_matches(rows: WordArray, count: Int, n_events: Int, by_bit: WordArray) -> IntArray:
    """Turn the rows that `run_block` kept, 64 at a time, into words of one event and 64 trees.

    Returns where the slots of each event will begin, with the end of the last one behind.
    Row `bit * groups + g` of `by_bit`, which has room for 64 rows a group, is of events `bit`, `64 + bit` and so on,
    and of the trees of group `g`.
    """
    groups = (count + 63) // 64
    group = np.empty(64 * WORDS, np.uint64)
    counts = np.zeros(EVENTS, np.int64)
    for g in range(groups):
        filled = min(64, count - 64 * g) * WORDS
        group[:filled] = rows[64 * g * WORDS : 64 * g * WORDS + filled]
        group[filled:] = 0
        _transpose(group)
        for bit in range(64):
            store(by_bit, np.uint64(bit * groups + g), load(group, np.uint64(bit)))
            for word in range(WORDS):
                counts[bit * WORDS + word] += count_bits(group[bit * WORDS + word])
    starts = np.zeros(n_events + 1, np.int64)
    for event in range(n_events):
        starts[event + 1] = starts[event] + counts[(event & 63) * WORDS + (event >> 6)]
    return starts


@jit
def write_by_event(by_bit: WordArray, row_slots: IntArray, count: Int, starts: IntArray, slots: IntArray) -> None:
    """Write the slots of event `e` from `slots[starts[e]]` on; `by_bit` and `starts` are those of `transpose_matches`.

    Eight events at a time: with eight ends of the output that are written to, their cache lines stay, with 512 not.
    """
    groups, n_events = (count + 63) // 64, len(starts) - 1
    place = np.zeros(WORDS, np.int64)
    for bit in range(64):
        for word in range(WORDS):
            place[word] = starts[min(64 * word + bit, n_events)]
        for g in range(groups):
            for word in range(WORDS):
                bits = by_bit[(bit * groups + g) * WORDS + word]
                at = place[word]
                while bits:
                    slots[at] = row_slots[64 * g + find_lowest_bit(bits)]
                    at += 1
                    bits &= bits - _ONE
                place[word] = at


@jit
def run_for_event(
    forest: ForestCode, leaves: LeafArrays, cells: EventCells, event: Int, trees: IntArray, memo: IntArray, stamp: Int,
    out: BoolArray,
) -> None:  # fmt: skip
    """Decide the given trees (their numbers in the forest) for one event, whose cells are given; write `out[i]`.

    Leaves and shared sub-trees are decided when first asked for, and remembered: `memo[row]` is
    `2 * stamp + truth` once it is known for this event. The caller gives another stamp for each event.
    """
    code, starts, negated = forest
    leaf_column, leaf_op, leaf_low, leaf_high, union_start, union_low, union_high = leaves
    cell, many_start, many_low, many_high = cells.cell, cells.many_start, cells.many_low, cells.many_high
    n_shared = len(starts) - 1 - len(negated)
    n_leaves = len(leaf_column)
    frames = np.empty(4 * 16, np.int64)  # of programs that wait for a shared one: program, at, acc, kept
    for i in range(len(trees)):
        program = np.int64(trees[i]) + n_shared
        at, acc, kept, depth = starts[program], True, np.int64(0), 0
        while True:
            if at < starts[program + 1]:
                instruction = np.int64(code[at])
                kind, row = instruction & 3, instruction >> ROW
                negated_acc = acc != ((instruction & TURN) != 0)
                if kind == POP:
                    acc = negated_acc and (kept & 1) == 1
                    kept >>= 1
                elif not negated_acc:  # an `and` with false, whatever the row is: it need not be decided
                    acc = False
                    kept = kept << 1 if kind == PUSH else kept
                else:
                    if memo[row] >> 1 != stamp:
                        if row >= n_leaves:
                            frames = ensure_room(frames, 4 * depth + 4)
                            frames[4 * depth], frames[4 * depth + 1] = program, at
                            frames[4 * depth + 2], frames[4 * depth + 3] = acc, kept
                            depth += 1
                            program, acc, kept = row - n_leaves, True, np.int64(0)
                            at = starts[program]
                            continue
                        truth = accepts(
                            cell[event, leaf_column[row]], leaf_op[row], leaf_low[row], leaf_high[row],
                            many_start, many_low, many_high, union_start, union_low, union_high,
                        )  # fmt: skip
                        memo[row] = 2 * stamp + (1 if truth else 0)
                    acc = ((memo[row] & 1) == 1) != ((instruction & FLIP) != 0)
                    kept = kept << 1 | 1 if kind == PUSH else kept
                at = starts[program + 1] if instruction & STOP and not acc else at + 1
            elif depth > 0:
                depth -= 1
                memo[n_leaves + program] = 2 * stamp + (1 if acc else 0)
                program, at = frames[4 * depth], frames[4 * depth + 1]
                acc, kept = frames[4 * depth + 2] == 1, frames[4 * depth + 3]
            else:
                break
        out[i] = acc != (negated[program - n_shared] != 0)
