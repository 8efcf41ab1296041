"""Spark's log in a file of the checkpoint, so that standard error has the pipeline's lines only.

Java's log and traces, and those of Python's workers, go there from the moment Java starts. What py4j logs when Java is
gone goes through Python's `logging`, and to the same file. A Java process that runs already (under spark-submit, in
a notebook) keeps its own log, and then there is no file.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tidings.spark.session import is_java_running, is_submitted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "spark.log"
"""The file's name in the checkpoint."""

MAX_BYTES = 10 << 20
"""A larger file is renamed to `spark.log.1` at the start; an older one is overwritten."""


@contextmanager
def redirect_spark_log(folder: Path) -> Iterator[Path | None]:
    """Yield the file of Spark's log, or None where Java runs already."""
    if is_java_running() or is_submitted():
        yield None
        return
    path = folder / NAME
    with suppress(FileNotFoundError):
        if path.stat().st_size > MAX_BYTES:
            path.replace(path.with_name(f"{NAME}.1"))
    with _log_to(path):
        yield path


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """Let the root logger write to a file, unless the program has configured it."""
    root = logging.getLogger()
    if root.handlers:
        yield
        return
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
