"""Instances of P-ToPSS at work: a track runs a state machine, a child runs a Boolean machine with tracks below it.

Sections 4.1, 4.2 and 5.1 of the paper (`p_topss`, which says what was chosen). A track keeps the instances inside a
term, which the next event moves or ends, apart from those that wait behind one, which are found by the events that
concern them. A child is triggered in by an instance and lives as long; each match of it triggers the way out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from tidings.papers.p_topss.state_graph import MachineLeaf
from tidings.papers.p_topss.time_lists import (
    TimeLists,
    covers,
    drop_expired,
    drop_unneeded,
    enter_state,
    merge_parts,
    renew_state,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tidings.papers.p_topss.state_graph import BooleanBranch, BooleanGate, PaperState, Tree

    Arrival = tuple[PaperState, TimeLists]


@dataclass(slots=True)
class MachineTally:
    """What all parts of a machine share."""

    expire: int | None
    transitions: int = 0
    begun: bool = False


@dataclass(slots=True)
class TrackInstance:
    """One way to have come to a state: its time lists, and the children it has triggered."""

    lists: TimeLists
    children: list[BooleanChild] = field(default_factory=list)


class Track:
    """A state machine at work: its instances, those inside a term and those that wait behind one."""

    def __init__(self, root: PaperState, lists: TimeLists, tally: MachineTally) -> None:
        self._root, self._tally = root, tally
        self._start = self._make_instance(root, lists)
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

    def renew(self, lists: TimeLists) -> None:
        """Let what begins from now on know these times of the master's."""
        self._start.lists = lists
        for child in self._start.children:
            child.renew(lists)

    def count_instances(self) -> int:
        """Count the instances alive."""
        return sum(1 for _ in self.iterate_instances())

    def iterate_instances(self) -> Iterator[TrackInstance]:
        """Yield the instances alive, children's after their own."""
        waiting = [instance for instances in self._waiting.values() for instance in instances]
        own = [*(instance for _, instance in self._passing), *waiting]
        yield from own
        for instance in [self._start, *own]:
            for child in instance.children:
                yield from child.iterate_instances()

    def _follow_primary(self, symbols: Collection[int], time: int) -> list[Arrival]:
        """Follow the primary links of an event."""
        arrivals: list[Arrival] = []
        for symbol in symbols:
            if symbol in self._root.edges:
                self._follow(self._root, self._start, symbol, time=time, arrivals=arrivals)
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
                lists = enter_state(target, instance.lists, time=time, left=state)
            if lists is not None:
                arrivals.append((target, lists))

    def _step_children(self, symbols: Collection[int], time: int, *, arrivals: list[Arrival]) -> None:
        """Hand the event to the children; their matches lead on."""
        gated = [instance for state in self._gated for instance in self._waiting[state]]
        for instance in [self._start, *(instance for _, instance in self._passing), *gated]:
            for child in instance.children:
                arrivals.extend((child.target, lists) for lists in child.step(symbols, time))

    def _follow_secondary(self, symbols: Collection[int], time: int) -> None:
        """Follow the secondary links: a state is reached once more."""
        for symbol in symbols:
            for state in self._again.get(symbol, ()):
                if not state.timed:
                    self._tally.transitions += len(self._waiting[state])
                    continue
                for instance in self._waiting[state]:
                    lists = renew_state(state, instance.lists, time=time)
                    if lists is not None:
                        self._tally.transitions += 1
                        instance.lists = lists
                        for child in instance.children:
                            child.renew(lists)

    def _keep_arrival(self, state: PaperState, lists: TimeLists) -> None:
        """Keep an arrival for the events to come."""
        if state.waits:
            self._add_waiting(state, drop_unneeded(lists, state.kept_lists))
        elif state.edges or state.gates:
            self._passing.append((state, self._make_instance(state, drop_unneeded(lists, state.kept_lists))))

    def _add_waiting(self, state: PaperState, lists: TimeLists) -> None:
        instances = self._waiting.get(state)
        if instances is None:
            instances = self._waiting[state] = []
            self._index_state(state)
        elif any(covers(other.lists, lists) for other in instances):
            return
        elif not state.gates:  # children of an older instance have come further than a new one's
            instances[:] = [other for other in instances if not covers(lists, other.lists)]
        instances.append(self._make_instance(state, lists))

    def _index_state(self, state: PaperState) -> None:
        for symbol in state.edges:
            self._ahead.setdefault(symbol, {})[state] = None
        if state.symbol is not None:
            self._again.setdefault(state.symbol, {})[state] = None
        if state.gates:
            self._gated[state] = None

    def _make_instance(self, state: PaperState, lists: TimeLists) -> TrackInstance:
        return TrackInstance(lists, [BooleanChild(gate, lists, self._tally) for gate in state.gates])

    def _drop_expired(self, symbols: Collection[int], *, since: int) -> None:
        """Drop old times of the instances that an event touches; without a time they are gone."""
        for symbol in symbols:
            for state in [*self._ahead.get(symbol, ()), *self._again.get(symbol, ())]:
                kept = []
                for instance in self._waiting[state]:
                    lists = drop_expired(instance.lists, since)
                    if lists is not None:
                        instance.lists = lists
                        kept.append(instance)
                self._waiting[state] = kept


