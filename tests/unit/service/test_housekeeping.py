"""Subscriptions expire, what is old goes away, and forecasts become active when the model knows their pattern."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="needs tidings[service]")

import tidings as td
from tidings.service.checking import SubscriptionChecker
from tidings.service.events.backlog import EventBacklog
from tidings.service.events.event_files import make_name, write_file
from tidings.service.housekeeping import Housekeeper
from tidings.service.settings import PatternServiceSettings, ServiceSettings
from tidings.service.store.base import Idempotency, OwnerRules, Position, StatusReport, Write
from tidings.service.store.memory.store import MemoryStore
from tidings.service.subscription import MatchRow, SubscriptionDraft

NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)
PATTERN = "a = x = 1\nb = x = 2\na ; b"


def make_keeper(tmp_path, store, model=None):
    settings = ServiceSettings(data=tmp_path, patterns=PatternServiceSettings(model=str(model) if model else None))
    return Housekeeper(settings, store, SubscriptionChecker.of(settings))


def write(store, id, *, at=NOW, owner="shop", **more):
    draft = SubscriptionDraft(id=id, **({"kind": "filter", "text": "a = 1"} | more))
    idempotency = Idempotency(f"key-{id}", "digest")
    store.subscriptions.write(
        [Write(action="put", owner=owner, id=id, actor="test", at=at, draft=draft, idempotency=idempotency)]
    )


def test_everything_older_than_the_settings_say_goes_away(tmp_path):
    store = MemoryStore()
    long_ago = NOW - timedelta(days=100)
    for id, at in (("old", long_ago), ("new", NOW)):
        write(store, id, at=at)
        row = MatchRow(owner="shop", subscription=id, kind="match", at=at, event="e")
        store.matches.write("matching", int(at.timestamp()), [row], at=at, keep=10)
        (tmp_path / "events").mkdir(exist_ok=True)
        write_file(tmp_path / "events", make_name(int(at.timestamp() * 10**9)), [b"{}\n"])
    newest = make_name(int(NOW.timestamp() * 10**9))
    store.statuses.write(StatusReport("pipeline", NOW, {"events_read": newest}))
    keeper = make_keeper(tmp_path, store)
    report = keeper.tidy(NOW)
    assert report.changes >= 1
    assert (report.matches, report.answers, report.files, report.records) == (1, 1, 1, 1)
    assert [(record.id, record.number) for record in store.audit.list()] == [("new", 2)]
    again = keeper.tidy(NOW)
    assert (again.changes, again.matches, again.answers, again.files, again.records) == (0, 0, 0, 0, 0)
    assert report.letters == again.letters == 0
    backlog = EventBacklog(tmp_path / "events", most=10**9)
    keeper.measure(backlog)
    assert backlog.waiting == 0


def test_subscriptions_expire_when_their_time_has_come(tmp_path):
    store = MemoryStore()
    write(store, "short", expires_at=NOW + timedelta(seconds=1))
    keeper = make_keeper(tmp_path, store)
    assert keeper.expire(NOW) == 0
    assert keeper.expire(NOW + timedelta(seconds=1)) == 1
    assert store.subscriptions.get("shop", "short").status == "expired"


@pytest.mark.parametrize("named", [True, False])
def test_a_forecast_becomes_active_when_the_model_knows_its_pattern(tmp_path, named):
    store, model = MemoryStore(), tmp_path / ("model" if named else "patterns.model")
    forecast = {
        "kind": "forecast",
        "text": PATTERN,
        "mode": "restart",
        "horizon": "10 own events",
        "status": "learning",
    }
    write(store, "known", **forecast)
    write(store, "known", owner="bounded", **forecast)
    store.owners.set([OwnerRules(owner="bounded", only="y = 1")], actor="test", at=NOW)
    write(store, "known", owner="counted", **forecast)
    store.owners.set([OwnerRules(owner="counted", only="y = 2")], actor="test", at=NOW)
    write(store, "other", **forecast | {"text": "a = x = 1\nb = x = 3\na ; b"})
    keeper = make_keeper(tmp_path, store, model if named else None)
    assert keeper.review_forecasts(NOW) == 0
    detector = td.Detector()
    detector.add("p", PATTERN)
    detector.add("within y = 2", "a = x = 1 and y = 2\nb = x = 2 and y = 2\na ; b")
    td.train(detector, [{"id": n, "time": n, "x": n % 4} for n in range(60)]).save(Path(model))
    before = store.log.read_head()
    assert keeper.review_forecasts(NOW) == 2
    statuses = {id: store.subscriptions.get("shop", id).status for id in ("known", "other")}
    assert statuses == {"known": "active", "other": "learning"}
    assert store.subscriptions.get("bounded", "known").status == "learning"  # its pattern is another one
    assert store.subscriptions.get("counted", "known").status == "active"
    assert isinstance(before, Position)
    assert store.log.read_head() != before
    assert keeper.review_forecasts(NOW) == 0
