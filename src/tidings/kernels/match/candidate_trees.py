"""Boolean trees decided for pairs of an event and a tree, where a row has found the few that may hold."""

from __future__ import annotations

from typing import Any

from tidings.kernels.jit import jit
from tidings.kernels.match.trees import run_for_event


@jit
def decide_pairs(
    code: Any,
    starts: Any,
    negated: Any,
    events: Any,
    places: Any,
    cells: Any,
    many_start: Any,
    many_low: Any,
    many_high: Any,
    leaf_column: Any,
    leaf_op: Any,
    leaf_low: Any,
    leaf_high: Any,
    union_start: Any,
    union_low: Any,
    union_high: Any,
    memo: Any,
    out: Any,
) -> Any:
    """Write whether the tree at `places[i]` holds for `events[i]`; `events` ascends, and the rest is as in `run_one`.

    What an event's trees share is decided once. `memo` must be zeros.
    """
    first, stamp = 0, 0
    while first < len(events):
        last = first + 1
        while last < len(events) and events[last] == events[first]:
            last += 1
        stamp += 1
        run_for_event(
            code,
            starts,
            negated,
            places[first:last],
            cells[events[first]],
            many_start,
            many_low,
            many_high,
            leaf_column,
            leaf_op,
            leaf_low,
            leaf_high,
            union_start,
            union_low,
            union_high,
            memo,
            stamp,
            out[first:last],
        )
        first = last
