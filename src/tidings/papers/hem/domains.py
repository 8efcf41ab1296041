"""The domains of attributes, which nobody declares: taken from the ends of the first rows, and widened when it pays.

A matcher divides a domain into cells. The domain must not move while rows lie in its cells, so it is fixed when an
attribute is first asked for; ends beyond it fall into the outermost cells, where they are right but crowded. Once the
rows have doubled and the ends reach further, it is time to lay all rows out again: amortised, each row pays for two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.papers import domain_cells as kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidings.papers.hem.range_table import RangeTable


class Domains:
    """Where each attribute's cells begin and end."""

    def __init__(self) -> None:
        """Start without attributes."""
        self._least = np.empty(0)
        self._most = np.empty(0)
        self._settled_rows = 0
        self.domain = kernels.DomainScale(np.empty(0), np.empty(0), np.empty(0))

    @property
    def count(self) -> int:
        """Return how many attributes have a domain."""
        return len(self._least)

    def observe(self, table: RangeTable, rows: NDArray[np.int32]) -> bool:
        """Take note of new rows; tell whether all rows should be laid out again, with `settle` before."""
        previous, columns = self.count, len(table.columns)
        if columns > previous:
            self._least = np.concatenate([self._least, np.full(columns - previous, np.inf)])
            self._most = np.concatenate([self._most, np.full(columns - previous, -np.inf)])
        kernels.widen(to_range_ends(table), rows, columns, self._least, self._most)
        if columns > previous:
            fresh = self._measure(slice(previous, columns))
            self.domain = kernels.DomainScale(*map(np.concatenate, zip(self.domain, fresh, strict=True)))
        if self._settled_rows == 0:
            self._settled_rows = table.count
        return self.has_doubled(table) and self._has_grown()

    def has_doubled(self, table: RangeTable) -> bool:
        """Tell whether there are twice the rows of when the domains were settled."""
        return table.count >= 2 * self._settled_rows

    def shrink(self, count: int) -> None:
        """Take note that only so many rows are left, so that doubling is reckoned from there."""
        self._settled_rows = min(self._settled_rows, max(count, 1))

    def settle(self, table: RangeTable) -> None:
        """Let the domains reach as far as the ends seen."""
        self.domain = self._measure(slice(None))
        self._settled_rows = table.count

    def _has_grown(self) -> bool:
        return bool(np.any((self._least < self.domain.origin) | (self._most > self.domain.top)))

    def _measure(self, part: slice) -> kernels.DomainScale:
        """Return the domains of attributes; one that has no finite end, or only one value, is a point."""
        some = self._least[part] <= self._most[part]
        origin = np.where(some, self._least[part], 0.0)
        top = np.where(some, self._most[part], 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            scale = 1.0 / (0.5 * top - 0.5 * origin)
        return kernels.DomainScale(origin, top, np.where(np.isfinite(scale), scale, 0.0))


def to_range_ends(table: RangeTable) -> kernels.RangeEnds:
    """Return the table's arrays as kernels take them."""
    return kernels.RangeEnds(table.lows, table.highs, table.ends)
