"""The protocols that a `Matcher` stands on: what keeps subscriptions in force and finds those that events satisfy.

Three classes satisfy `Backend`: `engine.engine.Engine` (indexed segments), `matcher.algorithm_store.AlgorithmStore` (an
algorithm of a paper, with the written filters beside it) and `matcher.live.sharded_store.ShardedStore` (an engine for
each shard of a live folder). Filters reach a backend bound and counted (`matcher.admission`); a stage collects them,
and `commit` puts the whole stage in force at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence, Sized

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.engine.compile.columns import Column
    from tidings.engine.engine import Engine, Removal, SegmentMatches
    from tidings.engine.events.event_source import EventSource
    from tidings.engine.state import LiveSegment
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter


class BackendState(Protocol):
    """What a backend has in force at one moment; it never changes, so readers need no lock."""

    @property
    def parts(self) -> Sequence[LiveSegment] | None:
        """The compiled segments, largest first; None: the backend has none, and a snapshot keeps its filters."""

    @property
    def waiting(self) -> Sized:
        """The subscriptions that are not compiled yet, which cost a test each for every event."""

    def collect_columns(self) -> tuple[Column, ...]:
        """Return the columns of events that matching reads."""


class Backend(Protocol):
    """Subscriptions in force, and the search for those that events satisfy."""

    @property
    def state(self) -> BackendState:
        """What is in force now."""

    @property
    def bulk_engine(self) -> Engine | None:
        """The engine that whole compiled tables go into (`Engine.add_table`); None: filters come one by one."""

    def __len__(self) -> int:
        """Count the subscriptions."""

    def __iter__(self) -> Iterator[SubId]:
        """Yield the ids."""

    def __contains__(self, id: object) -> bool:
        """Tell whether there is a subscription with this id."""

    def find_existing(self, ids: Sequence[SubId]) -> set[SubId]:
        """Return the subset of `ids` that is subscribed."""

    def get_filter(self, id: SubId) -> Filter | None:
        """Return a subscription's filter as it was written, or None."""

    def stage(self) -> Any:
        """Return an empty stage of the backend's own: its `add` takes a bound filter or refuses it."""

    def commit(self, stage: Any) -> None:
        """Put a stage in force, replacing subscriptions with the same ids."""

    def remove(self, ids: Sequence[SubId]) -> Removal:
        """Remove subscriptions; where an id is missing, nothing is removed, and the result names it."""

    def match(self, source: EventSource, state: Any = None) -> list[SegmentMatches]:
        """Return pairs of event and subscription; `state` is the one whose columns the events were read for."""

    def find_readers(self, keys: Collection[TypedAttribute]) -> list[SubId]:
        """Return the ids of the subscriptions that read an attribute in one of these ways."""

    def explain(self) -> dict[str, object]:
        """Return how the backend matches, in plain values."""

    # Indexing that a backend puts off; one that indexes at once does nothing here.

    def seal(self) -> BackendState:
        """Compile what waits, and return the state that is then in force."""

    def compact(self) -> None:
        """Merge all segments into one."""

    def settle(self) -> None:
        """Wait for merges in the background."""

    @property
    def is_merging(self) -> bool:
        """Whether a merge in the background is under way."""
