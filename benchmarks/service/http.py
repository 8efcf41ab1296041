"""The API in one process, beside a bare FastAPI route and beside raw SQL: `python -m benchmarks.service.http`.

Each round measures, one after the other: raw committed inserts into SQLite with the store's own pragmas, the bare
route, reading a subscription, and creating one; then events in batches of 500, and once an import of `--import`
classifieds subscriptions. The ratios are of medians over the rounds; the spread is that of the rounds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.service.load import Connection, Target, find_port, measure_rate
from tidings.bench.harness.results import describe_machine
from tidings.bench.workloads import workload
from tidings.service.settings import LimitSettings, ServiceSettings
from tidings.service.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastapi import FastAPI

Requests: TypeAlias = "Callable[[int], Iterator[bytes]]"
"""The requests of each connection, by its number."""

FOLDER = "TIDINGS_BENCH_FOLDER"
STORE = "TIDINGS_BENCH_STORE"
ENDLESS = LimitSettings(requests_per_second=1e9, events_per_second=1e9, subscriptions=10_000_000)
"""A benchmark is one owner who asks as fast as it can."""


def make_bare_app() -> FastAPI:
    """Return an app with one route that does nothing."""
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/bare")
    async def answer() -> dict[str, bool]:
        return {"ok": True}

    return app


def make_service_app() -> FastAPI:
    """Return the service's app over the folder and the store of the environment."""
    from tidings.service.api.app import build_app

    settings = _make_settings()
    return build_app(settings, open_store(settings.store_url))


