"""Trials of a process: few at once, in threads of their own, the owners by turns, and the rest are told to come again.

A trial (`:try`, `:estimate`, `why`) may take seconds and a hundred megabytes. So it enters a gate before it does
anything and leaves it when its answer is made. One owner has one place at a time; those that wait are let in by owner,
one after the other, and not for long: an answer that nobody waits for any more is of no use.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.service.api.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tidings.service.api.store_access import P, T


@dataclass(frozen=True, slots=True)
class GateTuning:
    """How many trials there may be."""

    at_once: int = 2
    of_owner: int = 1
    """Of them, for one owner."""
    waiting: int = 24
    """That wait."""
    waiting_of_owner: int = 4
    """Of them, for one owner."""
    patience: float = 10.0
    """Seconds that one may wait."""
    retry_after: int = 5
    """Seconds after which who was refused may come again."""


class TrialGate:
    """Lets trials in, and runs their work; of one event loop."""

    def __init__(self, tuning: GateTuning | None = None) -> None:
        self._tuning = tuning or GateTuning()
        self._threads = ThreadPoolExecutor(self._tuning.at_once, "tidings-trial")
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by owner, who is next first

    @asynccontextmanager
    async def enter(self, owner: str) -> AsyncIterator[None]:
        """Hold a place while the block runs; 503 with `Retry-After` where there are too many before it."""
        await self._wait_turn(owner)
        try:
            yield
        finally:
            self._leave(owner)

    async def work(self, question: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """Return the answer to a question, in a thread of the gate's own."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: question(*arguments, **keywords))

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _wait_turn(self, owner: str) -> None:
        turns, tuning = self._waiting.get(owner, deque()), self._tuning
        if len(turns) >= tuning.waiting_of_owner or sum(map(len, self._waiting.values())) >= tuning.waiting:
            raise self._refuse()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, turns).append(turn)
        self._admit()
        try:
            async with asyncio.timeout(tuning.patience):
                await asyncio.shield(turn)
        except BaseException as stop:
            self._give_up(owner, turn)
            if isinstance(stop, TimeoutError):
                raise self._refuse() from None
            raise

    def _give_up(self, owner: str, turn: asyncio.Future[None]) -> None:
        if turn.done():  # its turn came at the last moment
            self._leave(owner)
            return
        self._waiting[owner].remove(turn)
        if not self._waiting[owner]:
            del self._waiting[owner]

    def _leave(self, owner: str) -> None:
        self._running -= Counter([owner])  # those at zero go
        self._admit()

    def _admit(self) -> None:
        """Let in who may come in; an owner who was let in is the last of the next turn."""
        while self._running.total() < self._tuning.at_once:
            owner = next((owner for owner in self._waiting if self._running[owner] < self._tuning.of_owner), None)
            if owner is None:
                return
            turns = self._waiting.pop(owner)
            turns.popleft().set_result(None)
            self._running[owner] += 1
            if turns:
                self._waiting[owner] = turns

    def _refuse(self) -> Problem:
        msg = "as many trials as may be are under way or wait; try again when they are done"
        return Problem(msg, status=503, headers={"Retry-After": str(self._tuning.retry_after)})
