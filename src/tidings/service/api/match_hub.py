"""Matches as they come, for all streams of a process: one poller reads the store and hands each row to who waits.

The numbers of matches ascend, and nothing smaller appears later (see `store.base`). So a place in the stream is a
number: a stream that begins behind it reads what it missed from the store, up to the number that the poller had reached
when the stream joined; what comes after reaches it through its queue. Nothing is missed or repeated between the two.

A queue is bounded: a stream whose client does not read is dropped, and may come again with the last number that it saw.
All of this happens in the event loop's thread; reading the store happens in others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidings.service.api.match_json import describe_match, encode_values
from tidings.service.api.owner_views import get_view
from tidings.service.api.problems import Problem, log_failure
from tidings.service.store.base import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tidings.service.api.state import ApiState
    from tidings.service.owner_bounds import OwnerView
    from tidings.service.subscription import MatchRow


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTuning:
    """How often the store and the keys are asked, how long clients are waited for, and how much is kept for one."""

    poll_seconds: float = 0.2
    queue_rows: int = 2_000
    queue_bytes: int = 1_000_000
    page_rows: int = 500  # read at once, at most
    page_bytes: int = 500_000  # read at once, about
    check_seconds: float = 1.0  # how often a key is asked whether it is still valid
    heartbeat_seconds: float = 15.0  # how long a connection stays silent at most
    send_seconds: float = 30.0  # how long a client may take to read what was sent
    label_seconds: float = 5.0  # how long the labels of a subscription count as what they were


@dataclass(frozen=True, slots=True)
class MatchFrame:
    """A match as a server-sent event; it is encoded once for all streams."""

    number: int
    owner: str
    subscription: str
    data: bytes

    @classmethod
    def of(cls, row: MatchRow, *, is_hidden: bool = False) -> MatchFrame:
        """Encode a match; one that its owner may not see has no bytes."""
        if is_hidden:
            return cls(row.number, row.owner, row.subscription, b"")
        match = {"subscription": row.subscription, "owner": row.owner, **describe_match(row)}
        data = b"id: %d\nevent: match\ndata: %b\n\n" % (row.number, encode_values(match))
        return cls(row.number, row.owner, row.subscription, data)


def _encode_rows(rows: Sequence[MatchRow], views: Mapping[str, OwnerView | None], now: datetime) -> list[MatchFrame]:
    return [_encode_row(row, views.get(row.owner), now) for row in rows]


def _encode_row(row: MatchRow, view: OwnerView | None, now: datetime) -> MatchFrame:
    try:
        return MatchFrame.of(row, is_hidden=view is not None and not view.may_see_match(row, now))
    except Exception as error:  # noqa: BLE001 - a match that cannot be shown must not hold up those after it
        log_failure(error)
        return MatchFrame.of(row, is_hidden=True)


@dataclass(slots=True)
class PageSize:
    """How many rows are read at once: few until it is known how large they are."""

    tuning: HubTuning
    rows: int = 16

    def adapt(self, frames: Sequence[MatchFrame]) -> None:
        """Read so many next time that they have about `page_bytes`, and at most four times as many as this time."""
        if frames:
            average = sum(len(frame.data) for frame in frames) / len(frames)
            most = min(4 * self.rows, self.tuning.page_rows)
            self.rows = max(1, min(most, int(self.tuning.page_bytes / average)))


@dataclass(slots=True, eq=False)
class MatchQueue:
    """What waits for one stream: matches of an owner (None: of all) whose numbers are greater than `joined`."""

    owner: str | None
    joined: int
    tuning: HubTuning
    frames: deque[MatchFrame] = field(default_factory=deque)
    size: int = 0
    filled: asyncio.Event = field(default_factory=asyncio.Event)
    is_dropped: bool = False

    def put(self, frame: MatchFrame) -> None:
        """Add a match; where too many wait, all are dropped, and the queue with them."""
        if self.is_dropped:
            return
        self.frames.append(frame)
        self.size += len(frame.data)
        is_heavy = self.size > self.tuning.queue_bytes and len(self.frames) > 1
        if is_heavy or len(self.frames) > self.tuning.queue_rows:
            self.is_dropped = True
            self.frames.clear()
        self.filled.set()

    def take(self) -> list[MatchFrame]:
        """Return what waits."""
        frames = list(self.frames)
        self.frames.clear()
        self.size = 0
        self.filled.clear()
        return frames


class MatchHub:
    """The streams of one process."""

    def __init__(self, state: ApiState, tuning: HubTuning | None = None) -> None:
        self._state, self.tuning = state, tuning or HubTuning()
        self._queues: set[MatchQueue] = set()
        self._poller: asyncio.Task[None] | None = None
        self._opening, self._pages = asyncio.Lock(), PageSize(self.tuning)
        self.position = 0
        """All matches up to this number were handed out."""

    @property
    def count(self) -> int:
        """How many streams are open."""
        return len(self._queues)

    async def join(self, owner: str | None) -> MatchQueue:
        """Return a queue that has what comes from now on; 503 and 429 where there are too many."""
        most = self._state.settings.limits.streams
        if len(self._queues) >= most:
            msg = f"{most:,} streams are open, which is the limit of this process; try again, or list the matches"
            raise Problem(msg, status=503, headers={"Retry-After": "10"})
        if sum(queue.owner == owner for queue in self._queues) >= max(1, most // 2):
            msg = "this owner has half of all streams that may be open; close some, or list the matches"
            raise Problem(msg, status=429, headers={"Retry-After": "10"})
        async with self._opening:
            if self._poller is None or self._poller.done():
                self.position = await self._state.access.ask(self._state.store.matches.read_head)
                self._poller = asyncio.create_task(self._poll())
            queue = MatchQueue(owner, self.position, self.tuning)
            self._queues.add(queue)
        return queue

    def leave(self, queue: MatchQueue) -> None:
        """Close a queue; without any, the store is not asked any more."""
        self._queues.discard(queue)

    async def list_missed(self, queue: MatchQueue, after: int, pages: PageSize) -> Sequence[MatchFrame]:
        """Return the next matches after a number that were there when the queue was opened; empty: no more."""
        if after >= queue.joined:
            return ()
        read = self._state.store.matches.list_since
        rows = await self._state.access.work(read, queue.owner, after, limit=pages.rows)
        missed = [row for row in rows if row.number <= queue.joined]
        frames = await self._encode(missed, is_bounded=queue.owner is not None)
        pages.adapt(frames)
        return frames

    async def _encode(self, rows: Sequence[MatchRow], *, is_bounded: bool) -> list[MatchFrame]:
        """Return matches as they are sent, in a thread; those that their owners may not see are hidden."""
        owners = {row.owner for row in rows} if is_bounded else set()
        views = {owner: await get_view(self._state, owner) for owner in owners}
        return await self._state.access.work(_encode_rows, rows, views, self._state.now())

    async def close(self) -> None:
        """Stop asking the store."""
        poller, self._poller = self._poller, None
        if poller is not None:
            poller.cancel()
            with suppress(asyncio.CancelledError):
                await poller

    async def _poll(self) -> None:
        while self._queues and not self._state.stopping.is_set():
            try:
                if not await self._hand_out():
                    await asyncio.sleep(self.tuning.poll_seconds)
            except StoreError:  # it answers again later; nothing is lost meanwhile
                await asyncio.sleep(5 * self.tuning.poll_seconds)
            except Exception as error:  # noqa: BLE001 - one failure must not end the streams of everybody
                log_failure(error)
                await asyncio.sleep(5 * self.tuning.poll_seconds)
        for queue in self._queues:  # the service stops; they look why they were woken
            queue.filled.set()

    async def _hand_out(self) -> bool:
        """Read the next matches and hand them out; tell whether there may be more."""
        matches, access, most = self._state.store.matches, self._state.access, self._pages.rows
        owners = {queue.owner for queue in self._queues}
        head = await access.ask(matches.read_head)
        if head <= self.position:
            self.position = head  # it is smaller where the store was restored from an older copy
            return False
        owner = next(iter(owners)) if len(owners) == 1 else None
        rows = await access.work(matches.list_since, owner, self.position, limit=most)
        wanted = [row for row in rows if row.owner in owners]
        frames = await self._encode(wanted, is_bounded=True)
        unbounded = await self._encode(rows, is_bounded=False) if None in owners else []
        if {queue.owner for queue in self._queues} - owners:
            return True  # somebody joined meanwhile whose matches may not be among these
        for queue in self._queues:
            for frame in unbounded if queue.owner is None else frames:
                if queue.owner is None or queue.owner == frame.owner:
                    queue.put(frame)
        self._pages.adapt(frames or unbounded)
        is_full = len(rows) >= most
        reached = rows[-1].number if rows else self.position
        self.position = reached if is_full else max(reached, head)
        return is_full
