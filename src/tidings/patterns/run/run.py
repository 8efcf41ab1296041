"""A run: one stream of events taken through the patterns of a set.

Its state is where each graph stands (`GraphRun`), the events and values that partial matches refer to, the events that
wait for their turn, and how far the stream has come. It knows no clock, lock or Spark: time comes in with the events
or through `pass_time`. Invariant: observers see exactly the batches that the graphs have taken, in the same order.
Cost: reading the events once, then one kernel call for each merged graph and piece of the batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.patterns import layout
from tidings.patterns.detections import Detections, LateEvent, ReportBatch, ReportColumns
from tidings.patterns.run.event_archive import EventArchive, unite_numbers
from tidings.patterns.run.event_reader import EncodedEvents, adapt_events, concat_events, fill_times
from tidings.patterns.run.event_times import to_datetime
from tidings.patterns.run.graph_run import LONG_AGO, GraphRun
from tidings.patterns.run.variable_values import ValueNumbers
from tidings.patterns.state.graph_bytes import dump_graph_run, load_graph_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidings.kernels.array_types import IntArray
    from tidings.model import DeadLetter
    from tidings.patterns.observer import Observer
    from tidings.patterns.pattern_set import PatternSet
    from tidings.patterns.run.event_reader import Events
    from tidings.patterns.run.machine import Machine


class Run:
    """The patterns of a set over one stream.

    `patterns` may be set anew: those that are in both sets keep their partial matches. `value_numbers` has the values
    of variables, `archive` the events that reports may name. `position` is how many events were taken, so the number
    of the next; `arrived` counts those that wait, came late or were bad too. `latest` is the latest time so far (the
    watermark plus the lateness), `waiting` has the events that are later than `latest - lateness`.
    """

    def __init__(self, patterns: PatternSet, *, observers: Sequence[Observer] = (), detects: bool = True) -> None:
        """Start before the first event; with `detects=False` the observers alone take the events."""
        self.patterns, self.observers, self._detects = patterns, tuple(observers), detects
        self.value_numbers, self.archive = ValueNumbers(), EventArchive()
        self.position = self.arrived = self.late_count = 0
        self.latest = LONG_AGO
        self.waiting: EncodedEvents | None = None
        self._graph_runs: list[tuple[Machine, GraphRun]] = []
        self._prepared_set: PatternSet | None = None
        self._observed_set: PatternSet | None = None

    # Patterns ----------------------------------------------------------------------------------

    @property
    def new_patterns_after(self) -> int:
        """The time that events must be after for a pattern that is added now to see them."""
        return self.latest if self.waiting is not None and len(self.waiting) else LONG_AGO

    def prepare_graph_runs(self) -> list[tuple[Machine, GraphRun]]:
        """Return each machine with where it stands; after a change of patterns the states move to the new graphs."""
        if self._prepared_set is not self.patterns:
            states = {
                machine.partitioning: dump_graph_run(run, machine.stable_names)
                for machine, run in self._graph_runs
                if run.state.registers[layout.MADE]
            }
            self._graph_runs = []
            for machine in self.patterns.machines:
                run = machine.start(self.patterns.settings)
                if machine.partitioning in states:
                    load_graph_run(run, machine.stable_names, *states[machine.partitioning], len(self.value_numbers))
                self._graph_runs.append((machine, run))
            if self.waiting is not None:
                self.waiting = adapt_events(self.waiting, self.patterns.filters.values(), self.patterns.attributes)
            self._prepared_set = self.patterns
        return self._graph_runs

    def prepare(self) -> None:
        """Bring graphs and observers up to date with the patterns: what is wrong with these is raised here."""
        self.prepare_graph_runs()
        if self._observed_set is not self.patterns:
            for observer in self.observers:
                observer.on_patterns(self)
            self._observed_set = self.patterns

    # Events ------------------------------------------------------------------------------------

    def detect_many(self, events: Events, *, collect: bool = False) -> Detections:
        """Read events and take them; with `collect`, bad events become dead letters instead of `BadEvent`."""
        self.prepare_graph_runs()
        encoded, dead = self.patterns.reader.read(events, self.value_numbers, self.arrived, collect=collect)
        self.arrived += len(dead)
        return self.take(encoded, dead_letters=tuple(dead))

    def take(self, events: EncodedEvents, *, dead_letters: tuple[DeadLetter, ...] = ()) -> Detections:
        """Take events that were read before, in any order that the lateness allows."""
        self.prepare_graph_runs()
        self.arrived += len(events)
        ready, late = self._sort_events(events)
        batches = self.feed(ready)
        detections = Detections(batches, self.patterns.names, self.archive, late=late, dead_letters=dead_letters)
        self.tidy()
        return detections

    def pass_time(self, moment: int) -> Detections:
        """Let time pass: waiting events up to the moment are taken, absences complete, and partial matches expire."""
        self.prepare_graph_runs()
        batches = self.feed(self._release_events(moment), until=moment)
        self.latest = max(self.latest, moment + self.patterns.settings.lateness)
        detections = Detections(batches, self.patterns.names, self.archive)
        self.tidy()
        return detections

    def advance(self, events: EncodedEvents | None, until: int) -> ReportColumns:
        """Take events that are in order and whose ids are integers, then let time pass; return reports as columns."""
        values = self.value_numbers.values
        batches = self.feed(events, until=until)
        self.latest = max(self.latest, until)
        columns = Detections(batches, self.patterns.names, self.archive).to_columns(values)
        self.tidy()
        return columns

    def close(self) -> None:
        """Take the events that still wait. Their detections are discarded: only observers see what they complete."""
        if self.waiting is not None:
            self.prepare_graph_runs()
            self.feed(self._release_events(self.latest))

    def feed(self, events: EncodedEvents | None, *, until: int = LONG_AGO) -> list[ReportBatch]:
        """Take events in order, then let time pass to `until`; nothing is tidied up, so numbers of keys stay."""
        count, size = 0 if events is None else len(events), self.patterns.settings.tuning.piece
        batches: list[ReportBatch] = []
        for first in range(0, count, size):
            assert events is not None
            piece = events if count <= size else events.slice(first, min(first + size, count))
            self.prepare()
            self.archive = self.archive.add(self.position, piece.records)
            batches += self._feed_piece(piece)
            self.position += len(piece)
        if until > LONG_AGO:
            empty, _ = self.patterns.reader.read([], self.value_numbers, 0)
            batches += self._feed_piece(empty, until=until)
        return batches

    def _feed_piece(self, piece: EncodedEvents, *, until: int = LONG_AGO) -> list[ReportBatch]:
        self.prepare()
        batches: list[ReportBatch] = []
        if self._detects:
            for machine, run in self._graph_runs:
                batches += machine.feed(run, piece, self.value_numbers, self.position, until=until)
        for observer in self.observers:
            observer.on_batch(piece, batches)
        return batches

    def _sort_events(self, events: EncodedEvents) -> tuple[EncodedEvents, tuple[LateEvent, ...]]:
        """Return the events that can be taken now, in order, and those that came too late; the others wait."""
        events = fill_times(events, self.latest)
        if not len(events):
            return events, ()
        lateness = self.patterns.settings.lateness
        before = np.maximum.accumulate(np.append(self.latest, events.times))
        is_late = events.times < before[:-1] - lateness
        self.latest = int(before[-1])
        late: tuple[LateEvent, ...] = ()
        if is_late.any():
            too_late = events.select(np.flatnonzero(is_late))
            times = map(to_datetime, too_late.times.tolist())
            late = tuple(map(LateEvent, too_late.records.to_lists().ids, times))
            self.late_count += len(late)
            events = events.select(np.flatnonzero(~is_late))
        if not lateness:
            return events, late
        self.waiting = events if self.waiting is None else concat_events([self.waiting, events])
        return self._release_events(self.latest - lateness) or events.select(np.empty(0, np.int64)), late

    def _release_events(self, until: int) -> EncodedEvents | None:
        """Return the waiting events up to a time, in order."""
        if self.waiting is None:
            return None
        order = np.argsort(self.waiting.times, kind="stable")
        due = int(np.searchsorted(self.waiting.times[order], until, side="right"))
        ready = self.waiting.select(order[:due])
        self.waiting = self.waiting.select(np.sort(order[due:]))
        return ready

    # Memory ------------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Forget events and values that nothing refers to any more, when they are many."""
        runs, tuning = [run for _, run in self._graph_runs], self.patterns.settings.tuning
        most = tuning.kept_values + 4 * sum(run.rows for run in runs)
        archive, values = self.archive, len(self.value_numbers)
        if len(archive.chunks) < tuning.archive_chunks and len(archive) < most and values < most:
            return
        for run in runs:
            run.tidy()
        self.archive = archive.keep(self.find_used_events())
        if values >= most:
            self._renumber_keys()

    def find_used_events(self) -> IntArray:
        """Return the numbers of the events that reports may still name, ascending."""
        return unite_numbers([run.find_used_events() for _, run in self.prepare_graph_runs()])

    def find_used_keys(self) -> IntArray:
        """Return the numbers of the values that partial matches, waiting events or observers refer to, ascending."""
        columns = [] if self.waiting is None else list(self.waiting.values.values())
        keys = [holder.find_used_keys() for holder in self._list_key_holders()]
        return unite_numbers([*keys, *(column[column >= 0] for column in columns)])

    def _renumber_keys(self) -> None:
        kept = self.find_used_keys()
        for holder in self._list_key_holders():
            holder.renumber_keys(kept)
        self.value_numbers = self.value_numbers.keep(kept)
        if self.waiting is not None:
            columns = self.waiting.values.items()
            values = {name: np.where(column >= 0, np.searchsorted(kept, column), -1) for name, column in columns}
            self.waiting = replace(self.waiting, values=values)

    def _list_key_holders(self) -> list[GraphRun | Observer]:
        if len(self.patterns):
            self.prepare()
        return [*(run for _, run in self.prepare_graph_runs()), *self.observers]

    # Progress and counts ------------------------------------------------------------------------------------

    @property
    def latest_time(self) -> datetime | None:
        """The watermark plus the lateness; `None` before the first event that has a time."""
        return None if self.latest <= LONG_AGO else to_datetime(self.latest)

    @property
    def next_deadline(self) -> int | None:
        """When the earliest absence completes unless an event comes before, in microseconds."""
        deadlines = [run.next_deadline for _, run in self.prepare_graph_runs()]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    @property
    def dropped_count(self) -> int:
        """How many partial matches were dropped because a key had too many."""
        return self._sum_counters(layout.DROPPED)

    @property
    def cut_count(self) -> int:
        """How many times the limit of a pattern in the mode `any` cut its reports short."""
        return self._sum_counters(layout.CUT)

    @property
    def transitions(self) -> int:
        """How many steps events have served so far."""
        return self._sum_counters(layout.MADE)

    def _sum_counters(self, register: int) -> int:
        return sum(int(run.state.registers[register]) for _, run in self.prepare_graph_runs())
