"""How far a probability can be trusted: of all forecasts near 0.3, did three in ten come true?

Forecasts are put into bins, and each bin's mean probability stands against the share that happened. A trustworthy model
lies on the diagonal. matplotlib (`pip install 'tidings[bench]'`) is loaded when something is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import BadValue, FileError, MissingExtra
from tidings.forecast.scoring.scores import check_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

Z = 1.959964
"""The interval around an observed share holds the true one in 95 of 100 cases."""

COLOURS = ("#1f6f5c", "#d08c3f", "#4a6fa5", "#a8433f", "#7a5c99", "#5f7a2e", "#b0568a", "#6b7280")
"""Colours that most people can distinguish."""

MARKS = "osD^vPX"
"""As many marks as colours would always pair the same two."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Forecasts of about one size: how many, their mean probability, and the share that happened.

    `lower` and `upper` are the Wilson interval of 95 % around that share.
    """

    count: int
    mean: float
    observed: float
    lower: float
    upper: float


def measure_reliability(p: ArrayLike, y: ArrayLike, bins: int = 10) -> tuple[Bin, ...]:
    """Return how often forecasts `p` of each size came true, given the outcomes `y` (0 and 1, or booleans).

    The bins are of equal width and ascend; those without a forecast are left out. The intervals take the outcomes as
    independent. Forecasts of neighbouring events look at the same future, so for honest intervals give every n-th event
    of a stream, n the horizon.

    >>> [(bin_.mean, bin_.observed, bin_.count) for bin_ in measure_reliability([0.1, 0.1, 0.9], [0, 0, 1], bins=2)]
    [(0.1, 0.0, 2), (0.9, 1.0, 1)]
    """
    if type(bins) is not int or bins < 1:
        msg = f"`bins` is `{bins}`; give a whole number from 1 up"
        raise BadValue(msg)
    raw, happened = check_pairs(p, y)
    forecasts = raw.clip(0.0, 1.0)
    limits = np.arange(1, bins) / bins  # not linspace: 3 / 10 is the 0.3 that a forecast of 0.3 is
    place = np.searchsorted(limits, forecasts, side="right")
    counts, sums, hits = (np.bincount(place, weights, bins) for weights in (None, forecasts, happened))
    return tuple(
        Bin(count, total / count, hit / count, *compute_wilson_interval(hit, count))
        for count, total, hit in zip(counts.tolist(), sums.tolist(), hits.tolist(), strict=True)
        if count
    )


def compute_wilson_interval(hits: float, count: int) -> tuple[float, float]:
    """Return the interval of 95 % around `hits` of `count`; unlike the plain one it stays within [0, 1]."""
    share, grown = hits / count, 1 + Z * Z / count
    middle = (share + Z * Z / (2 * count)) / grown
    half = Z * sqrt(share * (1 - share) / count + (Z / (2 * count)) ** 2) / grown
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == count else middle + half)


def load_figure() -> Any:
    """Return matplotlib's class of figures; without matplotlib: `MissingExtra`."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        msg = "plots need matplotlib; install it with `pip install 'tidings[bench]'`"
        raise MissingExtra(msg) from problem
    return Figure


def draw(path: str | Path, curves: Mapping[str, Sequence[Bin]], *, title: str = "Reliability") -> Path:
    """Draw bins by name over the diagonal into a PNG, with how many forecasts each bin has below; return the file.

    Without matplotlib: `MissingExtra`.
    """
    if not curves:
        msg = "there is nothing to draw; give at least one name with its reliability"
        raise BadValue(msg)
    figure, path = _draw_figure(curves, title), Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, format="png")
    except OSError as problem:
        msg = f"cannot write the picture `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    return path


def _draw_figure(curves: Mapping[str, Sequence[Bin]], title: str) -> Any:
    figure = load_figure()(figsize=(6, 7.4), layout="constrained")  # no pyplot: no window, no state
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot([0, 1], [0, 1], color="#9aa5b1", linestyle="--", linewidth=1)
    for (name, bins), colour, mark in zip(curves.items(), cycle(COLOURS), cycle(MARKS)):
        _draw_curve(above, below, bins, label=name, color=colour, marker=mark, markersize=5)
    above.set(title=title, ylabel="share that happened", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    below.set(xlabel="forecast probability", ylabel="forecasts", yscale="log")
    above.legend(frameon=False, loc="upper left", fontsize="small")
    for axes in (above, below):
        axes.grid(True, color="#d8dde3", linewidth=0.6)
    return figure


def _draw_curve(above: Any, below: Any, bins: Sequence[Bin], **look: Any) -> None:
    means, observed = [bin_.mean for bin_ in bins], [bin_.observed for bin_ in bins]
    bars = [[bin_.observed - bin_.lower for bin_ in bins], [bin_.upper - bin_.observed for bin_ in bins]]
    above.errorbar(means, observed, yerr=bars, linewidth=1.4, elinewidth=0.8, capsize=2.5, **look)
    below.plot(means, [bin_.count for bin_ in bins], linewidth=1.4, **look)
