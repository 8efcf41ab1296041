"""A look back at a topic ends, however slowly the brokers answer."""

from types import SimpleNamespace

import pytest

pytest.importorskip("orjson", reason="needs tidings[service]")

from tidings.service.events import kafka_tail
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.kafka_tail import LOOK_SECONDS, KafkaTail
from tidings.service.settings import EventSettings


class SlowConsumer:
    """Has a topic of a few records, and gives one of them in each so many seconds."""

    def __init__(self, seconds, count):
        self.seconds, self.count, self.now, self.offset, self.closed = seconds, count, 0.0, 0, False

    def list_topics(self, topic, *, timeout):
        assert timeout
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=[0])})

    def get_watermark_offsets(self, _place, *, timeout):
        assert timeout
        return 0, self.count

    def assign(self, places):
        self.offset = places[0].offset

    def consume(self, _count, _seconds):
        self.now += self.seconds
        offset, self.offset = self.offset, self.offset + 1
        value = b'{"id": %d}' % offset
        return [
            SimpleNamespace(
                error=lambda: None, value=lambda: value, timestamp=lambda: (1, offset), offset=lambda: offset
            )
        ]

    def close(self):
        self.closed = True


def find(monkeypatch, consumer, id):
    client = SimpleNamespace(
        Consumer=lambda _settings: consumer,
        TopicPartition=lambda topic, partition: SimpleNamespace(topic=topic, partition=partition, offset=0),
        KafkaException=BrokenPipeError,
    )
    monkeypatch.setattr(kafka_tail, "import_client", lambda: client)
    settings = EventSettings(to="kafka", servers="x:1", topic="t")
    return KafkaTail(settings, clock=lambda: consumer.now).find(id, "id")


def test_brokers_that_answer_in_time_are_read_to_the_end(monkeypatch):
    consumer = SlowConsumer(LOOK_SECONDS / 10, 5)
    assert find(monkeypatch, consumer, "3") == {"id": 3}
    assert consumer.closed


def test_brokers_that_take_too_long_are_not_waited_for(monkeypatch):
    consumer = SlowConsumer(LOOK_SECONDS / 10, 1_000)
    with pytest.raises(EventsDelayed, match="the topic could not be read within 20 s") as delay:
        find(monkeypatch, consumer, "3")
    assert delay.value.retry_after > 0
    assert consumer.now < 1.5 * LOOK_SECONDS
    assert consumer.closed
