"""A subscription is tried on samples, estimated by recent events, and explained; within the bound of its owner."""

import asyncio
import threading
import tracemalloc
from datetime import timedelta

import pytest
from tests.service.api.asking import check_problem

from tidings.service.api.routes.events import get_event_parts
from tidings.service.api.routes.why import PAGE
from tidings.service.events.event_files import make_name, write_file
from tidings.service.events.recent import RecentFiles
from tidings.service.settings import ServiceSettings
from tidings.service.store.base import OwnerRules
from tidings.service.subscription import MatchRow

PATTERN = "a = x = 1\nb = x = 2\na ; b"


@pytest.fixture
def api(make_api):
    api = make_api(settings=ServiceSettings(owners={"shop": OwnerRules(owner="shop", only="region = 'zh'")}))
    yield api
    get_event_parts(api.state).writer.close()


def put(api, events, *, minutes_ago=0.0):
    """Put events into the folder as if they had come then."""
    moment = api.time.now() - timedelta(minutes=minutes_ago)
    api.settings.events_folder.mkdir(exist_ok=True)
    lines = [(str(event).replace("'", '"')).encode() + b"\n" for event in events]
    write_file(api.settings.events_folder, make_name(int(moment.timestamp() * 10**9)), lines)


def test_samples_match_or_say_why_not_and_bad_ones_why_they_are_refused(api):
    events = [{"id": "a", "price": 3}, {"id": "b", "price": 9500}, {"id": []}, 7]
    answer = api.post("/v1/subscriptions:try", json={"filter": "price < 9000", "events": events})
    tried = answer.json()
    assert (answer.status_code, tried["kind"], tried["matches"]) == (200, "filter", 1)
    first, second, third, fourth = tried["results"]
    assert (first["event"], first["matches"], second["matches"]) == ("a", True, False)
    assert second["reasons"] == [{"test": "price < 9000", "holds": False, "seen": [9500]}]
    assert "no   price < 9000   (saw 9500)" in second["text"]
    assert third["error"]["message"] == "`id`: [] is neither a text nor a number"
    assert (fourth["index"], fourth["error"]["index"]) == (3, 3)


def test_a_pattern_is_tried_on_samples_in_the_order_of_their_times(api):
    events = [{"id": "second", "x": 2, "time": 20}, {"id": "first", "x": 1, "time": 10}]
    tried = api.post("/v1/subscriptions:try", json={"pattern": PATTERN, "events": events}).json()
    assert tried["matches"] == 1
    assert tried["detections"][0]["events"] == ["first", "second"]
    assert [step["matches"] for step in tried["results"][0]["steps"]] == [False, True]


def test_a_stored_subscription_is_tried_by_its_id(api):
    api.create("s1", "price < 5")
    tried = api.post("/v1/subscriptions:try", json={"id": "s1", "events": [{"price": 3}]}).json()
    assert tried["results"][0]["matches"]
    check_problem(api.post("/v1/subscriptions:try", json={"id": "none", "events": [{}]}), 404)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"filter": "price <", "events": [{}]}, 422),
        ({"filter": "price < 1"}, 422),
        ({"filter": "price < 1", "events": []}, 422),
        ({"filter": "price < 1", "events": [{}] * 1001}, 422),
        ({"filter": "price < 1", "pattern": PATTERN, "events": [{}]}, 422),
        ({"events": [{}]}, 422),
        ([], 422),
    ],
)
def test_what_cannot_be_tried_says_why(api, body, status):
    check_problem(api.post("/v1/subscriptions:try", json=body), status)


def test_an_owner_sees_nothing_beyond_the_bound(api):
    key = api.make_key("shop", "read", "write", "publish")
    put(api, [{"id": "in", "a": 1, "region": "zh"}, {"id": "out", "a": 1, "region": "be"}])
    api.create("s1", "a = 1", key=key)
    events = [{"a": 1, "region": "be"}, {"a": 1, "region": "zh"}]
    tried = api.post("/v1/subscriptions:try", json={"filter": "a = 1", "events": events}, key=key).json()
    assert [result["matches"] for result in tried["results"]] == [False, True]
    assert tried["results"][0]["beyond"]
    estimate = api.post("/v1/subscriptions:estimate", json={"filter": "a = 1"}, key=key).json()
    assert (estimate["matches"], [row["event"] for row in estimate["latest"]]) == (1, ["in"])
    assert estimate["events"] == 1  # not how many others may see
    assert api.get("/v1/subscriptions/s1/why", params={"event": "in"}, key=key).json()["matches"]
    check_problem(api.get("/v1/subscriptions/s1/why", params={"event": "out"}, key=key), 404)
    api.create("s1", "a = 1")
    assert api.get("/v1/subscriptions/s1/why", params={"event": "out"}).json()["matches"]


def test_an_estimate_counts_recent_events_and_says_how_sure_it_is(api):
    for minute in range(120, 0, -1):
        put(api, [{"id": f"e{minute}-{n}", "price": minute * 10 + n} for n in range(10)], minutes_ago=minute)
    estimate = api.post("/v1/subscriptions:estimate", json={"filter": "price < 105 and price >= 100"}).json()
    assert (estimate["matches"], estimate["events"], estimate["seconds"]) == (5, 1200, 7200)
    assert estimate["per_day"] == 60
    low, high = estimate["interval"]
    assert 15 < low < 25
    assert 130 < high < 145
    assert estimate["note"] == "estimated from the last 2.0 hours; other hours may differ"
    assert [row["event"] for row in estimate["latest"]] == [f"e10-{n}" for n in (4, 3, 2, 1, 0)]
    assert estimate["latest"][0]["values"] == {"id": "e10-4", "price": 104}


