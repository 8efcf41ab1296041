"""Imports and exports: all or nothing, a report by line, whatever is exported comes back, memory stays small."""

import asyncio
import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import pytest
from tests.kafka.broker import wait_for
from tests.service.api.asking import ENDLESS, LINES, check_problem, to_lines
from tests.spark.pipeline.crashing import alive

from tidings.service.api.importing import BLOCK_BYTES, BLOCKS_AHEAD, BlockExecutor, cut_blocks
from tidings.service.api.problems import Problem
from tidings.service.events import bodies
from tidings.service.settings import ServiceSettings
from tidings.service.store.base import Imported, OwnerRules, StoreError

GOOD = [{"id": f"s{number}", "filter": f"price < {number}", "labels": ["x"]} for number in range(10)]
BAD = [{"id": "b1", "filter": "price <"}, {"filter": "a = 1"}, {"id": "b3", "filtr": "a = 1"}]
PATTERN = "a = kind = 'a'\nb = kind = 'b'\na ; b within 5 min"


def send(api, rows, *, content=None, **request):
    content = to_lines(rows) if content is None else content
    return api.post("/v1/subscriptions:import", content=content, headers=LINES, **request)


def test_every_line_is_a_subscription(api):
    answer = send(api, GOOD)
    assert (answer.status_code, answer.json()) == (200, {"imported": 10, "refused": 0, "errors": []})
    assert api.ids() == sorted(row["id"] for row in GOOD)


@pytest.mark.parametrize("media", bodies.LINES)
def test_lines_have_the_same_media_types_wherever_they_come(api, media):
    headers = {"Content-Type": media}
    row = to_lines(GOOD[:1])
    assert api.post("/v1/subscriptions:import", content=row, headers=headers).json()["imported"] == 1
    assert api.post("/v1/events", content=b'{"id": "e1"}\n{"id": "e2"}', headers=headers).json()["accepted"] == 2


def test_a_line_is_spoken_of_as_a_line(api):
    body = check_problem(send(api, None, content=to_lines(GOOD[:1]) + b'\n{"id": '), 422, refused=1)
    assert body["detail"].startswith("1 line was refused, so nothing was imported")
    (error,) = body["errors"]
    assert error["message"].startswith("this line is not JSON: ")
    assert "line 1" not in error["message"]
    assert error["line"] >= 2


def test_one_bad_line_refuses_all_and_every_bad_line_is_named(api):
    api.create("kept")
    body = check_problem(send(api, [*GOOD, *BAD]), 422, imported=0, refused=3)
    assert {(error["line"], error["id"]) for error in body["errors"]} == {(11, "b1"), (12, None), (13, "b3")}
    assert next(error for error in body["errors"] if error["line"] == 11)["at"] == 7
    assert api.ids() == ["kept"]


def test_a_partial_import_takes_the_good_lines(api):
    answer = send(api, [GOOD[0], *BAD, GOOD[1]], params={"partial": "true"})
    assert answer.status_code == 200
    assert (answer.json()["imported"], answer.json()["refused"]) == (2, 3)
    assert {error["line"] for error in answer.json()["errors"]} == {2, 3, 4}
    assert api.ids() == ["s0", "s1"]


def test_a_report_has_the_first_mistakes_and_counts_all(api):
    body = check_problem(send(api, BAD[:1] * 300), 422, refused=300)
    assert len(body["errors"]) == 50
    assert [error["line"] for error in body["errors"]] == list(range(1, 51))


def test_lines_are_lines_however_they_end(api):
    content = b'\xef\xbb\xbf\n{"id": "a", "filter": "x = 1"}\r\n\n   \n{"id": "b", "filter": "x = 1"}'
    assert send(api, None, content=content[3:]).json()["imported"] == 2
    assert api.ids() == ["a", "b"]


def test_an_empty_import_imports_nothing(api):
    assert send(api, []).json() == {"imported": 0, "refused": 0, "errors": []}


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"5", b"\xff\xfe", b'{"id": "a", "id": 5}', b'{"a":' * 50 + b"1" + b"}" * 50]
)
def test_a_line_that_is_no_subscription_is_refused(api, line):
    check_problem(send(api, None, content=to_lines(GOOD[:1]) + line), 422, refused=1)


