"""A thread that follows a store between micro-batches, so that a change is in force when the next one begins.

The claim of a micro-batch reads the feed by itself, and that is the guarantee. But then the batch waits while a change
is compiled. The thread waits for the store's signal, or a second, and brings the folder of versions up to date before.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from tidings.errors import TidingsError
from tidings.service.store.base import Position, StoreError
from tidings.service.store_feed import parse_position

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.matcher import Live
    from tidings.matcher.live.live import Change
    from tidings.service.store.base import ChangeLog

WAIT_SECONDS, PAUSE_SECONDS = 1.0, 0.5
"""Seconds that one wait for a change takes at most; and after a problem, or a change that could not be read."""


class FeedWatch:
    """While entered, changes of a store become versions of a folder; `on_change` is called with each, in the thread."""

    def __init__(
        self,
        live: Live,
        log: ChangeLog,
        *,
        on_change: Callable[[Change], object],
        warn: Callable[[str], object],
    ) -> None:
        self._live, self._log, self._on_change, self._warn = live, log, on_change, warn
        self._ending, self._last_problem = threading.Event(), ""
        self._thread = threading.Thread(target=self._run, name="tidings-feed", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._follow()
            except (TidingsError, OSError) as problem:  # a disk may be full for a while
                self._report(str(problem))
                self._ending.wait(PAUSE_SECONDS)

    def _follow(self) -> None:
        """Wait for a change, and bring the folder up to date."""
        before = parse_position(self._live.version.position) or Position(0, "")
        try:
            is_changed = self._log.wait(before, WAIT_SECONDS)
        except StoreError:
            is_changed = True  # the feed finds out why, and reports it once
        if is_changed and not self._ending.is_set():
            self._on_change(self._live.sync())
            if parse_position(self._live.version.position) == before:  # woken for nothing, or it cannot be read
                self._ending.wait(PAUSE_SECONDS)

    def _report(self, problem: str) -> None:
        if problem != self._last_problem:
            self._last_problem = problem
            self._warn(problem)
