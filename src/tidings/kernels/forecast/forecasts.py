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
    """The courses of all patterns, one after another: labels of kinds, where each begins, moves by cell and label.

    `accepts` tells of each pattern and kind whether a filter of the pattern accepts events of it.
    """

    labels: Int32Array
    accepts: BoolArray
    cell_at: IntArray
    move_at: IntArray
    widths: IntArray
    table: Int32Array
    hits: BoolArray
    idle: BoolArray


class AlarmTables(NamedTuple):
    """When a pattern's forecasts are emitted; its probabilities are lines of `grids[p]` numbers from `tables_at[p]` on.

    A line is a cell where `gap_units[p]` is -1, else `cell * SILENCES + bin` by the bin of the key's mean gap. Of a
    pattern in `own` a forecast is emitted only at events that a filter of it accepts.
    """

    policies: IntArray
    limits: FloatArray
    own: BoolArray
    tables_at: IntArray
    grids: IntArray
    gap_units: IntArray
    offsets: FloatArray
    probabilities: FloatArray
    packed: Int32Array


class AlarmTable(NamedTuple):
    """The same for one pattern."""

    policy: Int
    limit: Float
    own: bool
    grid: Int
    gap_unit: Int
    offset: Float
    probabilities: FloatArray


class ForecastBuffer(NamedTuple):
    """Forecasts as they are emitted: pattern, entry and cell; the probability; and, in `counter[0]`, how many."""

    out: IntArray
    probabilities: FloatArray
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
def apply_alarm_rule(
    policy: Int, limit: Float, probability: Float, memory: Float, hit: bool, idle: bool
) -> tuple[bool, Float]:
    """Return whether a forecast is emitted, and the value to remember for the next one.

    For `CHANGE` and `EVERY` that is the probability. For alarms it is 1 while an alarm lasts, 2 where it began while no
    match had begun, else 0.
    """
    if policy == EVERY:
        return True, probability
    if policy == CHANGE:
        due = not abs(probability - memory) <= limit  # before the first forecast it is NaN
        return due, probability if due else memory
    above, before = probability > limit, memory > 0.5
    if policy == CROSSING:
        return above and not before, 1.0 if above else 0.0
    # A match ends an episode, and so does the end of all partial matches. Where none had begun nothing can end:
    # a probability that stays above is not emitted again.
    before = before and not hit and not (idle and memory < 1.5)
    if idle:
        return above and not before, 2.0 if above else 0.0
    return above and not before, 1.0 if above or before else 0.0


@jit_lean_inline
def keep_untold(policy: Int, memory: Float) -> Float:
    """Return the value to remember where a forecast was due and is not emitted: as if it had not been due.

    So the next event at which it may be emitted finds it due, unless the probability has fallen by then.
    """
    return memory if policy == CHANGE else 0.0


@jit_lean
def follow_patterns(
    begin: Int, entries: KeyedEntries, courses: CourseTables, alarms: AlarmTables, state: IntArray,
    alarm_memory: FloatArray, buffer: ForecastBuffer,
) -> Int:  # fmt: skip
    """Let the patterns from `begin` on take the entries, and emit the forecasts that their rules ask for.

    `state` has each pattern's cell by key, `alarm_memory` what `apply_alarm_rule` remembers of its last forecast. A
    pattern is begun only if the buffer has room for a forecast at every entry, so none stops halfway; returns the
    first one that was not begun.
    """
    kinds, starts, rows, places, silences = entries
    labels, accepts, cell_at, move_at, widths, table, hits, idle = courses
    policies, limits, own, tables_at, grids, gap_units, offsets, probabilities, packed = alarms
    out, out_probabilities, counter = buffer
    for pattern in range(begin, len(widths)):
        policy, limit, width, grid = policies[pattern], limits[pattern], widths[pattern], grids[pattern]
        gap_unit, offset = gap_units[pattern], offsets[pattern]
        if policy != SILENT and counter[0] + len(kinds) > len(out_probabilities):
            return pattern  # the caller goes on from here with an empty buffer
        first, moves, lines = cell_at[pattern], move_at[pattern], tables_at[pattern]
        for segment in range(len(rows)):
            row = rows[segment]
            cell, memory = state[pattern, row], alarm_memory[pattern, row]
            if policy == SILENT:  # somebody may still ask for a forecast later: the cell is kept up to date
                for entry in range(starts[segment], starts[segment + 1]):
                    cell = table[moves + cell * width + labels[pattern, kinds[entry]]]
            elif policy == CROSSING and grid == 1 and gap_unit < 0 and not own[pattern]:
                # A move is one number: where the row of the next cell begins (a multiple of `width`), shifted left, and
                # in the last bit whether that cell is above the threshold. So the loop reads no probability at all.
                code = (cell * width) << 1 | (memory > 0.5)
                for entry in range(starts[segment], starts[segment + 1]):
                    before = code & 1
                    code = packed[moves + (code >> 1) + labels[pattern, kinds[entry]]]
                    if (code & 1) > before:  # it rose above the threshold here
                        place, cell = counter[0], (code >> 1) // width
                        out[place, R_PATTERN], out[place, R_ENTRY], out[place, R_CELL] = pattern, entry, cell
                        out_probabilities[place] = probabilities[lines + cell]
                        counter[0] = place + 1
                cell, memory = (code >> 1) // width, float(code & 1)
            else:
                for entry in range(starts[segment], starts[segment + 1]):
                    at = moves + cell * width + labels[pattern, kinds[entry]]
                    cell = table[at]
                    line = cell if gap_unit < 0 else cell * SILENCES + silences[gap_unit, entry]
                    probability = interpolate(probabilities, lines + line * grid, grid, places, entry, offset)
                    before, is_idle = memory, idle[first + cell]
                    is_due, memory = apply_alarm_rule(policy, limit, probability, before, hits[at], is_idle)
                    if is_due and own[pattern] and not accepts[pattern, kinds[entry]]:
                        memory = keep_untold(policy, before)
                    elif is_due:
                        place = counter[0]
                        out[place, R_PATTERN], out[place, R_ENTRY], out[place, R_CELL] = pattern, entry, cell
                        out_probabilities[place] = probability
                        counter[0] = place + 1
            state[pattern, row], alarm_memory[pattern, row] = cell, memory
    return len(widths)


