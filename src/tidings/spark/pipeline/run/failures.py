"""Errors of Spark and of the disk in one line: what went wrong, where, and what to do; Spark's own words in a file.

Most errors of Spark are a `PySparkException`. Its connectors may raise Java's own, and when Java is gone, only the
connection to it fails. Spark hides the disk's error deep in its message, or says only that a folder cannot be made;
so the folder in question is probed by writing to it.

Java's log and traces, and those of Python's workers, go to a file of the checkpoint from the moment Java starts, so
that standard error has the pipeline's lines only. What py4j logs when Java is gone goes through Python's `logging`, and
to the same file. A Java process that runs already (under spark-submit, in a notebook) keeps its own log, and then there
is no file.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PythonException

from tidings.errors import PipelineFailed, TidingsError
from tidings.spark.session import is_java_running, is_submitted

if TYPE_CHECKING:
    from collections.abc import Iterator

SPARK_ERRORS = (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError)
"""Everything that a call to Spark may raise."""

GONE = "Spark's Java process is gone"

FULL = "No space left on device"
"""The message of Java and of the system for a full disk."""

DAMAGED = (
    *("CANNOT_LOAD_STATE_STORE", "CANNOT_LOAD_CHECKPOINT", "CANNOT_READ_STREAMING_STATE", "MALFORMED_LOG_FILE"),
    *("RocksDBException: Corruption", "Incomplete log file", "ChecksumException", "next on empty iterator"),
)
"""Parts of Spark's messages about damaged files in its checkpoint."""

WAYS_OUT = {
    errno.ENOSPC: "its disk is full; make room there",
    errno.EDQUOT: "the quota of its disk is used up; make room there",
    errno.EROFS: "its file system is read-only; let it be written to (`mount -o remount,rw`)",
    errno.EACCES: "it may not be written to; give this user the right to",
    errno.EPERM: "it may not be written to; give this user the right to",
    errno.ENOENT: "it is gone; mount its volume or put it back",
    errno.ENOTDIR: "a file stands where a folder should be; move that away and put the folder back",
}
"""What is wrong with a folder, and the way out, by errno."""

PROBE_BYTES = 1 << 16
"""Bytes that a probe writes."""

LOG_NAME = "spark.log"
"""The name of Spark's log in the checkpoint."""

MAX_LOG_BYTES = 10 << 20
"""A larger file is renamed to `spark.log.1` at the start; an older one is overwritten."""


@dataclass(frozen=True, slots=True)
class FailureReport:
    """Explains the failure of a pipeline: what went wrong, and what to do about it."""

    checkpoint: Path
    log: Path | None

    def explain(self, problem: BaseException) -> BaseException:
        """Return an error with a one-line explanation; one of ours is returned as it is."""
        if isinstance(problem, TidingsError):
            return problem
        log = "" if self.log is None else f"; Spark's own words are in `{self.log}`"
        failed = PipelineFailed(f"the pipeline ended: {self._explain_cause(problem)}{log}")
        failed.__cause__ = problem
        return failed

    def _explain_cause(self, problem: BaseException) -> str:
        message = summarize_error(problem)
        if (way_out := diagnose_folder(self.checkpoint, message)) is not None:
            return f"the checkpoint `{self.checkpoint}` cannot be written to: {way_out}, then start it again"
        if any(sign in f"{problem} {message}" for sign in DAMAGED):
            return self._explain_damage(str(problem), message)
        if message == GONE:
            more = '`"spark.driver.memory" = "4g"` in [spark] gives it more'
            return f"{GONE}; if its memory was short, {more}; {_AGAIN}"
        if FULL in message:
            room = "make room, also where `spark.local.dir` lies, by default the system's temporary folder"
            return f"a disk is full ({strip_task(message)}); {room}; {_AGAIN}"
        return f"{strip_task(message)}; {_AGAIN}"

    def _explain_damage(self, text: str, message: str) -> str:
        """Name the folder of the checkpoint that Spark's text names, or else the query's, and the ways out."""
        match = re.search(re.escape(str(self.checkpoint)) + r"/(\w+(?:/(?:state|offsets|commits|sources))?)", text)
        folder = self.checkpoint / (match[1] if match else "query")
        return (
            f"Spark cannot read what it wrote to `{folder}`, it is damaged ({strip_task(message)}); restore "
            f"`{self.checkpoint}` as a whole from a copy, sinks of the same time with it; or begin anew, with "
            "another `checkpoint` and empty folders for the sinks: all that the source still has is then read again"
        )


