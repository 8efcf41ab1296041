"""A real API over a store in memory, in a thread of this process, for commands to talk to."""

import socket
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs tidings[service]")

import uvicorn

from tidings.service.api.app import build_app
from tidings.service.keys import SCOPES, make_key
from tidings.service.settings import ServiceSettings
from tidings.service.store.memory import MemoryStore


@dataclass(frozen=True)
class RunningApi:
    """Where the API is, its store, and a key for everything."""

    url: str
    store: Any
    key: str
    settings: Any

    def make_key(self, owner, *scopes, **more):
        """Return a new key of an owner."""
        text, record = make_key(owner, scopes or ("read", "write", "publish"), at=datetime.now(UTC), **more)
        self.store.keys.add(record, actor="test")
        return text


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    store, settings = MemoryStore(), ServiceSettings(data=tmp_path_factory.mktemp("service"))
    settings.events_folder.mkdir()
    text, record = make_key("admin", SCOPES, at=datetime.now(UTC))
    store.keys.add(record, actor="test")
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build_app(settings, store), log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield RunningApi(f"http://127.0.0.1:{listener.getsockname()[1]}", store, text, settings)
    server.should_exit = True
    thread.join()
    listener.close()
    store.close()


@pytest.fixture
def sub(tidings, api, monkeypatch):
    """Run `tidings sub` with a key of an owner that is this test's own."""
    number = sum(1 for _ in api.store.keys.list())
    monkeypatch.setenv("TIDINGS_URL", api.url)
    monkeypatch.setenv("TIDINGS_KEY", api.make_key(f"owner-{number}"))
    return lambda *arguments, **more: tidings("sub", *arguments, **more)
