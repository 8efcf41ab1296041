"""Subscriptions over HTTP: what is created is there, whatever its id, and changes are whole or refused."""

import re
from dataclasses import replace
from itertools import count
from urllib.parse import quote

import pytest
from tests.service.api.asking import ENDLESS, check_problem, to_lines

import tidings as td
from tidings.concepts import Vocabulary
from tidings.model import Schema
from tidings.service.api.cursors import write_cursor
from tidings.service.checking import MODEL_FILE
from tidings.service.settings import ServiceSettings
from tidings.service.store.base import OwnerRules

PATTERN = "a = kind = 'a'\nb = kind = 'b'\na ; b within 5 min"
SECRET = "whsec_" + "QUJD" * 8
HOOK = {"transport": "webhook", "url": "https://example.org/hook", "secret": SECRET}


def locate(id):
    return f"/v1/subscriptions/{quote(id, safe='')}"


def test_what_was_created_is_read_with_the_same_tag(api):
    created = api.post("/v1/subscriptions", json={"id": "s1", "filter": "make = 'ford'", "labels": ["cars"]})
    assert created.status_code == 201
    assert created.headers["location"] == "/v1/subscriptions/s1"
    read = api.get(created.headers["location"])
    assert read.status_code == 200
    assert read.json() == created.json()
    assert read.headers["etag"] == created.headers["etag"]
    assert read.json()["filter"] == "make = 'ford'"
    assert read.json()["status"] == "active"
    assert read.json()["revision"] == 1


def test_a_subscription_without_an_id_is_given_one(api):
    first, second = (api.post("/v1/subscriptions", json={"filter": "a = 1"}).json()["id"] for _ in range(2))
    assert first != second
    assert api.ids() == sorted([first, second])


@pytest.mark.parametrize(
    "id", ["a/b", "a:pause", ":pause", "x:import", "a b", "ü☃", "...", "a%2Fb", "a?b#c", "'; drop--", "a\\b"]
)
def test_any_printable_id_is_created_read_changed_and_removed(api, id):
    api.create(id)
    assert api.get(locate(id)).json()["id"] == id
    assert api.post(f"{locate(id)}:pause").json()["status"] == "paused"
    assert api.post(f"{locate(id)}:resume").json()["status"] == "active"
    assert api.put(locate(id), json={"filter": "b = 2"}).json()["filter"] == "b = 2"
    assert api.patch(locate(id), json={"name": "n"}).json()["name"] == "n"
    assert api.ids() == [id]
    assert api.delete(locate(id)).status_code == 204
    check_problem(api.get(locate(id)), 404)


@pytest.mark.parametrize("id", ["", " a", "a\n", "a\x00", ".", "..", "x" * 201, 5])
def test_an_id_that_cannot_be_one_is_refused(api, id):
    check_problem(api.post("/v1/subscriptions", json={"id": id, "filter": "a = 1"}), 422)


def test_an_id_is_taken_once_for_each_owner(api):
    bob = api.make_key("bob", "read", "write")
    api.create("s1")
    check_problem(api.post("/v1/subscriptions", json={"id": "s1", "filter": "b = 1"}), 409)
    api.create("s1", "b = 2", key=bob)
    assert api.get("/v1/subscriptions/s1").json()["filter"] == "price < 9000"
    assert api.get("/v1/subscriptions/s1", key=bob).json()["filter"] == "b = 2"


def test_every_notation_comes_back_as_it_was_written(api):
    tree = {"and": [{"attr": "a", "op": "=", "value": 1}, {"attr": "b", "op": "exists"}]}
    assert api.create("j", tree)["filter"] == tree
    assert api.create("j2", '{"attr": "a", "op": "=", "value": 1}', notation="json")["notation"] == "json"
    assert api.create("u", "make=ford&price_to=9000", notation="url")["filter"] == "make=ford&price_to=9000"
    assert api.create("t", "a  =  1")["filter"] == "a  =  1"


def test_all_mistakes_come_together_with_their_places(api):
    answer = api.post(
        "/v1/subscriptions",
        json={"id": 3, "filter": "price < and x = 1", "labels": [""], "expires_at": "2020-01-01", "nmae": "x"},
    )
    body = check_problem(answer, 422)
    places = {error["field"]: error["at"] for error in body["errors"]}
    assert places["filter"] == 8
    assert places.keys() == {"id", "filter", "labels", "expires_at", "nmae"}
    assert {"did you mean `name`?"} <= {error["hint"] for error in body["errors"]}


