"""Merging tables: the rows of several segments as one table, in one code space for each column.

Codes are moved by arithmetic on ranks, column by column; nothing is parsed or compiled again but the filters that are
kept as trees, whose code cannot be taken apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.code_spaces import RankedSpace, merge_spaces
from tidings.engine.compile.columns import View
from tidings.engine.compile.row_table import Literals, RowTable, TreeTable
from tidings.engine.tuning import DEFAULT_TUNING
from tidings.kernels.match import row_codes as kernel
from tidings.kernels.match.index_build import gather_rows
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import UNION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tidings.engine.compile.code_spaces import CodeSpace
    from tidings.engine.compile.columns import Column
    from tidings.engine.exact.exact_checks import ExactItem
    from tidings.engine.segment import Segment
    from tidings.engine.tuning import EngineTuning
    from tidings.kernels.array_types import CodeArray, IntArray
    from tidings.model import Kind, TextTest

EMPTY_LOW_16 = 0xFFFF
"""The low end of an interval that accepts nothing, in codes of 16 bits."""


def extract_table(segment: Segment, new_slot: IntArray) -> RowTable:
    """Return the rows of a segment's live slots: `new_slot` is the new number of each slot, -1: deleted.

    Rows that only find a tree are left out: the tree is compiled again, and brings its row.
    """
    if segment.candidate_trees is not None:
        new_slot = new_slot.copy()
        new_slot[segment.candidate_trees.forest.slots] = -1
    rows, index = segment.index.rows, segment.index
    count = len(rows.start) - 1
    entry = rows.entry if len(rows.entry) else np.arange(count + 1, dtype=np.uint32)
    owner = np.repeat(np.arange(count), np.diff(entry))
    slots = new_slot[rows.slot]
    live = slots >= 0
    if len(index.copy):
        live &= index.copy[owner] == 0
    live_rows = np.unique(owner[live])
    place = np.full(count, -1, np.int64)
    place[live_rows] = np.arange(len(live_rows))
    new_entry = np.zeros(len(live_rows) + 1, np.uint32)
    np.cumsum(np.bincount(place[owner[live]], minlength=len(live_rows)), out=new_entry[1:])
    literal = rows.literal.reshape(-1, 3)
    wide = [np.ascontiguousarray(literal[:, side]).astype(np.uint32) for side in range(3)]
    # A writable copy: the kernels that build are compiled for writable arrays only.
    start, head, low, high = gather_rows(live_rows, rows.start.copy(), *wide)
    union_low, union_high = rows.union_low.astype(np.uint32), rows.union_high.astype(np.uint32)
    if literal.dtype == np.uint16:
        low[((head & UNION) == 0) & (low == EMPTY_LOW_16)] = kernel.EMPTY_LOW
        union_low[union_low == EMPTY_LOW_16] = kernel.EMPTY_LOW
    checks = segment.exact_checks
    is_live = place[checks.row] >= 0
    return RowTable(
        columns=segment.columns,
        kinds=segment.kinds,
        spaces=segment.spaces,
        start=start,
        literals=Literals(head, low, high, rows.union_start.copy(), union_low, union_high),
        entry=new_entry,
        slot=slots[live].astype(np.uint32),
        item_row=place[checks.row[is_live]].astype(np.uint32),
        item_number=checks.item[is_live],
        items=checks.items,
        patterns={name: list(automaton.tests) for name, automaton in segment.automata.items()},
    )


def merge_tables(tables: Sequence[RowTable], tuning: EngineTuning = DEFAULT_TUNING) -> RowTable:
    """Return one table with the rows of all; their slots are already numbered as in the result.

    At most one of the tables has trees: those of merged segments are compiled again, all together.
    """
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    patterns = _merge_patterns(tables)
    spaces, ranks = _merge_code_spaces(tables, columns, patterns, tuning)
    sizes = np.array([len(space) for space in spaces], np.int64)
    items: dict[ExactItem, int] = {}
    literals: list[Literals] = []
    item_numbers: list[CodeArray] = []
    trees: dict[str, TreeTable] = {}
    union_count = 0
    for table, table_ranks in zip(tables, ranks, strict=True):
        numbers = np.array([columns.index(column) for column in table.columns], np.int64)
        moved = _move_literals(table, table.literals, numbers, table_ranks, sizes)
        base = np.where(moved.head & UNION, union_count, 0)
        literals.append(Literals(moved.head, (moved.low + base).astype(np.uint32), moved.high, *moved.unions))
        union_count += len(moved.union_start) - 1
        number_of = np.array([items.setdefault(item, len(items)) for item in table.items], np.int64)
        item_numbers.append(number_of[table.item_number].astype(np.uint32) if table.items else table.item_number)
        for name, kept in (("trees", table.trees), ("candidate_trees", table.candidate_trees)):
            if kept is not None:
                leaves = _move_literals(table, kept.leaves, numbers, table_ranks, sizes)
                leaf_items = number_of[kept.items].astype(np.uint32) if len(kept.items) else kept.items
                trees[name] = TreeTable(leaves, leaf_items, kept.trees)
    return RowTable(
        columns=tuple(columns),
        kinds=_merge_kinds(tables, columns),
        spaces=tuple(spaces),
        start=_concatenate_starts([table.start for table in tables]),
        literals=_concatenate_literals(literals),
        entry=_concatenate_starts([table.entry for table in tables]),
        slot=np.concatenate([table.slot for table in tables]),
        item_row=_concatenate_rows([table.item_row for table in tables], [len(table.start) - 1 for table in tables]),
        item_number=np.concatenate(item_numbers),
        items=list(items),
        patterns=patterns,
        **trees,
    )


def _merge_patterns(tables: Sequence[RowTable]) -> dict[str, list[TextTest]]:
    """Return the distinct text tests of each attribute."""
    merged: dict[str, dict[TextTest, None]] = {}
    for table in tables:
        for name, tests in table.patterns.items():
            merged.setdefault(name, {}).update(dict.fromkeys(tests))
    return {name: list(tests) for name, tests in merged.items()}


def _merge_code_spaces(
    tables: Sequence[RowTable], columns: list[Column], patterns: dict[str, list[TextTest]], tuning: EngineTuning
) -> tuple[list[CodeSpace], list[dict[Column, IntArray]]]:
    """Return a space for each column, and for each table the new ranks of its end points."""
    spaces: list[CodeSpace] = []
    ranks: list[dict[Column, IntArray]] = [{} for _ in tables]
    for column in columns:
        holders = [at for at, table in enumerate(tables) if column in table.columns]
        own = [tables[at].spaces[tables[at].columns.index(column)] for at in holders]
        if column.view is View.PATTERNS:  # its end points are ids of patterns, which are numbered anew
            number = {test: place for place, test in enumerate(patterns[column.attribute])}
            spaces.append(RankedSpace(np.arange(len(number), dtype=np.float64)))
            for at, space in zip(holders, own, strict=True):
                tests = tables[at].patterns[column.attribute]
                old = space.decode(np.arange(len(space)))
                ranks[at][column] = np.array([number[tests[id]] for id in old], np.int64)
            continue
        space, new_ranks = merge_spaces(own, tuning)
        spaces.append(space)
        for at, rank in zip(holders, new_ranks, strict=True):
            ranks[at][column] = rank
    return spaces, ranks


def _move_literals(
    table: RowTable, literals: Literals, numbers: IntArray, ranks: dict[Column, IntArray], sizes: IntArray
) -> Literals:
    """Return literals of a table with the columns' new `numbers`, and codes of the new spaces of these `sizes`."""
    new_sizes = sizes[numbers] if len(numbers) else sizes
    moved = remap_literals(literals, table.spaces, [ranks[column] for column in table.columns], new_sizes)
    if not len(numbers):
        return moved
    head = (numbers[literals.head >> OP_BITS] << OP_BITS | (literals.head & 15)).astype(np.uint32)
    return Literals(head, moved.low, moved.high, *moved.unions)


