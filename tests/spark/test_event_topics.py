"""Events that are posted to a service may wait in a topic of Kafka, and are found there again."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("confluent_kafka", reason="needs tidings[kafka]")
pytest.importorskip("orjson", reason="needs tidings[service]")

from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.intake import ReadyEvents
from tidings.service.events.kafka_tail import KafkaTail
from tidings.service.events.kafka_writer import KafkaWriter
from tidings.service.events.recent import RecentTuning
from tidings.service.settings import EventSettings

pytestmark = pytest.mark.spark


def make_settings(kafka, topic):
    return EventSettings(to="kafka", servers=kafka.servers, topic=topic)


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
