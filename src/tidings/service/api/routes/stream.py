"""`GET /v1/stream`: the matches of the caller's subscriptions as server-sent events.

`id:` is the number of a match. A client that comes again with `Last-Event-ID` goes on behind that number; one that
comes for the first time hears what comes from now on. Comments keep the connection alive. A stream ends when its key
is revoked or expires, when its client does not read, and when the service stops; the last comment says which.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.responses import Response

from tidings.service.api.match_hub import HubTuning, MatchFrame, MatchHub, MatchQueue, PageSize
from tidings.service.api.match_json import MATCH_EXAMPLE, encode_values
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, Parameter
from tidings.service.api.problems import Problem
from tidings.service.api.routes.subscriptions import make_unknown
from tidings.service.api.state import ApiState
from tidings.service.store.base import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from starlette.types import Receive, Scope, Send

PART = "stream"
"""The hub's name among the parts of the API's state."""


PIECE_BYTES = 65_536
"""What is sent at once: one match, or several small ones."""


def get_hub(state: ApiState) -> MatchHub:
    """Return the hub of this process."""
    hub: MatchHub | None = state.parts.get(PART)
    if hub is None:
        hub = state.parts[PART] = MatchHub(state)
    return hub


async def open_stream(call: ApiCall) -> Response:
    """Answer with a stream that goes on until somebody ends it."""
    after, owner = read_last_id(call.get_header("last-event-id")), call.chosen_owner
    subscription, store, ask = call.query.get("subscription"), call.state.store, call.state.access.ask
    if None not in (subscription, owner) and await ask(store.subscriptions.get, call.owner, subscription or "") is None:
        raise make_unknown(subscription or "")
    if after is not None and after > await ask(store.matches.read_head):
        after = None  # the store was restored from an older copy, and numbers begin anew
    hub = get_hub(call.state)
    queue = await hub.join(owner)
    choice = MatchChoice(call.state, hub.tuning, subscription, call.query.get("label"))
    return StreamResponse(MatchStream(call, hub, queue, choice), after)


def read_last_id(text: str | None) -> int | None:
    """Return the number of a `Last-Event-ID`; 400 where it is none of ours."""
    if text is None or not text.strip():
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        msg = "`Last-Event-ID` is the `id` of the last match that came"
        raise Problem(msg, status=400)
    return int(text)


@dataclass(slots=True)
class MatchChoice:
    """Which matches a stream shows: all, those of a subscription, those of subscriptions with a label."""

    state: ApiState
    tuning: HubTuning
    subscription: str | None
    label: str | None
    known_labels: dict[tuple[str, str], tuple[bool, float]] = field(default_factory=dict)

    async def select(self, frames: Iterable[MatchFrame]) -> list[MatchFrame]:
        """Return the matches that are shown."""
        frames = [frame for frame in frames if frame.data]
        if self.subscription is not None:
            frames = [frame for frame in frames if frame.subscription == self.subscription]
        if self.label is None:
            return list(frames)
        return [frame for frame in frames if await self._has_label(frame.owner, frame.subscription)]

    async def _has_label(self, owner: str, id: str) -> bool:
        now = self.state.clock()
        entry = self.known_labels.get((owner, id))
        if entry is None or now - entry[1] > self.tuning.label_seconds:
            subscription = await self.state.access.ask(self.state.store.subscriptions.get, owner, id)
            entry = subscription is not None and self.label in subscription.labels, now
            if len(self.known_labels) >= 10_000:
                self.known_labels.clear()
            self.known_labels[owner, id] = entry
        return entry[0]


class MatchStream:
    """One stream: what was missed, then what comes, in pieces of bytes; the end of the pieces is its end."""

    def __init__(self, call: ApiCall, hub: MatchHub, queue: MatchQueue, choice: MatchChoice) -> None:
        self._call, self._hub, self._queue, self._choice = call, hub, queue, choice
        self._state, self._tuning = call.state, hub.tuning
        self.send_seconds = hub.tuning.send_seconds
        self._authorization = call.get_header("authorization")
        self._checked = self._state.clock()

    def close(self) -> None:
        """Leave the hub."""
        self._hub.leave(self._queue)

    async def produce(self, after: int | None) -> AsyncIterator[bytes]:
        """Yield the bytes of the stream."""
        position = self._queue.joined if after is None else after
        pages = PageSize(self._tuning)
        yield b"retry: 1000\n" + _mark(position)
        while frames := await self._hub.list_missed(self._queue, position, pages):
            position = frames[-1].number
            for piece in cut_pieces(await self._choice.select(frames)):
                yield piece
            yield _mark(position)
            if (reason := await self._find_end()) is not None:
                yield _build_comment(reason)
                return
        async for piece in self._follow(position):
            yield piece

    async def _follow(self, position: int) -> AsyncIterator[bytes]:
        """Yield matches after a number as they come, and comments while none come."""
        silent_since = self._state.clock()
        while (reason := await self._find_end()) is None:
            frames = [frame for frame in self._queue.take() if frame.number > position]
            if not frames:
                if self._state.clock() - silent_since >= self._tuning.heartbeat_seconds:
                    silent_since = self._state.clock()
                    yield b": still here\n" + _mark(max(position, self._hub.position))
                with suppress(TimeoutError):  # not `wait_for`, which may swallow that the task is cancelled
                    async with asyncio.timeout(self._tuning.check_seconds):
                        await self._queue.filled.wait()
                continue
            for piece in cut_pieces(await self._choice.select(frames)):
                silent_since = self._state.clock()
                yield piece
        yield _build_comment(reason)

    async def _find_end(self) -> str | None:
        """Return why the stream ends, or None."""
        if self._state.stopping.is_set():
            return "the service stops; come again with Last-Event-ID"
        if self._queue.is_dropped:
            return "too slow: matches came faster than they were read; come again with Last-Event-ID"
        if self._state.clock() - self._checked >= self._tuning.check_seconds:
            try:
                await self._state.keys.authenticate(self._authorization)
            except Problem:
                return "the key was revoked, or has expired"
            except StoreError:
                return None  # asked again at the next turn
            self._checked = self._state.clock()
        return None


def cut_pieces(frames: Iterable[MatchFrame]) -> Iterator[bytes]:
    """Yield the bytes of matches, so many at once that a client which does not read holds little."""
    waiting, size = [], 0
    for frame in frames:
        waiting.append(frame.data)
        size += len(frame.data)
        if size >= PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _mark(number: int) -> bytes:
    """Return an event without data: it is not dispatched, and its id is where a client goes on."""
    return b"id: %d\n\n" % number


def _build_comment(reason: str) -> bytes:
    return f": {reason}\n\n".encode()


class StreamResponse(Response):
    """A response that is sent as it is produced, until its client goes away or does not read."""

    media_type = "text/event-stream"

    def __init__(self, stream: MatchStream, after: int | None) -> None:
        super().__init__(None, 200, {"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._stream, self._after = stream, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            if scope["method"] == "HEAD":
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
                return
            sending = asyncio.create_task(self._send(send))
            leaving = asyncio.create_task(_wait_until_gone(receive))
            done, pending = await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
            for task in done:
                task.result()
        finally:
            self._stream.close()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for piece in self._stream.produce(self._after):
            try:
                async with asyncio.timeout(self._stream.send_seconds):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            except TimeoutError:
                return  # the server closes the connection of an answer that is not complete
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


# The document ---------------------------------------------------------------------------------------------

_EXAMPLE = b"id: 41\nevent: match\ndata: %b\n\n" % encode_values(
    {"subscription": "s1", "owner": "shop", **MATCH_EXAMPLE}
)

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/stream",
        handler=open_stream,
        name="streamMatches",
        summary="Follow matches as server-sent events",
        description=(
            "Each event `match` has the subscription's id and its match; its `id` is a number that a client sends as "
            "`Last-Event-ID` to go on where it was. Comments come while there is nothing else."
        ),
        tag="matches",
        scopes=("read",),
        every_owner=True,
        query=(
            Parameter("subscription", {"type": "string", "minLength": 1, "maxLength": 200}, "Only its matches."),
            Parameter("label", {"type": "string", "minLength": 1, "maxLength": 64}, "Only of subscriptions with it."),
        ),
        headers=(
            Parameter("Last-Event-ID", {"type": "string", "pattern": "^[0-9]{1,18}$"}, "The last number that came."),
        ),
        answers={
            200: DocumentedAnswer(
                description="The stream.",
                schema={"type": "string"},
                example=_EXAMPLE.decode(),
                type="text/event-stream",
            )
        },
        problems=(404,),
    ),
)
