"""Baselines of benchmarks: the plainest loops that answer the same question.

`scan` checks every conjunction and leaves it at the first literal that fails; `scan_sets` does the same where a literal
may accept several intervals; `write_pairs` knows the answer and only writes it down. Values and ends are float64,
absent is NaN (which no interval holds). They must not be improved: ratios to them are compared over years.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int, Int32Array, IntArray


@jit
def scan(
    starts: IntArray, columns: IntArray, lows: FloatArray, highs: FloatArray, cells: FloatArray, out: Int32Array
) -> Int:
    """Write the rows that one event satisfies to `out` and return how many.

    Row `r` has the literals from `starts[r]` up to `starts[r + 1]`: the event's cell in `columns[i]` lies in
    `lows[i] .. highs[i]`.
    """
    count = 0
    for row in range(len(starts) - 1):
        holds = True
        for at in range(starts[row], starts[row + 1]):
            cell = cells[columns[at]]
            if not (lows[at] <= cell <= highs[at]):
                holds = False
                break
        if holds:
            out[count] = row
            count += 1
    return count


@jit
def scan_sets(
    starts: IntArray, columns: IntArray, parts: IntArray, lows: FloatArray, highs: FloatArray, cells: FloatArray,
    out: Int32Array,
) -> Int:  # fmt: skip
    """Do the same where literal `i` accepts the intervals from `parts[i]` up to `parts[i + 1]`."""
    count = 0
    for row in range(len(starts) - 1):
        holds = True
        for at in range(starts[row], starts[row + 1]):
            cell = cells[columns[at]]
            some = False
            for part in range(parts[at], parts[at + 1]):
                if lows[part] <= cell <= highs[part]:
                    some = True
                    break
            if not some:
                holds = False
                break
        if holds:
            out[count] = row
            count += 1
    return count


@jit
def write_pairs(starts: IntArray, rows: Int32Array) -> tuple[IntArray, Int32Array]:
    """Return the events and rows of all matches; event `e` has the rows from `starts[e]` up to `starts[e + 1]`."""
    events = np.empty(len(rows), np.int64)
    copied = np.empty(len(rows), np.int32)
    for event in range(len(starts) - 1):
        for at in range(starts[event], starts[event + 1]):
            events[at] = event
            copied[at] = rows[at]
    return events, copied
