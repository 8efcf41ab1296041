"""Instances of P-ToPSS: a track runs a state machine, a Boolean run a Boolean machine with tracks below it.

Sections 4.1, 4.2 and 5.1 of the paper (choices are listed in README.md). A track keeps the instances inside a
term, which the next event moves or ends, apart from those that wait behind one, which are found by the events that move
them. A Boolean run is a child of the instance that triggers it and lives as long; each match of it leads on to its
target.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from tidings.papers.p_topss import time_lists
from tidings.papers.p_topss.state_graph import MachineTally, PaperState, StateTree
from tidings.papers.p_topss.time_lists import TimeLists

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    Arrival = tuple[PaperState, TimeLists]


@dataclass(slots=True)
class TrackInstance:
    """One path to a state: its time lists, and the Boolean machines it has triggered, each with the state behind it."""

    lists: TimeLists
    children: list[tuple[PaperState, BooleanRun]] = field(default_factory=list)

    def renew(self, lists: TimeLists) -> None:
        """Replace the time lists, also for what begins in the children from now on."""
        self.lists = lists
        for _, run in self.children:
            for track in run.tracks:
                track.start.renew(lists)


class Track:
    """A running state machine: its instances, those inside a term and those that wait behind one."""

    def __init__(self, root: PaperState, lists: TimeLists, tally: MachineTally) -> None:
        self._root, self._tally = root, tally
        self.start = self._make_instance(root, lists)
        self._passing: list[tuple[PaperState, TrackInstance]] = []
        self._waiting: dict[PaperState, list[TrackInstance]] = {}
        self._ahead: dict[int, dict[PaperState, None]] = {}  # waiting states by the events that lead on
        self._again: dict[int, dict[PaperState, None]] = {}  # and by those that lead back to them
        self._gated: dict[PaperState, None] = {}

    def step(self, symbols: Collection[int], time: int) -> list[Arrival]:
        """Take an event; return the arrivals at final states."""
        if self._tally.expire is not None:
            self._drop_expired(symbols, since=time - self._tally.expire)
        arrivals = self._follow_primary(symbols, time)
        self._step_children(symbols, time, arrivals=arrivals)
        # After the primary links: an event must not serve a step and the one behind it.
        self._follow_secondary(symbols, time)
        self._passing = []
        for state, lists in arrivals:
            self._keep_arrival(state, lists)
        self._tally.transitions += len(arrivals)
        return [arrival for arrival in arrivals if arrival[0].final]

    def iterate_instances(self) -> Iterator[TrackInstance]:
        """Yield the instances alive, children's after their own."""
        waiting = [instance for instances in self._waiting.values() for instance in instances]
        own = [*(instance for _, instance in self._passing), *waiting]
        yield from own
        for instance in [self.start, *own]:
            for _, run in instance.children:
                for track in run.tracks:
                    yield from track.iterate_instances()

    def _follow_primary(self, symbols: Collection[int], time: int) -> list[Arrival]:
        arrivals: list[Arrival] = []
        for symbol in symbols:
            if symbol in self._root.edges:
                self._follow(self._root, self.start, symbol, time=time, arrivals=arrivals)
            for state, instance in self._passing:
                if symbol in state.edges:
                    self._follow(state, instance, symbol, time=time, arrivals=arrivals)
            for state in self._ahead.get(symbol, ()):
                for instance in self._waiting[state]:
                    self._follow(state, instance, symbol, time=time, arrivals=arrivals)
        return arrivals

    def _follow(
        self, state: PaperState, instance: TrackInstance, symbol: int, *, time: int, arrivals: list[Arrival]
    ) -> None:
        for target in state.edges[symbol]:
            lists: TimeLists | None = instance.lists
            if target.timed:
                lists = time_lists.enter_state(target, instance.lists, time=time, left=state)
            if lists is not None:
                arrivals.append((target, lists))

    def _step_children(self, symbols: Collection[int], time: int, *, arrivals: list[Arrival]) -> None:
        """Pass the event to the children; their matches lead on."""
        gated = [instance for state in self._gated for instance in self._waiting[state]]
        for instance in [self.start, *(instance for _, instance in self._passing), *gated]:
            for target, run in instance.children:
                arrivals.extend((target, lists) for lists in run.step(symbols, time))

    def _follow_secondary(self, symbols: Collection[int], time: int) -> None:
        """Follow the secondary links: a state is reached once more."""
        for symbol in symbols:
            for state in self._again.get(symbol, ()):
                if not state.timed:
                    self._tally.transitions += len(self._waiting[state])
                    continue
                for instance in self._waiting[state]:
                    lists = time_lists.renew_state(state, instance.lists, time=time)
                    if lists is not None:
                        self._tally.transitions += 1
                        instance.renew(lists)

    def _keep_arrival(self, state: PaperState, lists: TimeLists) -> None:
        """Keep an arrival for the events to come."""
        if state.waits:
            self._add_waiting(state, time_lists.drop_unneeded(lists, state.kept_lists))
        elif state.edges or state.gates:
            self._passing.append((state, self._make_instance(state, time_lists.drop_unneeded(lists, state.kept_lists))))

    def _add_waiting(self, state: PaperState, lists: TimeLists) -> None:
        instances = self._waiting.get(state)
        if instances is None:
            instances = self._waiting[state] = []
            self._index_state(state)
        elif any(time_lists.covers(other.lists, lists) for other in instances):
            return
        elif not state.gates:  # children of an older instance have come further than a new one's
            instances[:] = [other for other in instances if not time_lists.covers(lists, other.lists)]
        instances.append(self._make_instance(state, lists))

    def _index_state(self, state: PaperState) -> None:
        for symbol in state.edges:
            self._ahead.setdefault(symbol, {})[state] = None
        if state.symbol is not None:
            self._again.setdefault(state.symbol, {})[state] = None
        if state.gates:
            self._gated[state] = None

    def _make_instance(self, state: PaperState, lists: TimeLists) -> TrackInstance:
        return TrackInstance(lists, [(target, BooleanRun(tree, lists, self._tally)) for tree, target in state.gates])

    def _drop_expired(self, symbols: Collection[int], *, since: int) -> None:
        """Drop old times of the instances that an event touches; without a time they are gone."""
        for symbol in symbols:
            for state in [*self._ahead.get(symbol, ()), *self._again.get(symbol, ())]:
                kept = []
                for instance in self._waiting[state]:
                    lists = time_lists.drop_expired(instance.lists, since)
                    if lists is not None:
                        instance.lists = lists
                        kept.append(instance)
                self._waiting[state] = kept


