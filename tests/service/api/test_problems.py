"""What is refused is refused clearly: hostile bodies, paths and words, and failures that say nothing of themselves."""

import logging
from dataclasses import replace

import pytest
from tests.service.api.asking import ENDLESS, LINES, check_problem

from tidings.service.settings import ServiceSettings
from tidings.service.store.base import OwnerRules, StatusReport, StoreBusy, StoreError

SQL = "'; DROP TABLE subscriptions; --"
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v2/subscriptions",
        "/v1/subscriptions/",
        "/v1/subscriptions/a/b",
        "/docs",
        "//",
        "/v1//x",
        "/%00",
        "/v1/subscriptions:exportx",
    ],
)
def test_a_path_that_is_none_is_a_problem(api, path):
    check_problem(api.get(path), 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/v1/subscriptions"),
        ("POST", "/v1/subscriptions/s1"),
        ("GET", "/v1/subscriptions/s1:pause/x"),
        ("PUT", "/healthz"),
        ("TRACE", "/v1/subscriptions"),
        ("OPTIONS", "/v1/subscriptions"),
    ],
)
def test_a_method_that_is_none_says_which_there_are(api, method, path):
    answer = api.ask(method, path)
    if answer.status_code == 404:
        return
    check_problem(answer, 405)
    assert answer.headers["allow"]


def test_head_is_get_without_a_body(api):
    assert api.ask("HEAD", "/healthz").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"a": NaN}',
        b"\xff\xfe",
        b'{"id": "\xc3\x28"}',
        b'{"a": "\\ud800"}',
        b"{'a': 1}",
        b"[1, 2",
        b'{"a": 1}x',
        "{}".encode("utf-16"),
    ],
)
def test_a_body_that_is_no_json_is_refused(api, body):
    for path in ("/v1/subscriptions", "/v1/subscriptions:validate", "/v1/keys"):
        check_problem(api.post(path, content=body, headers=JSON), 400)


@pytest.mark.parametrize("body", [b"[]", b"5", b'"x"', b"null", b"true"])
def test_a_body_that_is_no_object_is_refused(api, body):
    check_problem(api.post("/v1/subscriptions", content=body, headers=JSON), 422)
    check_problem(api.put("/v1/subscriptions/s1", content=body, headers=JSON), 422)
    check_problem(api.patch("/v1/subscriptions/s1", content=body, headers=JSON), 422)


@pytest.mark.parametrize("depth", [33, 1_000, 200_000])
def test_deep_json_is_refused(api, depth):
    for opening, closing in ((b"[", b"]"), (b'{"and":[', b"]}")):
        body = b'{"filter":' + opening * depth + closing * depth + b"}"
        check_problem(api.post("/v1/subscriptions", content=body, headers=JSON), 400)
        answer = api.post("/v1/subscriptions:import", content=body, headers=LINES)
        check_problem(answer, 422 if len(body) < 8_000_000 else 413)


def test_a_body_of_ten_megabytes_is_refused_however_it_comes(api):
    body = b'{"filter": "' + b"x" * 10_000_000 + b'"}'

    async def come_in_pieces():
        for begin in range(0, len(body), 65_536):
            yield body[begin : begin + 65_536]

    answer = api.post("/v1/subscriptions", content=body, headers=JSON)
    check_problem(answer, 413)
    assert answer.headers["connection"] == "close"
    check_problem(api.post("/v1/subscriptions", content=come_in_pieces(), headers=JSON), 413)
    assert api.get("/healthz").status_code == 200


def test_a_line_of_ten_megabytes_is_refused(api):
    check_problem(api.post("/v1/subscriptions:import", content=b"x" * 10_000_000, headers=LINES), 413)


def test_an_import_has_a_limit_too(make_api):
    api = make_api(limits=replace(ENDLESS, import_body=1_000))
    check_problem(api.post("/v1/subscriptions:import", content=b"\n" * 1_001, headers=LINES), 413)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/xml", "application/json; charset=latin-1", "multipart/form-data"]
)
def test_a_body_of_another_kind_is_refused(api, kind):
    answer = api.post("/v1/subscriptions", content=b'{"filter": "a = 1"}', headers={"Content-Type": kind})
    check_problem(answer, 415)


