"""Range predicates of many rows, found by value: the counting matcher's interval index, with inserts and deletes.

Entries lie in flat arrays, one slot each; most are also in a sorted tree (`kernels.papers.counting` says how), the
newest wait beside it and are compared one by one. When too many wait, or too many in the tree are gone, the next match
builds the tree again: O(log n) a change on average, no Python object for an entry. Ends are float64, exactly.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.papers.counting import HIGH_OPEN, LOW_OPEN, IntervalTree, RangeEntries, strike_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_WAITING = 1024
"""So many entries may wait in any case: comparing them costs less than the path through a tree."""

TREE_SHARE = 8
"""Beyond, one for each so many in the tree."""

NOT_INDEXED = -2
"""Of a slot: its row is found in another way, so neither the tree nor the waiting list has it."""


def as_numpy(values: array[Any], kind: type) -> NDArray[Any]:
    """Return an array's memory; as long as somebody holds it, the array cannot grow."""
    return np.frombuffer(values, kind) if values else np.empty(0, kind)


class IntervalIndex:
    """Intervals of attributes, each for one row; attributes are small whole numbers."""

    def __init__(self) -> None:
        """Start without entries."""
        self._attrs, self._rows, self._where = array("i"), array("i"), array("i")
        self._lows, self._highs, self._opens = array("d"), array("d"), array("B")
        self._free: list[int] = []
        self._waiting = array("i")
        self._in_tree = self._removed = 0
        self.tree = _build_tree(self._get_columns(), self._get_rows())
        self._entries: RangeEntries | None = None

    def add(self, attr: int, low: float, high: float, *, opens: int, row: int) -> int:
        """Take an interval in and return its slot; with `row` below zero it is only kept."""
        self._entries = None
        where = len(self._waiting) if row >= 0 else NOT_INDEXED
        if self._free:
            slot = self._free.pop()
            self._attrs[slot], self._rows[slot], self._where[slot] = attr, row, where
            self._lows[slot], self._highs[slot], self._opens[slot] = low, high, opens
        else:
            slot = len(self._rows)
            self._attrs.append(attr)
            self._rows.append(row)
            self._where.append(where)
            self._lows.append(low)
            self._highs.append(high)
            self._opens.append(opens)
        if row >= 0:
            self._waiting.append(slot)
        return slot

    def remove(self, slot: int) -> int:
        """Forget an interval and return the attribute it was of."""
        self._entries = None
        where, attr = self._where[slot], self._attrs[slot]
        if where >= 0:
            last = self._waiting.pop()
            if last != slot:
                self._waiting[where] = last
                self._where[last] = where
        elif where != NOT_INDEXED:
            self._remove_from_tree(slot, attr)
        self._rows[slot] = -1
        self._free.append(slot)
        return attr

    def _remove_from_tree(self, slot: int, attr: int) -> None:
        tree, opens = self.tree, self._opens[slot]
        start = tree.ends_first[attr]
        ends = tree.ends[start : tree.ends_first[attr + 1]]
        low = 2 * int(np.searchsorted(ends, self._lows[slot])) + 2 + (opens & LOW_OPEN)
        high = 2 * int(np.searchsorted(ends, self._highs[slot])) + 2 - (1 if opens & HIGH_OPEN else 0)
        strike_out(tree, attr, int(_find_nodes(np.array([low]), np.array([high]))[0]), low, high, self._rows[slot])
        self._removed += 1

    def get_entries(self) -> RangeEntries:
        """Return the entries as arrays, with the tree up to date enough; hold them no longer than a call."""
        if (
            len(self._waiting) > MAX_WAITING + self._in_tree // TREE_SHARE
            or self._removed > MAX_WAITING + self._in_tree // 2
        ):
            self._build()
        if self._entries is None:
            attrs, lows, highs, opens = self._get_columns()
            self._entries = RangeEntries(attrs, lows, highs, opens, self._get_rows(), as_numpy(self._waiting, np.int32))
        return self._entries

    def _get_rows(self) -> NDArray[np.int32]:
        return as_numpy(self._rows, np.int32)

    def _get_columns(self) -> tuple[NDArray[Any], ...]:
        """Return the attributes, low ends, high ends and kinds of ends of all slots."""
        return (
            as_numpy(self._attrs, np.int32),
            as_numpy(self._lows, np.float64),
            as_numpy(self._highs, np.float64),
            as_numpy(self._opens, np.uint8),
        )

    def _build(self) -> None:
        self._entries = None
        slots = np.flatnonzero(self._get_rows() >= 0)
        self.tree = _build_tree(tuple(column[slots] for column in self._get_columns()), self._get_rows()[slots])
        as_numpy(self._where, np.int32)[slots] = -1
        self._waiting = array("i")
        self._in_tree, self._removed = len(slots), 0

    def summarize(self) -> dict[str, object]:
        """Tell how many intervals are where."""
        return {"in the tree": self._in_tree - self._removed, "waiting": len(self._waiting)}

    def check(self) -> None:
        """Assert that slots, the waiting list and the tree tell one story."""
        rows, where = self._get_rows(), as_numpy(self._where, np.int32)
        assert all(self._where[slot] == at for at, slot in enumerate(self._waiting))
        living = int(((rows >= 0) & (where == -1)).sum())
        assert living == self._in_tree - self._removed
        for kept in (self.tree.low_rows, self.tree.high_rows):
            assert sorted(kept[kept >= 0]) == sorted(rows[(rows >= 0) & (where == -1)])


