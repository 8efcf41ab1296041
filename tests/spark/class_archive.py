"""The classes that Spark's Java loads in a test, archived, so that every Java that a test starts maps them from a file.

A Java process of Spark loads and verifies some 20,000 classes in its first batches; from an archive (JDK's class data
sharing) the same start takes 9 s of processor time instead of 19, and the tests start dozens of processes.
`python -m tests.spark.class_archive` writes the archive into the virtual environment; `make test` does it when it is
missing. Java compares the archive with its own version and with the jars, and does without it where they differ.
"""

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The second compiler and the many-threaded collector do not pay in a minute's life."""

PATIENCE = 120
"""Seconds for Java to write the archive when it ends; other builds may run beside."""


def options() -> str:
    """Return the options for every Java that spark-submit's launcher starts (SPARK_SUBMIT_OPTS)."""
    return f"{QUICK} -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.exists() else QUICK


def write() -> None:
    """Run a small pipeline, then let Java write the archive at its end; whole or not at all."""
    from py4j.protocol import Py4JError

    beside = ARCHIVE.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK} -XX:ArchiveClassesAtExit={beside} -Xlog:disable"
    with tempfile.TemporaryDirectory() as folder:
        session = _use(Path(folder))
        gateway = session.sparkContext._gateway  # noqa: SLF001 - PySpark has no public way to its Java
        session.stop()
        with contextlib.suppress(Py4JError, OSError):  # the answer does not come
            gateway.jvm.java.lang.System.exit(0)  # a Java that is killed writes nothing
        gateway.proc.wait(PATIENCE)
    beside.rename(ARCHIVE)


def _use(folder: Path):
    """Match, leave out duplicates and detect a pattern in a stream; return the session."""
    from tests.spark.pipeline.piping import Pipe

    from tidings import spark as ts

    session = ts.session("classes", master="local[2]", log=folder / "spark.log")
    pipe = Pipe(folder)
    pipe.searches("1", all="price >= 0")
    pipe.events({"id": 1, "make": "ford", "price": 1, "posted": "2024-07-01T00:00:00Z"}, "no JSON")
    pipe.events({"id": 2, "make": "opel", "price": "dear", "posted": "2024-07-01T00:00:01Z"})
    (folder / "pair.patterns").write_text(
        "pattern pair\n  a = make = 'ford'\n  b = make = 'opel'\n  a ; b within 1 min\n"
    )
    pipe.toml(
        more='[duplicates]\nwithin = "1 hour"\n[patterns]\nfile = "pair.patterns"\nlateness = "1 s"\n'
        '[[detections]]\nkind = "json"\npath = "pairs"'
    ).run()
    return session


if __name__ == "__main__":
    begun = time.monotonic()
    write()
    sys.stdout.write(f"{ARCHIVE}: {ARCHIVE.stat().st_size >> 20} MiB in {time.monotonic() - begun:.0f} s\n")
