"""Probabilities by cell for one horizon: the table that is looked up at every event.

A horizon in the stream's events, of a pattern with a key, is thinned: of the next n events only some are of the key,
binomially many by its share. A span of time is thinned by how fast events come: so many by Poisson's law. Shares lie
on a grid of powers of the square root of 2; between two of them probabilities are in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast.horizon import Horizon
from tidings.forecast.predicting.estimates import Estimates
from tidings.kernels.array_types import FloatArray, IntArray
from tidings.kernels.forecast.forecasts import SILENCES

if TYPE_CHECKING:
    from tidings.forecast.learning.counts import Traffic

GRID = 41
SHARES = 2.0 ** -(np.arange(GRID) / 2)
"""The shares of the grid: 1 to a millionth."""

MEANS = 256 * SHARES
"""Of a span of time: how many of the key's own events lie in it on average."""

FARTHEST = 2000
"""Of the key's own events, how many are looked at: what comes later is taken to be the same."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Of the waiting time."""


@dataclass(frozen=True, slots=True, eq=False)
class ProbabilityTable:
    """`probabilities[line, column]`: a line for each cell, or each cell and silence; a column, or one for each share.

    `gap_unit` is the unit of silences: 0 events, 1 time, -1 where they are not looked at. `direct` is the weight of
    direct counts in each line.
    """

    horizon: Horizon
    estimates: Estimates
    probabilities: FloatArray
    direct: FloatArray
    gap_unit: int = -1
    offset: float = 0.0  # added to a gap's grid position; 0.0 marks horizons counted in events

    @property
    def grid(self) -> int:
        """How many columns there are."""
        return int(self.probabilities.shape[1])

    def look_up(self, cell: int, places: FloatArray, silence: IntArray) -> float:
        """Return the probability of a cell; `places` are where the key lies on the grids of shares and of spans."""
        line = cell if self.gap_unit < 0 else cell * SILENCES + int(silence[self.gap_unit])
        if self.grid == 1:
            return float(self.probabilities[line, 0])
        place = float(np.clip(places[1] + self.offset if self.offset else places[0], 0, self.grid - 1))
        low = min(int(place), self.grid - 2)
        part = place - low
        return float(self.probabilities[line, low] * (1 - part) + self.probabilities[line, low + 1] * part)

    def name_estimator(self, cell: int) -> str:
        """Return the name of the estimator behind a cell's probability, and whether its course is approximate."""
        estimator = self.estimates.estimator
        if estimator in ("both", "direct"):
            lines = 1 if self.gap_unit < 0 else SILENCES
            estimator = estimator if self.direct[cell * lines : (cell + 1) * lines].any() else "chain"
        return f"approximate {estimator}" if self.estimates.course.approximate else estimator


def build_table(estimates: Estimates, horizon: Horizon, *, keyed: bool, traffic: Traffic) -> ProbabilityTable:
    """Return the probabilities of all cells for a horizon."""
    weights = compute_event_count_weights(horizon, keyed=keyed, traffic=traffic)
    max_events = horizon.amount if weights is None else weights.shape[1] - 1
    curve, part = estimates.compute_curve(max_events)
    if weights is None:
        return ProbabilityTable(horizon, estimates, curve[max_events][:, None].copy(), part[max_events])
    probabilities, part = (weights @ curve).T, (weights @ part)[0]
    if estimates.estimator != "printed":
        probabilities = np.minimum(probabilities, 1)  # the weights add up to one only nearly
    counted, gap_unit = _count_directly(estimates, horizon, traffic)
    offset = find_offset(horizon) if keyed else 0.0
    if counted is None or estimates.estimator not in ("both", "direct"):
        return ProbabilityTable(horizon, estimates, np.ascontiguousarray(probabilities), part, offset=offset)
    share, seen = counted
    if not keyed:
        return ProbabilityTable(horizon, estimates, *_shrink(share, seen, probabilities, estimates.shrinking))
    mixed = _shrink(share, seen, probabilities.repeat(SILENCES, axis=0), estimates.shrinking)
    return ProbabilityTable(horizon, estimates, *mixed, gap_unit=gap_unit, offset=offset)


def _count_directly(
    estimates: Estimates, horizon: Horizon, traffic: Traffic
) -> tuple[tuple[FloatArray, FloatArray] | None, int]:
    """Return directly counted shares of matches with the observations behind them, and the rows' `gap_unit`.

    Where a span was not counted, the number of events of the stream in it is taken to follow Poisson's law.
    """
    if horizon.unit == "events":
        return estimates.estimate_within_events(np.append(np.zeros(horizon.amount), 1.0)), 0
    counted = estimates.estimate_within_span(horizon.amount)
    if counted is not None or traffic.rate is None or traffic.rate * horizon.amount > FARTHEST / 4:
        return counted, 1
    return estimates.estimate_within_events(_compute_poisson(np.array([traffic.rate * horizon.amount]))[0]), 0


