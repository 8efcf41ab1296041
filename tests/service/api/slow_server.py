"""The API as a process for the tests of slow clients: `python -m tests.service.api.slow_server FOLDER`.

It prints its port and a key when it listens. Patience is short, so that the tests see its end.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

import uvicorn

from tidings.service.api import connections, limits
from tidings.service.api.app import build_app
from tidings.service.api_server import open_socket
from tidings.service.keys import make_key
from tidings.service.settings import LimitSettings, ServiceSettings
from tidings.service.store.memory import MemoryStore

PATIENCE = 1.0


def serve(folder):
    """Serve until the process is ended."""
    connections.HEADER_SECONDS = connections.SEND_SECONDS = PATIENCE
    connections.raise_file_limit()
    settings = ServiceSettings(data=Path(folder), port=0, limits=LimitSettings(requests_per_second=1e9))
    store = MemoryStore()
    key, record = make_key("bob", ["read", "write"], at=datetime.now(UTC))
    store.keys.add(record, actor="test")
    app = build_app(settings, store)
    for route in app.routes:
        route.body_limits = limits.BodyLimits(route.body_limits.size, route.body_limits.seconds, PATIENCE)
    config = uvicorn.Config(app, http=connections.PROTOCOL, log_level="error", access_log=False, ws="none")
    with open_socket(settings) as listener:
        print(listener.getsockname()[1], key, flush=True)  # noqa: T201 - read by the test
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    serve(sys.argv[1])
