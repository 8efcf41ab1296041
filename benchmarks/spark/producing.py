"""Records into a Kafka topic at a steady rate, over one connection and a few lines of the protocol.

No Kafka client for Python is among our packages, and a second JVM would take the processor that is being measured. A
batch of records is one request (Produce, version 3, the oldest that a broker of version 4 takes) with one record batch.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Self

import numba
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

PRODUCE, VERSION = 0, 3
"""The request."""

PATIENCE_S = 30
"""So long may the broker take."""


class Producer:
    """An open connection to the leader of partition 0 of a topic."""

    def __init__(self, servers: str, topic: str) -> None:
        """Connect."""
        host, _, port = servers.partition(":")
        self._line, self._topic, self._number = socket.create_connection((host, int(port)), PATIENCE_S), topic, 0

    def send(self, records: Sequence[tuple[bytes, bytes]], *, at_ms: int) -> None:
        """Write keys and values; return when the broker has them."""
        self._number += 1
        batch = record_batch(records, at_ms=at_ms)
        head = struct.pack(">hhi", PRODUCE, VERSION, self._number) + _encode_text("tidings benchmark")
        whole = struct.pack(">hhi", -1, 1, PATIENCE_S * 1000) + struct.pack(">i", 1) + _encode_text(self._topic)
        body = head + whole + struct.pack(">iii", 1, 0, len(batch)) + batch
        self._line.sendall(struct.pack(">i", len(body)) + body)
        self._check(self._read_exactly(struct.unpack(">i", self._read_exactly(4))[0]))

    def _check(self, answer: bytes) -> None:
        # Its number, one topic by name, one partition, then how it went.
        (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(self._topic.encode()) + 4 + 4)
        if error:
            msg = f"the broker refused records for `{self._topic}`: error {error}"
            raise ConnectionError(msg)

    def _read_exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            part = self._line.recv(length - len(data))
            if not part:
                msg = "the broker hung up"
                raise ConnectionError(msg)
            data += part
        return data

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        """Hang up."""
        self._line.close()


def record_batch(records: Sequence[tuple[bytes, bytes]], *, at_ms: int) -> bytes:
    """Return records as a batch of format 2, all of one time."""
    body = b"".join(_record(number, key, value) for number, (key, value) in enumerate(records))
    last = len(records) - 1
    covered = struct.pack(">hiqqqhii", 0, last, at_ms, at_ms, -1, -1, -1, len(records)) + body
    rest = struct.pack(">ibI", -1, 2, compute_crc32c(covered)) + covered
    return struct.pack(">qi", 0, len(rest)) + rest


def _record(number: int, key: bytes, value: bytes) -> bytes:
    body = (
        b"\0"
        + _encode_varint(0)
        + _encode_varint(number)
        + _encode_varint(len(key))
        + key
        + _encode_varint(len(value))
        + value
        + _encode_varint(0)
    )
    return _encode_varint(len(body)) + body


def _encode_varint(value: int) -> bytes:
    """Return a signed number in as few groups of seven bits as it takes."""
    value = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _encode_text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def compute_crc32c(data: bytes) -> int:
    """Return the checksum that Kafka wants, of Castagnoli's polynomial.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    return int(_compute_crc(np.frombuffer(data, np.uint8), _TABLE))


def _build_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


_TABLE = _build_table()


@numba.njit(cache=True)
def _compute_crc(data, table):  # type: ignore[no-untyped-def]
    value = np.uint32(0xFFFFFFFF)
    for byte in data:
        value = table[(value ^ byte) & np.uint32(0xFF)] ^ (value >> np.uint32(8))
    return value ^ np.uint32(0xFFFFFFFF)
