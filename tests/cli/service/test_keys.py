"""`tidings service`: keys and owners, in a store and over the API."""

import json
import re
from datetime import UTC, datetime

import pytest
from tests.cli.samples import write_lines

import tidings as td
from tidings.service.keys import digest_key
from tidings.service.settings import ServiceSettings
from tidings.service.store.base import Write
from tidings.service.store.opening import open_store
from tidings.service.subscription import SubscriptionDraft


@pytest.fixture(params=["store", "api"])
def service(request, tidings, tmp_path, monkeypatch):
    """Run `tidings service` on a store of this machine, and on a service with its URL."""
    if request.param == "store":
        (tmp_path / "tidings-data").mkdir()
        return lambda *arguments, **more: tidings("service", *arguments, **more)
    api = request.getfixturevalue("api")
    monkeypatch.setenv("TIDINGS_KEY", api.key)
    return lambda *arguments, **more: tidings("service", *arguments, "--url", api.url, **more)


def test_a_key_is_printed_once_and_listed_without_its_secret(service):
    added = service("key", "add", "--owner", "shop", "--scope", "read", "--scope", "write", "--note", "the till")
    assert re.fullmatch(r"tdk_[A-Za-z0-9_-]{43}\n", added.out)
    assert re.fullmatch(r"note: key `key-\w+` of `shop` for read, write; it is shown this once\n", added.err)
    listed = service("key", "list", "--owner", "shop")
    assert "the till" in listed.out
    assert "valid" in listed.out
    assert "tdk_" not in listed.out
    assert digest_key(added.out.strip()) not in service("key", "list", "--owner", "shop", "--json").out


def test_a_key_can_be_revoked_once(service):
    (added,) = service("key", "add", "--owner", "bank", "--scope", "publish", "--json").lines
    assert service("key", "revoke", added["id"]).err == f"note: key `{added['id']}` is revoked\n"
    assert service("key", "list", "--owner", "bank").out.splitlines()[2].split()[3] == "revoked"
    done = service("key", "revoke", "key-nowhere")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "`key-nowhere`" in done.err


def test_a_key_may_expire(service):
    (added,) = service("key", "add", "--owner", "x", "--scope", "read", "--expires", "90 days", "--json").lines
    assert 89 <= (datetime.fromisoformat(added["expires_at"]) - datetime.now(UTC)).days <= 90
    assert "until 20" in service("key", "list", "--owner", "x").out


@pytest.mark.parametrize(
    "arguments",
    [
        ("key", "add", "--owner", "x"),
        ("key", "add", "--scope", "read"),
        ("key", "add", "--owner", "x", "--scope", "all"),
    ],
)
def test_wrong_usage_is_exit_2(service, arguments):
    assert service(*arguments).code == 2


def test_an_owner_needs_a_name_that_can_be_one(service):
    done = service("key", "add", "--owner", "a/b", "--scope", "read")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "`a/b` cannot be an owner's name" in done.err


def test_an_owner_is_erased_after_a_question(service):
    service("key", "add", "--owner", "gone", "--scope", "read")
    assert service("erase", "gone", stdin="n\n").code == 1
    assert len(service("key", "list", "--owner", "gone", "--json").lines) == 1
    done = service("erase", "gone", "--yes")
    assert (done.code, done.out) == (0, "")
    assert done.err == "note: `gone` is erased: 1 keys\n"
    assert service("key", "list", "--owner", "gone", "--json").lines == []
    assert service("erase", "gone", stdin="y\n").err.endswith("note: `gone` is erased: nothing was there\n")


def test_the_store_is_that_of_the_folder_the_file_or_the_option(tidings, tmp_path):
    done = tidings("service", "key", "list")
    assert done.err.startswith(f"error: there is no service in `{tmp_path}/tidings-data`; name its folder with --data")
    (tmp_path / "service.toml").write_text('store = "sqlite:///mine.db"\n')
    added = tidings("service", "key", "add", "--owner", "x", "--scope", "admin", "--service", "service.toml", "--json")
    key = added.lines[0]["key"]
    assert len(tidings("service", "key", "list", "--store", "sqlite:///mine.db", "--json").lines) == 1
    store = open_store(f"sqlite:///{tmp_path}/mine.db")
    assert store.keys.find(digest_key(key)).owner == "x"
    assert [record.actor for record in store.audit.list()] == ["command line"]
    store.close()


@pytest.mark.parametrize("place", ["data", "store", "service"])
def test_a_store_that_is_named_wins_over_the_url_of_a_variable(tidings, tmp_path, monkeypatch, place):
    (tmp_path / "d").mkdir()
    (tmp_path / "service.toml").write_text('data = "d"\n')
    named = {"data": "d", "store": "sqlite:///d/store.db", "service": "service.toml"}
    monkeypatch.setenv("TIDINGS_URL", "http://127.0.0.1:9")
    assert tidings("service", "key", "add", "--owner", "x", "--scope", "read", "--data", "d").code == 0
    option = (f"--{place}", named[place])
    assert tidings("service", "erase", "x", "--yes", *option).err == "note: `x` is erased: 1 keys\n"
    done = tidings("service", "erase", "x", "--yes", *option, "--url", "http://127.0.0.1:9")
    assert (done.code, done.out) == (2, "")
    assert f"--{place}" in done.err


def test_what_stands_in_the_store_is_not_the_key(tidings, tmp_path):
    (tmp_path / "tidings-data").mkdir()
    key = tidings("service", "key", "add", "--owner", "x", "--scope", "admin").out.strip()
    url = ServiceSettings(data=tmp_path / "tidings-data").store_url.removeprefix("sqlite:///")
    assert key.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("store.db*"))
    assert (tmp_path / "tidings-data" / "store.db").samefile(url)


def test_a_wrong_key_of_an_administrator_is_refused(api, tidings, monkeypatch):
    monkeypatch.setenv("TIDINGS_KEY", api.make_key("x"))
    done = tidings("service", "key", "list", "--url", api.url)
    assert done.err.startswith("error: this needs a key for `admin`")
    assert json.dumps(done.err).count("tdk_") == 0


def test_a_model_is_counted_over_the_events_that_are_kept_or_named(tidings, tmp_path):
    done = tidings("service", "train", "--data", "d")
    assert done.err.startswith(f"error: there are no events in `{tmp_path}/d/events`; name files of a history")
    (tmp_path / "d").mkdir()
    url = ServiceSettings(data=tmp_path / "d").store_url
    rows = [{"id": str(at), "time": f"2026-01-01T00:{at:02}:00Z", "price": at % 3} for at in range(60)]
    write_lines(tmp_path / "history.jsonl", rows)
    assert "no pattern" in tidings("service", "train", "history.jsonl", "--data", "d", "--store", url).err
    draft = SubscriptionDraft(
        id="f", kind="forecast", text="a = price = 1\nb = price = 2\na ; b", mode="restart", horizon="2 own events"
    )
    store = open_store(url)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    store.subscriptions.write([Write(action="create", owner="x", id="f", actor="x", at=now, draft=draft)])
    store.close()
    done = tidings("service", "train", "history.jsonl", "--data", "d")
    assert done.err.startswith(f"note: 60 events counted; the model is in `{tmp_path}/d/patterns.model`")
    assert len(td.Model.load(tmp_path / "d" / "patterns.model").patterns) == 1