def test_the_last_of_two_lines_with_one_id_counts(api):
    send(api, [{"id": "s1", "filter": "a = 1"}, {"id": "s1", "filter": "a = 2"}])
    assert api.get("/v1/subscriptions/s1").json()["filter"] == "a = 2"


def test_an_import_replaces_what_is_there(api):
    api.create("s1", name="old")
    send(api, [{"id": "s1", "filter": "a = 2"}])
    row = api.get("/v1/subscriptions/s1").json()
    assert (row["filter"], row["name"], row["revision"]) == ("a = 2", None, 2)


def test_the_limits_of_an_owner_hold_for_imports(make_api):
    api = make_api(
        settings=ServiceSettings(owners={"bob": OwnerRules(owner="bob", filter_bytes=12)}),
        limits=replace(ENDLESS, subscriptions=5),
    )
    check_problem(send(api, GOOD), 403)
    assert api.ids() == []
    bob = api.make_key("bob", "write")
    check_problem(send(api, [{"id": "s1", "filter": "a = 'much too long'"}], key=bob), 422)


@pytest.mark.parametrize("process_bytes", [1, 10**9])
def test_a_partial_import_takes_what_the_quota_has_room_for_and_names_the_other_lines(make_api, process_bytes):
    api = make_api(limits=replace(ENDLESS, subscriptions=5))
    api.create("s7", name="old")
    content = b"\n".join([to_lines(GOOD[:2]), to_lines([*BAD, *GOOD[2:9]]), to_lines([GOOD[9]])])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockExecutor.__init__, "__kwdefaults__", {"process_bytes": process_bytes})
        report = send(api, None, content=content, params={"partial": "true"}).json()
    assert (report["imported"], report["refused"]) == (5, 8)  # s7 was there
    assert api.ids() == ["s0", "s1", "s2", "s3", "s7"]
    assert api.get("/v1/subscriptions/s7").json()["name"] is None
    refusal = "`admin` may have 5 subscriptions and has them: remove some, or ask for more"
    full = [error for error in report["errors"] if error["message"] == refusal]
    assert [(error["line"], error["id"]) for error in full] == [
        (9, "s4"),
        (10, "s5"),
        (11, "s6"),
        (13, "s8"),
        (15, "s9"),
    ]
    lines = [error["line"] for error in report["errors"]]
    assert lines == sorted(lines)
    again = send(api, GOOD * 20, params={"partial": "true"}).json()
    assert (again["imported"], again["refused"], len(again["errors"])) == (5, 5, 5)


def test_lines_of_another_owner_are_refused(api):
    check_problem(send(api, [{"id": "s1", "filter": "a = 1", "owner": "bob"}]), 422, refused=1)
    assert send(api, [{"id": "s1", "filter": "a = 1", "owner": "bob"}], params={"owner": "bob"}).status_code == 200
    assert api.ids(owner="bob") == ["s1"]


def test_what_is_exported_can_be_imported(make_api, tmp_path):
    api = make_api()
    hook = {"transport": "webhook", "url": "https://example.org/", "secret": "whsec_" + "QUJD" * 8}
    send(api, GOOD)
    api.create("json", {"and": [{"attr": "a", "op": "=", "value": 1}, {"attr": "b", "op": "exists"}]}, name="Jörg")
    api.create("url", "make=ford", notation="url", delivery=hook, expires_at="2030-01-01T00:01:00Z")
    api.create(
        "mail", delivery={"transport": "email", "to": "a@b.c", "schedule": {"cron": "0 8 * * 1"}, "group": "owner"}
    )
    api.post(
        "/v1/subscriptions", json={"id": "p", "pattern": PATTERN, "horizon": "5 min", "threshold": 0.7, "mode": "any"}
    )
    api.post("/v1/subscriptions/s3:pause")
    api.time.pass_time(61)
    api.store.subscriptions.expire(api.time.now())
    exported = api.get("/v1/subscriptions:export")
    assert exported.headers["content-type"] == "application/x-ndjson"
    other = make_api()
    other.time.pass_time(61)
    assert send(other, None, content=exported.content).json()["imported"] == 14
    assert other.get("/v1/subscriptions:export").content == exported.content
    assert [other.get(f"/v1/subscriptions/{id}").json()["status"] for id in ("s3", "url", "p")] == [
        "paused",
        "expired",
        "learning",
    ]
    assert "whsec_" not in exported.text


