"""Events as records of a Kafka topic, with their ids as keys; needs the extra `[kafka]`.

The producer is idempotent and waits for all replicas (`acks=all`), so a record that is acknowledged is there once. One
thread asks the producer for its delivery reports and lets each request know when the last of its records has one.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidings.errors import MissingExtra
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.kafka_clients import build_client_settings
from tidings.service.group_commit import settle_in

if TYPE_CHECKING:
    from tidings.service.events.intake import ReadyEvents
    from tidings.service.settings import EventSettings

DELIVERY_SECONDS = 10
"""How long a record may take before the request is told that it was not delivered."""

_PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 2,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 131_072,
    "message.max.bytes": 2_000_000,
}
"""What the producer is asked for: nothing lost, nothing twice, memory bounded."""


@dataclass(slots=True)
class _Delivery:
    """The records of one request: how many are under way, and the first thing that went wrong."""

    future: asyncio.Future[None]
    loop: asyncio.AbstractEventLoop
    left: int
    reason: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def report(self, error: Any, _record: object = None) -> None:
        """Note the delivery report of one record; the last one lets the request know."""
        with self.lock:
            self.left -= 1
            if error is not None and self.reason is None:
                self.reason = str(error.str() if hasattr(error, "str") else error)
            if self.left:
                return
        problem = None if self.reason is None else EventsDelayed(_describe(self.reason), retry_after=2)
        settle_in(self.loop, [(self.future, problem)])


class KafkaWriter:
    """Writes events to a topic."""

    def __init__(self, producer: Any, topic: str) -> None:
        """`producer` is one of `confluent_kafka`."""
        self._producer, self._topic = producer, topic
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @classmethod
    def open(cls, settings: EventSettings, *, delivery_seconds: float = DELIVERY_SECONDS) -> KafkaWriter:
        """Return a writer to the brokers and the topic of the settings; it connects by itself."""
        patience = {"delivery.timeout.ms": int(1000 * delivery_seconds)}
        producer = import_client().Producer(_PRODUCER | patience | build_client_settings(settings))
        return cls(producer, settings.topic or "")

    async def write(self, events: ReadyEvents) -> None:
        """Return when the brokers have all the events."""
        if not events.lines:
            return
        self._start()
        loop = asyncio.get_running_loop()
        delivery = _Delivery(loop.create_future(), loop, len(events.lines))
        for number, (id, line) in enumerate(zip(events.ids, events.lines, strict=True)):
            try:
                self._producer.produce(self._topic, line, id.encode(), on_delivery=delivery.report)
            except Exception as problem:  # noqa: BLE001 - records before are delivered all the same, and report to it
                is_full = isinstance(problem, BufferError)
                for _ in range(len(events.lines) - number):
                    delivery.report("too many events wait for the brokers" if is_full else problem)
                break
        await delivery.future

    def close(self) -> None:
        """Wait until what was handed over is delivered or given up, and stop."""
        self._ending.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self._producer.flush(DELIVERY_SECONDS)

    def _start(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="tidings-kafka", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._producer.poll(0.1)


def import_client() -> Any:
    """Return the module of the Kafka client; `MissingExtra` where it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        msg = "events in Kafka need the extra `kafka`: pip install 'tidings[service,kafka]'"
        raise MissingExtra(msg) from None
    return confluent_kafka


def _describe(reason: str) -> str:
    return f"the events were not delivered to Kafka: {reason}"
