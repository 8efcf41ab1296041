"""`tidings serve`: what it refuses in one line, and the API as a process; the guide's test has the pipeline too."""

import json
import os
import signal
import socket
import stat
from datetime import UTC, datetime

import httpx
import pytest
from tests.kafka.broker import find_free_port, wait_for

from tidings.cli.service import serve as body
from tidings.service.data_folder import (
    DataFolderError,
    ensure_admin_key,
    is_private,
    lock_folder,
    prepare_folder,
    read_key,
)
from tidings.service.keys import digest_key
from tidings.service.settings import ServiceSettings
from tidings.service.store.memory import MemoryStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)


# Refused in one line ------------------------------------------------------------------------------


def test_a_check_says_what_would_be_served(tidings, tmp_path):
    (tmp_path / "service.toml").write_text('port = 9000\n[schema]\nprice = "number"\n')
    done = tidings("serve", "service.toml", "--check", "--host", "0.0.0.0")
    assert done.code == 0
    assert "address   0.0.0.0:9000, 1 process\n" in done.out
    (line,) = tidings("serve", "service.toml", "--check", "--json").lines
    assert (line["ok"], line["service"]["schema"]) == (True, "1 attributes")
    assert not (tmp_path / "tidings-data").exists()


def test_all_mistakes_of_the_file_come_together(tidings, tmp_path):
    (tmp_path / "service.toml").write_text("prt = 1\nworkers = 0\n")
    done = tidings("serve", "service.toml")
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 3
    assert done.err.splitlines()[1] == "line 1: `prt` is not a key; did you mean `port`?"
    done = tidings("serve", "service.toml", "--check", "--json")
    assert (done.code, len(done.lines[0]["mistakes"])) == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.toml",), "nowhere.toml"),
        (("--port", 70000), "error: the port must be at most 65535, not `70000`"),
        (("--store", "mysql://me:swordfish@db/x"), 'error: the store must be a URL such as "sqlite:///store.db"'),
        (("--host", "203.0.113.1"), "assign requested address; choose an address of this machine with --host"),
        (("--host", "no.such.host.invalid"), "; choose an address of this machine with --host"),
        (("--data", "file/data"), "file/data`: Not a directory; choose another with --data"),
        (("--data", "file"), "/file`: it is a file; choose another with --data"),
        (("--data", "taken"), "/taken/events`: it is a file; let the user of the service write there"),
        (("--store", "sqlite:///file/store.db"), "or name another one with --store"),
        (("--store", "postgresql+psycopg://me:swordfish@127.0.0.1:9/x"), "error: "),
    ],
)
def test_what_cannot_be_is_one_line(tidings, tmp_path, arguments, words):
    (tmp_path / "file").touch()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "events").touch()
    done = tidings("serve", *(arguments if "--host" in arguments else ("--port", find_free_port(), *arguments)))
    assert (done.code, done.out) == (1, "")
    assert words in done.err.splitlines()[-1]
    assert "swordfish" not in done.err
    assert len(done.err.splitlines()) == 1


def test_a_port_that_is_taken_is_one_line(tidings):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for only in ((), ("--only", "api")):
            done = tidings("serve", "--port", port, *only)
            assert done.code == 1
            assert done.err == (
                f"error: cannot listen on 127.0.0.1:{port}: Address already in use; choose another port with --port\n"
            )


def test_variables_for_workers_are_gone_with_their_server(monkeypatch):
    """Tests of other commands in this process went by the folder of one that served."""
    monkeypatch.setenv("TIDINGS_STORE", "before")
    with body.set_variables({"TIDINGS_STORE": "now", "TIDINGS_SERVICE_DATA": "here"}):
        assert (os.environ["TIDINGS_STORE"], os.environ["TIDINGS_SERVICE_DATA"]) == ("now", "here")
    assert os.environ["TIDINGS_STORE"] == "before"
    assert "TIDINGS_SERVICE_DATA" not in os.environ


def test_without_java_it_says_how_to_get_it(tidings, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for arguments in ((), ("--only", "pipeline")):
        done = tidings("serve", *arguments)
        assert done.code == 1
        assert done.err.startswith("error: the pipeline runs on Spark, which needs Java: JAVA_HOME is")
        assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("only", "lacking", "words"),
    [
        ((), ("fastapi", "pyspark"), "'tidings[service,spark]'"),
        (("--only", "api"), ("fastapi", "pyspark"), "'tidings[service]'"),
        (("--only", "pipeline"), ("pyspark",), "'tidings[spark]'"),
    ],
)
def test_a_missing_extra_is_named(tidings, monkeypatch, only, lacking, words):
    monkeypatch.setattr(body, "find_spec", lambda name: None if name in lacking else name)
    done = tidings("serve", *only)
    assert done.code == 1
    assert done.err == f"error: `tidings serve` needs what is not installed; get it with `pip install {words}`\n"


def test_kafka_needs_its_extra(tidings, monkeypatch, tmp_path):
    (tmp_path / "service.toml").write_text('[events]\nto = "kafka"\nservers = "b:1"\ntopic = "ads"\n')
    monkeypatch.setattr(body, "find_spec", lambda name: None if name == "confluent_kafka" else name)
    assert "'tidings[kafka]'" in tidings("serve", "service.toml", "--check").err


# The folder ---------------------------------------------------------------------------------------


