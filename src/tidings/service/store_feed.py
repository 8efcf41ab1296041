"""A store's filters as a feed of `td.Live`: what changed since a position of its change log, or all of them.

    live = td.Live("state/subscriptions", follow=StoreFeed(open_store(url)))

The position is kept in each version of the folder. One that the log does not know any more, since it was compacted or
the store was restored from an older copy, means that everything is loaded anew. Many changes at once go in as tables
(`Live.load`), in portions, so that memory stays bounded. A filter that bounds what an owner may see is part of each of
the owner's filters here. A subscription whose text or whose bound is refused is not in force.

A store that cannot be reached is an error where nothing was read before. Later what was read stays in force; that is
reported once, and the store is asked again after a second.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidings.concepts import Vocabulary
from tidings.errors import TidingsError
from tidings.lang.filters.notations import parse_filter
from tidings.matcher.live.change_rounds import ChangeStep
from tidings.matcher.live.feeds import Changes
from tidings.matcher.live.live import Live
from tidings.service.owner_bounds import bind_to_owner, parse_bound
from tidings.service.store.base import Position, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tidings.errors import FilterWarning
    from tidings.matcher.live.bulk_changes import SubscriptionTable
    from tidings.model import Filter
    from tidings.service.store.base import RunningSubscription, Store
    from tidings.service.subscription import SubscriptionKind

FILTERS: tuple[SubscriptionKind, ...] = ("filter",)
"""The kinds of subscriptions that are matched event by event."""

POSITION = "store"
"""The key of a version's position under which this feed keeps its own."""


@dataclass(frozen=True, slots=True)
class FeedTuning:
    """How much is read at once, and how often an unreachable store is asked again."""

    steps: int = 10_000  # changes that are applied one by one; more are loaded as tables
    portion: int = 250_000  # rows of such a table
    retry_seconds: float = 1.0


class StoreFeed:
    """The filters of a store; `vocabulary` is that of the folder, and `kinds` which subscriptions are followed."""

    def __init__(
        self,
        store: Store,
        *,
        vocabulary: Vocabulary | None = None,
        kinds: Collection[SubscriptionKind] = FILTERS,
        tuning: FeedTuning | None = None,
    ) -> None:
        self._store, self._kinds, self._tuning = store, kinds, tuning or FeedTuning()
        self._bounds = OwnerBounds(vocabulary or Vocabulary())
        self._asked_at: float | None = None  # when the store did not answer, as `time.monotonic` has it

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:
        """Return what changed since a position; what is loaded as tables is in force already, and only refusals come.

        `current` is the `td.Live` that asks.
        """
        before = parse_position(position)
        if self._asked_at is not None and time.monotonic() - self._asked_at < self._tuning.retry_seconds:
            return Changes([], position)
        try:
            changes = self._read(before, current)
        except StoreError as problem:
            if before is None:
                raise
            is_new, self._asked_at = self._asked_at is None, time.monotonic()
            msg = f"the store cannot be read, so what was read of it before stays in force: {problem}"
            return Changes([ChangeStep(None, problem=StoreError(msg))] if is_new else [], position)
        self._asked_at = None
        return changes

    def _read(self, before: Position | None, current: Iterable[Any]) -> Changes:
        log = self._store.log
        if before is not None and log.read_head() == before:
            return Changes([], {POSITION: before.to_dict()})
        with log.read(before, kinds=self._kinds) as read:
            position, running = {POSITION: read.position.to_dict()}, iter(read.running)
            if before is not None and not read.reload:
                first = list(islice(running, self._tuning.steps))
                if len(first) < self._tuning.steps:
                    removals = (ChangeStep(id, removes=True) for id in read.removed)
                    return Changes([*removals, *chain.from_iterable(map(self._build_steps, first))], position)
                running = chain(first, running)
            assert isinstance(current, Live)
            replaces = before is None or read.reload
            portions, removed = self._cut_portions(running), () if replaces else read.removed
            change = current.load(portions, removed, replaces=replaces, position=position)
            return Changes([ChangeStep(id, problem=problem) for id, problem in change.refused], position)

    def _build_steps(self, subscription: RunningSubscription) -> Iterator[ChangeStep]:
        """Yield a removal and an addition: where the new filter is refused, the old one must not stay."""
        yield ChangeStep(subscription.engine_id, removes=True)
        source, notation = self._bounds.read(subscription)
        if isinstance(source, TidingsError):
            yield ChangeStep(subscription.engine_id, problem=source)
        else:
            yield ChangeStep(subscription.engine_id, source, notation)

    def _cut_portions(self, running: Iterator[RunningSubscription]) -> Iterator[SubscriptionTable]:
        """Yield plain texts as tables, and all others as triples."""
        while rows := list(islice(running, self._tuning.portion)):
            plain = [row for row in rows if row.notation == "text" and row.only is None]
            if plain:
                texts = pa.array([row.text for row in plain], pa.string())
                yield pa.table({"id": pa.array([row.engine_id for row in plain], pa.string()), "filter": texts})
            if len(plain) < len(rows):
                others = (row for row in rows if row.notation != "text" or row.only is not None)
                yield [(row.engine_id, *self._bounds.read(row)) for row in others]


class OwnerBounds:
    """Filters together with what bounds their owner.

    They are put together as trees: no text, whatever it is, gets out of its bound.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._last: tuple[str, Filter | None] | None = None  # subscriptions come by owner, mostly

    def read(self, subscription: RunningSubscription) -> tuple[Any, str]:
        """Return the filter in force with its notation; or the error, where one of the two cannot be read."""
        if subscription.only is None:
            return subscription.text, subscription.notation
        try:
            return self.bind(subscription.text, subscription.notation, subscription.only), "text"
        except TidingsError as problem:
            return problem, "text"

    def bind(self, text: str, notation: str, only: str) -> Filter:
        """Return what satisfies both filters; `only` is in the text notation."""
        if self._last is None or self._last[0] != only:
            self._last = only, parse_bound(only, self._vocabulary)
        warnings: list[FilterWarning] = []  # who wrote it has seen them
        tree = parse_filter(text, self._vocabulary, notation=notation, warnings=warnings)
        return bind_to_owner(tree, self._last[1])


def parse_position(position: Mapping[str, Any]) -> Position | None:
    """Return where a version's position says that a store was read to; None where it does not."""
    entry = position.get(POSITION)
    return None if entry is None else Position(int(entry["sequence"]), str(entry["mark"]))
