"""A table: the rows of many filters in codes, not yet in the order of an index.

It is made from a draft, from columns of parameters (`compile.bulk_table`), or from the rows of segments that are
merged; a segment is built from it. Equal conjunctions become one row with several entries, an entry being a
subscription's slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tidings.engine.arrays import compute_starts, expand_ranges, invert, list_owners
from tidings.engine.compile.code_spaces import CodeSpace, build_space
from tidings.engine.compile.columns import Column, ColumnValues, Numbers, Texts
from tidings.engine.compile.encoders import HIGH_OPEN, LOW_OPEN, NO_HIGH, NO_LOW
from tidings.engine.exact.exact_checks import ExactItem
from tidings.kernels.array_types import BoolArray, CodeArray, IntArray
from tidings.kernels.match import row_codes as kernel
from tidings.kernels.match.index_build import gather_rows
from tidings.kernels.match.layout import OP_BITS, RowLiterals
from tidings.kernels.match.literals import UNION
from tidings.model import TextTest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.engine.compile.draft import EndLists, FilterDraft
    from tidings.engine.tuning import EngineTuning

CodeEnds: TypeAlias = tuple[IntArray, IntArray]
"""The low codes and the high codes of intervals."""

SHARING_PAYS_FROM = 50
"""Rows are shared when that saves at least one row in so many: the list of entries costs four bytes a row."""


class Literals(NamedTuple):
    """Literals in codes: `head` is the column, shifted, and the op; a union's `low` is its number.

    Six flat arrays; the last three are those of the unions. The names of the fields are those of a snapshot's arrays.
    """

    head: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    union_start: NDArray[Any]
    union_low: NDArray[Any]
    union_high: NDArray[Any]

    def remap(self, spaces: Sequence[CodeSpace], ranks: Sequence[IntArray], new_sizes: IntArray) -> Literals:
        """Return literals with codes of other spaces: `ranks[column]` are the new ranks of the column's end points."""
        low, high = self.low.copy(), self.high.copy()
        union_low, union_high = self.union_low.copy(), self.union_high.copy()
        old_sizes = np.array([len(space) for space in spaces], np.int64)
        rank_start = compute_starts([len(column_ranks) for column_ranks in ranks])
        rank = np.concatenate([*ranks, np.zeros(0, np.int64)])
        ends = kernel.MovedEnds(old_sizes, rank, rank_start, new_sizes)
        kernel.remap(self.head, low, high, ends)
        kernel.remap_unions(self.head, self.low, self.union_start, union_low, union_high, ends)
        return self._replace(low=low, high=high, union_low=union_low, union_high=union_high)


@dataclass(frozen=True, slots=True)
class TreeTable:
    """Filters kept as trees: pairs of slot and tree, over `leaves` and, from number `len(leaves.head)` on, `items`."""

    leaves: Literals
    items: CodeArray
    trees: list[tuple[int, Any]]


@dataclass(frozen=True, slots=True)
class RowTable:
    """Rows of literals; row `r` is that of the slots from `entry[r]` up to `entry[r + 1]` in `slot`.

    Row `item_row[i]` needs the exact check `items[item_number[i]]`. `trees` have no rows; each of `candidate_trees` has
    one, which more events pass than satisfy the tree.
    """

    columns: tuple[Column, ...]
    spaces: tuple[CodeSpace, ...]
    start: CodeArray
    literals: Literals
    entry: CodeArray
    slot: CodeArray
    item_row: CodeArray
    item_number: CodeArray
    items: Sequence[ExactItem] = ()
    patterns: dict[str, list[TextTest]] = field(default_factory=dict)
    trees: TreeTable | None = None
    candidate_trees: TreeTable | None = None

    @classmethod
    def from_draft(cls, draft: FilterDraft) -> RowTable:
        """Give the end points of a draft their codes."""
        columns = [_encode_ends(ends, draft.tuning) for ends in draft.ends]
        intervals = [codes for _, codes in columns]
        return cls(
            columns=tuple(draft.columns),
            spaces=tuple(space for space, _ in columns),
            start=compute_starts(draft.row_size, np.uint32),
            literals=_build_literals(np.asarray(draft.literals), intervals),
            entry=np.arange(len(draft.row_slot) + 1, dtype=np.uint32),
            slot=np.array(draft.row_slot, np.uint32),
            item_row=np.array(draft.item_row, np.uint32),
            item_number=np.array(draft.item_number, np.uint32),
            items=list(draft.items),
            patterns={attribute: list(numbers) for attribute, numbers in draft.patterns.items()},
            trees=_number_leaves(draft.leaves, draft.trees, intervals),
            candidate_trees=_number_leaves(draft.candidate_leaves, draft.candidate_trees, intervals),
        )

    def share_rows(self) -> RowTable:
        """Return the table with equal conjunctions in one row.

        Rows with items are not shared, nor are those of subscriptions with several rows.
        """
        count = len(self.start) - 1
        alone = np.zeros(count, np.uint8)
        alone[self.item_row] = 1
        alone[mask_multi_row(self.entry, self.slot)] = 1
        rows = RowLiterals(self.start, *self.literals)
        hashed = kernel.hash_rows(rows)
        order = np.argsort(hashed, kind="stable")  # so that equal rows are led by the first of them
        leader = kernel.find_leaders(order, hashed, alone, rows)
        if np.count_nonzero(leader != np.arange(count)) <= count // SHARING_PAYS_FROM:
            return self
        kept = np.flatnonzero(leader == np.arange(count))
        place = invert(kept, count)
        owner = place[leader[list_owners(self.entry)]]  # of each entry
        start, head, low, high = gather_rows(kept, self.start, *self.literals[:3])
        return replace(
            self,
            start=start,
            literals=Literals(head, low, high, *self.literals[3:]),
            entry=compute_starts(np.bincount(owner, minlength=len(kept)), np.uint32),
            slot=self.slot[np.argsort(owner, kind="stable")],
            item_row=place[self.item_row].astype(np.uint32),
        )