def remap_literals(
    literals: Literals, spaces: Sequence[CodeSpace], ranks: Sequence[IntArray], new_sizes: IntArray
) -> Literals:
    """Return literals with codes of other spaces: `ranks[column]` are the new ranks of the column's end points."""
    low, high = literals.low.copy(), literals.high.copy()
    union_low, union_high = literals.union_low.copy(), literals.union_high.copy()
    old_sizes = np.array([len(space) for space in spaces], np.int64)
    rank = np.concatenate([*ranks, np.zeros(0, np.int64)])
    start = np.concatenate([[0], np.cumsum([len(column_ranks) for column_ranks in ranks], dtype=np.int64)])
    kernel.remap(literals.head, low, high, old_sizes, rank, start, new_sizes)
    kernel.remap_unions(
        literals.head, literals.low, literals.union_start, union_low, union_high, old_sizes, rank, start, new_sizes
    )
    return Literals(literals.head, low, high, literals.union_start, union_low, union_high)


def _merge_kinds(tables: Sequence[RowTable], columns: list[Column]) -> tuple[Kind, ...]:
    """Return the kind of each column; where tables differ, that of one whose rows test the column."""
    kinds = {column: kind for table in tables for column, kind in zip(table.columns, table.kinds, strict=True)}
    for table in tables:
        for number in np.unique(table.literals.head >> OP_BITS).tolist():
            kinds[table.columns[number]] = table.kinds[number]
    return tuple(kinds[column] for column in columns)


def _concatenate_literals(parts: list[Literals]) -> Literals:
    names = ("head", "low", "high", "union_low", "union_high")
    head, low, high, union_low, union_high = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return Literals(head, low, high, _concatenate_starts([part.union_start for part in parts]), union_low, union_high)


def _concatenate_starts(parts: Sequence[NDArray[Any]]) -> CodeArray:
    """Join arrays of starts, each of which begins at 0."""
    sizes = np.concatenate([np.diff(part.astype(np.int64)) for part in parts])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)


def _concatenate_rows(parts: Sequence[CodeArray], sizes: list[int]) -> CodeArray:
    """Join arrays of row numbers; `sizes` are the numbers of rows of each part."""
    moved = [part.astype(np.int64) + base for part, base in zip(parts, np.cumsum([0, *sizes[:-1]]), strict=True)]
    return np.concatenate(moved).astype(np.uint32)
