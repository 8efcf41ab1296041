"""Lag and dropped duplicates, read from the progress of real streams."""

import json

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.spark.pipeline.monitor.batch_report import compute_lag, count_duplicates


def read(frame, _):
    """Spark counts what somebody reads."""
    frame.count()


def test_a_real_stream_from_kafka_tells_its_lag(spark, kafka, tmp_path):
    topic = kafka.topic("behind", partitions=2)
    kafka.produce(topic, *({"value": str(n), "partition": n % 2} for n in range(20)))
    events = spark.readStream.format("kafka").options(**kafka.options).option("subscribe", topic)
    events = events.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 12).load()
    query = events.writeStream.foreachBatch(read).option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()
        lags = [compute_lag(progress) for progress in query.recentProgress if progress["numInputRows"]]
    finally:
        query.stop()
    assert lags == [{f"{topic}-0": 4, f"{topic}-1": 4}, {f"{topic}-0": 0, f"{topic}-1": 0}]


def test_a_real_stream_tells_the_duplicates_it_dropped(spark, tmp_path):
    (tmp_path / "in").mkdir()
    rows = [{"id": n % 4, "at": "2026-03-01T12:00:00Z"} for n in range(10)]
    (tmp_path / "in" / "1.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    events = spark.readStream.schema("id INT, at TIMESTAMP").json(str(tmp_path / "in"))
    distinct = events.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])
    query = distinct.writeStream.foreachBatch(read)
    query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sum(count_duplicates(progress) for progress in query.recentProgress) == 6
