"""Three requests of Kafka's protocol, spoken to the real broker: enough to know it is up and to make topics.

No Kafka client for Python is among our packages, and each of the Java tools costs a second to start; these cost a
millisecond. The forms are the oldest a broker of version 4 answers, before the compact encoding.
"""

import socket
import struct

CREATE_TOPICS, DELETE_TOPICS, METADATA = (19, 4), (20, 3), (3, 4)
"""Each request's number and the version of it that is spoken here."""

PATIENCE_S = 10


class Refused(Exception):
    """The broker answered with an error."""


class _Answer:
    """Bytes read from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        (value,) = struct.unpack_from(f">{form}", self.data, self.at)
        self.at += struct.calcsize(f">{form}")
        return value

    def text(self):
        length = self.number("h")
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def array(self, read):
        return [read() for _ in range(self.number("i"))]


def create_topic(address, name, *, partitions=1, settings=None):
    """Make a topic with one copy of each partition."""
    pairs = b"".join(_encode_text(key) + _encode_text(value) for key, value in (settings or {}).items())
    topic = _encode_text(name) + struct.pack(">ihi", partitions, 1, 0) + struct.pack(">i", len(settings or {})) + pairs
    answer = _ask(address, CREATE_TOPICS, struct.pack(">i", 1) + topic + struct.pack(">ib", PATIENCE_S * 1000, 0))
    answer.number("i")  # how long we were held back
    _, error, message = answer.array(lambda: (answer.text(), answer.number("h"), answer.text()))[0]
    if error:
        msg = f"no topic `{name}`: {message or error}"
        raise Refused(msg)


def delete_topic(address, name):
    """Take a topic away, with all its records."""
    answer = _ask(
        address, DELETE_TOPICS, struct.pack(">i", 1) + _encode_text(name) + struct.pack(">i", PATIENCE_S * 1000)
    )
    answer.number("i")
    _, error = answer.array(lambda: (answer.text(), answer.number("h")))[0]
    if error:
        msg = f"topic `{name}` stays: error {error}"
        raise Refused(msg)


def list_brokers(address):
    """Return the numbers of the brokers that this one knows: none until it has joined its cluster."""
    answer = _read_metadata(address, ())
    return answer[0]


def list_leaders(address, topic):
    """Return each partition's leader: -1, or no partitions at all, until the broker serves the topic."""
    ((_, _, partitions),) = _read_metadata(address, (topic,))[1]
    return {partition: leader for _, partition, leader in partitions}


def _read_metadata(address, topics):
    names = b"".join(_encode_text(topic) for topic in topics)
    answer = _ask(address, METADATA, struct.pack(">i", len(topics)) + names + struct.pack(">b", 0))
    answer.number("i")

    def broker():
        number, _, _, _ = answer.number("i"), answer.text(), answer.number("i"), answer.text()
        return number

    def partition():
        error, number, leader = answer.number("h"), answer.number("i"), answer.number("i")
        for _ in ("replicas", "those in step"):
            answer.array(lambda: answer.number("i"))
        return error, number, leader

    def topic():
        error, name, _ = answer.number("h"), answer.text(), answer.number("b")
        return error, name, answer.array(partition)

    brokers = answer.array(broker)
    answer.text(), answer.number("i")  # the cluster's id and its controller
    return brokers, answer.array(topic)


def _ask(address, request, body):
    key, version = request
    head = struct.pack(">hhi", key, version, 1) + _encode_text("tidings tests")
    with socket.create_connection(address, timeout=PATIENCE_S) as line:
        line.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        (length,) = struct.unpack(">i", _read_exactly(line, 4))
        answer = _Answer(_read_exactly(line, length))
    answer.number("i")  # our own number of the request
    return answer


def _read_exactly(line, length):
    data = b""
    while len(data) < length:
        part = line.recv(length - len(data))
        if not part:
            msg = "the broker hung up"
            raise ConnectionError(msg)
        data += part
    return data


def _encode_text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data
