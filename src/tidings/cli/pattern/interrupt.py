"""Ctrl-C that waits for the end of a batch, so that what is saved is whole.

While the command waits for input, nothing is half done, and it stops at once. At any other moment the wish is noted,
and followed when the batch is through. Whoever asks twice is obeyed at once, and nothing is saved.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidings.matcher.loading.row_readers import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class Stop:
    """Whether somebody has asked to stop; `between_batches` tells whether nothing is half done."""

    def __init__(self) -> None:
        """Nobody has."""
        self.asked = False
        self.between_batches = True

    def check(self) -> None:
        """Stop here if it was asked for."""
        if self.asked:
            raise KeyboardInterrupt

    def hear(self, _signal: int, frame: FrameType | None) -> None:
        """Take a signal: at once while input is waited for, else after the batch."""
        waiting = frame is not None and frame.f_code is Lines._read.__code__
        self.between_batches = waiting or not self.asked
        if waiting or self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def stoppable(*, gently: bool) -> Iterator[Stop]:
    """Hear Ctrl-C and SIGTERM inside; without `gently` they do what they always do."""
    stop = Stop()
    if not gently or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
