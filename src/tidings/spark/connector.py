"""Spark's Kafka connector: where it comes from, whether a session has it, and what to say when it has not.

The connector is Java and no part of pip's PySpark. Spark takes it at its start only: as a folder of jars, or by
coordinates that it fetches itself. Fetching is Spark's own work (Ivy, before there is a session), and when it fails
the Java process is gone; so the reason is read off what it left behind.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import PySparkException

from tidings.errors import SparkUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""The coordinates of Spark's Kafka connector; its version is Spark's own."""

WORKING = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
"""The connector in four jars, each without its own dependencies, as our tests run it on PySpark 4.3."""

JARS = tuple(coordinates.split(":")[1] for coordinates in WORKING)
"""What the names of the four begin with."""

_IVY = Path(".ivy2.5.2")
"""Where Spark 4.3 puts what it fetched, under the user's home, unless `spark.jars.ivy` says otherwise."""


def build_kafka_settings(jars: str | None = None, config: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings that bring the connector to a new Spark.

    It comes from the folder that `jars`, else TIDINGS_JARS, names; from nowhere when Spark or `config` has it
    already; else by its coordinates. What `config` says of other jars is kept.
    """
    config = config or {}
    folder = jars or os.environ.get("TIDINGS_JARS")
    if folder:
        found = _jars_of(folder, "`jars`" if jars else "TIDINGS_JARS")
        return {"spark.jars": _joined(config.get("spark.jars"), *found)}
    if not find_missing_jars(_spark_jars()) or _named_in(config):
        return {}
    wanted = f"{KAFKA}:{pyspark.__version__}"
    return {"spark.jars.packages": _joined(config.get("spark.jars.packages"), wanted)}


def find_missing_jars(folder: Path) -> list[str]:
    """Return which of the connector's jars a folder lacks."""
    names = [path.name for path in folder.glob("*.jar")]
    return [jar for jar in JARS if not any(name.startswith(jar) for name in names)]


def describe_jars() -> str:
    """Return the way out where Spark cannot fetch the connector."""
    return (
        "put its four jars into a folder and name that with `jars` or TIDINGS_JARS; these are known to work with "
        f"Spark 4.3, each without its own dependencies: {', '.join(f'`{jar}`' for jar in WORKING)}"
    )


def require_kafka(session: SparkSession, way_out: str) -> None:
    """Refuse a session that cannot read Kafka, wherever it would have the connector from."""
    try:
        # Nothing is read: with the connector, Spark misses the name of a topic; without it, the connector.
        _ = session.read.format("kafka").load().schema
    except PySparkException as problem:
        if "KAFKA_DATA_SOURCE_NOT_ENABLED" in str(problem):
            msg = f"this Spark has no Kafka connector, and jars are read at its start; {way_out}"
            raise SparkUnavailable(msg) from problem


def explain_failed_start(settings: Mapping[str, str], log: str | Path | None = None) -> str:
    """Return why Spark's Java process ended, as far as it shows: its own words are in the log, or on the screen."""
    where = "above" if log is None else f"in `{log}`"
    wanted = [part for part in settings.get("spark.jars.packages", "").split(",") if part.startswith(f"{KAFKA}:")]
    if not wanted or _fetched(wanted[0], settings):
        return f"Spark's Java process ended before it was ready; its own words are {where}"
    return f"Spark could not fetch its Kafka connector `{wanted[0]}`, what it tried is {where}; {describe_jars()}"


def _fetched(coordinates: str, settings: Mapping[str, str]) -> bool:
    """Tell whether Ivy got as far as to put the connector where Spark takes it from."""
    folder = Path(settings.get("spark.jars.ivy") or Path.home() / _IVY)
    group, name, version = coordinates.split(":")
    return (folder / "jars" / f"{group}_{name}-{version}.jar").exists()


def _jars_of(folder: str, said_by: str) -> list[str]:
    path = Path(folder)
    jars = sorted(str(jar.resolve()) for jar in path.glob("*.jar"))
    # What Spark has itself need not be given again.
    lacking = [jar for jar in find_missing_jars(path) if jar in find_missing_jars(_spark_jars())]
    if lacking:
        holds = f"lacks {', '.join(f'`{jar}`' for jar in lacking)}" if jars else "holds no jars"
        msg = f"{said_by} names `{folder}`, which {holds}; {describe_jars()}"
        raise SparkUnavailable(msg)
    return jars


def _spark_jars() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"


def _named_in(config: Mapping[str, str]) -> bool:
    return any(JARS[0] in config.get(key, "") for key in ("spark.jars", "spark.jars.packages"))


def _joined(given: str | None, *more: str) -> str:
    return ",".join((*([given] if given else []), *more))
