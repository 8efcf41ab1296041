"""Time on an idle stream: when no event has come for a while, a tick says how late it is, and the watermark moves.

A tick is a row of a second source of the detection query, a file in the checkpoint. So Spark writes down which batch
has it, and a batch that runs again has it again. It matches nothing and counts nowhere.

Event time goes on from the newest event, as fast as the clock, and `idle` behind it: that event's time, and how long
ago it came. So what comes later with a time as far behind the clock as before is not late. A tick is written only where
something is due by then: an event that waits for its turn, or the deadline of an absence.

A watermark never goes back, so a machine's clock that is set must not move it: while a process runs, time goes by as
`SteadyClock` has it. How long a pipeline was away only the machine's clock can say, and it is believed.
"""

from __future__ import annotations

import heapq
import json
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.engine.persist.mapped_arrays import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

TICK = "_tick"
"""The column that is not null in a tick."""

TICKS, STATE = "ticks", "clock.json"
"""The folder of ticks, and the file of what is due, both in the folder of the clock."""

MOST_DUE = 10_000
"""Times that are remembered over a restart; the soonest ones."""

PAUSE_SECONDS = 1.0
"""Seconds between two ticks that only begin a batch; Spark finds a file within that time."""

MILLISECOND, SECOND = 1_000, 1_000_000
"""In microseconds; a watermark is in milliseconds."""


class SteadyClock:
    """Seconds since 1970 by the machine's clock when this was made, and what went by since: nobody can set it."""

    def __init__(self) -> None:
        self._offset = time.time() - _read_uptime()

    def __call__(self) -> float:
        """Return the seconds."""
        return self._offset + _read_uptime()


def _read_uptime() -> float:
    """Return the seconds since some moment, those of a machine that sleeps included where the system can tell."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


@dataclass(slots=True)
class ClockState:
    """The newest time of an event and when it came, by the clock; what is due, a heap; all in microseconds."""

    batch: int = -1
    newest: int | None = None
    came: int = 0
    due: list[int] = field(default_factory=list)


class IdleClock:
    """The clock of one detection query. `clock` gives the seconds since 1970; `idle` None: it never ticks."""

    def __init__(
        self, folder: Path, *, idle: timedelta | None, lateness: timedelta, clock: Callable[[], float] | None = None
    ) -> None:
        clock = clock or SteadyClock()
        self._folder, self._clock = folder, clock
        self._idle = None if idle is None else idle.total_seconds()
        self._lateness = round(lateness.total_seconds() * SECOND)
        self._state, self._busy_at, self._last_tick = self._load(), clock(), 0
        self._begun_at = 0.0

    @property
    def newest(self) -> int | None:
        """The newest time of an event of the batches so far."""
        return self._state.newest

    def read_ticks(self, session: SparkSession) -> DataFrame:
        """Return the ticks as a stream of one column, their time."""
        (self._folder / TICKS).mkdir(parents=True, exist_ok=True)
        ticks = session.readStream.schema("at BIGINT").option("cleanSource", "delete")
        return ticks.json(f"file://{self._folder / TICKS}").select(F.timestamp_micros("at").alias(TICK))

    # Batches -----------------------------------------------------------------------------------

    def note_batch(self, batch: int, newest: int | None, due: Iterable[int]) -> None:
        """Note a finished batch: the newest time of its events, and what its buckets wait for."""
        state = self._state
        if newest is not None and (state.newest is None or newest > state.newest):
            state.newest, state.came = newest, self._read_clock()
        for moment in {*due}.difference(state.due):  # a deadline of tomorrow is said with every batch until then
            heapq.heappush(state.due, moment)
        watermark = max(state.newest or 0, self._last_tick) // MILLISECOND * MILLISECOND - self._lateness
        while state.due and state.due[0] <= watermark:
            heapq.heappop(state.due)
        if newest is not None or due:
            state.batch = batch
            self._save()

    def advance(self, *, is_waiting: bool) -> None:
        """Write a tick if the query has waited for events for long enough, and something is due by now."""
        now, state = self._clock(), self._state
        if not is_waiting:
            self._busy_at = now
        if self._idle is None or now - self._busy_at < self._idle or not state.due or state.newest is None:
            return
        moment = state.newest + self._read_clock() - state.came - round(self._idle * SECOND)
        moment = -(-moment // MILLISECOND) * MILLISECOND  # as a watermark can say it
        if moment <= self._last_tick or state.due[0] + self._lateness > moment:
            return
        self._write_tick(moment, f"{moment:020}")
        self._busy_at, self._last_tick = now, moment

    def begin_batch(self, *, is_waiting: bool) -> None:
        """Write a tick that moves nothing, so that a batch begins where the query waits for events."""
        now = self._clock()
        if is_waiting and now - self._begun_at >= PAUSE_SECONDS:
            self._begun_at = now
            self._write_tick(0, f"begin-{self._read_clock():020}")

    def _write_tick(self, moment: int, name: str) -> None:
        """Put a tick into its folder in one step: Spark would read a file that is not finished."""
        (self._folder / TICKS).mkdir(parents=True, exist_ok=True)
        beside = self._folder / f"{name}.json"
        write_atomically(beside, iter([json.dumps({"at": moment}).encode() + b"\n"]))
        os.replace(beside, self._folder / TICKS / beside.name)

    # The state ---------------------------------------------------------------------------------

    def _read_clock(self) -> int:
        return round(self._clock() * SECOND)

    def _load(self) -> ClockState:
        try:
            content = json.loads((self._folder / STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ClockState()
        came = min(content["came"], self._read_clock())  # the clock may have been set back since
        return ClockState(content["batch"], content["newest"], came, content["due"])

    def _save(self) -> None:
        state = self._state
        content = {"batch": state.batch, "newest": state.newest, "came": state.came}
        due = heapq.nsmallest(MOST_DUE, state.due)  # sorted, and so a heap
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._folder / STATE, iter([json.dumps({**content, "due": due}).encode()]))