def _make_settings() -> ServiceSettings:
    settings = ServiceSettings(data=Path(os.environ[FOLDER]), limits=ENDLESS)
    return replace(settings, store=os.environ.get(STORE, ""))


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--connections", type=int, default=8)
    options.add_argument("--import", dest="imported", type=int, default=1_000_000)
    options.add_argument("--store", default="", help="SQLAlchemy's URL; by default SQLite in a temporary folder")
    options.add_argument("--quick", action="store_true", help="a hundredth of the work, for a smoke test")
    arguments = options.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds, arguments.imported = 1, 0.05, 500
    print(f"service, {arguments.store.partition(':')[0] or 'sqlite'}; {describe_machine()}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({FOLDER: folder, STORE: arguments.store})
        key = add_key()
        with run_app("make_service_app", key) as service, run_app("make_bare_app") as bare:
            rates = measure_rounds(service, bare, Path(folder), arguments)
            report_rates(rates)
            report_import(service, arguments.imported)


def add_key() -> str:
    """Return a new admin key of the store."""
    from tidings.service.keys import make_key

    store = open_store(_make_settings().store_url)
    text, record = make_key("bench", ["read", "write", "publish", "admin"], at=datetime.now(UTC))
    store.keys.add(record, actor="bench")
    store.close()
    return text


@contextmanager
def run_app(factory: str, key: str = "") -> Iterator[Target]:
    """Run an app of this module under uvicorn, as one process, while the block runs."""
    port = find_port()
    words = ["--factory", f"benchmarks.service.http:{factory}", "--port", str(port), "--no-access-log"]
    command = [sys.executable, "-m", "uvicorn", *words, "--log-level", "warning"]
    process = subprocess.Popen(command)  # noqa: S603 - our own words
    try:
        _wait_until_open(port)
        yield Target(port, key)
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_open(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            return Connection(Target(port)).close()
        except OSError:
            time.sleep(0.05)
    msg = f"nothing listens on port {port}"
    raise RuntimeError(msg)


def measure_rounds(
    service: Target, bare: Target, folder: Path, arguments: argparse.Namespace
) -> dict[str, list[float]]:
    """Return requests (or rows, or events) a second by what was measured, a figure for each round."""
    rates: dict[str, list[float]] = {}
    filters = workload("equalities").texts(20_000, 1).column("filter").to_pylist()
    events = [json.dumps(row).encode() for row in workload("equalities").event_rows(2_000, 2)]
    posted = Connection(service).send(service.build("POST", "/v1/subscriptions", make_body("fixed", filters[0])))
    if posted.status != 201:
        raise RuntimeError(posted.body.decode())

    def measure(name: str, target: Target, requests: Requests, status: int, connections: int) -> None:
        keywords = {"status": status, "seconds": arguments.seconds, "connections": connections}
        rates.setdefault(name, []).append(measure_rate(target, requests, **keywords))

    for round_number in range(arguments.rounds):
        for connections in (1, arguments.connections):
            rate = measure_raw_inserts(folder / "raw.db", filters, arguments.seconds)
            rates.setdefault(f"raw insert, {connections}", []).append(rate)
            measure(f"bare, {connections}", bare, repeat(bare.build("GET", "/bare")), 200, connections)
            read = repeat(service.build("GET", "/v1/subscriptions/fixed"))
            measure(f"read, {connections}", service, read, 200, connections)

            def create(number: int, prefix: str = f"{round_number}-{connections}") -> Iterator[bytes]:
                for count, text in enumerate(itertools.cycle(filters)):
                    yield service.build("POST", "/v1/subscriptions", make_body(f"{prefix}-{number}-{count}", text))

            measure(f"create, {connections}", service, create, 201, connections)
        batches = make_batches(service, events, prefix=str(round_number))
        measure("batches of 500 events", service, batches, 202, 2)
    rates["events"] = [500 * rate for rate in rates["batches of 500 events"]]
    return rates


def repeat(request: bytes) -> Requests:
    """Return the same request again and again, for every connection."""
    return lambda _: itertools.repeat(request)


def make_body(id: str, text: str) -> bytes:
    """Return the body that creates a subscription."""
    return json.dumps({"id": id, "filter": text}).encode()


def make_batches(target: Target, events: list[bytes], *, prefix: str) -> Requests:
    """Return requests of 500 events each, whose ids are new."""

    def post(number: int) -> Iterator[bytes]:
        for count in itertools.count():
            rows = (events[(count * 500 + place) % len(events)] for place in range(500))
            ids = (f"{prefix}-{number}-{count}-{place}" for place in range(500))
            lines = (b'{"id": "' + id.encode() + b'", ' + row[1:] for id, row in zip(ids, rows, strict=False))
            yield target.build("POST", "/v1/events", b"[" + b",".join(lines) + b"]")

    return post


def measure_raw_inserts(path: Path, filters: list[str], seconds: float) -> float:
    """Return inserts a second, each committed by itself, into a table of the same columns that matter."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE IF NOT EXISTS raw (owner TEXT, id TEXT, text TEXT, PRIMARY KEY (owner, id))")
    database.execute("DELETE FROM raw")
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        database.execute("INSERT INTO raw VALUES ('bench', ?, ?)", (f"s{count}", filters[count % len(filters)]))
        count += 1
    database.close()
    return count / (time.perf_counter() - begin)


def report_rates(rates: dict[str, list[float]]) -> None:
    """Print the medians, their spread, and the ratios that the project promises."""
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, values in rates.items():
        spread = (max(values) - min(values)) / 2 / medians[name]
        print(f"  {name:28} {medians[name]:12,.0f} a second  (+-{100 * spread:.0f} %)")
    for connections in sorted({name.partition(", ")[2] for name in medians if name.startswith("read")}):
        create = medians[f"create, {connections}"] / medians[f"raw insert, {connections}"]
        read = medians[f"read, {connections}"] / medians[f"bare, {connections}"]
        of_raw, of_bare = f"create {create:.0%} of a raw committed insert", f"read {read:.0%} of the bare route"
        print(f"  {connections} connections: {of_raw}, {of_bare}")


def report_import(service: Target, count: int) -> None:
    """Import subscriptions of the workload `classifieds` in one request, and print how long that took."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        for row in workload("classifieds").texts(count, 1).select(["id", "filter"]).to_pylist():
            file.write(json.dumps({"id": str(row["id"]), "filter": row["filter"]}).encode() + b"\n")
        file.flush()
        headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/x-ndjson"}
        headers["Content-Length"] = str(Path(file.name).stat().st_size)
        begin = time.perf_counter()
        connection = HTTPConnection(service.host, service.port, timeout=600)
        with Path(file.name).open("rb") as body:
            connection.request("POST", "/v1/subscriptions:import", body, headers)
            answer = connection.getresponse().read()[:200]
        print(f"  import of {count:,}: {time.perf_counter() - begin:.1f} s  {answer!r}")


if __name__ == "__main__":
    main()
