"""Waiting for `NOTIFY`: connections that listen, each lent to one who waits, and kept for the next.

What was notified while nobody waited is delivered at once to the next who does; they look, and wait on.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg

from tidings.service.store.sql.signals import Waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHANNEL = "tidings_changes"
"""The channel of NOTIFY."""


class NotificationListeners:
    """The connections of one process that listen."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        self._connect = connect
        self._is_closed = False
        self._idle: list[psycopg.Connection[Any]] = []
        self._at_work: list[psycopg.Connection[Any]] = []

    @contextmanager
    def listen(self) -> Iterator[Waiter]:
        """Yield what waits for a notification; signals count from now on."""
        connection = self._take()
        self._at_work.append(connection)
        try:
            yield NotificationWaiter(connection)
        finally:
            self._at_work.remove(connection)
            if connection.closed or connection.broken or self._is_closed:
                connection.close()
            else:
                self._idle.append(connection)

    def stop_waiting(self) -> None:
        """Notify, where somebody of this process waits, on a connection of its own."""
        if self._at_work:
            with suppress(psycopg.Error), self._connect() as connection:
                connection.execute(f"NOTIFY {CHANNEL}")

    def close(self) -> None:
        """Close the connections; those of who waits when they come back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def forget(self) -> list[psycopg.Connection[Any]]:
        """Return the connections, which are the parent's in a fork's child, and begin without any."""
        inherited = [*self._idle, *self._at_work]
        self._idle, self._at_work = [], []
        return inherited

    def _take(self) -> psycopg.Connection[Any]:
        with suppress(IndexError):
            return self._idle.pop()
        connection = self._connect()
        connection.execute(f"LISTEN {CHANNEL}")
        return connection


class NotificationWaiter(Waiter):
    """Waits on a connection that listens."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def wait(self, timeout: float) -> None:
        """Return when a notification comes."""
        for _ in self._connection.notifies(timeout=timeout, stop_after=1):
            return
