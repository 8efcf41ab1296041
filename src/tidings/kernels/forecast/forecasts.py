"""Kernels of forecasting: walk courses, look up probabilities, emit forecasts, sum first-passage times.

A *course* is a pattern as an automaton over labels (classes of event kinds); a *cell* is one of its states:

    kinds   [ k0 k1 k2 | k3 k4 | ... ]      entries, key by key; segment s is starts[s]:starts[s + 1] of key rows[s]
    table   next cell = table[cell * width + label_of[kind]]          hits: whether that move completes a match

A forecast is the probability that a model gives a cell; `outcome_counts` has what estimators learn from.

One pattern after the other goes through all entries: its tables stay in the nearest cache, which is what makes a
thousand patterns affordable. Cost: entries times patterns, a few nanoseconds each. Groups of arrays come as plain
tuples in the order of the classes below: Numba looks up the class of a named one at every call from Python, about a
microsecond a group, and a caller with single events calls for each. Unpacked at once, they cost as little as flat
arguments (an entry took 5.9 ns instead of 6.1 on crossing, 9.9 instead of 9.7 for episodes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.jit import jit, jit_lean, jit_lean_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import BoolArray, Float, FloatArray, Int, Int32Array, IntArray, WordArray

SILENT, CROSSING, EPISODE, EVERY, CHANGE = range(5)
"""Policies: when a forecast is emitted. Never; when it rises above the threshold; once for each episode above it; after
every event; when it has changed by more than the limit."""

SILENCES = 12
"""Bins of how long a key is silent between its events."""

R_PATTERN, R_ENTRY, R_CELL = range(3)
"""Columns of an emitted forecast."""


class KeyedEntries(NamedTuple):
    """Entries key by key: kinds of events, segments, their keys, and where each lies on the grids and bins of gaps."""

    kinds: IntArray
    starts: IntArray
    rows: IntArray
    places: FloatArray
    silences: IntArray


class CourseTables(NamedTuple):
    """The courses of all patterns, one after another: labels of kinds, where each begins, moves by cell and label."""

    labels: Int32Array
    cell_at: IntArray
    move_at: IntArray
    widths: IntArray
    table: Int32Array
    hits: BoolArray
    idle: BoolArray


class AlarmTables(NamedTuple):
    """When each pattern's forecasts are emitted, and its probabilities by cell, bin of silence and column of a grid."""

    policies: IntArray
    limits: FloatArray
    chances_at: IntArray
    grids: IntArray
    gaps: IntArray
    offsets: FloatArray
    chances: FloatArray
    packed: Int32Array


class AlarmTable(NamedTuple):
    """The same for one pattern."""

    policy: Int
    limit: Float
    grid: Int
    gap: Int
    offset: Float
    chances: FloatArray


class ForecastBuffer(NamedTuple):
    """Forecasts as they are emitted: pattern, entry and cell; the probability; and, in `counter[0]`, how many."""

    out: IntArray
    chances: FloatArray
    counter: IntArray


class MeanGaps(NamedTuple):
    """Of each key: position and time of its latest event, the mean gaps in both, and how many events it had."""

    last: IntArray
    mean: FloatArray
    count: IntArray


class CourseTable(NamedTuple):
    """One course: the label of each kind of event, how many labels there are, and moves by cell and label."""

    label_of: Int32Array
    width: Int
    table: Int32Array
    hits: BoolArray


@jit_lean
def walk(
    kinds: IntArray, segments: tuple[IntArray, IntArray], course: CourseTable, state: IntArray, cells: Int32Array,
    hit: BoolArray,
) -> None:  # fmt: skip
    """Walk each key's entries from its cell in `state`; write the cell after each, and whether it completed a match.

    `segments` are `starts` and `rows`.
    """
    starts, rows = segments
    label_of, width, table, hits = course
    for segment in range(len(rows)):
        cell = state[rows[segment]]
        for entry in range(starts[segment], starts[segment + 1]):
            at = cell * width + label_of[kinds[entry]]
            cells[entry] = cell = table[at]
            hit[entry] = hits[at]