def test_a_compressed_body_is_refused(api):
    headers = JSON | {"Content-Encoding": "gzip"}
    check_problem(api.post("/v1/subscriptions", content=b"{}", headers=headers), 415)


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/x-www-form-urlencoded",
        None,
    ],
)
def test_json_is_taken_whatever_curl_calls_it(api, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    assert api.post("/v1/subscriptions", content=b'{"filter": "a = 1"}', headers=headers).status_code == 201


def test_sql_in_any_field_is_text(api):
    bob = api.make_key("bob", "read", "write")
    body = {"id": SQL, "filter": f"a = {SQL.replace(chr(39), chr(34))!r}", "name": SQL, "labels": [SQL]}
    api.create("other", key=bob)
    created = api.post("/v1/subscriptions", json=body, headers={"Idempotency-Key": SQL}, key=bob)
    assert created.status_code == 201
    from urllib.parse import quote

    assert api.get(f"/v1/subscriptions/{quote(SQL, safe='')}", key=bob).json()["name"] == SQL
    for params in ({"label": SQL}, {"q": SQL}, {"q": "%"}, {"q": "_"}):
        answer = api.get("/v1/subscriptions", params=params, key=bob)
        expected = [SQL] if SQL in params.values() else []
        assert [row["id"] for row in answer.json()["subscriptions"]] == expected
    check_problem(api.get("/v1/subscriptions", params={"cursor": SQL}, key=bob), 400)
    check_problem(api.get("/v1/subscriptions", params={"owner": SQL}), 400)
    check_problem(api.post("/v1/keys", json={"owner": SQL, "scopes": ["read"]}), 422)
    check_problem(api.delete(f"/v1/keys/{quote(SQL, safe='')}"), 404)
    check_problem(api.delete(f"/v1/owners/{quote(SQL, safe='')}"), 404)
    assert len(api.get("/v1/subscriptions", key=bob).json()["subscriptions"]) == 2


def test_a_path_that_is_not_utf8_is_refused(api):
    check_problem(api.get("/v1/subscriptions/%ff%fe"), 400)


# Failures -------------------------------------------------------------------------------------------------


def fail(problem):
    def raise_it(*_arguments, **_keywords):
        raise problem

    return raise_it


def test_a_failure_says_nothing_of_itself(api, monkeypatch, caplog):
    monkeypatch.setattr(api.store.subscriptions, "get", fail(RuntimeError("the password is hunter2")))
    body = check_problem(api.get("/v1/subscriptions/s1"), 500)
    assert "hunter2" not in str(body)
    assert "Traceback" not in str(body)
    assert "RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("problem", [StoreBusy("hunter2 is busy"), StoreError("hunter2 is gone")])
def test_a_store_that_does_not_answer_is_a_reason_to_come_again(api, monkeypatch, problem):
    monkeypatch.setattr(api.store.subscriptions, "get", fail(problem))
    monkeypatch.setattr(api.store.subscriptions, "write", fail(problem))
    monkeypatch.setattr(api.store, "check", fail(problem))
    for answer in (
        api.get("/v1/subscriptions/s1"),
        api.post("/v1/subscriptions", json={"filter": "a = 1"}),
        api.get("/readyz"),
    ):
        check_problem(answer, 503)
        assert answer.headers["retry-after"]
        assert "hunter2" not in answer.text
    assert api.get("/healthz").status_code == 200


def test_a_failure_while_writing_is_everybodys_answer(api, monkeypatch):
    monkeypatch.setattr(api.store.subscriptions, "write", fail(RuntimeError("hunter2")))
    assert "hunter2" not in api.post("/v1/subscriptions", json={"filter": "a = 1"}).text
    monkeypatch.undo()
    api.create("s1")


def test_no_secret_is_ever_logged(api, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "whsec_" + "QUJD" * 8
    hook = {"transport": "webhook", "url": "https://example.org/", "secret": secret}
    bob = api.post("/v1/keys", json={"owner": "bob", "scopes": ["read", "write"]}).json()["key"]
    api.create("s1", delivery=hook, key=bob)
    api.post("/v1/subscriptions", json={"filter": "a =", "delivery": hook}, key=bob)
    api.post(
        "/v1/subscriptions:import",
        content=b'{"id": "x", "delivery": {"secret": "' + secret.encode() + b'"}}',
        headers=LINES,
    )
    api.get("/v1/subscriptions", key=bob + "x")
    monkeypatch.setattr(api.store.subscriptions, "write", fail(RuntimeError(f"parameters: {secret} {bob}")))
    answer = api.put("/v1/subscriptions/s1", json={"filter": "a = 1", "delivery": hook}, key=bob)
    check_problem(answer, 500)
    assert "unexpected RuntimeError" in caplog.text  # there is a log that could have said it
    for word in (secret, bob, api.admin):
        assert word not in caplog.text
    assert secret not in repr(api.settings)


# Rates --------------------------------------------------------------------------------------------------------


def test_who_asks_too_often_is_told_when_to_come_again(make_api):
    rules = {"bob": OwnerRules(owner="bob", requests_per_second=5)}
    api = make_api(settings=ServiceSettings(owners=rules), limits=replace(ENDLESS, requests_per_second=100))
    bob, more = api.make_key("bob", "read"), api.make_key("bob", "read")
    assert [api.get("/v1/subscriptions", key=bob).status_code for _ in range(10)] == [200] * 10
    for key in (bob, more):  # of one owner
        answer = api.get("/v1/subscriptions", key=key)
        check_problem(answer, 429)
        assert answer.headers["retry-after"] == "1"
    assert api.get("/v1/subscriptions").status_code == 200
    api.time.pass_time(0.4)
    assert [api.get("/v1/subscriptions", key=bob).status_code for _ in range(3)] == [200, 200, 429]


# Health -------------------------------------------------------------------------------------------------------


def test_the_status_counts_what_is_the_owners(api):
    bob = api.make_key("bob", "read", "write")
    api.create("s1", key=bob)
    api.create("s2")
    api.create("s3")
    assert api.get("/v1/status", key=bob).json()["subscriptions"]["active"] == 1
    assert api.get("/v1/status").json()["subscriptions"]["active"] == 2
    assert api.get("/v1/status", params={"owner": "*"}).json()["subscriptions"]["active"] == 3


def test_what_processes_report_is_shown_and_its_facts_to_administrators(api):
    api.store.statuses.write(StatusReport("pipeline", api.time.now(), {"batch": 7}))
    api.time.pass_time(3)
    bob = api.make_key("bob", "read")
    [mine], [theirs] = (api.get("/v1/status", key=key).json()["processes"] for key in (None, bob))
    assert (mine["name"], mine["age_seconds"], mine["facts"]) == ("pipeline", 3.0, {"batch": 7})
    assert theirs == mine | {"facts": {}}


def test_metrics_count_events_and_say_how_far_the_pipeline_is_behind(api):
    api.post("/v1/events", json=[{"a": 1}, {"a": 2}])
    report = StatusReport(
        "pipeline", api.time.now(), {"lag_seconds": 1.5, "behind": None, "doing": "matching", "late": 3}
    )
    api.store.statuses.write(report)
    lines = api.get("/metrics").text.splitlines()
    assert "tidings_events_accepted_total 2.0" in lines
    assert "tidings_pipeline_lag_seconds 1.5" in lines
    assert "tidings_pipeline_late_events 3.0" in lines
    [waiting] = [line for line in lines if line.startswith("tidings_events_waiting_bytes ")]
    assert float(waiting.split()[1]) > 0


def test_metrics_have_no_label_that_an_owner_made(api):
    api.create("s1", name="bobs-name", labels=["bobs-label"])
    api.get("/v1/subscriptions/s1")
    api.get("/v1/subscriptions/bobs-id")
    text = api.get("/metrics").text
    assert 'tidings_api_requests_total{operation="readSubscription",status="404"} 1.0' in text
    assert 'tidings_subscriptions{status="active"} 1.0' in text
    assert "bobs" not in text
