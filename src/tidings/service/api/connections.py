"""Connections of clients that take their time: bounded in number, in the size of their headers, and in patience.

uvicorn waits for the headers of a request for ever and keeps them whatever their size. This protocol closes a
connection whose headers are not there after `HEADER_SECONDS` or are larger than `HEADER_BYTES`, and takes no more
connections than the process has files for. What comes after the headers is bounded by `limits`. An answer of which
nothing is read for `SEND_SECONDS` is thrown away. What is no HTTP is refused with a problem, as all else is, and leaves
no line in the log: anybody may send it, as often as they like.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidings.service.api.problems import Problem, build_response

if TYPE_CHECKING:
    from starlette.types import Message, Send
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

PROTOCOL = "tidings.service.api.connections:PatientProtocol"
"""What uvicorn is given as `http`."""

HEADER_SECONDS = 10.0
"""How long the headers of a request may take, and a new connection that says nothing."""

HEADER_BYTES = 65_536
"""The largest headers of a request."""

SPARE_FILES = 200
"""Files that are left for the store, for events and for everything else."""

SEND_SECONDS = 60.0
"""How long a client may take to read the next piece of an answer that comes in pieces, or anything of any answer."""


UNREADABLE = (
    "this is no request of HTTP/1.1 that can be read; a path has ASCII characters, and others as `%C3%A9`, their UTF-8"
)
"""What is said to bytes that are no request."""

_LOGGER = logging.getLogger("uvicorn.error.connections")


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with an end to its patience."""

    _deadline: asyncio.TimerHandle | None = None
    _unread_check: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are too many."""
        if _LOGGER.level != logging.ERROR:  # again, since configuring uvicorn's logging resets loggers below its own
            _LOGGER.setLevel(logging.ERROR)  # clients' mistakes are warnings to uvicorn
        self.logger = _LOGGER
        super().connection_made(transport)
        if len(self.connections) > get_most_connections():
            transport.close()
            return
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        self._stop_checking()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the client to read what is written."""
        super().pause_writing()
        self._check_unread(None)

    def resume_writing(self) -> None:
        """Go on."""
        self._stop_checking()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Take bytes; while headers are awaited, count them."""
        if self._deadline is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._deadline is not None and self._header_bytes > HEADER_BYTES:
            self._give_up()

    def on_message_begin(self) -> None:
        """Wait for the headers of the next request."""
        super().on_message_begin()
        self._await_headers()

    def on_headers_complete(self) -> None:
        """Answer the request."""
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words
        """Refuse what is no request, unless an answer is under way, and end the connection."""
        if not self._is_answering():
            response = build_response(Problem(UNREADABLE, status=400, headers={"Connection": "close"}))
            lines = [b"HTTP/1.1 400 Bad Request"]
            lines += [b": ".join(header) for header in (*self.server_state.default_headers, *response.raw_headers)]
            self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))
        self.transport.close()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _await_headers(self) -> None:
        if self._deadline is None:
            self._header_bytes = 0
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _check_unread(self, before: int | None) -> None:
        """End the connection if nothing was read since the last look, when so many bytes were left; else look again."""
        self._stop_checking()
        size = self.transport.get_write_buffer_size()
        if before is not None and size >= before:
            self.transport.abort()
        else:
            self._unread_check = self.loop.call_later(SEND_SECONDS, self._check_unread, size)

    def _stop_checking(self) -> None:
        if self._unread_check is not None:
            self._unread_check.cancel()
            self._unread_check = None

    def _give_up(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing() and not self._is_answering():
            self.transport.close()


_most: list[int] = []  # at most one


def get_most_connections() -> int:
    """Return how many connections a process may have: as many as files, less some."""
    if not _most:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        _most.append(max(50, soft - SPARE_FILES) if soft > 0 else 100_000)
    return _most[0]


def raise_file_limit() -> None:
    """Let this process, and those it starts, open as many files as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # some systems allow less than they say
            return
    _most.clear()


def limit_sending(send: Send) -> Send:
    """Return a `send` that gives up a client which does not read."""

    async def send_limited(message: Message) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await send(message)
        except TimeoutError:
            msg = "the client does not read its answer"
            raise ConnectionAbortedError(msg) from None

    return send_limited
