"""A segment: an immutable set of subscriptions with their index, matched as a whole.

All of it is flat arrays and a little description, so that a snapshot can map it from a file and processes share its
pages. Deletions are kept beside it (`engine.state.LiveSegment`).

Matching has three steps. The index yields pairs of event and row whose intervals hold; rows that are more than
intervals (`special`) go through the exact checks and the trees that they find; filters that no row finds are trees
decided for 512 events at a time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.algebra.law.requirement_counts import Demand
from tidings.algebra.law.typed_attribute import TypedAttribute, collect_attributes
from tidings.engine.arrays import expand_ranges, find_starts, freeze, freeze_group, invert, list_owners
from tidings.engine.compile.code_spaces import CodeSpace
from tidings.engine.compile.columns import Column, EventColumns, View, to_typed_attribute
from tidings.engine.compile.row_table import Literals, RowTable, TreeTable, renumber_leaves
from tidings.engine.compile.source_text import FilterSources
from tidings.engine.events.event_codes import encode_events
from tidings.engine.exact.exact_checks import ExactChecks
from tidings.engine.exact.text_automaton import TextAutomaton
from tidings.engine.exact.tree_forest import TreeForest
from tidings.engine.ids import Ids
from tidings.engine.index.builder import SegmentIndex, build_index
from tidings.engine.index.planner import EventStatistics, count_by_kind
from tidings.engine.tuning import DEFAULT_TUNING, EngineTuning
from tidings.kernels.array_types import BoolArray, CodeArray, IntArray
from tidings.kernels.match import batch as kernel
from tidings.kernels.match.candidate_trees import decide_pairs
from tidings.kernels.match.exact_check import MOST
from tidings.kernels.match.layout import OP_BITS, OP_MASK, EventCells, LeafArrays
from tidings.kernels.match.row_codes import drop_duplicates
from tidings.kernels.match.trees import decide_leaves
from tidings.kernels.match.vector_words import EVENTS, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tidings.engine.events.event_source import EventSource
    from tidings.model import Filter

    Hits = tuple[IntArray, CodeArray]
    """Events and slots."""


@dataclass(frozen=True)
class FilterTrees:
    """Filters kept whole: their leaves, sorted by column, and the forest over them.

    The leaves from `len(leaves.head)` on are items of the exact checks.
    """

    leaves: Literals
    column_start: IntArray
    items: CodeArray
    forest: TreeForest

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", freeze_group(self.leaves))
        object.__setattr__(self, "column_start", freeze(self.column_start))

    @cached_property
    def leaf_arrays(self) -> LeafArrays:
        """The leaves as kernels take them."""
        column, op = freeze(self.leaves.head >> OP_BITS), freeze(self.leaves.head.astype(np.uint8) & OP_MASK)
        return LeafArrays(column, op, self.leaves.low, self.leaves.high, *self.leaves[3:])

    @cached_property
    def number_of(self) -> IntArray:
        """Slot -> the number of its tree in the forest, or -1; slots beyond the last tree's are left out."""
        return invert(self.forest.slots, int(self.forest.slots.max(initial=0)) + 1, missing=-1)

    def decide(self, cells: EventCells, events: IntArray, numbers: IntArray) -> BoolArray:
        """Decide pairs of an event and a tree's number one by one; `events` ascends, and the trees have no items."""
        accepted = np.empty(len(events), np.bool_)
        memo = np.zeros(self.forest.rows, np.int64)
        decide_pairs(self.forest.programs, self.leaf_arrays, cells, events, numbers, memo, accepted)
        return accepted


