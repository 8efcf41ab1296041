"""Ids for events that come without one: UUIDs of version 7, which ascend with time.

48 bits are the milliseconds since 1970, the next 34 count up from a random start within a millisecond, so that the ids
of one object ascend strictly; 40 bits are random for each id. (RFC 9562, section 6.2, method 2.)
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_COUNTER_BITS = 34
_COUNTERS = 1 << _COUNTER_BITS


class EventIds:
    """Makes ids; any number of threads may ask one object."""

    def __init__(self, draw: Callable[[int], bytes] = os.urandom) -> None:
        """`draw` gives so many random bytes."""
        self._draw, self._lock = draw, threading.Lock()
        self._next = 0  # milliseconds and counter, as one number

    def make(self, count: int, milliseconds: int) -> list[str]:
        """Return so many ids for a time, all greater than those before."""
        noise = self._draw(5 * count + 4)
        start = (milliseconds << _COUNTER_BITS) + int.from_bytes(noise[-4:], "big")
        with self._lock:
            first = max(start, self._next)
            self._next = first + count
        return [_format_id(first + number, noise[5 * number : 5 * number + 5].hex()) for number in range(count)]


def _format_id(order: int, tail: str) -> str:
    time, counter = order >> _COUNTER_BITS, order & (_COUNTERS - 1)
    high, low = counter >> 22, counter & 0x3FFFFF
    digits = f"{time:012x}7{high:03x}{0x2 << 22 | low:06x}{tail}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