class BooleanRun:
    """A Boolean machine that runs for one instance: a state machine, or the parts of an `and` or `or`.

    For `and` it keeps the matches that each part has had.
    """

    def __init__(self, tree: StateTree, lists: TimeLists, tally: MachineTally) -> None:
        self._tree = tree
        self._parts = [] if isinstance(tree, PaperState) else [BooleanRun(part, lists, tally) for part in tree.parts]
        self._earlier_matches: list[list[TimeLists]] = [[] for _ in self._parts]
        self.tracks = [Track(tree, lists, tally)] if isinstance(tree, PaperState) else []
        self.tracks += [track for part in self._parts for track in part.tracks]

    def step(self, symbols: Collection[int], time: int) -> list[TimeLists]:
        """Take an event; return the time lists of the matches that it completes."""
        if isinstance(self._tree, PaperState):
            arrivals = self.tracks[0].step(symbols, time)
            return _drop_covered(time_lists.drop_unneeded(lists, state.kept_lists) for state, lists in arrivals)
        new, pairs = [part.step(symbols, time) for part in self._parts], self._tree.pairs
        if not self._tree.is_and:
            single = [time_lists.merge_parts([lists], pairs) for part_matches in new for lists in part_matches]
            return _drop_covered(lists for lists in single if lists is not None)
        matches = [time_lists.merge_parts(parts, pairs) for parts in self._combine(new)] if any(new) else []
        self._earlier_matches = [
            _drop_covered([*had, *part_matches]) for had, part_matches in zip(self._earlier_matches, new, strict=True)
        ]
        return _drop_covered(lists for lists in matches if lists is not None)

    def _combine(self, new: list[list[TimeLists]]) -> Iterator[tuple[TimeLists, ...]]:
        """Yield a match of each part, at least one of them new; each combination once."""
        all_matches = [[*had, *part_matches] for had, part_matches in zip(self._earlier_matches, new, strict=True)]
        for number, part_matches in enumerate(new):
            yield from product(*all_matches[:number], part_matches, *self._earlier_matches[number + 1 :])


def _drop_covered(candidates: Iterable[TimeLists]) -> list[TimeLists]:
    """Return the lists that no earlier ones cover."""
    kept: list[TimeLists] = []
    for lists in candidates:
        if not any(time_lists.covers(other, lists) for other in kept):
            kept.append(lists)
    return kept
