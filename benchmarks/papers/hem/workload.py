"""Section 5's generator: values of six digits from 0 to 1, one range on every attribute, all four kinds of ends evenly.

The text draws a low end from [0, 1 - delta] and a high end from [delta, 1], each by itself: then the low end is
above the high end in (1 - 2 delta)^2 / 2 (1 - delta)^2 of the draws, 45 % at delta .05, and delta is not the width it
is called. We take high = low + delta.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DIGITS = 1_000_000
"""Values are multiples of one part in so many."""

BATCH = 1024
"""The engine is given so many events at a time."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ends of all subscriptions, a line for each attribute; events, a line each, and a batch of them for the engine."""

    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    ends: NDArray[np.uint8]
    events: NDArray[np.float64]
    batch: NDArray[np.float64]

    @property
    def count(self) -> int:
        """How many subscriptions there are."""
        return self.lows.shape[1]


def draw_ranges(n: int, *, m: int, delta: float, events: int, seed: int) -> Ranges:
    """Draw subscriptions and events."""
    rng = np.random.default_rng([seed, n, m, round(delta * 100)])
    width = round(delta * DIGITS)
    lows = rng.integers(0, DIGITS - width, (m, n), endpoint=True)
    ends = rng.integers(0, 4, (m, n)).astype(np.uint8)
    values = rng.integers(0, DIGITS, (max(events, BATCH), m), endpoint=True) / DIGITS
    return Ranges(lows / DIGITS, (lows + width) / DIGITS, ends, values[:events], values[:BATCH])


def measure_swapped(delta: float, *, draws: int, seed: int) -> float:
    """Return the share of the printed generator's draws whose low end is above the high end."""
    rng = np.random.default_rng(seed)
    width = round(delta * DIGITS)
    lows = rng.integers(0, DIGITS - width, draws, endpoint=True)
    highs = rng.integers(width, DIGITS, draws, endpoint=True)
    return float(np.mean(lows > highs))


def find_accepted(ranges: Ranges, event: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the subscriptions that accept an event, by comparing every one: the reference for all answers."""
    alive = np.ones(ranges.count, np.bool_)
    for value, low, high, ends in zip(event, ranges.lows, ranges.highs, ranges.ends, strict=True):
        above = (value > low) | ((value == low) & ((ends & 1) == 0))
        alive &= above & ((value < high) | ((value == high) & ((ends & 2) == 0)))
    return np.flatnonzero(alive)
