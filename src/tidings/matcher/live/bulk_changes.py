"""Changes in hundreds of thousands: whole tables go into the engines of a folder, by columns where they can.

The steps of a feed are judged one by one, which for a million costs more than compiling them. Where each id comes once,
the order of changes means nothing: what goes is removed at once, and a table is loaded as `Matcher.add_many` does. Each
shard has a matcher of its own for that; all count their demands in one admission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.matcher.live.sharded_store import ShardedStore, compute_shard
from tidings.matcher.matcher import Matcher
from tidings.matcher.registry import ENGINE, build_backend

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from tidings.engine.engine import Engine
    from tidings.matcher.admission import Refusals
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.content import MatcherContent
    from tidings.matcher.loading.subscription_input import Submission

SubscriptionTable: TypeAlias = "pa.Table | list[Submission]"
"""Some subscriptions: a table of `id` and `filter`, or triples of id, filter and notation."""


class BulkChange:
    """Portions of subscriptions on their way into the engines of shards; `content` has what is common to them."""

    def __init__(self, content: MatcherContent, engines: Sequence[Engine]) -> None:
        self.store = ShardedStore(engines)
        self.matcher = Matcher(content=content._replace(backend=self.store))
        self._shards = [Matcher(content=content._replace(backend=engine)) for engine in engines]

    @classmethod
    def start(cls, content: MatcherContent, shards: int) -> BulkChange:
        """Begin without subscriptions."""
        engines: Any = [build_backend(ENGINE, content.admission) for _ in range(shards)]
        return cls(content, engines)

    def remove(self, ids: Iterable[SubId]) -> int:
        """Remove those of the ids that exist, and return how many."""
        existing = self.store.find_existing(list(ids))
        self.matcher.remove_many(existing)
        return len(existing)

    def add(self, portions: Iterable[SubscriptionTable]) -> tuple[int, Refusals]:
        """Add or replace; an id whose filter is refused is not in force any more. Return how many, and refusals."""
        total, refusals = 0, []
        for portion in portions:
            total += len(portion)
            refusals += [refusal for part in self._split(portion) for refusal in part]
        self.remove(id for id, _ in refusals)
        return total - len(refusals), refusals

    def _split(self, portion: SubscriptionTable) -> Iterable[Refusals]:
        """Add a portion shard by shard; yield the refusals."""
        if len(self._shards) == 1:
            yield self._shards[0].add_many(portion, on_error="collect")
            return
        ids = [row[0] for row in portion] if isinstance(portion, list) else portion.column("id").to_pylist()
        owners = [compute_shard(id, len(self._shards)) for id in ids]
        for number, shard in enumerate(self._shards):
            if rows := [row for row, owner in enumerate(owners) if owner == number]:
                mine = [portion[row] for row in rows] if isinstance(portion, list) else portion.take(rows)
                yield shard.add_many(mine, on_error="collect")
