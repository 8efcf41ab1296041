"""The attributes that the subscriptions of a segment read, found in its rows instead of in their filters.

A test is a literal of a row, an item of the exact checks, or part of a filter that is kept as a tree; only the last
needs the filter itself. Cost: a pass over the literals, and a look at each tree.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.algebra.law.requirement_counts import Demand
from tidings.algebra.law.typed_attribute import collect_attributes
from tidings.engine.arrays import expand_ranges
from tidings.engine.compile.columns import View, to_typed_attribute
from tidings.kernels.match.layout import OP_BITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.engine.segment import Segment
    from tidings.kernels.array_types import IntArray
    from tidings.model import Filter


def count_demands(segment: Segment, slots: IntArray) -> Counter[tuple[str, Demand]]:
    """Count the demands on attributes of lossless subscriptions: the one row of each has all its tests."""
    if not len(slots):
        return Counter()
    rows = segment.row_of[slots]
    start = segment.index.rows.start
    first, sizes = start[rows].astype(np.int64), (start[rows + 1] - start[rows]).astype(np.int64)
    literals = expand_ranges(first, sizes)
    counts = np.bincount(segment.index.rows.literal[3 * literals] >> OP_BITS, minlength=len(segment.columns))
    demands: Counter[tuple[str, Demand]] = Counter()
    for number in np.flatnonzero(counts).tolist():
        column, kind = segment.columns[number], segment.kinds[number]
        demanded = None if column.view in (View.EXISTS, View.NULL) else kind
        demands[column.attribute, Demand(demanded, column.unit)] += int(counts[number])
    return demands


def find_reading_slots(
    segment: Segment, attributes: frozenset[TypedAttribute], bound_filter: Callable[[Segment, int], Filter]
) -> IntArray:
    """Return the slots whose filters test one of the attributes; `bound_filter` returns the bound filter of a slot."""
    rows, checks = segment.index.rows, segment.exact_checks
    columns = [number for number, column in enumerate(segment.columns) if to_typed_attribute(column) in attributes]
    literals = np.flatnonzero(np.isin(rows.literal[::3] >> OP_BITS, columns))
    items = [at for at, item in enumerate(checks.items) if not attributes.isdisjoint(collect_attributes(item.filter))]
    reading_rows: list[NDArray[Any]] = [
        np.searchsorted(rows.start, literals, "right") - 1,
        checks.row[np.isin(checks.item, items)],
    ]
    slots, _ = segment.list_slots(np.unique(np.concatenate(reading_rows).astype(np.int64)))
    trees = [
        slot
        for slot in segment.list_tree_slots()
        if not attributes.isdisjoint(collect_attributes(bound_filter(segment, slot)))
    ]
    return np.unique(np.concatenate([slots, np.array(trees, np.int64)]))
