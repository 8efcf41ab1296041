"""A client of the API within this process: the app is asked directly, over one event loop."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx

from tidings.service.api.app import build_app
from tidings.service.api.state import Clocks
from tidings.service.keys import make_key
from tidings.service.settings import LimitSettings, ServiceSettings
from tidings.service.store.memory import MemoryStore

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
ENDLESS = LimitSettings(requests_per_second=1e9, events_per_second=1e9)
LINES = {"Content-Type": "application/x-ndjson"}


class SetTime:
    """A clock that only a test moves."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return BEGIN + timedelta(seconds=self.seconds)

    def clock(self):
        return self.seconds

    def pass_time(self, seconds):
        self.seconds += seconds


class Asker:
    """An app over a store, and requests to it, by default with an administrator's key."""

    def __init__(self, folder, *, settings=None, store=None, limits=ENDLESS, time=None):
        self.time = SetTime() if time is None else time
        settings = ServiceSettings() if settings is None else settings
        self.settings = replace(settings, data=folder, limits=limits)
        self.store = MemoryStore() if store is None else store
        self.app = build_app(self.settings, self.store, time=Clocks(self.time.now, self.time.clock))
        self.state = self.app.state.api
        self.runner = asyncio.Runner()
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://service")
        self.admin = self.make_key("admin", "admin")

    def make_key(self, owner, *scopes, expires_at=None):
        text, record = make_key(owner, scopes, at=self.time.now(), expires_at=expires_at)
        self.store.keys.add(record, actor="test")
        return text

    def ask(self, method, path, *, key=None, headers=None, **request):
        """Answer a request; `key=""` sends none."""
        key = self.admin if key is None else key
        own = {"Authorization": f"Bearer {key}"} if key else {}
        return self.runner.run(self.client.request(method, path, headers=own | (headers or {}), **request))

    def get(self, path, **request):
        return self.ask("GET", path, **request)

    def post(self, path, **request):
        return self.ask("POST", path, **request)

    def put(self, path, **request):
        return self.ask("PUT", path, **request)

    def patch(self, path, **request):
        return self.ask("PATCH", path, **request)

    def delete(self, path, **request):
        return self.ask("DELETE", path, **request)

    def create(self, id, filter="price < 9000", **members):
        """Create a subscription, and return what the API says of it."""
        request = {"key": members.pop("key", None), "params": members.pop("params", None)}
        answer = self.post("/v1/subscriptions", json={"id": id, "filter": filter, **members}, **request)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def ids(self, **params):
        return [row["id"] for row in self.get("/v1/subscriptions", params=params).json()["subscriptions"]]

    def close(self):
        self.runner.run(self.client.aclose())
        self.state.writer.close()
        self.runner.close()


def check_problem(answer, status, **members):
    """A refusal has its status, and the whole body that refusals have."""
    assert answer.status_code == status, f"{answer.status_code}: {answer.text}"
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert {"type", "title", "status", "detail", "errors"} <= body.keys()
    assert body["status"] == status
    assert body["errors"]
    for error in body["errors"]:
        assert {"message", "hint", "at", "length", "field"} <= error.keys()
    assert body | members == body
    return body


def to_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
