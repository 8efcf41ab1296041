"""How good forecasts are: true and false alarms, precision and Brier scores, from counts by state.

A forecast that depends on a state alone is the same wherever the state is, so it is enough to count for each state and
lookahead how many events left the stream there, and after how many of them a match followed. What a stream ends
before is left out (a match within n events is not known when fewer follow), hits and misses alike. Counts of streams
add up. An alarm is a forecast strictly above the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies import Line
from tidings.bench.harness.timing import Figure

if TYPE_CHECKING:
    from collections.abc import Iterable


LOOKAHEADS = tuple(range(1, 11))
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(20))
"""The lookaheads and thresholds that are counted; the paper's are in its pictures alone."""

SHOWN = (1, 2, 5, 10)
"""The lookaheads that are drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """For each lookahead and state: events whose outcome is known, and those that a match followed in time."""

    decided: NDArray[np.int64]
    hits: NDArray[np.int64]

    def __add__(self, other: Outcomes) -> Outcomes:
        """Return both together."""
        return Outcomes(self.decided + other.decided, self.hits + other.hits)

    @property
    def base(self) -> NDArray[np.float64]:
        """How often a match follows, for each lookahead."""
        return self.hits.sum(axis=1) / self.decided.sum(axis=1)


def count_outcomes(states: NDArray[np.int32], matched: NDArray[np.bool_], size: int) -> Outcomes:
    """Count one stream: its state after each event, and which events completed a match."""
    waits, events_left = count_waiting(matched), np.arange(len(states))[::-1]
    decided = np.zeros((len(LOOKAHEADS), size), np.int64)
    hits = decided.copy()
    for row, n in enumerate(LOOKAHEADS):
        ripe = events_left >= n
        decided[row] = np.bincount(states[ripe], minlength=size)
        hits[row] = np.bincount(states[ripe & (waits <= n)], minlength=size)
    return Outcomes(decided, hits)


def count_waiting(matched: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many events after each the next match comes; more than there are events where none does."""
    places = np.where(matched, np.arange(len(matched)), 2 * len(matched) + 1)
    following = np.minimum.accumulate(places[::-1])[::-1]
    return np.append(following[1:], 2 * len(matched) + 1)[: len(matched)] - np.arange(len(matched))


def add_outcomes(parts: Iterable[Outcomes]) -> Outcomes:
    """Add counts up."""
    first, *rest = parts
    for part in rest:
        first = first + part
    return first


@dataclass(frozen=True, slots=True, eq=False)
class Alarms:
    """True and false alarms, `[lookahead, threshold]`; those of several patterns or folds add up."""

    true: NDArray[np.int64]
    false: NDArray[np.int64]

    def __add__(self, other: Alarms) -> Alarms:
        """Return both together."""
        return Alarms(self.true + other.true, self.false + other.false)

    @property
    def all(self) -> NDArray[np.int64]:
        """Every alarm."""
        return self.true + self.false

    @property
    def precision(self) -> NDArray[np.float64]:
        """True alarms over all, not a number where there is none."""
        return np.divide(self.true, self.all, out=np.full(self.all.shape, np.nan), where=self.all > 0)


def count_alarms(p: NDArray[np.float64], outcomes: Outcomes) -> Alarms:
    """Count the alarms of forecasts `p[lookahead, state]` at each threshold."""
    above = p[:, :, None] > np.array(THRESHOLDS)
    true = np.einsum("ns,nst->nt", outcomes.hits, above)
    false = np.einsum("ns,nst->nt", outcomes.decided - outcomes.hits, above)
    return Alarms(true, false)


def sum_square_errors(p: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
    """Return the sum of squared errors for each lookahead; forecasts outside [0, 1] are clipped, as in `td.score`."""
    q = np.clip(p, 0.0, 1.0)
    return (outcomes.decided * q**2 - 2 * outcomes.hits * q + outcomes.hits).sum(axis=1)


def compute_brier(p: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
    """Return the Brier score for each lookahead."""
    return sum_square_errors(p, outcomes) / outcomes.decided.sum(axis=1)


def build_constant(base: NDArray[np.float64], outcomes: Outcomes) -> NDArray[np.float64]:
    """Return forecasts that are the same in every state: the base rate, of this part or of another."""
    return np.repeat(base[:, None], outcomes.decided.shape[1], axis=1)


def compute_skill(mine: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of another's squared errors is saved: 1 for all, 0 for none, below 0 where there are more."""
    return 1 - mine / other


def build_threshold_lines(values: NDArray[np.float64], ahead: tuple[int, ...] = SHOWN) -> tuple[Line, ...]:
    """Return a line for each lookahead over the thresholds; what is not a number is left out.

    Counts begin above 0: there every forecast that is not quite 0 is an alarm, and a hundred times the others.
    """
    first = int(np.issubdtype(values.dtype, np.integer))
    rows = {n: zip(THRESHOLDS[first:], values[n - 1, first:].tolist(), strict=True) for n in ahead}
    return tuple(
        Line(f"{n} ahead", tuple((x, Figure("", (y,))) for x, y in row if not isnan(y))) for n, row in rows.items()
    )
