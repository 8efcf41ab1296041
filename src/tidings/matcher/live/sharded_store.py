"""A backend of several engines, one for each shard of a live folder: every subscription goes to the shard of its id.

Which filters are refused does not depend on the number of shards: `Admission` judges them in the order of the whole,
and only the stage splits them by shard. Matching takes the segments of all shards as those of one engine.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from tidings.engine.engine import Engine, Removal, SegmentMatches
from tidings.engine.state import EngineState, Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tidings.algebra.law.requirement_counts import Demand
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.engine.compile.source_text import FilterSource
    from tidings.engine.events.event_source import EventSource
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter

TOKENS = 4096
"""Ids are hashed to this many tokens, and contiguous ranges of tokens belong to shards."""


def compute_shard(id: SubId, shards: int) -> int:
    """Return the shard of a subscription: the same in every process and release (`spark.compile` says it in SQL)."""
    token = int(hashlib.sha256(str(id).encode()).hexdigest()[:8], 16) % TOKENS
    return token * shards // TOKENS


class ShardedStage:
    """A stage for each shard."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = stages

    def add(self, id: SubId, bound: Filter, source: FilterSource, *, lossless: bool) -> None:
        """Take a subscription into the stage of its shard."""
        self.stages[compute_shard(id, len(self.stages))].add(id, bound, source, lossless=lossless)


class ShardedStore:
    """The engines of all shards, as one backend of `Matcher`."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self.engines = tuple(engines)

    @property
    def bulk_engine(self) -> Engine | None:
        """The engine of a single shard; rows of a table are not split."""
        return self.engines[0] if len(self.engines) == 1 else None

    def stage(self) -> ShardedStage:
        """Return an empty stage."""
        return ShardedStage([engine.stage() for engine in self.engines])

    def commit(self, stage: ShardedStage) -> None:
        """Put a stage in force; engines that get nothing stay untouched."""
        for engine, own in zip(self.engines, stage.stages, strict=True):
            # An empty commit might merge segments: the next version would have new files for a shard without changes.
            if own.waiting or own.ids:
                engine.commit(own)

    def remove(self, ids: Sequence[SubId]) -> Removal:
        """Remove subscriptions; where an id is missing, nothing is removed, and the result names it."""
        if len(self.engines) == 1:
            return self.engines[0].remove(ids)
        existing = self.find_existing(ids)
        if len(existing) < len(ids):
            return Removal([id for id in ids if id not in existing], Counter(), [])
        demands: Counter[tuple[str, Demand]] = Counter()
        filters: list[Filter] = []
        for engine, own in self._split_by_shard(ids):
            removal = engine.remove(own)
            demands.update(removal.demands)
            filters += removal.filters
        return Removal([], demands, filters)

    def find_existing(self, ids: Sequence[SubId]) -> set[SubId]:
        """Return the subset of `ids` that is subscribed."""
        return {id for engine, own in self._split_by_shard(ids) for id in engine.find_existing(own)}

    def _split_by_shard(self, ids: Sequence[SubId]) -> list[tuple[Engine, list[SubId]]]:
        """Return the engines that own some of the ids, each with its own."""
        owned: list[list[SubId]] = [[] for _ in self.engines]
        for id in ids:
            owned[self._shard(id)].append(id)
        return [(engine, own) for engine, own in zip(self.engines, owned, strict=True) if own]

    def _shard(self, id: SubId) -> int:
        return compute_shard(id, len(self.engines)) if len(self.engines) > 1 else 0

    def get_filter(self, id: SubId) -> Filter | None:
        """Return a subscription's filter as it was written, or None."""
        return self.engines[self._shard(id)].get_filter(id)

    def __len__(self) -> int:
        return sum(map(len, self.engines))

    def __contains__(self, id: object) -> bool:
        return any(id in engine for engine in self.engines)

    def __iter__(self) -> Iterator[SubId]:
        return chain.from_iterable(self.engines)

    @property
    def state(self) -> EngineState:
        """The segments of all shards as the state of one engine."""
        states = [engine.state for engine in self.engines]
        waiting = {id: entry for state in states for id, entry in state.waiting.items()}
        return EngineState(tuple(part for state in states for part in state.parts), waiting)

    def match(self, source: EventSource, state: EngineState | None = None) -> list[SegmentMatches]:
        """Return pairs of event and subscription; any engine matches against any state."""
        return self.engines[0].match(source, self.state if state is None else state)

    def find_readers(self, keys: Collection[TypedAttribute]) -> list[SubId]:
        """Return the ids of the subscriptions that read an attribute in one of these ways."""
        return [id for engine in self.engines for id in engine.find_readers(keys)]

    def seal(self) -> EngineState:
        """Compile what waits in every shard, and return the state that is then in force."""
        for engine in self.engines:
            engine.seal()
        return self.state

    def compact(self) -> None:
        """Merge the segments of each shard into one."""
        for engine in self.engines:
            engine.compact()

    def settle(self) -> None:
        """Wait for the merges of all shards."""
        for engine in self.engines:
            engine.settle()

    @property
    def is_merging(self) -> bool:
        """Whether a shard is merging in the background."""
        return any(engine.is_merging for engine in self.engines)

    def explain(self) -> dict[str, object]:
        """Return the plan of each shard."""
        return {"shards": [engine.explain() for engine in self.engines]}
