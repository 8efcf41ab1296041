"""Writes of concurrent requests, committed together: one transaction for one request or for a hundred.

Invariant: a request is answered only after its transaction is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.service.group_commit import GroupCommit
from tidings.service.store.base import StoreBusy, StoreError, Write, Written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.service.store.base import SubscriptionStore

MAX_GROUP = 200
"""Writes of one transaction at most."""

MAX_WAITING = 5_000
"""Writes that wait at most; beyond them, requests are asked to come again."""


class GroupWriter:
    """The one thread through which an API process writes subscriptions."""

    def __init__(
        self, subscriptions: SubscriptionStore, *, max_group: int = MAX_GROUP, max_waiting: int = MAX_WAITING
    ) -> None:
        self._subscriptions, self._max_waiting = subscriptions, max_waiting
        self._writes: GroupCommit[Write, Written] = GroupCommit(self._write, name="tidings-writer", most=max_group)

    async def write(self, write: Write) -> Written:
        """Return what a write did, once it is committed; its refusal is raised."""
        if self._writes.pending >= self._max_waiting:
            msg = "too many changes wait for the store; try again"
            raise StoreBusy(msg)
        return await self._writes.hand_over(write)

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._writes.close()

    def _write(self, writes: Sequence[Write]) -> Sequence[Written | BaseException]:
        """Return the outcome of each write; what nobody expected of one of them is not the others' business."""
        try:
            return self._subscriptions.write(writes)
        except StoreError as problem:
            return [problem] * len(writes)
        except Exception as problem:  # noqa: BLE001 - whatever it is, every request of the group must be answered
            if len(writes) == 1:
                return [problem]
        return [outcome for write in writes for outcome in self._write([write])]  # the transaction was undone
