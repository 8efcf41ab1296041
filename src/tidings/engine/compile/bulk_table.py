"""Bulk loads: conjunctions that come as columns become a table of rows, column by column.

No filter exists as a tree here. Each test is a few flat arrays over all rows (points, sets, ranges, areas);
its column's end points get their ranks, mostly by looking them up in a table of all integers between the
least and the greatest, and each row gets one literal more. Cost: some passes over each column, no sort but
of floats and of integers that lie far apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidings.engine.compile.code_spaces import FEW, SPARSE, Bytewise, Linear, Ranked, Space
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders import place
from tidings.engine.compile.row_table import Literals, Table
from tidings.engine.exact.exact_checks import PlaceItem
from tidings.kernels.match import bulk_load as kernel
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import ANY
from tidings.model import Kind, Within

BLOCK = 8192
"""Rows whose literals are written in one go: they stay in cache while column after column adds its own."""

WIDE = 1 << 22
"""Integers that lie within so many of each other are looked up; beyond that, when they are dense enough."""

Given: TypeAlias = NDArray[np.uint8]
"""1 where a row has a value."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Values of one column, where they are given: int32, int64, float64, or ranks where the space is known."""

    values: NDArray[Any]
    given: Given


@dataclass(frozen=True, slots=True)
class Points:
    """Equality with one value."""

    column: Column
    ends: Ends

    @property
    def given(self) -> Given:
        """Which rows ask it."""
        return self.ends.given

    def ends_of(self) -> list[Ends]:
        """Return its end points."""
        return [self.ends]


@dataclass(frozen=True, slots=True)
class Sets:
    """Equality with one of the values from `start[row]` up to `start[row + 1]`, all different."""

    column: Column
    ends: Ends
    start: NDArray[np.int64]
    given: Given

    def ends_of(self) -> list[Ends]:
        """Return its end points."""
        return [self.ends]


@dataclass(frozen=True, slots=True)
class Spans:
    """A range; the `given` of its ends is how they are: none, closed or open, as `kernels.bulk` has it."""

    column: Column
    low: Ends
    high: Ends

    @property
    def given(self) -> Given:
        """Which rows ask it."""
        return np.asarray((self.low.given | self.high.given) != 0).view(np.uint8)

    def ends_of(self) -> list[Ends]:
        """Return its end points."""
        return [self.low, self.high]


@dataclass(frozen=True, slots=True)
class Areas:
    """Inside one of the areas: its number, where a row asks it."""

    attribute: str
    areas: Sequence[Within]
    number: NDArray[np.int64]
    given: Given


Tested: TypeAlias = Points | Sets | Spans | Areas


@dataclass(slots=True)
class _Drawn:
    """A column: its end points, and once they are known its space, and how values become ranks (`kernels.bulk`)."""

    number: int
    kind: Kind
    ends: list[Ends] = field(default_factory=list)
    space: Space = field(default_factory=lambda: Ranked(np.zeros(0)))
    base: int = 0
    table: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    ranks: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # by the identity of ends that were sorted

    def values(self, ends: Ends) -> NDArray[Any]:
        """Return what the kernels read."""
        return self.ranks.get(id(ends), ends.values)


def table_of(tests: Sequence[Tested], rows: NDArray[np.int64], texts: dict[Column, Bytewise]) -> Table:
    """Return the table of these rows' conjunctions, whose tests stand in the order given.

    Slots are the numbers of the rows; a test must not be given to a row that is not among `rows`. `texts` are
    the spaces of columns of text, whose values are ranks already.
    """
    boxed = [part for test in tests for part in (_boxes(test) if isinstance(test, Areas) else (test,))]
    drawn: dict[Column, _Drawn] = {}
    for test in boxed:
        drawn.setdefault(test.column, _Drawn(len(drawn), test.column.kind or Kind.PLACE)).ends += test.ends_of()
    for column, one in drawn.items():
        if column in texts:
            one.space = texts[column]
        elif not _looked_up(one):
            _sorted(one)
    start, literals = _placed(boxed, rows, drawn)
    items, item_row, item_number = _items(tests, rows)
    return Table(
        columns=tuple(drawn),
        kinds=tuple(one.kind for one in drawn.values()),
        spaces=tuple(one.space for one in drawn.values()),
        start=start,
        literals=literals,
        entry=np.arange(len(rows) + 1, dtype=np.uint32),
        slot=rows.astype(np.uint32),
        item_row=item_row,
        item_number=item_number,
        items=items,
    )


# Ranks -----------------------------------------------------------------------------------------


