"""How far a probability can be trusted: of all forecasts near 0.3, did three in ten come true?

Forecasts are put into bins, and each bin's mean probability stands against the share that happened. A trustworthy model
lies on the diagonal. The Brier score splits along the same bins (Murphy 1973):

    brier = reliability - resolution + uncertainty + remainder

`reliability` is the distance from the diagonal (0 is best), `resolution` how far the bins differ from the base rate
(more is better), `uncertainty` the Brier score of the base rate. `remainder` is what bins hide: 0 where all forecasts
of a bin are equal. Cost: one pass by equal width, one sort by equal count. matplotlib (`pip install 'tidings[bench]'`)
is loaded when something is drawn.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import cycle
from math import nan, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tidings.errors import BadValue, FileError, MissingExtra
from tidings.forecast.scoring.scores import check_pairs, check_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from tidings.kernels.array_types import BoolArray, FloatArray

By: TypeAlias = Literal["width", "count"]
"""Bins as wide as each other, or with about as many forecasts as each other."""

Z = 1.959964
"""The interval around an observed share holds the true one in 95 of 100 cases."""

COLOURS = ("#1f6f5c", "#d08c3f", "#4a6fa5", "#a8433f", "#7a5c99", "#5f7a2e", "#b0568a", "#6b7280")
"""Told apart by most eyes."""

MARKS = "osD^vPX"
"""As many marks as colours would always pair the same two."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Forecasts of at least `low` and less than `high` (the last bin: also 1): what they said and what happened.

    `mean` is their mean probability, `observed` the share that happened, `lower` and `upper` its Wilson interval of
    95 %. `error` is the standard error that `observed` would have if each forecast were right.
    """

    low: float
    high: float
    count: int
    mean: float
    observed: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Bins that hold forecasts, in order, and the parts of the Brier score; without forecasts the parts are nan."""

    bins: tuple[Bin, ...]
    n: int
    brier: float
    reliability: float
    resolution: float
    uncertainty: float

    @property
    def remainder(self) -> float:
        """The part of the Brier score that lies within bins."""
        return self.brier - (self.reliability - self.resolution + self.uncertainty)

    @property
    def gap(self) -> float:
        """The mean distance from the diagonal, each forecast counted once; nan without forecasts."""
        return sum(bin_.count * abs(bin_.observed - bin_.mean) for bin_ in self.bins) / self.n if self.n else nan

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON: what is not defined is None."""
        parts = ("brier", "reliability", "resolution", "uncertainty", "remainder", "gap")
        figures = {name: getattr(self, name) if self.n else None for name in parts}
        return {"n": self.n, **figures, "bins": [asdict(bin_) for bin_ in self.bins]}

    def __str__(self) -> str:
        head = f"{'bin':>13} {'forecasts':>11} {'said':>6} {'was':>6}  95 %"
        return "\n".join([head, *map(_format_bin, self.bins)])


def measure_reliability(p: ArrayLike, y: ArrayLike, bins: int = 10, *, by: By = "width") -> Reliability:
    """Return how often forecasts `p` of each size came true, given the outcomes `y` (0 and 1, or booleans).

    By count the bins adapt to where the forecasts are, which serves rare matches; equal forecasts share a bin either
    way, so there may be fewer bins than asked. The errors take the outcomes as independent. Forecasts of neighbouring
    events look at the same future, so for honest errors give every n-th event of a stream, n the horizon.

    >>> result = measure_reliability([0.1, 0.1, 0.9, 0.9], [0, 0, 1, 0], bins=2)
    >>> [(bin_.mean, bin_.observed, bin_.count) for bin_ in result.bins]
    [(0.1, 0.0, 2), (0.9, 0.5, 2)]
    """
    raw, happened = check_pairs(p, y)
    forecasts = raw.clip(0.0, 1.0)
    inner = _cut_bins(forecasts, check_whole(bins, "bins"), by)
    return _measure_bins(forecasts, happened, inner)


def draw(path: str | Path, curves: Mapping[str, Reliability], *, title: str = "Reliability") -> Path:
    """Draw reliabilities by name over the diagonal into a PNG, with how many forecasts each bin has below.

    Return the file. Without matplotlib: `MissingExtra`.
    """
    if not curves:
        msg = "there is nothing to draw; give at least one name with its reliability"
        raise BadValue(msg)
    return _save_figure(_draw_figure(curves, title), Path(path))


def _cut_bins(forecasts: FloatArray, bins: int, by: By) -> FloatArray:
    """Return the limits between bins, ascending and different."""
    match by:
        case "width":
            return np.arange(1, bins) / bins  # not linspace: 3 / 10 is the 0.3 that a forecast of 0.3 is
        case "count":
            cuts = np.arange(1, bins) * len(forecasts) // bins
            limits = np.unique(np.sort(forecasts)[cuts]) if len(forecasts) else np.empty(0)
            return limits[limits > 0]  # the first bin begins at 0 already
        case _:
            msg = f"bins by `{by}` are not known; say `width` or `count`"
            raise BadValue(msg)


def _measure_bins(forecasts: FloatArray, happened: BoolArray, inner: FloatArray) -> Reliability:
    total, size, edges = len(forecasts), len(inner) + 1, [0.0, *inner.tolist(), 1.0]
    place = np.searchsorted(inner, forecasts, side="right")
    counts, sums, hits, spread = (
        np.bincount(place, weights=weights, minlength=size)
        for weights in (np.ones(total), forecasts, happened, forecasts * (1 - forecasts))
    )
    used = np.flatnonzero(counts)
    if not total:
        return Reliability((), 0, nan, nan, nan, nan)
    rate, weight = float(happened.mean()), counts[used] / total
    mean, observed = sums[used] / counts[used], hits[used] / counts[used]
    bins = []
    for at, mean_forecast, share in zip(used.tolist(), mean.tolist(), observed.tolist(), strict=True):
        count, interval = int(counts[at]), compute_wilson_interval(int(hits[at]), int(counts[at]))
        bins.append(Bin(edges[at], edges[at + 1], count, mean_forecast, share, sqrt(spread[at]) / count, *interval))
    return Reliability(
        tuple(bins),
        total,
        brier=float(np.mean((forecasts - happened) ** 2)),
        reliability=float(weight @ (mean - observed) ** 2),
        resolution=float(weight @ (observed - rate) ** 2),
        uncertainty=rate * (1 - rate),
    )


def compute_wilson_interval(hits: int, count: int) -> tuple[float, float]:
    """Return the interval of 95 % around `hits` of `count`; unlike the plain one it stays within [0, 1]."""
    share, grown = hits / count, 1 + Z * Z / count
    middle = (share + Z * Z / (2 * count)) / grown
    half = Z * sqrt(share * (1 - share) / count + (Z / (2 * count)) ** 2) / grown
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == count else middle + half)


def _format_bin(bin_: Bin) -> str:
    span = f"{bin_.low:.3f}-{bin_.high:.3f}"
    return f"{span:>13} {bin_.count:>11,} {bin_.mean:6.3f} {bin_.observed:6.3f}  {bin_.lower:.3f}-{bin_.upper:.3f}"


def load_figure() -> Any:
    """Return matplotlib's class of figures; without matplotlib: `MissingExtra`."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        msg = "plots need matplotlib; install it with `pip install 'tidings[bench]'`"
        raise MissingExtra(msg) from problem
    return Figure