@pytest.mark.parametrize("process_bytes", [1, 10**9])
def test_an_export_that_comes_back_leaves_secrets_where_they_are(api, monkeypatch, process_bytes):
    monkeypatch.setattr(BlockExecutor.__init__, "__kwdefaults__", {"process_bytes": process_bytes})
    hook = {"transport": "webhook", "url": "https://example.org/", "secret": "whsec_" + "QUJD" * 8}
    for id in ("same", "moved", "new"):
        api.create(id, delivery=hook)
    api.create("app", delivery={"transport": "apprise", "url": "ntfy://topic"})
    api.create("none")
    rows = [json.loads(line) for line in api.get("/v1/subscriptions:export").text.splitlines()]
    assert all(row.get("delivery", {}).keys().isdisjoint({"secret"}) for row in rows)
    changes = {"moved": {"url": "https://example.com/"}, "new": {"secret": "whsec_" + "QUJE" * 8}}
    for row in rows:
        row["name"] = "again"
        row.get("delivery", {}).update(changes.get(row["id"], {}))
    assert send(api, rows).json()["imported"] == 5
    stored = {row["id"]: api.store.subscriptions.get("admin", row["id"]) for row in rows}
    assert {row.name for row in stored.values()} == {"again"}
    secrets = {id: (row.delivery or {}).get("secret") for id, row in stored.items()}
    assert secrets == {
        "same": hook["secret"],
        "moved": None,  # it must not follow to another address
        "new": changes["new"]["secret"],
        "app": None,
        "none": None,
    }
    assert stored["app"].delivery["url"] == "ntfy://topic"


def test_a_line_without_a_secret_that_nobody_stored_is_refused_where_it_needs_one(api):
    api.create("s1")
    api.create("s2", delivery={"transport": "apprise", "url": "ntfy://topic"}, key=api.make_key("bob", "write"))
    lacking = [{"id": id, "filter": "a = 1", "delivery": {"transport": "apprise"}} for id in ("s1", "s2", "s3")]
    report = check_problem(send(api, lacking), 422, refused=3)
    assert {error["field"] for error in report["errors"]} == {"delivery.url"}


def test_an_export_has_everything_page_by_page(api):
    send(api, [{"id": f"s{number:05}", "filter": "a = 1"} for number in range(2_500)])
    rows = [json.loads(line) for line in api.get("/v1/subscriptions:export").text.splitlines()]
    assert [row["id"] for row in rows] == [f"s{number:05}" for number in range(2_500)]


def test_memory_holds_a_page_of_an_export(api, monkeypatch):
    api.create("s", name="x" * 200)
    stored, count = api.store.subscriptions.get("admin", "s"), 20_000

    def list_page(query):  # a store that has them only when it is asked
        begin = 0 if query.after is None else int(query.after[1]) + 1
        return [replace(stored, id=f"{number:09}") for number in range(begin, min(begin + query.limit, count))]

    monkeypatch.setattr(api.store.subscriptions, "list", list_page)
    lines = 0

    async def send(message):
        nonlocal lines
        lines += message.get("body", b"").count(b"\n")

    headers = [(b"host", b"x"), (b"authorization", f"Bearer {api.admin}".encode())]
    scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "method": "GET", "headers": headers}
    path = "/v1/subscriptions:export"
    scope |= {"path": path, "raw_path": path.encode(), "query_string": b"", "http_version": "1.1", "scheme": "http"}
    tracemalloc.start()
    api.runner.run(api.app(scope, asyncio.Event().wait, send))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == count
    assert peak < 12_000_000  # a page takes 5 MB, all of them at once 94 MB


def test_an_administrator_exports_the_subscriptions_of_all(api):
    api.create("s1", key=api.make_key("bob", "write"))
    api.create("s1")
    rows = [json.loads(line) for line in api.get("/v1/subscriptions:export", params={"owner": "*"}).text.splitlines()]
    assert [(row["owner"], row["id"]) for row in rows] == [("admin", "s1"), ("bob", "s1")]