def _looked_up(drawn: _Drawn) -> bool:
    """Give integers that lie close together their space; tell whether they do."""
    some = [(one, int(np.argmax(one.given))) for one in drawn.ends if one.given.any()]
    if not all(one.values.dtype.kind == "i" for one, _ in some):
        return False
    if not some:
        return True
    known = [kernel.find_extremes(one.values, one.given, one.values[first]) for one, first in some]
    least, most = min(int(one[0]) for one in known), max(int(one[1]) for one in known)
    width, count = most - least + 1, sum(int(np.count_nonzero(one.given)) for one, _ in some)
    if width > max(WIDE, 4 * count):
        return False
    flags, seen = np.zeros(width, np.uint8), 0
    enough = max(FEW, (width - 1) // SPARSE) + 1  # for a space without a list; then the rest need not be seen
    for one, _ in some:
        seen = kernel.flag_values(one.values, one.given, least, flags, seen, enough)
    drawn.base, drawn.space = least, Linear(least, width)
    if seen < enough:
        drawn.space = Ranked((np.flatnonzero(flags) + least).astype(np.float64))
        drawn.table = np.cumsum(flags, dtype=np.int64) - 1
    return True


def _sorted(drawn: _Drawn) -> None:
    """Give numbers their space the common way: sorted, and each found again near where an even spread would have it."""
    masks = [one.given != 0 for one in drawn.ends]
    values = [one.values.astype(np.float64, copy=False) for one in drawn.ends]
    ends = np.unique(np.concatenate([one[mask] for one, mask in zip(values, masks, strict=True)])) + 0.0
    guide, scale = np.zeros(len(ends) + 1, np.int64), 0.0
    with np.errstate(over="ignore", divide="ignore"):
        spread = ends[-1] - ends[0]
        if 0 < spread < np.inf and np.isfinite(len(ends) / spread):
            scale = float(len(ends) / spread)
    kernel.build_guide(ends, scale, guide)
    for one, floats in zip(drawn.ends, values, strict=True):
        drawn.ranks[id(one)] = np.zeros(len(floats), np.int64)
        kernel.rank_by_guide(floats, one.given, ends, scale, guide, drawn.ranks[id(one)])
    drawn.space = Ranked(ends)


# Literals --------------------------------------------------------------------------------------


def _placed(
    tests: Sequence[Points | Sets | Spans], rows: NDArray[np.int64], drawn: dict[Column, _Drawn]
) -> tuple[NDArray[np.uint32], Literals]:
    """Return where each row's literals begin, and the literals."""
    given = [test.given for test in tests]
    total = len(given[0]) if given else int(rows.max(initial=-1)) + 1
    sizes: NDArray[Any] = np.zeros(total, np.uint8 if len(tests) < 256 else np.uint32)
    for mask in given:
        sizes += mask
    ends = np.cumsum(sizes, dtype=np.int64)
    count = int(ends[-1]) if total else 0
    at = ends - sizes
    start = np.append(at[rows], count).astype(np.uint32)
    head, low, high = into = tuple(np.empty(count, np.uint32) for _ in range(3))
    union_start, union_low = _room(tests)
    unions = 0
    for begin in range(0, total, BLOCK):
        block = begin, min(begin + BLOCK, total)
        for test in tests:
            one = drawn[test.column]
            how, key = (one.base, one.table), np.uint32(one.number << OP_BITS | ANY)
            match test:
                case Points(ends=values):
                    kernel.put_points(one.values(values), values.given, *how, key, at, *into, *block)
                case Spans(low=low_ends, high=high_ends):
                    sides = one.values(low_ends), low_ends.given, one.values(high_ends), high_ends.given
                    kernel.put_spans(*sides, *how, len(one.space), key, at, *into, *block)
                case Sets(ends=values, start=first, given=asked):
                    made = union_start, union_low, unions
                    unions = kernel.put_sets(
                        one.values(values), first, asked, *how, key, at, *into, *made, *block
                    )  # fmt: skip
    return start, Literals(head, low, high, union_start, union_low, union_low.copy())


def _room(tests: Sequence[Points | Sets | Spans]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return arrays that hold all unions, whose starts are still to be written, and their points."""
    unions = points = 0
    for test in tests:
        if isinstance(test, Sets):
            sizes = np.diff(test.start)[test.given != 0]
            unions += int(np.count_nonzero(sizes > 1))
            points += int(sizes[sizes > 1].sum())
    return np.zeros(unions + 1, np.uint32), np.zeros(points, np.uint32)


# Areas -----------------------------------------------------------------------------------------


def _boxes(test: Areas) -> list[Spans]:
    """Return the ranges of longitude and latitude that hold the areas, as `encode.place` has them."""
    boxes = [{one.column: one.spans[0] for one in place.boxes(test.attribute, area)} for area in test.areas]
    found = []
    for view in (View.LONGITUDE, View.LATITUDE):
        column = Column(test.attribute, view)
        spans = [box.get(column) for box in boxes]
        table = np.array([span[:2] if span else (0.0, 0.0) for span in spans], np.float64).reshape(-1, 2)
        there = np.array([span is not None for span in spans], bool)
        given = np.zeros(len(test.given), np.uint8)
        asked = np.flatnonzero(test.given)
        given[asked] = there[test.number[asked]]
        number = np.where(given, test.number, 0)
        if not len(table):
            table = np.zeros((1, 2))
        low, high = (np.ascontiguousarray(table[number, side]) for side in range(2))
        found.append(Spans(column, Ends(low, given), Ends(high, given)))
    return found


def _items(
    tests: Sequence[Tested], rows: NDArray[np.int64]
) -> tuple[list[Any], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the second phase: its items, and the rows that ask for them."""
    items: dict[Any, int] = {}
    asking, asked = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for test in tests:
        if isinstance(test, Areas):
            made = [PlaceItem(test.attribute, ANY, area) for area in test.areas]
            numbers = np.array([items.setdefault(item, len(items)) for item in made], np.int64)
            who = np.flatnonzero(test.given)
            asking.append(np.searchsorted(rows, who))
            asked.append(numbers[test.number[who]] if len(who) else who)
    return list(items), np.concatenate(asking).astype(np.uint32), np.concatenate(asked).astype(np.uint32)
