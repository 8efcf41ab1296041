"""The files of events in a folder: their names, and how one is put there so that it is whole or not there.

A file is `NUMBER-RANDOM.jsonl`, where the number is the nanoseconds since 1970 at which it was begun; so names ascend
with time. It is written as `.NAME`, which readers leave alone, flushed to the disk and renamed; then the folder is
flushed. What lies there under its name is whole, and stays after a crash.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SUFFIX = ".jsonl"
"""How the names of finished files end."""

_NAME = re.compile(r"(\d{20})-[0-9a-f]{8,16}\.jsonl")


@dataclass(frozen=True, slots=True, order=True)
class EventFile:
    """A finished file: its number, name and size."""

    number: int
    name: str
    size: int


def make_name(nanoseconds: int) -> str:
    """Return a new name for a file that is begun at a time."""
    return f"{nanoseconds:020}-{secrets.token_hex(4)}{SUFFIX}"


def get_number(name: str) -> int | None:
    """Return the number in the name of an event file; None for any other name.

    >>> get_number("01700000000000000000-0123abcd.jsonl"), get_number(".01700000000000000000-0123abcd.jsonl")
    (1700000000000000000, None)
    """
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def list_files(folder: Path) -> Iterator[EventFile]:
    """Yield the finished files of a folder, in no order; one that goes away meanwhile is left out."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            number = get_number(entry.name)
            if number is None:
                continue
            with suppress(FileNotFoundError):
                yield EventFile(number, entry.name, entry.stat().st_size)


def write_file(folder: Path, name: str, lines: Iterable[bytes]) -> None:
    """Put a file into a folder: whole and flushed, or not at all."""
    hidden = folder / f".{name}"
    try:
        with hidden.open("xb", buffering=0) as file:
            _write_all(file.fileno(), b"".join(lines))
            os.fsync(file.fileno())
        hidden.rename(folder / name)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    flush_folder(folder)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
