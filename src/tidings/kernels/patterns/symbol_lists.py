"""Symbols of events as CSR lists, as runs read them.

    starts    [ 0     2  2        5 ]        event 0 has the symbols 4 and 7, event 1 none, event 2 has 1, 4 and 9
    symbols   [ 4  7   | 1  4  9 ]

So an event costs two reads and its own symbols, whatever the number of patterns. Each kernel goes through the lists
twice at most: once to count, once to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, IntArray


@jit
def group_by_event(events: IntArray, symbols: IntArray, count: Int) -> tuple[IntArray, IntArray]:
    """Return the CSR lists of `count` events from pairs in any order: a counting sort, stable within an event."""
    starts = np.zeros(count + 1, np.int64)
    for at in range(len(events)):
        starts[events[at] + 1] += 1
    for event in range(count):
        starts[event + 1] += starts[event]
    places, ordered = starts[:-1].copy(), np.empty(len(symbols), np.int64)
    for at in range(len(events)):
        ordered[places[events[at]]] = symbols[at]
        places[events[at]] += 1
    return starts, ordered


@jit
def take_lists(starts: IntArray, symbols: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Gather the CSR lists `numbers[0]`, `numbers[1]`, ... (repeats allowed): expand event kinds, or select events."""
    out = np.zeros(len(numbers) + 1, np.int64)
    for event in range(len(numbers)):
        out[event + 1] = out[event] + starts[numbers[event] + 1] - starts[numbers[event]]
    copied, at = np.empty(out[-1], np.int64), 0
    for event in range(len(numbers)):
        for place in range(starts[numbers[event]], starts[numbers[event] + 1]):
            copied[at] = symbols[place]
            at += 1
    return out, copied


@jit
def rename_symbols(starts: IntArray, symbols: IntArray, names: IntArray) -> tuple[IntArray, IntArray]:
    """Return the lists with symbol `s` as `names[s]`; those whose name is -1 are left out."""
    out, renamed, at = np.zeros(len(starts), np.int64), np.empty(len(symbols), np.int64), 0
    for event in range(len(starts) - 1):
        for place in range(starts[event], starts[event + 1]):
            if names[symbols[place]] >= 0:
                renamed[at] = names[symbols[place]]
                at += 1
        out[event + 1] = at
    return out, renamed[:at].copy()
