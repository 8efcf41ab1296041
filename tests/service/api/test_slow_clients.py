"""A thousand clients that take their time: they are let go, and everybody else is served meanwhile."""

import os
import resource
import socket
import subprocess
import sys
import time

import httpx
import pytest
from tests.kafka.broker import wait_for
from tests.kafka.leash import build_leashed_command

CLIENTS = 1_000
HEAD = b"POST /v1/subscriptions HTTP/1.1\r\nhost: x\r\n"
WAIT = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The port and the key of a service that runs as a process, and the process."""
    folder = tmp_path_factory.mktemp("slow")
    command = build_leashed_command(sys.executable, "-m", "tests.service.api.slow_server", str(folder))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        port, key = process.stdout.readline().split()
        yield int(port), key, process
        process.kill()


@pytest.fixture(autouse=True)
def files():
    """Enough files for a thousand sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4 * CLIENTS), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(port, count, data):
    connections = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        connection.sendall(data)
        connections.append(connection)
    return connections


def measure_read(port, key):
    begin = time.perf_counter()
    answer = httpx.get(
        f"http://127.0.0.1:{port}/v1/subscriptions", headers={"Authorization": f"Bearer {key}"}, timeout=WAIT
    )
    assert answer.status_code == 200
    return time.perf_counter() - begin


def read_all(connection):
    data = b""
    while piece := connection.recv(65_536):
        data += piece
    return data


def check_service(port, key, connections, status):
    """Others are served at once while the slow are there; then each of these is refused, or just let go."""
    assert sorted(measure_read(port, key) for _ in range(10))[5] < 1
    for connection in connections:
        answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 " + status) if status else not answer, answer[:200]
        connection.close()
    measure_read(port, key)


@pytest.mark.parametrize("data", [b"", b"GET /v1", HEAD], ids=["nothing", "a line", "headers"])
def test_who_sends_no_headers_is_let_go(server, data):
    port, key, _ = server
    check_service(port, key, connect(port, CLIENTS, data), b"")


def test_who_sends_half_a_body_is_told_so(server):
    port, key, _ = server
    head = HEAD + f"authorization: Bearer {key}\r\n".encode()
    check_service(port, key, connect(port, CLIENTS, head + b'content-length: 1000\r\n\r\n{"id":'), b"408")


def send_headers(connection, size):
    for _ in range(size // 10_000):
        connection.sendall(b"x-header: " + b"x" * 9_988 + b"\r\n")


def test_headers_without_an_end_are_not_kept(server):
    port, key, process = server
    before = read_memory(process.pid)
    connections = connect(port, 20, b"GET / HTTP/1.1\r\n")
    for connection in connections:
        with pytest.raises(OSError):  # noqa: PT011 - reset or broken: closed by the other side
            send_headers(connection, 10_000_000)
        connection.close()
    assert read_memory(process.pid) - before < 50_000_000
    measure_read(port, key)


def test_who_reads_nothing_is_no_harm(server):
    port, key, process = server
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    lines = b"".join(b'{"id": "s%d", "filter": "a = \'%s\'"}\n' % (n, b"x" * 1_000) for n in range(5_000))
    url = f"http://127.0.0.1:{port}/v1/subscriptions"
    assert httpx.post(f"{url}:import", content=lines, headers=headers, timeout=WAIT).status_code == 200
    request = f"GET /v1/subscriptions:export HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n".encode()
    before = read_memory(process.pid)
    connections = connect(port, CLIENTS, request)
    for connection in connections:  # all answers have begun
        assert connection.recv(1, socket.MSG_PEEK)
    measure_read(port, key)
    assert read_memory(process.pid) - before < 500_000_000  # all answers have 5 GB
    for connection in connections:
        connection.close()
    measure_read(port, key)


def test_an_answer_that_nobody_reads_is_not_kept(server):
    port, key, process = server
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    lines = b"".join(
        b'{"id": "l%d", "filter": "a = \'%s\'", "labels": ["long"]}\n' % (n, b"x" * 40_000) for n in range(500)
    )
    url = f"http://127.0.0.1:{port}/v1/subscriptions"
    assert httpx.post(f"{url}:import", content=lines, headers=headers, timeout=WAIT).status_code == 200
    request = f"GET /v1/subscriptions?label=long&limit=500 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n"
    before = count_files(process.pid)
    connections = connect(port, 10, request.encode())
    for connection in connections:  # all answers have begun
        assert connection.recv(1, socket.MSG_PEEK)
    assert wait_for(lambda: count_files(process.pid) <= before, WAIT)
    for connection in connections:
        assert len(read_all(connection)) < 20_000_000
        connection.close()
    answer = httpx.get(url, params={"label": "long", "limit": 500}, headers=headers, timeout=WAIT)
    assert len(answer.content) > 20_000_000  # who reads has all


def count_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def read_memory(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
