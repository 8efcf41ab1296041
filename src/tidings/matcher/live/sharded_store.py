"""Several engines that take subscriptions in as one does: each goes to its shard, in the order they were given.

What is refused, and for whose sake, must not depend on the number of shards: of two filters that contradict each
other the later one is refused, wherever the two lie, and ids are all text or all integers in the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidings.engine.engine import Engine
    from tidings.engine.staging import Stage
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter


class ShardedStage:
    """A stage for each shard."""

    def __init__(self, stages: list[Stage], shard: Callable[[SubId], int]) -> None:
        """Take empty stages."""
        self.stages, self._shard = stages, shard

    def add(self, id: SubId, bound: Filter, written: Any, *, faithful: bool) -> None:
        """Take a subscription into the stage of its shard."""
        self.stages[self._shard(id)].add(id, bound, written, faithful=faithful)


class ShardedStore:
    """The engines of all shards; offers what `Admission.enter` asks of one."""

    def __init__(self, engines: Sequence[Engine], shard: Callable[[SubId], int]) -> None:
        """Take the engines, and who says which shard an id belongs to."""
        self._engines, self._shard = engines, shard

    def stage(self) -> ShardedStage:
        """Return an empty stage."""
        return ShardedStage([engine.stage() for engine in self._engines], self._shard)

    def commit(self, stage: ShardedStage) -> None:
        """Put a stage in force."""
        for engine, one in zip(self._engines, stage.stages, strict=True):
            if one.few or one.ids:
                engine.commit(one)

    def find_existing(self, ids: Sequence[SubId]) -> set[SubId]:
        """Return those of the ids that are there."""
        mine: list[list[SubId]] = [[] for _ in self._engines]
        for id in ids:
            mine[self._shard(id)].append(id)
        return {id for engine, some in zip(self._engines, mine, strict=True) if some for id in engine.find_existing(some)}

    def get_filter(self, id: SubId) -> Filter | None:
        """Return a subscription's filter as written, or nothing."""
        return self._engines[self._shard(id)].get_filter(id)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return sum(map(len, self._engines))

    def __iter__(self) -> Iterator[SubId]:
        """Yield the ids."""
        return (id for engine in self._engines for id in engine)
