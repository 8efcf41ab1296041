"""A pipeline's reports as JSON lines, for programs: one object a line, flushed at once.

Every line has `kind` (`batch`, `status` or `warning`) and `at`. A batch's other fields are those of `BatchReport`, with
its two rates; the other kinds have `text`. A file is appended to, also after a restart.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tidings.errors import FileError
from tidings.spark.pipeline.monitor.batch_report import get_utc_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tidings.spark.pipeline.monitor.batch_report import BatchReport


class JsonLines:
    """Writes a line for each message, to a file or to standard output (`-`)."""

    def __init__(self, path: str, *, now: Callable[[], datetime] = get_utc_now) -> None:
        """Open the file for appending; a line that a crash cut short is ended first."""
        self._now = now
        self._owns_file = path != "-"
        self._file = _open_append(Path(path)) if self._owns_file else sys.stdout
        self._is_torn = self._owns_file and _is_cut_short(Path(path))

    def show_status(self, text: str) -> None:
        """Write a line of kind `status`."""
        self._write("status", {"text": text})

    def report(self, report: BatchReport) -> None:
        """Write a line of kind `batch`."""
        self._write("batch", report.to_dict())

    def warn(self, text: str) -> None:
        """Write a line of kind `warning`."""
        self._write("warning", {"text": text})

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if self._owns_file:
            self._file.close()

    def _write(self, kind: str, fields: dict[str, Any]) -> None:
        line = json.dumps({"kind": kind, "at": self._now().isoformat(), **fields}, ensure_ascii=False)
        start = "\n" if self._is_torn else ""
        self._is_torn = True  # until all of it is written: a full disk may take half a line
        self._file.write(f"{start}{line}\n")
        self._file.flush()
        self._is_torn = False


def _open_append(path: Path) -> IO[str]:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as problem:
        msg = f"cannot write JSON lines to `{path}`: {problem.strerror or problem}"
        raise FileError(msg) from problem


def _is_cut_short(path: Path) -> bool:
    """Tell whether the last line of a file has no end."""
    if not path.is_file() or not path.stat().st_size:  # a pipe has no last line
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
