"""Every route with no key, a wrong one, one that is not for it, and one of another owner.

The cases are made of the app's own routes: one that is added is tested, and one that no case here knows fails.
"""

from datetime import timedelta

import pytest
from tests.service.api.asking import LINES, Asker, check_problem

from tidings.service.api.app import ROUTES
from tidings.service.api.operations import IDEMPOTENCY_KEY
from tidings.service.keys import SCOPES
from tidings.service.store.base import MatchRow

OPERATIONS = [operation for module in ROUTES for operation in module.OPERATIONS]
OPEN = {"/healthz", "/readyz", "/openapi.json"}
STREAM = "/v1/stream"  # it does not end
PATHS = {"id": "theirs", "key": "key-none", "owner": "nobody"}

by_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
with_keys = pytest.mark.parametrize(
    "operation", [operation for operation in OPERATIONS if operation.scopes], ids=lambda operation: operation.name
)


def ask(api, operation, key, **request):
    path, headers = operation.path, request.pop("headers", {})
    for name, value in PATHS.items():
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, f"a case for the parameter of {operation.path}"
    if operation.body is not None:
        example = next(iter(operation.body.examples.values()))
        if isinstance(example, str):
            request["content"], headers = example, LINES | headers
        else:
            request["json"] = example
    if any(parameter.name == "event" for parameter in operation.query):
        request["params"] = {"event": "e1"} | request.get("params", {})
    return api.ask(operation.method, path, key=key, headers=headers, **request)


def test_all_routes_of_the_app_are_operations(api):
    assert [route.operation for route in api.app.routes] == OPERATIONS
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)


@by_operation
def test_only_a_few_routes_need_no_key(api, operation):
    if operation.path in OPEN:
        assert ask(api, operation, "").status_code == 200
    else:
        assert operation.scopes, operation.path
        check_refusal(ask(api, operation, ""))


@by_operation
def test_a_key_of_idempotency_is_taken_where_it_is_listed_and_refused_elsewhere(api, operation):
    before = len(api.store.audit.list(limit=100))
    key = api.admin if operation.scopes else ""
    answer = ask(api, operation, key, headers={"idempotency-key": "k1"})
    if any(parameter.name == IDEMPOTENCY_KEY for parameter in operation.headers):
        assert answer.status_code == 201
        assert ask(api, operation, key, headers={"idempotency-key": "k1"}).content == answer.content
        return
    problem = check_problem(answer, 400)
    assert problem["detail"] == f"`Idempotency-Key` does nothing here, so send none; {operation.again}"
    assert len(api.store.audit.list(limit=100)) == before


def check_refusal(answer, key=None):
    """No valid key came; the one that came is not repeated."""
    check_problem(answer, 401)
    assert key is None or key not in answer.text + str(answer.headers)
    assert answer.headers["www-authenticate"].startswith("Bearer")


@with_keys
def test_a_key_that_is_none_is_refused(api, operation):
    for key in ("x", "tdk_" + "A" * 43, api.admin[:-1], api.admin + "x", "' or 1=1 --", "A" * 5000):
        check_refusal(ask(api, operation, key))