def test_the_folder_and_the_key_are_for_their_user_alone(tmp_path):
    settings = ServiceSettings(data=tmp_path / "data")
    assert prepare_folder(settings)
    assert not prepare_folder(settings)
    assert stat.S_IMODE(settings.data.stat().st_mode) == 0o700
    assert settings.events_folder.is_dir()
    store = MemoryStore()
    assert ensure_admin_key(store, settings.data, now=NOW)
    assert stat.S_IMODE((settings.data / "admin.key").stat().st_mode) == 0o600
    key = read_key(settings.data / "admin.key")
    assert store.keys.find(digest_key(key)).scopes == {"read", "write", "publish", "admin"}
    assert not ensure_admin_key(store, settings.data, now=NOW)
    assert len(store.keys.list()) == 1
    assert is_private(settings.data / "admin.key")
    (settings.data / "admin.key").chmod(0o640)
    assert not is_private(settings.data / "admin.key")


@pytest.mark.parametrize("name", ["events", "logs"])
def test_each_folder_in_it_is_tried_at_the_start(tmp_path, monkeypatch, name):
    settings = ServiceSettings(data=tmp_path / "data")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path.name != name and access(path, mode))
    with pytest.raises(DataFolderError, match=f"{name}`: it is not to be written to; let the user of the service"):
        prepare_folder(settings)


def test_the_key_of_the_folder_is_taught_to_another_store_unless_it_was_revoked(tmp_path):
    first, second = MemoryStore(), MemoryStore()
    ensure_admin_key(first, tmp_path, now=NOW)
    key = digest_key(read_key(tmp_path / "admin.key"))
    assert not ensure_admin_key(second, tmp_path, now=NOW)
    assert second.keys.find(key).owner == "admin"
    second.keys.revoke(second.keys.find(key).id, actor="x", at=NOW)
    ensure_admin_key(second, tmp_path, now=NOW)
    assert second.keys.find(key).revoked_at == NOW
    (tmp_path / "admin.key").unlink()
    assert not ensure_admin_key(first, tmp_path, now=NOW)  # it has an administrator's key, wherever that is kept
    assert not (tmp_path / "admin.key").exists()


def test_a_folder_is_served_once(tmp_path):
    again = pytest.raises(DataFolderError, match=f"process {os.getpid()} serves")
    with lock_folder(tmp_path), again, lock_folder(tmp_path):
        pass
    with lock_folder(tmp_path):
        pass


# The API as a process -----------------------------------------------------------------------------


def test_the_api_alone_answers_and_ends_when_asked(spawn, tmp_path):
    port = find_free_port()
    process = spawn("serve", "--only", "api", "--port", port, "--workers", 2, "--host", "0.0.0.0")
    assert process.stdout.readline().decode() == f"ready: the API answers at http://127.0.0.1:{port}\n"
    assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    assert not (tmp_path / "tidings-data" / "admin.key").exists()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    host, keys = process.stderr.read().decode().splitlines()
    assert host.startswith("warning: 0.0.0.0 can be reached from other machines, and keys travel in the clear")
    assert keys == (
        "warning: the store has no key of an administrator, so every request is a 401: "
        f"make one with `tidings service key add --owner ops --scope admin --data {tmp_path / 'tidings-data'}`"
    )


def test_the_api_alone_says_nothing_of_keys_where_somebody_has_one(spawn, tidings):
    store = ("--store", "sqlite:///shared.db")
    assert tidings("service", "key", "add", "--owner", "ops", "--scope", "admin", *store).code == 0
    process = spawn("serve", "--only", "api", "--port", find_free_port(), *store)
    assert process.stdout.readline().startswith(b"ready: ")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert process.stderr.read() == b""


def test_workers_go_by_the_file_of_the_one_that_started_them(spawn, tmp_path, tidings):
    store = "sqlite:///there.db"
    (tmp_path / "service.toml").write_text(f'workers = 2\nstore = "{store}"\n[schema]\nprice = "number"\n')
    key = tidings("service", "key", "add", "--owner", "x", "--scope", "read", "--store", store).out.strip()
    port = find_free_port()
    process = spawn("serve", "service.toml", "--only", "api", "--port", port, "--data", "d")
    process.stdout.readline()
    body = {"json": {"filter": "prise < 1"}, "headers": {"Authorization": f"Bearer {key}"}}
    answer = httpx.post(f"http://127.0.0.1:{port}/v1/subscriptions:validate", **body)
    assert (answer.status_code, answer.json()["valid"]) == (200, False)
    assert not (tmp_path / "d" / "store.db").exists()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_workers_end_with_a_server_that_is_killed(spawn):
    port = find_free_port()
    process = spawn("serve", "--only", "api", "--port", port, "--workers", 2)
    process.stdout.readline()
    process.kill()
    process.wait()
    assert wait_for(lambda: is_refused(port), 20)


def test_a_request_under_way_is_answered_before_the_end(spawn, tmp_path, tidings):
    port = find_free_port()
    process = spawn("serve", "--only", "api", "--port", port, "--data", "d")
    process.stdout.readline()
    key = tidings("service", "key", "add", "--owner", "x", "--scope", "write", "--data", "d").out.strip()
    text = json.dumps({"filter": "a = 1"}).encode()
    with socket.create_connection(("127.0.0.1", port)) as client:
        head = f"POST /v1/subscriptions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        client.sendall(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text[:4])
        assert wait_for(lambda: httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200, 10)
        process.send_signal(signal.SIGTERM)
        assert wait_for(lambda: is_refused(port), 10)
        client.sendall(text[4:])
        client.settimeout(10)
        assert client.recv(100).startswith(b"HTTP/1.1 201")
    assert process.wait(30) == 0


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False