@jit_lean_inline
def interpolate(probabilities: FloatArray, at: Int, grid: Int, places: FloatArray, entry: Int, offset: Float) -> Float:
    """Return the probability of an entry, between two of the `grid` numbers that begin at `probabilities[at]`.

    Column `c` of a grid is for a key whose mean gap is `2 ** (c / 2)` events, or (`offset` not 0) so much time that
    the horizon has `256 / 2 ** (c / 2)` gaps. A key's position lies between two columns, and so does its probability.
    """
    if grid == 1:
        return probabilities[at]
    place = places[0, entry] if offset == 0.0 else places[1, entry] + offset
    place = min(max(place, 0.0), grid - 1.0)
    low = min(int(place), grid - 2)
    part = place - low
    return probabilities[at + low] * (1.0 - part) + probabilities[at + low + 1] * part


@jit_lean
def emit_forecasts(
    entries: KeyedEntries, cells: IntArray, hit: BoolArray, course: tuple[BoolArray, BoolArray],
    alarm_memory: FloatArray, alarm: AlarmTable, out: IntArray, out_probabilities: FloatArray,
) -> Int:  # fmt: skip
    """Emit the forecasts of one pattern, from the cells that it was in after each entry; return how many.

    `course` has its rows of `idle` and `accepts`.
    """
    kinds, starts, rows, places, silences = entries
    idle, accepts = course
    policy, limit, own, grid, gap_unit, offset, probabilities = alarm
    count = 0
    for segment in range(len(rows)):
        memory = alarm_memory[rows[segment]]
        for entry in range(starts[segment], starts[segment + 1]):
            line = cells[entry] if gap_unit < 0 else cells[entry] * SILENCES + silences[gap_unit, entry]
            probability = interpolate(probabilities, line * grid, grid, places, entry, offset)
            before = memory
            is_due, memory = apply_alarm_rule(policy, limit, probability, before, hit[entry], idle[cells[entry]])
            if is_due and own and not accepts[kinds[entry]]:
                memory = keep_untold(policy, before)
            elif is_due:
                out[count], out_probabilities[count] = entry, probability
                count += 1
        alarm_memory[rows[segment]] = memory
    return count


@jit
def sum_first_passages(label_probabilities: FloatArray, table: IntArray, hits: BoolArray, most: Int) -> FloatArray:
    """Return `within[n, cell]`: the probability that the first match comes within n steps, for n from 0 to `most`.

    The recurrence of first-passage probabilities: a step either completes a match or leads to a cell with one step
    less. Invariant: row `n - 1` is final before row `n` reads it. Cost: `most` times moves.
    """
    cells, labels = table.shape
    within = np.zeros((most + 1, cells))
    for step in range(1, most + 1):
        for cell in range(cells):
            total = 0.0
            for label in range(labels):
                p = label_probabilities[cell, label]
                if p > 0.0:
                    total += p if hits[cell, label] else p * within[step - 1, table[cell, label]]
            within[step, cell] = min(total, 1.0)
    return within


@jit
def hash_symbol_sets(offsets: IntArray, symbols: IntArray, codes: WordArray) -> WordArray:
    """Return a hash of the set of symbols of each event: the sum of their codes, so their order does not matter."""
    out = np.zeros(len(offsets) - 1, np.uint64)
    for event in range(len(out)):
        total = np.uint64(0)
        for place in range(offsets[event], offsets[event + 1]):
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
                    mean[measure, key] += (gap - mean[measure, key]) / min(count[key], recent)  # mean, then fading
                out[measure, entry] = mean[measure, key]
                last[measure, key] = moments[measure, entry]
            out[2, entry] = min(count[key], recent)
            count[key] += 1
