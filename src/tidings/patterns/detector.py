"""The façade of patterns: the twin of `Matcher`.

It holds patterns, asks all their filters of each event once, and moves the runs of their machines on. Patterns may be
added and removed while it runs: unchanged ones keep their state. Time comes in with the events, or through `on_time`.
"""

from __future__ import annotations

from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tidings.errors import TidingsError, UnknownPattern
from tidings.forks import Level, guard, locked
from tidings.lang import WrittenPattern, parse_pattern, render_pattern
from tidings.matcher import Matcher
from tidings.matcher.matcher import check_on_error
from tidings.model.patterns import Pattern
from tidings.patterns.compile.derivatives import configurations
from tidings.patterns.compile.graph import CompiledPattern
from tidings.patterns.detections import Detection, Detections, LateEvent
from tidings.patterns.pattern_input import variable_attributes, list_filters, parse_lateness, check_pattern
from tidings.patterns.run.event_archive import EventArchive, unite_numbers
from tidings.patterns.run.event_reader import EncodedEvents, EventReader, adapt_events, concat_events, fill_times
from tidings.patterns.run.event_times import datetime_of, moment_of
from tidings.patterns.run.machine import build_machines
from tidings.patterns.run.mismatch_counts import PatternMismatchCounts, PatternMismatch, describe_pattern_mismatches
from tidings.patterns.run.graph_run import LONG_AGO, MOST_PARTIALS, GraphRun
from tidings.patterns.run.value_numbers import ValueNumbers
from tidings.patterns.run.variables import VariableReader
from tidings.patterns.state.run_bytes import load_run, dump_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime, timedelta

    from tidings.concepts import Ontology, Regions
    from tidings.model import DeadLetter, EventLike, Filter, Schema
    from tidings.patterns.run.machine import Machine

LIMIT = 1000
"""The most embeddings that the mode `any` reports at one event, unless told otherwise."""

MANY = 100_000
"""Events and values that are kept without asking whether anything can still name them."""

CHUNKS = 256
"""Batches whose ids are kept apart; of more, those that are still needed move together."""

PIECE = 1 << 17
"""Events that are taken at once: enough to pay for the arrays, few enough for memory."""


