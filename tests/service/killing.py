"""A served folder under a client that subscribes, changes, deletes and posts, while processes of it are killed.

The client keeps a model of what was acknowledged. A request that is not answered is sent again: creations with the same
`Idempotency-Key`, events with the same ids. So everything is acknowledged in the end, and the model is exact.

What the matches must be follows from the checkpoint: which files a batch read, and which version of the subscriptions
its claim names. Events that came twice count once.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from tests.kafka.broker import wait_for
from tests.kafka.leash import build_leashed_command
from tests.spark.pipeline.crashing import alive, command_of, descendants

import tidings as td
from tidings.spark.pipeline.sources.file_log import read_entries

PATIENCE = 180
MAKES = ("ford", "fiat", "saab", "seat", "audi")


class ServedFolder:
    """`tidings serve` over a folder, in a process group of its own; gone with the block, whatever happens."""

    def __init__(self, folder, *arguments, port):
        self.data, self.port, self.arguments = Path(folder), port, arguments
        self.process = None
        self._log = self.data.parent / f"{self.data.name}.log"

    def start(self):
        """Start it, and wait until the API answers."""
        words = [sys.executable, "-m", "tidings", "serve", "--data", self.data, "--port", self.port, *self.arguments]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                build_leashed_command(*map(str, words)), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.until(self.is_ready)
        return self

    def is_ready(self):
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def until(self, condition):
        """Wait for something while the process runs; fail with what it said when it ends instead."""
        wait_for(lambda: condition() or self.process.poll() is not None, PATIENCE)
        assert condition(), f"exit code {self.process.poll()}\n{self.words()}"

    def words(self):
        """What the service and its children said last."""
        texts = [self._log, *(self.data / "logs").glob("*.log")]
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in texts)

    @property
    def key(self):
        return (self.data / "admin.key").read_text().strip()

    def client(self):
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=10)

    def children(self, word):
        """The processes under this one that serve a part: `api`, `pipeline`."""
        return [pid for pid in descendants(self.process.pid) if f" serve --only {word}" in command_of(pid)]

    def kill(self, word):
        """Kill the processes of one part, as the machine might; there must be some."""
        self.until(lambda: self.children(word))
        for pid in self.children(word):
            os.kill(pid, signal.SIGKILL)

    def stop(self):
        """End it by SIGTERM, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        wait_for(lambda: self.process.poll() is not None, PATIENCE)
        return self.process.poll()

    def __enter__(self):
        return self.start()

    def __exit__(self, *problem):
        started = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        wait_for(lambda: not any(map(alive, started)), 30)
        for pid in filter(alive, started):
            os.kill(pid, signal.SIGKILL)


