"""Probabilities by cell for one horizon: what is looked up at every event.

A horizon in the stream's events, of a pattern with a key, is thinned: of the next n events only some are of the key,
binomially many by its share. A span of time is thinned by how fast events come: so many by Poisson's law. Shares lie
on a grid of half octaves; between two of them probabilities are in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast.counts import Floats
from tidings.forecast.estimates import Estimates
from tidings.forecast.horizon import Horizon

if TYPE_CHECKING:
    from tidings.forecast.counts import Traffic

GRID = 41
SHARES = 2.0 ** -(np.arange(GRID) / 2)
"""The shares of the grid: 1 to a millionth."""

FARTHEST = 2000
"""Of the key's own events, how many are looked at: what comes later is taken to be the same."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Of the waiting time."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`chances[cell, column]`: one column, or one for each share of the grid; `direct` is how much was counted."""

    horizon: Horizon
    estimates: Estimates
    chances: Floats
    direct: Floats

    @property
    def grid(self) -> int:
        """How many columns there are."""
        return int(self.chances.shape[1])

    def at(self, cell: int, place: float) -> float:
        """Return the probability of a cell; `place` is where the share lies on the grid."""
        if self.grid == 1:
            return float(self.chances[cell, 0])
        low = min(int(place), self.grid - 2)
        part = place - low
        return float(self.chances[cell, low] * (1 - part) + self.chances[cell, low + 1] * part)

    def named(self, cell: int) -> str:
        """Say which estimator gave a cell's number, and whether its course is an approximation."""
        told: str = self.estimates.estimator
        if told in ("both", "direct"):
            part = self.direct[cell]
            told = "chain" if part == 0 else told
        return f"approximate {told}" if self.estimates.course.approximate else told


def table(estimates: Estimates, horizon: Horizon, *, keyed: bool, traffic: Traffic) -> Table:
    """Return the probabilities of all cells for a horizon."""
    weights = mixing(horizon, keyed=keyed, traffic=traffic)
    most = horizon.amount if weights is None else weights.shape[1] - 1
    curve, part = estimates.curve(most)
    if weights is None:
        return Table(horizon, estimates, curve[most][:, None].copy(), part[most])
    chances, part = (weights @ curve).T, (weights @ part)[0]
    # Of a key, how fast its own events come says more than what was counted over all keys.
    counted = estimates.within(horizon.amount) if horizon.unit == "time" and not keyed else None
    if counted is not None and estimates.estimator in ("both", "direct"):
        share, seen = counted
        part = seen / np.maximum(seen + estimates.shrinking, 1e-300)
        chances = part[:, None] * share[:, None] + (1 - part[:, None]) * chances
    return Table(horizon, estimates, np.ascontiguousarray(chances), part)


def mixing(horizon: Horizon, *, keyed: bool, traffic: Traffic) -> Floats | None:
    """Return, for each share of the grid, how likely 0, 1, 2, ... of the key's own events lie within the horizon."""
    if horizon.unit == "own" or (horizon.unit == "events" and not keyed):
        return None
    shares = SHARES if keyed else SHARES[:1]
    if horizon.unit == "events":
        return _binomial(horizon.amount, shares)
    if traffic.rate is None and traffic.seen == 0:  # before anything is known: about one event
        return _poisson(shares)
    if traffic.rate is None:
        msg = f"a horizon of `{horizon}` needs a model trained on events with times: they say how fast events come"
        raise TidingsError(msg)
    return _poisson(traffic.rate * horizon.amount * shares)


def _binomial(count: int, shares: Floats) -> Floats:
    """Return the law of how many of `count` events are of the key; what lies beyond the farthest is put there."""
    steps = np.arange(1, count + 1)
    choose = np.append(0, np.cumsum(np.log((count - steps + 1) / steps)))
    number = np.arange(count + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        law = np.exp(choose + number * np.log(shares)[:, None] + (count - number) * np.log1p(-shares)[:, None])
    law[shares == 1] = number == count
    return _cut(law)


def _poisson(means: Floats) -> Floats:
    most = int(min(FARTHEST, means.max() + 12 * np.sqrt(means.max()) + 20))
    steps = np.arange(1, most + 1)
    logs = np.append(0, np.cumsum(np.log(steps)))
    law = np.exp(np.arange(most + 1) * np.log(means)[:, None] - means[:, None] - logs)
    law[:, -1] += np.maximum(0, 1 - law.sum(axis=1))
    return np.asarray(law)


def _cut(law: Floats) -> Floats:
    if law.shape[1] > FARTHEST + 1:
        law[:, FARTHEST] += law[:, FARTHEST + 1 :].sum(axis=1)
        law = law[:, : FARTHEST + 1]
    return np.asarray(law / law.sum(axis=1, keepdims=True))


def place_of(share: np.ndarray) -> np.ndarray:
    """Return where shares lie on the grid."""
    return np.asarray(np.clip(-2 * np.log2(np.maximum(share, SHARES[-1])), 0, GRID - 1))
