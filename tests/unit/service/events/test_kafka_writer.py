"""A request hears of the last of its records: all delivered, or the first reason why one was not."""

import asyncio
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("orjson", reason="needs tidings[service]")

from tidings.errors import MissingExtra
from tidings.service.events import kafka_writer
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.intake import ReadyEvents
from tidings.service.events.kafka_writer import KafkaWriter
from tidings.service.settings import EventSettings

EVENTS = ReadyEvents([b'{"id":"a"}', b'{"id":"b"}', b'{"id":"c"}'], ["a", "b", "c"])


class FakeProducer:
    """Delivers when it is polled, as that of librdkafka; `fails` has keys that are not delivered."""

    def __init__(self, *, room=100, fails=(), refuses=()):
        self.room, self.fails, self.refuses, self.waiting, self.delivered = room, fails, refuses, [], []

    def produce(self, topic, value, key, *, on_delivery):
        if len(self.waiting) >= self.room:
            raise BufferError
        if key in self.refuses:
            msg = "Message size too large"
            raise RuntimeError(msg)
        self.waiting.append((topic, key, value, on_delivery))

    def poll(self, _seconds):
        while self.waiting:
            topic, key, value, report = self.waiting.pop(0)
            self.delivered.append((topic, key, value))
            report("the broker is away" if key in self.fails else None, object())

    def flush(self, seconds):
        self.poll(seconds)


def write(producer, *batches):
    async def post():
        writer = KafkaWriter(producer, "events")
        try:
            await asyncio.gather(*map(writer.write, batches))
        finally:
            await asyncio.to_thread(writer.close)

    asyncio.run(post())


def test_records_have_the_ids_as_keys():
    producer = FakeProducer()
    write(producer, EVENTS, ReadyEvents())
    keys = [id.encode() for id in EVENTS.ids]
    assert producer.delivered == [("events", key, line) for key, line in zip(keys, EVENTS.lines, strict=True)]


@pytest.mark.parametrize(
    ("producer", "reason"),
    [
        (FakeProducer(fails=(b"b",)), "the broker is away"),
        (FakeProducer(room=1), "too many events wait for the brokers"),
        (FakeProducer(refuses=(b"b",)), "Message size too large"),
    ],
)
def test_a_record_that_is_not_delivered_delays_its_request(producer, reason):
    with pytest.raises(EventsDelayed, match=f"the events were not delivered to Kafka: {reason}") as refusal:
        write(producer, EVENTS)
    assert refusal.value.retry_after > 0


def test_a_producer_waits_for_all_replicas_and_repeats_nothing(monkeypatch):
    monkeypatch.setattr(kafka_writer, "import_client", lambda: SimpleNamespace(Producer=lambda settings: settings))
    writer = KafkaWriter.open(EventSettings(to="kafka", servers="x:1", topic="t"), delivery_seconds=7)
    asked = writer._producer  # noqa: SLF001 - what no call shows
    assert (asked["acks"], asked["enable.idempotence"]) == ("all", True)
    assert (asked["bootstrap.servers"], asked["delivery.timeout.ms"]) == ("x:1", 7_000)


def test_a_client_that_is_not_installed_is_asked_for_by_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtra, match=r"tidings\[service,kafka\]"):
        KafkaWriter.open(EventSettings(to="kafka", servers="x:1", topic="t"))
