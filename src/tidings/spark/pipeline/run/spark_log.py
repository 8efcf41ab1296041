"""Spark's own words: a file in the checkpoint, so that standard error holds nothing but the pipeline's.

Java's log and traces, and those of Python's workers, go there from the moment Java starts. What py4j writes when Java
is gone comes by Python's `logging`, which would print it: it goes to the same file. A Java process that runs
already (under spark-submit, in a notebook) goes on writing where it does, and then there is no file to name.
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
"""Bytes of the file at a start beyond which it is put aside, as `spark.log.1`; an older one goes."""


@contextmanager
def redirect_spark_log(folder: Path) -> Iterator[Path | None]:
    """Yield the file that Spark's words go to, or nothing where Java runs already."""
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
    """Let the root logger write there; one that a program has set up stays as it is."""
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
