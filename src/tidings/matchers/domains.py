"""Domains of attributes, taken from the ends that were seen: papers have them declared, users have not.

A domain is divided into steps; a value's step is monotone in the value, and what lies outside has the first or the
last step. So a structure that orders rows by steps stays right whatever comes, as long as it compares ends where
steps are equal; only its balance suffers. When the rows have doubled and ends lie outside, it is made anew, so
that costs O(1) a row in the long run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tidings.matchers.intervals import WANTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.matchers.table import Table


class Domains:
    """For each attribute the least and the greatest end seen, and how many steps one unit has."""

    def __init__(self, last: int) -> None:
        """Start with nothing seen; `last` is the number of the last step."""
        self._last = last
        self.bases, self.tops, self.scales = np.zeros(0), np.zeros(0), np.zeros(0)
        self._rows = self._measured = 0

    @property
    def all(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return bases, tops and scales of all attributes."""
        return self.bases, self.tops, self.scales

    def of(self, m: int) -> tuple[float, float, float]:
        """Return base, top and scale of one attribute."""
        return float(self.bases[m]), float(self.tops[m]), float(self.scales[m])

    def step(self, m: int, value: float) -> int:
        """Return a value's step on an attribute; the same as the kernels reckon."""
        base, top, scale = self.of(m)
        if value <= base:
            return 0
        return self._last if value >= top else min(int((value - base) * scale), self._last)

    def outgrown(self, table: Table, rows: NDArray[np.int32]) -> bool:
        """Tell whether the domains have changed, now that the table has these rows: then index all of them anew."""
        self._rows += len(rows)
        if self._rows >= 2 * self._measured:
            self._measured = self._rows
            return self._measure(table)
        known = len(self.bases)
        if len(table.columns) > known:  # no row but these asks for the new ones, so nothing has to move
            self._take(*(np.concatenate(pair) for pair in zip(self.all[:2], _extremes(table, known), strict=True)))
        return False

    def forget(self, count: int) -> None:
        """Note that rows are gone."""
        self._rows -= count

    def _measure(self, table: Table) -> bool:
        """Take the domains from all rows of the table, unless all of them lie inside already."""
        bases, tops = _extremes(table)
        known = len(self.bases)
        if known == len(bases) and bool(np.all(bases >= self.bases) and np.all(tops <= self.tops)):
            return False
        self._take(bases, tops)
        return True

    def _take(self, bases: NDArray[np.float64], tops: NDArray[np.float64]) -> None:
        self.bases, self.tops = bases, tops
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            scales = self._last / (tops - bases)
        self.scales = np.where(np.isfinite(scales), scales, 0.0)


def _extremes(table: Table, begin: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the greatest finite end of each attribute; zero where there is none."""
    count, rows = len(table.columns), table.rows
    bases, tops = np.zeros(count - begin), np.zeros(count - begin)
    for at, m in enumerate(range(begin, count)):
        asked = (table.ends[m, :rows] & WANTED) != 0
        ends = np.concatenate([table.lows[m, :rows][asked], table.highs[m, :rows][asked]])
        ends = ends[np.isfinite(ends)]
        if len(ends):
            bases[at], tops[at] = ends.min(), ends.max()
        with np.errstate(over="ignore"):
            width = tops[at] - bases[at]
        if not math.isfinite(width):  # ends of both signs near the largest float
            bases[at], tops[at] = bases[at] / 2, tops[at] / 2
    return bases, tops
