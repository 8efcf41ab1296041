"""The entrants of the scoreboard: the engine, the algorithms of the registry, and the peers.

Each is built and matches the first so many events, as often as its time allows. An algorithm gets bound filters and
readings, so its own work alone is timed. The engine gets its subscriptions as a user would pass them (columns, where a
workload has them) and an Arrow table of events, and its time includes reading both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tidings.bench.harness.measure import BATCH_SIZE
from tidings.bench.harness.peers import PEERS
from tidings.bench.harness.subscription_forms import load_matcher, pause_gc, slice_source
from tidings.engine.events.event_source import ReadEvents
from tidings.matcher.registry import build_algorithm
from tidings.matcher.results import matches_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.bench.harness.baselines import MatchCounter
    from tidings.bench.harness.bound_workload import BoundWorkload
    from tidings.bench.harness.subscription_forms import SubscriptionSource
    from tidings.bench.workloads import Workload
    from tidings.kernels.array_types import IntArray
    from tidings.matcher import Matcher
    from tidings.matcher.algorithm import SubId
    from tidings.model import Matches

Answer: TypeAlias = "list[SubId] | int"
"""The matches of one event: their ids, or, from a peer, how many there are."""


class Entrant(Protocol):
    """A subject of the scoreboard; `match` alone is timed.

    `approximate` entrants may return too many ids, never too few.
    """

    approximate: bool

    def build(self, count: int) -> None:
        """Load the first `count` subscriptions into a new index."""

    def prepare(self, count: int) -> None:
        """Bring the first `count` events into the entrant's form; not timed."""

    def match(self, count: int) -> Any:
        """Match the first `count` events, and return the matches in the entrant's form."""

    def list_answers(self, matches: Any, count: int) -> list[Answer]:
        """Return the answers to the first `count` events from what `match` returned."""


class EngineEntrant:
    """The engine as a user has it: subscriptions in columns, events in an Arrow table."""

    approximate = False

    def __init__(self, workload: Workload, subscriptions: SubscriptionSource, events: pa.Table) -> None:
        """Keep the subscriptions and the events of a workload."""
        self._workload, self._subscriptions, self._events = workload, subscriptions, events
        self._built: Matcher | None = None

    @property
    def matcher(self) -> Matcher:
        """The matcher that `build` made."""
        assert self._built is not None
        return self._built

    def build(self, count: int) -> None:
        """Add the subscriptions, and wait until they are merged."""
        self._built = load_matcher(self._workload, slice_source(self._subscriptions, 0, count), kind=None)
        self._built.settle()

    def prepare(self, count: int) -> None:
        """Do nothing: reading events is part of the engine's work."""

    def match(self, count: int) -> list[Matches]:
        """Match in batches."""
        starts = range(0, count, BATCH_SIZE)
        return [self.matcher.match_many(self._events.slice(at, min(BATCH_SIZE, count - at))) for at in starts]

    def list_answers(self, matches: list[Matches], count: int) -> list[Answer]:
        """Return the ids of each event."""
        answers: list[Answer] = []
        for batch in matches:
            answers += batch.by_event()
        return answers[:count]


class ReadEngineEntrant(EngineEntrant):
    """The engine on readings, as algorithms get them: next to it, `EngineEntrant` shows what reading events costs."""

    def __init__(
        self, workload: Workload, subscriptions: SubscriptionSource, events: pa.Table, bound: BoundWorkload
    ) -> None:
        """Keep the subscriptions, and the readings of the events."""
        super().__init__(workload, subscriptions, events)
        self._bound = bound

    def match(self, count: int) -> list[Matches]:
        """Match readings in batches by the engine behind the matcher."""
        engine, state = self.matcher.backend, self.matcher.prepare_view(count).state
        batches = []
        for at in range(0, count, BATCH_SIZE):
            readings = self._bound.readings[at : min(count, at + BATCH_SIZE)]
            numbers = np.arange(len(readings))
            parts = engine.match(ReadEvents(readings, self._bound.setting), state)
            batches.append(matches_of([(numbers, part) for part in parts], len(readings), ()))
        return batches


class AlgorithmEntrant:
    """An algorithm of the registry, on bound filters and readings."""

    def __init__(self, kind: str, bound: BoundWorkload) -> None:
        """Make an empty algorithm."""
        self._kind, self._bound = kind, bound
        self._algorithm = build_algorithm(kind, bound.setting.ontology)
        self.approximate = bool(getattr(self._algorithm, "approximate", False))

    def build(self, count: int) -> None:
        """Compile and add the filters; one that the algorithm cannot express raises `Unsupported`."""
        algorithm = self._algorithm = build_algorithm(self._kind, self._bound.setting.ontology)
        with pause_gc():
            filters = self._bound.filters[:count] if count < len(self._bound) else self._bound.filters
            algorithm.add_many([(id, algorithm.compile_filter(tree)) for id, tree in filters])

    def prepare(self, count: int) -> None:
        """Do nothing: the events have been read."""

    def match(self, count: int) -> list[list[SubId]]:
        """Match all readings at once."""
        return self._algorithm.match_many(self._bound.readings[:count], self._bound.setting)

    def list_answers(self, matches: list[list[SubId]], count: int) -> list[Answer]:
        """Return the ids of each event."""
        return list(matches[:count])


class PeerEntrant:
    """A peer, on the subscriptions that it can express; it counts, and returns no ids."""

    approximate = False

    def __init__(self, name: str, columns: pa.Table, events: pa.Table) -> None:
        """Keep the subscriptions and the events of a workload."""
        self._name, self._columns, self._events = name, columns, events
        self._built: MatchCounter | None = None
        self._prepared: Any = None

    @property
    def peer(self) -> MatchCounter:
        """The peer that `build` made."""
        assert self._built is not None
        return self._built

    def build(self, count: int) -> None:
        """Make the peer from the columns."""
        self._built = PEERS[self._name](self._columns.slice(0, count))

    def prepare(self, count: int) -> None:
        """Bring the events into the peer's form."""
        self._prepared = self.peer.prepare_events(self._events.slice(0, count))

    def match(self, count: int) -> IntArray:
        """Match the prepared events."""
        del count
        return self.peer.count_matches(self._prepared)

    def list_answers(self, matches: IntArray, count: int) -> list[Answer]:
        """Return the counts."""
        return [int(number) for number in matches[:count]]
