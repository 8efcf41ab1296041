"""Which segments are merged, and how their live subscriptions become one segment's rows.

As in any log-structured store, a segment is merged with the smaller ones behind it once they add up to a fixed part of
it (`EngineTuning.growth`): then each subscription is merged a logarithmic number of times. A segment of which too
many are deleted is built again by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.engine.compile.row_table import RowTable
from tidings.engine.compile.source_text import FilterSources
from tidings.engine.ids import Ids
from tidings.engine.merge import extract_table, merge_tables
from tidings.engine.prune import prune_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidings.engine.compile.draft import FilterDraft
    from tidings.engine.compile.source_text import FilterSource
    from tidings.engine.segment import Segment
    from tidings.engine.state import LiveSegment
    from tidings.engine.tuning import EngineTuning
    from tidings.kernels.array_types import IntArray
    from tidings.model import Filter


class MergedRows(NamedTuple):
    """The live rows of several segments; `new_slots` maps each segment's slots to those of the whole, or to -1."""

    table: RowTable
    ids: Ids
    sources: FilterSources
    new_slots: list[IntArray]


def sort_by_size(parts: Sequence[LiveSegment]) -> tuple[LiveSegment, ...]:
    """Return the segments, the largest first."""
    return tuple(sorted(parts, key=len, reverse=True))


def choose_merge(parts: Sequence[LiveSegment], growth: int) -> list[LiveSegment]:
    """Return the first segment that is at most `growth` times as large as all after it, and those after it.

    `parts` are sorted by size; the result is empty when no segment is that small.
    """
    rest = sum(map(len, parts))
    for place, part in enumerate(parts):
        rest -= len(part)
        if rest and len(part) <= growth * rest:
            return list(parts[place:])
    return []


def choose_work(parts: Sequence[LiveSegment], tuning: EngineTuning) -> list[LiveSegment]:
    """Return what the merging thread is to do next: segments to merge, or one of which too many are deleted."""
    merge = choose_merge(parts, tuning.growth)
    if len(merge) > 1:
        return merge
    return [part for part in parts if part.deleted_count > tuning.waste * len(part.segment)][:1]


def merge_parts(
    parts: Sequence[LiveSegment], bound_filter: Callable[[Segment, int], Filter], draft: FilterDraft
) -> MergedRows:
    """Return the live rows of some segments.

    Filters that are kept as trees are compiled again into `draft`, which is empty: their code cannot be taken apart.
    `bound_filter` returns the bound filter of a slot.
    """
    tables, new_slots, live_slots = [], [], []
    sources: dict[int, FilterSource] = {}
    count = 0
    for part in parts:
        segment, live = part.segment, part.list_live_slots()
        new_slot = np.full(len(segment), -1, np.int64)
        new_slot[live] = np.arange(count, count + len(live))
        count += len(live)
        table = extract_table(segment, new_slot)
        tables.append(prune_table(table, draft.tuning) if part.deleted_count else table)
        sources |= segment.sources.renumber(new_slot)
        for slot in segment.list_tree_slots():
            if new_slot[slot] >= 0:
                draft.add(int(new_slot[slot]), bound_filter(segment, slot))
        new_slots.append(new_slot)
        live_slots.append(live)
    if draft.trees or len(draft.row_slot):
        tables.append(RowTable.from_draft(draft))
    return MergedRows(
        merge_tables(tables, draft.tuning),
        Ids.concatenate([part.segment.ids for part in parts], live_slots),
        FilterSources.from_slots(dict(sorted(sources.items()))),
        new_slots,
    )
