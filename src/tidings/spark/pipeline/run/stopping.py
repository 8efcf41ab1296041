"""SIGTERM and Ctrl-C as a request to stop, which the pipeline honours after the current batch.

An exception in the middle of a call to Java leaves a trace and, at times, a hang; so the first signal only sets
`requested`. The second ends the process at once, with the exit status that shells use for that signal. While Spark
starts, and subscriptions are read, there is no batch that could be finished: then the first one ends the process.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""The signals of supervisors and of Ctrl-C."""


# A handler runs in the main thread between any two instructions, so also while that thread holds a lock: setting an
# `Event` there could deadlock. A SimpleQueue may be filled from a handler.
class StopSignal:
    """While entered, SIGTERM and SIGINT set `requested` instead of ending the process.

    PySpark installs its own handler for SIGINT when a session starts: call `install_handlers` again after that.
    Outside the main thread Python delivers no signals; then only `request` sets `requested`.

        with StopSignal() as stopping:
            session = ts.session()
            stopping.install_handlers()
            while query.isActive and not stopping.wait(0.5):
                ...
    """

    def __init__(self) -> None:
        self.requested = False
        self._is_starting = False
        self._old_handlers: dict[signal.Signals, Any] = {}
        self._requests: SimpleQueue[None] = SimpleQueue()  # wakes `wait`

    def __enter__(self) -> Self:
        self.install_handlers()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._old_handlers.clear()

    def install_handlers(self) -> None:
        """Install the handlers; those from before the first call are restored at the end."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            self._old_handlers.setdefault(number, signal.getsignal(number))
            signal.signal(number, self._handle)

    @contextmanager
    def end_at_once(self) -> Iterator[None]:
        """Inside, a signal ends the process with exit status 0: nothing is under way that could be finished.

        Spark's Java ends with its standard input, which is a pipe from this process, and workers end with Java.
        """
        self._is_starting = True
        try:
            if self.requested:
                os._exit(0)
            yield
        finally:
            self._is_starting = False

    def request(self) -> None:
        """Request a stop from within the program, as a first signal does."""
        self.requested = True
        self._requests.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a request, at most `timeout` seconds; return whether there is one."""
        if not self.requested:
            with suppress(Empty):
                self._requests.get(timeout=timeout)
                self._requests.put(None)  # for whoever else waits
        return self.requested

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.requested or self._is_starting:
            os._exit(128 + number if self.requested else 0)
        self.request()