class Detector:
    """Which patterns happen in a stream of events.

    >>> attacks = Detector()
    >>> attacks.add("intrusion", '''
    ...     fail  = status = 'denied'  and ip = $x
    ...     enter = status = 'success' and ip = $x
    ...     fail{3,} ; enter within 5 min
    ... ''')
    >>> log = [{"id": n, "time": n, "status": "denied", "ip": "10.0.0.1"} for n in range(3)]
    >>> attacks.detect_many(log)
    <Detections: 0, 0 late, 0 dead letters>
    >>> [found] = attacks.on_event({"id": 3, "time": 9, "status": "success", "ip": "10.0.0.1"})
    >>> found.pattern, found.events, found.bindings
    ('intrusion', (0, 1, 2, 3), {'x': '10.0.0.1'})

    Events come in the order of time; one that is more than `lateness` behind the latest is not taken, and listed in
    `Detections.late`. With a lateness, events wait until it has passed and are put in order. One without a time stands
    where it came, and takes no part in patterns that ask for times (`mismatches` counts). `time` and `event_id` name
    the fields of mappings and Arrow tables; `keep` names fields that detections carry. `partials` bounds the partial
    matches that one key may have at one step: of more, the newest stay, and `dropped` counts the others.
    """

    def __init__(
        self,
        *,
        schema: Schema | None = None,
        ontology: Ontology | None = None,
        regions: Regions | None = None,
        time: str = "time",
        event_id: str = "id",
        keep: Iterable[str] = (),
        lateness: timedelta | str | None = None,
        partials: int = MOST_PARTIALS,
    ) -> None:
        """Start without patterns."""
        self.time, self.event_id, self.keep = time, event_id, tuple(keep)
        self.lateness = parse_lateness(lateness)
        self.partials = partials
        if type(partials) is not int or partials < 1:
            msg = f"partials is how many partial matches are kept, not `{partials}`"
            raise TidingsError(msg)
        self._matcher = Matcher(schema=schema, ontology=ontology, regions=regions)
        self._watched: dict[str, CompiledPattern] = {}
        self._filters: dict[Filter, int] = {}
        self._uses: dict[Filter, int] = {}
        self._numbered = 0
        self._machines: list[tuple[Machine, GraphRun]] = []
        self._stale = self._shared = False
        self._reader: EventReader | None = None
        self._names, self._archive, self._counts = ValueNumbers(), EventArchive(), PatternMismatchCounts()
        self._seq = self._arrived = 0
        self._latest = LONG_AGO
        self._waiting: EncodedEvents | None = None
        self.late = 0
        self._guard()

    def _guard(self) -> None:
        """Let one thread at a time at it, and forks of the process wait for that."""
        self._lock = RLock()
        guard(self, Level.DETECTOR)

    # Patterns ----------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        pattern: str | Pattern | dict[str, Any],
        *,
        mode: str = "restart",
        limit: int | None = None,
        notation: str = "text",
    ) -> None:
        """Add a pattern, or replace the one of this name; it sees the events that come from now on.

        Where events wait for their turn (`lateness`), it sees those that are later than all that came so far.
        `mode` is `restart`, `overlap`, `next` or `any`; `limit` is how many embeddings `any` reports at one event.
        """
        self.add_many([check_pattern(name, self._parsed(pattern, notation), mode, limit)])

    @locked
    def add_many(self, patterns: Iterable[WrittenPattern]) -> None:
        """Add many, as `lang.read_patterns` reads them from a file; all of them or, where one is refused, none."""
        given = list(patterns)
        watched = [self._watch(one) for one in given]
        fresh = dict.fromkeys(f for told in watched for f in list_filters(told.pattern) if f not in self._filters)
        numbered = {told: self._numbered + place for place, told in enumerate(fresh)}
        self._unshare()
        self._matcher.add_many([(number, told) for told, number in numbered.items()])
        self._numbered += len(numbered)
        self._filters |= numbered
        for told in watched:
            for one in list_filters(told.pattern):  # before the old ones go: they may be the same
                self._uses[one] = self._uses.get(one, 0) + 1
            if told.name in self._watched:
                self._forget(told.name)
            self._watched[told.name] = told
        self._changed()

    def _watch(self, told: WrittenPattern) -> CompiledPattern:
        """Return a pattern as it is watched; one that is there already, unchanged, goes on as it stands."""
        known, limit = self._watched.get(told.name), told.limit or LIMIT
        if known is not None and (known.pattern, known.mode) == (told.pattern, told.mode):
            return replace(known, limit=limit)
        derived = configurations(told.pattern, told.mode)
        since = self._latest if self._waiting is not None and len(self._waiting) else LONG_AGO
        return CompiledPattern(told.name, told.pattern, told.mode, limit, self._seq, derived, since)

    @locked
    def remove(self, name: str) -> None:
        """Remove a pattern; `UnknownPattern`, a `KeyError`, if it is not there."""
        self[name]
        self._unshare()
        self._forget(name)
        self._changed()

    def _forget(self, name: str) -> None:
        for told in list_filters(self._watched.pop(name).pattern):
            self._uses[told] -= 1
            if not self._uses[told]:
                del self._uses[told]
                self._matcher.remove(self._filters.pop(told))

    def _unshare(self) -> None:
        """Take a matcher of one's own before it changes, where others were forked with it."""
        if self._shared:
            self._matcher, self._shared = Matcher(**self._around), False
            self._matcher.add_many([(number, told) for told, number in self._filters.items()])

    def _parsed(self, pattern: Any, notation: str) -> Pattern:
        if isinstance(pattern, Pattern):  # built by hand: the notation's checks are the only ones
            pattern, notation = render_pattern(pattern, "json"), "json"
        return parse_pattern(pattern, notation=notation, **self._around)

    @property
    def _around(self) -> dict[str, Any]:
        """What says what names mean, as the keywords that everything takes."""
        matcher = self._matcher
        return {"schema": matcher.schema, "ontology": matcher.ontology, "regions": matcher.regions}

    def __len__(self) -> int:
        """Count the patterns."""
        return len(self._watched)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a pattern of this name."""
        return name in self._watched

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._watched)

    def __getitem__(self, name: str) -> Pattern:
        """Return a pattern."""
        if name not in self._watched:
            msg = f"no pattern is called `{name}`"
            raise UnknownPattern(msg)
        return self._watched[name].pattern

    @property
    def watched(self) -> tuple[CompiledPattern, ...]:
        """The patterns with their modes, in the order they were added."""
        return tuple(self._watched.values())

    # Events ------------------------------------------------------------------------------------

    def on_event(self, event: EventLike) -> list[Detection]:
        """Take one event and return what it completes; `BadEvent` when it cannot be read."""
        return list(self.detect_many([event]))

    @locked
    def detect_many(self, events: Any, *, on_error: Literal["raise", "collect"] = "raise") -> Detections:
        """Take a list of events, an Arrow table or a `td.EventBatch`, and return what they complete.

        A bad event raises `BadEvent` before any event is taken; with `on_error="collect"` it goes to `.dead_letters`.
        """
        check_on_error(on_error)
        self._runs()
        prepared, dead = self._reading().read(events, self._names, self._arrived, collect=on_error == "collect")
        self._arrived += len(dead)
        return self.take(prepared, dead_letters=tuple(dead))

    @locked
    def take(self, events: EncodedEvents, *, dead_letters: tuple[DeadLetter, ...] = ()) -> Detections:
        """Take events that were read before; `detect_many` reads them first."""
        runs = self._runs()
        self._arrived += len(events)
        ready, late = self._in_order(events)
        parts = self._taken(ready, runs)
        found = Detections(parts, list(self._watched), self._archive, late=late, dead_letters=dead_letters)
        self._tidied()
        return found

    @locked
    def on_time(self, now: datetime | float | str) -> list[Detection]:
        """Let time pass: absences complete, waiting events are taken, and partial matches that came too late go.

        What comes later with an earlier time is late.
        """
        moment, runs = moment_of(now), self._runs()
        ready = self._released(moment)
        parts = self._taken(ready, runs, until=moment)
        self._latest = max(self._latest, moment + self.lateness)
        found = list(Detections(parts, list(self._watched), self._archive))
        self._tidied()
        return found

    def next_deadline(self) -> datetime | None:
        """Return when the earliest absence may complete; nothing when none is waited for."""
        due = [run.next_deadline for _, run in self._runs() if run.next_deadline is not None]
        return datetime_of(min(due)) if due else None

    @property
    def dropped(self) -> int:
        """How many partial matches were given up because a key had too many."""
        return sum(run.dropped_count for _, run in self._runs())

    @property
    def cut(self) -> int:
        """How many times the limit of a pattern in the mode `any` cut its reports short."""
        return sum(run.cut_count for _, run in self._runs())

    @property
    def transitions(self) -> int:
        """How many steps were served by events so far."""
        return sum(run.transitions for _, run in self._runs())

    def mismatches(self) -> tuple[PatternMismatch, ...]:
        """Return what patterns could not use of the events so far, and which patterns that is about.

        Values that filters cannot read as the kind they ask for, values that no variable takes (several, records),
        and events without a time where patterns ask for times. None of it makes an event bad, or touches others.
        """
        return tuple(describe_pattern_mismatches(self._counts, self._matcher, self.watched, time=self.time))

    # Keeping -----------------------------------------------------------------------------------

    @locked
    def snapshot(self) -> bytes:
        """Return everything as bytes: the patterns, and where they stand."""
        from tidings.patterns.state.detector_bytes import snapshot

        return snapshot(self)

    @classmethod
    def resume(cls, state: bytes) -> Detector:
        """Return the detector of a snapshot; it goes on exactly. `StateError` when the bytes are not one."""
        from tidings.patterns.state.detector_bytes import resume

        return resume(cls, state)

    @locked
    def forked(self) -> Detector:
        """Return a detector of the same patterns that has seen nothing; what was compiled is shared."""
        runs = self._runs()
        self._reading()  # counts go on together, as those of the matcher do
        self._shared = True
        made = object.__new__(type(self))  # `copy` would go through a snapshot
        made.__dict__.update(self.__dict__)
        made._guard()
        made._watched, made._filters, made._uses = dict(self._watched), dict(self._filters), dict(self._uses)
        made._machines = [(machine, machine.start(most=self.partials)) for machine, _ in runs]
        if any(told.born or told.since > LONG_AGO for told in self.watched):  # told of between events
            made._watched = {name: replace(told, born=0, since=LONG_AGO) for name, told in self._watched.items()}
            made._machines, made._stale = [], True
        made._names, made._archive, made._waiting = ValueNumbers(), EventArchive(), None
        made._seq = made._arrived = made.late = 0
        made._latest = LONG_AGO
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a snapshot."""
        return type(self).resume, (self.snapshot(),)

    def __repr__(self) -> str:
        """Say how many patterns there are."""
        return f"<Detector: {len(self):,} patterns>"

    # Inside ------------------------------------------------------------------------------------

    def _changed(self) -> None:
        self._stale, self._reader = True, None

    def _runs(self) -> list[tuple[Machine, GraphRun]]:
        """Return machines and their runs; after a change they are made anew, and runs go on where they stood."""
        if self._stale:
            states = {
                machine.partitioning: dump_run(run, machine.names) for machine, run in self._machines if run.transitions
            }
            self._machines = []
            for machine in build_machines(list(self._watched.values()), self._filters):
                run = machine.start(most=self.partials)
                if machine.partitioning in states:
                    load_run(run, machine.names, *states[machine.partitioning], len(self._names))
                self._machines.append((machine, run))
            if self._waiting is not None:
                self._waiting = adapt_events(self._waiting, self._filters.values(), self._reading().attributes)
            self._stale = False
        return self._machines

    def _reading(self) -> EventReader:
        if self._reader is None:
            told = [watched.pattern for watched in self._watched.values()]
            attributes = sorted({name for pattern in told for name in variable_attributes(pattern)})
            variables = VariableReader(attributes, self._matcher.schema, self._matcher.ontology)
            self._reader = EventReader(self._matcher, variables, self.time, self.event_id, self.keep, self._counts)
        return self._reader

    def _in_order(self, events: EncodedEvents) -> tuple[EncodedEvents, tuple[LateEvent, ...]]:
        """Return the events that can be taken now, and those that came too late; the others wait."""
        events = fill_times(events, self._latest)
        if not len(events):
            return events, ()
        before = np.maximum.accumulate(np.append(self._latest, events.times))
        behind = events.times < before[:-1] - self.lateness
        self._latest = int(before[-1])
        late: tuple[LateEvent, ...] = ()
        if behind.any():
            gone = events.take(np.flatnonzero(behind))
            times = gone.times.tolist()
            late = tuple(
                LateEvent(id_, datetime_of(at)) for id_, at in zip(gone.records.to_lists().ids, times, strict=True)
            )
            self.late += len(late)
            events = events.take(np.flatnonzero(~behind))
        if not self.lateness:
            return events, late
        self._waiting = events if self._waiting is None else concat_events([self._waiting, events])
        return self._released(self._latest - self.lateness) or events.take(np.empty(0, np.int64)), late

    def _released(self, until: int) -> EncodedEvents | None:
        """Return the waiting events up to a time, in order."""
        if self._waiting is None:
            return None
        order = np.argsort(self._waiting.times, kind="stable")
        due = int(np.searchsorted(self._waiting.times[order], until, side="right"))
        ready = self._waiting.take(order[:due])
        self._waiting = self._waiting.take(np.sort(order[due:]))
        return ready

    def _taken(
        self, events: EncodedEvents | None, runs: list[tuple[Machine, GraphRun]], until: int = LONG_AGO
    ) -> list[Any]:
        parts: list[Any] = []
        count = 0 if events is None else len(events)
        for first in range(0, count, PIECE):
            assert events is not None
            piece = events if count <= PIECE else events.take(np.arange(first, min(first + PIECE, count)))
            self._archive = self._archive.add(self._seq, piece.records)
            parts += self._fed(piece, runs)
            self._seq += len(piece)
        if until > LONG_AGO:
            empty, _ = self._reading().read([], self._names, 0)
            parts += self._fed(empty, runs, until=until)
        return parts

    def _fed(self, piece: EncodedEvents, runs: list[tuple[Machine, GraphRun]], *, until: int = LONG_AGO) -> list[Any]:
        """Let every run take a piece of the events, and time pass."""
        return [part for machine, run in runs for part in machine.feed(run, piece, self._names, self._seq, until=until)]

    def _tidied(self) -> None:
        """Forget events and values that nothing can name any more, when they are many."""
        runs = [run for _, run in self._runs()]
        most = MANY + 4 * sum(run.rows for run in runs)
        if len(self._archive.chunks) < CHUNKS and len(self._archive) < most and len(self._names) < most:
            return
        for run in runs:
            run.tidy()
        self._archive = self._archive.keep(unite_numbers([run.events_in_use() for run in runs]))
        if len(self._names) < most:
            return
        waiting = self._waiting
        columns = [] if waiting is None else list(waiting.values.values())
        known = unite_numbers(
            [*(run.keys_in_use() for run in runs), *(column[column >= 0] for column in columns), *self._held()]
        )
        for run in runs:
            run.renumber_keys(known)
        self._renamed(known)
        self._names = self._names.keep(known)
        if waiting is not None:
            named = {name: np.where(of >= 0, np.searchsorted(known, of), -1) for name, of in waiting.values.items()}
            self._waiting = replace(waiting, values=named)

    def _held(self) -> list[np.ndarray]:
        """Return the numbers of further names that are still needed: what forecasts stand on."""
        return []

    def _renamed(self, known: np.ndarray) -> None:
        """Hear that names are numbered anew, by their places among those that are known."""

    # What more a snapshot holds: for detectors that do more ----------------------------------------

    def _kept(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is kept beside the patterns, as a header and arrays."""
        return {}, {}

    def _take_back(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Take it back, before the patterns are there."""

    def _standing(self, held: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ARG002 - for others
        """Return where else things stand; names are called by their places in `held`."""
        return {}, {}

    def _stand(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Go on from there."""
