"""The table under range matchers: for every row and attribute a low end, a high end, and which of them are open.

A row is a box (`intervals`). The table is dense, attribute by attribute, as in the papers, where each subscription
constrains each attribute. A row without a constraint on an attribute reaches from end to end there, unmarked, and only
such rows match an event without the attribute. So memory is rows x attributes x 17 bytes, and a table that would be too
large is refused before it is allocated. `Domains` is what a matcher needs to divide the attributes into cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.algebra.law.typed_attribute import TypedAttribute
from tidings.errors import TidingsError
from tidings.kernels.papers.domain_cells import WANTED, DomainScale, RangeEnds, RowBatch, widen
from tidings.papers.common.growable_arrays import grow
from tidings.papers.common.intervals import INFINITY, IntervalBox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.kernels.array_types import ByteArray, FloatArray, Int32Array

LEAST_ROWS, LEAST_COLUMNS = 64, 4
"""Room of the first table."""

CELL_BYTES = 17
"""Two ends and a byte of marks."""

MOST_BYTES = 8 * 2**30
"""No table grows beyond this."""


class RangeTable:
    """Ends of all rows: `lows`, `highs` and `ends` have a line for each attribute and a place for each row."""

    def __init__(self, kind: str = "", *, most_bytes: int = MOST_BYTES) -> None:
        """Start empty; `kind` is the matcher that errors name, `most_bytes` the size beyond which rows are refused."""
        self._kind, self._most_bytes = kind, most_bytes
        self.columns: dict[TypedAttribute, int] = {}
        self.lows = np.full((LEAST_COLUMNS, LEAST_ROWS), -INFINITY)
        self.highs = np.full((LEAST_COLUMNS, LEAST_ROWS), INFINITY)
        self.ends = np.zeros((LEAST_COLUMNS, LEAST_ROWS), np.uint8)
        self.alive = np.zeros(LEAST_ROWS, np.bool_)
        self.rows = 0
        """Rows below this number have been used; some of them may be free again."""
        self.count = 0
        """Rows in force."""
        self._free: list[int] = []

    @classmethod
    def from_ends(cls, lows: FloatArray, highs: FloatArray, ends: ByteArray) -> RangeTable:
        """Return a table with these ends, a line for each attribute; every row constrains every attribute."""
        table = cls()
        table.columns = {TypedAttribute(f"a{number}", "number"): number for number in range(len(lows))}
        table.lows, table.highs, table.ends = lows, highs, ends | np.uint8(WANTED)
        table.rows = table.count = lows.shape[1]
        table.alive = np.ones(table.rows, np.bool_)
        return table

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return len(self.alive)

    @property
    def arrays(self) -> RangeEnds:
        """The ends as kernels take them."""
        return RangeEnds(self.lows, self.highs, self.ends)

    @property
    def nbytes(self) -> int:
        """The memory taken, in bytes."""
        return self.lows.nbytes + self.highs.nbytes + self.ends.nbytes + self.alive.nbytes

    def add(self, boxes: Sequence[IntervalBox]) -> Int32Array:
        """Put boxes into rows, and return which."""
        previous = len(self.columns)
        for box in boxes:
            for key in box:
                if key not in self.columns:
                    self.columns[key] = len(self.columns)
        try:
            self._reserve(len(boxes))
        except TidingsError:  # there is no room for the new attributes, so they are not known
            for key in list(self.columns)[previous:]:
                del self.columns[key]
            raise
        reused = min(len(boxes), len(self._free))
        rows = np.empty(len(boxes), np.int32)
        if reused:
            rows[:reused] = self._free[-reused:]
            del self._free[-reused:]
        rows[reused:] = np.arange(self.rows, self.rows + len(boxes) - reused)
        self.rows += len(boxes) - reused
        self._fill(rows, boxes)
        self.alive[rows] = True
        self.count += len(boxes)
        return rows

    def list_rows(self) -> Int32Array:
        """Return the rows in force."""
        return np.flatnonzero(self.alive).astype(np.int32)

    def discard(self, rows: Int32Array) -> None:
        """Free rows."""
        self.alive[rows] = False
        self.lows[:, rows], self.highs[:, rows], self.ends[:, rows] = -INFINITY, INFINITY, 0
        self._free.extend(rows.tolist())
        self.count -= len(rows)

    def _fill(self, rows: Int32Array, boxes: Sequence[IntervalBox]) -> None:
        places = [self.columns[key] for box in boxes for key in box]
        if not places:
            return
        sizes = [len(box) for box in boxes]
        cells = np.array([interval for box in boxes for interval in box.values()])
        cell_rows = np.repeat(rows, sizes)
        self.lows[places, cell_rows], self.highs[places, cell_rows] = cells[:, 0], cells[:, 1]
        self.ends[places, cell_rows] = cells[:, 2].astype(np.uint8) | WANTED

    def _reserve(self, more: int) -> None:
        """Make room for rows and attributes to come."""
        wide, long = self.lows.shape
        rows = self.rows + more - len(self._free)
        new_long = long if rows <= long else max(rows, 2 * long)
        new_wide = wide if len(self.columns) <= wide else max(len(self.columns), 2 * wide)
        if (new_long, new_wide) == (long, wide):
            return
        size = new_long * len(self.columns) * CELL_BYTES
        if size > self._most_bytes:
            msg = (
                f"the matcher `{self._kind}` keeps a cell for every subscription and attribute:"
                f" {rows:,} x {len(self.columns):,} are {size / 2**30:.0f} GiB, and it stops at"
                f" {self._most_bytes / 2**30:.0f}; use td.Matcher(), which keeps what a filter asks for"
            )
            raise TidingsError(msg)
        if new_long * new_wide * CELL_BYTES > self._most_bytes:
            new_wide = len(self.columns)
        self.lows = grow(self.lows, (new_wide, new_long), -INFINITY)
        self.highs = grow(self.highs, (new_wide, new_long), INFINITY)
        self.ends = grow(self.ends, (new_wide, new_long), 0)
        self.alive = grow(self.alive, (new_long,))


class Domains:
    """Where each attribute's cells begin and end: domains that nobody declares, taken from the ends of rows.

    A domain must not move while rows lie in its cells, so it is fixed when the first row with the attribute comes; ends
    beyond it fall into the outermost cells, where they are found, but crowded. Once the rows have doubled and the ends
    reach further, all rows are laid out again: amortised, each row pays for two.
    """

    def __init__(self) -> None:
        self._least, self._most = np.empty(0), np.empty(0)
        self._rows_at_extension = 0
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
        if self._rows_at_extension == 0:
            self._rows_at_extension = table.count
        reaches_further = bool(np.any((self._least < self.domain.origin) | (self._most > self.domain.top)))
        if self.has_doubled(table) and reaches_further:
            self.extend_domains(table)
            return True
        return False

    def select(self, table: RangeTable, rows: Int32Array, cells: int) -> RowBatch:
        """Return rows that enter or leave an index whose attributes have so many cells."""
        return RowBatch(table.arrays, self.domain, cells, self.count, rows)

    def has_doubled(self, table: RangeTable) -> bool:
        """Tell whether there are twice the rows of when the domains were last extended."""
        return table.count >= 2 * self._rows_at_extension

    def shrink(self, count: int) -> None:
        """Take note that only `count` rows are left: doubling starts from there."""
        self._rows_at_extension = min(self._rows_at_extension, max(count, 1))

    def extend_domains(self, table: RangeTable) -> None:
        """Let the domains reach as far as the ends of all rows so far."""
        self.domain = DomainScale.measure(self._least, self._most)
        self._rows_at_extension = table.count
