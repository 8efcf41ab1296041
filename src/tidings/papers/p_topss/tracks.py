"""Instances of P-ToPSS at work: a track runs a state machine, a child runs a Boolean machine with tracks below it.

Sections 4.1, 4.2 and 5.1 of the paper (`p_topss`, which says what was chosen). A track keeps the instances inside a
term, which the next event moves or ends, apart from those that wait behind one, which are found by the events that
concern them. A child is triggered in by an instance and lives as long; each match of it triggers the way out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from tidings.papers.p_topss.state_graph import Leaf
from tidings.papers.p_topss.time_lists import Lists, cleaned, covers, entered, expired, joined, renewed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tidings.papers.p_topss.state_graph import Branch, Gate, State, Tree

    Arrival = tuple[State, Lists]


@dataclass(slots=True)
class Tally:
    """What all parts of a machine share."""

    expire: int | None
    transitions: int = 0
    begun: bool = False


@dataclass(slots=True)
class Instance:
    """One way to have come to a state: its time lists, and the children it has triggered."""

    lists: Lists
    children: list[Child] = field(default_factory=list)


class Track:
    """A state machine at work: its instances, those inside a term and those that wait behind one."""

    def __init__(self, root: State, lists: Lists, tally: Tally) -> None:
        self._root, self._tally = root, tally
        self._start = self._instance(root, lists)
        self._passing: list[tuple[State, Instance]] = []
        self._waiting: dict[State, list[Instance]] = {}
        self._ahead: dict[int, dict[State, None]] = {}  # waiting states by the events that lead on
        self._again: dict[int, dict[State, None]] = {}  # and by those that lead back to them
        self._gated: dict[State, None] = {}

    def step(self, symbols: Collection[int], time: int) -> list[Arrival]:
        """Take an event; return the arrivals at final states."""
        if self._tally.expire is not None:
            self._forget(symbols, since=time - self._tally.expire)
        arrivals = self._primary(symbols, time)
        self._children(symbols, time, arrivals=arrivals)
        # After the primary links: an event must not serve a step and the one behind it.
        self._secondary(symbols, time)
        self._passing = []
        for state, lists in arrivals:
            self._settle(state, lists)
        self._tally.transitions += len(arrivals)
        return [arrival for arrival in arrivals if arrival[0].final]

    def renew(self, lists: Lists) -> None:
        """Let what begins from now on know these times of the master's."""
        self._start.lists = lists
        for child in self._start.children:
            child.renew(lists)

    def instances(self) -> int:
        """Count the instances alive."""
        return sum(1 for _ in self.alive())

    def alive(self) -> Iterator[Instance]:
        """Yield the instances alive, children's after their own."""
        waiting = [instance for instances in self._waiting.values() for instance in instances]
        own = [*(instance for _, instance in self._passing), *waiting]
        yield from own
        for instance in [self._start, *own]:
            for child in instance.children:
                yield from child.alive()

    def _primary(self, symbols: Collection[int], time: int) -> list[Arrival]:
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

    def _follow(self, state: State, instance: Instance, symbol: int, *, time: int, arrivals: list[Arrival]) -> None:
        for target in state.edges[symbol]:
            lists: Lists | None = instance.lists
            if target.timed:
                lists = entered(target, instance.lists, time=time, left=state)
            if lists is not None:
                arrivals.append((target, lists))

    def _children(self, symbols: Collection[int], time: int, *, arrivals: list[Arrival]) -> None:
        """Hand the event to the children; their matches lead on."""
        gated = [instance for state in self._gated for instance in self._waiting[state]]
        for instance in [self._start, *(instance for _, instance in self._passing), *gated]:
            for child in instance.children:
                arrivals.extend((child.target, lists) for lists in child.step(symbols, time))

    def _secondary(self, symbols: Collection[int], time: int) -> None:
        """Follow the secondary links: a state is reached once more."""
        for symbol in symbols:
            for state in self._again.get(symbol, ()):
                if not state.timed:
                    self._tally.transitions += len(self._waiting[state])
                    continue
                for instance in self._waiting[state]:
                    lists = renewed(state, instance.lists, time=time)
                    if lists is not None:
                        self._tally.transitions += 1
                        instance.lists = lists
                        for child in instance.children:
                            child.renew(lists)

    def _settle(self, state: State, lists: Lists) -> None:
        """Keep an arrival for the events to come."""
        if state.waits:
            self._wait(state, cleaned(lists, state.carried))
        elif state.edges or state.gates:
            self._passing.append((state, self._instance(state, cleaned(lists, state.carried))))

    def _wait(self, state: State, lists: Lists) -> None:
        there = self._waiting.get(state)
        if there is None:
            there = self._waiting[state] = []
            self._enlist(state)
        elif any(covers(other.lists, lists) for other in there):
            return
        elif not state.gates:  # children of an older instance have come further than a new one's
            there[:] = [other for other in there if not covers(lists, other.lists)]
        there.append(self._instance(state, lists))

    def _enlist(self, state: State) -> None:
        for symbol in state.edges:
            self._ahead.setdefault(symbol, {})[state] = None
        if state.symbol is not None:
            self._again.setdefault(state.symbol, {})[state] = None
        if state.gates:
            self._gated[state] = None

    def _instance(self, state: State, lists: Lists) -> Instance:
        return Instance(lists, [Child(gate, lists, self._tally) for gate in state.gates])

    def _forget(self, symbols: Collection[int], *, since: int) -> None:
        """Drop old times of the instances that an event touches; without a time they are gone."""
        for symbol in symbols:
            for state in [*self._ahead.get(symbol, ()), *self._again.get(symbol, ())]:
                kept = []
                for instance in self._waiting[state]:
                    lists = expired(instance.lists, since)
                    if lists is not None:
                        instance.lists = lists
                        kept.append(instance)
                self._waiting[state] = kept


