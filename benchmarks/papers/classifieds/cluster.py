"""Matcher instances as processes: each holds the subscriptions of its tokens, every event goes to all of them."""

from __future__ import annotations

import multiprocessing
import pickle
import time
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from benchmarks.papers.classifieds.workload import CARS, shard_of, share
from tidings.lang import parse

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tidings.matcher import Matcher

SPARE = 400
"""Further subscriptions, which come and go while events are matched."""

LIVE = 50
"""So many of them are there at a time."""

PAUSE_S = 0.01
"""A subscription comes, and another goes, once in so long."""


class Cluster:
    """One or several instances of one kind; a context, so that the processes end with it."""

    def __init__(self, kind: str, *, shards: int, subscriptions: int, seed: int) -> None:
        """Start the processes and wait until all of them hold their share."""
        fresh = multiprocessing.get_context("spawn")
        self._nodes: list[Any] = []
        self._ends: list[Connection] = []
        begin = time.perf_counter()
        for shard in range(shards):
            mine, its = fresh.Pipe()
            arguments = (its, kind, (shard, shards), subscriptions, seed)
            node = fresh.Process(target=serve, args=arguments, daemon=True)
            node.start()
            self._nodes.append(node)
            self._ends.append(mine)
        self.sizes: list[int] = [end.recv() for end in self._ends]
        self.loaded_s = time.perf_counter() - begin

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for end in self._ends:
            end.send(("stop", None))
        for node in self._nodes:
            node.join()

    def ask(self, events: list[dict[str, Any]]) -> list[list[str]]:
        """Send events to all instances, and join their answers."""
        answers = self._send_all("ask", events)
        return (
            answers[0]
            if len(answers) == 1
            else [[id for ids in lists for id in ids] for lists in zip(*answers, strict=True)]
        )

    def change(self, *, on: bool) -> list[Any]:
        """Start or stop changing subscriptions in every instance; when stopped, each returns its number of changes."""
        return self._send_all("change", on)

    def read_spent(self) -> list[float]:
        """Return the seconds of processor time that each instance has taken."""
        return self._send_all("spent", None)

    def _send_all(self, verb: str, content: Any) -> list[Any]:
        message = pickle.dumps((verb, content))
        for end in self._ends:
            end.send_bytes(message)
        return [end.recv() for end in self._ends]


def serve(end: Connection, kind: str, place: tuple[int, int], subscriptions: int, seed: int) -> None:
    """Run one instance: load its share of the subscriptions, then answer until a message says stop."""
    matcher = CARS.matcher(kind)
    matcher.add_many(share(CARS.columns(subscriptions, seed), *place))
    matcher.settle()
    matcher.match_many(CARS.event_rows(64, seed))  # compiled code is loaded before the first event counts
    matcher.match(CARS.event_rows(1, seed)[0])
    changes = ClusterChanges(matcher, place, seed)
    end.send(len(matcher))
    while True:
        verb, message = end.recv()
        if verb == "ask":
            end.send([matcher.match(message[0])] if len(message) == 1 else matcher.match_many(message).by_event())
        elif verb == "spent":
            end.send(time.process_time())
        elif verb == "change":
            end.send(changes.begin() if message else changes.end())
        else:
            return


class ClusterChanges:
    """A thread of an instance in which subscriptions come and go, while the others match."""

    def __init__(self, matcher: Matcher, place: tuple[int, int], seed: int) -> None:
        """Make those that will come; only the ones of this shard."""
        shard, shards = place
        spare = [(f"x-{id}", parse(text)) for id, text in CARS.pairs(SPARE, seed + 1)]
        self._spare = [pair for pair in spare if shard_of(pair[0], shards) == shard]
        self._matcher = matcher
        self._over = Event()
        self._count = 0
        self._thread: Thread | None = None

    def begin(self) -> int:
        """Start."""
        self._over.clear()
        self._thread = Thread(target=self._run)
        self._thread.start()
        return 0

    def end(self) -> int:
        """Stop, remove the last subscriptions added, and return the number of changes."""
        assert self._thread is not None
        self._over.set()
        self._thread.join()
        return self._count

    def _run(self) -> None:
        at = 0
        while not self._over.wait(PAUSE_S):
            id, tree = self._spare[at % len(self._spare)]
            self._matcher.add(id, tree)
            old, _ = self._spare[(at - LIVE) % len(self._spare)]
            if old in self._matcher:
                self._matcher.remove(old)
                self._count += 1
            at, self._count = at + 1, self._count + 1
        for id, _ in self._spare:
            if id in self._matcher:
                self._matcher.remove(id)
