"""Counting satisfied predicates for each row: posting lists, an interval index, counters that need no clearing.

The interval index is the centred interval tree with a virtual backbone. Each attribute's ends are numbered: end `i`
has the code `2 i + 2`, what lies between two ends an odd code, so open and closed ends are plain whole numbers. The
tree's nodes are the codes themselves; an interval is filed at the one number in it with the most zero bits at the end.
Entries lie sorted by node and low code, and once more by node and high code. So what a value hits is, on its path of
O(log n) nodes, one contiguous run each, and what an event's range hits inside is one run in all.

    ends         10      20      30               an attribute with three ends
    codes      1  2   3   4   5   6   7           `[10 .. 20)` is the codes 2 to 3, `(10 .. 30]` is 3 to 6
    nodes                 4                       filed at 2 (0b010) and at 4 (0b100): the most zero bits at the end
                  2               6
               1      3       5       7           the value 15 has the code 3: its path is 4, 2, 3

Several values of one attribute count a predicate once: they come as segments, ascending and apart, and an entry counts
for the first segment it meets, which is the one with `floor < low`, where `floor` is the end of the segment before.

A removed entry stays in its place as `~row`, which is below zero, until the tree is built again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.kernels.growth import grow
from tidings.kernels.jit import jit, jit_inline
from tidings.kernels.papers.domain_cells import HIGH_OPEN, LOW_OPEN

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, Float, FloatArray, Int, Int32Array, IntArray

POSTED = -1
"""In place of an attribute: this predicate is decided by its posting list's stamp, not by comparing ends."""

LAST = 65_535
"""Counters have 16 bits; when an event's counts could go beyond, all are cleared once."""


class IntervalTree(NamedTuple):
    """The interval index: for each attribute its ends, its first node and its root; for each node its entries."""

    ends: FloatArray
    ends_first: IntArray
    nodes_first: IntArray
    roots: Int32Array
    first: IntArray
    low_codes: Int32Array
    low_rows: Int32Array
    high_codes: Int32Array
    high_rows: Int32Array
    high_lows: Int32Array


class RangeEntries(NamedTuple):
    """Range predicates in the order they were added; `waiting` are those that the tree does not have yet."""

    attrs: Int32Array
    lows: FloatArray
    highs: FloatArray
    opens: ByteArray
    rows: Int32Array
    waiting: Int32Array


class RowCounters(NamedTuple):
    """Of each row: its counter, how many it needs (none needs fewer than `least`); and the items of all rows.

    A block of items is the row, their number and, for each, its attribute and its entry, or `POSTED` and a predicate.
    """

    counts: npt.NDArray[np.uint16]
    needs: ByteArray
    least: int
    items: Int32Array


class PostingLists(NamedTuple):
    """For each predicate the rows filed under it; `stamps` has the event at which it held last.

    The pool has rows where they are counted; where they are candidates, it has their blocks of items. `seconds` name
    beside each row another predicate of it that is looked up, or nothing (below zero): most rows fail there already,
    and are not touched.
    """

    first: IntArray
    count: Int32Array
    pool: Int32Array
    seconds: Int32Array
    stamps: IntArray


class EventSegments(NamedTuple):
    """Of each event: the predicates that hold, and the numbers it has, as segments sorted by attribute and value.

    An end is a number and a side: -1 just below it, 1 just above. `inverted` events have a segment that ends before it
    begins, which only the conversion of units can leave.
    """

    hits_first: IntArray
    hits: Int32Array
    segments_first: IntArray
    attrs: Int32Array
    lows: FloatArray
    low_sides: Int32Array
    highs: FloatArray
    high_sides: Int32Array
    inverted: ByteArray


class AttributeMarks(NamedTuple):
    """Of each attribute: the event that has it, and its first segment."""

    stamps: IntArray
    segments: Int32Array


@jit_inline
def find_least(codes: Int32Array | FloatArray, start: Int, stop: Int, least: Float) -> Int:
    """Return the first place in a sorted run whose item is at least this."""
    left, right = start, stop
    while left < right:
        middle = (left + right) >> 1
        if codes[middle] < least:
            left = middle + 1
        else:
            right = middle
    return left


@jit_inline
def encode_value(ends: FloatArray, start: Int, stop: Int, value: Float, side: Int) -> Int:
    """Return the code of a value among an attribute's ends."""
    at = find_least(ends, start, stop, value)
    if at < stop and ends[at] == value:
        return 2 * (at - start) + 2 + side
    return 2 * (at - start) + 1


# Inner loops take arrays, not the groups they come in: passing a group on counts references of all its arrays, which
# costs more than the comparison itself (measured: 150 ns an entry against 4). `base`, `out` and `filled` are what every
# loop counts from and writes to; they stay plain parameters for the same reason.


@jit_inline
def meets(low: Int, high: Int, opens: Int, value: Float, side: Int, end: Float, end_side: Int) -> bool:
    """Tell whether a segment, from `value` to `end`, meets a range, by the numbers themselves."""
    above = end > low or (end == low and end_side >= (1 if opens & LOW_OPEN else 0))
    return above and (value < high or (value == high and side <= (-1 if opens & HIGH_OPEN else 0)))


