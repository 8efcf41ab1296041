"""Boolean trees decided for pairs of an event and a tree, where a row has found the few that may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.kernels.jit import jit
from tidings.kernels.match.trees import run_for_event

if TYPE_CHECKING:
    from tidings.kernels.array_types import BoolArray, IntArray
    from tidings.kernels.match.layout import EventCells, ForestCode, LeafArrays


@jit
def decide_pairs(
    forest: ForestCode, leaves: LeafArrays, cells: EventCells, events: IntArray, places: IntArray, memo: IntArray,
    out: BoolArray,
) -> None:  # fmt: skip
    """Write whether the tree at `places[i]` holds for `events[i]`; `events` ascends and `memo` is all zeros.

    The pairs of one event are decided together, so that leaves and sub-trees which its trees share are decided once.
    """
    first, stamp = 0, 0
    while first < len(events):
        last = first + 1
        while last < len(events) and events[last] == events[first]:
            last += 1
        stamp += 1
        run_for_event(forest, leaves, cells, events[first], places[first:last], memo, stamp, out[first:last])
        first = last