def test_filters_are_held_against_the_services_schema(make_api):
    vocabulary = Vocabulary(schema=Schema({"price": "number", "city": "text"}))
    api = make_api(settings=ServiceSettings(vocabulary=vocabulary))
    body = check_problem(api.post("/v1/subscriptions", json={"filter": "price < 3 and cty = 'Bern'"}), 422)
    [error] = body["errors"]
    assert (error["at"], error["length"], error["hint"]) == (14, 3, "did you mean `city`?")
    check_problem(api.post("/v1/subscriptions", json={"filter": "price = 'cheap'"}), 422)


def test_no_refusal_names_another_subscription(api):
    api.create("secret-name", "a = 1")
    for filter in ("a = 'text' and", "a near (1, 2) 5 parsecs", "a is a 'nothing'"):
        answer = api.post("/v1/subscriptions", json={"id": "mine", "filter": filter})
        assert "secret-name" not in answer.text


@pytest.mark.parametrize(
    ("members", "kind", "status"),
    [
        ({"pattern": PATTERN}, "pattern", "active"),
        ({"pattern": PATTERN, "mode": "any"}, "pattern", "active"),
        ({"pattern": PATTERN, "horizon": "10 own events", "threshold": 0.6}, "forecast", "learning"),
        ({"pattern": PATTERN, "horizon": 10}, "forecast", "learning"),
        ({"pattern": PATTERN, "horizon": "5 min", "status": "paused"}, "forecast", "paused"),
    ],
)
def test_patterns_and_forecasts_are_subscriptions_too(api, members, kind, status):
    answer = api.post("/v1/subscriptions", json={"id": "p", **members})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["kind"], answer.json()["status"]) == (kind, status)
    assert api.get("/v1/subscriptions/p").json() == answer.json()


def test_a_forecast_that_was_paused_goes_on_learning(api):
    api.post("/v1/subscriptions", json={"id": "p", "pattern": PATTERN, "horizon": "10 own events"})
    assert api.post("/v1/subscriptions/p:pause").json()["status"] == "paused"
    assert api.post("/v1/subscriptions/p:resume").json()["status"] == "learning"


def test_a_forecast_of_a_bounded_owner_is_active_when_the_model_knows_the_pattern_within_the_bound(make_api, tmp_path):
    owners = {owner: OwnerRules(owner=owner, only=f"country = '{owner}'") for owner in ("ch", "de")}
    api = make_api(settings=ServiceSettings(data=tmp_path, owners=owners))
    watch = td.Detector()
    watch.add("p", PATTERN.replace("'a'", "'a' and country = 'ch'").replace("'b'", "'b' and country = 'ch'"))
    history = [{"id": n, "time": n, "kind": "ab"[n % 2], "country": "ch"} for n in range(20)]
    td.train(watch, history).save(tmp_path / MODEL_FILE)
    for owner, status in (("ch", "active"), ("de", "learning")):
        forecast = {"pattern": PATTERN, "horizon": "10 own events"}
        request = {"params": {"owner": owner}}
        assert api.post("/v1/subscriptions", json={"id": "p", **forecast}, **request).json()["status"] == status
        api.post("/v1/subscriptions/p:pause", **request)
        assert api.post("/v1/subscriptions/p:resume", **request).json()["status"] == status
        lines = {"content": to_lines([{"id": "q", **forecast}]), "headers": {"Content-Type": "application/x-ndjson"}}
        assert api.post("/v1/subscriptions:import", **lines, **request).json()["imported"] == 1
        assert api.get("/v1/subscriptions/q", **request).json()["status"] == status


