"""How often something will happen, from how often it happened: a rate with an interval that has it with 95 %.

Counts of independent events are Poisson's. The interval is Byar's approximation to the exact one: within 1 % of it from
five events on, and a little wider below. Searches match in bursts and by the time of day, so it is the least that must
be doubted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

Z = 1.959963984540054
"""The quantile of the normal distribution for 95 %, on two sides."""

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DailyRate:
    """Events a day: the estimate, and the ends of its interval."""

    per_day: float
    low: float
    high: float


def estimate_rate(count: int, span: timedelta) -> DailyRate | None:
    """Return how many come in a day, if so many came in a span; None where the span is nothing.

    >>> rate = estimate_rate(100, timedelta(days=1))
    >>> round(rate.low, 1), rate.per_day, round(rate.high, 1)
    (81.4, 100.0, 121.6)
    """
    if span <= timedelta():
        return None
    days = span / DAY
    return DailyRate(count / days, find_low(count) / days, find_high(count) / days)


def find_low(count: int) -> float:
    """Return the lower end for a count."""
    return 0.0 if count == 0 else count * (1 - 1 / (9 * count) - Z / (3 * math.sqrt(count))) ** 3


def find_high(count: int) -> float:
    """Return the upper end for a count."""
    more = count + 1
    return more * (1 - 1 / (9 * more) + Z / (3 * math.sqrt(more))) ** 3
