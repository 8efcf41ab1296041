"""Pruning a table, when segments are merged, to what its rows use.

The rows of deleted subscriptions are not extracted (`engine.merge`), but the lists that rows point into would stay: end
points of columns, unions, exact checks, text patterns, columns that no filter tests any more. Under constant change
those lists would grow for ever, however few subscriptions there are. Codes are moved by arithmetic on ranks, as in a
merge, into smaller spaces. Cost: a few passes over the literals.

Invariant: after `prune_table` every end point, union, item, pattern and column is one that some row uses (but for a
`LinearSpace`, which is two numbers however many end points it stands for).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.engine.arrays import compute_starts, expand_ranges
from tidings.engine.compile.code_spaces import ByteSpace, CodeSpace, LinearSpace, RankedSpace, build_space
from tidings.engine.compile.columns import Column, Numbers, View
from tidings.engine.compile.row_table import Literals, RowTable
from tidings.engine.tuning import DEFAULT_TUNING, EngineTuning
from tidings.kernels.match import row_codes as kernel
from tidings.kernels.match.layout import OP_BITS, OP_MASK
from tidings.kernels.match.literals import UNION

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray


def prune_table(table: RowTable, tuning: EngineTuning = DEFAULT_TUNING) -> RowTable:
    """Return the table without what no row of it uses; it must have no trees."""
    assert table.trees is None
    assert table.candidate_trees is None
    used_items, place = np.unique(table.item_number, return_inverse=True)
    items = [table.items[number] for number in used_items.tolist()]
    table = replace(table, items=items, item_number=place.astype(np.uint32))
    table = _drop_columns(_drop_unions(table))
    spaces: list[CodeSpace] = []
    ranks: list[IntArray] = []
    patterns = dict(table.patterns)
    for column, space, used in zip(table.columns, table.spaces, _find_used_ends(table), strict=True):
        if column.view is View.PATTERNS:  # the end points are numbers of patterns, which are numbered anew
            tests = patterns[column.attribute]
            patterns[column.attribute] = [tests[number] for number in space.decode(used)]
            spaces.append(RankedSpace(np.arange(len(used), dtype=np.float64)))
            new = np.arange(len(used))
        else:
            fewer, new = _take_ends(space, used, tuning)
            spaces.append(fewer)
        rank = np.zeros(len(space), np.int64)  # an unused old rank maps to any
        rank[used] = new
        ranks.append(rank)
    sizes = np.array([len(space) for space in spaces], np.int64)
    literals = table.literals.remap(table.spaces, ranks, sizes)
    return replace(table, spaces=tuple(spaces), patterns=patterns, literals=literals)


def _drop_unions(table: RowTable) -> RowTable:
    literals = table.literals
    is_union = (literals.head & UNION) != 0
    numbers, place = np.unique(literals.low[is_union], return_inverse=True)
    start = literals.union_start.astype(np.int64)
    sizes = start[numbers.astype(np.int64) + 1] - start[numbers]
    parts = expand_ranges(start[numbers], sizes)
    low = literals.low.copy()
    low[is_union] = place
    unions = compute_starts(sizes, np.uint32), literals.union_low[parts], literals.union_high[parts]
    return replace(table, literals=Literals(literals.head, low, literals.high, *unions))


def _drop_columns(table: RowTable) -> RowTable:
    literals = table.literals
    numbers, place = np.unique(literals.head >> OP_BITS, return_inverse=True)
    head = (place.astype(np.int64) << OP_BITS | (literals.head & OP_MASK)).astype(np.uint32)
    kept = numbers.tolist()
    columns: tuple[Column, ...] = tuple(table.columns[number] for number in kept)
    named = {column.attribute for column in columns if column.view is View.PATTERNS}
    return replace(
        table,
        columns=columns,
        spaces=tuple(table.spaces[number] for number in kept),
        patterns={name: tests for name, tests in table.patterns.items() if name in named},
        literals=literals._replace(head=head),
    )


def _find_used_ends(table: RowTable) -> list[IntArray]:
    """Return for each column the ranks of the end points that its literals have, ascending."""
    literals = table.literals
    is_union = (literals.head & UNION) != 0
    column = (literals.head >> OP_BITS).astype(np.int64)
    owner = np.zeros(len(literals.union_start) - 1, np.int64)  # the column of each union
    owner[literals.low[is_union]] = column[is_union]
    start = literals.union_start.astype(np.int64)
    sizes = start[1:] - start[:-1]
    end_column = np.concatenate([column[~is_union], np.repeat(owner, sizes)])
    low = np.concatenate([literals.low[~is_union], literals.union_low]).astype(np.int64)
    high = np.concatenate([literals.high[~is_union], literals.union_high]).astype(np.int64)
    base = compute_starts([len(space) for space in table.spaces])
    used = np.zeros(base[-1], bool)
    is_nonempty = low != kernel.EMPTY_LOW
    bounded = is_nonempty & (low > 0)
    used[base[end_column[bounded]] + ((low[bounded] - 1) >> 1)] = True
    bounded = is_nonempty & (high != 2 * np.diff(base)[end_column])
    used[base[end_column[bounded]] + (high[bounded] >> 1)] = True
    return [np.flatnonzero(used[base[number] : base[number + 1]]) for number in range(len(table.spaces))]


def _take_ends(space: CodeSpace, ranks: IntArray, tuning: EngineTuning) -> tuple[CodeSpace, IntArray]:
    """Return a space with some of the end points, and their new ranks."""
    match space:
        case RankedSpace(ends, rest):
            return RankedSpace(ends[ranks], None if rest is None else rest[ranks]), np.arange(len(ranks))
        case LinearSpace(base, _):
            points = Numbers((ranks + base).astype(np.float64))
            fewer = build_space(points, tuning)
            return fewer, fewer.encode(points).astype(np.int64) >> 1
        case ByteSpace(blob, start):
            sizes = start[ranks + 1] - start[ranks]
            fewer_bytes = blob[expand_ranges(start[ranks], sizes)]
            return ByteSpace(fewer_bytes, compute_starts(sizes)), np.arange(len(ranks))
