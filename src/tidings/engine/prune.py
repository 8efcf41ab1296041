"""Leaving behind what only dead subscriptions asked for, when segments are merged.

The rows of the dead go by themselves (`engine.merge`), but the lists that rows point into would stay: end points of
columns, unions, areas and laws, text patterns, columns of attributes that nobody names any more. Under constant change
those lists would grow for ever, however few subscriptions live. So a table is pruned to what its rows point to. Codes
move by arithmetic on ranks, as in a merge; only into smaller spaces. Cost: a few passes over the literals.

Invariant: after `pruned` every end point, union, item, pattern and column is one that some row uses (`Linear` spaces,
which are two numbers however many end points they stand for, aside).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.code_spaces import Bytewise, Linear, Ranked, Space, space_of
from tidings.engine.compile.columns import Column, Numbers, View
from tidings.engine.compile.row_table import Literals, Table
from tidings.engine.ranges import runs
from tidings.kernels.match import row_codes as kernel
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import UNION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def pruned(table: Table) -> Table:
    """Return the table with what its rows use, and nothing else; it has no trees."""
    assert table.trees is None
    assert table.asked is None
    table = _without_columns(_without_unions(_without_items(table)))
    spaces: list[Space] = []
    ranks: list[NDArray[np.int64]] = []
    patterns = dict(table.patterns)
    for column, space, used in zip(table.columns, table.spaces, _used_ends(table), strict=True):
        if column.view is View.PATTERNS:  # the end points are numbers of patterns, which are numbered anew
            tests = patterns[column.attribute]
            patterns[column.attribute] = [tests[number] for number in space.values(used)]
            spaces.append(Ranked(np.arange(len(used), dtype=np.float64)))
            new = np.arange(len(used))
        else:
            fewer, new = _subset(space, used)
            spaces.append(fewer)
        ranks.append(_scattered(used, new, len(space)))
    return replace(table, spaces=tuple(spaces), patterns=patterns, literals=_moved(table, spaces, ranks))


def _without_items(table: Table) -> Table:
    """Leave out areas and laws that no row asks for."""
    numbers, place = np.unique(table.item_number, return_inverse=True)
    items = [table.items[number] for number in numbers.tolist()]
    return replace(table, items=items, item_number=place.astype(np.uint32))


def _without_unions(table: Table) -> Table:
    """Leave out unions that no literal names."""
    literals = table.literals
    several = (literals.head & UNION) != 0
    numbers, place = np.unique(literals.low[several], return_inverse=True)
    start = literals.union_start.astype(np.int64)
    sizes = start[numbers.astype(np.int64) + 1] - start[numbers]
    parts = runs(start[numbers], sizes)
    low = literals.low.copy()
    low[several] = place
    new_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)
    unions = new_start, literals.union_low[parts], literals.union_high[parts]
    return replace(table, literals=Literals(literals.head, low, literals.high, *unions))


def _without_columns(table: Table) -> Table:
    """Leave out columns that no literal asks about."""
    literals = table.literals
    numbers, place = np.unique(literals.head >> OP_BITS, return_inverse=True)
    head = (place.astype(np.int64) << OP_BITS | (literals.head & ((1 << OP_BITS) - 1))).astype(np.uint32)
    kept = numbers.tolist()
    columns: tuple[Column, ...] = tuple(table.columns[number] for number in kept)
    named = {column.attribute for column in columns if column.view is View.PATTERNS}
    return replace(
        table,
        columns=columns,
        kinds=tuple(table.kinds[number] for number in kept),
        spaces=tuple(table.spaces[number] for number in kept),
        patterns={name: tests for name, tests in table.patterns.items() if name in named},
        literals=replace(literals, head=head),
    )


def _used_ends(table: Table) -> list[NDArray[np.int64]]:
    """Return for each column the ranks of the end points that its literals have."""
    literals = table.literals
    several = (literals.head & UNION) != 0
    column = (literals.head >> OP_BITS).astype(np.int64)
    owner = np.zeros(len(literals.union_start) - 1, np.int64)  # the column of each union
    owner[literals.low[several]] = column[several]
    start = literals.union_start.astype(np.int64)
    sizes = start[1:] - start[:-1]
    every = np.concatenate([column[~several], np.repeat(owner, sizes)])
    low = np.concatenate([literals.low[~several], literals.union_low]).astype(np.int64)
    high = np.concatenate([literals.high[~several], literals.union_high]).astype(np.int64)
    base = np.concatenate([[0], np.cumsum([len(space) for space in table.spaces], dtype=np.int64)])
    used = np.zeros(base[-1], bool)
    some = low != kernel.EMPTY_LOW
    bounded = some & (low > 0)
    used[base[every[bounded]] + ((low[bounded] - 1) >> 1)] = True
    bounded = some & (high != 2 * np.diff(base)[every])
    used[base[every[bounded]] + (high[bounded] >> 1)] = True
    return [np.flatnonzero(used[base[number] : base[number + 1]]) for number in range(len(table.spaces))]


def _subset(space: Space, ranks: NDArray[np.int64]) -> tuple[Space, NDArray[np.int64]]:
    """Return a space with some of the end points, and their new ranks."""
    match space:
        case Ranked(ends, rest):
            return Ranked(ends[ranks], None if rest is None else rest[ranks]), np.arange(len(ranks))
        case Linear(base, _):
            points = Numbers((ranks + base).astype(np.float64))
            fewer = space_of(points)
            return fewer, fewer.codes(points).astype(np.int64) >> 1
        case Bytewise(blob, start):
            sizes = start[ranks + 1] - start[ranks]
            new_start = np.concatenate([[0], np.cumsum(sizes)])
            return Bytewise(blob[runs(start[ranks], sizes)], new_start), np.arange(len(ranks))


def _scattered(ranks: NDArray[np.int64], new: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the new rank of each old one; of those that nothing has, any."""
    result = np.zeros(size, np.int64)
    result[ranks] = new
    return result


def _moved(table: Table, spaces: Sequence[Space], ranks: Sequence[NDArray[np.int64]]) -> Literals:
    """Return the literals with codes of the smaller spaces."""
    literals = table.literals
    low, high = literals.low.copy(), literals.high.copy()
    union_low, union_high = literals.union_low.copy(), literals.union_high.copy()
    rank = np.concatenate([*ranks, np.zeros(0, np.int64)])
    start = np.concatenate([[0], np.cumsum([len(one) for one in ranks], dtype=np.int64)])
    sizes: list[NDArray[Any]] = [np.array([len(space) for space in some], np.int64) for some in (table.spaces, spaces)]
    kernel.remap(literals.head, low, high, sizes[0], rank, start, sizes[1])
    kernel.remap_unions(
        literals.head, literals.low, literals.union_start, union_low, union_high, sizes[0], rank, start, sizes[1]
    )
    return Literals(literals.head, low, high, literals.union_start, union_low, union_high)