def test_a_store_that_fails_stops_the_import(api, monkeypatch):
    def fail(owner, drafts, **_keywords):
        next(iter(drafts))
        raise StoreError

    monkeypatch.setattr(api.store.subscriptions, "write_many", fail)
    check_problem(send(api, GOOD * 3_000), 503)


def test_an_owner_has_few_imports_at_the_same_time(api):
    bob = api.make_key("bob", "write")
    body = to_lines(GOOD[:1])
    may_end = asyncio.Event()

    async def yield_slowly():
        yield body
        await may_end.wait()

    async def ask(key, content):
        headers = {"Authorization": f"Bearer {key}"} | LINES
        return await api.client.post("/v1/subscriptions:import", content=content, headers=headers)

    async def ask_all():
        running = [asyncio.create_task(ask(bob, yield_slowly())) for _ in range(2)]
        while api.state.parts.get("imports", {}).get("bob") != 2:
            await asyncio.sleep(0)
        refusal, other = await ask(bob, body), await ask(api.admin, body)
        may_end.set()
        return refusal, other, *await asyncio.gather(*running)

    refusal, *others = api.runner.run(ask_all())
    check_problem(refusal, 503)
    assert [answer.status_code for answer in others] == [200, 200, 200]
    assert send(api, GOOD, key=bob).status_code == 200


def test_a_client_that_goes_away_leaves_nothing(api):
    async def break_off():
        yield to_lines(GOOD)
        raise ConnectionError

    assert send(api, None, content=break_off()).status_code == 500
    assert api.ids() == []


def test_a_large_import_is_checked_by_a_process_with_the_same_report(api, monkeypatch):
    rows = [*GOOD[:3], *BAD, *GOOD[3:]]
    params = {"partial": "true"}
    report = send(api, rows, params=params).json()
    monkeypatch.setattr(BlockExecutor.__init__, "__kwdefaults__", {"process_bytes": 1})
    assert send(api, rows, params=params).json() == report


# Blocks --------------------------------------------------------------------------------------------------


async def yield_pieces(pieces):
    for piece in pieces:
        yield piece


async def cut(pieces, longest=100, size=10):
    return [block async for block in cut_blocks(yield_pieces(pieces), longest, size)]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_blocks_are_whole_lines_however_the_pieces_fall(step):
    body = b"".join(b"line %d\n" % number for number in range(50)) + b"end"
    blocks = asyncio.run(cut([body[begin : begin + step] for begin in range(0, len(body), step)]))
    assert b"".join(blocks) == body
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_a_line_without_an_end_is_refused_when_it_is_too_long():
    with pytest.raises(Problem):
        asyncio.run(cut([b"x" * 20] * 6))


def test_memory_holds_a_few_blocks_of_an_import(api, monkeypatch):
    row, count = to_lines([{"id": "same", "filter": "a = 1", "name": "x" * 190}]), 70

    def take(_owner, drafts, **_keywords):  # a store that keeps nothing
        return Imported(sum(1 for _ in drafts))

    async def yield_rows(count):
        for _ in range(count):
            yield row * 1_000

    monkeypatch.setattr(api.store.subscriptions, "write_many", take)
    send(api, None, content=yield_rows(5))
    tracemalloc.start()
    assert send(api, None, content=yield_rows(count)).json()["imported"] == count * 1_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (BLOCKS_AHEAD + 2) * 3 * BLOCK_BYTES < count * 1_000 * len(row) / 1.5


def test_the_process_ends_with_the_one_that_started_it():
    program = """
import os
from datetime import UTC, datetime
from tidings.concepts import Vocabulary
from tidings.service.api.block_checks import ImportRules
from tidings.service.api.check_process import CheckProcess
from tidings.service.checking import SubscriptionChecker
process = CheckProcess(SubscriptionChecker(Vocabulary()))
block = process.check(b'{"id": "a", "filter": "a = 1"}', 1, ImportRules("bob", datetime.now(UTC), 32, None))
assert block.refused == 0
print(process._process.pid, flush=True)
os._exit(1)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1, result.stderr
    pid = int(result.stdout)
    assert wait_for(lambda: not alive(pid), 30)
