"""Processes of a served folder are killed while a client works: what was acknowledged is there, and nothing else."""

import socket
from datetime import datetime

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("fastapi", reason="needs tidings[service]")

from tests.service.killing import BusyClient, ServedFolder, list_read_ids, read_matches, replay

pytestmark = pytest.mark.slow

BOUND = 3.0
"""Seconds after its deletion from which no batch that begins may match a subscription."""

SETTINGS = """
[matches]
keep = 100000
[limits]
requests_per_second = 100000
[spark]
spark.sql.streaming.minBatchesToRetain = "100000"
"""


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.sweep)])
def test_nothing_acknowledged_is_lost_when_the_api_and_the_pipeline_are_killed(tmp_path, rounds):
    settings = tmp_path / "service.toml"
    settings.write_text(SETTINGS)
    with ServedFolder(tmp_path / "data", str(settings), port=find_port()) as served:
        with BusyClient(served, seed=rounds) as busy:
            for number in range(rounds):
                wanted = len(busy.events)  # what was posted since the last death is being matched
                served.until(lambda wanted=wanted: len(list_read_ids(served.data)) > wanted or busy.problem)
                for part in (["api", "pipeline"], ["pipeline"], ["api"])[number % 3]:
                    served.kill(part)
                served.until(served.is_ready)
        client = served.client()
        stored = {row["id"]: row["filter"] for row in list_all(client)}
        assert stored == busy.filters
        served.until(lambda: set(busy.events) <= list_read_ids(served.data))  # every event is in a batch
        pairs, versions = replay(served.data)
        pairs = sorted((id.partition("/")[2], event) for id, event in pairs)
        expected = [pair for pair in pairs if pair[0] in busy.filters]
        served.until(lambda: len(read_matches(client, sorted(busy.filters))) >= len(expected))
        shown = read_matches(client, sorted(busy.filters))
        assert sorted(shown) == expected
        assert shown, "the client's filters match some of its events"
        for started, ids in versions.values():
            late = {id for id, at in busy.removed.items() if datetime.fromisoformat(started).timestamp() > at + BOUND}
            assert not late & {id.partition("/")[2] for id in ids}
        assert served.stop() == 0


def find_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def list_all(client):
    cursor = None
    while True:
        query = {"limit": 500} | ({"cursor": cursor} if cursor else {})
        page = client.get("/v1/subscriptions", params=query).raise_for_status().json()
        yield from page["subscriptions"]
        if not (cursor := page["next"]):
            return