def _shrink(share: FloatArray, seen: FloatArray, towards: FloatArray, weight: float) -> tuple[FloatArray, FloatArray]:
    """Shrink `share` towards `towards`, worth `weight` observations; also return the weight of `share` itself."""
    part = np.divide(seen, seen + weight, out=np.zeros_like(seen), where=seen > 0)
    mixed = part[:, None] * share[:, None] + (1 - part[:, None]) * towards
    return np.ascontiguousarray(mixed), part


def require_times(horizon: Horizon, traffic: Traffic) -> None:
    """Refuse a span of time for a model that was trained on events without times."""
    if horizon.unit == "time" and traffic.seen > 0 and traffic.rate is None:
        msg = f"a horizon of `{horizon}` needs a model trained on events with times: they say how fast events come"
        raise TidingsError(msg)


def compute_event_count_weights(horizon: Horizon, *, keyed: bool, traffic: Traffic) -> FloatArray | None:
    """Return P(0, 1, 2, ... of the key's own events lie within the horizon); `None` where it is a number of them.

    With a key there is a row for each column of the grid: a share of events or, in time, a mean number of events.
    """
    if horizon.unit == "own" or (horizon.unit == "events" and not keyed):
        return None
    if horizon.unit == "events":
        return _compute_binomial(horizon.amount, SHARES)
    if keyed:
        return _compute_poisson(MEANS)
    if traffic.rate is None:  # before anything is known: about one event
        return _compute_poisson(np.ones(1))
    return _compute_poisson(np.array([traffic.rate * horizon.amount]))


def _compute_binomial(count: int, shares: FloatArray) -> FloatArray:
    """Return the probability of each number of the key's events among `count`; at `FARTHEST`, of so many or more."""
    steps = np.arange(1, count + 1)
    choose = np.append(0, np.cumsum(np.log((count - steps + 1) / steps)))
    number = np.arange(count + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        probabilities = np.exp(
            choose + number * np.log(shares)[:, None] + (count - number) * np.log1p(-shares)[:, None]
        )
    probabilities[shares == 1] = number == count
    if count > FARTHEST:
        probabilities[:, FARTHEST] += probabilities[:, FARTHEST + 1 :].sum(axis=1)
        probabilities = probabilities[:, : FARTHEST + 1]
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def _compute_poisson(means: FloatArray) -> FloatArray:
    max_events = int(min(FARTHEST, means.max() + 12 * np.sqrt(means.max()) + 20))
    steps = np.arange(1, max_events + 1)
    logs = np.append(0, np.cumsum(np.log(steps)))
    probabilities = np.exp(np.arange(max_events + 1) * np.log(means)[:, None] - means[:, None] - logs)
    probabilities[:, -1] += np.maximum(0, 1 - probabilities.sum(axis=1))
    return np.asarray(probabilities)


def locate_on_grids(gaps: FloatArray, *, pace: tuple[float, float], stream_share: float = 1.0) -> FloatArray:
    """Return each key's positions on the log2 grids: row 0 by its mean gap in events, row 1 by that in time.

    The rows of `gaps` are the mean gaps in events and in microseconds, and the number of gaps behind them. An unknown
    gap is that of an average key (`pace`). `stream_share` is the fraction of the stream in which events were counted.
    A table adds its `offset` to row 1, which makes it the position of how many events come in the table's span.
    """
    average = np.array(pace)[:, None]
    own = np.where(np.isnan(gaps[:2]), average, gaps[:2] / np.array([[stream_share], [1.0]]))
    # One gap says little: the average key counts as one more, in proportion.
    weight = np.nan_to_num(gaps[2]) / (np.nan_to_num(gaps[2]) + 1)
    logs = weight * np.log2(np.maximum(own, 1)) + (1 - weight) * np.log2(np.maximum(average, 1))
    return np.asarray(2 * logs)


def find_offset(horizon: Horizon) -> float:
    """Return the offset from the grid position of a gap to that of (span / gap).

    For a span of time it is never 0: 0.0 marks a horizon counted in events.
    """
    return 0.0 if horizon.unit != "time" else 16.0 - 2 * float(np.log2(horizon.amount)) or 1e-9
