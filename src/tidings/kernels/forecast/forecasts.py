"""Forecasts over arrays: courses are walked, moves and waits counted, probabilities told, first passages summed.

Entries (events of a stream, or of a key) lie key by key in segments `starts[s]:starts[s + 1]`; `rows[s]` is the key.
One pattern after the other goes through all of them: its tables stay in the nearest cache, which is what makes a
thousand patterns affordable. Cost: entries times patterns, a few nanoseconds each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.jit import jit, jit_lean, jit_lean_inline

SILENT, CROSSING, EPISODE, EVERY, CHANGE = range(5)
"""When a forecast is told."""

SILENCES = 12
"""Bins of how long a key is silent between its events."""

R_PATTERN, R_ENTRY, R_CELL = range(3)
"""Columns of what is told."""


@jit_lean
def walk(
    kinds: Any,
    starts: Any,
    rows: Any,
    label_of: Any,
    width: Any,
    table: Any,
    hits: Any,
    state: Any,
    cells: Any,
    hit: Any,
) -> None:
    """Go through the entries from each key's cell; note the cell after each, and whether it was a match."""
    for segment in range(len(rows)):
        cell = state[rows[segment]]
        for entry in range(starts[segment], starts[segment + 1]):
            at = cell * width + label_of[kinds[entry]]
            cells[entry] = cell = table[at]
            hit[entry] = hits[at]


@jit_lean
def count_moves(
    kinds: Any,
    starts: Any,
    rows: Any,
    first: Any,
    weights: Any,
    label_of: Any,
    width: Any,
    state: Any,
    cells: Any,
    moves: Any,
) -> None:
    """Count, for entries from `first` of their segment on, which label came in which cell."""
    for segment in range(len(rows)):
        begin = starts[segment] + first[segment]
        cell = state[rows[segment]] if first[segment] == 0 else cells[begin - 1]
        for entry in range(begin, starts[segment + 1]):
            moves[cell * width + label_of[kinds[entry]]] += weights[entry]
            cell = cells[entry]


@jit_lean
def count_changes(
    starts: Any,
    rows: Any,
    first: Any,
    weights: Any,
    chain: Any,
    width: Any,
    before: Any,
    cells: Any,
    hit: Any,
    moves: Any,
) -> None:
    """Count, of a tracked course, which cell came after which; a match is the last label."""
    for segment in range(len(rows)):
        begin = starts[segment] + first[segment]
        cell = chain[before[segment]] if first[segment] == 0 else chain[cells[begin - 1]]
        for entry in range(begin, starts[segment + 1]):
            label = width - 1 if hit[entry] else chain[cells[entry]]
            moves[cell * width + label] += weights[entry]
            cell = chain[cells[entry]]


@jit_lean
def count_waits(starts: Any, done: Any, cells: Any, hit: Any, weights: Any, bins: Any, edges: Any, waits: Any) -> None:
    """Count how many entries after each of the first `done` of a segment the next match came, or how long none did.

    Codes below `edges` are the bins of waiting times, the others how many bins passed before nothing more was known.
    """
    most, codes = len(bins) - 1, 2 * edges + 1
    for segment in range(len(done)):
        begin, end = starts[segment], starts[segment + 1]
        following = -1
        for entry in range(end - 1, begin - 1, -1):
            if entry < begin + done[segment]:
                observed = min(end - 1 - entry, most)
                if following >= 0 and following - entry <= most:
                    code = bins[following - entry]
                else:
                    code = edges + bins[observed + 1] if observed < most else 2 * edges
                waits[cells[entry] * codes + code] += weights[entry]
            if hit[entry]:
                following = entry


@jit_lean
def note_next_matches(starts: Any, hit: Any, at: Any, times: Any, next_at: Any, next_time: Any) -> None:
    """Note at every entry the position and time of the next match of its key; -1 where there is none."""
    for segment in range(len(starts) - 1):
        following = -1
        for entry in range(starts[segment + 1] - 1, starts[segment] - 1, -1):
            next_at[entry] = at[following] if following >= 0 else -1
            next_time[entry] = times[following] if following >= 0 else 0
            if hit[entry]:
                following = entry


@jit_lean
def count_later(
    starts: Any,
    done: Any,
    cells: Any,
    weights: Any,
    at: Any,
    now: Any,
    next_at: Any,
    near: Any,
    gaps: Any,
    bins: Any,
    edges: Any,
    waits: Any,
) -> None:
    """Count the same in events of the whole stream; `near` is the bin of how long the key is silent between its own."""
    most, codes = len(bins) - 1, 2 * edges + 1
    for segment in range(len(done)):
        for entry in range(starts[segment], starts[segment] + done[segment]):
            observed = min(now - 1 - at[entry], most)
            if next_at[entry] >= 0 and next_at[entry] - at[entry] <= most:
                code = bins[next_at[entry] - at[entry]]
            else:
                code = edges + bins[observed + 1] if observed < most else 2 * edges
            waits[(cells[entry] * gaps + near[entry]) * codes + code] += weights[entry]


