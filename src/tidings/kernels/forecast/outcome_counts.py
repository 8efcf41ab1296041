"""What estimators learn from: which label came in which cell of a course, and how long the next match took.

Entries lie key by key: segment `s` is `starts[s]:starts[s + 1]` of key `rows[s]` (see `forecasts`). Counts are
weights, so that old entries may count for less. A wait that has not ended is censored: it counts as "longer than
observed". Cost: one pass over the entries each.

    entries    | k0 k1 k2 k3 k4 | k5 k6 |        one segment for each key, in the order of the stream
                 `done` 2  ^ match               k0 and k1 wait 3 and 2 entries; k4 waits longer than 0

`done` is how many are counted now. The caller takes the oldest, which are final in every measure; k2 is counted with a
later call although its match is seen already, and so no entry is counted twice.

Groups of arrays are plain tuples in the order of the classes below, as in `forecasts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidings.kernels.jit import jit_lean

if TYPE_CHECKING:
    from tidings.kernels.array_types import BoolArray, FloatArray, Int, Int32Array, IntArray


class NewEntries(NamedTuple):
    """Entries whose moves are counted: those from the `first` of their segment on; the ones before were counted."""

    starts: IntArray
    rows: IntArray
    first: IntArray
    weights: FloatArray


class KnownEntries(NamedTuple):
    """Entries whose waits are counted: the first `done` of each segment, the cell after each, and its weight."""

    starts: IntArray
    done: IntArray
    cells: Int32Array
    weights: FloatArray


class WaitBins(NamedTuple):
    """The bin of each length of a wait, up to the longest that is counted, and how many bins there are."""

    bins: IntArray
    edges: Int


@jit_lean
def count_moves(
    entries: NewEntries, kinds: IntArray, label_of: Int32Array, width: Int, state: Int32Array, cells: Int32Array,
    moves: FloatArray,
) -> None:  # fmt: skip
    """Add up the weight of each label in each cell."""
    starts, rows, first, weights = entries
    for segment in range(len(rows)):
        begin = starts[segment] + first[segment]
        cell = state[rows[segment]] if first[segment] == 0 else cells[begin - 1]
        for entry in range(begin, starts[segment + 1]):
            moves[cell * width + label_of[kinds[entry]]] += weights[entry]
            cell = cells[entry]


@jit_lean
def count_changes(
    entries: NewEntries, chain_state_of: IntArray, width: Int, before: IntArray, cells: Int32Array, hit: BoolArray,
    moves: FloatArray,
) -> None:  # fmt: skip
    """Add up, for a tracked course, which cell came after which; a match counts as the last label."""
    starts, rows, first, weights = entries
    for segment in range(len(rows)):
        begin = starts[segment] + first[segment]
        cell = chain_state_of[before[segment]] if first[segment] == 0 else chain_state_of[cells[begin - 1]]
        for entry in range(begin, starts[segment + 1]):
            label = width - 1 if hit[entry] else chain_state_of[cells[entry]]
            moves[cell * width + label] += weights[entry]
            cell = chain_state_of[cells[entry]]


@jit_lean
def count_waits(entries: KnownEntries, hit: BoolArray, scale: WaitBins, waits: FloatArray) -> None:
    """Add up the waits of the first `done` entries of each segment: after how many entries the next match came.

    Codes below `edges` are bins of waits that ended; from `edges` on, a wait is censored: no match came in as many bins
    as have been observed. A pass backwards through a segment knows the next match of every entry.
    """
    starts, done, cells, weights = entries
    bins, edges = scale
    most, codes = len(bins) - 1, 2 * edges + 1
    for segment in range(len(done)):
        begin, end = starts[segment], starts[segment + 1]
        following = -1
        for entry in range(end - 1, begin - 1, -1):
            if entry < begin + done[segment]:
                observed = min(end - 1 - entry, most)  # entries of the key after this one
                if following >= 0 and following - entry <= most:
                    code = bins[following - entry]
                else:
                    code = edges + bins[observed + 1] if observed < most else 2 * edges
                waits[cells[entry] * codes + code] += weights[entry]
            if hit[entry]:  # only now: the match at an entry is no answer to its own wait
                following = entry


@jit_lean
def note_next_matches(
    starts: IntArray, hit: BoolArray, at: IntArray, times: IntArray, next_at: IntArray, next_time: IntArray
) -> None:
    """Write for every entry the position and time of the next match of its key; -1 where there is none."""
    for segment in range(len(starts) - 1):
        following = -1
        for entry in range(starts[segment + 1] - 1, starts[segment] - 1, -1):
            next_at[entry] = at[following] if following >= 0 else -1
            next_time[entry] = times[following] if following >= 0 else 0
            if hit[entry]:
                following = entry


@jit_lean
def count_later(
    entries: KnownEntries, at: IntArray, now: Int, following: tuple[IntArray, IntArray], near: IntArray, gaps: Int,
    scale: WaitBins, waits: FloatArray,
) -> None:  # fmt: skip
    """Add up waits in events of the whole stream; `near` is the bin of the mean gap between the key's own events.

    `following` has the position and the time of each entry's next match, as `note_next_matches` writes them.
    """
    starts, done, cells, weights = entries
    next_at, _ = following
    bins, edges = scale
    most, codes = len(bins) - 1, 2 * edges + 1
    for segment in range(len(done)):
        for entry in range(starts[segment], starts[segment] + done[segment]):
            observed = min(now - 1 - at[entry], most)  # events of the stream after this one
            if next_at[entry] >= 0 and next_at[entry] - at[entry] <= most:
                code = bins[next_at[entry] - at[entry]]
            else:
                code = edges + bins[observed + 1] if observed < most else 2 * edges
            waits[(cells[entry] * gaps + near[entry]) * codes + code] += weights[entry]


@jit_lean
def count_span(
    entries: KnownEntries, times: IntArray, until: Int, following: tuple[IntArray, IntArray], soon: IntArray, gaps: Int,
    span: Int, out: FloatArray,
) -> None:  # fmt: skip
    """Add up whether a match came within a span of time: column 0 yes, 1 not known yet, 2 no."""
    starts, done, cells, weights = entries
    next_at, next_time = following
    for segment in range(len(done)):
        for entry in range(starts[segment], starts[segment] + done[segment]):
            row = (cells[entry] * gaps + (soon[entry] if gaps > 1 else 0)) * 3
            if next_at[entry] >= 0 and next_time[entry] - times[entry] <= span:
                out[row] += weights[entry]
            else:
                out[row + (2 if until - times[entry] >= span else 1)] += weights[entry]
