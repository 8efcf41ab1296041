"""Events as files of JSON lines in a folder: durable before anybody is told that they are kept.

Whatever requests have handed over becomes one file, which is flushed before all of them know (`service.group_commit`).
Invariant: `write` returns only when a finished file has its lines.
"""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING

from tidings.service.events.event_files import flush_folder, make_name, write_file
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.group_commit import GroupCommit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidings.service.events.backlog import EventBacklog
    from tidings.service.events.intake import ReadyEvents

FILE_BYTES = 16_000_000
"""What one file has at most, unless one request brings more."""

PENDING_BYTES = 128_000_000
"""What may wait in memory for the disk."""


class FolderWriter:
    """Writes events into the folder of a backlog."""

    def __init__(
        self, backlog: EventBacklog, *, clock: Callable[[], int] = time.time_ns, file_bytes: int = FILE_BYTES
    ) -> None:
        """`clock` tells the nanoseconds since 1970 that files are named by."""
        self._backlog, self._clock, self._latest = backlog, clock, 0
        self._files: GroupCommit[bytes, None]
        self._files = GroupCommit(self._write_file, name="tidings-events", most=file_bytes, weigh=len)
        backlog.folder.mkdir(parents=True, exist_ok=True)
        flush_folder(backlog.folder.parent)

    async def write(self, events: ReadyEvents) -> None:
        """Return when the events are in a finished file."""
        if not events.lines:
            return
        data = b"\n".join([*events.lines, b""])
        self._backlog.check_room(self._files.pending + len(data))
        if self._files.pending > PENDING_BYTES:
            msg = "too many events wait for the disk"
            raise EventsDelayed(msg, retry_after=1)
        await self._files.hand_over(data)

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._files.close()

    def _write_file(self, parts: list[bytes]) -> Sequence[BaseException | None]:
        """Write the lines of some requests as one file; the outcome is the same for all of them."""
        problem: Exception | None = None
        try:
            # Files up to what was read are taken for read, also where a clock went back or another machine's is ahead.
            self._latest = max(self._clock(), self._latest + 1, self._backlog.read + 1)
            write_file(self._backlog.folder, make_name(self._latest), parts)
            self._backlog.add(sum(map(len, parts)))
        except OSError as failure:
            problem = _explain(failure)
        except Exception as failure:  # noqa: BLE001 - whatever it is, every request of the group must be answered
            problem = failure
        return [problem] * len(parts)


def _explain(failure: OSError) -> EventsDelayed:
    if failure.errno in {errno.ENOSPC, errno.EDQUOT}:
        return EventsDelayed("the disk of the service is full", retry_after=30)
    reason = failure.strerror or type(failure).__name__
    return EventsDelayed(f"the service cannot write events: {reason.lower()}", retry_after=5)
