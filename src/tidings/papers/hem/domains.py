"""The domains of attributes, which nobody declares: taken from the ends of the first rows, and widened when it pays.

A matcher divides a domain into cells. The domain must not move while rows lie in its cells, so it is fixed when the
first row with the attribute comes; ends beyond it fall into the outermost cells, where they are found, but crowded.
Once the rows have doubled and the ends reach further, all rows are laid out again: amortised, each row pays for two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.papers.domain_cells import DomainScale, widen
from tidings.papers.common.arrays import grow

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int32Array
    from tidings.papers.hem.range_table import RangeTable


class Domains:
    """Where each attribute's cells begin and end."""

    def __init__(self) -> None:
        self._least = np.empty(0)
        self._most = np.empty(0)
        self._settled_rows = 0
        self.domain = DomainScale(np.empty(0), np.empty(0), np.empty(0))

    @property
    def count(self) -> int:
        """How many attributes have a domain."""
        return len(self._least)

    def observe(self, table: RangeTable, rows: Int32Array) -> bool:
        """Take note of new rows; return whether the domains have moved, so that all rows must be laid out again."""
        previous, columns = self.count, len(table.columns)
        self._least, self._most = grow(self._least, (columns,), np.inf), grow(self._most, (columns,), -np.inf)
        widen(table.arrays, rows, columns, self._least, self._most)
        if columns > previous:
            fresh = DomainScale.measure(self._least[previous:], self._most[previous:])
            self.domain = DomainScale(*map(np.concatenate, zip(self.domain, fresh, strict=True)))
        if self._settled_rows == 0:
            self._settled_rows = table.count
        reaches_further = bool(np.any((self._least < self.domain.origin) | (self._most > self.domain.top)))
        if self.has_doubled(table) and reaches_further:
            self.settle(table)
            return True
        return False

    def has_doubled(self, table: RangeTable) -> bool:
        """Tell whether there are twice the rows of when the domains were settled."""
        return table.count >= 2 * self._settled_rows

    def shrink(self, count: int) -> None:
        """Take note that only `count` rows are left: doubling starts from there."""
        self._settled_rows = min(self._settled_rows, max(count, 1))

    def settle(self, table: RangeTable) -> None:
        """Let the domains reach as far as the ends of all rows so far."""
        self.domain = DomainScale.measure(self._least, self._most)
        self._settled_rows = table.count