def _find_nodes(lows: NDArray[np.int64], highs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each interval of codes the number in it with the most zero bits at the end: its node."""
    _, width = np.frexp(((lows - 1) ^ highs).astype(np.float64))  # the place of the topmost bit that differs
    nodes: NDArray[np.int64] = (highs >> (width - 1)) << (width - 1)
    return nodes


def _build_tree(columns: tuple[NDArray[Any], ...], rows: NDArray[np.int32]) -> IntervalTree:
    """Sort intervals into a tree; O(n log n)."""
    attrs, lows, highs, opens = columns
    number = int(attrs.max()) + 1 if len(attrs) else 0
    order = np.argsort(attrs, kind="stable")
    bounds = np.searchsorted(attrs[order], np.arange(number + 1))
    low_codes, high_codes = np.empty(len(attrs), np.int64), np.empty(len(attrs), np.int64)
    all_ends: list[NDArray[np.float64]] = []
    for attr in range(number):
        mine = order[bounds[attr] : bounds[attr + 1]]
        ends = np.unique(np.concatenate((lows[mine], highs[mine])))
        low_codes[mine] = 2 * np.searchsorted(ends, lows[mine]) + 2 + ((opens[mine] & LOW_OPEN) != 0)
        high_codes[mine] = 2 * np.searchsorted(ends, highs[mine]) + 2 - ((opens[mine] & HIGH_OPEN) != 0)
        all_ends.append(ends)
    sizes = np.array([len(ends) for ends in all_ends], np.int64)
    nodes_first = np.concatenate(([0], np.cumsum(2 * sizes + 3)))
    nodes = nodes_first[attrs] + _find_nodes(low_codes, high_codes)
    by_low, by_high = np.argsort(nodes << 32 | low_codes), np.argsort(nodes << 32 | high_codes)
    counts = np.bincount(nodes, minlength=int(nodes_first[-1]) + 1)
    return IntervalTree(
        ends=np.concatenate(all_ends) if all_ends else np.empty(0),
        ends_first=np.concatenate(([0], np.cumsum(sizes))),
        nodes_first=nodes_first,
        roots=np.array([1 << int(2 * size + 1).bit_length() - 1 if size else 0 for size in sizes], np.int64),
        first=np.concatenate(([0], np.cumsum(counts))).astype(np.int32),
        low_codes=low_codes[by_low].astype(np.int32),
        low_rows=rows[by_low],
        high_codes=high_codes[by_high].astype(np.int32),
        high_rows=rows[by_high],
        high_lows=low_codes[by_high].astype(np.int32),
    )