@jit_inline
def count_row(
    counts: npt.NDArray[np.uint16], needs: ByteArray, row: Int, base: Int, out: Int32Array, filled: Int
) -> Int:
    """Count one predicate for a row; write the row out if that was its last."""
    count = max(base, np.int64(counts[row])) + 1
    counts[row] = count
    if count - base == needs[row]:
        out[filled] = row
        filled += 1
    return filled


@jit
def count_run(
    rows: RowCounters, listed: Int32Array, start: Int, stop: Int, base: Int, out: Int32Array, filled: Int
) -> Int:
    """Count one predicate for each row of a run; write out the rows that have all of theirs."""
    counts, needs, run = rows.counts, rows.needs, listed[start:stop]
    least = base + rows.least
    for at in range(len(run)):
        row = run[at]
        if row < 0:
            continue
        count = max(base, np.int64(counts[row])) + 1
        counts[row] = count
        if count >= least and count - base == needs[row]:  # most rows never get so far, which saves reading `needs`
            out[filled] = row
            filled += 1
    return filled


@jit
def count_run_above(
    rows: RowCounters, listed: Int32Array, lows: Int32Array, start: Int, stop: Int, floor: Int,
    base: Int, out: Int32Array, filled: Int,
) -> Int:  # fmt: skip
    """Do the same for those entries of a run whose low end is above the floor."""
    counts, needs = rows.counts, rows.needs
    for at in range(start, stop):
        if lows[at] > floor and listed[at] >= 0:
            filled = count_row(counts, needs, listed[at], base, out, filled)
    return filled


@jit
def stab(
    tree: IntervalTree, rows: RowCounters, attr: Int, low: Int, high: Int, floor: Int,
    base: Int, out: Int32Array, filled: Int,
) -> Int:  # fmt: skip
    """Count every entry of an attribute that meets the codes from `low` to `high` and begins above `floor`."""
    nodes, first = tree.nodes_first[attr], tree.first
    last = tree.nodes_first[attr + 1] - nodes - 2  # the backbone has nodes beyond the attribute's codes: all empty
    # Entries filed between the two codes meet the segment for certain: their nodes lie in it, and are one run.
    start, stop = first[nodes + low], first[nodes + high + 1]
    filled = count_run_above(rows, tree.low_rows, tree.low_codes, start, stop, floor, base, out, filled)
    # Others are filed on the path from the root to `low`: of a node below it, those that reach it end the run by high.
    node, step = tree.roots[attr], tree.roots[attr] >> 1
    while node != low:
        if node > low:
            node -= step
        else:
            if node > floor:  # otherwise all that is here and reaches `low` has met the segment before
                stop = first[nodes + node + 1]
                start = find_least(tree.high_codes, first[nodes + node], stop, low)
                if floor:
                    filled = count_run_above(
                        rows, tree.high_rows, tree.high_lows, start, stop, floor, base, out, filled
                    )
                else:
                    filled = count_run(rows, tree.high_rows, start, stop, base, out, filled)
            node += step
        step >>= 1
    # And on the path to `high`: those above it that begin at or before it are the start of their run by low.
    node, step = tree.roots[attr], tree.roots[attr] >> 1
    while node != high:
        if node < high:
            node += step
        else:
            if node <= last:
                start = find_least(tree.low_codes, first[nodes + node], first[nodes + node + 1], floor + 1)
                stop = find_least(tree.low_codes, start, first[nodes + node + 1], high + 1)
                filled = count_run(rows, tree.low_rows, start, stop, base, out, filled)
            node -= step
        step >>= 1
    return filled


@jit
def count_in_tree(
    tree: IntervalTree, rows: RowCounters, events: EventSegments, event: Int, base: Int, out: Int32Array, filled: Int
) -> Int:
    """Count the entries of the tree that an event's segments meet."""
    attr, floor = -1, 0
    for at in range(events.segments_first[event], events.segments_first[event + 1]):
        if events.attrs[at] != attr:
            attr, floor = events.attrs[at], 0
        if attr >= len(tree.roots) or tree.roots[attr] == 0:  # none of its ranges is in the tree
            continue
        start, stop = tree.ends_first[attr], tree.ends_first[attr + 1]
        low = encode_value(tree.ends, start, stop, events.lows[at], events.low_sides[at])
        high = encode_value(tree.ends, start, stop, events.highs[at], events.high_sides[at])
        filled = stab(tree, rows, attr, low, high, floor, base, out, filled)
        floor = max(floor, high)
    return filled


@jit
def count_one_by_one(
    entries: RangeEntries, slots: Int32Array, rows: RowCounters, events: EventSegments, marks: AttributeMarks,
    event: Int, tick: Int, base: Int, out: Int32Array, filled: Int,
) -> Int:  # fmt: skip
    """Count the entries of these slots that an event satisfies."""
    counts, needs, stop = rows.counts, rows.needs, events.segments_first[event + 1]
    attrs, lows, highs, opens, owners = entries.attrs, entries.lows, entries.highs, entries.opens, entries.rows
    segment_attrs, values, sides = events.attrs, events.lows, events.low_sides
    ends, end_sides = events.highs, events.high_sides
    stamps, segments = marks.stamps, marks.segments
    for place in range(len(slots)):
        slot = slots[place]
        row, attr = owners[slot], attrs[slot]
        if row < 0 or stamps[attr] != tick:
            continue
        at = segments[attr]
        while at < stop and segment_attrs[at] == attr:
            if meets(lows[slot], highs[slot], opens[slot], values[at], sides[at], ends[at], end_sides[at]):
                filled = count_row(counts, needs, row, base, out, filled)
                break
            at += 1
    return filled


