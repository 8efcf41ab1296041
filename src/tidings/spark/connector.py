"""Spark's Kafka connector: where it comes from, whether a session has it, and what to report when it has not.

The connector is Java and not part of pip's PySpark. Spark loads it only at its start: from a folder of jars, or by
coordinates that it fetches itself. Fetching is Spark's own work (Ivy, before there is a session), and when it fails the
Java process is gone; so the reason is inferred from the files that Ivy left behind.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import PySparkException

from tidings.errors import SparkUnavailable
from tidings.installation import CONNECTOR, JARS, find_missing_jars, find_spark_jars

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""The coordinates of Spark's Kafka connector; its version is Spark's own."""

_IVY = Path(".ivy2.5.2")
"""The folder of fetched jars of Spark 4.3, under the user's home, unless `spark.jars.ivy` names another."""


def build_kafka_settings(jars: str | None = None, config: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings that bring the connector to a new Spark.

    It comes from the folder that `jars`, else TIDINGS_JARS, names; no setting is needed where Spark or `config` has it
    already; else it comes by its coordinates. Other jars in `config` are kept.
    """
    config = config or {}
    folder = jars or os.environ.get("TIDINGS_JARS")
    if folder:
        files = _list_jars(folder, "`jars`" if jars else "TIDINGS_JARS")
        return {"spark.jars": _join(config.get("spark.jars"), *files)}
    is_named = any(JARS[0] in config.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    if is_named or not find_missing_jars(find_spark_jars()):
        return {}
    coordinates = f"{KAFKA}:{pyspark.__version__}"
    return {"spark.jars.packages": _join(config.get("spark.jars.packages"), coordinates)}


def describe_jars() -> str:
    """Return advice for where Spark cannot fetch the connector: which jars to put where."""
    return (
        "put its four jars into a folder and name that with `jars` or TIDINGS_JARS; these are known to work with "
        f"Spark 4.3, each without its own dependencies: {', '.join(f'`{jar}`' for jar in CONNECTOR)}"
    )


def require_kafka(session: SparkSession, way_out: str) -> None:
    """Refuse a session that cannot read Kafka; `way_out` advises where the connector should come from."""
    try:
        # Nothing is read: with the connector, the error is about a missing topic; without it, about the connector.
        _ = session.read.format("kafka").load().schema
    except PySparkException as problem:
        if "KAFKA_DATA_SOURCE_NOT_ENABLED" in str(problem):
            msg = f"this Spark has no Kafka connector, and jars are read at its start; {way_out}"
            raise SparkUnavailable(msg) from problem


def explain_failed_start(settings: Mapping[str, str], log: str | Path | None = None) -> str:
    """Return why Spark's Java process ended, and where its own output is: in the log, or on the screen."""
    where = "above" if log is None else f"in `{log}`"
    wanted = [part for part in settings.get("spark.jars.packages", "").split(",") if part.startswith(f"{KAFKA}:")]
    # Ivy puts what it has fetched into the folder that Spark loads it from.
    folder = Path(settings.get("spark.jars.ivy") or Path.home() / _IVY) / "jars"
    if not wanted or (folder / "{}_{}-{}.jar".format(*wanted[0].split(":"))).exists():
        return f"Spark's Java process ended before it was ready; its own words are {where}"
    return f"Spark could not fetch its Kafka connector `{wanted[0]}`, what it tried is {where}; {describe_jars()}"


def _list_jars(folder: str, origin: str) -> list[str]:
    """Return the jars of a folder, or refuse one that lacks some; `origin` is what named the folder."""
    path = Path(folder)
    jars = sorted(str(jar.resolve()) for jar in path.glob("*.jar"))
    wanted = find_missing_jars(find_spark_jars())  # those that Spark itself has are not needed
    lacking = [jar for jar in find_missing_jars(path) if jar in wanted]
    if lacking:
        holds = f"lacks {', '.join(f'`{jar}`' for jar in lacking)}" if jars else "holds no jars"
        msg = f"{origin} names `{folder}`, which {holds}; {describe_jars()}"
        raise SparkUnavailable(msg)
    return jars


def _join(before: str | None, *more: str) -> str:
    return ",".join((*([before] if before else []), *more))
