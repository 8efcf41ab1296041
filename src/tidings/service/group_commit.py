"""Work of concurrent requests, committed together by one thread.

The thread takes whatever waits, commits it as one group, and hands each request its own outcome. Who comes alone is
committed at once, without waiting for company; while a commit is under way, those that come gather for the next. So a
flush of the disk is paid once, for one request or for a hundred, and nobody waits for a timer.
Invariants: a request goes on only after its group is committed; whatever was handed over before `close` is committed.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Job = TypeVar("Job")
"""What a request hands over."""

Outcome = TypeVar("Outcome")
"""What it gets."""

_Handover: TypeAlias = "tuple[Job, asyncio.Future[Outcome], asyncio.AbstractEventLoop]"
_Queue: TypeAlias = "queue.SimpleQueue[_Handover[Job, Outcome] | None]"
_Settled: TypeAlias = "list[tuple[asyncio.Future[Outcome], Outcome | BaseException]]"


class GroupCommit(Generic[Job, Outcome]):
    """One thread that commits what requests hand over; it begins with the first of them, also after `close`."""

    def __init__(
        self,
        commit: Callable[[list[Job]], Sequence[Outcome | BaseException]],
        *,
        name: str,
        most: int,
        weigh: Callable[[Job], int] = lambda _: 1,
    ) -> None:
        """`commit` returns the outcome of each job, and raises nothing. A group is full when it weighs `most`."""
        self._commit_jobs, self._name, self._most, self._weigh = commit, name, most, weigh
        self._jobs: _Queue[Job, Outcome] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.pending = 0
        """What weighs on the thread: all that was handed over and has no outcome yet."""

    async def hand_over(self, job: Job) -> Outcome:
        """Return the outcome of a job once its group is committed, or raise it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        with self._lock:  # so that every job is before the end of its queue
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, args=(self._jobs,), name=self._name, daemon=True)
                self._thread.start()
            self.pending += self._weigh(job)
            self._jobs.put((job, future, loop))
        return await future

    def close(self) -> None:
        """Commit what waits, and end the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
            jobs, self._jobs = self._jobs, queue.SimpleQueue()  # a thread has a queue of its own, with an end
            jobs.put(None)
        if thread is not None:
            thread.join()

    def _run(self, jobs: _Queue[Job, Outcome]) -> None:
        is_last = False
        while not is_last:
            group, weight, is_last = self._gather(jobs)
            if group:
                outcomes = self._commit_jobs([job for job, _, _ in group])
                with self._lock:
                    self.pending -= weight
                _hand_out(group, outcomes)

    def _gather(self, jobs: _Queue[Job, Outcome]) -> tuple[list[_Handover[Job, Outcome]], int, bool]:
        """Return the next job and those that wait behind it, what they weigh, and whether they are the last."""
        group: list[_Handover[Job, Outcome]] = []
        weight, entry = 0, jobs.get()
        while entry is not None:
            group.append(entry)
            weight += self._weigh(entry[0])
            if weight >= self._most or jobs.empty():  # nobody else takes from the queue
                return group, weight, False
            entry = jobs.get()
        return group, weight, True


def _hand_out(group: Sequence[_Handover[Job, Outcome]], outcomes: Sequence[Outcome | BaseException]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, _Settled[Outcome]] = {}
    for (_, future, loop), outcome in zip(group, outcomes, strict=True):
        by_loop.setdefault(loop, []).append((future, outcome))
    for loop, settled in by_loop.items():
        settle_in(loop, settled)


def settle_in(loop: asyncio.AbstractEventLoop, settled: _Settled[Outcome]) -> None:
    """Hand requests of a loop their outcomes, from another thread than the loop's."""
    try:
        loop.call_soon_threadsafe(_settle, settled)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return


def _settle(settled: _Settled[Outcome]) -> None:
    for future, outcome in settled:
        if future.done():  # its request went away
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
