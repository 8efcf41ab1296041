"""A backend out of a paper's algorithm: the algorithm keeps compiled filters, the store keeps what was written.

The store has one state, which changes in place: an algorithm makes no promise to readers while it is changed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.algebra.law.typed_attribute import TypedAttribute, collect_attributes
from tidings.engine.engine import Removal, SegmentMatches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from tidings.engine.events.event_source import EventSource
    from tidings.matcher.algorithm import Algorithm, SubId
    from tidings.model import Filter


class AlgorithmState(NamedTuple):
    """The one state of an algorithm: no segments and no columns, so events are read row by row."""

    parts: None = None
    waiting: tuple[()] = ()

    def collect_columns(self) -> tuple[()]:
        """Return no columns."""
        return ()


class AlgorithmStage:
    """The subscriptions of one call, compiled by the algorithm and not yet in force."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self.written: dict[SubId, str | Filter] = {}
        self.compiled: dict[SubId, Any] = {}

    def add(self, id: SubId, bound: Filter, written: str | Filter, *, lossless: bool) -> None:
        """Take a subscription; a filter that the algorithm cannot express raises `Unsupported`."""
        del lossless  # the written filter is kept in any case
        self.compiled[id] = self._algorithm.compile_filter(bound)
        self.written[id] = written


class AlgorithmStore:
    """An algorithm with the written filters beside it, as a backend of `Matcher`."""

    state = AlgorithmState()
    bulk_engine = None
    is_merging = False

    def __init__(
        self, algorithm: Algorithm, bind: Callable[[Filter], Filter], parse: Callable[[str | Filter], Filter]
    ) -> None:
        """Start empty; `bind` resolves the names of a filter, `parse` reads one that was accepted before."""
        self.algorithm, self._bind, self._parse = algorithm, bind, parse
        self._written: dict[SubId, str | Filter] = {}

    def stage(self) -> AlgorithmStage:
        """Return an empty stage."""
        return AlgorithmStage(self.algorithm)

    def commit(self, stage: AlgorithmStage) -> None:
        """Put a stage in force."""
        self.algorithm.add_many(stage.compiled.items())
        self._written |= stage.written

    def remove(self, ids: Sequence[SubId]) -> Removal:
        """Remove subscriptions; where an id is missing, nothing is removed, and the result names it."""
        missing = [id for id in ids if id not in self._written]
        if missing:
            return Removal(missing, Counter(), [])
        filters = [self._parse(self._written.pop(id)) for id in ids]
        for id in ids:
            self.algorithm.remove(id)
        return Removal([], Counter(), filters)

    def get_filter(self, id: SubId) -> Filter | None:
        """Return a subscription's filter as it was written, or None."""
        written = self._written.get(id)
        return None if written is None else self._parse(written)

    def find_existing(self, ids: Sequence[SubId]) -> set[SubId]:
        """Return the subset of `ids` that is subscribed."""
        return self._written.keys() & set(ids)

    def __len__(self) -> int:
        return len(self._written)

    def __contains__(self, id: object) -> bool:
        return id in self._written

    def __iter__(self) -> Iterator[SubId]:
        return iter(list(self._written))

    def match(self, source: EventSource, state: object = None) -> list[SegmentMatches]:
        """Return the pairs of event and subscription; there is one state only."""
        del state
        readings = [source.read_event(event) for event in range(len(source))]
        if len(readings) == 1:  # some algorithms answer one event without the arrays of a batch
            lists = [self.algorithm.match(readings[0], source.setting)]
        else:
            lists = self.algorithm.match_many(readings, source.setting)
        ids = [id for matches in lists for id in matches]
        events = np.repeat(np.arange(len(lists), dtype=np.int64), [len(matches) for matches in lists])
        return [SegmentMatches(events, np.arange(len(ids)), ids)]

    def find_readers(self, keys: Collection[TypedAttribute]) -> list[SubId]:
        """Return the ids of the subscriptions that read an attribute in one of these ways."""
        wanted = frozenset(keys)
        filters = ((id, self._bind(self._parse(written))) for id, written in self._written.items())
        return [id for id, bound in filters if not wanted.isdisjoint(collect_attributes(bound))]

    def seal(self) -> AlgorithmState:
        """Return the one state; nothing waits."""
        return self.state

    def compact(self) -> None:
        """Do nothing: there are no segments."""

    def settle(self) -> None:
        """Do nothing: nothing is merged in the background."""

    def explain(self) -> dict[str, object]:
        """Return what the algorithm does with these filters."""
        return self.algorithm.explain()