@jit_lean_inline
def judge_forecast(
    policy: Int, limit: Float, probability: Float, was: Float, hit: bool, idle: bool
) -> tuple[bool, Float]:
    """Return whether a forecast is emitted, and the value to remember for the next one.

    For `CHANGE` and `EVERY` that is the probability. For alarms it is 1 while above the threshold, 2 where it rose
    while no match had begun, else 0.
    """
    if policy == EVERY:
        return True, probability
    if policy == CHANGE:
        due = not abs(probability - was) <= limit  # before the first forecast `was` is NaN
        return due, probability if due else was
    above, before = probability > limit, was > 0.5
    if policy == CROSSING:
        return above and not before, 1.0 if above else 0.0
    # A match ends an episode, and so does the end of all partial matches. Where none had begun nothing can end:
    # a probability that stays above is not emitted again.
    before = before and not hit and not (idle and was < 1.5)
    if idle:
        return above and not before, 2.0 if above else 0.0
    return above and not before, 1.0 if above or before else 0.0


@jit_lean
def follow_patterns(
    begin: Int, entries: KeyedEntries, courses: CourseTables, alarms: AlarmTables, state: IntArray, last: FloatArray,
    buffer: ForecastBuffer,
) -> Int:  # fmt: skip
    """Let the patterns from `begin` on take the entries, and emit the forecasts that their rules ask for.

    `state` has each pattern's cell by key, `last` what it remembers of its last forecast. A pattern is begun only if
    the buffer has room for a forecast at every entry; returns the first one that was not begun.
    """
    kinds, starts, rows, places, silences = entries
    labels, cell_at, move_at, widths, table, hits, idle = courses
    policies, limits, chances_at, grids, gaps, offsets, chances, packed = alarms
    out, out_chances, counter = buffer
    for pattern in range(begin, len(widths)):
        policy, limit, width, grid = policies[pattern], limits[pattern], widths[pattern], grids[pattern]
        gap, offset = gaps[pattern], offsets[pattern]
        if policy != SILENT and counter[0] + len(kinds) > len(out_chances):
            return pattern
        first, moves, chance = cell_at[pattern], move_at[pattern], chances_at[pattern]
        for segment in range(len(rows)):
            row = rows[segment]
            cell, was = state[pattern, row], last[pattern, row]
            if policy == SILENT:
                for entry in range(starts[segment], starts[segment + 1]):
                    cell = table[moves + cell * width + labels[pattern, kinds[entry]]]
            elif policy == CROSSING and grid == 1 and gap < 0:
                # One number a move holds where its row begins and whether that is above the threshold.
                code = (cell * width) << 1 | (was > 0.5)
                for entry in range(starts[segment], starts[segment + 1]):
                    before = code & 1
                    code = packed[moves + (code >> 1) + labels[pattern, kinds[entry]]]
                    if (code & 1) > before:
                        place, cell = counter[0], (code >> 1) // width
                        out[place, R_PATTERN], out[place, R_ENTRY], out[place, R_CELL] = pattern, entry, cell
                        out_chances[place] = chances[chance + cell]
                        counter[0] = place + 1
                cell, was = (code >> 1) // width, float(code & 1)
            else:
                for entry in range(starts[segment], starts[segment + 1]):
                    at = moves + cell * width + labels[pattern, kinds[entry]]
                    cell = table[at]
                    line = cell if gap < 0 else cell * SILENCES + silences[gap, entry]
                    probability = interpolate_chance(chances, chance + line * grid, grid, places, entry, offset)
                    tells, was = judge_forecast(policy, limit, probability, was, hits[at], idle[first + cell])
                    if tells:
                        place = counter[0]
                        out[place, R_PATTERN], out[place, R_ENTRY], out[place, R_CELL] = pattern, entry, cell
                        out_chances[place] = probability
                        counter[0] = place + 1
            state[pattern, row], last[pattern, row] = cell, was
    return len(widths)