@pytest.mark.parametrize(
    "members",
    [
        {"filter": "a = 1", "pattern": PATTERN},
        {},
        {"filter": "a = 1", "mode": "any"},
        {"filter": "a = 1", "horizon": 5},
        {"filter": "a = 1", "threshold": 0.5},
        {"pattern": PATTERN, "mode": "some"},
        {"pattern": PATTERN, "mode": ["any"]},
        {"pattern": PATTERN, "horizon": "10 parsecs"},
        {"pattern": PATTERN, "horizon": 0},
        {"pattern": PATTERN, "horizon": 5, "threshold": 1.5},
        {"pattern": PATTERN, "horizon": 5, "threshold": "high"},
        {"pattern": "a ; b"},
        {"pattern": PATTERN, "notation": "url"},
        {"filter": "a = 1", "notation": "xml"},
        {"filter": 5},
        {"filter": "a = 1", "status": "gone"},
        {"filter": "a = 1", "name": "x" * 201},
        {"filter": "a = 1", "name": "a\x00b"},
        {"filter": "a = 1", "labels": "cars"},
        {"filter": "a = 1", "labels": ["x"] * 33},
        {"filter": "a = 1", "expires_at": "soon"},
        {"filter": "a = 1", "expires_at": 17},
        {"filter": "a = 1", "owner": "somebody"},
        {"filter": "a = 'x\x00y'"},
        {"filter": "a = 1 and " * 30_000},
    ],
)
def test_what_makes_no_subscription_is_refused(api, members):
    check_problem(api.post("/v1/subscriptions", json={"id": "s1", **members}), 422)
    check_problem(api.put("/v1/subscriptions/s1", json=members), 422)
    assert api.ids() == []


def test_somebody_who_was_second_is_told_so(api):
    tag = api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1"}).headers["etag"]
    newer = api.put("/v1/subscriptions/s1", json={"filter": "a = 2"}, headers={"If-Match": tag}).headers["etag"]
    assert newer != tag
    for method, body in (("PUT", {"filter": "a = 3"}), ("PATCH", {"name": "n"}), ("DELETE", None)):
        check_problem(api.ask(method, "/v1/subscriptions/s1", json=body, headers={"If-Match": tag}), 412)
    for verb in ("pause", "resume"):
        check_problem(api.post(f"/v1/subscriptions/s1:{verb}", headers={"If-Match": tag}), 412)
    assert api.get("/v1/subscriptions/s1").json()["filter"] == "a = 2"
    assert api.delete("/v1/subscriptions/s1", headers={"If-Match": f'"other", {newer}'}).status_code == 204


def test_an_id_that_is_used_again_has_another_tag(api):
    tag = api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1"}).headers["etag"]
    api.delete("/v1/subscriptions/s1")
    api.time.pass_time(1)
    again = api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 2"})
    assert again.json()["revision"] == 1
    assert again.headers["etag"] != tag
    check_problem(api.delete("/v1/subscriptions/s1", headers={"If-Match": tag}), 412)


def test_what_is_still_the_same_is_not_sent_again(api):
    tag = api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1"}).headers["etag"]
    answer = api.get("/v1/subscriptions/s1", headers={"If-None-Match": f"W/{tag}"})
    assert (answer.status_code, answer.content) == (304, b"")
    api.patch("/v1/subscriptions/s1", json={"name": "n"})
    assert api.get("/v1/subscriptions/s1", headers={"If-None-Match": tag}).status_code == 200


def test_put_creates_replaces_and_only_creates_where_that_is_asked(api):
    only_new = {"If-None-Match": "*"}
    assert api.put("/v1/subscriptions/s1", json={"filter": "a = 1"}, headers=only_new).status_code == 201
    check_problem(api.put("/v1/subscriptions/s1", json={"filter": "a = 2"}, headers=only_new), 412)
    assert api.put("/v1/subscriptions/s1", json={"filter": "a = 3", "name": "n"}).status_code == 200
    assert api.put("/v1/subscriptions/s1", json={"filter": "a = 4"}).json()["name"] is None
    check_problem(api.put("/v1/subscriptions/s2", json={"filter": "a = 1"}, headers={"If-Match": "*"}), 412)


def test_what_was_read_can_be_put_back(api):
    api.post(
        "/v1/subscriptions", json={"id": "p", "pattern": PATTERN, "horizon": 5, "labels": ["x"], "status": "paused"}
    )
    before = api.get("/v1/subscriptions/p").json()
    after = api.put("/v1/subscriptions/p", json={k: v for k, v in before.items() if v is not None}).json()
    written = {"created_at", "changed_at", "revision"}
    assert {k: v for k, v in after.items() if k not in written} == {k: v for k, v in before.items() if k not in written}


