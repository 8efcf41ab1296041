"""The engine: indexed segments, a few subscriptions that are not compiled yet, and the changes to both.

Log-structured: new subscriptions wait in a short list that is tested one by one, then become a small segment; small
segments are merged by the call that made them, large ones by a thread of their own. A removal marks a slot as deleted.
Every change builds a new state and puts it in place with one assignment, so readers need no lock: each goes on with
the state it began with.
"""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings import forks
from tidings.algebra import holds
from tidings.algebra.law.typed_attribute import TypedAttribute, collect_attributes
from tidings.engine.compile.columns import EventSample
from tidings.engine.compile.draft import FilterDraft
from tidings.engine.compile.source_text import FilterSource, FilterSources, decompile_filter
from tidings.engine.events.event_codes import encode_events
from tidings.engine.events.event_columns import refuse_patterns
from tidings.engine.explain.report import describe_state
from tidings.engine.index.planner import EventStatistics, estimate_presence
from tidings.engine.merge import choose_merge, choose_work, merge_parts, sort_by_size
from tidings.engine.segment import Segment
from tidings.engine.state import EngineState, LiveSegment, Stage, WaitingSubscription
from tidings.engine.tuning import EngineTuning, get_tuning
from tidings.kernels.match.literals import SEVERAL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tidings.algebra.law.requirement_counts import Demand
    from tidings.concepts import Ontology
    from tidings.engine.compile.row_table import RowTable
    from tidings.engine.events.event_source import EventSource
    from tidings.engine.ids import Ids
    from tidings.kernels.array_types import CodeArray, IntArray
    from tidings.model import Filter

LEAST_SAMPLE, MOST_SAMPLE = 64, 16_384
"""A first batch of between so many events becomes the sample from which the planner learns what events hold."""


class SegmentMatches(NamedTuple):
    """Matches in one segment: event `events[i]` satisfies the subscription `ids[slots[i]]`."""

    events: IntArray
    slots: NDArray[np.integer[Any]]
    ids: Ids | list[str | int]


class Removal(NamedTuple):
    """The outcome of a removal: the ids that do not exist and, of the others, what they demand of attributes.

    `demands` are counted from rows; `filters` are those whose demands must be counted from the filter itself.
    """

    missing: list[str | int]
    demands: Counter[tuple[str, Demand]]
    filters: list[Filter]


