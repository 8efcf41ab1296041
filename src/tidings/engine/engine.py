"""The engine: segments, what waits beside them, and the change from one to the next.

Log-structured: new subscriptions wait in a short list that is asked one by one, then become a small segment;
small segments are merged at once, large ones by a thread of their own. Removing sets a bit. Every change
builds a new state and puts it in place with one assignment: readers hold the state they began with.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings import forks
from tidings.algebra import holds
from tidings.algebra.law.requirement_counts import Demand
from tidings.algebra.law.typed_attribute import TypedAttribute, collect_attributes
from tidings.engine.compile.columns import Column, View, typed_column
from tidings.engine.compile.decompile import filter_of
from tidings.engine.compile.draft import Draft
from tidings.engine.compile.row_table import Table
from tidings.engine.compile.source_text import Sources, Written
from tidings.engine.events.event_codes import cells_of
from tidings.engine.explain.report import described
from tidings.engine.ids import Ids
from tidings.engine.index.planner import present
from tidings.engine.merge import joined, table_of
from tidings.engine.prune import pruned
from tidings.engine.ranges import runs
from tidings.engine.segment import Segment
from tidings.engine.staging import FEW, Stage, Waiting
from tidings.engine.state import Part, State
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import SEVERAL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from tidings.concepts import Ontology
    from tidings.engine.compile.columns import Batch
    from tidings.engine.events.event_source import Arrivals
    from tidings.kernels.match.layout import IndexRows
    from tidings.model import Filter

AT_ONCE = 8192
"""Up to so many subscriptions are merged in the call that asked for it; more are left to the merging thread."""

GROWTH = 4
"""A segment is merged with smaller ones once they make up this part of it."""

WASTE = 0.3
"""A segment is built anew when so many of its subscriptions are dead."""

LEAST_SAMPLE, MOST_SAMPLE = 64, 16_384
"""Events from which the planner learns what events hold."""


class SegmentMatches(NamedTuple):
    """Pairs from one place: events, and slots of `ids`."""

    events: NDArray[np.int64]
    slots: NDArray[Any]
    ids: Ids | list[Any]


class Removal(NamedTuple):
    """What became of a removal: the ids that are not there, and what the others asked of attributes.

    Of filters that their rows do not tell in full, that must be read from the filter itself.
    """

    missing: list[str | int]
    demands: Counter[tuple[str, Demand]]
    trees: list[Filter]


class Engine:
    """Subscriptions in force, found by what events hold."""

    def __init__(self, ontology: Ontology, bind: Callable[[Filter], Filter], parse: Callable[[str], Filter]) -> None:
        """Start empty; `bind` gives what a filter means, `parse` reads text that was written."""
        self._ontology, self._bind, self._parse = ontology, bind, parse
        self._state = State()
        self._lock = threading.RLock()
        self._merger: threading.Thread | None = None
        self._sample: tuple[Batch, int] | None = None
        self.merges = 0
        forks.guard(self, forks.Level.ALGORITHM)

    def _after_fork(self) -> None:
        """Forget the merging thread, which a child does not have; the next change starts one if it is needed."""
        self._merger = None

    # Changing ----------------------------------------------------------------------------------

    def stage(self) -> Stage:
        """Return an empty stage; `commit` puts what was added to it in force."""
        return Stage(self._ontology)

    def commit(self, stage: Stage) -> None:
        """Put a stage in force, replacing subscriptions with the same ids; readers see all of it or nothing."""
        with self._lock:
            if stage.draft is None:
                state = self._state.without(list(stage.few))
                state = State(state.parts, {**state.waiting, **stage.few})
                if len(state.waiting) > FEW:
                    state = self._compiled(state)
            else:
                part = self._part(stage)
                state = self._state.without(stage.ids)
                state = State(_by_size([*state.parts, part]), state.waiting)
            self._state = self._tidied(state)
            self._merge_later()

    def add_table(self, table: Table, ids: Ids, sources: Sources) -> None:
        """Put rows that were compiled in bulk in force, replacing subscriptions with the same ids."""
        with self._lock:
            part = Part(self._built(table, ids, sources)).without(ids.duplicates())
            state = self._state.without(self.list_existing(ids))
            self._state = self._tidied(State(_by_size([*state.parts, part]), state.waiting))
            self._merge_later()

    def discard(self, ids: Sequence[str | int]) -> None:
        """Remove subscriptions."""
        with self._lock:
            self._state = self._tidied(self._state.without(ids))
            self._merge_later()

    def remove(self, ids: Sequence[str | int], *, keep: bool = False) -> Removal:
        """Remove many, looking each up once; if some are not there, nothing is removed, and they are told.

        With `keep` nothing is removed in any case; only what they ask of attributes is told.
        """
        with self._lock:
            state = self._state
            there = np.array([id in state.waiting for id in ids], bool) if state.waiting else np.zeros(len(ids), bool)
            trees = [self._read(state.waiting[ids[at]].written) for at in np.flatnonzero(there).tolist()]
            gone = set(ids) if trees else set()
            waiting = {id: one for id, one in state.waiting.items() if id not in gone}
            asked: Counter[tuple[str, Demand]] = Counter()
            parts = []
            given = _arrow(ids)
            for part in state.parts:
                slots = part.find_many(given)
                there |= slots >= 0
                slots = slots[slots >= 0]
                read = np.isin(slots, part.segment.sources.slots) if len(part.segment.sources.slots) else slots < 0
                trees += [self._tree(part.segment, slot) for slot in slots[read].tolist()]
                asked += _demands(part.segment, slots[~read])
                parts.append(part.without(slots))
            missing = [ids[at] for at in np.flatnonzero(~there).tolist()]
            if not missing and not keep:
                self._state = self._tidied(State(tuple(parts), waiting))
                self._merge_later()
            return Removal(missing, asked, trees)

    def _part(self, stage: Stage) -> Part:
        assert stage.draft is not None
        ids = Ids.of(stage.ids)
        segment = self._built(Table.of(stage.draft), ids, Sources.of(stage.sources))
        return Part(segment).without(ids.duplicates())

    def _compiled(self, state: State) -> State:
        stage = self.stage()
        stage.few.update(state.waiting)
        stage.compile()
        return State(_by_size([*state.parts, self._part(stage)]), {})

    def _built(self, table: Table, ids: Ids, sources: Sources) -> Segment:
        return Segment.build(table, ids, sources, sample=self._sampled(table), present=present(table, self._ontology))

    def _sampled(self, table: Table) -> dict[int, NDArray[np.uint32]] | None:
        """Return the codes that sampled events have in the columns of a table."""
        if self._sample is None:
            return None
        batch, events = self._sample
        places = {column: number for number, column in enumerate(table.columns)}
        cell = cells_of(batch, places, table.spaces, events).cell
        known = {number for column, number in places.items() if column in batch}
        return {number: np.sort(cell[:, number][cell[:, number] < SEVERAL]) for number in known}

    # Merging -----------------------------------------------------------------------------------

    def _tidied(self, state: State) -> State:
        """Merge small segments at once."""
        parts = [part for part in state.parts if len(part)]
        while small := _run([part for part in parts if len(part.segment) <= AT_ONCE]):
            if sum(len(part.segment) for part in small) > AT_ONCE:
                break
            gone = set(map(id, small))
            kept = [part for part in parts if id(part) not in gone]
            parts = list(_by_size([*kept, self._merged(small)[0]]))
        return State(tuple(parts), state.waiting)

    def _merged(self, parts: Sequence[Part]) -> tuple[Part, list[NDArray[np.int64]]]:
        """Return one part with the living of all, and the new slots of each part's."""
        tables, new_slots, keep = [], [], []
        sources: dict[int, Written] = {}
        base = 0
        whole = Draft(self._ontology)
        for part in parts:
            living = part.living()
            new = np.full(len(part.segment), -1, np.int64)
            new[living] = np.arange(base, base + len(living))
            base += len(living)
            table = table_of(part.segment, new)
            tables.append(pruned(table) if part.deaths else table)
            sources |= part.segment.sources.renumbered(new)
            kept = [one.forest.slots for one in (part.segment.trees, part.segment.asked) if one is not None]
            for slot in [slot for slots in kept for slot in slots.tolist() if new[slot] >= 0]:
                whole.add(int(new[slot]), self._bind(self._tree(part.segment, slot)))
            new_slots.append(new)
            keep.append(living)
        if whole.trees or len(whole.row_slot):
            tables.append(Table.of(whole))
        ids = Ids.joined([part.segment.ids for part in parts], keep)
        self.merges += 1
        return Part(self._built(joined(tables), ids, Sources.of(dict(sorted(sources.items()))))), new_slots

    def _merge_later(self) -> None:
        """Start the merging thread if there is something for it."""
        if self._wants() and (self._merger is None or not self._merger.is_alive()):
            # Not a daemon: the interpreter must not end while a kernel of ours is running.
            self._merger = threading.Thread(target=self._merge_on, name="tidings-merge")
            self._merger.start()

    def _wants(self) -> list[Part]:
        parts = list(self._state.parts)
        run = _run(parts)
        if len(run) > 1:
            return run
        return [part for part in parts if part.deaths > WASTE * len(part.segment)][:1]

    def _merge_on(self) -> None:
        try:
            while True:
                with self._lock:
                    run = self._wants()
                    if not run:
                        self._merger = None
                        return
                self._replace(run)
        finally:  # also when a merge failed, for want of memory say: the next change tries again
            with self._lock:
                if self._merger is threading.current_thread():
                    self._merger = None

    def _replace(self, run: Sequence[Part]) -> None:
        """Merge parts beside the state, then put the result in their place with what died meanwhile."""
        merged, new_slots = self._merged(run)
        with self._lock:
            now = {id(part.segment): part for part in self._state.parts}
            for part, new in zip(run, new_slots, strict=True):
                current = now.pop(id(part.segment), None)
                if current is None:  # all of it died, and it was dropped
                    merged = merged.without(new[new >= 0])
                elif current.dead is not None:
                    died = new[current.dead]
                    merged = merged.without(died[died >= 0])
            living = [part for part in (*now.values(), merged) if len(part)]  # of `merged` none, after a `compact`
            self._state = State(_by_size(living), self._state.waiting)

    def compact(self) -> None:
        """Compile what waits and merge all segments into one, now."""
        with self._lock:
            state = self._compiled(self._state) if self._state.waiting else self._state
            parts = [part for part in state.parts if len(part)]
            if len(parts) > 1 or any(part.deaths for part in parts):
                parts = [self._merged(parts)[0]]
            self._state = State(tuple(parts), {})

    def seal(self) -> State:
        """Compile what waits, merging no more than any change does; return what is then in force."""
        with self._lock:
            if self._state.waiting:
                self._state = self._tidied(self._compiled(self._state))
                self._merge_later()
            return self._state

    def restore(self, parts: Sequence[Part]) -> None:
        """Put the parts that a snapshot kept in force, instead of all there is."""
        with self._lock:
            self._state = State(tuple(parts))

    @property
    def is_merging(self) -> bool:
        """Whether the merging thread is at work."""
        return self._merger is not None

    def settle(self) -> None:
        """Wait until the merging thread has nothing left to do."""
        while (merger := self._merger) is not None:
            merger.join()

    # Looking -----------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """What is in force now; it never changes."""
        return self._state

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._state)

    def __contains__(self, id: object) -> bool:
        """Tell whether there is a subscription with this id."""
        state = self._state
        return id in state.waiting or state.find(id) is not None

    def __iter__(self) -> Iterator[str | int]:
        """Yield the ids."""
        return self._state.ids()

    def find_existing(self, ids: Sequence[str | int]) -> set[str | int]:
        """Return those of the ids that are there."""
        state = self._state
        if len(ids) == 1:
            return set(ids) if ids[0] in state.waiting or state.find(ids[0]) is not None else set()
        found = set(state.waiting.keys() & set(ids)) if state.waiting else set()
        for part in state.parts:
            found.update(ids[at] for at in np.flatnonzero(part.find_many(ids) >= 0).tolist())
        return found

    def list_existing(self, ids: Ids) -> list[str | int]:
        """Return those of the ids that are there; for many, of which nothing is made into Python's values."""
        state = self._state
        found = [id for id in state.waiting if ids.find(id) >= 0]
        every = ids.take(np.arange(len(ids))) if state.parts else None
        for part in state.parts:
            slots = np.unique(part.find_many(every))
            found += part.segment.ids.to_list(slots[slots >= 0])
        return found

    def get_filter(self, id: str | int) -> Filter | None:
        """Return a subscription's filter as written, or nothing."""
        state = self._state
        waiting = state.waiting.get(id)
        if waiting is not None:
            return self._read(waiting.written)
        place = state.find(id)
        return None if place is None else self._tree(state.parts[place[0]].segment, place[1])

    def _tree(self, segment: Segment, slot: int) -> Filter:
        source = segment.sources.get(slot)
        return filter_of(segment, slot) if source is None else self._read(source)

    def _read(self, written: Written) -> Filter:
        return self._parse(written) if isinstance(written, str) else written

    # Matching ----------------------------------------------------------------------------------

    def match(self, arrivals: Arrivals, state: State | None = None) -> list[SegmentMatches]:
        """Return the pairs of event and subscription; `state` is the one whose needs the events were read for."""
        state = self._state if state is None else state
        wanted = state.wanted()
        batch = arrivals.columns(wanted, _no_automaton) if wanted else {}
        if self._sample is None and LEAST_SAMPLE <= len(arrivals) <= MOST_SAMPLE:
            self._sample = batch, len(arrivals)
        result = []
        for part in state.parts:
            events, slots = part.segment.match(batch, arrivals)
            if part.dead is not None:
                alive = ~part.dead[slots]
                events, slots = events[alive], slots[alive]
            result.append(SegmentMatches(events, slots, part.segment.ids))
        if state.waiting:
            result.append(_asked(state.waiting, arrivals))
        return result

    def find_readers(self, keys: Collection[TypedAttribute]) -> list[str | int]:
        """Return the ids of the subscriptions that read some attribute in one of these ways."""
        state, wanted = self._state, frozenset(keys)
        ids = [id for id, one in state.waiting.items() if not wanted.isdisjoint(collect_attributes(one.bound))]
        for part in state.parts:
            slots = self._asking(part.segment, wanted)
            ids += part.segment.ids.to_list(slots if part.dead is None else slots[~part.dead[slots]])
        return ids

    def _asking(self, segment: Segment, wanted: frozenset[TypedAttribute]) -> NDArray[np.int64]:
        """Return the slots with such a test: in a literal of a row, in an item of the second phase, or in a tree."""
        rows, second = segment.index.rows, segment.second
        columns = [number for number, column in enumerate(segment.columns) if typed_column(column) in wanted]
        literals = np.flatnonzero(np.isin(rows.literal[::3] >> OP_BITS, columns))
        items = [at for at, item in enumerate(second.items) if not wanted.isdisjoint(collect_attributes(item.filter))]
        found: list[NDArray[Any]] = [
            np.searchsorted(rows.start, literals, "right") - 1,
            second.row[np.isin(second.item, items)],
        ]
        slots = _slots(rows, np.unique(np.concatenate(found).astype(np.int64)))
        kept = [one.forest.slots.tolist() for one in (segment.trees, segment.asked) if one is not None]
        trees = [(slot, self._bind(self._tree(segment, slot))) for each in kept for slot in each]
        asking = [slot for slot, tree in trees if not wanted.isdisjoint(collect_attributes(tree))]
        return np.unique(np.concatenate([slots, np.array(asking, np.int64)]))

    def explain(self) -> dict[str, object]:
        """Return the plan in plain values."""
        return described(self._state, self._sample)


