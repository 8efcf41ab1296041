"""The fixture `kafka`: the one broker of the run, its topics, and records in and out of them.

Records go in through the producer of the Java client that Spark has loaded anyway, so that a test can say
everything about a record, its time too; they come out through Spark's own batch reader.
"""

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from tests.kafka import wire
from tests.kafka.broker import BROKER, CONNECTOR, Broker, wait_for

HINT = "the jars are not there; `make test` or `tools/kafka-jars` fetches them"

LEADERS_S = 30


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it lies in a topic; bytes are given as text."""

    key: str | None
    value: str | None
    partition: int
    offset: int
    timestamp: datetime
    headers: Mapping[str, str] = field(default_factory=dict)


class Kafka:
    """The running broker, seen from a test."""

    def __init__(self, broker, spark):
        self.broker, self._spark = broker, spark
        self.servers, self.sasl_servers, self.tls_servers = broker.servers, broker.sasl_servers, broker.tls_servers
        self.user, self.password, self.ca = broker.user, broker.password, broker.ca
        self._numbers = itertools.count(1)
        self._made = None

    def topic(self, name="topic", *, partitions=1, compacted=False, settings=None):
        """Make a topic of its own for a test, and return its name: the one given, and a number."""
        name = f"{name}-{next(self._numbers)}"
        settings = {**({"cleanup.policy": "compact"} if compacted else {}), **(settings or {})}
        wire.create_topic(self.broker.address, name, partitions=partitions, settings=settings)
        wait_for(lambda: self.count_led_partitions(name) == partitions, LEADERS_S)
        return name

    def delete(self, topic):
        """Take a topic away."""
        wire.delete_topic(self.broker.address, topic)

    def produce(self, topic, *records):
        """Write records, in order, and return when the broker has them.

        A record is a value, a pair of key and value, or a mapping with any of `key`, `value`, `partition`,
        `timestamp` (a datetime with a zone, or milliseconds) and `headers` (a mapping, or pairs where a name comes
        twice). Texts are written as UTF-8, bytes as they are; a value of None is Kafka's null.
        """
        sent = [self._open_producer().send(self._record(topic, record)) for record in records]
        self._open_producer().flush()
        for answer in sent[-1:]:
            answer.get()  # what could not be written is told here

    def records(self, topic):
        """Return all records of a topic, by partition and offset."""
        frame = self._open_reader().option("subscribe", topic).option("includeHeaders", "true").load()
        rows = frame.selectExpr(
            "CAST(key AS STRING)", "CAST(value AS STRING)", "partition", "offset", "timestamp", "headers"
        ).collect()
        records = [Record(*row[:5], {name: _to_text(value) for name, value in row.headers or ()}) for row in rows]
        return sorted(records, key=lambda record: (record.partition, record.offset))

    def write(self, topic, frame):
        """Write a DataFrame with Spark: columns `value` and, where wanted, `key`, `headers`, `partition`."""
        frame.write.format("kafka").options(**self.options).option("topic", topic).save()

    @property
    def options(self):
        """Return what Spark's reader and writer need to find the broker."""
        return {"kafka.bootstrap.servers": self.servers}

    def sasl_options(self, *, user=None, password=None):
        """Return what they need for the door with a lock; the right user and password unless others are given."""
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        who = f'username="{user or self.user}" password="{password or self.password}"'
        return {
            "kafka.bootstrap.servers": self.sasl_servers,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f"{module} required {who};",
        }

    def stop(self):
        """Close the producer and end the broker."""
        if self._made is not None:
            self._made.close()
        self.broker.stop()

    def count_led_partitions(self, topic):
        return sum(leader >= 0 for leader in wire.list_leaders(self.broker.address, topic).values())

    def _open_reader(self):
        return self._spark.read.format("kafka").options(**self.options)

    def _open_producer(self):
        if self._made is None:
            java = self._spark._jvm  # noqa: SLF001 - Kafka's own classes, in the session's Java
            settings = java.java.util.HashMap()
            settings["bootstrap.servers"] = self.servers
            as_they_are = java.org.apache.kafka.common.serialization.ByteArraySerializer
            self._made = java.org.apache.kafka.clients.producer.KafkaProducer(settings, as_they_are(), as_they_are())
        return self._made

    def _record(self, topic, record):
        match record:
            case Mapping():
                row = record
            case (key, value):
                row = {"key": key, "value": value}
            case _:
                row = {"value": record}
        if unknown := row.keys() - {"key", "value", "partition", "timestamp", "headers"}:
            msg = f"a record has no {sorted(unknown)}"
            raise ValueError(msg)
        make = self._spark._jvm.org.apache.kafka.clients.producer.ProducerRecord  # noqa: SLF001 - Kafka's own classes, in the session's Java
        time, headers = _to_millis(row.get("timestamp")), self._to_headers(row.get("headers"))
        return make(topic, row.get("partition"), time, _to_bytes(row.get("key")), _to_bytes(row.get("value")), headers)

    def _to_headers(self, headers):
        if headers is None:
            return None
        java = self._spark._jvm  # noqa: SLF001 - Kafka's own classes, in the session's Java
        headers_list = java.java.util.ArrayList()
        for name, value in headers.items() if isinstance(headers, Mapping) else headers:
            headers_list.append(java.org.apache.kafka.common.header.internals.RecordHeader(name, _to_bytes(value)))
        return headers_list


def _to_bytes(value):
    return value.encode() if isinstance(value, str) else value


def _to_text(value):
    return None if value is None else value.decode()


def _to_millis(time):
    return round(time.timestamp() * 1000) if isinstance(time, datetime) else time


# Jars or no jars -------------------------------------------------------------------------------------


def find_connector_jars(folder=CONNECTOR):
    """Return the folder of Spark's connector, for the tests' session; nothing when it was not fetched."""
    return str(folder) if any(folder.glob("*.jar")) else None


def skip_without_jars(broker=BROKER, connector=CONNECTOR, *, environ=os.environ):
    """Skip the test, and say so, where the jars were not fetched; fail it in the gate, which must have them."""
    if any(broker.glob("*.jar")) and find_connector_jars(connector):
        return
    if environ.get("CI") == "true":
        pytest.fail(f"no Kafka broker in the gate: {HINT}", pytrace=False)
    pytest.skip(f"no Kafka broker: {HINT}")


@pytest.fixture(scope="session")
def kafka(spark, tmp_path_factory):
    """The broker of this run, started when the first test asks for it; see `Kafka` for what it can do."""
    skip_without_jars()
    running = Kafka(Broker(tmp_path_factory.mktemp("kafka")), spark)
    yield running
    running.stop()
