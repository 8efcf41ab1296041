"""How long changes and events take in a service that runs: `python -m benchmarks.service.latency`.

A store is filled with subscriptions of the workload `equalities`, and `tidings serve` is started over it. For some
minutes events are posted, and subscriptions are created, both over HTTP at a steady pace. Measured are

- from the answer to a new subscription to the beginning of the first micro-batch that has it, as its claim says;
- from the moment before an event is posted until `GET .../matches` shows its match;
- the first load of the subscriptions, from the start of the process to its being ready.

What comes in the first seconds of a run (`--warm`), while Java and the workers are warming up, does not count. Beside
each figure stands its range over the thirds of the time that counts.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.service.load import Connection, Target, find_port
from tidings.bench.harness.results import describe_machine
from tidings.bench.workloads import workload
from tidings.service.store.opening import open_store
from tidings.service.subscription import SubscriptionDraft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidings.service.store.base import Store

OWNER = "bench"
"""Who owns the subscriptions that nobody looks at."""

SETTINGS = """
[limits]
requests_per_second = 1000000
events_per_second = 1000000
[matches]
keep = 100000
[spark]
spark.sql.streaming.minBatchesToRetain = "100000"
"""

PROBES, WATCHED = 20, "watched"
"""Events a second that carry the mark of the watched subscription, and its id."""

PATIENCE = 180.0


@dataclass(slots=True)
class Measurement:
    """What was seen: moments in seconds since 1970."""

    posted: dict[str, float] = field(default_factory=dict)  # by the id of a marked event
    shown: dict[str, float] = field(default_factory=dict)
    created: list[tuple[float, int]] = field(default_factory=list)  # when, and a change of the store not before it


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--subscriptions", type=int, default=1_000_000)
    options.add_argument("--seconds", type=float, default=180.0)
    options.add_argument("--warm", type=float, default=30.0, help="seconds before those that count")
    options.add_argument("--rate", type=int, default=100, help="events a second")
    options.add_argument("--creations", type=float, default=2.0, help="new subscriptions a second")
    options.add_argument("--store", default="", help="SQLAlchemy's URL of an empty store; by default SQLite")
    arguments = options.parse_args()
    place = arguments.store.partition(":")[0] or "sqlite"
    print(
        f"service, {place}, {arguments.subscriptions:,} subscriptions, {arguments.rate} events/s; {describe_machine()}"
    )
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        url = arguments.store or f"sqlite:///{data / 'store.db'}"
        store = open_store(url)
        fill_store(store, arguments.subscriptions)
        with ServedPipeline(Path(folder), data, url) as served:
            measured = measure(served, store, arguments)
        report(data, measured, time.time() if not measured.posted else min(measured.posted.values()) + arguments.warm)
        store.close()


def fill_store(store: Store, count: int) -> None:
    """Put so many subscriptions into the store, as an import does."""
    start = time.monotonic()
    drafts = (
        SubscriptionDraft(id=id, kind="filter", text=str(text)) for id, text in workload("equalities").pairs(count, 1)
    )
    store.subscriptions.write_many(OWNER, drafts, actor="benchmark", at=datetime.now(UTC))
    print(f"  import into the store: {time.monotonic() - start:.1f} s")


class ServedPipeline:
    """`tidings serve` while the block runs; prints how long the API and the pipeline took to be ready."""

    def __init__(self, folder: Path, data: Path, store_url: str) -> None:
        settings = folder / "service.toml"
        settings.write_text(SETTINGS)
        self._data, self._port, self._log = data, find_port(), folder / "serve.log"
        words = ["serve", str(settings), "--data", str(data), "--port", str(self._port), "--store", store_url]
        self._command = [sys.executable, "-m", "tidings", *words]

    def __enter__(self) -> Target:
        start = time.monotonic()
        with self._log.open("w") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)  # noqa: S603 - our own words
        self._wait(lambda: (self._data / "admin.key").exists() and "events are matched" in self._log.read_text())
        print(f"  ready after {time.monotonic() - start:.1f} s")
        return Target(self._port, (self._data / "admin.key").read_text().strip())

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(120)

    def _wait(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not condition():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(self._log.read_text()[-3000:])
            time.sleep(0.1)


def measure(target: Target, store: Store, arguments: argparse.Namespace) -> Measurement:
    """Post events and create subscriptions for some time; return when each was posted, created and shown."""
    measured, ending = Measurement(), threading.Event()
    create(target, WATCHED, "watched = 1")
    jobs = (
        lambda: post_events(target, measured, ending, arguments.rate),
        lambda: create_subscriptions(target, store, measured, ending, arguments.creations),
        lambda: watch_matches(target, measured, ending),
    )
    threads = [threading.Thread(target=job, daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    time.sleep(arguments.warm + arguments.seconds)
    ending.set()
    for thread in threads:
        thread.join(30)
    return measured


def pace(ending: threading.Event, interval: float) -> Iterator[int]:
    """Yield numbers at a steady pace, and hurry after a delay."""
    start, number = time.monotonic(), 0
    while not ending.is_set():
        yield number
        number += 1
        ending.wait(max(0.0, start + number * interval - time.monotonic()))


def post_events(target: Target, measured: Measurement, ending: threading.Event, rate: int) -> None:
    """Post so many events a second, in requests of a few; the first of each is watched."""
    connection, rows = Connection(target), workload("equalities").event_rows(5_000, 3)
    each = max(1, rate // PROBES)
    for number in pace(ending, each / rate):
        events = [{"id": f"e{number}-{part}", **rows[(number * each + part) % len(rows)]} for part in range(each)]
        body = json.dumps([{**events[0], "watched": 1}, *events[1:]], default=int).encode()
        measured.posted[f"e{number}-0"] = time.time()
        require(connection.send(target.build("POST", "/v1/events", body)).status, 202)


def create_subscriptions(
    target: Target, store: Store, measured: Measurement, ending: threading.Event, rate: float
) -> None:
    """Create so many subscriptions a second."""
    connection = Connection(target)
    for number in pace(ending, 1 / rate):
        create(target, f"new-{number}", f"a1 = {number % 50} and a2 = 7 and a3 = 1", connection)
        moment = time.time()
        measured.created.append((moment, store.log.read_head().sequence))


def create(target: Target, id: str, text: str, connection: Connection | None = None) -> None:
    """Create a subscription."""
    body = json.dumps({"id": id, "filter": text}).encode()
    require((connection or Connection(target)).send(target.build("POST", "/v1/subscriptions", body)).status, 201)


def watch_matches(target: Target, measured: Measurement, ending: threading.Event) -> None:
    """Ask for the latest matches of the watched subscription again and again."""
    connection, path = Connection(target), f"/v1/subscriptions/{WATCHED}/matches?limit=100"
    while not ending.is_set():
        reply = connection.send(target.build("GET", path))
        moment = time.time()
        require(reply.status, 200)
        for match in json.loads(reply.body)["matches"]:
            measured.shown.setdefault(match["event"], moment)
        ending.wait(0.02)


def require(status: int, expected: int) -> None:
    """Stop where an answer is another."""
    if status != expected:
        msg = f"an answer is {status} and not {expected}"
        raise RuntimeError(msg)


def report(data: Path, measured: Measurement, since: float) -> None:
    """Print the figures of what happened since a moment."""
    posted = measured.posted
    waits = [(posted[event], shown - posted[event]) for event, shown in measured.shown.items() if posted[event] > since]
    print_line("posted -> matches readable", waits)
    begun = find_beginnings(data)
    delays = [
        (moment, next(at for at, sequence in begun if sequence >= change) - moment)
        for moment, change in measured.created
        if moment > since and change <= begun[-1][1]
    ]
    print_line("created -> in force", delays)


def find_beginnings(data: Path) -> list[tuple[float, int]]:
    """Return when each micro-batch began, and the change of the store that its subscriptions have."""
    (folder,) = (path for path in (data / "checkpoint" / "subscriptions").iterdir() if path.is_dir())
    begun = []
    for path in sorted(folder.glob("claims/*/*.json")):
        claim = json.loads(path.read_text())
        version = json.loads((folder / "versions" / f"{claim['version']:08}.json").read_text())
        began = datetime.fromisoformat(claim["facts"]["now"]).timestamp()
        begun.append((began, int(version["position"]["store"]["sequence"])))
    return sorted(begun)


def print_line(name: str, waits: Sequence[tuple[float, float]]) -> None:
    """Print the median, the 99th percentile and the largest of waits, each behind the moment when it began."""
    seconds = [wait for _, wait in sorted(waits)]
    thirds = [seconds[len(seconds) * part // 3 : len(seconds) * (part + 1) // 3] for part in range(3)]
    medians, highs = [statistics.median(part) for part in thirds], [find_high(part) for part in thirds]
    print(f"  {name}: {len(seconds)} samples")
    print(f"    p50 {statistics.median(seconds):.2f} s ({min(medians):.2f}-{max(medians):.2f})", end=", ")
    print(f"p99 {find_high(seconds):.2f} s ({min(highs):.2f}-{max(highs):.2f}), most {max(seconds):.2f} s")


def find_high(seconds: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return sorted(seconds)[min(len(seconds) - 1, int(0.99 * len(seconds)))]


if __name__ == "__main__":
    main()
