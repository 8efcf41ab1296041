"""SQL in every field of every operation is text, on both databases: nothing breaks, nobody sees or loses more.

The cases are made of the app's own operations: one that is added, or a field of one, is tested.
"""

from urllib.parse import quote

import pytest
from tests.service.api.asking import LINES, check_problem

from tidings.service.api.app import ROUTES
from tidings.service.store.base import MatchRow
from tidings.service.store.opening import open_store

TEXTS = ("'; DROP TABLE subscriptions; --", "theirs' OR '1'='1", '" OR 1=1 --', "%s :owner ? $1 %(id)s \\'")

STREAM = "streamMatches"
"""The operation whose answer does not end; it has a test of its own."""

HEADERS = ("Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "ce-id", "ce-source", "User-Agent")

OPERATIONS = [
    operation for module in ROUTES for operation in module.OPERATIONS if operation.scopes and operation.name != STREAM
]

PATHS = {"id": "mine", "key": "key-none", "owner": "nobody"}


@pytest.fixture(params=["sqlite", "postgres"])
def api(make_api, tmp_path, request):
    """An API over a database that has something of two owners."""
    url = f"sqlite:///{tmp_path}/store.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    store = open_store(url)
    api = make_api(store=store)
    for owner, id in (("ann", "theirs"), ("bob", "mine")):
        api.create(id, "a = 'hidden'", params={"owner": owner}, name="hidden", labels=["hidden"])
        row = MatchRow(owner=owner, subscription=id, kind="match", at=api.time.now(), event="hidden event")
        store.matches.write(owner, 1, [row], at=api.time.now(), keep=10)
    yield api
    store.close()


def list_requests(operation, text):
    """Yield requests to an operation that have a text in one place each: path, query, headers, body."""
    path, body = operation.path, operation.body
    for name, value in PATHS.items():
        if "{" + name + "}" in operation.path:
            yield replace_in_path(operation.path, name, text), {}
        path = path.replace("{" + name + "}", value)
    asked = {"event": "e1"} if any(parameter.name == "event" for parameter in operation.query) else {}
    for parameter in operation.query:
        yield path, {"params": asked | {parameter.name: text}}
    if operation.owners:
        yield path, {"params": asked | {"owner": text}}
    example = None if body is None else next(iter(body.examples.values()))
    for name in HEADERS:
        yield path, {"headers": {name: text}, "params": asked} | build_body(example)
    if isinstance(example, str):
        yield path, {"content": text, "headers": LINES}
    elif example is not None:
        yield from ((path, {"json": changed}) for changed in replace_leaves(example, text))


def replace_in_path(path, chosen, text):
    for name, value in PATHS.items():
        path = path.replace("{" + name + "}", quote(text, safe="") if name == chosen else value)
    return path


def build_body(example):
    if example is None:
        return {}
    return {"content": example} if isinstance(example, str) else {"json": example}


def replace_leaves(value, text):
    """Yield copies of a JSON value in which one leaf, or one name, is a text."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from (value | {name: changed} for changed in replace_leaves(part, text))
        yield value | {text: 1}
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from ([*value[:place], changed, *value[place + 1 :]] for changed in replace_leaves(part, text))
    else:
        yield text


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_sql_in_any_place_is_text(api, operation):
    bob = None if operation.scopes == ("admin",) else api.make_key("bob", "read", "write", "publish")
    before = api.store.subscriptions.get("ann", "theirs")
    for text in TEXTS:
        for path, request in list_requests(operation, text):
            answer = api.ask(operation.method, path, key=bob, **request)
            assert answer.status_code < 500, f"{path} {request}: {answer.text}"
            if bob is not None:
                assert '"ann"' not in answer.text, f"{path} {request}"
    assert api.store.subscriptions.get("ann", "theirs") == before
    assert api.ids(owner="ann") == ["theirs"]
    assert len(api.get("/v1/subscriptions/theirs/matches", params={"owner": "ann"}).json()["matches"]) == 1


@pytest.mark.parametrize("text", TEXTS)
def test_sql_in_what_a_stream_asks_for_is_text(api, text):
    check_problem(api.get("/v1/stream", params={"subscription": text}), 404)
    check_problem(api.get("/v1/stream", headers={"Last-Event-ID": text}), 400)
    check_problem(api.get("/v1/stream", params={"owner": text}), 400)
