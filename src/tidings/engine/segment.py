"""A segment: an immutable set of subscriptions with their index, matched as a whole.

All of it is flat arrays and a little description, so that a snapshot can map it from a file and processes
can share its pages. Deleting is not its business: `engine.parts` keeps what is dead beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.row_table import Literals, renumbered
from tidings.engine.events.event_codes import cells_of
from tidings.engine.exact.exact_checks import Second
from tidings.engine.exact.forest import Forest
from tidings.engine.exact.text_automaton import Automaton
from tidings.engine.index.builder import index_of
from tidings.engine.index.planner import total
from tidings.engine.ranges import runs
from tidings.engine.readonly import frozen, frozen_group
from tidings.kernels.match import batch as kernel
from tidings.kernels.match.candidate_trees import decide_pairs
from tidings.kernels.match.exact_check import MOST
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.row_codes import drop_duplicates
from tidings.kernels.match.trees import decide_leaves
from tidings.kernels.match.vector_words import EVENTS, WORDS

if TYPE_CHECKING:
    from tidings.engine.compile.code_spaces import Space
    from tidings.engine.compile.columns import Batch
    from tidings.engine.compile.row_table import Kept, Table
    from tidings.engine.compile.source_text import Sources
    from tidings.engine.events.event_source import Arrivals
    from tidings.engine.ids import Ids
    from tidings.engine.index.builder import Index
    from tidings.kernels.match.layout import EventCells
    from tidings.model import Kind

Pairs = tuple["NDArray[np.int64]", "NDArray[np.uint32]"]
"""Events and slots."""


PAIR = 40
"""A tree for one event costs so many instructions of a block of 512; beyond that, blocks decide all trees."""


@dataclass(frozen=True)
class Trees:
    """Filters kept whole: their leaves, sorted by column, and the forest over them.

    The leaves from `len(leaves.head)` on are items of the second phase.
    """

    leaves: Literals
    column_start: NDArray[np.int64]
    items: NDArray[np.uint32]
    forest: Forest

    def __post_init__(self) -> None:
        """Make what kernels read read-only."""
        object.__setattr__(self, "leaves", Literals(*map(frozen, self.leaves.arrays)))
        object.__setattr__(self, "column_start", frozen(self.column_start))

    @cached_property
    def column(self) -> NDArray[Any]:
        """The column of each leaf."""
        return frozen(self.leaves.head >> OP_BITS)

    @cached_property
    def op(self) -> NDArray[np.uint8]:
        """The op of each leaf."""
        return frozen(self.leaves.head.astype(np.uint8) & 15)

    @cached_property
    def place_of(self) -> NDArray[np.int64]:
        """Where in the forest the tree of each slot is, or -1; slots beyond the last tree's are left out."""
        slots = self.forest.slots
        result = np.full(int(slots.max(initial=0)) + 1, -1, np.int64)
        result[slots] = np.arange(len(slots))
        return result

    def decide(self, cells: EventCells, events: NDArray[Any], places: NDArray[Any]) -> NDArray[np.bool_]:
        """Decide pairs of an event and a tree's place one by one; `events` ascends. For trees without items."""
        good = np.empty(len(events), np.bool_)
        memo = np.zeros(self.forest.rows, np.int64)
        decide_pairs(
            self.forest.code, self.forest.starts, self.forest.turned, events, places, cells.cell,
            cells.many_start, cells.many_low, cells.many_high, self.column, self.op,
            self.leaves.low, self.leaves.high, *self.leaves.unions, memo, good,
        )  # fmt: skip
        return good

    def cheaper_in_blocks(self, pairs: int, events: int) -> bool:
        """Tell whether deciding all trees for all events in blocks costs less than some pairs one by one."""
        return pairs * PAIR > -(-events // EVENTS) * (len(self.forest.code) + 2 * len(self.leaves.head))


class Crowded(Exception):
    """So many pairs in one call that they are not written down; asked about fewer events, a segment answers."""

    def __init__(self, pairs: int, events: int) -> None:
        """Tell how many pairs there are, about, and of how many events."""
        super().__init__(f"{pairs:,} pairs of {events:,} events")
        self.pairs, self.events = pairs, events

    @property
    def fewer(self) -> int:
        """How many events to ask about next."""
        return max(1, min(self.events // 2, self.events * MOST // (2 * self.pairs)))


class Segment:
    """Subscriptions, and how to find those that an event satisfies."""

    def __init__(  # noqa: PLR0913 - all its parts, by name
        self,
        *,
        columns: tuple[Column, ...],
        kinds: tuple[Kind, ...],
        spaces: tuple[Space, ...],
        index: Index,
        second: Second,
        automata: dict[str, Automaton],
        trees: Trees | None,
        asked: Trees | None = None,
        ids: Ids,
        sources: Sources,
        choice: dict[str, int],
    ) -> None:
        """Take the parts; `Segment.build` makes them."""
        self.columns, self.kinds, self.spaces = columns, kinds, spaces
        rows, paths, tiles = frozen_group(index.rows), frozen_group(index.paths), frozen_group(index.tiles)
        self.index = replace(index, rows=rows, paths=paths, tiles=tiles)
        self.second, self.automata = second, automata
        self.trees, self.asked = trees, asked
        self.ids, self.sources, self.choice = ids, sources, choice
        self._place = {column: number for number, column in enumerate(columns)}
        boxes = [Column(name, view) for name in sorted(second.names) for view in (View.LONGITUDE, View.LATITUDE)]
        self.wanted = tuple(dict.fromkeys([*(c for c in columns if c.view is not View.PATTERNS), *boxes]))
        self.patterns = tuple(column for column in columns if column.view is View.PATTERNS)

    @classmethod
    def build(
        cls,
        table: Table,
        ids: Ids,
        sources: Sources,
        *,
        sample: dict[int, NDArray[np.uint32]] | None = None,
        present: NDArray[np.float32] | None = None,
    ) -> Segment:
        """Plan and index a table's rows; slot `s` is the subscription `ids[s]`."""
        table = table.shared()
        index, choice = index_of(table, sample, present)
        return cls(
            columns=table.columns,
            kinds=table.kinds,
            spaces=table.spaces,
            index=replace(index, origin=index.origin[:0]),  # of use only on the next line
            second=Second.of(table.items, *_moved(table, index)),
            automata={name: Automaton.build(tests) for name, tests in table.patterns.items()},
            trees=_trees(table, table.trees),
            asked=_trees(table, table.asked),
            ids=ids,
            sources=sources,
            choice=total(choice),
        )

    def __len__(self) -> int:
        """Count the slots."""
        return len(self.ids)

    def match(self, batch: Batch, arrivals: Arrivals) -> Pairs:
        """Return the pairs of event and slot; `batch` has the columns `wanted`, at least."""
        if self.patterns:
            texts = arrivals.columns(self.patterns, lambda column: self.automata[column.attribute])
            batch = {**batch, **texts}
        cells = cells_of(batch, self._place, self.spaces, len(arrivals))
        events, slots, odd_events, odd_rows, pairs = kernel.match(
            self.index.rows, self.index.paths, self.index.tiles, cells
        )
        if pairs > len(events) + len(odd_events):
            raise Crowded(int(pairs), len(arrivals))
        if len(odd_rows):
            more = self._special(cells, batch, arrivals, odd_events, odd_rows)
            events, slots = np.concatenate([events, more[0]]), np.concatenate([slots, more[1]])
        if not cells.plain.all():
            events, slots = _once(events, slots, len(arrivals), len(self))
        if self.trees is not None:
            more = self._whole(self.trees, cells, batch, arrivals)
            events, slots = np.concatenate([events, more[0]]), np.concatenate([slots, more[1]])
        return events, slots

    def _special(
        self, cells: EventCells, batch: Batch, arrivals: Arrivals, events: NDArray[Any], rows: NDArray[Any]
    ) -> Pairs:
        """Decide the second phase, and report a subscription with several rows once."""
        events, slots = self._second(batch, arrivals, events, rows)
        if self.asked is None:
            return events, slots
        places = self.asked.place_of[np.minimum(slots, len(self.asked.place_of) - 1)]
        places[slots >= len(self.asked.place_of)] = -1
        mine = np.flatnonzero(places >= 0)
        if self.asked.cheaper_in_blocks(len(mine), len(arrivals)):
            more = self._whole(self.asked, cells, batch, arrivals)
        else:
            mine = mine[np.argsort(events[mine], kind="stable")]
            good = mine[self.asked.decide(cells, events[mine], places[mine])]
            more = events[good], slots[good]
        rest = places < 0
        return np.concatenate([events[rest], more[0]]), np.concatenate([slots[rest], more[1]])

    def _second(self, batch: Batch, arrivals: Arrivals, events: NDArray[Any], rows: NDArray[Any]) -> Pairs:
        """Return the pairs of event and slot whose rows satisfy their items, each once."""
        good = self.second.survivors(batch, arrivals, events, rows)
        events, rows = events[good], rows[good]
        entry, slot = self.index.rows.entry, self.index.rows.slot
        if not len(entry):
            return _once(events, slot[rows], len(arrivals), len(self))
        sizes = (entry[rows + np.uint32(1)] - entry[rows]).astype(np.int64)
        return _once(np.repeat(events, sizes), slot[runs(entry[rows], sizes)], len(arrivals), len(self))

    def _whole(self, trees: Trees, cells: EventCells, batch: Batch, arrivals: Arrivals) -> Pairs:
        """Decide the filters that are kept as trees, in blocks of events."""
        found: list[Pairs] = [(np.zeros(0, np.int64), np.zeros(0, np.uint32))]
        truths = trees.forest.table()
        leaves, total = trees.leaves, 0
        for first in range(0, len(arrivals), EVENTS):
            block = np.ascontiguousarray(cells.cell[first : first + EVENTS])
            truths[:] = 0
            decide_leaves(
                block, cells.many_start, cells.many_low, cells.many_high, trees.column_start,
                trees.op, leaves.low, leaves.high, *leaves.unions, truths,
            )  # fmt: skip
            for place, item in enumerate(trees.items.tolist()):
                row = (len(leaves.head) + place) * WORDS
                for event in range(len(block)):
                    if self.second.holds(batch, arrivals, first + event, item):
                        truths[row + event // 64] |= np.uint64(1) << np.uint64(event % 64)
            starts, slots = trees.forest.match(truths, len(block))
            total += len(slots)
            if total > MOST and first + EVENTS < len(arrivals):
                raise Crowded(total * -(-len(arrivals) // (first + EVENTS)), len(arrivals))
            found.append((np.repeat(np.arange(first, first + len(block)), np.diff(starts)), slots))
        return np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])

    @cached_property
    def row_of(self) -> NDArray[np.int64]:
        """The row of each slot, or -1; of a subscription with several rows, one of them."""
        rows = self.index.rows
        result = np.full(len(self), -1, np.int64)
        owner = np.arange(len(rows.slot)) if not len(rows.entry) else np.repeat(
            np.arange(len(rows.entry) - 1), np.diff(rows.entry)
        )  # fmt: skip
        result[rows.slot] = owner
        return result


def _once(events: NDArray[Any], slots: NDArray[Any], event_count: int, slot_count: int) -> Pairs:
    """Return the pairs, each once."""
    if 16 * len(events) > slot_count:
        found: Pairs = drop_duplicates(events, slots, event_count, slot_count)
        return found
    keys = np.unique(events.astype(np.uint64) << np.uint64(32) | slots.astype(np.uint64))
    return (keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _moved(table: Table, index: Index) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the rows with items, in the index's numbers, and the items, sorted by row."""
    if not len(table.item_row):
        return table.item_row, table.item_number
    by_row = np.argsort(table.item_row, kind="stable")
    item_row, item = table.item_row[by_row], table.item_number[by_row]
    first = np.searchsorted(item_row, index.origin)
    sizes = np.searchsorted(item_row, index.origin, "right") - first
    return np.repeat(np.arange(len(index.origin)), sizes).astype(np.uint32), item[runs(first, sizes)]


def _trees(table: Table, kept: Kept | None) -> Trees | None:
    if kept is None:
        return None
    lits = kept.leaves
    order = np.argsort(lits.head >> OP_BITS, kind="stable")
    new = np.empty(len(order) + len(kept.items), np.int64)
    new[order] = np.arange(len(order))
    new[len(order) :] = np.arange(len(order), len(new))
    numbers = new.tolist()
    leaves = Literals(lits.head[order], lits.low[order], lits.high[order], *lits.unions)
    column_start = np.searchsorted(leaves.head >> OP_BITS, np.arange(len(table.columns) + 1)).astype(np.int64)
    trees = [(slot, renumbered(node, numbers)) for slot, node in kept.trees]
    return Trees(leaves, column_start, kept.items, Forest.build(trees, leaves=len(new)))
