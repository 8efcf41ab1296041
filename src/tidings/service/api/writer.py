"""Writes of concurrent requests, committed together.

One thread takes whatever waits, writes it in one transaction, and hands each request its own outcome. A request that
comes alone is written at once, without waiting for company; while a commit is under way, those that come gather for the
next. So a commit costs one synchronisation of the disk, for one request or for a hundred.
Invariant: a request is answered only after its transaction is committed.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING, TypeAlias

from tidings.service.store.base import StoreBusy, StoreError, Write, Written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.service.store.base import SubscriptionStore

MAX_GROUP = 200
"""Writes of one transaction at most."""

MAX_WAITING = 5_000
"""Writes that wait at most; beyond them, requests are asked to come again."""

_Job: TypeAlias = "tuple[Write, asyncio.Future[Written], asyncio.AbstractEventLoop]"


class GroupWriter:
    """The one thread through which an API process writes subscriptions."""

    def __init__(self, subscriptions: SubscriptionStore) -> None:
        self._subscriptions = subscriptions
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    async def write(self, write: Write) -> Written:
        """Return what a write did, once it is committed; its refusal is raised."""
        if self._jobs.qsize() >= MAX_WAITING:
            msg = "too many changes wait for the store; try again"
            raise StoreBusy(msg)
        if self._thread is None:
            self._start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Written] = loop.create_future()
        self._jobs.put((write, future, loop))
        return await future

    def close(self) -> None:
        """Write what waits, and end the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tidings-writer", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            jobs = self._gather()
            if jobs:
                self._commit([job for job in jobs if job is not None])
            if jobs[-1] is None:
                return

    def _gather(self) -> list[_Job | None]:
        """Return the next job and those that wait behind it; the end stands last."""
        jobs = [self._jobs.get()]
        while jobs[-1] is not None and len(jobs) < MAX_GROUP:
            try:
                jobs.append(self._jobs.get_nowait())
            except queue.Empty:
                break
        return jobs

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

    def _commit(self, jobs: Sequence[_Job]) -> None:
        if not jobs:
            return
        outcomes = self._write([write for write, _, _ in jobs])
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Written], Written | BaseException]]] = {}
        for (_, future, loop), outcome in zip(jobs, outcomes, strict=True):
            by_loop.setdefault(loop, []).append((future, outcome))
        for loop, settled in by_loop.items():
            try:
                loop.call_soon_threadsafe(_settle, settled)
            except RuntimeError:  # the loop is closed: nobody waits any more
                continue


def _settle(settled: list[tuple[asyncio.Future[Written], Written | BaseException]]) -> None:
    """Hand every request of a group its outcome, in the loop's own thread."""
    for future, outcome in settled:
        if future.done():  # its request went away
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