def test_a_patch_changes_what_it_names(api):
    before = api.create("s1", name="n", labels=["a"], expires_at="2031-01-01T00:00:00Z")
    after = api.patch("/v1/subscriptions/s1", json={"labels": ["b"], "name": None}).json()
    assert after["labels"] == ["b"]
    assert after["name"] is None
    assert (after["filter"], after["expires_at"]) == (before["filter"], before["expires_at"])
    tree = {"attr": "a", "op": "=", "value": 1}
    assert api.patch("/v1/subscriptions/s1", json={"filter": tree}).json()["filter"] == tree
    assert api.patch("/v1/subscriptions/s1", json={"filter": "b = 2"}).json()["notation"] == "text"
    assert api.patch("/v1/subscriptions/s1", json={"pattern": PATTERN}).json()["kind"] == "pattern"
    check_problem(api.patch("/v1/subscriptions/s1", json={"pattern": None}), 422)
    check_problem(api.patch("/v1/subscriptions/s1", json=[1]), 422)
    check_problem(api.patch("/v1/subscriptions/s2", json={}), 404)


def test_a_request_that_comes_again_gets_the_same_answer(api):
    body, headers = {"filter": "a = 1"}, {"Idempotency-Key": "k1"}
    first = api.post("/v1/subscriptions", json=body, headers=headers)
    api.time.pass_time(5)
    second = api.post("/v1/subscriptions", json=body, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert first.headers["etag"] == second.headers["etag"]
    assert first.headers["location"] == second.headers["location"]
    assert len(api.ids()) == 1
    check_problem(api.post("/v1/subscriptions", json={"filter": "a = 2"}, headers=headers), 422)
    bob = api.make_key("bob", "write")
    assert api.post("/v1/subscriptions", json=body, headers=headers, key=bob).json()["id"] != first.json()["id"]
    check_problem(api.post("/v1/subscriptions", json=body, headers={"Idempotency-Key": "x" * 201}), 400)


def test_the_same_answer_comes_also_after_the_subscription_changed(api):
    body, headers = {"id": "s1", "filter": "a = 1"}, {"Idempotency-Key": "k1"}
    first = api.post("/v1/subscriptions", json=body, headers=headers)
    api.put("/v1/subscriptions/s1", json={"filter": "a = 2"})
    second = api.post("/v1/subscriptions", json=body, headers=headers)
    assert (second.status_code, second.json(), second.headers["etag"]) == (201, first.json(), first.headers["etag"])


def test_the_same_answer_comes_also_after_its_time_has_come(api):
    body, headers = {"filter": "a = 1", "expires_at": "2030-01-01T00:01:00Z"}, {"Idempotency-Key": "k1"}
    first = api.post("/v1/subscriptions", json=body, headers=headers)
    api.time.pass_time(61)
    second = api.post("/v1/subscriptions", json=body, headers=headers)
    assert (second.status_code, second.json()) == (201, first.json())
    check_problem(api.post("/v1/subscriptions", json=body, headers={"Idempotency-Key": "k2"}), 422)
    check_problem(api.post("/v1/subscriptions", json=body | {"name": "n"}, headers=headers), 422)


def test_lists_are_filtered_and_go_on_where_they_ended(api):
    for number in range(7):
        api.create(f"s{number}", f"a = {number}", labels=["even"] if number % 2 == 0 else [], name=f"Name {number}")
    api.post("/v1/subscriptions/s3:pause")
    assert api.ids(label="even") == ["s0", "s2", "s4", "s6"]
    assert api.ids(status="paused") == ["s3"]
    assert api.ids(q="NAME 5") == ["s5"]
    assert api.ids(q="a = 6") == ["s6"]
    pages, cursor = [], None
    while True:
        params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = api.get("/v1/subscriptions", params=params).json()
        pages.append([row["id"] for row in page["subscriptions"]])
        if (cursor := page["next"]) is None:
            break
    assert pages == [["s0", "s1", "s2"], ["s3", "s4", "s5"], ["s6"]]


@pytest.mark.parametrize("params", [{}, {"label": "even"}, {"status": "active"}, {"q": "kept"}])
def test_what_stays_is_listed_once_however_the_list_changes_between_two_pages(api, params):
    def create(number):
        api.create(f"s{number:02}", labels=["even"] if number % 2 == 0 else [], name="kept")

    for number in range(0, 40, 2):
        create(number)
    kept = {f"s{number:02}" for number in range(0, 40, 2)}
    listed, query = [], params | {"limit": 4}
    for place in count(0, 8):
        page = api.get("/v1/subscriptions", params=query).json()
        listed += [row["id"] for row in page["subscriptions"]]
        if page["next"] is None:
            break
        query = params | {"limit": 4, "cursor": page["next"]}
        if place < 40:
            changed = {
                listed[-1],
                f"s{place:02}",
                f"s{(place + 14) % 40:02}",
            }  # that of the cursor, one before or after
            kept -= changed
            api.post(f"/v1/subscriptions/{changed.pop()}:pause")
            for id in changed:
                api.delete(f"/v1/subscriptions/{id}")
            for number in (place + 1, 39 - place):
                create(number)
    assert len(listed) == len(set(listed))
    assert listed == sorted(listed)
    assert kept <= set(listed)


@pytest.mark.parametrize(
    "params",
    [
        {"limit": 0},
        {"limit": 1001},
        {"limit": "many"},
        {"status": "lost"},
        {"lable": "x"},
        {"q": ""},
        {"label": "x" * 65},
    ],
)
def test_a_query_that_cannot_be_is_refused(api, params):
    check_problem(api.get("/v1/subscriptions", params=params), 400)


def test_a_parameter_comes_once(api):
    check_problem(api.get("/v1/subscriptions?limit=1&limit=2"), 400)
    check_problem(api.get("/v1/subscriptions?q=%ff"), 400)


def test_a_cursor_is_only_good_for_its_list(api):
    for number in range(3):
        api.create(f"s{number}")
    cursor = api.get("/v1/subscriptions", params={"limit": 1}).json()["next"]
    bob = api.make_key("bob", "read")
    check_problem(api.get("/v1/subscriptions", params={"cursor": cursor}, key=bob), 400)
    check_problem(api.get("/v1/audit", params={"cursor": cursor}), 400)
    for place in range(len(cursor)):
        other = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
        check_problem(api.get("/v1/subscriptions", params={"cursor": other}), 400)
    for forged in ("x", "AAAA", cursor + "=", cursor[:-1], "W10", "ü" * 20, "' or 1=1 --", "A" * 1999):
        check_problem(api.get("/v1/subscriptions", params={"cursor": forged}), 400)


@pytest.mark.parametrize(
    "place", [[], 5, None, {"a": 1}, ["x"], ["admin"], ["admin", ["a"]], ["a", "\0"], [1, 2, 3], [True], [-1]]
)
@pytest.mark.parametrize(
    ("path", "subject"),
    [
        ("/v1/subscriptions", "subscriptions of admin"),
        ("/v1/audit", "audit of admin"),
        ("/v1/subscriptions/s1/matches", "matches of admin/s1"),
    ],
)
def test_a_cursor_that_somebody_made_is_refused_where_it_is_no_place(api, path, subject, place):
    api.create("s1")
    check_problem(api.get(path, params={"cursor": write_cursor(subject, place)}), 400)


def test_pausing_twice_is_pausing_once(api):
    api.create("s1")
    first = api.post("/v1/subscriptions/s1:pause")
    assert api.post("/v1/subscriptions/s1:pause").headers["etag"] == first.headers["etag"]
    check_problem(api.post("/v1/subscriptions/s2:pause"), 404)


def test_what_has_expired_is_not_resumed(api):
    api.create("s1", expires_at="2030-01-01T00:01:00Z")
    api.time.pass_time(61)
    api.store.subscriptions.expire(api.time.now())
    assert api.get("/v1/subscriptions/s1").json()["status"] == "expired"
    check_problem(api.post("/v1/subscriptions/s1:resume"), 409)
    check_problem(api.patch("/v1/subscriptions/s1", json={"status": "active"}), 422)
    check_problem(api.patch("/v1/subscriptions/s1", json={"expires_at": "2030-01-01T00:01:00Z"}), 422)
    renewed = api.patch("/v1/subscriptions/s1", json={"expires_at": "2031-01-01T00:00:00+01:00"}).json()
    assert (renewed["status"], renewed["expires_at"]) == ("active", "2030-12-31T23:00:00Z")


def test_what_has_expired_is_renamed_and_stays_expired(api):
    api.create("s1", expires_at="2030-01-01T00:01:00Z")
    api.time.pass_time(61)
    api.store.subscriptions.expire(api.time.now())
    renamed = api.patch("/v1/subscriptions/s1", json={"name": "n"})
    assert renamed.status_code == 200
    assert (renamed.json()["name"], renamed.json()["status"]) == ("n", "expired")
    assert api.get("/v1/subscriptions/s1").json()["expires_at"] == "2030-01-01T00:01:00Z"


@pytest.mark.parametrize("status", ["expired", "learning"])
def test_a_status_that_the_service_writes_is_not_set(api, status):
    api.create("s1")
    for answer in (
        api.post("/v1/subscriptions", json={"id": "s2", "filter": "a = 1", "status": status}),
        api.put("/v1/subscriptions/s1", json={"filter": "a = 1", "status": status}),
        api.patch("/v1/subscriptions/s1", json={"status": status}),
    ):
        (error,) = check_problem(answer, 422)["errors"]
        assert error["field"] == "status"
        assert "`active` or `paused`" in error["message"]
    assert api.get("/v1/subscriptions/s1").json()["revision"] == 1


def test_a_forecast_that_is_learning_can_be_put_back(api):
    api.post("/v1/subscriptions", json={"id": "p", "pattern": PATTERN, "horizon": 5})
    read = api.get("/v1/subscriptions/p").json()
    assert read["status"] == "learning"
    assert api.put("/v1/subscriptions/p", json={k: v for k, v in read.items() if v is not None}).status_code == 200


def test_another_tag_in_if_none_match_is_no_hindrance(api):
    tag = api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1"}).headers["etag"]
    check_problem(api.put("/v1/subscriptions/s1", json={"filter": "a = 2"}, headers={"If-None-Match": tag}), 412)
    other = {"If-None-Match": '"other"'}
    replaced = api.put("/v1/subscriptions/s1", json={"filter": "a = 2"}, headers=other)
    assert (replaced.status_code, replaced.json()["revision"]) == (200, 2)
    assert api.put("/v1/subscriptions/s2", json={"filter": "a = 2"}, headers=other).status_code == 201


def test_what_could_not_be_stored_is_refused_whatever_the_condition(api):
    api.create("s1")
    for headers in ({"If-Match": '"other"'}, {"If-None-Match": "*"}):
        check_problem(api.put("/v1/subscriptions/s1", json={"filter": "a >"}, headers=headers), 422)
    check_problem(api.patch("/v1/subscriptions/s1", json={"filter": "a >"}, headers={"If-Match": '"other"'}), 422)


def test_a_key_of_idempotency_has_spaces_in_the_document_as_it_may(api):
    operation = api.get("/openapi.json").json()["paths"]["/v1/subscriptions"]["post"]
    (schema,) = (p["schema"] for p in operation["parameters"] if p["name"] == "Idempotency-Key")
    for key in ("k", "my order 17", "~ !"):
        assert re.search(schema["pattern"], key)
        headers = {"Idempotency-Key": key}
        assert api.post("/v1/subscriptions", json={"filter": "a = 1"}, headers=headers).status_code == 201
    assert not re.search(schema["pattern"], "ü")


# Deliveries ----------------------------------------------------------------------------------------------


def test_a_secret_is_kept_and_never_shown(api):
    created = api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1", "delivery": HOOK})
    assert created.json()["delivery"] == {
        "transport": "webhook",
        "url": HOOK["url"],
        "schedule": "immediate",
        "group": "subscription",
    }
    answers = [
        created,
        api.get("/v1/subscriptions/s1"),
        api.get("/v1/subscriptions"),
        api.get("/v1/subscriptions:export"),
    ]
    assert not any(SECRET in answer.text for answer in answers)
    assert api.store.subscriptions.get("admin", "s1").delivery["secret"] == SECRET


def find_secret(api):
    return (api.store.subscriptions.get("admin", "s1").delivery or {}).get("secret")


def test_a_secret_stays_with_its_address_and_goes_with_it(api):
    api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1", "delivery": HOOK})
    shown = api.get("/v1/subscriptions/s1").json()["delivery"]
    api.put("/v1/subscriptions/s1", json={"filter": "a = 2", "delivery": shown})
    assert find_secret(api) == SECRET
    api.patch("/v1/subscriptions/s1", json={"delivery": {"schedule": "every 5 min"}})
    assert find_secret(api) == SECRET
    api.put("/v1/subscriptions/s1", json={"filter": "a = 2", "delivery": shown | {"url": "https://evil.example/"}})
    assert find_secret(api) is None


def test_a_patch_to_another_address_takes_no_secret_along(api):
    api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1", "delivery": HOOK})
    api.patch("/v1/subscriptions/s1", json={"delivery": {"url": "https://evil.example/"}})
    assert find_secret(api) is None


def test_a_patch_to_another_transport_leaves_the_options_of_the_one_before(api):
    api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1", "delivery": HOOK | {"schedule": "every 5 min"}})
    change = {"delivery": {"transport": "email", "to": "ada@example.org"}}
    changed = api.patch("/v1/subscriptions/s1", json=change)
    assert changed.status_code == 200, changed.text
    assert changed.json()["delivery"] == change["delivery"] | {"schedule": "every 5 min", "group": "subscription"}
    assert api.patch("/v1/subscriptions/s1", json={"delivery": {"transport": "stream"}}).status_code == 200
    assert find_secret(api) is None


def test_a_secret_can_be_taken_away(api):
    api.post("/v1/subscriptions", json={"id": "s1", "filter": "a = 1", "delivery": HOOK})
    api.patch("/v1/subscriptions/s1", json={"delivery": {"secret": None}})
    assert find_secret(api) is None
    assert api.patch("/v1/subscriptions/s1", json={"delivery": None}).json()["delivery"] is None


def test_what_is_wrong_with_a_delivery_is_said_without_its_secret(api):
    bad = {"transport": "webhook", "url": "ftp://user:pass@x", "secret": "whsec_hunter2", "shedule": "immediate"}
    body = check_problem(api.post("/v1/subscriptions", json={"filter": "a = 1", "delivery": bad}), 422)
    assert {error["field"] for error in body["errors"]} == {"delivery.url", "delivery.secret", "delivery.shedule"}
    assert "hunter2" not in str(body)
    assert "pass" not in str(body).replace("password", "")


# Owners ----------------------------------------------------------------------------------------------------


def test_an_administrator_acts_for_any_owner(api):
    bob = api.make_key("bob", "read", "write")
    api.create("b1", key=bob)
    api.create("b2", params={"owner": "bob"})
    api.create("a1")
    assert api.ids() == ["a1"]
    assert api.ids(owner="bob") == ["b1", "b2"]
    assert api.ids(owner="*") == ["a1", "b1", "b2"]
    assert api.get("/v1/subscriptions/b2", key=bob).json()["owner"] == "bob"
    assert api.delete("/v1/subscriptions/b1", params={"owner": "bob"}).status_code == 204
    check_problem(api.get("/v1/subscriptions/b2", params={"owner": "*"}), 400)
    check_problem(api.get("/v1/subscriptions", params={"owner": "a/b"}), 400)
    check_problem(api.get("/v1/subscriptions", params={"owner": "admin"}, key=bob), 403)


def test_an_owner_has_as_many_subscriptions_as_allowed(make_api):
    rules = {"bob": OwnerRules(owner="bob", subscriptions=2, filter_bytes=20)}
    api = make_api(settings=ServiceSettings(owners=rules), limits=replace(ENDLESS, subscriptions=3))
    bob = api.make_key("bob", "read", "write")
    for number in range(2):
        api.create(f"s{number}", "a = 1", key=bob)
    check_problem(api.post("/v1/subscriptions", json={"filter": "a = 1"}, key=bob), 403)
    check_problem(api.put("/v1/subscriptions/s9", json={"filter": "a = 1"}, key=bob), 403)
    assert api.put("/v1/subscriptions/s1", json={"filter": "a = 2"}, key=bob).status_code == 200
    check_problem(api.put("/v1/subscriptions/s1", json={"filter": "a = 'more than 20 bytes'"}, key=bob), 422)
    check_problem(api.post("/v1/subscriptions", json={"filter": "a = 1"}, params={"owner": "bob"}), 403)
    for number in range(3):
        api.create(f"s{number}")
    check_problem(api.post("/v1/subscriptions", json={"filter": "a = 1"}), 403)
