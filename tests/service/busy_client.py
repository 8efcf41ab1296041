"""A client that subscribes, changes, deletes and posts while processes die, and a model of what was acknowledged.

A request that is not answered is sent again: creations with the same `Idempotency-Key`, events with the same ids. So
everything is acknowledged in the end, and the model is exact.
"""

import random
import threading
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest

PATIENCE = 600

MAKES = ("ford", "fiat", "saab", "seat", "audi")

KEYS = 40
"""Values of the field that the steps of a pattern share."""

PAUSE_S = 0.03
"""Between two requests; five times as much with patterns, which find far more than filters do."""

DISORDER_MS = 800
"""How far the time of an event may be behind that of one before it."""

SHAPES = ("a ; b within 3 s", "a ; not b for 1 s", "a ; b ; c within 6 s", "a{2,3} ; b within 4 s")

MODES = ("restart", "overlap", "next", "any")


class BusyClient:
    """Creates, changes and deletes subscriptions and posts events at random until it is closed; knows what it did.

    `bodies` has what subscriptions say, by id. With `has_patterns` some of them are patterns, a change may make a
    pattern of a filter, and events have times of their own, which are not in order.
    """

    def __init__(self, served, seed, *, has_patterns=False):
        self._served, self._rng, self._has_patterns = served, random.Random(seed), has_patterns
        self._client, self._ending = served.client(), threading.Event()
        self.bodies, self.removed, self.events = {}, {}, {}
        self.problem = None
        self._pause = PAUSE_S * (5 if has_patterns else 1)
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
                self._ending.wait(self._pause)
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

    # Subscriptions -------------------------------------------------------------------------------

    def _create(self):
        id, body = f"s{len(self.bodies) + len(self.removed)}", self._draw_body()
        headers = {"Idempotency-Key": f"create-{id}"}
        self._send("POST", "/v1/subscriptions", json={"id": id, **body}, headers=headers, expected={201})
        self.bodies[id] = body

    def _change(self):
        if self.bodies:
            id, body = self._rng.choice(list(self.bodies)), self._draw_body()
            self._send("PUT", f"/v1/subscriptions/{id}", json=body, expected={200})
            self.bodies[id] = body

    def _remove(self):
        if self.bodies:
            id = self._rng.choice(list(self.bodies))
            self._send("DELETE", f"/v1/subscriptions/{id}", expected={204})
            del self.bodies[id]
            self.removed[id] = time.time()

    def _draw_body(self):
        if self._has_patterns and self._rng.random() < 0.5:
            return {"pattern": self._draw_pattern(), "mode": self._rng.choice(MODES)}
        return {"filter": self._draw_filter()}

    def _draw_filter(self):
        return f"make = '{self._rng.choice(MAKES)}' and price < {self._rng.randrange(1000)}"

    def _draw_pattern(self):
        shape, makes = self._rng.choice(SHAPES), self._rng.sample(MAKES, 3)
        most = self._rng.randrange(100, 400)
        steps = [
            f"{step} = make = '{make}' and price < {most} and key = $k" for step, make in zip("abc", makes, strict=True)
        ]
        return "\n".join([*(step for step in steps if step[0] in shape.partition(" within ")[0]), shape])

    # Events --------------------------------------------------------------------------------------

    def post(self, *rows):
        """Post events, and note them."""
        self._send("POST", "/v1/events", json=rows, expected={202})
        self.events |= {row["id"]: row for row in rows}

    def _post(self):
        self.post(*(self._draw_event(f"e{len(self.events) + n}") for n in range(self._rng.randrange(1, 20))))

    def _draw_event(self, id):
        event = {"id": id, "make": self._rng.choice(MAKES), "price": self._rng.randrange(1000)}
        if self._has_patterns:
            time = datetime.now(UTC) - timedelta(milliseconds=self._rng.randrange(DISORDER_MS))
            event |= {"key": self._rng.randrange(KEYS), "time": time.isoformat(timespec="milliseconds")}
        return event
