"""A Spark session that is ready for Tidings: the right worker Python, UTC, Arrow, RocksDB for state, and quiet.

Any SparkSession will do for `match`; this one has the settings that are hard to find out. Mistakes that show before
Spark starts (no Java, an old Java, no jars) are reported in one line instead of a Java trace. Starting takes about six
seconds, once for each process.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tidings.errors import SparkUnavailable
from tidings.installation import OLDEST_JAVA, find_java, read_java_version
from tidings.spark.connector import build_kafka_settings, explain_failed_start, require_kafka
from tidings.spark.state_store import prefer_rocksdb

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    jars: str | None = None,
    config: Mapping[str, str] | None = None,
    log: str | Path | None = None,
) -> SparkSession:
    """Return a Spark session for this process: the running one, or a new one.

    The master is `local[*]`, or that of `spark-submit` or SPARK_REMOTE. `kafka=True` adds Spark's Kafka connector: from
    the folder that `jars`, else TIDINGS_JARS, names, else by its coordinates. `config` is added last and wins. A master
    that is not local keeps its own web page and logs. `log` is a file that the output of Spark's Java process is
    appended to, instead of standard output and standard error; a Java process that is already running keeps its own.
    """
    # Spark would take the system's python3, which need not have our packages, or even our version.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark writes each mistake in a query to standard error as one long line of JSON, beside raising it.
    get_query_logger().setLevel(logging.CRITICAL)
    running = SparkSession.getActiveSession()
    if running is not None and kafka:
        require_kafka(running, "stop() the running session first")
    # Of a Spark that is already running, only the settings of queries can be changed.
    is_running = running is not None or "SPARK_REMOTE" in os.environ
    settings = {**_ALWAYS, **(config or {})}
    if not is_running:
        settings = {**_build_start_settings(master), **settings}
    is_ours = not is_running and not is_submitted()
    if kafka and is_ours:
        settings |= build_kafka_settings(jars, config)
    spark = _start(name, settings, log if is_ours else None)
    prefer_rocksdb(spark)
    if kafka and not is_ours:
        require_kafka(spark, "hand it over there: `--jars` or `--packages` of spark-submit or of the Connect server")
    return spark


def get_query_logger() -> logging.Logger:
    """Return the logger to which PySpark writes mistakes in queries, made by PySpark's own logger class."""
    return PySparkLogger.getLogger("SQLQueryContextLogger")


def is_submitted() -> bool:
    """Tell whether spark-submit started this process, and with it Spark's Java."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _build_start_settings(master: str | None) -> dict[str, str]:
    """Return the settings of a new Spark; spark-submit has found Java and chosen the master itself."""
    if not is_submitted():
        require_java()
        master = master or "local[*]"
    settings = {"spark.log.level": "ERROR"}
    if master is not None:
        settings["spark.master"] = master
    if master is None or not master.startswith("local"):
        return settings
    # A shuffle gets as many partitions as there are cores; Spark's 200 suit a cluster.
    number = re.match(r"local\[(\d+)", master)
    cores = number[1] if number else "1" if master == "local" else str(os.cpu_count() or 1)
    return {**settings, **_LOCAL, "spark.sql.shuffle.partitions": cores}


def _start(name: str, settings: Mapping[str, str], log: str | Path | None) -> SparkSession:
    builder = SparkSession.builder.appName(name).config(map=dict(settings))
    try:
        if log is not None and not is_java_running():
            _launch_java(settings, log)
        return builder.getOrCreate()
    except PySparkRuntimeError as problem:
        if "JAVA_GATEWAY_EXITED" not in str(problem):
            raise
        raise SparkUnavailable(explain_failed_start(settings, log)) from problem


def is_java_running() -> bool:
    """Tell whether this process has already started Spark's Java, which outlives its sessions."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None  # noqa: SLF001 - PySpark has no public way to tell


def _launch_java(settings: Mapping[str, str], log: str | Path) -> None:
    """Start Spark's Java with the log as its standard output and error; Python workers inherit them from Java."""
    # Imported here: a PySpark that only has Spark Connect lacks these modules.
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with Path(log).open("ab") as output:
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001 - nor to hand a gateway over


def require_java() -> None:
    """Raise, with one line of advice, where there is no Java that Spark runs on."""
    java, problem = find_java()
    version = None if java is None else read_java_version(java)[0]
    if version is not None and version < OLDEST_JAVA:
        problem = f"`{java}` is Java {version}"
    if problem:
        msg = f"Spark needs Java {OLDEST_JAVA} or later, and {problem}: {_JAVA_HINT}"
        raise SparkUnavailable(msg)
