"""Processes of a served folder are killed while a client works: what was acknowledged is there, and nothing else."""

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("fastapi", reason="needs tidings[service]")

from tests.kafka.broker import find_free_port
from tests.service.busy_client import BusyClient
from tests.service.killing import ServedFolder
from tests.service.replaying import PatternReplay, QueryLog, cut_owner, read_matches, read_pages, replay_filters

pytestmark = pytest.mark.slow

BOUND = 3.0
"""Seconds after its deletion from which no batch that begins may match a subscription."""

SETTINGS = """
[matches]
keep = 100000
[limits]
requests_per_second = 100000
[patterns]
lateness = "1 s"
[spark]
spark.sql.streaming.minBatchesToRetain = "100000"
"""

BOTH, PIPELINE, API = ("api", "pipeline"), ("pipeline",), ("api",)
JAVA, WORKER, ALL = ("java",), ("worker",), ("all",)


@dataclass(frozen=True)
class Trial:
    """Who dies, in each round; where the store is; whether there are patterns."""

    rounds: tuple
    on_postgres: bool = False
    has_patterns: bool = False


TRIALS = {
    "two rounds": Trial((BOTH, API)),
    "ten rounds and three": Trial((*(BOTH, PIPELINE, API) * 3, BOTH, JAVA, WORKER, ALL)),
    "on PostgreSQL": Trial((BOTH, ALL, PIPELINE, API), on_postgres=True),
    "with patterns": Trial((BOTH, WORKER, PIPELINE, JAVA, API, ALL, BOTH), has_patterns=True),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "two rounds" else pytest.mark.sweep) for name in TRIALS]
)
def test_nothing_acknowledged_is_lost_when_processes_are_killed(name, tmp_path, request):
    trial, moments = TRIALS[name], random.Random(name)
    settings = tmp_path / "service.toml"
    settings.write_text(SETTINGS)
    store = ["--store", request.getfixturevalue("postgres_url")] if trial.on_postgres else []
    with ServedFolder(tmp_path / "data", settings, *store, port=find_free_port()) as served:
        logs = [QueryLog(served.data, query) for query in ("query", *["patterns"] * trial.has_patterns)]
        with BusyClient(served, seed=name, has_patterns=trial.has_patterns) as busy:
            for number, parts in enumerate(trial.rounds):
                wanted = len(busy.events)  # what was posted since the last death is being matched
                for log in logs:
                    served.until(lambda log=log, wanted=wanted: log.count_ids() > wanted or busy.problem)
                if number > 1:  # at another moment, of another batch
                    done = logs[-1].count_done() + moments.randrange(3)
                    served.until(lambda done=done: logs[-1].count_done() >= done or busy.problem)
                for part in parts:
                    served.kill_all() if part == "all" else served.kill(part)
                served.until(served.is_ready)
        client = served.client()
        check_subscriptions(client, busy)
        check_matches(served, client, busy, logs[0])
        if trial.has_patterns:
            check_detections(served, client, busy, logs[1])
        assert served.stop() == 0


def check_subscriptions(client, busy):
    """What was acknowledged is there, as it was written last, and nothing else."""
    rows = {row["id"]: row for row in read_pages(client, "/v1/subscriptions", "subscriptions", 500)}
    assert {id: {name: rows[id][name] for name in body} for id, body in busy.bodies.items()} == busy.bodies
    assert set(rows) == set(busy.bodies)


def check_matches(served, client, busy, log):
    """Each event is matched once, by what its batch claimed, and a removed subscription matches nothing."""
    served.until(lambda: log.count_ids() >= len(busy.events) and log.is_done())
    assert set(busy.events) <= log.ids
    pairs, present = replay_filters(served.data, log.batches)
    shown = read_matches(client, busy.bodies)[0]
    assert shown == select_rows(pairs, busy)
    assert shown, "the client's filters match some of its events"
    check_removed(busy, present)


def check_detections(served, client, busy, log):
    """Each detection is that of a detector that saw what the claims of batches say, and is there once.

    An event that is later than any deadline lets time pass, and all that waits with it.
    """
    newest = max(event["time"] for event in busy.events.values())
    deadline = datetime.fromisoformat(newest).timestamp() * 1000 + 1000
    served.until(lambda: time.time() * 1000 > deadline + 1001)
    # It lets time pass, to a second before it, and everything that waits with it.
    busy.post({"id": "end", "time": datetime.now(UTC).isoformat(timespec="milliseconds")})
    served.until(lambda: log.follow() and log.batches[-1].watermark > deadline and log.is_done())
    replay = PatternReplay(served.data)
    for batch in log.batches:
        replay.take(batch)
    shown = read_matches(client, busy.bodies)[1]
    assert shown == select_rows(replay.detections.elements(), busy)
    assert len({id for id, _, _ in shown}) > 1, "the client's patterns find something"
    check_removed(busy, replay.present)


def select_rows(rows, busy):
    """Return the rows of subscriptions that are still there."""
    return sorted((id, *rest) for owned, *rest in rows if (id := cut_owner(owned)) in busy.bodies)


def check_removed(busy, present):
    """No batch that began later than the bound had a subscription that was removed."""
    for started, ids in present:
        late = {id for id, at in busy.removed.items() if datetime.fromisoformat(started).timestamp() > at + BOUND}
        assert not late & set(map(cut_owner, ids))
