"""Dead letters of a service's pipeline go away when they are old: whole batches, each of which is a folder of its own.

The pipeline writes a batch under another name and renames it (`spark.pipeline.sinks.batch_folders`), so a folder
`batch=N` is complete and never written again. It is renamed before it is removed, for readers and for another process
that does the same: a batch is there as a whole, or not at all. Cost: one listing, and a look at the oldest batches.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from tidings.service.settings import ServiceSettings

BATCH, GOING = "batch=", "_going-"
"""How the names of a batch begin, and of one that is on its way out: no reader of tables lists the latter."""

ASIDE = "-"
"""What the name of a folder has whose batches are those of a checkpoint that is gone; the patterns' has none."""


def trim_letters(settings: ServiceSettings, now: datetime) -> int:
    """Remove the batches of dead letters that are older than the settings say; return how many."""
    oldest = (now - settings.housekeeping.dead_letters).timestamp()
    letters = settings.letters_folder
    return sum(_trim_folder(folder, oldest) for folder in letters.parent.glob(f"{letters.name}*"))


def _trim_folder(folder: Path, oldest: float) -> int:
    if not folder.is_dir():
        return 0
    for leftover in folder.glob(f"{GOING}*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    removed = 0
    for path in sorted(folder.glob(f"{BATCH}*"), key=_read_number):
        with suppress(FileNotFoundError):  # another process was first
            if path.stat().st_mtime >= oldest:
                break  # batches are numbered as they come: what follows is younger
            going = path.rename(folder / f"{GOING}{path.name.removeprefix(BATCH)}")
            shutil.rmtree(going, ignore_errors=True)
            removed += 1
    if ASIDE in folder.name and not any(folder.glob(f"{BATCH}*")):
        shutil.rmtree(folder, ignore_errors=True)
    return removed


def _read_number(path: Path) -> int:
    number = path.name.removeprefix(BATCH)
    return int(number) if number.isdecimal() else 0
