"""Merging segments: which ones, and how the rows of their live subscriptions become one table.

As in any log-structured store, a segment is merged with the smaller ones behind it once they add up to a fixed part of
it (`EngineTuning.growth`): then each subscription is merged a logarithmic number of times. A segment of which too
many are deleted is built again by itself.

The rows go into one code space for each column. Codes are moved by arithmetic on ranks, column by column; nothing is
parsed or compiled again but the filters that are kept as trees, whose code cannot be taken apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.arrays import compute_starts, invert, list_owners
from tidings.engine.compile.code_spaces import CodeSpace, RankedSpace, merge_spaces
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.row_table import Literals, RowTable, TreeTable
from tidings.engine.compile.source_text import FilterSource, FilterSources
from tidings.engine.ids import Ids
from tidings.engine.prune import prune_table
from tidings.engine.tuning import DEFAULT_TUNING, EngineTuning
from tidings.kernels.match import row_codes as kernel
from tidings.kernels.match.index_build import gather_rows
from tidings.kernels.match.layout import OP_BITS, OP_MASK, IndexRows
from tidings.kernels.match.literals import UNION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tidings.engine.compile.draft import FilterDraft
    from tidings.engine.exact.exact_checks import ExactItem
    from tidings.engine.segment import Segment
    from tidings.engine.state import LiveSegment
    from tidings.kernels.array_types import CodeArray, IntArray
    from tidings.model import Filter, TextTest

EMPTY_LOW_16 = 0xFFFF
"""The low end of an interval that accepts nothing, in codes of 16 bits."""


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
) -> tuple[RowTable, Ids, FilterSources, list[IntArray]]:
    """Return the live rows of some segments as one table, and for each segment the new slot of each slot, or -1.

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
        # Without deletions every end point is still used, and pruning would be passes over all literals for nothing.
        tables.append(prune_table(table, draft.tuning) if part.deleted_count else table)
        sources |= segment.sources.renumber(new_slot)
        for slot in segment.list_tree_slots():
            if new_slot[slot] >= 0:
                draft.add(int(new_slot[slot]), bound_filter(segment, slot))
        new_slots.append(new_slot)
        live_slots.append(live)
    if draft.trees or len(draft.row_slot):
        tables.append(RowTable.from_draft(draft))
    ids = Ids.concatenate([part.segment.ids for part in parts], live_slots)
    return merge_tables(tables, draft.tuning), ids, FilterSources.from_slots(dict(sorted(sources.items()))), new_slots


def extract_table(segment: Segment, new_slot: IntArray) -> RowTable:
    """Return the rows of a segment's live slots: `new_slot` is the new number of each slot, -1: deleted.

    Rows that only find a tree are left out: the tree is compiled again, and brings its row.
    """
    if segment.candidate_trees is not None:
        new_slot = new_slot.copy()
        new_slot[segment.candidate_trees.forest.slots] = -1
    rows, copy, checks = segment.index.rows, segment.index.copy, segment.exact_checks
    count = len(rows.start) - 1
    owner = list_owners(rows.entry) if len(rows.entry) else np.arange(count)
    slots = new_slot[rows.slot]
    live = slots >= 0
    if len(copy):
        live &= copy[owner] == 0
    live_rows, place_of_entry = np.unique(owner[live], return_inverse=True)
    place = invert(live_rows, count, missing=-1)
    has_live_row = place[checks.row] >= 0
    start, literals = _extract_literals(rows, live_rows)
    return RowTable(
        columns=segment.columns,
        spaces=segment.spaces,
        start=start,
        literals=literals,
        entry=compute_starts(np.bincount(place_of_entry, minlength=len(live_rows)), np.uint32),
        slot=slots[live].astype(np.uint32),
        item_row=place[checks.row[has_live_row]].astype(np.uint32),
        item_number=checks.item[has_live_row],
        items=checks.items,
        patterns={name: list(automaton.tests) for name, automaton in segment.automata.items()},
    )


def _extract_literals(rows: IndexRows, live_rows: IntArray) -> tuple[CodeArray, Literals]:
    """Return where the literals of some rows begin, and these literals, in codes of 32 bits."""
    literal = rows.literal.reshape(-1, 3)
    wide = [np.ascontiguousarray(literal[:, side]).astype(np.uint32) for side in range(3)]
    # A writable copy: the kernels that build are compiled for writable arrays only.
    start, head, low, high = gather_rows(live_rows, rows.start.copy(), *wide)
    union_low, union_high = rows.union_low.astype(np.uint32), rows.union_high.astype(np.uint32)
    if literal.dtype == np.uint16:
        low[((head & UNION) == 0) & (low == EMPTY_LOW_16)] = kernel.EMPTY_LOW
        union_low[union_low == EMPTY_LOW_16] = kernel.EMPTY_LOW
    return start, Literals(head, low, high, rows.union_start.copy(), union_low, union_high)


