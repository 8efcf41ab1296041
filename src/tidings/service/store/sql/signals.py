"""Waking those who wait for changes, between processes on one machine: a socket file for each, beside the store.

Who waits binds a datagram socket in the folder `STORE.signals`; who has written sends a byte to each socket there. A
signal may be lost without harm, as those who wait look for themselves each second; so whatever goes wrong here (a file
system without sockets, a folder that cannot be written) is no error. A socket whose process is gone is removed by the
next one who writes.
"""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_ADDRESS = 100
"""Bytes in the address of a socket; Linux has 108, others less."""


class Waiter(Protocol):
    """Somebody who waits."""

    def wait(self, timeout: float) -> None:
        """Return when signalled, or after `timeout` seconds."""


class SocketSignals:
    """The folder of sockets of one store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: tuple[str, ...] = ()
        self._listed_at = -1

    def notify(self) -> None:
        """Wake all who wait, in whatever process."""
        try:
            changed_at = os.stat(self._folder).st_mtime_ns
            if changed_at != self._listed_at:
                self._names, self._listed_at = tuple(os.listdir(self._folder)), changed_at
        except OSError:  # nobody has waited yet
            return
        if self._names:
            self._send()

    @contextmanager
    def listen(self) -> Iterator[Waiter]:
        """Yield a waiter; signals count from now on."""
        path = self._folder / secrets.token_hex(6)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            with suppress(OSError):
                self._folder.mkdir(mode=0o700, exist_ok=True)
                with _shorten(path) as address:
                    receiver.bind(address)
            try:
                yield SocketWaiter(receiver)
            finally:
                with suppress(OSError):
                    path.unlink()

    def _send(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            for name in self._names:
                path = self._folder / name
                try:
                    with _shorten(path) as address:
                        sender.sendto(b"1", address)
                except BlockingIOError:  # it has signals enough
                    continue
                except ConnectionRefusedError:  # its process is gone, or never was one
                    _remove_socket(path)
                except OSError:
                    continue


class SocketWaiter:
    """Waits at a socket."""

    def __init__(self, receiver: socket.socket) -> None:
        self._receiver = receiver

    def wait(self, timeout: float) -> None:
        """Return when a byte comes."""
        self._receiver.settimeout(max(timeout, 0.001))
        try:
            self._receiver.recv(16)
        except OSError:
            return


def _remove_socket(path: Path) -> None:
    with suppress(OSError):
        if path.is_socket():
            path.unlink()


@contextmanager
def _shorten(path: Path) -> Iterator[str]:
    """Yield an address for a socket file, by way of an open folder where its path is too long for one."""
    if len(os.fsencode(path)) <= MAX_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