@pytest.mark.parametrize(
    "header", ["Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "tdk_x", "Bearer  ", "bearer\tx", "Bearer ü"]
)
def test_a_header_that_brings_no_key_is_refused(api, header):
    for path in ("/v1/subscriptions", "/v1/stream", "/metrics"):
        check_refusal(api.get(path, key="", headers={"Authorization": header.encode()}))


@with_keys
def test_a_key_that_was_revoked_or_has_expired_is_refused(api, operation):
    revoked = api.make_key("bob", *SCOPES)
    [record] = api.store.keys.list("bob")
    api.store.keys.revoke(record.id, actor="test", at=api.time.now())
    check_refusal(ask(api, operation, revoked), revoked)
    short = api.make_key("bob", *SCOPES, expires_at=api.time.now() + timedelta(seconds=10))
    api.time.pass_time(10)
    check_refusal(ask(api, operation, short), short)


@with_keys
def test_a_key_is_only_for_its_scopes(api, operation):
    for scope in set(SCOPES) - {"admin"} - set(operation.scopes):
        check_problem(ask(api, operation, api.make_key("bob", scope)), 403)
    if operation.path == STREAM:
        return
    for scope in operation.scopes:
        answer = ask(api, operation, api.make_key(f"with-{scope}", scope))
        assert answer.status_code not in (401, 403), answer.text


@with_keys
def test_what_is_another_owners_is_neither_seen_nor_changed(api, operation):
    ann, bob = api.make_key("ann", "read", "write", "publish"), api.make_key("bob", "read", "write", "publish")
    api.create("theirs", "a = 'hidden treasure'", key=ann, name="hidden name", labels=["hidden-label"])
    row = MatchRow(owner="ann", subscription="theirs", kind="match", at=api.time.now(), event="hidden event")
    api.store.matches.write("q", 1, [row], at=api.time.now(), keep=10)
    before = api.store.subscriptions.get("ann", "theirs")
    if operation.path != STREAM:
        answer = ask(api, operation, bob)
        assert "hidden" not in answer.text
        assert "hidden" not in str(answer.headers)
        if "{id}" in operation.path and operation.method != "PUT":
            check_problem(answer, 404)
        if operation.owners:
            check_problem(ask(api, operation, bob, params={"owner": "ann"}), 403)
            check_problem(ask(api, operation, bob, params={"owner": "*"}), 403)
    assert api.store.subscriptions.get("ann", "theirs") == before


@with_keys
def test_only_administrators_have_what_is_everybodys(api, operation):
    if operation.scopes == ("admin",):
        bob = api.make_key("bob", "read", "write", "publish")
        check_problem(ask(api, operation, bob), 403)


def test_a_revoked_key_is_refused_within_a_second_by_another_process(tmp_path, api):
    other = Asker(tmp_path, store=api.store, time=api.time)
    bob = api.make_key("bob", "read")
    assert other.get("/v1/subscriptions", key=bob).status_code == 200
    [record] = api.store.keys.list("bob")
    assert api.delete(f"/v1/keys/{record.id}").status_code == 204
    check_refusal(api.get("/v1/subscriptions", key=bob))
    api.time.pass_time(1)
    check_refusal(other.get("/v1/subscriptions", key=bob))
    other.close()


def test_a_key_that_is_used_often_is_looked_up_once_a_second(api, monkeypatch):
    asked = []
    find = api.store.keys.find
    monkeypatch.setattr(api.store.keys, "find", lambda digest: asked.append(digest) or find(digest))
    for _ in range(5):
        api.get("/v1/subscriptions")
    assert len(asked) == 1
    api.time.pass_time(1)
    api.get("/v1/subscriptions")
    assert len(asked) == 2


# Keys and owners -------------------------------------------------------------------------------------------


def test_a_key_is_made_shown_once_and_revoked(api):
    made = api.post("/v1/keys", json={"owner": "bob", "scopes": ["read"], "note": "site"})
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    key = made.json()["key"]
    assert api.get("/v1/subscriptions", key=key).status_code == 200
    listed = api.get("/v1/keys", params={"owner": "bob"})
    assert [row["note"] for row in listed.json()["keys"]] == ["site"]
    [record] = api.store.keys.list("bob")
    assert key not in listed.text
    assert record.digest not in listed.text
    assert api.delete(f"/v1/keys/{record.id}").status_code == 204
    check_problem(api.delete(f"/v1/keys/{record.id}"), 404)
    check_refusal(api.get("/v1/subscriptions", key=key))
    assert api.get("/v1/keys", params={"owner": "bob"}).json()["keys"][0]["revoked_at"] is not None


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"scopes": []},
        {"scopes": ["reed"]},
        {"scopes": "read"},
        {"scopes": [1]},
        {"scopes": ["read"], "owner": "a/b"},
        {"scopes": ["read"], "owner": 5},
        {"scopes": ["read"], "expires_at": "2020-01-01"},
        {"scopes": ["read"], "expires_at": 5},
        {"scopes": ["read"], "note": "x" * 201},
        {"scopes": ["read"], "nota": "x"},
    ],
)
def test_a_key_that_cannot_be_made_is_refused(api, body):
    check_problem(api.post("/v1/keys", json=body), 422)


def test_an_owner_is_erased_with_keys_and_all(api):
    bob = api.make_key("bob", "read", "write")
    api.create("s1", key=bob)
    erased = api.delete("/v1/owners/bob").json()
    assert erased["owner"] == "bob"
    assert erased["erased"]["subscriptions"] == 1
    check_refusal(api.get("/v1/subscriptions", key=bob))
    assert api.ids(owner="bob") == []
    check_problem(api.delete("/v1/owners/admin"), 409)
    check_problem(api.delete("/v1/owners/a%2Fb"), 404)


def test_the_audit_log_says_who_changed_what(api):
    bob = api.make_key("bob", "read", "write")
    api.create("s1", key=bob)
    api.patch("/v1/subscriptions/s1", json={"name": "n"}, params={"owner": "bob"})
    records = api.get("/v1/audit", key=bob).json()["records"]
    assert {record["owner"] for record in records} == {"bob"}
    actors = [(record["action"], record["actor"].partition("/")[0]) for record in records if record["id"] == "s1"]
    assert actors == [("create", "bob"), ("replace", "admin")]
    first = api.get("/v1/audit", params={"owner": "*", "limit": 1}).json()
    rest = api.get("/v1/audit", params={"owner": "*", "cursor": first["next"]}).json()
    everything = api.get("/v1/audit", params={"owner": "*"}).json()["records"]
    assert first["records"] + rest["records"] == everything