class Child:
    """A Boolean machine at work for one instance of its master."""

    def __init__(self, gate: Gate, lists: Lists, tally: Tally) -> None:
        """Trigger it in: it reads the events to come."""
        self.target = gate.target
        self._node = _started(gate.tree, lists, tally)

    def step(self, symbols: Collection[int], time: int) -> list[Lists]:
        """Take an event; return the time lists of the matches that it completes."""
        return self._node.step(symbols, time)

    def renew(self, lists: Lists) -> None:
        """Let what begins from now on know these times of the master's."""
        for track in self._node.tracks():
            track.renew(lists)

    def alive(self) -> Iterator[Instance]:
        """Yield the instances of the state machines below."""
        for track in self._node.tracks():
            yield from track.alive()


class _Machine:
    """A leaf of a Boolean machine: a state machine."""

    def __init__(self, track: Track) -> None:
        self._track = track

    def step(self, symbols: Collection[int], time: int) -> list[Lists]:
        return _distinct(cleaned(lists, state.carried) for state, lists in self._track.step(symbols, time))

    def tracks(self) -> Iterator[Track]:
        yield self._track


class _Node:
    """A node of a Boolean machine: the parts, and for `and` the matches that each part has had."""

    def __init__(self, tree: Branch, parts: list[_Machine | _Node]) -> None:
        self._tree, self._parts = tree, parts
        self._had: list[list[Lists]] = [[] for _ in parts]

    def step(self, symbols: Collection[int], time: int) -> list[Lists]:
        new = [part.step(symbols, time) for part in self._parts]
        if not self._tree.every:
            single = [joined([lists], self._tree.pairs) for found in new for lists in found]
            return _distinct(lists for lists in single if lists is not None)
        matches = [joined(parts, self._tree.pairs) for parts in self._combined(new)] if any(new) else []
        self._had = [_distinct([*had, *found]) for had, found in zip(self._had, new, strict=True)]
        return _distinct(lists for lists in matches if lists is not None)

    def tracks(self) -> Iterator[Track]:
        for part in self._parts:
            yield from part.tracks()

    def _combined(self, new: list[list[Lists]]) -> Iterator[tuple[Lists, ...]]:
        """Yield a match of each part, at least one of them new; each combination once."""
        whole = [[*had, *found] for had, found in zip(self._had, new, strict=True)]
        for number, found in enumerate(new):
            yield from product(*whole[:number], found, *self._had[number + 1 :])


def _started(tree: Tree, lists: Lists, tally: Tally) -> _Machine | _Node:
    if isinstance(tree, Leaf):
        return _Machine(Track(tree.root, lists, tally))
    return _Node(tree, [_started(part, lists, tally) for part in tree.parts])


def _distinct(found: Iterable[Lists]) -> list[Lists]:
    """Return the lists that add something to those before them."""
    kept: list[Lists] = []
    for lists in found:
        if not any(covers(other, lists) for other in kept):
            kept.append(lists)
    return kept
