"""Patterns of a store in a running pipeline: changed in the midst of batches, over a failure, and on an idle stream."""

import json
import os
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("sqlalchemy", reason="needs tidings[service]")

from tests.unit.spark.detect.followed_cases import Subscribers

from tidings.errors import SinkError
from tidings.spark.detect.followed.pattern_versions import PatternVersions
from tidings.spark.pipeline.run import follow_patterns
from tidings.spark.pipeline.run.followed_batches import FollowTuning
from tidings.spark.pipeline.run.open_stores import OpenStores

EVERY = "any = kind != ''\nany"
PAIR = "a = kind = 'a'\nb = kind = 'b'\na ; b"

PIPELINE = """
checkpoint = "state"
trigger = "TRIGGER"
[source]
kind = "json"
path = "ads"
COLUMNS
id = "id"
time = "ts"
[source.options]
maxFilesPerTrigger = 1
[patterns]
store = "sqlite:///store.db"
lateness = "0 s"
PASSING
keep = ["KEPT"]
[[detections]]
kind = "python"
function = "tests.spark.pipeline.piping:step"
[[detections]]
kind = "json"
path = "found"
[shown]
view = "off"
lines = "lines.jsonl"
"""


@pytest.fixture
def subscribers(monkeypatch):
    """A store in memory, which the pipeline opens in the place of any other."""
    subscribers = Subscribers()
    monkeypatch.setattr(OpenStores, "open", lambda *_: subscribers.store)
    monkeypatch.setattr(OpenStores, "close", lambda *_: None)
    return subscribers


def write_pipeline(pipe, *, trigger="available now", documents=False, passing='idle = "1 s"'):
    columns = "" if documents else 'columns = "id BIGINT, kind STRING, ts TIMESTAMP"'
    text = PIPELINE.replace("TRIGGER", trigger).replace("COLUMNS", columns).replace("PASSING", passing)
    (pipe.folder / "pipeline.toml").write_text(text.replace("KEPT", "document" if documents else "kind"))
    return pipe


def make_event(id, kind, second):
    return {"id": id, "kind": kind, "ts": f"2024-07-01T12:00:{second:02}Z"}


def read_newest(pipe):
    """Return the patterns of the newest version."""
    versions = PatternVersions(pipe.folder / "state" / "pattern_versions")
    return versions.read(versions.find_newest()).patterns


def count_taken(pipe):
    """Return how many files the batches that are done have had."""
    state, counts = pipe.folder / "state/patterns", [0]
    for path in (state / "commits").glob("[0-9]*"):
        offsets = (state / "offsets" / path.name).read_text().split("\n")
        counts.append(json.loads(offsets[2])["logOffset"] + 1)
    return max(counts)


def list_found(pipe):
    """Return the pattern and the events of all detections."""
    rows = pipe.rows("found")
    return [(row["pattern"].removeprefix("o/"), [event["event"] for event in row["events"]]) for row in rows]


def test_patterns_change_in_the_midst_of_batches_and_a_batch_that_runs_again_has_those_that_it_claimed(
    pipe, subscribers
):
    """And an event of a broken clock makes nobody's events late, where nothing but `ahead` bounds it."""
    write_pipeline(pipe, passing='ahead = "1 day"')
    subscribers.put("every", EVERY)
    subscribers.put("pair", PAIR)
    pipe.events(make_event(1, "a", 1), make_event(2, "b", 2))
    pipe.events({"id": 3, "kind": "b"})

    def change():
        subscribers.remove("pair")
        subscribers.put("again", PAIR)
        subscribers.put("broken", "a ; ; b")
        msg = "no room"
        raise OSError(msg)

    pipe.during(None, change)  # before the rows of the batch are written to the other sink
    with pytest.raises(SinkError, match="no room"):
        pipe.run()
    assert list_found(pipe) == []
    pipe.events(make_event(4, "a", 4), make_event(6, "b", 4) | {"ts": "2199-01-01T00:00:00Z"})
    pipe.events(make_event(5, "b", 5))
    pipe.run()
    singles = [("every", [id]) for id in (1, 2, 4, 5)]
    assert sorted(list_found(pipe)) == [("again", [4, 5]), *singles, ("pair", [1, 2])]
    assert [text for text in pipe.warnings if "`o/broken` refused" in text]
    letters = pipe.rows("state/dead_letters_of_patterns")
    assert [letter["event"] for letter in letters] == [3, 6]
    assert letters[1]["reason"] == (
        "ahead of the clock: 2199-01-01 00:00:00 is more than 1 day after its batch; mend the clock of who published "
        "it, or raise `ahead` in [patterns]"
    )


def test_documents_on_an_idle_stream_absences_by_the_clock_and_the_first_pattern_of_a_running_pipeline(
    pipe, subscribers, monkeypatch
):
    """And a clock that is fast, which makes nobody else's events late: its own event waits until its time has come.

    And a claim that has no time to read all that is new: the rest is in force soon, though no more events come.
    """
    write_pipeline(pipe, trigger="100 ms", documents=True)
    monkeypatch.setattr(follow_patterns, "FollowTuning", partial(FollowTuning, read_seconds=0))

    def post(id, kind, *, moment=None, **more):
        moment = moment or datetime.now(UTC).isoformat()
        path = pipe.folder / "ads" / f".{id}"
        path.write_text(json.dumps({"id": id, "kind": kind, "ts": moment, **more}) + "\n")
        path.rename(pipe.folder / "ads" / f"{id}.json")

    def wait_for(condition, limit=60):
        until = time.monotonic() + limit
        while not condition() and time.monotonic() < until:
            time.sleep(0.05)
        return condition()

    outcomes = []

    def play():
        try:
            claims = pipe.folder / "state/pattern_versions/claims/patterns"
            post("early", "a")
            outcomes.append(wait_for((claims / f"{0:010}.json").exists))  # the first batch waits for a pattern
            subscribers.put("silent", "a = kind = 'a'\nb = kind = 'b'\na ; not b for 500 ms")
            outcomes.append(wait_for((pipe.folder / "state/patterns/commits/0").exists))
            post("ahead", "a", moment="2199-01-01T00:00:00Z")
            fast = datetime.now(UTC) + timedelta(seconds=20)
            post("fast", "a", moment=fast.isoformat())
            outcomes.append(wait_for(lambda: count_taken(pipe) == 3))
            post("late", "a", data_base64="AA==")
            outcomes.append(wait_for(lambda: list_found(pipe)))
            outcomes.append(wait_for(lambda: len(list_found(pipe)) == 2) and datetime.now(UTC) > fast)
            for id in ("one", "two", "three"):
                subscribers.put(id, PAIR)
            subscribers.remove("silent")
            post("last", "b")  # its batch reads one of them
            outcomes.append(wait_for(lambda: len(read_newest(pipe)) == 3))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=play)
    thread.start()
    pipe.run()
    thread.join()
    assert all(outcomes), outcomes
    assert list_found(pipe) == [("silent", ["late"]), ("silent", ["fast"])]
    row = pipe.rows("found")[0]
    (event,) = row["events"]
    assert json.loads(event["document"])["data_base64"] == "AA=="
    (letter,) = pipe.rows("state/dead_letters_of_patterns")
    assert (letter["event"], letter["reason"].partition(":")[0]) == ("ahead", "ahead of the clock")
    assert row["at"] > json.loads(event["document"])["ts"]