def mask_multi_row(entry: NDArray[Any], slot: NDArray[Any]) -> BoolArray:
    """Return a mask of the rows with a subscription that has other rows too."""
    result = np.zeros(len(entry) - 1, bool)
    if len(slot):
        result[list_owners(entry)[np.bincount(slot)[slot] > 1]] = True
    return result


def _encode_ends(ends: EndLists, tuning: EngineTuning) -> tuple[CodeSpace, CodeEnds]:
    """Return the space of a column's ends, and the codes of its intervals."""
    low, high, flags = map(np.asarray, (ends.low, ends.high, ends.flags))
    if ends.is_bytewise:
        texts = list(ends.text_numbers)
        points: ColumnValues = Texts(np.arange(len(texts), dtype=np.int32), texts)
    else:
        rest = np.zeros((2, len(low)), np.int16)
        for interval, rests in ends.rest.items():
            rest[:, interval] = rests
        points = Numbers(np.concatenate([low, high]), rest.ravel() if ends.rest else None)
        low, high = np.arange(len(low)), np.arange(len(low), 2 * len(low))
    space = build_space(points, tuning)
    ranks = space.encode(points).astype(np.int64) >> 1
    return space, encode_intervals(ranks[low], ranks[high], flags, len(space))


def encode_intervals(low: IntArray, high: IntArray, flags: NDArray[Any], size: int) -> CodeEnds:
    """Return the codes of intervals from the ranks of their ends; an empty one accepts nothing."""
    first = np.where(flags & NO_LOW, 0, 2 * low + 1 + ((flags & LOW_OPEN) != 0))
    last = np.where(flags & NO_HIGH, 2 * size, 2 * high + 1 - ((flags & HIGH_OPEN) != 0))
    empty = first > last
    return np.where(empty, kernel.EMPTY_LOW, first), np.where(empty, 0, last)


def _build_literals(numbers: NDArray[Any], intervals: Sequence[CodeEnds]) -> Literals:
    """Return literals from the numbers of each `DraftLiteral`; one of several intervals becomes a union.

    `intervals` are those of the columns.
    """
    column, op, span, count = numbers.reshape(-1, 4).T
    several = np.flatnonzero(count != 1)
    sizes = count[several].astype(np.int64)
    head = (column.astype(np.int64) << OP_BITS | op).astype(np.uint32)
    head[several] |= UNION
    first = compute_starts([len(low) for low, _ in intervals])[column] + span
    parts = expand_ranges(first[several], sizes)
    # A literal without intervals may be the last one: it reads the 0 behind all intervals.
    none = np.zeros(1, np.int64)
    lows, highs = (np.concatenate([*(codes[end] for codes in intervals), none]).astype(np.uint32) for end in (0, 1))
    low, high = lows[first], highs[first]
    low[several], high[several] = np.arange(len(several)), 0
    return Literals(head, low, high, compute_starts(sizes, np.uint32), lows[parts], highs[parts])


def _number_leaves(
    numbers: dict[Any, int], trees: list[tuple[int, Any]], intervals: Sequence[CodeEnds]
) -> TreeTable | None:
    """Number the leaves: literals first, then items."""
    if not trees:
        return None
    literals = [key for key in numbers if isinstance(key, tuple)]
    items = [key for key in numbers if not isinstance(key, tuple)]
    number = {key: place for place, key in enumerate([*literals, *items])}
    new = [number[key] for key in numbers]
    leaves = _build_literals(np.array(literals, np.uint32), intervals)
    return TreeTable(leaves, np.array(items, np.uint32), [(slot, renumber_leaves(node, new)) for slot, node in trees])


def renumber_leaves(node: Any, new: list[int]) -> Any:
    """Return a tree whose leaf `n` is `new[n]`."""
    if isinstance(node, int):
        return new[node]
    return (node[0], tuple(renumber_leaves(part, new) for part in node[1]))