class BooleanChild:
    """A Boolean machine at work for one instance of its master."""

    def __init__(self, gate: BooleanGate, lists: TimeLists, tally: MachineTally) -> None:
        """Trigger it in: it reads the events to come."""
        self.target = gate.target
        self._node = _start(gate.tree, lists, tally)

    def step(self, symbols: Collection[int], time: int) -> list[TimeLists]:
        """Take an event; return the time lists of the matches that it completes."""
        return self._node.step(symbols, time)

    def renew(self, lists: TimeLists) -> None:
        """Let what begins from now on know these times of the master's."""
        for track in self._node.iterate_tracks():
            track.renew(lists)

    def iterate_instances(self) -> Iterator[TrackInstance]:
        """Yield the instances of the state machines below."""
        for track in self._node.iterate_tracks():
            yield from track.iterate_instances()


class _LeafRun:
    """A leaf of a Boolean machine: a state machine."""

    def __init__(self, track: Track) -> None:
        self._track = track

    def step(self, symbols: Collection[int], time: int) -> list[TimeLists]:
        return _drop_covered(drop_unneeded(lists, state.kept_lists) for state, lists in self._track.step(symbols, time))

    def iterate_tracks(self) -> Iterator[Track]:
        yield self._track


class _BranchRun:
    """A node of a Boolean machine: the parts, and for `and` the matches that each part has had."""

    def __init__(self, tree: BooleanBranch, parts: list[_LeafRun | _BranchRun]) -> None:
        self._tree, self._parts = tree, parts
        self._earlier_matches: list[list[TimeLists]] = [[] for _ in parts]

    def step(self, symbols: Collection[int], time: int) -> list[TimeLists]:
        new = [part.step(symbols, time) for part in self._parts]
        if not self._tree.is_and:
            single = [merge_parts([lists], self._tree.pairs) for part_matches in new for lists in part_matches]
            return _drop_covered(lists for lists in single if lists is not None)
        matches = [merge_parts(parts, self._tree.pairs) for parts in self._combine(new)] if any(new) else []
        self._earlier_matches = [
            _drop_covered([*had, *part_matches]) for had, part_matches in zip(self._earlier_matches, new, strict=True)
        ]
        return _drop_covered(lists for lists in matches if lists is not None)

    def iterate_tracks(self) -> Iterator[Track]:
        for part in self._parts:
            yield from part.iterate_tracks()

    def _combine(self, new: list[list[TimeLists]]) -> Iterator[tuple[TimeLists, ...]]:
        """Yield a match of each part, at least one of them new; each combination once."""
        whole = [[*had, *part_matches] for had, part_matches in zip(self._earlier_matches, new, strict=True)]
        for number, part_matches in enumerate(new):
            yield from product(*whole[:number], part_matches, *self._earlier_matches[number + 1 :])


def _start(tree: Tree, lists: TimeLists, tally: MachineTally) -> _LeafRun | _BranchRun:
    if isinstance(tree, MachineLeaf):
        return _LeafRun(Track(tree.root, lists, tally))
    return _BranchRun(tree, [_start(part, lists, tally) for part in tree.parts])


def _drop_covered(candidates: Iterable[TimeLists]) -> list[TimeLists]:
    """Return the lists that add something to those before them."""
    kept: list[TimeLists] = []
    for lists in candidates:
        if not any(covers(other, lists) for other in kept):
            kept.append(lists)
    return kept
