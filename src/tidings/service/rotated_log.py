"""A log whose size is bounded: beyond a bound it is put aside as `NAME.1`, in the place of the one before.

What cannot be written (the disk is full) is lost: a log never stops the work that it is about.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 10_000_000
"""Bytes of a log; there are twice as many, with the one that was put aside."""


class RotatedLog:
    """Appends lines to a file; for one writer at a time."""

    def __init__(self, path: Path, *, largest: int = LARGEST) -> None:
        self._path, self._largest = path, largest

    def write(self, line: bytes) -> None:
        """Append a line."""
        # Opened for each line: whoever deletes or moves the file away gets a new one.
        with suppress(OSError):
            with self._path.open("ab") as file:
                file.write(line)
                size = file.tell()
            if size > self._largest:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
