"""Ctrl-C that waits for the end of a batch, so that a saved state is consistent.

While the command waits for input no batch is half done, and it stops at once. At any other moment the signal is
remembered, and the command stops when the batch is through. A second signal stops it at once; nothing is saved then.
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


class Interrupts:
    """Signals so far; `between_batches` tells whether the last one came while no batch was half done."""

    def __init__(self) -> None:
        """Start without a signal."""
        self.pending = False
        self.between_batches = True

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if a signal is pending: called between two batches."""
        if self.pending:
            raise KeyboardInterrupt

    def handle(self, _signal: int, frame: FrameType | None) -> None:
        """Handle a signal: raise while input is waited for and at the second one, else wait for the batch."""
        waiting = frame is not None and frame.f_code is Lines.read_chunk.__code__
        self.between_batches = waiting or not self.pending
        if waiting or self.pending:
            raise KeyboardInterrupt
        self.pending = True


@contextmanager
def catch_interrupts(*, gently: bool) -> Iterator[Interrupts]:
    """Handle Ctrl-C and SIGTERM inside the block; without `gently` they keep their usual effect."""
    interrupts = Interrupts()
    if not gently or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
