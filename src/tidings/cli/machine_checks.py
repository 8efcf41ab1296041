"""What lies outside Python's packages: the Java that Spark would find, the Python of its workers, Kafka's jars."""

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
"""Where Linux systems keep theirs."""

CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
"""Spark's Kafka connector as `tidings.spark.connector` knows it, which is not to be had without PySpark."""

PATIENCE_S = 30
"""A program that does not say its version in this time is broken."""


class Status(StrEnum):
    """How it stands with one thing."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: what was found, and how to mend it."""

    part: str
    name: str
    status: Status
    found: str
    fix: str | None = None


def java() -> Check:
    """Look for the Java that Spark would take: JAVA_HOME's, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if path is None or not Path(path).exists():
        where = f"JAVA_HOME is `{home}`, which has no bin/java" if home else "no `java` on the PATH"
        return Check("spark", "java", Status.MISSING, where, _java_fix())
    version, where = _described(path)
    if version is None:
        return Check("spark", "java", Status.WRONG, f"`{path}` does not say its version", _java_fix())
    if version < OLDEST_JAVA:
        found = f"{version} in {where}; Spark needs {OLDEST_JAVA} or later"
        return Check("spark", "java", Status.WRONG, found, _java_fix())
    return Check("spark", "java", Status.OK, f"{version} in {where}")


def _described(java: str) -> tuple[int | None, str]:
    # Java itself says where it lives, so links and version managers' shims do not matter.
    said = _output([java, "-XshowSettings:properties", "-version"])
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", said)
    home = re.search(r"java\.home = (.+)", said)
    return int(version[1]) if version else None, home[1].strip() if home else java


def _java_fix() -> str:
    for path in sorted(SYSTEM_JAVAS.glob("*/bin/java")):
        version, home = _described(str(path))
        if version is not None and version >= OLDEST_JAVA:
            return f"export JAVA_HOME={home}"
    return f"sudo apt-get install openjdk-{OLDEST_JAVA}-jre-headless, or set JAVA_HOME"


def worker_python() -> Check:
    """Tell which Python Spark's workers would run; it must be of our version."""
    named = os.environ.get("PYSPARK_PYTHON")
    if not named:
        return Check("spark", "worker python", Status.OK, f"{sys.executable} (tidings.spark.session sets it)")
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    path = shutil.which(named)
    if path is None:
        return Check("spark", "worker python", Status.WRONG, f"PYSPARK_PYTHON is `{named}`, which is not there", fix)
    said = _output([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2]); import tidings"]).strip()
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if said != ours:
        reason = f"is Python {said[:4]}, not {ours}" if not said.startswith(ours) else "cannot import tidings"
        return Check("spark", "worker python", Status.WRONG, f"PYSPARK_PYTHON is `{named}`, which {reason}", fix)
    return Check("spark", "worker python", Status.OK, f"{path} (PYSPARK_PYTHON)")


def kafka() -> Check:
    """Tell where Spark would take its Kafka connector from: TIDINGS_JARS, its own jars, or the network."""
    folder = os.environ.get("TIDINGS_JARS")
    if folder:
        return _kafka_in(folder)
    if (jars := _spark_jars()) and not _lacking(jars):
        return Check("spark", "kafka", Status.OK, f"the connector's jars are in {jars}")
    found = "no connector's jars (optional); Spark tries to fetch them when a session asks for Kafka"
    return Check("spark", "kafka", Status.MISSING, found, f"{_kafka_fix()}, and export TIDINGS_JARS=that folder")


def _kafka_in(folder: str) -> Check:
    lacking = _lacking(Path(folder))
    if not lacking:
        return Check("spark", "kafka", Status.OK, f"the connector's jars are in {folder} (TIDINGS_JARS)")
    there = f"lacks {', '.join(lacking)}" if Path(folder).is_dir() else "is not there"
    return Check("spark", "kafka", Status.WRONG, f"TIDINGS_JARS is `{folder}`, which {there}", _kafka_fix())


def _kafka_fix() -> str:
    return f"put these jars into a folder, each without its own dependencies: {', '.join(CONNECTOR)}"


def _lacking(folder: Path) -> list[str]:
    names = [path.name for path in folder.glob("*.jar")]
    wanted = [coordinates.split(":")[1] for coordinates in CONNECTOR]
    return [jar for jar in wanted if not any(name.startswith(jar) for name in names)]


def _spark_jars() -> Path | None:
    """Return where Spark keeps its own jars; PySpark is looked up, not imported."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home, "jars")
    package = find_spec("pyspark")
    return Path(package.origin).with_name("jars") if package and package.origin else None


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java or Python
            command, capture_output=True, text=True, errors="replace", check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