@jit_lean_inline
def interpolate_chance(chances: FloatArray, at: Int, grid: Int, places: FloatArray, entry: Int, offset: Float) -> Float:
    """Return the probability of an entry, interpolated linearly between two of the `grid` numbers from `chances[at]`.

    The position is `places[0]` where the grid is one of shares of the horizon (`offset` is 0), else `places[1]`, which
    is that of the key's gap, shifted by `offset` to that of the horizon's span in gaps.
    """
    if grid == 1:
        return chances[at]
    place = places[0, entry] if offset == 0.0 else places[1, entry] + offset
    place = min(max(place, 0.0), grid - 1.0)
    low = min(int(place), grid - 2)
    part = place - low
    return chances[at + low] * (1.0 - part) + chances[at + low + 1] * part


@jit_lean
def emit_forecasts(
    entries: KeyedEntries, cells: IntArray, hit: BoolArray, idle: BoolArray, last: FloatArray, alarm: AlarmTable,
    out: IntArray, out_chances: FloatArray,
) -> Int:  # fmt: skip
    """Emit the forecasts of one pattern, from the cells that it was in after each entry; return how many."""
    _, starts, rows, places, silences = entries
    policy, limit, grid, gap, offset, chances = alarm
    count = 0
    for segment in range(len(rows)):
        was = last[rows[segment]]
        for entry in range(starts[segment], starts[segment + 1]):
            line = cells[entry] if gap < 0 else cells[entry] * SILENCES + silences[gap, entry]
            probability = interpolate_chance(chances, line * grid, grid, places, entry, offset)
            tells, was = judge_forecast(policy, limit, probability, was, hit[entry], idle[cells[entry]])
            if tells:
                out[count], out_chances[count] = entry, probability
                count += 1
        last[rows[segment]] = was
    return count


@jit
def sum_first_passages(chances: FloatArray, table: IntArray, hits: BoolArray, most: Int) -> FloatArray:
    """Return `within[n, cell]`: the probability that the first match comes within n steps, for n from 0 to `most`.

    The recurrence of first-passage probabilities: a step either completes a match or leads to a cell with one step
    less. Cost: `most` times moves.
    """
    cells, labels = table.shape
    within = np.zeros((most + 1, cells))
    for step in range(1, most + 1):
        for cell in range(cells):
            total = 0.0
            for label in range(labels):
                chance = chances[cell, label]
                if chance > 0.0:
                    total += chance if hits[cell, label] else chance * within[step - 1, table[cell, label]]
            within[step, cell] = min(total, 1.0)
    return within


@jit
def hash_symbol_sets(ends: IntArray, symbols: IntArray, codes: WordArray) -> WordArray:
    """Return a hash of the set of symbols of each event: the sum of their codes, so their order does not matter."""
    out = np.zeros(len(ends) - 1, np.uint64)
    for event in range(len(out)):
        total = np.uint64(0)
        for place in range(ends[event], ends[event + 1]):
            total += codes[symbols[place]]
        out[event] = total
    return out


@jit_lean
def update_mean_gaps(
    segments: tuple[IntArray, IntArray], moments: IntArray, recent: Int, state: MeanGaps, out: FloatArray
) -> None:
    """Update the mean gap between a key's events, in positions and in time, and write it for every entry.

    The mean of the first `recent` gaps, then an exponential one with that memory. `segments` are `starts` and `rows`;
    `moments` has a row of positions and one of times. Of `out` two rows get the means, one of how many gaps they are,
    and two the latest gaps.
    """
    starts, rows = segments
    last, mean, count = state
    for segment in range(len(rows)):
        key = rows[segment]
        for entry in range(starts[segment], starts[segment + 1]):
            for measure in range(2):
                gap = float(moments[measure, entry] - last[measure, key])
                if count[key] > 0:
                    out[3 + measure, entry] = gap
                if count[key] == 1:
                    mean[measure, key] = gap
                elif count[key] > 1:
                    mean[measure, key] += (gap - mean[measure, key]) / min(count[key], recent)
                out[measure, entry] = mean[measure, key]
                last[measure, key] = moments[measure, entry]
            out[2, entry] = min(count[key], recent)
            count[key] += 1
