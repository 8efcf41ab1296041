"""A light load of HTTP requests: connections kept open, each sends its next request when the last is answered.

Client and server share two cores, so the client is plain sockets and a few lines: what it costs comes off both the
service and the bare route that it is compared with.
"""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

END = b"\r\n\r\n"


class Reply(NamedTuple):
    """An answer: its status, its headers in lower case as bytes, and its body."""

    status: int
    head: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Target:
    """A server's address and the key that requests bring."""

    port: int
    key: str = ""
    host: str = "127.0.0.1"

    def build(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
        """Return the bytes of a request."""
        head = f"{method} {path} HTTP/1.1\r\nhost: {self.host}\r\nauthorization: Bearer {self.key}\r\n"
        return f"{head}content-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """One connection, used for one request after the other."""

    def __init__(self, target: Target, timeout: float = 60.0) -> None:
        self._socket = socket.create_connection((target.host, target.port), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> Reply:
        """Send a request and read its answer, whose length the server says."""
        self._socket.sendall(request)
        data = b""
        while END not in data:
            data += self._receive()
        head, _, body = data.partition(END)
        lowered = head.lower()
        length = int(lowered.split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self._receive()
        return Reply(int(head[9:12]), lowered, body)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self) -> bytes:
        data = self._socket.recv(1 << 16)
        if not data:
            msg = "the server closed the connection"
            raise ConnectionError(msg)
        return data


def find_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def measure_rate(
    target: Target, requests: Callable[[int], Iterator[bytes]], *, status: int, seconds: float, connections: int
) -> float:
    """Return answers a second; `requests(n)` are those of connection `n`. Any other status stops the measurement."""
    end, counts, problems = time.perf_counter() + seconds, [0] * connections, []

    def work(number: int) -> None:
        connection = Connection(target)
        for request in requests(number):
            reply = connection.send(request)
            if reply.status != status:
                problems.append(reply)
                return
            counts[number] += 1
            if time.perf_counter() > end:
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        msg = f"status {problems[0].status}, not {status}: {problems[0].body[:500]!r}"
        raise RuntimeError(msg)
    return sum(counts) / (time.perf_counter() - begin)
