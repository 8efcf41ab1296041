"""A client of `GET /v1/stream` within this process, which may stop reading, and go away."""

import asyncio
import json

PATIENCE = 30


class StreamClient:
    """Asks the app directly, since httpx gathers an answer whole; use it within the event loop of an `Asker`."""

    def __init__(self, api, *, key=None, query="", last_id=None):
        headers = [(b"authorization", f"Bearer {api.admin if key is None else key}".encode())]
        if last_id is not None:
            headers.append((b"last-event-id", str(last_id).encode()))
        self._scope = {
            "type": "http",
            "method": "GET",
            "path": "/v1/stream",
            "raw_path": b"/v1/stream",
            "query_string": query.encode(),
            "headers": headers,
            "http_version": "1.1",
        }
        self._app, self._news = api.app, asyncio.Condition()
        self._gone, self._reads = asyncio.Event(), asyncio.Event()
        self._reads.set()
        self.status, self.data, self.is_complete = None, b"", False

    async def __aenter__(self):
        self._task = asyncio.create_task(self._app(self._scope, self._receive, self._send))
        await self.until(lambda: self.status is not None)
        return self

    async def __aexit__(self, *problem):
        self._reads.set()
        self._gone.set()
        await asyncio.wait_for(self._task, PATIENCE)

    async def _receive(self):
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        await self._reads.wait()
        async with self._news:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            else:
                self.data += message["body"]
                self.is_complete = not message.get("more_body", False)
            self._news.notify_all()

    def pause(self):
        """Read nothing from now on."""
        self._reads.clear()

    def read_on(self):
        self._reads.set()

    async def until(self, condition):
        """Wait until something is true of what came."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(condition)

    async def end(self):
        """Wait until the answer is complete, and return its last comment."""
        await self.until(lambda: self.is_complete)
        return self.comments[-1]

    @property
    def blocks(self):
        return [block.split("\n") for block in self.data.decode().split("\n\n") if block]

    @property
    def comments(self):
        return [line[2:] for block in self.blocks for line in block if line.startswith(": ")]

    @property
    def matches(self):
        """The matches that came, each with its number."""
        rows = []
        for block in self.blocks:
            fields = dict(line.partition(": ")[::2] for line in block)
            if "data" in fields:
                assert fields["event"] == "match"
                rows.append((int(fields["id"]), json.loads(fields["data"])))
        return rows

    @property
    def numbers(self):
        return [number for number, _ in self.matches]

    @property
    def last_id(self):
        """What a browser would send as `Last-Event-ID`."""
        return [int(line[4:]) for block in self.blocks for line in block if line.startswith("id: ")][-1]
