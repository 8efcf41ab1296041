"""Kafka, for real: a broker, Spark's connector, and what a session says about it."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.kafka.wire import Refused  # noqa: E402

from tidings import spark as ts  # noqa: E402
from tidings.spark.connector import JARS  # noqa: E402

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_what_is_produced_is_read_back_with_its_key_place_time_and_headers(kafka):
    topic = kafka.topic("all", partitions=2)
    kafka.produce(
        topic,
        {"key": "a", "value": "one", "partition": 1, "timestamp": NOON, "headers": {"kind": "ad"}},
        {"key": "a", "value": None, "partition": 1},
        {"value": b"two", "partition": 0},
        {"key": "ü", "value": "€", "partition": 1},
    )
    records = kafka.records(topic)
    assert [(r.partition, r.offset, r.key, r.value) for r in records] == [
        (0, 0, None, "two"),
        (1, 0, "a", "one"),
        (1, 1, "a", None),
        (1, 2, "ü", "€"),
    ]
    assert (records[1].timestamp.astimezone(UTC), records[1].headers) == (NOON, {"kind": "ad"})


def test_a_batch_goes_through_kafka_by_spark_alone(kafka, spark):
    topic = kafka.topic("batch", partitions=3)
    kafka.write(topic, spark.range(50).selectExpr("CAST(id AS STRING) AS key", "CAST(id * id AS STRING) AS value"))
    rows = spark.read.format("kafka").options(**kafka.options).option("subscribe", topic).load()
    pairs = rows.selectExpr("CAST(CAST(key AS STRING) AS INT)", "CAST(CAST(value AS STRING) AS INT)").collect()
    assert sorted(map(tuple, pairs)) == [(n, n * n) for n in range(50)]


def test_a_stream_follows_a_topic_from_where_it_stopped(kafka, spark, tmp_path):
    topic, copy = kafka.topic("stream", partitions=2), kafka.topic("copy")
    kafka.produce(topic, ("1", "a"), ("2", "b"))

    def run():
        events = spark.readStream.format("kafka").options(**kafka.options)
        events = events.option("subscribe", topic).option("startingOffsets", "earliest").load()
        query = events.select("key", "value").writeStream.format("kafka").options(**kafka.options)
        query = query.option("topic", copy).option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        assert query.start().awaitTermination(60)

    run()
    kafka.produce(topic, ("3", "c"))
    run()
    assert sorted((r.key, r.value) for r in kafka.records(copy)) == [("1", "a"), ("2", "b"), ("3", "c")]


def test_each_topic_is_a_new_one_and_its_settings_reach_the_broker(kafka):
    first, second = (kafka.topic("searches", compacted=True) for _ in range(2))
    assert first != second
    with pytest.raises(Refused, match="sometimes"):
        kafka.topic("searches", settings={"cleanup.policy": "sometimes"})


def test_the_door_with_a_lock_opens_to_the_password(kafka, spark):
    topic = kafka.topic("locked")
    kafka.produce(topic, "secret news")
    assert spark.read.format("kafka").options(**kafka.sasl_options()).option("subscribe", topic).load().count() == 1


def test_a_wrong_password_is_refused_soon_and_not_shown(kafka, spark):
    topic = kafka.topic("locked")
    began = time.monotonic()
    with pytest.raises(Exception, match="Authentication failed") as caught:
        spark.read.format("kafka").options(**kafka.sasl_options(password="guessed")).option(
            "subscribe", topic
        ).load().count()
    assert time.monotonic() - began < 60
    assert "guessed" not in str(caught.value)


# What a session says ---------------------------------------------------------------------------------


def test_a_running_session_that_has_the_connector_is_given_again(kafka, spark):
    assert ts.session(kafka=True).sparkContext is spark.sparkContext


def test_a_connector_that_cannot_be_fetched_is_told_with_the_jars_to_give(tmp_path):
    """Spark's own Ivy fails here, on a repository that is empty; no network is asked."""
    settings = tmp_path / "ivy.xml"
    settings.write_text(NOWHERE.format(folder=tmp_path))
    program = FETCHES.format(settings=settings, folder=tmp_path)
    env = {name: value for name, value in os.environ.items() if name != "TIDINGS_JARS"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=env)
    last_line = done.stdout.splitlines()[-1]
    assert last_line.startswith(
        "Spark could not fetch its Kafka connector `org.apache.spark:spark-sql-kafka-0-10_2.13:"
    )
    assert "name that with `jars` or TIDINGS_JARS" in last_line
    for jar in JARS:
        assert jar in last_line
    assert "UNRESOLVED DEPENDENCIES" in done.stdout + done.stderr  # it was Ivy that refused, not something before it


def test_under_spark_submit_the_connector_must_be_handed_over_there(tmp_path):
    """Jars are read when Java starts, and spark-submit starts it before Python."""
    script = tmp_path / "job.py"
    script.write_text(SUBMITTED)
    submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=env)
    refused = "this Spark has no Kafka connector, and jars are read at its start; "
    asked_at_start = f"{refused}hand it over there: `--jars` or `--packages` of spark-submit or of the Connect server"
    asked_again = f"{refused}stop() the running session first"
    assert done.stdout.splitlines()[-2:] == [asked_at_start, asked_again]


SUBMITTED = """
from tidings import spark as ts
from tidings.errors import SparkUnavailable
for _ in range(2):
    try:
        ts.session(kafka=True)
    except SparkUnavailable as problem:
        print(problem)
"""

NOWHERE = """<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers>
    <filesystem name="nowhere"><artifact pattern="{folder}/[artifact]-[revision].[ext]"/></filesystem>
  </resolvers>
</ivysettings>"""

FETCHES = """
from tidings import spark as ts
from tidings.errors import SparkUnavailable
where = {{"spark.jars.ivySettings": "{settings}", "spark.jars.ivy": "{folder}/ivy"}}
try:
    ts.session(master="local[1]", kafka=True, config=where)
except SparkUnavailable as problem:
    print(problem)
"""
