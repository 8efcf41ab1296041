"""Events that are posted to a service may wait in a topic of Kafka, and are found there again."""

import asyncio
import json
import os
import signal
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("confluent_kafka", reason="needs tidings[kafka]")
pytest.importorskip("orjson", reason="needs tidings[service]")

from tests.kafka.broker import wait_for
from tests.unit.service.test_store_feed import put

from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.intake import ReadyEvents
from tidings.service.events.kafka_clients import build_spark_options
from tidings.service.events.kafka_tail import KafkaTail
from tidings.service.events.kafka_writer import KafkaWriter
from tidings.service.events.recent import RecentTuning
from tidings.service.settings import EventSettings, ServiceSettings
from tidings.service.store.opening import open_store
from tidings.spark.pipeline.run.runner import run
from tidings.spark.pipeline.service_pipeline import build_service_pipeline, build_source
from tidings.spark.pipeline.sources.sources import stream_events

pytestmark = pytest.mark.spark


def make_settings(kafka, topic, **keys):
    return EventSettings(**{"to": "kafka", "servers": kafka.servers, "topic": topic} | keys)


def list_doors(kafka):
    """Return what `[events]` says to come in by each door with a lock."""
    who = {"username": kafka.user, "password": kafka.password}
    over_tls = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "ca": str(kafka.ca)}
    return [
        {"servers": kafka.sasl_servers, "protocol": "SASL_PLAINTEXT", **who},
        {"servers": kafka.tls_servers, **over_tls, **who},
    ]


def write(settings, *batches, seconds=10.0):
    async def post():
        writer = KafkaWriter.open(settings, delivery_seconds=seconds)
        try:
            await asyncio.gather(*map(writer.write, batches))
        finally:
            await asyncio.to_thread(writer.close)

    asyncio.run(post())


def make_events(*ids):
    return ReadyEvents([json.dumps({"id": id, "n": n}).encode() for n, id in enumerate(ids)], list(ids))


def test_what_is_acknowledged_is_in_the_topic_by_its_ids_and_found_again(kafka):
    settings = make_settings(kafka, kafka.topic("events", partitions=2))
    batches = [make_events(*(f"e{batch}-{n}" for n in range(50))) for batch in range(4)]
    write(settings, *batches, ReadyEvents())
    records = kafka.records(settings.topic)
    assert sorted(record.key for record in records) == sorted(id for batch in batches for id in batch.ids)
    assert all(json.loads(record.value)["id"] == record.key for record in records)
    tail, now = KafkaTail(settings), datetime.now(UTC)
    sample = tail.sample(now)
    assert sorted(event["id"] for event in sample.events) == sorted(record.key for record in records)
    assert now - timedelta(minutes=10) < sample.begin < sample.end == now
    assert tail.find("e3-49", "id") == {"id": "e3-49", "n": 49}
    few = KafkaTail(settings, RecentTuning(events=20)).sample(now)
    assert 0 < len(few.events) <= 20


def test_a_topic_that_is_not_there_delays_the_publisher_and_names_no_secret(kafka):
    settings = make_settings(kafka, "no-such-topic")
    with pytest.raises(EventsDelayed, match="not delivered to Kafka"):
        write(settings, make_events("e1"), seconds=2.0)
    with pytest.raises(EventsDelayed, match="topic"):
        KafkaTail(settings).sample(datetime.now(UTC))


@pytest.mark.parametrize("door", [0, 1], ids=["PLAIN", "SCRAM over TLS"])
def test_one_login_serves_the_api_and_the_pipeline(kafka, spark, tmp_path, door):
    settings = make_settings(kafka, kafka.topic("locked"), **list_doors(kafka)[door])
    write(settings, make_events("e1", "e2"))
    assert KafkaTail(settings).find("e2", "id") == {"id": "e2", "n": 1}
    source = build_source(ServiceSettings(data=tmp_path, events=settings))
    ids = []
    query = (
        stream_events(spark, source, {})
        .writeStream.foreachBatch(lambda batch, _: ids.extend(row["id"] for row in batch.collect()))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert sorted(ids) == ["e1", "e2"]
    assert kafka.password not in f"{settings!r} {source!r} {query.lastProgress}"


def test_a_pipeline_over_a_topic_warms_its_workers_and_matches(kafka, spark, tmp_path):
    """Whose first column is never null in Spark's eyes, also in the frame that they are warmed with."""
    settings = ServiceSettings(data=tmp_path, events=make_settings(kafka, kafka.topic("events")))
    store = open_store(settings.store_url)
    put(store, "all", "n >= 0")
    write(settings.events, make_events("e1", "e2"))
    pipeline = replace(build_service_pipeline(settings), patterns=None, detections=(), spark={})

    def stop_when_matched():
        def wait():
            wait_for(lambda: len(store.matches.list_since(None, 0, limit=10)) == 2, 60)
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=wait).start()

    totals = run(pipeline, ready=stop_when_matched)
    assert (totals.matches, totals.stopped) == (2, True)
    store.close()


def test_a_wrong_password_delays_the_publisher_and_is_not_shown(kafka, capfd):
    door = list_doors(kafka)[1] | {"password": "guessed-4711"}
    settings = make_settings(kafka, kafka.topic("locked"), **door)
    with pytest.raises(EventsDelayed, match="not delivered to Kafka") as refusal:
        write(settings, make_events("e1"), seconds=2.0)
    words = capfd.readouterr().err
    assert "SASL authentication error" in words
    assert "guessed-4711" not in f"{words} {refusal.value}"


def test_java_reads_a_login_as_it_was_meant(kafka, spark):
    """What stands in quotes is read by Java's StreamTokenizer, whose escapes are not quite those of others."""
    password = 'a "b"; c\\d \\x41 \t\n# ü€'
    door = list_doors(kafka)[0] | {"username": "o'neil", "password": password}
    login = build_spark_options(make_settings(kafka, "ads", **door))["kafka.sasl.jaas.config"]
    java = spark._jvm  # noqa: SLF001 - Kafka's own classes, in the session's Java
    common, names = java.org.apache.kafka.common, java.java.util.HashMap()
    names["sasl.jaas.config"] = common.config.types.Password(login)
    (entry,) = common.security.JaasContext.loadClientContext(names).configurationEntries()
    assert dict(entry.getOptions()) == {"username": "o'neil", "password": password}
