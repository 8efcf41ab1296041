"""An API process keeps house by the clock, goes on after a failure, and ends in order."""

import asyncio
from datetime import timedelta

from tests.service.api.asking import ENDLESS

from tidings.service.api.background import run_background
from tidings.service.api.routes.events import get_event_parts
from tidings.service.settings import HousekeepingSettings, ServiceSettings
from tidings.service.store.base import StoreBusy

QUICK = HousekeepingSettings(every=timedelta(milliseconds=10), expire=timedelta(milliseconds=5))


def make_quick(make_api):
    return make_api(settings=ServiceSettings(housekeeping=QUICK), limits=ENDLESS)


async def wait_until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


def test_subscriptions_expire_and_what_waits_is_measured_while_the_process_runs(make_api):
    api = make_quick(make_api)
    api.create("short", expires_at="2030-01-01T00:00:10Z")

    async def run():
        async with run_background(api.state):
            parts = get_event_parts(api.state)
            parts.backlog.add(10**6)
            await wait_until(lambda: parts.backlog.waiting == 0)
            assert api.store.subscriptions.get("admin", "short").status == "active"
            api.time.pass_time(11)
            await wait_until(lambda: api.store.subscriptions.get("admin", "short").status == "expired")

    api.runner.run(run())


def test_a_store_that_fails_is_asked_again(make_api, monkeypatch, caplog):
    api, asked = make_quick(make_api), []

    def fail(now):
        asked.append(now)
        msg = "it is restarted"
        raise (StoreBusy if len(asked) % 2 else RuntimeError)(msg)

    monkeypatch.setattr(api.store.subscriptions, "expire", fail)

    async def run():
        async with run_background(api.state):
            await wait_until(lambda: len(asked) > 3)

    api.runner.run(run())
    assert "housekeeping waits for the store: it is restarted" in caplog.text
    assert "unexpected RuntimeError" in caplog.text
