"""A Spark session that is ready for Tidings: the right worker Python, UTC, Arrow, and quiet.

Any SparkSession will do for `match`; this one has the settings that cost people an afternoon each. What can be
told before Spark starts (no Java, an old Java, no jars) is told in one line instead of a Java trace. Starting
takes about six seconds, once for each process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from tidings.errors import SparkUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

OLDEST_JAVA = 17
"""Spark 4 does not start on an older one."""

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""The coordinates of Spark's Kafka connector; its version is Spark's own."""

_JAVA_HINT = "install it (`sudo apt-get install openjdk-17-jre-headless`) or point JAVA_HOME at one"

_QUIET = Path(__file__).with_name("log4j2.properties").as_uri()

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",  # times without a zone are UTC, as in filters
    "spark.sql.execution.arrow.pyspark.enabled": "true",  # createDataFrame and toPandas go by columns
}
_LOCAL = {
    "spark.ui.enabled": "false",  # no port to clash with the next session's
    "spark.ui.showConsoleProgress": "false",  # Spark's own bar writes over ours
    "spark.driver.host": "localhost",  # a laptop's host name often does not resolve
    "spark.driver.bindAddress": "127.0.0.1",
    # Spark starts its log before it reads spark.log.level; this file keeps the start quiet too.
    "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_QUIET}",
}


def session(
    name: str = "tidings",
    *,
    master: str | None = None,
    kafka: bool = False,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a Spark session for this process: the running one, or a new one.

    The master is `local[*]`, or what `spark-submit` or SPARK_REMOTE say. `kafka=True` adds Spark's
    Kafka connector: from the folder of jars that TIDINGS_JARS names, else by its coordinates. `config` is
    added last and wins. A master that is not local keeps its own web page and logs.
    """
    # Spark would take the system's python3, which need not have our packages, or even our version.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = SparkSession.getActiveSession()
    if running is not None and kafka:
        _refuse_without_kafka(running)
    # Of a Spark that somebody else started, only the query's own settings are ours to say.
    started = running is not None or "SPARK_REMOTE" in os.environ
    settings = _ALWAYS if started else {**_ALWAYS, **_starting(master, kafka)}
    builder = SparkSession.builder.appName(name)
    for key, value in {**settings, **(config or {})}.items():
        builder = builder.config(key, value)
    return _started(builder, kafka)


def _starting(master: str | None, kafka: bool) -> dict[str, str]:
    """Return the settings of a new Spark; under spark-submit, which has found Java, its own word on the master."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        require_java()
        master = master or "local[*]"
    settings = {"spark.log.level": "ERROR", **(kafka_settings() if kafka else {})}
    if master is not None:
        settings["spark.master"] = master
    return {**settings, **_LOCAL} if master is not None and master.startswith("local") else settings


def _started(builder: SparkSession.Builder, kafka: bool) -> SparkSession:
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as problem:
        if "JAVA_GATEWAY_EXITED" not in str(problem):
            raise
        msg = "Spark's Java process ended before it was ready; its own words are above"
        if kafka:
            msg += (
                f"; if it could not fetch `{KAFKA}`, put the connector's jars into a folder and set TIDINGS_JARS to it"
            )
        raise SparkUnavailable(msg) from problem


def kafka_settings() -> dict[str, str]:
    """Return what brings the Kafka connector: a folder of jars where one is given, else coordinates."""
    folder = os.environ.get("TIDINGS_JARS")
    if not folder:
        return {"spark.jars.packages": f"{KAFKA}:{pyspark.__version__}"}
    jars = sorted(str(path.resolve()) for path in Path(folder).glob("*.jar"))
    if not jars:
        msg = f"TIDINGS_JARS names `{folder}`, which holds no jars; put the Kafka connector's jars there, or unset it"
        raise SparkUnavailable(msg)
    return {"spark.jars": ",".join(jars)}


def _refuse_without_kafka(running: SparkSession) -> None:
    given = running.conf.get("spark.jars.packages", "") or running.conf.get("spark.jars", "") or ""
    if "kafka" not in given:
        msg = "a session without the Kafka connector is running, and jars are read at the start; stop() it first"
        raise SparkUnavailable(msg)


def require_java() -> None:
    """Refuse, in one line, to start without a Java that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME is `{home}`, which has no bin/java" if home else "there is no `java` on the PATH"
        msg = f"Spark needs Java {OLDEST_JAVA} or later, and {where}: {_JAVA_HINT}"
        raise SparkUnavailable(msg)
    version = java_version(java)
    if version is not None and version < OLDEST_JAVA:
        msg = f"Spark needs Java {OLDEST_JAVA} or later, and `{java}` is Java {version}: {_JAVA_HINT}"
        raise SparkUnavailable(msg)


@lru_cache
def java_version(java: str) -> int | None:
    """Return the major version of a Java, or nothing when it does not say."""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - the user's own Java
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else None
