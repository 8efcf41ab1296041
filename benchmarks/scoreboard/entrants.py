"""The entrants of the scoreboard: the engine, the algorithms of the registry, and the peers.

Each is built and matches the first so many events, as often as its time allows. An algorithm gets bound filters and
readings, so its own work alone is timed: parsing and binding cost tens of microseconds a filter, whichever matcher gets
it, and reading an event some more. The engine gets its subscriptions as a user would pass them (columns, where a
workload has them) and an Arrow table of events, and its time includes reading both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from tidings.algebra import Reading, Setting
from tidings.bench.harness.baselines import MatchCounter
from tidings.bench.harness.measure import BATCH_SIZE
from tidings.bench.harness.peers import PEERS
from tidings.bench.harness.subscription_forms import SubscriptionSource, load_matcher, slice_source
from tidings.bench.harness.timing import US, measure_seconds
from tidings.bench.workloads import Workload
from tidings.engine.events.event_source import ReadEvents
from tidings.matcher import Matcher
from tidings.matcher.admission import pause_collector
from tidings.matcher.algorithm import Algorithm, SubId
from tidings.matcher.algorithm_store import AlgorithmStore
from tidings.matcher.brute import Brute
from tidings.matcher.match_results import build_matches
from tidings.matcher.registry import build_algorithm
from tidings.model import Filter
from tidings.model.arrow_types import to_rows

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray
    from tidings.model import Matches

EntrantAnswer: TypeAlias = "list[SubId] | int"
"""The matches of one event: their ids, or, from a peer, how many there are."""


@dataclass(frozen=True, slots=True)
class BoundWorkload:
    """Ids with bound filters, readings of the events, and the setting of both.

    `read_us` is the time it took to read one event, in microseconds.
    """

    filters: list[tuple[SubId, Filter]]
    readings: list[Reading]
    setting: Setting
    read_us: float


def bind_workload(workload: Workload, subscriptions: SubscriptionSource, events: pa.Table) -> BoundWorkload:
    """Bind subscriptions and read events, as `td.Matcher` does."""
    readings: list[Reading] = []
    with pause_collector():
        matcher = load_matcher(workload, subscriptions, kind="brute")
        setting, reader = matcher.make_setting(), matcher.get_view().reader
        seconds = measure_seconds(lambda: readings.extend(reader.read(row, setting.now) for row in to_rows(events)))
    assert isinstance(matcher.backend, AlgorithmStore)
    assert isinstance(matcher.backend.algorithm, Brute)  # which keeps bound filters as they are
    filters = list(matcher.backend.algorithm.filters.items())
    return BoundWorkload(filters, readings, setting, seconds / len(readings) * US)


class Entrant(Protocol):
    """A subject of the scoreboard; `match` alone is timed."""

    @property
    def approximate(self) -> bool:
        """Whether it may return too many ids; never too few."""

    def build(self, count: int) -> None:
        """Load the first `count` subscriptions into a new index."""

    def prepare(self, count: int) -> None:
        """Bring the first `count` events into the entrant's form; not timed."""

    def match(self, count: int) -> Any:
        """Match the first `count` events, and return the matches in the entrant's form."""

    def list_answers(self, matches: Any, count: int) -> list[EntrantAnswer]:
        """Return the answers to the first `count` events from what `match` returned."""


@dataclass(slots=True)
class EngineEntrant:
    """The engine as a user has it: subscriptions in columns, events in an Arrow table.

    With `bound`, it gets readings, as algorithms do: the difference is what reading events costs.
    """

    workload: Workload
    subscriptions: SubscriptionSource
    events: pa.Table
    bound: BoundWorkload | None = None
    approximate: bool = False
    matcher: Matcher = field(init=False)

    def build(self, count: int) -> None:
        """Add the subscriptions, and wait until they are merged."""
        self.matcher = load_matcher(self.workload, slice_source(self.subscriptions, 0, count), kind=None)
        self.matcher.settle()

    def prepare(self, count: int) -> None:
        """Do nothing: reading events is part of the engine's work."""

    def match(self, count: int) -> list[Matches]:
        """Match in batches."""
        match = self._match_table if self.bound is None else self._match_readings
        return [match(at, min(BATCH_SIZE, count - at)) for at in range(0, count, BATCH_SIZE)]

    def _match_table(self, at: int, count: int) -> Matches:
        return self.matcher.match_many(self.events.slice(at, count))

    def _match_readings(self, at: int, count: int) -> Matches:
        assert self.bound is not None
        state = self.matcher.prepare_view(count).state
        parts = self.matcher.backend.match(ReadEvents(self.bound.readings[at : at + count], self.bound.setting), state)
        numbers = np.arange(count)
        return build_matches([(numbers, part) for part in parts], count, ())

    def list_answers(self, matches: list[Matches], count: int) -> list[EntrantAnswer]:
        """Return the ids of each event."""
        answers: list[EntrantAnswer] = []
        for batch in matches:
            answers += batch.by_event()
        return answers[:count]


@dataclass(slots=True)
class AlgorithmEntrant:
    """An algorithm of the registry, on bound filters and readings."""

    kind: str
    bound: BoundWorkload
    algorithm: Algorithm = field(init=False)

    @property
    def approximate(self) -> bool:
        """Whether it may return too many ids."""
        return bool(getattr(self.algorithm, "approximate", False))

    def build(self, count: int) -> None:
        """Compile and add the filters; one that the algorithm cannot express raises `Unsupported`."""
        algorithm = self.algorithm = build_algorithm(self.kind, self.bound.setting.ontology)
        with pause_collector():
            filters = islice(self.bound.filters, count)
            algorithm.add_many([(id, algorithm.compile_filter(tree)) for id, tree in filters])

    def prepare(self, count: int) -> None:
        """Do nothing: the events have been read."""

    def match(self, count: int) -> list[list[SubId]]:
        """Match all readings at once."""
        return self.algorithm.match_many(self.bound.readings[:count], self.bound.setting)

    def list_answers(self, matches: list[list[SubId]], count: int) -> list[EntrantAnswer]:
        """Return the ids of each event."""
        return list(matches[:count])


@dataclass(slots=True)
class PeerEntrant:
    """A peer, on the subscriptions that it can express; it counts, and returns no ids."""

    name: str
    columns: pa.Table
    events: pa.Table
    approximate: bool = False
    peer: MatchCounter = field(init=False)
    prepared: Any = None

    def build(self, count: int) -> None:
        """Make the peer from the columns."""
        self.peer = PEERS[self.name](self.columns.slice(0, count))

    def prepare(self, count: int) -> None:
        """Bring the events into the peer's form."""
        self.prepared = self.peer.prepare_events(self.events.slice(0, count))

    def match(self, count: int) -> IntArray:
        """Match the prepared events."""
        del count
        return self.peer.count_matches(self.prepared)

    def list_answers(self, matches: IntArray, count: int) -> list[EntrantAnswer]:
        """Return the counts."""
        return [int(number) for number in matches[:count]]
