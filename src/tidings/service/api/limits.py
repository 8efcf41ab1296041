"""What bounds a request: the size and pace of its body, the depth of its JSON, and how much an owner may ask for.

All of it is plain ASGI and arithmetic. A body is counted while it comes, so one without a length is stopped at the
same byte as one that announces it; each piece must come within `PIECE_TIMEOUT`, and a body that is kept in memory
within `BODY_TIMEOUT` altogether, so slow clients hold a connection and little else. An owner's rate is a bucket that
fills with time: nothing is kept of requests but a number and a moment.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from tidings.service.api.problems import Problem
from tidings.service.events.event_checks import is_deeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Message, Receive

PIECE_TIMEOUT = 20.0
"""Seconds that the next piece of a body may take."""

BODY_TIMEOUT = 60.0
"""Seconds that a whole body may take, unless it is read as a stream."""

LEAST_RATE = 10_000.0
"""Bytes a second, on average from the first minute on, of a body that is read as a stream."""

BURST_SECONDS = 2.0
"""How many seconds' worth of an owner's rate may come at once."""

MAX_OWNERS = 10_000
"""Owners whose buckets are kept at most; a full bucket is as good as none."""


class BodyStopped(Problem):
    """The body of a request was not read to its end, so its connection is of no more use."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How large a body may be, and how long it may take (None: as long as it comes at `least_rate` bytes a second)."""

    size: int
    seconds: float | None = BODY_TIMEOUT
    piece_seconds: float = PIECE_TIMEOUT
    least_rate: float = LEAST_RATE


def limit_body(receive: Receive, length: str | None, limits: BodyLimits) -> Receive:
    """Return a `receive` that refuses a body which is too large (413) or comes too slowly (408)."""
    if length is not None and (not length.isdecimal() or int(length) > limits.size):
        raise make_size_problem(limits.size)
    size, begin = 0, -1.0

    async def receive_limited() -> Message:
        nonlocal size, begin
        now = asyncio.get_running_loop().time()
        begin = now if begin < 0 else begin
        try:
            async with asyncio.timeout(_compute_patience(limits, now - begin, size)):
                message = await receive()
        except TimeoutError:
            msg = "the body came too slowly; send it in one go, or larger pieces"
            raise BodyStopped(msg, status=408, headers={"Connection": "close"}) from None
        size += len(message.get("body", b""))
        if size > limits.size:
            raise make_size_problem(limits.size)
        return message

    return receive_limited


def _compute_patience(limits: BodyLimits, elapsed: float, size: int) -> float:
    """Return how many seconds the next piece of a body may take."""
    end = max(BODY_TIMEOUT, size / limits.least_rate) if limits.seconds is None else limits.seconds
    return min(limits.piece_seconds, end - elapsed)


def make_size_problem(size: int) -> BodyStopped:
    """Return the refusal of a body of more than `size` bytes."""
    msg = f"the body has more than {size:,} bytes, which is the limit; send it in parts"
    return BodyStopped(msg, status=413, headers={"Connection": "close"})


# JSON ---------------------------------------------------------------------------------------------------


def decode_json(data: bytes, depth: int, *, name: str = "the body") -> Any:
    """Return what a body, or a line of one, says; invalid UTF-8, invalid JSON and too many levels are 400."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        raise Problem(_describe_json_error(data, problem, name), status=400) from None
    if data.count(b"{") + data.count(b"[") > depth and is_deeper(value, depth):
        msg = f"{name} has more than {depth} levels of objects and lists, which is the limit"
        raise Problem(msg, status=400)
    return value


def _describe_json_error(data: bytes, problem: orjson.JSONDecodeError, name: str) -> str:
    if not data.strip():
        return f"{name} is empty; send JSON"
    try:
        data.decode()
    except UnicodeDecodeError as fault:
        return f"{name} is not UTF-8 at byte {fault.start:,}"
    line = f"line {problem.lineno}, " if b"\n" in data else ""
    return f"{name} is not JSON: {problem.msg} at {line}column {problem.colno}"


# Rates --------------------------------------------------------------------------------------------------


class RateLimiter:
    """A bucket of tokens for each owner: filled by time, emptied by what the owner asks for."""

    def __init__(self, unit: str, clock: Callable[[], float], *, burst: float = BURST_SECONDS) -> None:
        """`unit` is what is counted, for messages; `clock` tells seconds."""
        self._unit, self._clock, self._burst = unit, clock, burst
        self._buckets: dict[str, tuple[float, float]] = {}  # owner: tokens, and when there were as many

    def take(self, owner: str, rate: float, count: int = 1) -> None:
        """Take tokens of an owner whose bucket fills at a rate; 429 with `Retry-After` where there are too few.

        More than the bucket ever holds may be taken when it is full: the debt is paid before the next.
        """
        now, most = self._clock(), max(1.0, rate * self._burst)
        tokens, since = self._buckets.get(owner, (most, now))
        tokens = min(most, tokens + (now - since) * rate)
        if tokens < min(count, most):
            self._buckets[owner] = tokens, now
            raise self._refuse(rate, (min(count, most) - tokens) / rate if rate > 0 else 3600.0)
        if len(self._buckets) >= MAX_OWNERS:
            self._buckets.clear()
        self._buckets[owner] = tokens - count, now

    def _refuse(self, rate: float, seconds: float) -> Problem:
        msg = f"more than {rate:,g} {self._unit} a second, which is this owner's limit; try again in {seconds:.1f} s"
        return Problem(msg, status=429, headers={"Retry-After": str(max(1, math.ceil(seconds)))})
