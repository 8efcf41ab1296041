"""Range predicates of many rows, found by value: the counting matcher's interval index, with inserts and deletes.

Entries lie in flat arrays, one slot each; most are also in a sorted tree (see `kernels.papers.counting`), the newest
wait beside it and are compared one by one. When too many wait, or too many in the tree are gone, the next match builds
the tree again: O(log n) a change on average, no Python object for an entry. Ends are float64, exactly.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.papers.counting import IntervalTree, RangeEntries, remove_entry
from tidings.kernels.papers.domain_cells import HIGH_OPEN, LOW_OPEN
from tidings.papers.common.growable_arrays import as_numpy

if TYPE_CHECKING:
    from tidings.kernels.array_types import FloatArray, IntArray

MAX_WAITING = 1024
"""At least this many entries may wait: comparing them costs less than the path through a tree."""

TREE_SHARE = 8
"""And one more for each `TREE_SHARE` in the tree."""

NOT_INDEXED = -2
"""Of a slot: its row is found in another way, so neither the tree nor the waiting list has it."""


class IntervalIndex:
    """Intervals of attributes, each for one row; attributes are small whole numbers."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._attrs, self.rows, self.places = array("i"), array("i"), array("i")
        self._lows, self._highs, self._opens = array("d"), array("d"), array("B")
        self._free: list[int] = []
        self.waiting = array("i")
        self._entries: RangeEntries | None = None
        self._build()

    def add(self, attr: int, low: float, high: float, *, opens: int, row: int) -> int:
        """Take an interval in and return its slot; with `row` below zero it is only kept."""
        self._entries = None
        place = len(self.waiting) if row >= 0 else NOT_INDEXED
        if self._free:
            slot = self._free.pop()
            self._attrs[slot], self.rows[slot], self.places[slot] = attr, row, place
            self._lows[slot], self._highs[slot], self._opens[slot] = low, high, opens
        else:
            slot = len(self.rows)
            self._attrs.append(attr)
            self.rows.append(row)
            self.places.append(place)
            self._lows.append(low)
            self._highs.append(high)
            self._opens.append(opens)
        if row >= 0:
            self.waiting.append(slot)
        return slot

    def remove(self, slot: int) -> None:
        """Forget an interval."""
        self._entries = None
        place = self.places[slot]
        if place >= 0:
            last = self.waiting.pop()
            if last != slot:
                self.waiting[place] = last
                self.places[last] = place
        elif place != NOT_INDEXED:
            self._remove_from_tree(slot)
        self.rows[slot] = -1
        self._free.append(slot)

    def _remove_from_tree(self, slot: int) -> None:
        tree, opens, attr = self.tree, self._opens[slot], self._attrs[slot]
        start = tree.ends_first[attr]
        ends = tree.ends[start : tree.ends_first[attr + 1]]
        low = 2 * int(np.searchsorted(ends, self._lows[slot])) + 2 + (opens & LOW_OPEN)
        high = 2 * int(np.searchsorted(ends, self._highs[slot])) + 2 - (1 if opens & HIGH_OPEN else 0)
        remove_entry(tree, attr, int(_find_nodes(np.array([low]), np.array([high]))[0]), low, high, self.rows[slot])
        self._removed += 1

    def get_entries(self) -> RangeEntries:
        """Return the entries as arrays, with the tree up to date enough; drop them before the next change."""
        waiting, removed = len(self.waiting), self._removed
        most = self._max_waiting
        if waiting > most + self._in_tree // TREE_SHARE or removed > most + self._in_tree // 2:
            self._build()
        if self._entries is None:
            self._entries = self._to_arrays()
        return self._entries

    def _to_arrays(self) -> RangeEntries:
        columns: tuple[array[Any], ...] = (self._attrs, self._lows, self._highs, self._opens, self.rows, self.waiting)
        return RangeEntries(*map(as_numpy, columns))

    def _build(self) -> None:
        self._entries = None
        slots = np.flatnonzero(as_numpy(self.rows) >= 0)
        self.tree = _build_tree(self._to_arrays(), slots)
        as_numpy(self.places)[slots] = -1
        self.waiting = array("i")
        self._in_tree, self._removed = len(slots), 0

    def summarize(self) -> dict[str, object]:
        """Return how many intervals are in the tree, and how many wait."""
        return {"in the tree": self._in_tree - self._removed, "waiting": len(self.waiting)}


def _find_nodes(lows: IntArray, highs: IntArray) -> IntArray:
    """Return for each interval of codes the number in it with the most zero bits at the end: its node."""
    _, width = np.frexp(((lows - 1) ^ highs).astype(np.float64))  # the place of the topmost bit that differs
    nodes: IntArray = (highs >> (width - 1)) << (width - 1)
    return nodes


def _build_tree(entries: RangeEntries, slots: IntArray) -> IntervalTree:
    """Sort the intervals of some slots into a tree; O(n log n)."""
    attrs, opens, rows = entries.attrs[slots], entries.opens[slots], entries.rows[slots]
    lows, highs = entries.lows[slots], entries.highs[slots]
    number = int(attrs.max()) + 1 if len(attrs) else 0
    order = np.argsort(attrs, kind="stable")
    bounds = np.searchsorted(attrs[order], np.arange(number + 1))
    low_codes, high_codes = np.empty(len(attrs), np.int64), np.empty(len(attrs), np.int64)
    all_ends: list[FloatArray] = []
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
