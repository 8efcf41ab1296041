"""How much waits for the pipeline, and how much room the disk has: when to ask publishers to come again later.

What waits is measured now and then by listing the folder (`measure`); between two measurements the writer adds what it
writes. So a pipeline that stands still fills the disk up to a bound, and never beyond. How far it has read is kept in
the folder, since a pipeline that starts anew says nothing of it for a while.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from tidings.service.events.event_files import list_files
from tidings.service.events.event_writer import EventsDelayed

if TYPE_CHECKING:
    from pathlib import Path

LEAST_FREE = 200_000_000
"""Bytes that a disk must have free: the store and the pipeline's checkpoint need some too."""

READ_MARGIN = 60 * 10**9
"""Nanoseconds: files are read oldest first, but one may be begun long before it is finished."""


_MARK = ".read-up-to"
"""The file in the folder that has the number of the newest file that was read."""


class EventBacklog:
    """How much of a folder nobody has read, as far as is known."""

    def __init__(self, folder: Path, *, most: int, least_free: int = LEAST_FREE) -> None:
        """`most` bytes may wait, and `least_free` must be free on the disk."""
        self.folder, self._most, self._least_free = folder, most, least_free
        self._lock = threading.Lock()
        self.waiting = 0
        """Bytes that wait for the pipeline."""
        self.read = self._remember(0)
        """The number of the newest file that was read, as far as is known."""

    def measure(self, read: int) -> int:
        """Count anew; files whose number is at most `read`, or what it was before, were read. Return what waits."""
        self.read = read = self._remember(read)
        waiting = sum(file.size for file in list_files(self.folder) if file.number > read)
        with self._lock:
            self.waiting = waiting
        return waiting

    def _remember(self, read: int) -> int:
        """Return the greatest number that was ever read, and keep it where it is new."""
        mark = self.folder / _MARK
        with suppress(OSError, ValueError):
            if (before := int(mark.read_text())) >= read:
                return before
        with suppress(OSError):
            fresh = mark.with_name(f"{_MARK}-{os.getpid()}")
            fresh.write_text(str(read))
            fresh.replace(mark)
        return read

    def add(self, size: int) -> None:
        """Note that a file was written."""
        with self._lock:
            self.waiting += size

    def check_room(self, size: int) -> None:
        """Refuse so many bytes where too many wait, or the disk is full."""
        if self.waiting + size > self._most:
            waiting, most = self.waiting / 1e6, self._most / 1e6
            msg = f"the pipeline is behind: {waiting:,.0f} MB of events wait for it, and {most:,.0f} MB may"
            raise EventsDelayed(msg, retry_after=10)
        try:
            disk = os.statvfs(self.folder)
        except OSError as failure:
            msg = f"the service cannot write events: {(failure.strerror or 'unknown').lower()}"
            raise EventsDelayed(msg, retry_after=5) from None
        if disk.f_bavail * disk.f_frsize < self._least_free + size:
            msg = f"the disk of the service is full: less than {self._least_free / 1e6:,.0f} MB would be free"
            raise EventsDelayed(msg, retry_after=30)