def test_an_estimate_from_little_says_so(api):
    empty = api.post("/v1/subscriptions:estimate", json={"filter": "a = 1"}).json()
    assert (empty["events"], empty["per_day"], empty["interval"]) == (0, None, None)
    assert "no events came lately" in empty["note"]
    put(api, [{"id": 1, "a": 1}], minutes_ago=0.01)
    short = api.post("/v1/subscriptions:estimate", json={"filter": "a = 1"}).json()
    assert (short["matches"], short["per_day"]) == (1, None)
    put(api, [{"id": 2, "a": 1}], minutes_ago=5)
    few = api.post("/v1/subscriptions:estimate", json={"filter": "a = 1"}).json()
    assert (few["matches"], few["per_day"]) == (2, 576)
    assert "only 2 events came in 5.0 minutes" in few["note"]
    pattern = api.post("/v1/subscriptions:estimate", json={"pattern": "x = a = 1\nx ; x"})
    assert (pattern.status_code, pattern.json()["kind"]) == (200, "pattern")


def test_an_event_is_explained_from_kept_matches_and_from_recent_events(api):
    api.create("s1", "price < 5")
    at = api.time.now()
    row = MatchRow(owner="admin", subscription="s1", kind="match", at=at, event="old", values={"id": "old", "price": 3})
    api.store.matches.write("matching", 1, [row], at=at, keep=10)
    put(api, [{"id": "new", "price": 7}])
    old, new = (api.get("/v1/subscriptions/s1/why", params={"event": id}).json() for id in ("old", "new"))
    assert (old["matches"], new["matches"], new["values"]) == (True, False, {"id": "new", "price": 7})
    assert "price < 5" in new["text"]
    check_problem(api.get("/v1/subscriptions/s1/why", params={"event": "none"}), 404)
    check_problem(api.get("/v1/subscriptions/none/why", params={"event": "old"}), 404)
    check_problem(api.get("/v1/subscriptions/s1/why"), 400)


def test_an_event_is_found_behind_pages_of_kept_matches(api):
    api.create("s1", "price < 5")
    at = api.time.now()
    match = {"owner": "admin", "subscription": "s1", "kind": "match", "at": at}
    rows = [MatchRow(event=f"e{n}", values={"id": f"e{n}", "price": n}, **match) for n in range(2 * PAGE + 1)]
    api.store.matches.write("matching", 1, rows, at=at, keep=1_000)
    for id in ("e0", f"e{PAGE}", f"e{2 * PAGE}"):
        assert api.get("/v1/subscriptions/s1/why", params={"event": id}).json()["event"] == id
    check_problem(api.get("/v1/subscriptions/s1/why", params={"event": "e-1"}), 404)


# What trials may take ---------------------------------------------------------------------------------------

WIDE = " or ".join(f"a = {number}" for number in range(15_000))


def test_a_filter_of_many_tests_is_tried_on_few_events_and_answered_shortly(api):
    refusal = api.post("/v1/subscriptions:try", json={"filter": WIDE, "events": [{"a": -1}] * 60})
    problem = check_problem(refusal, 422)
    assert "a filter of 15,000 tests is tried on 6 events at once, not on 60: send fewer" in problem["detail"]
    answer = api.post("/v1/subscriptions:try", json={"filter": WIDE, "events": [{"a": -1}] * 3})
    assert [(len(result["reasons"]), result["more"]) for result in answer.json()["results"]] == [(50, 14_950)] * 3
    assert len(answer.content) < 50_000


def test_values_that_many_tests_saw_do_not_fill_the_memory(api):
    events = [{"a": "x" * 10_000}] * 500
    body = {"filter": " or ".join(f"a = '{number}'" for number in range(30)), "events": events}
    tracemalloc.start()
    answer = api.post("/v1/subscriptions:try", json=body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(len(result["reasons"]), result["more"]) for result in answer.json()["results"]] == [(10, 20)] * 500
    assert len(answer.content) < 6_000_000
    assert peak < 120_000_000 < 500 * 30 * 10_000  # each test of each event saw it


def test_one_owner_that_floods_keeps_nobody_else_waiting(api, monkeypatch):
    bob, ann = api.make_key("bob", "read"), api.make_key("ann", "read")
    begun, may_go_on = threading.Event(), threading.Event()
    sample = RecentFiles.sample

    def sample_slowly(recent, now):
        if not begun.is_set():  # only the first
            begun.set()
            assert may_go_on.wait(60)
        return sample(recent, now)

    monkeypatch.setattr(RecentFiles, "sample", sample_slowly)
    put(api, [{"id": "e", "a": 1}])

    async def ask(key, method, path, **request):
        headers = {"Authorization": f"Bearer {key}"}
        return await api.client.request(method, path, headers=headers, **request)

    def estimate(key):
        return ask(key, "POST", "/v1/subscriptions:estimate", json={"filter": "a = 1"})

    async def flood():
        first = asyncio.create_task(estimate(bob))
        await asyncio.to_thread(begun.wait, 60)
        flood = [asyncio.create_task(estimate(bob)) for _ in range(50)]  # more than all threads of the loop
        others = [
            await estimate(ann),
            await ask(ann, "GET", "/v1/subscriptions"),
            await ask(bob, "GET", "/v1/stream?x"),
        ]
        may_go_on.set()
        return others, await asyncio.gather(first, *flood)

    others, answers = api.runner.run(flood())
    assert [answer.status_code for answer in others] == [200, 200, 400]
    assert others[0].json()["matches"] == 1
    refusals = [answer for answer in answers if answer.status_code != 200]
    assert 40 < len(refusals) < 50
    for refusal in refusals:
        check_problem(refusal, 503)
        assert int(refusal.headers["retry-after"]) > 0
