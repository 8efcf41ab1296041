"""Checks outside Python's packages: the Java that Spark would find, the Python of its workers, Kafka's jars."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

OLDEST_JAVA = 17
"""Spark 4 does not start on an older one."""

SYSTEM_JAVAS = Path("/usr/lib/jvm")
"""Where Linux systems install Java."""

CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
"""Spark's Kafka connector: as in `tidings.spark.connector`, which cannot be imported without PySpark."""

PATIENCE_S = 30
"""A program that does not print its version in this time is broken."""


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
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if path is None or not Path(path).exists():
        where = f"JAVA_HOME is `{home}`, which has no bin/java" if home else "no `java` on the PATH"
        return MachineCheck("spark", "java", Status.MISSING, where, _suggest_java(system_javas))
    version, where = _read_java_version(path)
    if version is None:
        return MachineCheck(
            "spark", "java", Status.WRONG, f"`{path}` does not say its version", _suggest_java(system_javas)
        )
    if version < OLDEST_JAVA:
        finding = f"{version} in {where}; Spark needs {OLDEST_JAVA} or later"
        return MachineCheck("spark", "java", Status.WRONG, finding, _suggest_java(system_javas))
    return MachineCheck("spark", "java", Status.OK, f"{version} in {where}")


def _read_java_version(java: str) -> tuple[int | None, str]:
    # Java prints its own home, so links and version managers' shims do not matter.
    output = _run_program([java, "-XshowSettings:properties", "-version"])
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", output)
    home = re.search(r"java\.home = (.+)", output)
    return int(version[1]) if version else None, home[1].strip() if home else java


def _suggest_java(system_javas: Path) -> str:
    for path in sorted(system_javas.glob("*/bin/java")):
        version, home = _read_java_version(str(path))
        if version is not None and version >= OLDEST_JAVA:
            return f"export JAVA_HOME={home}"
    return f"sudo apt-get install openjdk-{OLDEST_JAVA}-jre-headless, or set JAVA_HOME"


def check_worker_python() -> MachineCheck:
    """Check the Python that Spark's workers would run: it must have our version."""
    named = os.environ.get("PYSPARK_PYTHON")
    if not named:
        return MachineCheck("spark", "worker python", Status.OK, f"{sys.executable} (tidings.spark.session sets it)")
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    path = shutil.which(named)
    if path is None:
        return MachineCheck(
            "spark", "worker python", Status.WRONG, f"PYSPARK_PYTHON is `{named}`, which is not there", fix
        )
    output = _run_program([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2]); import tidings"]).strip()
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if output != ours:
        reason = f"is Python {output[:4]}, not {ours}" if not output.startswith(ours) else "cannot import tidings"
        return MachineCheck("spark", "worker python", Status.WRONG, f"PYSPARK_PYTHON is `{named}`, which {reason}", fix)
    return MachineCheck("spark", "worker python", Status.OK, f"{path} (PYSPARK_PYTHON)")


def check_kafka() -> MachineCheck:
    """Check where Spark would take its Kafka connector from: TIDINGS_JARS, its own jars, or the network."""
    folder = os.environ.get("TIDINGS_JARS")
    if folder:
        return _check_kafka_folder(folder)
    if (jars := _find_spark_jars()) and not _find_missing_jars(jars):
        return MachineCheck("spark", "kafka", Status.OK, f"the connector's jars are in {jars}")
    finding = "no connector's jars (optional); Spark tries to fetch them when a session asks for Kafka"
    return MachineCheck(
        "spark", "kafka", Status.MISSING, finding, f"{_suggest_jars()}, and export TIDINGS_JARS=that folder"
    )


def _check_kafka_folder(folder: str) -> MachineCheck:
    lacking = _find_missing_jars(Path(folder))
    if not lacking:
        return MachineCheck("spark", "kafka", Status.OK, f"the connector's jars are in {folder} (TIDINGS_JARS)")
    state = f"lacks {', '.join(lacking)}" if Path(folder).is_dir() else "is not there"
    return MachineCheck("spark", "kafka", Status.WRONG, f"TIDINGS_JARS is `{folder}`, which {state}", _suggest_jars())


def _suggest_jars() -> str:
    return f"put these jars into a folder, each without its own dependencies: {', '.join(CONNECTOR)}"


def _find_missing_jars(folder: Path) -> list[str]:
    names = [path.name for path in folder.glob("*.jar")]
    wanted = [coordinates.split(":")[1] for coordinates in CONNECTOR]
    return [jar for jar in wanted if not any(name.startswith(jar) for name in names)]


def _find_spark_jars() -> Path | None:
    """Return the folder of Spark's own jars; PySpark is looked up, not imported."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home, "jars")
    package = find_spec("pyspark")
    return Path(package.origin).with_name("jars") if package and package.origin else None


def _run_program(command: list[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java or Python
            command, capture_output=True, text=True, errors="replace", check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
