"""The final revision of the candidates tree: which candidates' remaining tests an event satisfies.

Tests are intervals of float64, row by row in one table of entries; the event's values lie column by column:

    spans     row r: first entry, how many          entries   [ column  low  high ]
    bounds    column c: where its values begin, end   values    [ v0 v1 | v2 | ... ]

A column below zero, `-1 - column`, marks an alternative: the next entry is another way to pass the same test. A row is
left at its first test that no value passes; so the cost is the entries up to there, for each candidate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int32Array, IntArray


@jit
def revise(rows: Int32Array, spans: IntArray, entries: FloatArray, bounds: IntArray, values: FloatArray) -> Int32Array:
    """Return those of the rows whose every test some value satisfies; both ends of an entry are closed."""
    kept = np.empty(len(rows), np.int32)
    count = 0
    for place in range(len(rows)):
        row = rows[place]
        at = spans[row, 0]
        end = at + spans[row, 1]
        alive = True
        while alive and at < end:
            alive = False
            more = True
            while more:
                column = np.int64(entries[at, 0])
                more = column < 0
                if more:
                    column = -1 - column
                if not alive:
                    low = entries[at, 1]
                    high = entries[at, 2]
                    for which in range(bounds[column, 0], bounds[column, 1]):
                        if low <= values[which] <= high:
                            alive = True
                            break
                at += 1
        if alive:
            kept[count] = row
            count += 1
    return kept[:count]