def _draw_figure(curves: Mapping[str, Reliability], title: str) -> Any:
    figure = load_figure()(figsize=(6, 7.4), layout="constrained")  # no pyplot: no window, no state
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot([0, 1], [0, 1], color="#9aa5b1", linestyle="--", linewidth=1)
    for (name, curve), colour, mark in zip(curves.items(), cycle(COLOURS), cycle(MARKS)):
        _draw_curve(above, below, curve, label=name, color=colour, marker=mark, markersize=5)
    above.set(title=title, ylabel="share that happened", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    below.set(xlabel="forecast probability", ylabel="forecasts", yscale="log")
    above.legend(frameon=False, loc="upper left", fontsize="small")
    for axes in (above, below):
        axes.grid(True, color="#d8dde3", linewidth=0.6)
    return figure


def _draw_curve(above: Any, below: Any, curve: Reliability, **look: Any) -> None:
    means = [bin_.mean for bin_ in curve.bins]
    was = [bin_.observed for bin_ in curve.bins]
    bars = [[bin_.observed - bin_.lower for bin_ in curve.bins], [bin_.upper - bin_.observed for bin_ in curve.bins]]
    above.errorbar(means, was, yerr=bars, linewidth=1.4, elinewidth=0.8, capsize=2.5, **look)
    below.plot(means, [bin_.count for bin_ in curve.bins], linewidth=1.4, **look)


def _save_figure(figure: Any, path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, format="png")
    except OSError as problem:
        msg = f"cannot write the picture `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    return path
