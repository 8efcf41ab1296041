"""SIGTERM and Ctrl-C as a wish, which the pipeline grants when the current batch is done.

An exception in the middle of a call to Java leaves a trace and, at times, a hang; so the first signal only sets
`asked`. The second ends the process where it stands, with the exit status shells give for that signal.
"""

from __future__ import annotations

import os
import signal
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType

SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""The two ways to ask a program to stop: a supervisor's, and Ctrl-C."""


# A handler runs in the main thread between any two steps of it, so also while that thread holds the lock inside
# `asked`: setting the event there could wait for itself for ever. A SimpleQueue may be filled from a handler, and a
# thread of its own sets the event.
class StopSignal:
    """While entered, SIGTERM and SIGINT set `asked` instead of ending the process; afterwards they do as before.

    PySpark puts its own handler for SIGINT in place when a session starts: call `take` again after that. Outside
    the main thread Python gives no signals; then `asked` is only set by `ask`.

        with StopSignal() as stopping:
            session = ts.session()
            stopping.install_handlers()
            while query.isActive and not stopping.wait(0.5):
                ...
    """

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.requested = threading.Event()
        self._is_requested = False
        self._old_handlers: dict[signal.Signals, Any] = {}
        self._requests: SimpleQueue[bool] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Take the signals."""
        self._thread = threading.Thread(target=self._listen, name="tidings-stopping", daemon=True)
        self._thread.start()
        self.install_handlers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        """Put the old handlers back."""
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._old_handlers.clear()
        self._requests.put(False)
        if self._thread is not None:
            self._thread.join()

    def install_handlers(self) -> None:
        """Take the signals from whoever has them now; what stood before the first call is what is put back."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            self._old_handlers.setdefault(number, signal.getsignal(number))
            signal.signal(number, self._handle)

    def request(self) -> None:
        """Ask from within the program, as a first signal does."""
        self._is_requested = True
        self.requested.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until somebody asks, or so many seconds; tell whether somebody has."""
        return self.requested.wait(timeout)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._is_requested:
            os._exit(128 + number)
        self._is_requested = True
        self._requests.put(True)

    def _listen(self) -> None:
        while self._requests.get():
            self.requested.set()
