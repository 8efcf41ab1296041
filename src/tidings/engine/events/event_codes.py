"""Encoding events: the codes of a batch of events in the columns of one segment.

A cell is the code of the one value that an event has in a column; where it has several, or a range, the cell points
into a list of intervals of codes (`kernels.match.layout.EventCells`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.engine.compile.encoders import HIGH_OPEN, LOW_OPEN, NO_HIGH, NO_LOW
from tidings.kernels.match.layout import EventCells
from tidings.kernels.match.literals import ABSENT, SEVERAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tidings.engine.compile.code_spaces import CodeSpace
    from tidings.engine.compile.columns import Column, EventColumn, EventColumns


def encode_events(
    batch: EventColumns, places: Mapping[Column, int], spaces: Sequence[CodeSpace], events: int
) -> EventCells:
    """Return the codes of all events; `places` are the numbers of columns, and columns not in `batch` are absent."""
    cell = np.full((events, len(spaces)), ABSENT, np.uint32)
    plain = np.ones(events, np.uint8)
    starts = [np.zeros(1, np.int64)]
    lows: list[NDArray[np.uint32]] = []
    highs: list[NDArray[np.uint32]] = []
    for column, values in batch.items():
        number = places.get(column)
        if number is None:
            continue
        space = spaces[number]
        if values.starts is None and values.high is None:
            cell[:, number] = space.encode(values.low)
            continue
        low, high = _encode_ends(values, space)
        begin = values.starts if values.starts is not None else np.arange(events + 1)
        counts = np.diff(begin)
        first = np.minimum(begin[:-1], max(len(low) - 1, 0))
        if not len(low):
            continue
        single = (counts == 1) & (low[first] == high[first])
        cell[single, number] = low[first[single]]
        many = np.flatnonzero((counts >= 1) & ~single & (low[first] != ABSENT))
        if not len(many):
            continue
        plain[many] = 0
        base = sum(map(len, lows))
        room = sum(map(len, starts)) - 1
        cell[many, number] = SEVERAL | np.arange(room, room + len(many)).astype(np.uint32)
        sizes = counts[many]
        ends = np.cumsum(sizes)
        parts = np.repeat(begin[many] - (ends - sizes), sizes) + np.arange(ends[-1])
        starts.append(base + ends)
        lows.append(low[parts])
        highs.append(high[parts])
    none = np.zeros(0, np.uint32)
    return EventCells(
        cell, plain, np.concatenate(starts), np.concatenate([none, *lows]), np.concatenate([none, *highs])
    )


def _encode_ends(values: EventColumn, space: CodeSpace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the codes of both ends of each value."""
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
