"""When the pipeline of a service says that it is ready: its queries have done a batch each, though nothing was sent."""

import json
from contextlib import ExitStack
from dataclasses import replace

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("sqlalchemy", reason="needs tidings[service]")

from tests.unit.service.test_store_feed import put

from tidings.service.settings import ServiceSettings
from tidings.service.store.opening import open_store
from tidings.spark.pipeline.run.queries import start_queries
from tidings.spark.pipeline.run.runner import run
from tidings.spark.pipeline.run.stopping import StopSignal
from tidings.spark.pipeline.service_pipeline import build_service_pipeline


def run_until_ready(settings, monkeypatch):
    """Run until it is ready; return the totals, and the batches that each query had done by then."""
    done, signals = [], []
    enter = StopSignal.__enter__
    monkeypatch.setattr(StopSignal, "__enter__", lambda signal: signals.append(signal) or enter(signal))

    def stop():
        for folder in ("query", "patterns"):
            offsets = settings.data / "checkpoint" / folder / "offsets"
            done.append(sorted(path.name for path in offsets.iterdir() if path.name.isdigit()))
        signals[-1].request()

    pipeline = replace(build_service_pipeline(settings), spark={})
    return run(pipeline, ready=stop), done


@pytest.mark.spark
def test_a_start_has_a_batch_without_events_behind_it_and_a_second_one_another(spark, tmp_path, monkeypatch):
    settings = ServiceSettings(data=tmp_path / "data")
    settings.events_folder.mkdir(parents=True)
    store = open_store(settings.store_url)
    put(store, "cheap", "price < 10")
    totals, done = run_until_ready(settings, monkeypatch)
    assert done == [["0"], ["0"]]
    assert (totals.events, totals.matches, totals.dead_letters) == (0, 0, 0)
    (settings.events_folder / f"{1:020}-0123abcd.jsonl").write_text(json.dumps({"id": "e1", "price": 1}) + "\n")
    totals, done = run_until_ready(settings, monkeypatch)
    assert totals.events == 1, "what waited is the first batch"
    assert [row.event for row in store.matches.list_since(None, 0, limit=10)] == ["e1"]
    store.close()


class Query:
    """A query that has begun when it was looked at so often."""

    ends_by_itself = False

    def __init__(self, events, name, looks, is_active=True):
        self.events, self.name, self.looks, self.is_active = events, name, looks, is_active

    @property
    def has_begun(self):
        self.looks -= 1
        if not self.looks:
            self.events.append(f"{self.name} begun")
        return self.looks <= 0

    def start(self, _frame):
        self.events.append(f"{self.name} started")

    def stop(self):
        """Nothing runs."""

    def report(self, _monitor):
        self.events.append(f"{self.name} reports")


@pytest.mark.parametrize("case", ["all begin", "the first fails", "a stop is requested"])
def test_a_query_starts_when_the_one_before_has_begun(case):
    seen, stopping = [], StopSignal()
    first, second = Query(seen, "first", 2, is_active=case != "the first fails"), Query(seen, "second", 2)
    if case == "a stop is requested":
        stopping.request()
    started = start_queries([(None, first), (None, second)], None, stopping, ExitStack())
    if case == "all begin":
        assert started == [first, second]
        assert seen == [
            "first started",
            "first reports",
            "first begun",
            "second started",
            "first reports",
            "second reports",
            "second begun",
        ]
    else:
        assert started == [first]
        assert seen == ["first started"]