class TooManyPairs(Exception):
    """A batch has more matches than one call may return, about `pairs`; `batch_size` events at a time will do."""

    def __init__(self, pairs: int, events: int) -> None:
        super().__init__(f"{pairs:,} pairs of {events:,} events")
        self.pairs, self.events = pairs, events

    @property
    def batch_size(self) -> int:
        """How many events to match at a time instead."""
        return max(1, min(self.events // 2, self.events * MOST // (2 * self.pairs)))


@dataclass(frozen=True, eq=False)
class Segment:
    """Subscriptions, and how to find those that an event satisfies; slot `s` is the subscription `ids[s]`.

    `trees` are decided for every event, `candidate_trees` for the events that pass the row which finds them.
    """

    columns: tuple[Column, ...]
    spaces: tuple[CodeSpace, ...]
    index: SegmentIndex
    exact_checks: ExactChecks
    automata: dict[str, TextAutomaton]
    trees: FilterTrees | None
    candidate_trees: FilterTrees | None
    ids: Ids
    sources: FilterSources
    choice: dict[str, int]  # how many rows are found in which way

    def __post_init__(self) -> None:
        index = self.index
        rows, paths, tiles = freeze_group(index.rows), freeze_group(index.paths), freeze_group(index.tiles)
        object.__setattr__(self, "index", replace(index, rows=rows, paths=paths, tiles=tiles))

    @cached_property
    def column_numbers(self) -> dict[Column, int]:
        """The number of each column."""
        return {column: number for number, column in enumerate(self.columns)}

    @cached_property
    def required_columns(self) -> tuple[Column, ...]:
        """The columns of events that matching reads, but for the text patterns, which are numbered here."""
        names = sorted(self.exact_checks.names)
        boxes = [Column(name, view) for name in names for view in (View.LONGITUDE, View.LATITUDE)]
        return tuple(dict.fromkeys([column for column in self.columns if column.view is not View.PATTERNS] + boxes))

    @cached_property
    def pattern_columns(self) -> tuple[Column, ...]:
        """The columns of text patterns."""
        return tuple(column for column in self.columns if column.view is View.PATTERNS)

    @classmethod
    def build(
        cls,
        table: RowTable,
        ids: Ids,
        sources: FilterSources,
        *,
        statistics: EventStatistics | None = None,
        tuning: EngineTuning = DEFAULT_TUNING,
    ) -> Segment:
        """Plan and index the rows of a table; `statistics` tell the planner what events hold."""
        table = table.share_rows()
        index, plan = build_index(table, statistics or EventStatistics(), tuning.index)
        return cls(
            columns=table.columns,
            spaces=table.spaces,
            index=replace(index, origin=index.origin[:0]),  # of use only on the next line
            exact_checks=ExactChecks.build(table.items, *_reorder_items(table, index)),
            automata={name: TextAutomaton.build(tests) for name, tests in table.patterns.items()},
            trees=_build_trees(table, table.trees),
            candidate_trees=_build_trees(table, table.candidate_trees),
            ids=ids,
            sources=sources,
            choice=count_by_kind(plan),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def list_tree_slots(self) -> list[int]:
        """Return the slots of the filters that are kept as trees."""
        forests = [trees.forest for trees in (self.trees, self.candidate_trees) if trees is not None]
        return [slot for forest in forests for slot in forest.slots.tolist()]

    def list_slots(self, rows: NDArray[Any]) -> tuple[CodeArray, IntArray]:
        """Return the slots of rows, row after row, and how many each has: subscriptions may share a row."""
        entry, slot = self.index.rows.entry, self.index.rows.slot
        if not len(entry):
            return slot[rows], np.ones(len(rows), np.int64)
        first = entry[rows].astype(np.int64)
        sizes = entry[rows + 1] - first
        return slot[expand_ranges(first, sizes)], sizes

    def count_demands(self, slots: IntArray) -> Counter[tuple[str, Demand]]:
        """Count the demands on attributes of lossless subscriptions: the one row of each has all its tests."""
        if not len(slots):
            return Counter()
        rows, start = self.row_of[slots], self.index.rows.start
        literals = expand_ranges(start[rows], start[rows + 1] - start[rows])
        counts = np.bincount(self.index.rows.literal[3 * literals] >> OP_BITS, minlength=len(self.columns))
        demands: Counter[tuple[str, Demand]] = Counter()
        for number in np.flatnonzero(counts).tolist():
            column = self.columns[number]
            demanded = None if column.view in (View.EXISTS, View.NULL) else column.value_kind
            demands[column.attribute, Demand(demanded, column.unit)] += int(counts[number])
        return demands

    def find_readers(self, attributes: frozenset[TypedAttribute], bound_filter: Callable[[int], Filter]) -> IntArray:
        """Return the slots whose filters test one of the attributes; `bound_filter` returns the bound filter of a slot.

        Tests are found in rows and exact checks; only filters that are kept as trees are looked at themselves.
        """
        rows, checks = self.index.rows, self.exact_checks
        columns = [number for number, column in enumerate(self.columns) if to_typed_attribute(column) in attributes]
        literals = np.flatnonzero(np.isin(rows.literal[::3] >> OP_BITS, columns))
        items = [
            number
            for number, item in enumerate(checks.items)
            if not attributes.isdisjoint(collect_attributes(item.filter))
        ]
        reading_rows = np.searchsorted(rows.start, literals, "right") - 1, checks.row[np.isin(checks.item, items)]
        slots, _ = self.list_slots(np.unique(np.concatenate(reading_rows).astype(np.int64)))
        trees = [
            slot for slot in self.list_tree_slots() if not attributes.isdisjoint(collect_attributes(bound_filter(slot)))
        ]
        return np.unique(np.concatenate([slots, np.array(trees, np.int64)]).astype(np.int64))

    def match(self, batch: EventColumns, source: EventSource, *, pair_cost: int = DEFAULT_TUNING.pair_cost) -> Hits:
        """Return the pairs of event and slot, each once; `batch` has the `required_columns`, at least."""
        if self.pattern_columns:
            texts = source.select_columns(self.pattern_columns, lambda column: self.automata[column.attribute])
            batch = {**batch, **texts}
        cells = encode_events(batch, self.column_numbers, self.spaces, len(source))
        events, slots, special_events, special_rows, pairs = kernel.match(
            self.index.rows, self.index.paths, self.index.tiles, cells
        )
        if pairs > len(events) + len(special_events):
            raise TooManyPairs(int(pairs), len(source))
        if len(special_rows):
            candidates = self._apply_exact_checks(batch, source, special_events, special_rows)
            more = self._decide_candidates(cells, batch, source, candidates, pair_cost)
            events, slots = _concatenate([(events, slots), more])
        if not cells.plain.all():
            events, slots = _deduplicate_pairs(events, slots, len(source), len(self))
        if self.trees is not None:
            events, slots = _concatenate([(events, slots), self._decide_trees(self.trees, cells, batch, source)])
        return events, slots

    def _apply_exact_checks(
        self, batch: EventColumns, source: EventSource, events: IntArray, rows: NDArray[Any]
    ) -> Hits:
        """Return the pairs of event and slot whose rows pass their exact checks, each once."""
        passing = self.exact_checks.filter_pairs(batch, source, events, rows)
        slots, sizes = self.list_slots(rows[passing])
        return _deduplicate_pairs(np.repeat(events[passing], sizes), slots, len(source), len(self))

    def _decide_candidates(
        self, cells: EventCells, batch: EventColumns, source: EventSource, candidates: Hits, pair_cost: int
    ) -> Hits:
        """Return the pairs less those whose slot is a tree that the event does not satisfy."""
        events, slots = candidates
        trees = self.candidate_trees
        if trees is None:
            return candidates
        numbers = trees.number_of[np.minimum(slots, len(trees.number_of) - 1)]
        numbers[slots >= len(trees.number_of)] = -1
        undecided = np.flatnonzero(numbers >= 0)
        block_cost = len(trees.forest.code) + 2 * len(trees.leaves.head)
        if len(undecided) * pair_cost > -(-len(source) // EVENTS) * block_cost:  # all trees for all events cost less
            accepted = self._decide_trees(trees, cells, batch, source)
        else:
            undecided = undecided[np.argsort(events[undecided], kind="stable")]
            pairs = undecided[trees.decide(cells, events[undecided], numbers[undecided])]
            accepted = events[pairs], slots[pairs]
        decided = numbers < 0
        return _concatenate([(events[decided], slots[decided]), accepted])

    def _decide_trees(self, trees: FilterTrees, cells: EventCells, batch: EventColumns, source: EventSource) -> Hits:
        """Decide filters that are kept as trees for all events, 512 at a time."""
        matches: list[Hits] = [(np.zeros(0, np.int64), np.zeros(0, np.uint32))]
        truths = trees.forest.make_truth_table()
        leaves, total = trees.leaves, 0
        for first in range(0, len(source), EVENTS):
            block = np.ascontiguousarray(cells.cell[first : first + EVENTS])
            truths[:] = 0
            decide_leaves(cells._replace(cell=block), trees.leaf_arrays, trees.column_start, truths)
            events = np.arange(first, first + len(block))
            for leaf, item in enumerate(trees.items.tolist(), len(leaves.head)):
                decided = self.exact_checks.decide(batch, source, events, np.full(len(block), item))
                bits = np.packbits(decided, bitorder="little")
                truths[leaf * WORDS : (leaf + 1) * WORDS].view(np.uint8)[: len(bits)] = bits
            starts, slots = trees.forest.match_block(truths, len(block))
            total += len(slots)
            if total > MOST and first + EVENTS < len(source):
                raise TooManyPairs(total * -(-len(source) // (first + EVENTS)), len(source))
            matches.append((np.repeat(events, np.diff(starts)), slots))
        return _concatenate(matches)

    @cached_property
    def row_of(self) -> IntArray:
        """The row of each slot, or -1; of a subscription with several rows, one of them."""
        rows = self.index.rows
        result = np.full(len(self), -1, np.int64)
        result[rows.slot] = list_owners(rows.entry) if len(rows.entry) else np.arange(len(rows.slot))
        return result


def _concatenate(pairs: list[Hits]) -> Hits:
    return np.concatenate([events for events, _ in pairs]), np.concatenate([slots for _, slots in pairs])


def _deduplicate_pairs(events: IntArray, slots: CodeArray, event_count: int, slot_count: int) -> Hits:
    # The kernel stamps an array of all slots; for few pairs, sorting them is cheaper than clearing it.
    if 16 * len(events) > slot_count:
        distinct: Hits = drop_duplicates(events, slots, event_count, slot_count)
        return distinct
    keys = np.unique(events.astype(np.uint64) << np.uint64(32) | slots.astype(np.uint64))
    return (keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _reorder_items(table: RowTable, index: SegmentIndex) -> tuple[CodeArray, CodeArray]:
    """Return the rows that have items, numbered as in the index, and their items, sorted by row."""
    if not len(table.item_row):
        return table.item_row, table.item_number
    by_row = np.argsort(table.item_row, kind="stable")
    item_row, item = table.item_row[by_row], table.item_number[by_row]
    first = np.searchsorted(item_row, index.origin)
    sizes = np.searchsorted(item_row, index.origin, "right") - first
    return np.repeat(np.arange(len(index.origin)), sizes).astype(np.uint32), item[expand_ranges(first, sizes)]


def _build_trees(table: RowTable, trees: TreeTable | None) -> FilterTrees | None:
    """Sort the leaves of trees by column, keeping equal ones once, and compile the trees."""
    if trees is None:
        return None
    head, low, high, *unions = trees.leaves
    order = np.lexsort((head, low, high, head >> OP_BITS))
    is_new = np.ones(len(order), bool)
    is_new[1:] = np.any([part[order[1:]] != part[order[:-1]] for part in (head, low, high)], axis=0)
    place = (np.cumsum(is_new) - 1)[invert(order, len(order))]
    distinct = order[is_new]
    leaves = Literals(head[distinct], low[distinct], high[distinct], *unions)
    count = len(distinct) + len(trees.items)
    numbers = [*place.tolist(), *range(len(distinct), count)]
    column_start = find_starts(leaves.head >> OP_BITS, len(table.columns))
    nodes = [(slot, renumber_leaves(node, numbers)) for slot, node in trees.trees]
    return FilterTrees(leaves, column_start, trees.items, TreeForest.build(nodes, leaves=count))