def _asked(waiting: Any, arrivals: Arrivals) -> SegmentMatches:
    """Ask the subscriptions that wait, one by one."""
    events, slots = [], []
    bounds: list[tuple[int, Waiting]] = list(enumerate(waiting.values()))
    for event in range(len(arrivals)):
        reading = arrivals.reading(event)
        for slot, one in bounds:
            if holds(one.bound, reading, arrivals.setting):
                events.append(event)
                slots.append(slot)
    return SegmentMatches(np.array(events, np.int64), np.array(slots, np.int64), list(waiting))


def _demands(segment: Segment, slots: NDArray[np.int64]) -> Counter[tuple[str, Demand]]:
    """Count the demands of subscriptions whose one row says all of them."""
    rows = segment.row_of[slots]
    start = segment.index.rows.start
    first, sizes = start[rows].astype(np.int64), (start[rows + 1] - start[rows]).astype(np.int64)
    places = runs(first, sizes)
    counts = np.bincount(segment.index.rows.literal[3 * places] >> OP_BITS, minlength=len(segment.columns))
    found: Counter[tuple[str, Demand]] = Counter()
    for number in np.flatnonzero(counts).tolist():
        column, kind = segment.columns[number], segment.kinds[number]
        asked = None if column.view in (View.EXISTS, View.NULL) else kind
        found[column.attribute, Demand(asked, column.unit)] += int(counts[number])
    return found


def _slots(rows: IndexRows, found: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the slots of rows; a row that several subscriptions share has an entry for each."""
    if len(rows.entry):
        sizes = (rows.entry[found + 1] - rows.entry[found]).astype(np.int64)
        found = runs(rows.entry[found].astype(np.int64), sizes)
    return np.asarray(rows.slot[found], np.int64)


def _arrow(ids: Sequence[str | int]) -> Any:
    """Return ids as Arrow has them, which are looked up three times as fast; as they are where Arrow cannot."""
    import pyarrow as pa

    try:
        return pa.array(ids)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError):
        return ids


def _by_size(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=len, reverse=True))


def _run(parts: list[Part]) -> list[Part]:
    """Return the segments that are worth merging: the first that is not much larger than all after it, and those."""
    rest = sum(map(len, parts))
    for at, part in enumerate(parts):
        rest -= len(part)
        if rest and len(part) <= GROWTH * rest:
            return parts[at:]
    return []


def _no_automaton(column: Column) -> Any:
    raise LookupError(column)
