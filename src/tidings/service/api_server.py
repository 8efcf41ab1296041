"""The API as a process: a socket, uvicorn, and a word when it answers.

One worker runs in this process; several are uvicorn's own children over one socket. SIGTERM and Ctrl-C stop it
accepting, let running requests finish, and end it with exit code 0.
"""

from __future__ import annotations

import errno
import logging
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from tidings.errors import CannotServe
from tidings.service.leash import announce_ready, follow_parent

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tidings.service.settings import ServiceSettings

FACTORY = "tidings.service.api_server:create_worker_app"
"""Makes the app in each of several workers."""

BACKLOG = 2048
"""Connections that wait while the API is busy or not yet up."""

GRACE_S = 10
"""How long running requests may take after a signal."""

ANY_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - asked for by name
"""Addresses that stand for all of a machine's, and how a process of the machine reaches them."""


def format_url(settings: ServiceSettings) -> str:
    """Return the URL at which a program of this machine reaches the API.

    >>> from tidings.service.settings import ServiceSettings
    >>> format_url(ServiceSettings(host="0.0.0.0", port=80))
    'http://127.0.0.1:80'
    """
    host = ANY_HOSTS.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def open_socket(settings: ServiceSettings) -> socket.socket:
    """Return a socket bound to the host and port; `CannotServe` if that is not possible."""
    where = f"{settings.host}:{settings.port}"
    try:
        family, *_, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as problem:
        is_of_port = problem.errno in (errno.EADDRINUSE, errno.EACCES)  # below 1024 is for root
        advice = "choose another port with --port" if is_of_port else "choose an address of this machine with --host"
        reason = (problem.strerror or str(problem)).partition(" (while ")[0]  # which names the address once more
        msg = f"cannot listen on {where}: {reason}; {advice}"
        raise CannotServe(msg) from None


def require_port(settings: ServiceSettings) -> None:
    """Raise `CannotServe` if the port is taken or the host is not this machine's."""
    open_socket(settings).close()


def serve_api(settings: ServiceSettings) -> None:
    """Answer requests until a signal comes."""
    import uvicorn

    from tidings.service.api.connections import PROTOCOL, raise_file_limit
    from tidings.service.store.opening import open_store

    raise_file_limit()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s: %(message)s")
    options: dict[str, Any] = {
        "http": PROTOCOL,
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "timeout_graceful_shutdown": GRACE_S,
        "server_header": False,
        "workers": settings.workers,
    }
    with open_socket(settings) as listener:
        _watch_start(settings)
        # uvicorn hands a signal on when it has stopped; to whoever listens, it is no more news.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        if settings.workers > 1:
            from uvicorn.supervisors.multiprocess import Multiprocess

            config = uvicorn.Config(FACTORY, factory=True, **options)
            Multiprocess(config, sockets=[listener]).run()
            return
        from tidings.service.api.app import build_app

        store = open_store(settings.store_url)
        try:
            uvicorn.Server(uvicorn.Config(build_app(settings, store), **options)).run(sockets=[listener])
        finally:
            store.close()


def create_worker_app() -> FastAPI:
    """Return the app of the settings in the environment, in a worker that ends with the process that started it."""
    from tidings.service.api.app import create_app

    follow_parent()
    return create_app()


def _watch_start(settings: ServiceSettings) -> None:
    """Say that the API answers, once it does."""
    threading.Thread(target=_announce_answer, args=(format_url(settings),), daemon=True).start()


def _announce_answer(url: str) -> None:
    # A proxy that the environment names is not for this machine's own address.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            with opener.open(f"{url}/readyz", timeout=10):
                announce_ready(f"the API answers at {url}")
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