class BusyClient:
    """Creates, changes and deletes subscriptions and posts events at random until it is closed; knows what it did."""

    def __init__(self, served, seed):
        self._served, self._rng = served, random.Random(seed)
        self._client, self._ending = served.client(), threading.Event()
        self.filters, self.removed, self.events = {}, {}, {}
        self.problem = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *problem):
        self._ending.set()
        self._thread.join(PATIENCE)
        assert self.problem is None, self.problem

    def _run(self):
        try:
            while not self._ending.is_set():
                act = self._rng.choices([self._create, self._change, self._remove, self._post], [3, 2, 1, 6])[0]
                act()
                self._ending.wait(0.03)
        except BaseException as problem:  # noqa: BLE001 - shown by the test's own thread
            self.problem = problem

    def _send(self, method, path, *, expected, **request):
        """Send a request until it is answered; the answer must be one of the expected.

        When an earlier try may have been done and not answered, a 404 to a DELETE is an answer too.
        """
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                reply = self._client.request(method, path, **request)
            except httpx.HTTPError:
                expected = expected | {404} if method == "DELETE" else expected
                time.sleep(0.05)
                continue
            if reply.status_code >= 500 or reply.status_code == 429:
                time.sleep(0.05)
                continue
            assert reply.status_code in expected, f"{method} {path}: {reply.status_code} {reply.text}"
            return reply
        pytest.fail(f"{method} {path} was never answered")

    def _draw_filter(self):
        return f"make = '{self._rng.choice(MAKES)}' and price < {self._rng.randrange(1000)}"

    def _create(self):
        id, filter = f"s{len(self.filters) + len(self.removed)}", self._draw_filter()
        body, headers = {"id": id, "filter": filter}, {"Idempotency-Key": f"create-{id}"}
        self._send("POST", "/v1/subscriptions", json=body, headers=headers, expected={201})
        self.filters[id] = filter

    def _change(self):
        if self.filters:
            id, filter = self._rng.choice(list(self.filters)), self._draw_filter()
            self._send("PUT", f"/v1/subscriptions/{id}", json={"filter": filter}, expected={200})
            self.filters[id] = filter

    def _remove(self):
        if self.filters:
            id = self._rng.choice(list(self.filters))
            self._send("DELETE", f"/v1/subscriptions/{id}", expected={204})
            del self.filters[id]
            self.removed[id] = time.time()

    def _post(self):
        rows = [
            {"id": f"e{len(self.events) + n}", "make": self._rng.choice(MAKES), "price": self._rng.randrange(1000)}
            for n in range(self._rng.randrange(1, 20))
        ]
        self._send("POST", "/v1/events", json=rows, expected={202})
        self.events |= {row["id"]: row for row in rows}


# What must have come out -----------------------------------------------------------------------------


def list_batches(data):
    """Return the files of events of each batch of the matching query, as the pipeline's log of files names them."""
    checkpoint = Path(data) / "checkpoint"
    files, batches, before = dict(read_entries(checkpoint / "files_of_query.jsonl")), {}, 0
    offsets = [path for path in checkpoint.glob("query/offsets/*") if path.name.isdigit()]
    for path in sorted(offsets, key=lambda path: int(path.name)):
        end = json.loads(path.read_text().splitlines()[2])["n"]
        names = [name for number in range(before + 1, end + 1) for name in files[number]]
        batches[int(path.name)] = [Path(data) / "events" / name for name in names]
        before = end
    return batches


def read_claimed_batches(data):
    """Yield the claim of each batch that has begun, by its number, with the batch's events."""
    batches = list_batches(data)
    for batch, paths in batches.items():
        claims = list(Path(data).glob(f"checkpoint/subscriptions/*/claims/*/{batch:010}.json"))
        if not claims:
            assert not paths or batch == max(batches)  # which has only just begun
            continue
        events = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
        yield batch, json.loads(claims[0].read_text()), events


def list_read_ids(data):
    """Return the ids of the events in all batches that have begun."""
    return {event["id"] for _, _, events in read_claimed_batches(data) for event in events}


def replay(data):
    """Return the pairs of subscription and event that the claims of all batches lead to, and what batches began with.

    That is for each batch its time and the ids of its subscriptions.
    """
    pairs, versions, seen = set(), {}, set()
    (folder,) = [path for path in Path(data).glob("checkpoint/subscriptions/*") if path.is_dir()]
    live = td.Live(folder)
    for batch, claim, events in read_claimed_batches(data):
        matcher = live.open(claim["version"])
        versions[batch] = (claim["facts"]["now"], set(matcher))
        for event in events:
            if event["id"] not in seen:
                seen.add(event["id"])
                pairs |= {(id, event["id"]) for id in matcher.match(event)}
    return pairs, versions


def read_matches(client, ids):
    """Return the pairs of subscription and event that the API shows."""
    pairs = []
    for id in ids:
        cursor = None
        while True:
            query = {"limit": 200} | ({"cursor": cursor} if cursor else {})
            page = client.get(f"/v1/subscriptions/{id}/matches", params=query).raise_for_status().json()
            pairs += [(id, match["event"]) for match in page["matches"]]
            if not (cursor := page["next"]):
                break
    return pairs
