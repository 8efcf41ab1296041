"""Encoding events: the codes of a batch of events in the columns of one segment.

A cell is the code of the one value that an event has in a column; where it has several, or a range, the cell points
into a list of intervals of codes (`kernels.match.layout.EventCells`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.engine.arrays import compute_starts, expand_ranges
from tidings.engine.compile.encoders import HIGH_OPEN, LOW_OPEN, NO_HIGH, NO_LOW
from tidings.kernels.match.layout import EventCells
from tidings.kernels.match.literals import ABSENT, SEVERAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.engine.compile.code_spaces import CodeSpace
    from tidings.engine.compile.columns import Column, EventColumn, EventColumns
    from tidings.kernels.array_types import CodeArray, IntArray

_NO_STARTS, _NO_CODES = np.zeros(1, np.int64), np.zeros(0, np.uint32)


def encode_events(
    batch: EventColumns, numbers: Mapping[Column, int], spaces: Sequence[CodeSpace], events: int
) -> EventCells:
    """Return the codes of all events; `numbers` are those of columns, and columns not in `batch` are absent."""
    cell = np.full((events, len(spaces)), ABSENT, np.uint32)
    plain = np.ones(events, np.uint8)
    sizes: list[IntArray] = []
    lows: list[CodeArray] = []
    highs: list[CodeArray] = []
    for column, values in batch.items():
        number = numbers.get(column)
        if number is None:
            continue
        if values.starts is None and values.high is None:
            cell[:, number] = spaces[number].encode(values.low)
            continue
        codes, counts, low, high = _encode_lists(values, spaces[number], events)
        many = codes == SEVERAL
        plain[many] = 0
        first = sum(map(len, sizes))
        codes[many] |= np.arange(first, first + len(counts)).astype(np.uint32)
        cell[:, number] = codes
        sizes.append(counts)
        lows.append(low)
        highs.append(high)
    if not sizes:  # nearly always, and 4 us of 63 for one event
        return EventCells(cell, plain, _NO_STARTS, _NO_CODES, _NO_CODES)
    return EventCells(cell, plain, compute_starts(np.concatenate(sizes)), np.concatenate(lows), np.concatenate(highs))


def _encode_lists(
    values: EventColumn, space: CodeSpace, events: int
) -> tuple[CodeArray, IntArray, CodeArray, CodeArray]:
    """Return the code of each event, `SEVERAL` where it has more than a point, and what those have instead.

    That is how many intervals each has, and the low and the high codes of all of them.
    """
    low, high = _encode_ends(values, space)
    begin = values.starts if values.starts is not None else np.arange(events + 1)
    counts = np.diff(begin)
    codes = np.full(events, ABSENT, np.uint32)
    if not len(low):
        return codes, counts[:0], low, high
    first = np.minimum(begin[:-1], len(low) - 1)
    # A list of one point is a plain code: an event without lists of several takes the faster way through all columns.
    single = (counts == 1) & (low[first] == high[first])
    codes[single] = low[first[single]]
    many = np.flatnonzero((counts >= 1) & ~single & (low[first] != ABSENT))
    codes[many] = SEVERAL
    parts = expand_ranges(begin[many], counts[many])
    return codes, counts[many], low[parts], high[parts]


def _encode_ends(values: EventColumn, space: CodeSpace) -> tuple[CodeArray, CodeArray]:
    low = space.encode(values.low)
    if values.high is None or values.open is None:
        return low, low
    high = space.encode(values.high)
    absent = low == ABSENT
    flags = values.open
    low = np.where(flags & NO_LOW, 0, low + ((flags & LOW_OPEN) & low & 1)).astype(np.uint32)
    high = np.where(flags & NO_HIGH, 2 * len(space), high - (((flags & HIGH_OPEN) >> 1) & high & 1)).astype(np.uint32)
    low[absent], high[absent] = ABSENT, ABSENT
    return low, high
