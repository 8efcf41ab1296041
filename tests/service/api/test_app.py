"""The app as a process has it: made from the environment, told by a signal to stop, closed with its store."""

import asyncio
import os
import signal

import httpx
from tests.service.api.asking import BEGIN

from tidings.service.api.app import build_app, create_app
from tidings.service.keys import make_key
from tidings.service.settings import ServiceSettings
from tidings.service.store.base import OwnerRules
from tidings.service.store.memory import MemoryStore


def test_a_worker_makes_its_app_from_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "service.toml"
    file.write_text("[owners.bob]\nonly = \"make = 'ford'\"\n")
    monkeypatch.setenv("TIDINGS_SERVICE", str(file))
    monkeypatch.setenv("TIDINGS_SERVICE_DATA", str(tmp_path))
    app = create_app()
    store = app.state.api.store
    assert store.owners.get("bob").only == "make = 'ford'"
    key, record = make_key("bob", ["read", "write"], at=BEGIN)
    store.keys.add(record, actor="test")

    async def run():
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
                headers = {"Authorization": f"Bearer {key}"}
                body = {"id": "s1", "filter": "a = 1"}
                created = await client.post("/v1/subscriptions", json=body, headers=headers)
                return created.status_code, (await client.get("/readyz")).status_code

    assert asyncio.run(run()) == (201, 200)
    assert (tmp_path / "store.db").exists()


def test_a_process_with_an_older_file_takes_no_bound_away_and_says_so(tmp_path, caplog):
    store = MemoryStore()
    bound = {name: OwnerRules(owner=name, only=f"a = '{name}'") for name in ("ann", "bob")}
    build_app(ServiceSettings(data=tmp_path, owners=bound), store)
    build_app(ServiceSettings(data=tmp_path, owners=bound), store)
    assert not caplog.messages
    build_app(ServiceSettings(data=tmp_path, owners={"ann": bound["ann"]}), store)
    [message] = caplog.messages
    assert "`bob`" in message
    assert "a = " not in message
    build_app(ServiceSettings(data=tmp_path), store)
    assert ["`ann`" in line for line in caplog.messages[1:]] == [True, False]
    assert {name: store.owners.get(name) for name in bound} == bound
    build_app(ServiceSettings(data=tmp_path, owners={"ann": bound["ann"], "bob": OwnerRules(owner="bob")}), store)
    assert store.owners.get("bob").only is None, "which its settings say"
    assert len(caplog.messages) == 3


def test_rules_of_owners_are_those_of_the_settings(tmp_path):
    store = MemoryStore()
    for only in ("a = 1", "a = 2"):
        build_app(ServiceSettings(data=tmp_path, owners={"bob": OwnerRules(owner="bob", only=only)}), store)
        assert store.owners.get("bob").only == only


def test_a_signal_is_noted_and_handed_on(tmp_path):
    app = build_app(ServiceSettings(data=tmp_path), MemoryStore())
    stopping, signals = app.state.api.stopping, []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: signals.append(number))

    async def run():
        async with app.router.lifespan_context(app):
            assert not stopping.is_set()
            os.kill(os.getpid(), signal.SIGTERM)
            assert stopping.is_set()

    try:
        asyncio.run(run())
        assert signals == [signal.SIGTERM]
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)
