"""A model of a store's patterns knows what the pipeline runs: bound to owners, each pattern once."""

import json
from datetime import UTC, datetime

import pytest

pytest.importorskip("pydantic", reason="needs tidings[service]")

import tidings as td
from tidings.concepts import Vocabulary
from tidings.forecast.predicting.forecaster import ForecastPlan
from tidings.service.pattern_model import PatternModel
from tidings.service.store.base import OwnerRules, RunningSubscription, Write
from tidings.service.store.memory import MemoryStore
from tidings.service.subscription import SubscriptionDraft
from tidings.service.training import read_history, read_written, train_store

NOW = datetime(2026, 11, 1, tzinfo=UTC)
PAIR = "a = kind = 'a'\nb = kind = 'b'\na ; b"
OTHER = "a = kind = 'a'\nc = kind = 'c'\na ; c"


def put(store, owner, id, text, **more):
    draft = SubscriptionDraft(id=id, text=text, **more)
    store.subscriptions.write([Write(action="put", owner=owner, id=id, actor=owner, at=NOW, draft=draft)])


@pytest.fixture
def store():
    store = MemoryStore()
    put(store, "o", "pair", PAIR, kind="pattern")
    put(store, "o", "soon", PAIR, kind="forecast", horizon="5 s", status="learning")
    put(store, "bound", "soon", OTHER, kind="forecast", horizon="10 own events", status="learning")
    put(store, "o", "broken", "a ; ; b", kind="pattern")
    put(store, "o", "search", "kind = 'a'", kind="filter")
    store.owners.set([OwnerRules(owner="bound", only="price > 5")], actor="admin", at=NOW)
    return store


def test_a_model_knows_the_patterns_as_pipelines_run_them(store, tmp_path):
    events = [{"id": second, "time": second, "kind": "abc"[second % 3], "price": second} for second in range(60)]
    text = "".join(f"{json.dumps(event)}\n" for event in events)
    path = tmp_path / "events.jsonl"
    path.write_text(text + "no JSON\n" + '{"id": 99, "kind": ["a"], "time": "soon"}\n')
    model = train_store(store, read_history([path]), Vocabulary())
    model.save(tmp_path / "patterns.model")
    assert len(model) == 2
    trained = PatternModel(tmp_path / "patterns.model")
    with store.log.read(None, kinds=("forecast",)) as changes:
        running = {subscription.engine_id: subscription for subscription in changes.running}
    for id, horizon in (("o/soon", "5 s"), ("bound/soon", "10 own events")):
        written = read_written(running[id], Vocabulary())
        assert trained.knows(written.pattern, written.mode.value, make_plan(horizon))
    unbound = RunningSubscription("bound/soon", "forecast", OTHER, "text")
    assert not trained.knows(read_written(unbound, Vocabulary()).pattern, "restart", make_plan("10 own events"))


def make_plan(horizon):
    return ForecastPlan.of(horizon=horizon, threshold=0.5, tell="crossing", step=0.1)


def test_a_store_without_patterns_says_so():
    with pytest.raises(td.TidingsError, match="has no patterns to train"):
        train_store(MemoryStore(), iter([[]]), Vocabulary())
