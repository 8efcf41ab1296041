"""What is installed on this machine: versions of packages, and Java, Spark's own jars and its Kafka connector.

PySpark is not imported for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

OLDEST_JAVA = 17
"""The oldest Java that Spark 4 starts on."""

CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
"""Spark's Kafka connector in four jars, each without its own dependencies, as our tests run it on PySpark 4.3."""

JARS = tuple(coordinates.split(":")[1] for coordinates in CONNECTOR)
"""The beginnings of the four file names."""

PATIENCE_S = 30
"""A program that does not print its version in this time is broken."""


def find_java() -> tuple[str | None, str]:
    """Return the Java that Spark would take, JAVA_HOME's or else the one on the PATH, and why there is none."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if path is not None and Path(path).exists():
        return path, ""
    return None, f"JAVA_HOME is `{home}`, which has no bin/java" if home else "there is no `java` on the PATH"


@lru_cache
def read_java_version(java: str) -> tuple[int | None, str]:
    """Return the major version of a Java, or None when it does not print one, and its home."""
    # Java prints its own home, so links and version managers' shims do not matter.
    output = run_program([java, "-XshowSettings:properties", "-version"])
    version = re.search(r'(?:java\.specification\.version = |version ")(?:1\.)?(\d+)', output)
    home = re.search(r"java\.home = (.+)", output)
    return int(version[1]) if version else None, home[1].strip() if home else java


def find_spark_jars() -> Path | None:
    """Return the folder of Spark's own jars; nothing without PySpark."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home, "jars")
    package = find_spec("pyspark")
    return Path(package.origin).with_name("jars") if package and package.origin else None


def find_missing_jars(folder: Path | None) -> list[str]:
    """Return which of the connector's jars a folder lacks; without a folder, all of them."""
    names = [] if folder is None else [path.name for path in folder.glob("*.jar")]
    return [jar for jar in JARS if not any(name.startswith(jar) for name in names)]


def find_version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def run_program(command: list[str]) -> str:
    """Return what a program prints, or None where it cannot be run or does not end."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java or Python
            command, capture_output=True, text=True, errors="replace", check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
