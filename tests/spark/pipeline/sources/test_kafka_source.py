"""Kafka as a source, against a real broker: values, keys, headers, and records that do not decode."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.spark.pipeline.config.settings import SourceSettings
from tidings.spark.pipeline.sources.sources import stream_events

AT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
EARLIEST = {"startingOffsets": "earliest"}


def rows_of(spark, source, derived=None):
    """Return every row of the topic, in order, and the sizes of the micro-batches."""
    rows, sizes = [], []

    def take(batch, _):
        came = [row.asDict(recursive=True) for row in batch.collect()]
        rows.extend(came)
        sizes.append(len(came))

    query = (
        stream_events(spark, source, derived or {}).writeStream.foreachBatch(take).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    return sorted(rows, key=lambda row: (row["kafka"]["partition"], row["kafka"]["offset"])), sizes


def test_records_come_with_their_columns_and_what_kafka_says_of_them(spark, kafka):
    topic = kafka.topic("ads")
    kafka.produce(
        topic,
        {
            "key": "k1",
            "value": '{"id": 1, "price": "8.5", "new": 3}',
            "timestamp": AT,
            "headers": [("site", "a"), ("site", "b"), ("empty", None)],
        },
        {"key": None, "value": '{"price": 2}', "timestamp": AT},
    )
    source = SourceSettings(
        "kafka", servers=kafka.servers, topic=topic, columns="id BIGINT, price DOUBLE", options=EARLIEST
    )
    (first, second), _ = rows_of(spark, source, {"name": "concat(kafka.key, '-', kafka.headers['site'])"})
    assert [*first] == ["id", "price", "kafka", "name", "_refused", "_raw"]
    assert (first["id"], first["price"], first["name"], first["_refused"]) == (1, 8.5, "k1-b", None)
    assert first["kafka"] == {
        "key": "k1",
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": AT.replace(tzinfo=None),
        "headers": {"site": "b", "empty": None},
    }
    assert (second["id"], second["price"], second["kafka"]["key"], second["kafka"]["offset"]) == (None, 2.0, None, 1)


def test_records_that_do_not_decode_are_refused_with_their_place(spark, kafka):
    topic = kafka.topic("ads")
    values = ['{"id": 1}', None, b"", "not JSON", '{"id": "x"}', b'{"id": 2, "m": "\xff"}', "[1]", '{"id": 3}']
    kafka.produce(topic, *[{"key": b"\xff", "value": value} for value in values])
    source = SourceSettings("kafka", servers=kafka.servers, topic=topic, columns="id BIGINT", options=EARLIEST)
    rows, _ = rows_of(spark, source)
    assert [row["id"] for row in rows if row["_refused"] is None] == [1, 3]
    assert [(row["kafka"]["offset"], row["_refused"]) for row in rows if row["_refused"] is not None] == [
        (1, "no value (null)"),
        (2, "an empty value"),
        (3, "not JSON: 'not JSON'"),
        (4, "`id`: 'x' does not fit BIGINT"),
        (5, 'not UTF-8: \'{"id": 2, "m": "\ufffd"}\''),
        (6, "not one JSON object: '[1]'"),
    ]
    assert rows[3]["_raw"] == "not JSON"
    assert {row["kafka"]["key"] for row in rows} == {"\ufffd"}


def test_values_may_be_text(spark, kafka):
    topic = kafka.topic("words")
    kafka.produce(topic, "hello", "", None, b"\xff")
    source = SourceSettings("kafka", servers=kafka.servers, topic=topic, value="text", options=EARLIEST)
    rows, _ = rows_of(spark, source)
    assert [row["value"] for row in rows] == ["hello", "", None, None]
    assert [row["_refused"] for row in rows] == [None, None, "no value (null)", "not UTF-8: '\ufffd'"]


def test_several_topics_and_the_readers_options_pass_through(spark, kafka):
    first, second = kafka.topic("one"), kafka.topic("two")
    kafka.produce(first, *['{"id": 1}'] * 4)
    kafka.produce(second, *['{"id": 2}'] * 4)
    options = {**EARLIEST, "maxOffsetsPerTrigger": "4", "failOnDataLoss": "false", "kafka.fetch.max.bytes": "1000000"}
    source = SourceSettings(
        "kafka", servers=kafka.servers, topic=f"{first},{second}", columns="id INT", options=options
    )
    rows, sizes = rows_of(spark, source)
    assert sorted((row["kafka"]["topic"], row["id"]) for row in rows) == [(first, 1)] * 4 + [(second, 2)] * 4
    assert max(sizes) <= 4


def test_a_listener_that_asks_for_a_password_is_read(spark, kafka):
    topic = kafka.topic("safe")
    kafka.produce(topic, '{"id": 5}')
    options = {**EARLIEST, **kafka.sasl_options()}
    options.pop("kafka.bootstrap.servers", None)
    source = SourceSettings("kafka", servers=kafka.sasl_servers, topic=topic, columns="id INT", options=options)
    rows, _ = rows_of(spark, source)
    assert [row["id"] for row in rows] == [5]
    assert kafka.password not in repr(source)