class Engine:
    """Subscriptions in force, and the search for those that events satisfy.

    Any number of threads may match while others change it; changes are made one after the other, under a lock.
    """

    def __init__(
        self,
        ontology: Ontology,
        bind: Callable[[Filter], Filter],
        parse: Callable[[FilterSource], Filter],
        *,
        tuning: EngineTuning | None = None,
    ) -> None:
        """Start empty; `bind` resolves the names of a filter, `parse` reads one that may be a text."""
        self._ontology, self._bind, self._parse = ontology, bind, parse
        self.tuning = get_tuning() if tuning is None else tuning
        self.state = EngineState()  # what is in force now; a change puts another one here
        self.lock = threading.RLock()
        self._merger: threading.Thread | None = None
        self._sample: EventSample | None = None
        self.merges = 0
        forks.guard(self, forks.Level.ALGORITHM)

    def after_fork(self) -> None:
        """Forget the merging thread, which a child does not have; the next change starts one if it is needed."""
        self._merger = None

    # Changing ----------------------------------------------------------------------------------

    def stage(self) -> Stage:
        """Return an empty stage; `commit` puts what was added to it in force."""
        return Stage(self._ontology, self.tuning)

    def draft(self) -> FilterDraft:
        """Return an empty draft, for filters that are compiled beside a table of `add_table`."""
        return FilterDraft(self._ontology, self.tuning)

    def commit(self, stage: Stage) -> None:
        """Put a stage in force, replacing subscriptions with the same ids; readers see all of it or nothing."""
        if stage.draft is not None:
            self.add_table(*stage.build_table())
            return
        with self.lock:
            state = self.state.delete_ids(list(stage.waiting))
            state = EngineState(state.parts, {**state.waiting, **stage.waiting})
            self._put(self._compile_waiting(state) if len(state.waiting) > self.tuning.waiting_limit else state)

    def add_table(self, table: RowTable, ids: Ids, sources: FilterSources) -> None:
        """Put rows that were compiled in bulk in force, replacing subscriptions with the same ids."""
        with self.lock:
            part = LiveSegment(self._build_segment(table, ids, sources)).delete_slots(ids.find_duplicates())
            state = self.state.delete_ids(self.list_existing(ids))
            self._put(EngineState(sort_by_size([*state.parts, part]), state.waiting))

    def remove(self, ids: Sequence[str | int], *, dry_run: bool = False) -> Removal:
        """Remove subscriptions, looking each up once; where an id does not exist, nothing is removed.

        With `dry_run` nothing is removed in any case; the result tells what the subscriptions demand of attributes.
        """
        with self.lock:
            state = self.state
            if len(ids) == 1 and not dry_run:  # without arrays, a tenth of the time
                if (tree := self.get_filter(ids[0])) is not None:
                    self._put(state.delete_ids(ids))
                return Removal(list(ids) if tree is None else [], Counter(), [] if tree is None else [tree])
            slots = state.find_slots(ids)
            # most often nothing waits, and a look-up of each id in an empty mapping is a tenth of the whole
            exists = np.zeros(len(ids), bool)
            if state.waiting:
                exists[:] = [id in state.waiting for id in ids]
            filters = [self._parse(state.waiting[ids[index]].source) for index in np.flatnonzero(exists).tolist()]
            demands: Counter[tuple[str, Demand]] = Counter()
            for part, part_slots in zip(state.parts, slots, strict=True):
                exists |= part_slots >= 0
                own = part_slots[part_slots >= 0]
                written = part.segment.sources.find_written(own)
                filters += [self._read_filter(part.segment, slot) for slot in own[written].tolist()]
                demands.update(part.segment.count_demands(own[~written]))
            missing = [ids[index] for index in np.flatnonzero(~exists).tolist()]
            if not missing and not dry_run:
                self._put(state.delete_ids(ids, slots))
            return Removal(missing, demands, filters)

    def _put(self, state: EngineState) -> None:
        """Put a state in force, its small segments merged; the lock is held."""
        self.state = self._merge_small(state) if state.parts else state
        if state.parts:
            self._schedule_merge()

    def _compile_waiting(self, state: EngineState) -> EngineState:
        stage = self.stage()
        stage.waiting.update(state.waiting)
        stage.compile()
        part = LiveSegment(self._build_segment(*stage.build_table()))  # ids that wait are distinct
        return EngineState(sort_by_size([*state.parts, part]), {})

    def _build_segment(self, table: RowTable, ids: Ids, sources: FilterSources) -> Segment:
        statistics = EventStatistics(self._sample_codes(table), estimate_presence(table, self._ontology))
        return Segment.build(table, ids, sources, statistics=statistics, tuning=self.tuning)

    def _sample_codes(self, table: RowTable) -> dict[int, CodeArray]:
        """Return the sorted codes of the sampled events, for the columns of a table that the sample has."""
        if self._sample is None:
            return {}
        batch, events = self._sample
        numbers = {column: number for number, column in enumerate(table.columns)}
        cell = encode_events(batch, numbers, table.spaces, events).cell
        sampled = {number for column, number in numbers.items() if column in batch}
        return {number: np.sort(cell[:, number][cell[:, number] < SEVERAL]) for number in sampled}

    # Merging -----------------------------------------------------------------------------------

    def _merge_small(self, state: EngineState) -> EngineState:
        """Merge small segments at once, and drop empty ones."""
        limit = self.tuning.inline_merge_limit
        parts = [part for part in state.parts if len(part)]
        while merge := choose_merge([part for part in parts if len(part.segment) <= limit], self.tuning.growth):
            if sum(len(part.segment) for part in merge) > limit:
                break
            merged = set(map(id, merge))
            others = [part for part in parts if id(part) not in merged]
            parts = list(sort_by_size([*others, self._merge(merge)[0]]))
        return EngineState(tuple(parts), state.waiting)

    def _merge(self, parts: Sequence[LiveSegment]) -> tuple[LiveSegment, list[IntArray]]:
        """Return one segment with the live subscriptions of all, and the new slots of each part's (-1: deleted)."""
        table, ids, sources, new_slots = merge_parts(parts, self._bind_filter, self.draft())
        self.merges += 1
        return LiveSegment(self._build_segment(table, ids, sources)), new_slots

    def _schedule_merge(self) -> None:
        if not self.tuning.merges_in_background or not choose_work(self.state.parts, self.tuning):
            return
        if self._merger is None or not self._merger.is_alive():
            # Not a daemon: the interpreter must not end while a kernel of ours is running.
            self._merger = threading.Thread(target=self._run_merges, name="tidings-merge")
            self._merger.start()

    def _run_merges(self) -> None:
        try:
            while True:
                with self.lock:
                    parts = choose_work(self.state.parts, self.tuning)
                    if not parts:
                        self._merger = None
                        return
                self._replace_parts(parts)
        finally:  # also when a merge failed, for want of memory say: the next change tries again
            with self.lock:
                if self._merger is threading.current_thread():
                    self._merger = None

    def _replace_parts(self, parts: Sequence[LiveSegment]) -> None:
        """Merge segments without the lock, then put the result in their place, less what was deleted meanwhile."""
        merged, new_slots = self._merge(parts)
        with self.lock:
            current = {id(part.segment): part for part in self.state.parts}
            for part, new_slot in zip(parts, new_slots, strict=True):
                now = current.pop(id(part.segment), None)
                if now is None:  # all of it was deleted, and it was dropped
                    merged = merged.delete_slots(new_slot[new_slot >= 0])
                elif now.deleted is not None:
                    slots = new_slot[now.deleted]
                    merged = merged.delete_slots(slots[slots >= 0])
            live = [part for part in (*current.values(), merged) if len(part)]  # `merged` is empty after a `compact`
            self.state = EngineState(sort_by_size(live), self.state.waiting)

    def compact(self) -> None:
        """Compile what waits and merge all segments into one, now."""
        with self.lock:
            state = self._compile_waiting(self.state) if self.state.waiting else self.state
            parts = [part for part in state.parts if len(part)]
            if len(parts) > 1 or any(part.deleted_count for part in parts):
                parts = [self._merge(parts)[0]]
            self.state = EngineState(tuple(parts), {})

    def seal(self) -> EngineState:
        """Compile what waits, merging no more than any change does; return the state that is then in force."""
        with self.lock:
            if self.state.waiting:
                self._put(self._compile_waiting(self.state))
            return self.state

    def restore(self, parts: Sequence[LiveSegment]) -> None:
        """Replace all subscriptions by the segments of a snapshot."""
        with self.lock:
            self.state = EngineState(tuple(parts))

    @property
    def is_merging(self) -> bool:
        """Whether the merging thread is at work."""
        return self._merger is not None

    def settle(self) -> None:
        """Wait until the merging thread has nothing left to do."""
        while (merger := self._merger) is not None:
            merger.join()

    # Reading back ------------------------------------------------------------------------------

    @property
    def bulk_engine(self) -> Engine:
        """The engine itself: it takes compiled tables (`add_table`)."""
        return self

    def __len__(self) -> int:
        return len(self.state)

    def __contains__(self, id: object) -> bool:
        state = self.state
        return id in state.waiting or state.find(id) is not None

    def __iter__(self) -> Iterator[str | int]:
        return self.state.iterate_ids()

    def find_existing(self, ids: Sequence[str | int]) -> set[str | int]:
        """Return the subset of `ids` that is subscribed."""
        state = self.state
        if len(ids) == 1:
            return set(ids) if ids[0] in self else set()
        existing = {id for id in ids if id in state.waiting}
        for slots in state.find_slots(ids):
            existing.update(ids[index] for index in np.flatnonzero(slots >= 0).tolist())
        return existing

    def list_existing(self, ids: Ids) -> list[str | int]:
        """Return the subset of `ids` that is subscribed; only those become Python objects."""
        state = self.state
        existing = [id for id in state.waiting if ids.find(id) >= 0]
        arrow_ids = ids.take(np.arange(len(ids))) if state.parts else None
        for part in state.parts:
            slots = np.unique(part.find_many(arrow_ids))
            existing += part.segment.ids.to_list(slots[slots >= 0])
        return existing

    def get_filter(self, id: str | int) -> Filter | None:
        """Return a subscription's filter as it was written, or None."""
        state = self.state
        waiting = state.waiting.get(id)
        if waiting is not None:
            return self._parse(waiting.source)
        place = state.find(id)
        return None if place is None else self._read_filter(*place)

    def _read_filter(self, segment: Segment, slot: int) -> Filter:
        source = segment.sources.get(slot)
        return decompile_filter(segment, slot) if source is None else self._parse(source)

    def _bind_filter(self, segment: Segment, slot: int) -> Filter:
        return self._bind(self._read_filter(segment, slot))

    # Matching ----------------------------------------------------------------------------------

    def match(self, source: EventSource, state: EngineState | None = None) -> list[SegmentMatches]:
        """Return the pairs of event and subscription; `state` is the one whose columns the events were read for."""
        state = self.state if state is None else state
        columns = state.collect_columns()
        batch = source.select_columns(columns, refuse_patterns) if columns else {}
        if self._sample is None and LEAST_SAMPLE <= len(source) <= MOST_SAMPLE:
            self._sample = EventSample(batch, len(source))
        matches = []
        for part in state.parts:
            events, slots = part.segment.match(batch, source, pair_cost=self.tuning.pair_cost)
            if part.deleted is not None:
                live = ~part.deleted[slots]
                events, slots = events[live], slots[live]
            matches.append(SegmentMatches(events, slots, part.segment.ids))
        if state.waiting:
            matches.append(_match_waiting(state.waiting, source))
        return matches

    def find_readers(self, keys: Collection[TypedAttribute]) -> list[str | int]:
        """Return the ids of the subscriptions that read an attribute in one of these ways."""
        state, attributes = self.state, frozenset(keys)
        ids = [
            id
            for id, subscription in state.waiting.items()
            if not attributes.isdisjoint(collect_attributes(subscription.bound))
        ]
        for part in state.parts:
            slots = part.segment.find_readers(attributes, partial(self._bind_filter, part.segment))
            ids += part.segment.ids.to_list(slots if part.deleted is None else slots[~part.deleted[slots]])
        return ids

    def explain(self) -> dict[str, object]:
        """Return the plan in plain values."""
        return describe_state(self.state, self._sample)


def _match_waiting(waiting: Mapping[str | int, WaitingSubscription], source: EventSource) -> SegmentMatches:
    """Test the subscriptions that are not compiled yet one by one."""
    events, slots = [], []
    filters = [(slot, subscription.bound) for slot, subscription in enumerate(waiting.values())]
    for event in range(len(source)):
        reading = source.read_event(event)
        for slot, filter in filters:
            if holds(filter, reading, source.setting):
                events.append(event)
                slots.append(slot)
    return SegmentMatches(np.array(events, np.int64), np.array(slots, np.int64), list(waiting))
