"""What Spark raises, and its own sentence on it.

Most of it is a `PySparkException`. What Spark's connectors raise may come as Java's own, and when Java is gone, nothing
but the connection to it fails.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PythonException

from tidings.spark.pipeline.analysis import said

SPARKS = (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError)
"""All that a call to Spark may raise."""

GONE = "Spark's Java process is gone"


def words(problem: BaseException) -> str:
    """Return one line on what went wrong; of what was raised in a worker, that is the end of its trace."""
    if isinstance(problem, PythonException):
        lines = [line.strip() for line in str(problem).splitlines()]
        return next(line for line in reversed(lines) if line and not line.startswith("SQLSTATE"))
    if isinstance(problem, PySparkException):
        return said(problem)
    if isinstance(problem, Py4JJavaError):
        return _of_java(str(problem))
    return GONE if isinstance(problem, SPARKS) else f"{type(problem).__name__}: {problem}"


def _of_java(text: str) -> str:
    r"""Return what Java said, and why, without where.

    >>> _of_java("An error occurred.\n: a.b.Bad: no\n\tat x\nCaused by: a.Worse: denied\n\tat y\n")
    'Bad: no; Worse: denied'
    """
    found = re.findall(r"^(?:: |Caused by: )(?:[\w$]+\.)*([^\n]+)", text, flags=re.MULTILINE)
    return "; ".join(dict.fromkeys(found)) or "Java raised an error"
