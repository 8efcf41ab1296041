"""What an API process does besides answering: housekeeping by the clock, and an orderly end.

Each task waits, works in a thread, and goes on after a failure: a store that does not answer for a minute is tidied a
minute later. Nothing here delays a request.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from tidings.service.api.match_hub import MatchHub
from tidings.service.api.problems import LOGGER, log_failure
from tidings.service.api.routes.events import PART as EVENTS
from tidings.service.api.routes.events import get_event_parts
from tidings.service.api.routes.stream import PART as HUB
from tidings.service.api.trial_calls import GATE
from tidings.service.api.trial_gate import TrialGate
from tidings.service.events.opening import EventParts
from tidings.service.housekeeping import Housekeeper
from tidings.service.store.base import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tidings.service.api.state import ApiState

MEASURE_SECONDS = 2.0
"""How often what waits for the pipeline is measured."""


@asynccontextmanager
async def run_background(state: ApiState) -> AsyncIterator[None]:
    """Do all of it while the block runs; at its end, streams and the writer of events are closed."""
    parts = get_event_parts(state)  # whatever it lacks is said before anybody posts
    keeper = Housekeeper(state.settings, state.store, state.checker)
    every, expire = state.settings.housekeeping.every, state.settings.housekeeping.expire
    works = [
        (expire.total_seconds(), lambda: keeper.expire(state.now())),
        (every.total_seconds(), lambda: keeper.tidy(state.now())),
        (every.total_seconds() / 6, lambda: keeper.review_forecasts(state.now())),
    ]
    if state.settings.events.to == "folder":
        works.append((MEASURE_SECONDS, lambda: keeper.measure(parts.backlog)))
    tasks = [asyncio.create_task(_repeat(state, seconds, work)) for seconds, work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _close_parts(state)


async def _repeat(state: ApiState, seconds: float, work: Callable[[], object]) -> None:
    """Do something again and again; the processes of a service spread over time."""
    while not state.stopping.is_set():
        try:
            await state.access.work(work)
        except StoreError as problem:
            LOGGER.warning("housekeeping waits for the store: %s", problem)
        except Exception as error:  # noqa: BLE001 - housekeeping must go on, whatever it was
            log_failure(error)
        await asyncio.sleep(seconds * random.uniform(0.8, 1.2))  # noqa: S311 - nothing secret


async def _close_parts(state: ApiState) -> None:
    hub, parts, gate = state.parts.get(HUB), state.parts.get(EVENTS), state.parts.pop(GATE, None)
    if isinstance(hub, MatchHub):
        await hub.close()
    if isinstance(gate, TrialGate):
        gate.close()
    if isinstance(parts, EventParts):
        with suppress(RuntimeError):
            await asyncio.to_thread(parts.writer.close)