def merge_tables(tables: Sequence[RowTable], tuning: EngineTuning = DEFAULT_TUNING) -> RowTable:
    """Return one table with the rows of all; their slots are already numbered as in the result.

    At most one of the tables has trees: those of merged segments are compiled again, all together.
    """
    columns = tuple(dict.fromkeys(column for table in tables for column in table.columns))
    merged_tests: dict[str, dict[TextTest, None]] = {}
    for table in tables:
        for name, tests in table.patterns.items():
            merged_tests.setdefault(name, {}).update(dict.fromkeys(tests))
    patterns = {name: list(tests) for name, tests in merged_tests.items()}
    spaces, ranks = _merge_code_spaces(tables, columns, patterns, tuning)
    sizes = {column: len(space) for column, space in zip(columns, spaces, strict=True)}
    items: dict[ExactItem, int] = {}
    new_items = [np.array([items.setdefault(item, len(items)) for item in table.items], np.uint32) for table in tables]
    moved = [_move_table(*parts, sizes) for parts in zip(tables, ranks, new_items, strict=True)]
    bases = compute_starts([len(table.start) - 1 for table in tables])
    rows = [table.item_row + base for table, base in zip(tables, bases[:-1], strict=True)]
    return RowTable(
        columns=columns,
        spaces=spaces,
        start=_concatenate_starts([table.start for table in tables]),
        literals=_concatenate_literals([table.literals for table in moved]),
        entry=_concatenate_starts([table.entry for table in tables]),
        slot=np.concatenate([table.slot for table in tables]),
        item_row=np.concatenate(rows).astype(np.uint32),
        item_number=np.concatenate([table.item_number for table in moved]),
        items=list(items),
        patterns=patterns,
        trees=next((table.trees for table in moved if table.trees is not None), None),
        candidate_trees=next((table.candidate_trees for table in moved if table.candidate_trees is not None), None),
    )


def _merge_code_spaces(
    tables: Sequence[RowTable], columns: Sequence[Column], patterns: dict[str, list[TextTest]], tuning: EngineTuning
) -> tuple[tuple[CodeSpace, ...], list[dict[Column, IntArray]]]:
    """Return a space for each column, and for each table the new ranks of its end points."""
    spaces: list[CodeSpace] = []
    ranks: list[dict[Column, IntArray]] = [{} for _ in tables]
    for column in columns:
        holders = [table_number for table_number, table in enumerate(tables) if column in table.columns]
        own = [tables[table_number].spaces[tables[table_number].columns.index(column)] for table_number in holders]
        if column.view is View.PATTERNS:  # its end points are ids of patterns, which are numbered anew
            number = {test: place for place, test in enumerate(patterns[column.attribute])}
            space: CodeSpace = RankedSpace(np.arange(len(number), dtype=np.float64))
            new_ranks = []
            for table_number, old in zip(holders, own, strict=True):
                tests = tables[table_number].patterns[column.attribute]
                new_ranks.append(np.array([number[tests[id]] for id in old.decode(np.arange(len(old)))], np.int64))
        else:
            space, new_ranks = merge_spaces(own, tuning)
        spaces.append(space)
        for table_number, rank in zip(holders, new_ranks, strict=True):
            ranks[table_number][column] = rank
    return tuple(spaces), ranks


def _move_table(
    table: RowTable, ranks: dict[Column, IntArray], new_item: CodeArray, sizes: dict[Column, int]
) -> RowTable:
    """Return a table with literals, items and trees in the numbers of the whole.

    `ranks` are the new ranks of end points, `new_item` the new numbers of items, and `sizes` the sizes of the new
    spaces, in the order of the new columns.
    """
    place = {column: number for number, column in enumerate(sizes)}
    numbers = np.array([place[column] for column in table.columns], np.int64)
    new_sizes = np.array([sizes[column] for column in table.columns], np.int64)

    def move(literals: Literals) -> Literals:
        moved = literals.remap(table.spaces, [ranks[column] for column in table.columns], new_sizes)
        if not len(numbers):
            return moved
        head = (numbers[literals.head >> OP_BITS] << OP_BITS | (literals.head & OP_MASK)).astype(np.uint32)
        return moved._replace(head=head)

    trees, candidate_trees = (
        trees if trees is None else TreeTable(move(trees.leaves), new_item[trees.items], trees.trees)
        for trees in (table.trees, table.candidate_trees)
    )
    return replace(
        table,
        literals=move(table.literals),
        item_number=new_item[table.item_number],
        trees=trees,
        candidate_trees=candidate_trees,
    )


def _concatenate_literals(parts: list[Literals]) -> Literals:
    """Join literals; unions get the numbers of the whole."""
    bases = compute_starts([len(part.union_start) - 1 for part in parts])
    lows = [part.low + np.where(part.head & UNION, base, 0) for part, base in zip(parts, bases[:-1], strict=True)]
    return Literals(
        head=np.concatenate([part.head for part in parts]),
        low=np.concatenate(lows).astype(np.uint32),
        high=np.concatenate([part.high for part in parts]),
        union_start=_concatenate_starts([part.union_start for part in parts]),
        union_low=np.concatenate([part.union_low for part in parts]),
        union_high=np.concatenate([part.union_high for part in parts]),
    )


def _concatenate_starts(parts: Sequence[NDArray[Any]]) -> CodeArray:
    """Join arrays of starts, each of which begins at 0."""
    return compute_starts(np.concatenate([np.diff(part) for part in parts]), np.uint32)
