"""The final revision of the candidates tree: which candidates' remaining tests an event satisfies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, Int32Array, IntArray


@jit
def revise(rows: Int32Array, spans: IntArray, entries: FloatArray, bounds: IntArray, values: FloatArray) -> Int32Array:
    """Return those of the rows whose every test some value satisfies.

    Row `r` has the entries from `spans[r, 0]`, `spans[r, 1]` of them. An entry is a column, a low and a high end,
    both closed; where the column is written as `-1 - column`, the next entry is a further way to satisfy the same
    test. The event's values of a column are those from `bounds[column, 0]` up to `bounds[column, 1]`.
    """
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