@jit_lean
def count_span(
    starts: Any,
    done: Any,
    cells: Any,
    weights: Any,
    times: Any,
    until: Any,
    next_at: Any,
    next_time: Any,
    soon: Any,
    gaps: Any,
    span: Any,
    out: Any,
) -> None:
    """Count whether a match came within a span of time: 0 yes, 1 not known, 2 no."""
    for segment in range(len(done)):
        for entry in range(starts[segment], starts[segment] + done[segment]):
            row = (cells[entry] * gaps + (soon[entry] if gaps > 1 else 0)) * 3
            if next_at[entry] >= 0 and next_time[entry] - times[entry] <= span:
                out[row] += weights[entry]
            else:
                out[row + (2 if until - times[entry] >= span else 1)] += weights[entry]


@jit_lean_inline
def judge_forecast(policy: Any, limit: Any, probability: Any, was: Any, hit: Any, idle: Any) -> Any:
    """Return whether a forecast is told, and what is remembered of it: of alarms, 1, and 2 where nothing had begun."""
    if policy == EVERY:
        return True, probability
    if policy == CHANGE:
        due = not abs(probability - was) <= limit  # nothing told before is not a number
        return due, probability if due else was
    above, before = probability > limit, was > 0.5
    if policy == CROSSING:
        return above and not before, 1.0 if above else 0.0
    # A match ends an episode, and so does the end of all that had begun. Where nothing has begun there is none to end:
    # a probability that stays above is not told again.
    before = before and not hit and not (idle and was < 1.5)
    if idle:
        return above and not before, 2.0 if above else 0.0
    return above and not before, 1.0 if above or before else 0.0


@jit_lean
def follow_patterns(
    begin: Any,
    kinds: Any,
    starts: Any,
    rows: Any,
    places: Any,
    labels: Any,
    cell_at: Any,
    move_at: Any,
    widths: Any,
    table: Any,
    hits: Any,
    idle: Any,
    state: Any,
    last: Any,
    policies: Any,
    limits: Any,
    chances_at: Any,
    grids: Any,
    silences: Any,
    gaps: Any,
    offsets: Any,
    chances: Any,
    packed: Any,
    out: Any,
    out_chances: Any,
    counter: Any,
) -> Any:
    """Let the patterns from `begin` on go through the entries and tell what they are to tell.

    `found[0]` counts what was told. It returns the first pattern that was not begun because there was no room for it.
    """
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
def interpolate_chance(chances: Any, at: Any, grid: Any, places: Any, entry: Any, offset: Any) -> Any:
    """Return a probability from its row; between two columns it is in proportion.

    The place is one of shares, or (with an offset, which is never 0) one of spans of time.
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
    starts: Any,
    rows: Any,
    places: Any,
    cells: Any,
    hit: Any,
    idle: Any,
    last: Any,
    policy: Any,
    limit: Any,
    grid: Any,
    silences: Any,
    gap: Any,
    offset: Any,
    chances: Any,
    out: Any,
    out_chances: Any,
) -> Any:
    """Tell what one pattern is to tell, from the cells it went through; return how many."""
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
def sum_first_passages(chances: Any, table: Any, hits: Any, most: Any) -> Any:
    """Return the probability that a match comes within n steps, n from 0 to `most`, of every cell.

    What follows a match does not count: it is the first one that is asked for.
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
def hash_symbol_sets(ends: Any, symbols: Any, codes: Any) -> Any:
    """Return a number for the set of symbols of each event, whatever their order."""
    out = np.zeros(len(ends) - 1, np.uint64)
    for event in range(len(out)):
        total = np.uint64(0)
        for place in range(ends[event], ends[event + 1]):
            total += codes[symbols[place]]
        out[event] = total
    return out


@jit_lean
def update_mean_gaps(
    starts: Any, rows: Any, positions: Any, recent: Any, last: Any, mean: Any, count: Any, out: Any
) -> None:
    """Carry the mean gap between a key's events on, in positions and in time, and note it at every entry."""
    for segment in range(len(rows)):
        key = rows[segment]
        for entry in range(starts[segment], starts[segment + 1]):
            for measure in range(2):
                gap = float(positions[measure, entry] - last[measure, key])
                if count[key] > 0:
                    out[3 + measure, entry] = gap
                if count[key] == 1:
                    mean[measure, key] = gap
                elif count[key] > 1:
                    mean[measure, key] += (gap - mean[measure, key]) / min(count[key], recent)
                out[measure, entry] = mean[measure, key]
                last[measure, key] = positions[measure, entry]
            out[2, entry] = min(count[key], recent)
            count[key] += 1