@jit
def check_candidates(
    entries: RangeEntries, rows: RowCounters, lists: PostingLists, events: EventSegments, marks: AttributeMarks,
    event: Int, tick: Int, out: Int32Array, filled: Int,
) -> Int:  # fmt: skip
    """Write out the rows filed under a predicate that holds, if all of their other predicates hold."""
    items, pool, seconds, predicate_stamps = rows.items, lists.pool, lists.seconds, lists.stamps
    lows, highs, opens = entries.lows, entries.highs, entries.opens
    segment_attrs, values, sides = events.attrs, events.lows, events.low_sides
    ends, end_sides, last = events.highs, events.high_sides, events.segments_first[event + 1]
    stamps, segments = marks.stamps, marks.segments
    for hit in range(events.hits_first[event], events.hits_first[event + 1]):
        first = lists.first[events.hits[hit]]
        for place in range(first, first + lists.count[events.hits[hit]]):
            if seconds[place] >= 0 and predicate_stamps[seconds[place]] != tick:
                continue
            block = pool[place]
            item, stop = block + 4, block + 2 + 2 * items[block + 1]  # the first item led here
            while item < stop:
                attr, ref = items[item], items[item + 1]
                true = False
                if attr == POSTED:
                    true = predicate_stamps[ref] == tick
                elif stamps[attr] == tick:
                    at = segments[attr]
                    while not true and at < last and segment_attrs[at] == attr:
                        true = meets(lows[ref], highs[ref], opens[ref], values[at], sides[at], ends[at], end_sides[at])
                        at += 1
                if not true:
                    break
                item += 2
            if item >= stop:
                out[filled] = items[block]
                filled += 1
    return filled


@jit
def match(
    tree: IntervalTree, entries: RangeEntries, every: Int32Array, rows: RowCounters, lists: PostingLists,
    events: EventSegments, marks: AttributeMarks, access: bool, clock: IntArray,
) -> tuple[Int32Array, IntArray]:  # fmt: skip
    """Return the rows that each event satisfies, and where each event's begin.

    `clock` holds the tick of the last event, the base of its counts, and the step between bases. `every` lists all
    slots, for `inverted` events. With `access`, a row under a predicate is a candidate; without, it is counted.
    """
    count = len(events.hits_first) - 1
    first = np.zeros(count + 1, np.int64)
    out = np.empty(len(rows.counts) + 64, np.int32)
    filled = 0
    for event in range(count):
        if len(out) - filled < len(rows.counts):  # an event puts each row out once at most
            out = grow(out, 2 * len(out) + len(rows.counts))
        # A counter at or below `base` belongs to an earlier event and counts as zero: nothing is cleared in between.
        tick, base = clock[0] + 1, clock[1] + clock[2]
        if base + clock[2] > LAST:
            rows.counts[:] = 0
            base = 0
        clock[0], clock[1] = tick, base
        for at in range(events.hits_first[event], events.hits_first[event + 1]):
            lists.stamps[events.hits[at]] = tick
        for at in range(events.segments_first[event + 1] - 1, events.segments_first[event] - 1, -1):
            marks.stamps[events.attrs[at]] = tick
            marks.segments[events.attrs[at]] = at
        if access:
            filled = check_candidates(entries, rows, lists, events, marks, event, tick, out, filled)
        else:
            for at in range(events.hits_first[event], events.hits_first[event + 1]):
                start = lists.first[events.hits[at]]
                stop = start + lists.count[events.hits[at]]
                filled = count_run(rows, lists.pool, start, stop, base, out, filled)
        if events.inverted[event]:
            filled = count_one_by_one(entries, every, rows, events, marks, event, tick, base, out, filled)
        else:
            filled = count_in_tree(tree, rows, events, event, base, out, filled)
            filled = count_one_by_one(entries, entries.waiting, rows, events, marks, event, tick, base, out, filled)
        first[event + 1] = filled
    return out[:filled].copy(), first


@jit
def remove_entry(tree: IntervalTree, attr: Int, node: Int, low: Int, high: Int, row: Int) -> None:
    """Mark an entry of the tree as removed, in both orders; O(log n + entries with the same end)."""
    start, stop = tree.first[tree.nodes_first[attr] + node], tree.first[tree.nodes_first[attr] + node + 1]
    at = find_least(tree.low_codes, start, stop, low)
    while tree.low_rows[at] != row:
        at += 1
    tree.low_rows[at] = ~row
    at = find_least(tree.high_codes, start, stop, high)
    while tree.high_rows[at] != row:
        at += 1
    tree.high_rows[at] = ~row