_AGAIN = "what is done is kept, start it again to go on"


def diagnose_folder(folder: Path, message: str) -> str | None:
    """Return what is wrong with a folder and the way out, or None; `message` is that of the failure."""
    number = None
    try:
        with NamedTemporaryFile(dir=folder, prefix="_probe-") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        if FULL in message and is_nearly_full(folder):
            number = errno.ENOSPC
    except OSError as problem:
        number = problem.errno
    return None if number is None else WAYS_OUT.get(number, f"{os.strerror(number)}; see to it")


def is_nearly_full(folder: Path) -> bool:
    """Tell whether less than a hundredth of the disk is free: what filled it may have been removed already."""
    disk = os.statvfs(folder)
    return disk.f_bavail * 100 < disk.f_blocks or disk.f_bavail * disk.f_frsize < 64 << 20


def summarize_error(problem: BaseException) -> str:
    """Return an error in one line; of one raised in a worker, the last line of its trace."""
    if isinstance(problem, PythonException):
        lines = [line.strip() for line in str(problem).splitlines()]
        return next(line for line in reversed(lines) if line and not line.startswith("SQLSTATE"))
    if isinstance(problem, PySparkException):
        return extract_message(problem)
    if isinstance(problem, Py4JJavaError):
        with suppress(*SPARK_ERRORS):  # its text is fetched from Java now, and Java may be gone
            return _summarize_java(str(problem))
    return GONE if isinstance(problem, SPARK_ERRORS) else f"{type(problem).__name__}: {problem}"


def extract_message(problem: PySparkException) -> str:
    """Return Spark's sentence without its error class, SQL state and plan: `No thing` of `[X.Y] No thing.`."""
    text = (problem.getMessage() or str(problem)).strip().partition("\n")[0]
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text).partition(" SQLSTATE")[0]
    return text.rstrip(". ")


def strip_task(message: str) -> str:
    """Remove Spark's description of the failed task from the beginning of a message."""
    return re.sub(r"^SparkException: Job aborted due to stage failure: .*?executor \w+\): ", "", message)


def _summarize_java(text: str) -> str:
    r"""Return the messages of a Java error and its causes, without the trace.

    >>> _summarize_java("An error occurred.\n: a.b.Bad: no\n\tat x\nCaused by: a.Worse: denied\n\tat y\n")
    'Bad: no; Worse: denied'
    """
    messages = re.findall(r"^(?:: |Caused by: )(?:[\w$]+\.)*([^\n]+)", text, flags=re.MULTILINE)
    return "; ".join(dict.fromkeys(messages)) or "Java raised an error"


# Spark's own log ---------------------------------------------------------------------------------


@contextmanager
def redirect_spark_log(folder: Path) -> Iterator[Path | None]:
    """Yield the file of Spark's log, or None where Java runs already."""
    if is_java_running() or is_submitted():
        yield None
        return
    path = folder / LOG_NAME
    with suppress(FileNotFoundError):
        if path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_name(f"{LOG_NAME}.1"))
    root, handler = logging.getLogger(), logging.FileHandler(path, encoding="utf-8", delay=True)
    if not root.handlers:  # else the program has configured its own log
        root.addHandler(handler)
    try:
        yield path
    finally:
        root.removeHandler(handler)
        handler.close()
