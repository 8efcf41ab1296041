"""The pipeline of a service over a store in SQLite and a folder of events, run after run, and what its claims say."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("sqlalchemy", reason="needs tidings[service]")
pytest.importorskip("httpx", reason="needs tidings[service]")

from tests.service.replaying import QueryLog, replay_filters
from tests.unit.service.test_store_feed import put, remove, set_bounds

import tidings as td
from tidings.concepts import Vocabulary
from tidings.service.settings import ServiceSettings
from tidings.service.store.opening import open_store
from tidings.spark.pipeline.config.value_kinds import Trigger
from tidings.spark.pipeline.run import match_batches
from tidings.spark.pipeline.run.runner import run
from tidings.spark.pipeline.service_pipeline import build_service_pipeline


class ServiceRuns:
    """The folder of a service, and runs of its pipeline that end when all events are read."""

    def __init__(self, folder):
        self.settings = ServiceSettings(data=folder)
        self.settings.events_folder.mkdir(parents=True)
        self.store = open_store(self.settings.store_url)
        self._files = 0

    def post(self, *events):
        """Write a file of events, as the API would; what is bytes already is written as it is."""
        lines = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
        self._files += 1
        name = f"{self._files:020}-0123abcd.jsonl"
        (self.settings.events_folder / name).write_bytes(b"".join(line + b"\n" for line in lines))

    def run(self):
        pipeline = build_service_pipeline(self.settings)
        once = replace(pipeline, patterns=None, detections=(), trigger=Trigger(available_now=True), spark={})
        return run(replace(once, source=replace(once.source, files=2)))

    def matches(self):
        """Return the pairs of subscription and event that the store has."""
        return sorted((f"{row.owner}/{row.subscription}", row.event) for row in self.rows())

    def rows(self):
        return self.store.matches.list_since(None, 0, limit=10_000)

    def letters(self):
        paths = sorted((self.settings.data / "dead_letters").glob("batch=*/part-*.json"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def replace_store(self, path):
        """Put a copy of the store in the place of the one that is there."""
        self.store.close()
        for beside in self.settings.data.glob("store.db*"):
            beside.unlink() if beside.is_file() else shutil.rmtree(beside)
        shutil.copy(path, self.settings.data / "store.db")
        self.store = open_store(self.settings.store_url)


@pytest.fixture
def runs(spark, tmp_path):
    runs = ServiceRuns(tmp_path / "data")
    yield runs
    runs.store.close()


def test_matches_are_those_of_the_claims_whatever_comes_in_between(runs, monkeypatch):
    put(runs.store, "cheap", "price < 10")
    put(runs.store, "ford", "make = 'ford'")
    put(runs.store, "pattern", "cheap", kind="pattern")
    put(runs.store, "shop", "ce.source = 'shop'", owner="bob")
    set_bounds(runs.store, bob="price > 3")
    payload = {"id": "e1", "time": "2026-06-30T12:00:00Z", "price": 5, "make": "ford", "data_base64": "AA=="}
    runs.post(payload, {"id": "e2", "price": 50}, b"no JSON", b"[1]", {"price": 1}, {"id": [1]}, b"\xff")
    runs.post({"id": "e3", "price": 2, "ce": {"source": "shop"}}, {"id": "e4", "price": 4, "ce": {"source": "shop"}})
    runs.post({"id": "e1", "price": 1}, {"id": 7, "price": 9})
    outcome = runs.run()
    assert (outcome.events, outcome.dead_letters, outcome.matches) == (9 + 1, 5, 6)
    assert {letter["row"] for letter in runs.letters()} == {
        json.dumps({"raw": raw}, ensure_ascii=False)
        for raw in ("no JSON", "[1]", '{"price": 1}', '{"id": [1]}', "\ufffd")
    }
    first = next(row for row in runs.rows() if (row.subscription, row.event) == ("cheap", "e1"))
    assert first.values == payload
    assert first.at == datetime(2026, 6, 30, 12, tzinfo=UTC)

    # Changes between runs, ids that came before, and a batch that is fetched row by row.
    monkeypatch.setattr(match_batches, "FEW_ROWS", 3)
    put(runs.store, "cheap", "price < 2")
    put(runs.store, "ford", "cheap", kind="pattern")
    put(runs.store, "all", "price >= 0", owner="bob")
    set_bounds(runs.store, bob=None)
    remove(runs.store, "shop", owner="bob")
    runs.post({"id": "e2", "price": 1}, *({"id": f"n{number}", "price": number} for number in range(20)))
    assert runs.run().matches == 2 + 20
    # A batch that is tried again: nothing is written twice.
    before = runs.rows()
    commits = runs.settings.data / "checkpoint" / "query" / "commits"
    newest = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for path in [*commits.glob(f"{newest}*"), *commits.glob(f".{newest}.*")]:
        path.unlink()
    remove(runs.store, "all", owner="bob")
    put(runs.store, "all", "price >= 0", owner="bob")
    assert runs.run().batches >= 1
    assert [row for row in runs.rows() if row.subscription != "all"] == [
        row for row in before if row.subscription != "all"
    ]
    pairs, versions = replay_clean(runs)
    shown = set(runs.matches())
    assert shown <= pairs
    assert {pair for pair in pairs if pair[0] == "ann/cheap"} <= shown
    assert len(versions) >= 2
    assert {"e1", "n19"} <= {event["id"] for batch in QueryLog(runs.settings.data).follow() for event in batch.events}


def test_owners_hear_of_filters_that_another_schema_refuses_and_have_them_again_with_the_old_one(runs):
    put(runs.store, "cheap", "price < 10")
    put(runs.store, "dear", "price > 10", owner="bob")
    put(runs.store, "ford", "make = 'ford'")
    first, runs.settings = (
        runs.settings,
        replace(runs.settings, vocabulary=Vocabulary(td.Schema({"price": "text", "make": "text"}))),
    )
    runs.post({"id": "e1", "price": "5", "make": "ford"})
    assert runs.run().refused_subscriptions == 2
    assert runs.matches() == [("ann/ford", "e1")]
    records = [record for record in runs.store.audit.list() if record.action == "refuse"]
    assert [(record.owner, record.id) for record in records] == [("ann", "cheap"), ("bob", "dear")]
    assert "price" in records[0].actor
    runs.settings = first
    runs.post({"id": "e2", "price": 5, "make": "ford"})
    runs.run()
    assert runs.matches() == [("ann/cheap", "e2"), ("ann/ford", "e1"), ("ann/ford", "e2")]


def replay_clean(runs):
    """Return what the oracle says, which reads good lines alone."""
    for path in runs.settings.events_folder.glob("*.jsonl"):
        lines = [line for line in path.read_bytes().splitlines() if line.startswith(b"{") and b'"id": ["' not in line]
        good = [line for line in lines if isinstance(json.loads(line).get("id"), str | int)]
        texts = [json.dumps({**json.loads(line), "id": str(json.loads(line)["id"])}) for line in good]
        path.write_text("".join(text + "\n" for text in texts))
    return replay_filters(runs.settings.data, QueryLog(runs.settings.data).follow())


def test_a_store_that_was_restored_or_compacted_is_loaded_anew(runs, tmp_path):
    put(runs.store, "both", "price < 10")
    runs.post({"id": "e0", "price": 1})
    runs.run()
    runs.store.close()
    shutil.copy(runs.settings.data / "store.db", tmp_path / "backup.db")
    runs.store = open_store(runs.settings.store_url)
    put(runs.store, "lost", "price < 10")
    runs.post({"id": "e1", "price": 1})
    runs.run()
    assert {("ann/lost", "e1"), ("ann/both", "e1")} <= set(runs.matches())
    runs.replace_store(tmp_path / "backup.db")
    put(runs.store, "new", "price < 10")
    runs.post({"id": "e2", "price": 1})
    runs.run()
    assert {id for id, event in runs.matches() if event == "e2"} == {"ann/both", "ann/new"}
    for number in range(3):
        put(runs.store, "new", f"price < {number}")
    runs.store.log.compact(datetime(2100, 1, 1, tzinfo=UTC))
    runs.post({"id": "e3", "price": 1})
    runs.run()
    assert {id for id, event in runs.matches() if event == "e3"} == {"ann/both", "ann/new"}
