"""Subscriptions that are to be read before a pipeline runs them: each owner's in their order, the owners by turns.

To read one, it is parsed and compiled, and that takes time; so a batch reads as many as it has time for. An owner who
adds thousands at once waits for the own ones alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.service.subscription import split_engine_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.service.store.base import RunningSubscription


class WaitingPatterns:
    """A queue for each owner; a subscription is in it once, as it is now."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, RunningSubscription]] = {}  # in the order of their turns

    def __len__(self) -> int:
        return sum(map(len, self._owners.values()))

    def __iter__(self) -> Iterator[RunningSubscription]:
        for waiting in self._owners.values():
            yield from waiting.values()

    def put(self, subscription: RunningSubscription) -> None:
        """Let a subscription wait; one of its name that waits already gives it its place."""
        owner = split_engine_id(subscription.engine_id)[0]
        self._owners.setdefault(owner, {})[subscription.engine_id] = subscription

    def remove(self, name: str) -> None:
        """Forget a subscription, if it waits."""
        owner = split_engine_id(name)[0]
        waiting = self._owners.get(owner)
        if waiting is not None and waiting.pop(name, None) is not None and not waiting:
            del self._owners[owner]

    def take(self) -> RunningSubscription | None:
        """Return the next one, which waits no more; None: there is none."""
        if not self._owners:
            return None
        owner, waiting = next(iter(self._owners.items()))
        subscription = waiting.pop(next(iter(waiting)))
        del self._owners[owner]
        if waiting:
            self._owners[owner] = waiting  # the others come first
        return subscription
