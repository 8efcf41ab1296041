"""Events as files of JSON lines in a folder: durable before anybody is told that they are kept.

One thread takes whatever requests have handed over, writes it as one file, flushes it, and lets all of them know. A
request that comes alone is written at once; while a file is being flushed, those that come gather for the next. So
many requests share one flush, and none waits for a timer. Invariant: `write` returns only when a finished file has its
lines.
"""

from __future__ import annotations

import asyncio
import errno
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.service.events.event_files import flush_folder, make_name, write_file
from tidings.service.events.event_writer import EventsDelayed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.service.events.backlog import EventBacklog
    from tidings.service.events.intake import ReadyEvents

FILE_BYTES = 16_000_000
"""What one file has at most, unless one request brings more."""

PENDING_BYTES = 128_000_000
"""What may wait in memory for the disk."""


@dataclass(frozen=True, slots=True)
class _Handover:
    """The lines of one request, and who waits for them."""

    data: bytes
    future: asyncio.Future[None]
    loop: asyncio.AbstractEventLoop


class FolderWriter:
    """Writes events into the folder of a backlog."""

    def __init__(self, backlog: EventBacklog, *, clock: Callable[[], int] = time.time_ns) -> None:
        """`clock` tells the nanoseconds since 1970 that files are named by."""
        self._backlog, self._clock = backlog, clock
        self._jobs: queue.SimpleQueue[_Handover | None] = queue.SimpleQueue()
        self._pending, self._latest = 0, 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        backlog.folder.mkdir(parents=True, exist_ok=True)
        flush_folder(backlog.folder.parent)

    async def write(self, events: ReadyEvents) -> None:
        """Return when the events are in a finished file."""
        if not events.lines:
            return
        data = b"\n".join([*events.lines, b""])
        self._backlog.check_room(self._pending + len(data))
        if self._pending > PENDING_BYTES:
            msg = "too many events wait for the disk"
            raise EventsDelayed(msg, retry_after=1)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._start()
        with self._lock:
            self._pending += len(data)
        self._jobs.put(_Handover(data, future, loop))
        await future

    def close(self) -> None:
        """Write what waits, and end the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()

    def _start(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="tidings-events", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        while True:
            jobs, is_last = self._gather()
            if jobs:
                self._commit(jobs)
            if is_last:
                return

    def _gather(self) -> tuple[list[_Handover], bool]:
        """Return the next handover and those that wait behind it, and whether they are the last."""
        jobs: list[_Handover] = []
        size, job = 0, self._jobs.get()
        while job is not None:
            jobs.append(job)
            size += len(job.data)
            if size >= FILE_BYTES or self._jobs.empty():
                return jobs, False
            job = self._jobs.get()
        return jobs, True

    def _commit(self, jobs: list[_Handover]) -> None:
        problem: Exception | None = None
        size = sum(len(job.data) for job in jobs)
        try:
            # Files up to what was read are taken for read, also where a clock went back or another machine's is ahead.
            self._latest = max(self._clock(), self._latest + 1, self._backlog.read + 1)
            write_file(self._backlog.folder, make_name(self._latest), [job.data for job in jobs])
            self._backlog.add(size)
        except OSError as failure:
            problem = _explain(failure)
        except Exception as failure:  # noqa: BLE001 - whatever it is, every request of the group must be answered
            problem = failure
        with self._lock:
            self._pending -= size
        for job in jobs:
            try:
                job.loop.call_soon_threadsafe(_settle, job.future, problem)
            except RuntimeError:  # the loop is closed: nobody waits any more
                continue


def _explain(failure: OSError) -> EventsDelayed:
    if failure.errno in {errno.ENOSPC, errno.EDQUOT}:
        return EventsDelayed("the disk of the service is full", retry_after=30)
    reason = failure.strerror or type(failure).__name__
    return EventsDelayed(f"the service cannot write events: {reason.lower()}", retry_after=5)


def _settle(future: asyncio.Future[None], problem: Exception | None) -> None:
    """Let a request know, in the loop's own thread."""
    if future.done():  # it went away
        return
    if problem is None:
        future.set_result(None)
    else:
        future.set_exception(problem)
