"""Merging: the live rows of several segments as one table, in one space of codes.

Codes move by arithmetic on ranks, column by column; nothing is parsed or compiled again but the filters that
are kept as trees, whose code cannot be taken apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.code_spaces import Ranked, Space, merged
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.row_table import Kept, Literals, Table
from tidings.kernels.match import row_codes as kernel
from tidings.kernels.match.index_build import gather_rows
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import UNION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tidings.engine.segment import Segment
    from tidings.model import Kind, TextTest


def table_of(segment: Segment, new_slot: NDArray[np.int64]) -> Table:
    """Return the rows of a segment whose slots live on: `new_slot` is their new number, or -1.

    Rows that only find a tree are left out: the tree is compiled again, and brings its row.
    """
    if segment.asked is not None:
        new_slot = new_slot.copy()
        new_slot[segment.asked.forest.slots] = -1
    rows, index = segment.index.rows, segment.index
    count = len(rows.start) - 1
    entry = rows.entry if len(rows.entry) else np.arange(count + 1, dtype=np.uint32)
    owner = np.repeat(np.arange(count), np.diff(entry))
    slots = new_slot[rows.slot]
    alive = slots >= 0
    if len(index.copy):
        alive &= index.copy[owner] == 0
    kept = np.unique(owner[alive])
    place = np.full(count, -1, np.int64)
    place[kept] = np.arange(len(kept))
    new_entry = np.zeros(len(kept) + 1, np.uint32)
    np.cumsum(np.bincount(place[owner[alive]], minlength=len(kept)), out=new_entry[1:])
    literal = rows.literal.reshape(-1, 3)
    wide = [np.ascontiguousarray(literal[:, side]).astype(np.uint32) for side in range(3)]
    start, head, low, high = gather_rows(kept, rows.start.copy(), *wide)  # kernels that build know writable arrays alone
    union_low, union_high = rows.union_low.astype(np.uint32), rows.union_high.astype(np.uint32)
    if literal.dtype == np.uint16:
        _widen(head, low)
        union_low[union_low == 0xFFFF] = kernel.EMPTY_LOW
    second = segment.second
    mine = place[second.row] >= 0
    return Table(
        columns=segment.columns,
        kinds=segment.kinds,
        spaces=segment.spaces,
        start=start,
        literals=Literals(head, low, high, rows.union_start.copy(), union_low, union_high),
        entry=new_entry,
        slot=slots[alive].astype(np.uint32),
        item_row=place[second.row[mine]].astype(np.uint32),
        item_number=second.item[mine],
        items=second.items,
        patterns={name: list(automaton.tests) for name, automaton in segment.automata.items()},
    )


def _widen(head: NDArray[Any], low: NDArray[Any]) -> None:
    """Mark what accepts nothing as codes of 32 bits do."""
    low[((head & UNION) == 0) & (low == 0xFFFF)] = kernel.EMPTY_LOW


def joined(tables: Sequence[Table]) -> Table:
    """Return one table with the rows of all; slots are numbered for all of them already."""
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    patterns = _joined_patterns(tables)
    spaces, ranks = _spaces(tables, columns, patterns)
    size = np.array([len(space) for space in spaces], np.int64)
    items: dict[Any, int] = {}
    parts = []
    union_base = 0
    for number, table in enumerate(tables):
        renumbered = np.array([columns.index(column) for column in table.columns], np.int64)
        moved = _moved(table, table.literals, renumbered, ranks[number], size)
        base = np.where(moved.head & UNION, union_base, 0)
        parts.append(Literals(moved.head, (moved.low + base).astype(np.uint32), moved.high, *moved.unions))
        union_base += len(moved.union_start) - 1
    numbers = [np.array([items.setdefault(item, len(items)) for item in table.items], np.int64) for table in tables]
    kept: dict[str, Kept] = {}  # those of the one table that has some: trees are compiled again, all together
    for number, table in enumerate(tables):
        renumbered = np.array([columns.index(column) for column in table.columns], np.int64)
        for name, one in (("trees", table.trees), ("asked", table.asked)):
            if one is not None:
                leaves = _moved(table, one.leaves, renumbered, ranks[number], size)
                leaf_items = numbers[number][one.items].astype(np.uint32) if len(one.items) else one.items
                kept[name] = Kept(leaves, leaf_items, one.trees)
    kinds = {column: kind for table in tables for column, kind in _used_kinds(table)}
    return Table(
        columns=tuple(columns),
        kinds=tuple(kinds.get(column, kind) for column, kind in zip(columns, _any_kind(tables, columns), strict=True)),
        spaces=tuple(spaces),
        start=_starts([table.start for table in tables]),
        literals=_concatenated(parts),
        entry=_starts([table.entry for table in tables]),
        slot=np.concatenate([table.slot for table in tables]),
        item_row=_offset([table.item_row for table in tables], [len(table.start) - 1 for table in tables]),
        item_number=np.concatenate(
            [new[one.item_number] if one.items else one.item_number for new, one in zip(numbers, tables, strict=True)]
        ).astype(np.uint32),
        items=list(items),
        patterns=patterns,
        **kept,
    )


def _joined_patterns(tables: Sequence[Table]) -> dict[str, list[TextTest]]:
    found: dict[str, dict[TextTest, None]] = {}
    for table in tables:
        for name, tests in table.patterns.items():
            found.setdefault(name, {}).update(dict.fromkeys(tests))
    return {name: list(tests) for name, tests in found.items()}


def _spaces(
    tables: Sequence[Table], columns: list[Column], patterns: dict[str, list[TextTest]]
) -> tuple[list[Space], list[dict[Column, NDArray[np.int64]]]]:
    """Return a space for each column, and for each table the new ranks of its end points."""
    spaces: list[Space] = []
    ranks: list[dict[Column, NDArray[np.int64]]] = [{} for _ in tables]
    for column in columns:
        holders = [at for at, table in enumerate(tables) if column in table.columns]
        own = [tables[at].spaces[tables[at].columns.index(column)] for at in holders]
        if column.view is View.PATTERNS:  # ids of patterns, which are numbered anew
            number = {test: place for place, test in enumerate(patterns[column.attribute])}
            spaces.append(Ranked(np.arange(len(number), dtype=np.float64)))
            for at, space in zip(holders, own, strict=True):
                tests = tables[at].patterns[column.attribute]
                old = space.values(np.arange(len(space)))
                ranks[at][column] = np.array([number[tests[id]] for id in old], np.int64)
            continue
        space, new = merged(own)
        spaces.append(space)
        for at, rank in zip(holders, new, strict=True):
            ranks[at][column] = rank
    return spaces, ranks


def _moved(
    table: Table,
    literals: Literals,
    renumbered: NDArray[np.int64],
    ranks: dict[Column, NDArray[np.int64]],
    size: NDArray[np.int64],
) -> Literals:
    """Return literals with columns and codes of the joint table."""
    low, high = literals.low.copy(), literals.high.copy()
    union_low, union_high = literals.union_low.copy(), literals.union_high.copy()
    old_size = np.array([len(space) for space in table.spaces], np.int64)
    new_size = size[renumbered] if len(renumbered) else size
    rank_start = np.zeros(len(table.columns) + 1, np.int64)
    np.cumsum([len(ranks[column]) for column in table.columns], out=rank_start[1:])
    rank = np.concatenate([*(ranks[column] for column in table.columns), np.zeros(0, np.int64)])
    kernel.remap(literals.head, low, high, old_size, rank, rank_start, new_size)
    kernel.remap_unions(
        literals.head, literals.low, literals.union_start, union_low, union_high, old_size, rank, rank_start, new_size
    )
    column = literals.head >> OP_BITS
    head = literals.head
    if len(renumbered):
        head = (renumbered[column] << OP_BITS | (literals.head & 15)).astype(np.uint32)
    return Literals(head, low, high, literals.union_start, union_low, union_high)


def _used_kinds(table: Table) -> list[tuple[Column, Kind]]:
    used = np.unique(table.literals.head >> OP_BITS).tolist()
    return [(table.columns[number], table.kinds[number]) for number in used]


def _any_kind(tables: Sequence[Table], columns: list[Column]) -> list[Kind]:
    known = {column: kind for table in tables for column, kind in zip(table.columns, table.kinds, strict=True)}
    return [known[column] for column in columns]


def _concatenated(parts: list[Literals]) -> Literals:
    names = ("head", "low", "high", "union_low", "union_high")
    head, low, high, union_low, union_high = (np.concatenate([getattr(one, name) for one in parts]) for name in names)
    return Literals(head, low, high, _starts([one.union_start for one in parts]), union_low, union_high)


def _starts(parts: Sequence[NDArray[Any]]) -> NDArray[np.uint32]:
    """Join arrays of starts, each of which begins at 0."""
    sizes = np.concatenate([np.diff(part.astype(np.int64)) for part in parts])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)


def _offset(parts: Sequence[NDArray[Any]], sizes: list[int]) -> NDArray[np.uint32]:
    moved = [part.astype(np.int64) + base for part, base in zip(parts, np.cumsum([0, *sizes[:-1]]), strict=True)]
    return np.concatenate(moved).astype(np.uint32)
