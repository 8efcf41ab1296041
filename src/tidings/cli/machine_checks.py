"""Checks outside Python's packages: the Java that Spark would find, the Python of its workers, Kafka's jars."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from tidings import installation

SYSTEM_JAVAS = Path("/usr/lib/jvm")
"""Where Linux systems install Java."""


class Status(StrEnum):
    """The result of a check."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """A check of one requirement: its result, what the machine has, and how to correct it."""

    part: str
    name: str
    status: Status
    finding: str
    fix: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """Return the check for JSON."""
        result = {"part": self.part, "name": self.name, "status": self.status}
        return {**result, "found": self.finding, "fix": self.fix}


def check_java(system_javas: Path = SYSTEM_JAVAS) -> MachineCheck:
    """Look for the Java that Spark would take: JAVA_HOME's, else the one on the PATH."""
    report = partial(MachineCheck, "spark", "java")
    path, problem = installation.find_java()
    if path is None:
        return report(Status.MISSING, problem.removeprefix("there is "), _suggest_java(system_javas))
    version, where = installation.read_java_version(path)
    if version is None:
        return report(Status.WRONG, f"`{path}` does not say its version", _suggest_java(system_javas))
    if version < installation.OLDEST_JAVA:
        finding = f"{version} in {where}; Spark needs {installation.OLDEST_JAVA} or later"
        return report(Status.WRONG, finding, _suggest_java(system_javas))
    return report(Status.OK, f"{version} in {where}")


def _suggest_java(system_javas: Path) -> str:
    for path in sorted(system_javas.glob("*/bin/java")):
        version, home = installation.read_java_version(str(path))
        if version is not None and version >= installation.OLDEST_JAVA:
            return f"export JAVA_HOME={home}"
    return f"sudo apt-get install openjdk-{installation.OLDEST_JAVA}-jre-headless, or set JAVA_HOME"


def check_worker_python() -> MachineCheck:
    """Check the Python that Spark's workers would run: it must have our version."""
    report = partial(MachineCheck, "spark", "worker python")
    named = os.environ.get("PYSPARK_PYTHON")
    if not named:
        return report(Status.OK, f"{sys.executable} (tidings.spark.session sets it)")
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    path = shutil.which(named)
    if path is None:
        return report(Status.WRONG, f"PYSPARK_PYTHON is `{named}`, which is not there", fix)
    program = "import sys; print('%d.%d' % sys.version_info[:2]); import tidings"
    output = installation.run_program([path, "-c", program]).strip()
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if output != ours:
        reason = f"is Python {output[:4]}, not {ours}" if not output.startswith(ours) else "cannot import tidings"
        return report(Status.WRONG, f"PYSPARK_PYTHON is `{named}`, which {reason}", fix)
    return report(Status.OK, f"{path} (PYSPARK_PYTHON)")


def check_kafka() -> MachineCheck:
    """Check where Spark would take its Kafka connector from: TIDINGS_JARS, its own jars, or the network."""
    report = partial(MachineCheck, "spark", "kafka")
    jars = ", ".join(installation.CONNECTOR)
    advice = f"put these jars into a folder, each without its own dependencies: {jars}"
    if folder := os.environ.get("TIDINGS_JARS"):
        lacking = installation.find_missing_jars(Path(folder))
        if not lacking:
            return report(Status.OK, f"the connector's jars are in {folder} (TIDINGS_JARS)")
        state = f"lacks {', '.join(lacking)}" if Path(folder).is_dir() else "is not there"
        return report(Status.WRONG, f"TIDINGS_JARS is `{folder}`, which {state}", advice)
    own_jars = installation.find_spark_jars()
    if not installation.find_missing_jars(own_jars):
        return report(Status.OK, f"the connector's jars are in {own_jars}")
    finding = "no connector's jars (optional); Spark tries to fetch them when a session asks for Kafka"
    return report(Status.MISSING, finding, f"{advice}, and export TIDINGS_JARS=that folder")
