"""The newest events of a Kafka topic: the tail of each of its partitions, read without joining any group."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

from tidings.matcher.loading.documents import find_value, to_id
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.kafka_clients import build_client_settings
from tidings.service.events.kafka_writer import import_client
from tidings.service.events.recent import RecentSample, RecentTuning, decode_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidings.service.settings import EventSettings

PATIENCE_SECONDS = 10.0
"""How long the brokers may take to answer."""

FETCH_SECONDS = 3.0
"""How long they may take for the next records."""

LOOK_SECONDS = 20.0
"""How long a look back may take altogether."""


class KafkaTail:
    """Looks back at the events of a topic."""

    def __init__(
        self, settings: EventSettings, tuning: RecentTuning | None = None, *, clock: Callable[[], float] = monotonic
    ) -> None:
        """`clock` tells seconds."""
        self._clock = clock
        self._topic, self._brokers = settings.topic or "", build_client_settings(settings)
        self._kept, self._tuning = settings.kept, tuning or RecentTuning()

    def sample(self, now: datetime) -> RecentSample:
        """Return the newest events; the span begins where the tail of every partition has begun."""
        oldest = int((now - self._kept).timestamp() * 1000)
        tails = [[record for record in tail if record[0] >= oldest] for tail in self._read_tails()]
        # A tail that was cut begins later than the others: only what came since is complete.
        begin = max((tail[0][0] for tail in tails if len(tail) >= self._share), default=0)
        if not begin:
            begin = min((tail[0][0] for tail in tails if tail), default=0)
        records = sorted((record for tail in tails for record in tail if record[0] >= begin), reverse=True)
        events = list(decode_lines(line for _, line in records))
        return RecentSample(events, datetime.fromtimestamp(begin / 1000, UTC) if begin else None, now)

    def find(self, id: str, name: str) -> dict[str, Any] | None:
        """Return the newest event of an id in the tails."""
        records = sorted((record for tail in self._read_tails() for record in tail), reverse=True)
        needle = id.encode(errors="replace")
        for event in decode_lines(line for _, line in records if needle in line or b"\\" in line):
            with suppress(ValueError):
                if to_id(find_value(event, name)) == id:
                    return event
        return None

    @property
    def _share(self) -> int:
        return self._tuning.events // 2

    def _read_tails(self) -> list[list[tuple[int, bytes]]]:
        """Return the last records of each partition, oldest first: milliseconds since 1970, and the line."""
        with self._open_consumer() as consumer:
            client = import_client()
            topic = consumer.list_topics(self._topic, timeout=PATIENCE_SECONDS).topics[self._topic]
            if topic.error is not None:
                msg = f"the topic cannot be read: {topic.error.str()}"
                raise EventsDelayed(msg, retry_after=5)
            tails, until = [], self._clock() + LOOK_SECONDS
            for partition in topic.partitions:
                place = client.TopicPartition(self._topic, partition)
                low, high = consumer.get_watermark_offsets(place, timeout=PATIENCE_SECONDS)
                place.offset = max(low, high - self._share)
                consumer.assign([place])
                tails.append(self._read_until(consumer, place.offset, high, until=until))
            return tails

    def _read_until(self, consumer: Any, begin: int, end: int, *, until: float) -> list[tuple[int, bytes]]:
        records: list[tuple[int, bytes]] = []
        while begin < end:
            if self._clock() > until:
                msg = f"the topic could not be read within {LOOK_SECONDS:g} s"
                raise EventsDelayed(msg, retry_after=10)
            # The client waits until it has as many as it is asked for, or the time is up.
            batch = consumer.consume(min(1_000, end - begin), FETCH_SECONDS)
            if not batch:
                break
            good = (message for message in batch if message.error() is None and message.value() is not None)
            records += [(message.timestamp()[1], message.value()) for message in good]
            begin = batch[-1].offset() + 1
        return records

    @contextmanager
    def _open_consumer(self) -> Iterator[Any]:
        client = import_client()
        consumer = client.Consumer({**self._brokers, "group.id": "tidings-tail", "enable.auto.commit": False})
        try:
            yield consumer
        except client.KafkaException as problem:
            msg = f"the topic cannot be read: {problem.args[0].str()}"
            raise EventsDelayed(msg, retry_after=5) from None
        finally:
            consumer.close()
