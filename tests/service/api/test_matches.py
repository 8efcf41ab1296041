"""The latest matches of a subscription: newest first, page by page, with everything that an event brought."""

import pytest
from tests.service.api.asking import check_problem
from tests.service.api.streaming import StreamClient

from tidings.service.api.routes.stream import get_hub
from tidings.service.store.base import OwnerRules
from tidings.service.store.opening import open_store
from tidings.service.subscription import MatchRow


@pytest.fixture(params=["memory", "sqlite"])
def api(make_api, tmp_path, request):
    store = None if request.param == "memory" else open_store(f"sqlite:///{tmp_path}/store.db")
    api = make_api(store=store)
    api.create("s1", params={"owner": "shop"})
    api.create("s1", params={"owner": "bank"})
    yield api
    if store is not None:
        store.close()


def write(api, rows, *, batch=1):
    at = api.time.now()
    matches = [MatchRow(**({"owner": "shop", "subscription": "s1", "kind": "match", "at": at} | row)) for row in rows]
    api.store.matches.write("matching", batch, matches, at=at, keep=1000)


def test_pages_go_back_in_time_and_none_is_shown_twice(api):
    write(api, [{"event": f"e{n}"} for n in range(7)])
    key = api.make_key("shop", "read")
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = api.get("/v1/subscriptions/s1/matches", params=params, key=key).json()
        if pages == 0:
            write(api, [{"event": "newer"}], batch=2)
        seen += [match["event"] for match in page["matches"]]
        cursor, pages = page["next"], pages + 1
    assert (seen, pages) == ([f"e{n}" for n in range(6, -1, -1)], 3)
    assert api.get("/v1/subscriptions/s1/matches", key=key).json()["matches"][0]["event"] == "newer"


def test_a_match_a_detection_and_a_forecast_show_what_they_have(api):
    values = {"id": "e1", "price": 10**30, "data_base64": "AAE=", "nested": {"a": [1.5, None]}}
    write(
        api,
        [
            {"event": "e1", "values": values},
            {"kind": "detection", "events": ("e1", "e2"), "values": {"x": "a"}},
            {"kind": "forecast", "probability": 0.75, "event": "e3"},
        ],
    )
    forecast, detection, match = api.get("/v1/subscriptions/s1/matches", params={"owner": "shop"}).json()["matches"]
    at = "2030-01-01T00:00:00Z"
    assert match == {"kind": "match", "event": "e1", "at": at, "values": values}
    assert detection == {"kind": "detection", "events": ["e1", "e2"], "at": at, "values": {"x": "a"}}
    assert forecast == {"kind": "forecast", "event": "e3", "probability": 0.75, "at": at, "values": {}}


def test_matches_of_others_and_forged_cursors_are_refused(api):
    write(api, [{"event": "e1"}, {"event": "e2"}])
    bank = api.make_key("bank", "read")
    assert api.get("/v1/subscriptions/s1/matches", key=bank).json() == {"matches": [], "next": None}
    params = {"owner": "shop", "limit": 1}
    cursor = api.get("/v1/subscriptions/s1/matches", params=params).json()["next"]
    check_problem(api.get("/v1/subscriptions/s1/matches", params={"cursor": cursor}, key=bank), 400)
    for forged in ("x", cursor[:-2], cursor + "A", "é"):
        check_problem(api.get("/v1/subscriptions/s1/matches", params=params | {"cursor": forged}), 400)
    check_problem(api.get("/v1/subscriptions/none/matches", key=bank), 404)
    check_problem(api.get("/v1/subscriptions/s1/matches", key=bank, params={"owner": "shop"}), 403)
    check_problem(api.get("/v1/subscriptions/s1/matches", key=api.make_key("shop", "publish")), 403)
    for limit in ("0", "501", "x"):
        check_problem(api.get("/v1/subscriptions/s1/matches", params={"limit": limit, "owner": "shop"}), 400)


def test_what_was_kept_before_a_bound_became_narrower_is_not_shown(api):
    write(api, [{"event": f"e{n}", "values": {"id": f"e{n}", "region": region}} for n, region in enumerate("zbzb")])
    detections = [{"kind": "detection", "values": {"events": [{"region": "z"}, {"region": end}]}} for end in "zb"]
    write(api, [*detections, {"kind": "forecast", "probability": 1.0}], batch=2)
    key = api.make_key("shop", "read")
    assert len(api.get("/v1/subscriptions/s1/matches", key=key).json()["matches"]) == 7
    api.store.owners.set([OwnerRules(owner="shop", only="region = 'z'")], actor="test", at=api.time.now())
    api.time.pass_time(2)
    page = api.get("/v1/subscriptions/s1/matches", key=key).json()
    assert [(match["kind"], match.get("event")) for match in page["matches"]] == [
        ("forecast", None),
        ("detection", None),
        ("match", "e2"),
        ("match", "e0"),
    ]
    first = api.get("/v1/subscriptions/s1/matches", key=key, params={"limit": 2}).json()
    assert len(first["matches"]) == 1
    second = api.get("/v1/subscriptions/s1/matches", key=key, params={"limit": 5, "cursor": first["next"]}).json()
    assert [match.get("event") for match in second["matches"]] == [None, "e2", "e0"]

    async def follow():
        async with StreamClient(api, key=key, last_id=0) as client:
            write(
                api, [{"event": "e8", "values": {"region": "b"}}, {"event": "e9", "values": {"region": "z"}}], batch=3
            )
            await client.until(lambda: len(client.matches) == 5)
            assert [match.get("event") for _, match in client.matches] == ["e0", "e2", None, None, "e9"]
        await get_hub(api.state).close()

    api.runner.run(follow())
