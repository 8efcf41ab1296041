"""Subscriptions of an algorithm that keeps nothing but bound filters: what was written is kept beside it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.algebra.law.typed_attribute import asked_of
from tidings.engine.engine import SegmentMatches, Removal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.engine.events.event_source import Arrivals
    from tidings.matcher.algorithm import Algorithm, SubId
    from tidings.model import Filter


class _Entry(NamedTuple):
    written: Any
    compiled: Any


class AlgorithmStage:
    """Subscriptions of one call."""

    def __init__(self, algorithm: Algorithm) -> None:
        """Start empty."""
        self._algorithm = algorithm
        self.added: dict[SubId, _Entry] = {}

    def add(self, id: SubId, bound: Filter, written: Any, *, faithful: bool) -> None:
        """Take a subscription, or refuse what the algorithm cannot express."""
        del faithful
        self.added[id] = _Entry(written, self._algorithm.compiled(bound))


class AlgorithmStore:
    """An algorithm with the written filters beside it; offers what the engine offers."""

    def __init__(self, algorithm: Algorithm, bind: Callable[[Filter], Filter], parse: Any) -> None:
        """Start empty; `bind` gives what a filter means, `parse` reads text that was written."""
        self._algorithm, self._bind, self._parse = algorithm, bind, parse
        self._written: dict[SubId, Any] = {}

    def stage(self) -> AlgorithmStage:
        """Return an empty stage."""
        return AlgorithmStage(self._algorithm)

    def commit(self, stage: Any) -> None:
        """Put a stage in force."""
        self._algorithm.add_many((id, one.compiled) for id, one in stage.added.items())
        self._written.update((id, one.written) for id, one in stage.added.items())

    def discard(self, ids: Sequence[SubId]) -> None:
        """Remove subscriptions."""
        for id in ids:
            del self._written[id]
            self._algorithm.remove(id)

    def remove(self, ids: Sequence[SubId]) -> Removal:
        """Remove many; if some are not there, nothing is removed, and they are told."""
        missing = [id for id in ids if id not in self._written]
        trees: list[Any] = [] if missing else [self.get_filter(id) for id in ids]
        if not missing:
            self.discard(ids)
        return Removal(missing, Counter(), trees)

    def get_filter(self, id: SubId) -> Filter | None:
        """Return a subscription's filter as written, or nothing."""
        found = self._written.get(id)
        return self._parse(found) if isinstance(found, str) else found

    def find_existing(self, ids: Sequence[SubId]) -> set[SubId]:
        """Return those of the ids that are there."""
        return self._written.keys() & set(ids)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._written)

    def __contains__(self, id: object) -> bool:
        """Tell whether there is a subscription with this id."""
        return id in self._written

    def __iter__(self) -> Iterator[SubId]:
        """Yield the ids."""
        return iter(list(self._written))

    def match(self, arrivals: Arrivals, state: object = None) -> list[SegmentMatches]:
        """Return the pairs of event and subscription; there is one state only."""
        del state
        readings = [arrivals.reading(event) for event in range(len(arrivals))]
        if len(readings) == 1:
            lists = [self._algorithm.match(readings[0], arrivals.setting)]
        else:
            lists = self._algorithm.match_many(readings, arrivals.setting)
        ids = [id for found in lists for id in found]
        events = np.repeat(np.arange(len(lists), dtype=np.int64), [len(found) for found in lists])
        return [SegmentMatches(events, np.arange(len(ids)), ids)]

    def find_readers(self, keys: Collection[TypedAttribute]) -> list[SubId]:
        """Return the ids of the subscriptions that read some attribute in one of these ways."""
        wanted = frozenset(keys)
        trees = ((id, self.get_filter(id)) for id in self._written)
        return [id for id, tree in trees if tree is not None and not wanted.isdisjoint(asked_of(self._bind(tree)))]

    def explain(self) -> dict[str, object]:
        """Return what the algorithm does with these filters."""
        return self._algorithm.explain()
