"""Bulk loads: conjunctions that come as columns become a table of rows, column by column.

No filter exists as a tree here. Each test is a few flat arrays over all rows (equality, set, range, area); the end
points of its column get their ranks, mostly by looking them up in a table of all integers between the least and the
greatest, and each row that has the test gets one more literal. Cost: some passes over each column, no sort but of
floats and of integers that lie far apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidings.engine.compile.code_spaces import ByteSpace, CodeSpace, LinearSpace, RankedSpace
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders import ALL_LONGITUDES
from tidings.engine.compile.row_table import Literals, RowTable
from tidings.engine.exact.exact_checks import ExactItem, PlaceItem
from tidings.engine.exact.place_tests import PlaceTable
from tidings.engine.tuning import DEFAULT_TUNING, EngineTuning
from tidings.kernels.array_types import ByteArray, CodeArray, IntArray
from tidings.kernels.match import column_literals as kernel
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import ANY
from tidings.model import Within

LOOKUP_WIDTH = 1 << 22
"""Integers that lie within so many of each other are looked up; beyond that, when they are dense enough."""

RowMask: TypeAlias = ByteArray
"""1 where a row has the test."""


@dataclass(frozen=True, slots=True)
class EndColumn:
    """End points of one column, of the rows in `mask`: int32, int64, float64, or ranks in a space that is given."""

    values: NDArray[Any]
    mask: RowMask


@dataclass(frozen=True, slots=True)
class EqualityColumn:
    """The test that an attribute equals a value, of many rows: `ends` has the value of each row in its mask."""

    column: Column
    ends: EndColumn

    @property
    def mask(self) -> RowMask:
        """The rows that have the test."""
        return self.ends.mask


@dataclass(frozen=True, slots=True)
class SetColumn:
    """The test for a set, of many rows: those of a row go from `start[row]` up to `start[row + 1]`, all different."""

    column: Column
    ends: EndColumn
    start: IntArray
    mask: RowMask


@dataclass(frozen=True, slots=True)
class RangeColumn:
    """The test for a range, of many rows; an end's `mask` is `NONE`, `CLOSED` or `OPEN` (`column_literals`)."""

    column: Column
    low: EndColumn
    high: EndColumn

    @property
    def mask(self) -> RowMask:
        """The rows that have the test."""
        return np.asarray((self.low.mask | self.high.mask) != 0).view(np.uint8)


@dataclass(frozen=True, slots=True)
class AreaColumn:
    """The test that a place lies in an area, of the rows in `mask`: `area_number` says in which of the `areas`."""

    attribute: str
    areas: Sequence[Within]
    area_number: IntArray
    mask: RowMask


PredicateColumn: TypeAlias = EqualityColumn | SetColumn | RangeColumn | AreaColumn


@dataclass(slots=True)
class _ColumnBuild:
    """A column of the table while it is built: its end points, and then its space and how values become ranks.

    A value's rank is `table[value - base]`, or `value - base` where the table is empty.
    """

    number: int
    ends: list[EndColumn] = field(default_factory=list)
    space: CodeSpace = field(default_factory=lambda: RankedSpace(np.zeros(0)))
    base: int = 0
    table: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    ranks: dict[int, IntArray] = field(default_factory=dict)  # by the `id()` of ends that were ranked by sorting

    def select_values(self, ends: EndColumn) -> NDArray[Any]:
        """Return the array that kernels read for these ends: their ranks if they are known, else the values."""
        return self.ranks.get(id(ends), ends.values)


def build_bulk_table(
    tests: Sequence[PredicateColumn],
    rows: IntArray,
    texts: dict[Column, ByteSpace],
    tuning: EngineTuning = DEFAULT_TUNING,
) -> RowTable:
    """Return the table of the rows' conjunctions; the literals of a row are in the order of `tests`.

    Slots are the numbers of the rows; no test may have a row in its mask that is not among `rows`. `texts` are the
    spaces of columns of text, whose values are ranks already.
    """
    boxed = [part for test in tests for part in (_build_box_ranges(test) if isinstance(test, AreaColumn) else (test,))]
    builds: dict[Column, _ColumnBuild] = {}
    for test in boxed:
        build = builds.setdefault(test.column, _ColumnBuild(len(builds)))
        build.ends += [test.low, test.high] if isinstance(test, RangeColumn) else [test.ends]
    for column, build in builds.items():
        if column in texts:
            build.space = texts[column]
        elif not _rank_by_lookup(build, tuning):
            _rank_by_sorting(build)
    start, literals = _write_literals(boxed, rows, builds, tuning.bulk_block)
    items, item_row, item_number = _collect_items(tests, rows)
    return RowTable(
        columns=tuple(builds),
        spaces=tuple(build.space for build in builds.values()),
        start=start,
        literals=literals,
        entry=np.arange(len(rows) + 1, dtype=np.uint32),
        slot=rows.astype(np.uint32),
        item_row=item_row,
        item_number=item_number,
        items=items,
    )


def _rank_by_lookup(build: _ColumnBuild, tuning: EngineTuning) -> bool:
    """Build the space of integers that lie close together and a table of ranks; return False where they do not."""
    ends = [(column, int(np.argmax(column.mask))) for column in build.ends if column.mask.any()]
    if not all(column.values.dtype.kind == "i" for column, _ in ends):
        return False
    if not ends:
        return True
    extremes = [kernel.find_extremes(column.values, column.mask, column.values[first]) for column, first in ends]
    least, most = min(int(pair[0]) for pair in extremes), max(int(pair[1]) for pair in extremes)
    width, count = most - least + 1, sum(int(np.count_nonzero(column.mask)) for column, _ in ends)
    if width > max(LOOKUP_WIDTH, 4 * count):
        return False
    flags, distinct = np.zeros(width, np.uint8), 0
    # So many distinct ends make a space without a list; then the rest need not be looked at.
    enough = max(tuning.listed_ends, (width - 1) // tuning.sparsity) + 1
    for column, _ in ends:
        distinct = kernel.flag_values(column.values, column.mask, least, flags, distinct, enough)
    build.base, build.space = least, LinearSpace(least, width)
    if distinct < enough:
        build.space = RankedSpace((np.flatnonzero(flags) + least).astype(np.float64))
        build.table = np.cumsum(flags, dtype=np.int64) - 1
    return True


def _rank_by_sorting(build: _ColumnBuild) -> None:
    """Build the space of any numbers by sorting; ranks are then searched near the place that an even spread gives."""
    masks = [column.mask != 0 for column in build.ends]
    values = [column.values.astype(np.float64, copy=False) for column in build.ends]
    ends = np.unique(np.concatenate([floats[mask] for floats, mask in zip(values, masks, strict=True)])) + 0.0
    guide, scale = np.zeros(len(ends) + 1, np.int64), 0.0
    with np.errstate(over="ignore", divide="ignore"):
        spread = ends[-1] - ends[0]
        if 0 < spread < np.inf and np.isfinite(len(ends) / spread):
            scale = float(len(ends) / spread)
    kernel.build_guide(ends, scale, guide)
    for column, floats in zip(build.ends, values, strict=True):
        build.ranks[id(column)] = np.zeros(len(floats), np.int64)
        kernel.rank_by_guide(floats, column.mask, ends, scale, guide, build.ranks[id(column)])
    build.space = RankedSpace(ends)


def _write_literals(
    tests: Sequence[EqualityColumn | SetColumn | RangeColumn],
    rows: IntArray,
    builds: dict[Column, _ColumnBuild],
    block_rows: int,
) -> tuple[CodeArray, Literals]:
    """Return where each row's literals begin, and the literals."""
    masks = [test.mask for test in tests]
    total = len(masks[0]) if masks else int(rows.max(initial=-1)) + 1
    sizes: NDArray[Any] = np.zeros(total, np.uint8 if len(tests) < 256 else np.uint32)
    for mask in masks:
        sizes += mask
    ends = np.cumsum(sizes, dtype=np.int64)
    count = int(ends[-1]) if total else 0
    # `at` is where the next literal of each row goes; the kernels advance it.
    next_literal = ends - sizes
    start = np.append(next_literal[rows], count).astype(np.uint32)
    head, low, high = out = tuple(np.empty(count, np.uint32) for _ in range(3))
    union_start, union_low = _allocate_unions(tests)
    unions = 0
    for begin in range(0, total, block_rows):
        block = begin, min(begin + block_rows, total)
        for test in tests:
            build = builds[test.column]
            ranking, key = (build.base, build.table), np.uint32(build.number << OP_BITS | ANY)
            if isinstance(test, RangeColumn):
                sides = build.select_values(test.low), test.low.mask, build.select_values(test.high), test.high.mask
                kernel.put_spans(*sides, *ranking, len(build.space), key, next_literal, *out, *block)
                continue
            values, target = build.select_values(test.ends), (*ranking, key, next_literal, *out)
            if isinstance(test, EqualityColumn):
                kernel.put_points(values, test.mask, *target, *block)
            else:
                unions = kernel.put_sets(values, test.start, test.mask, *target, union_start, union_low, unions, *block)
    return start, Literals(head, low, high, union_start, union_low, union_low.copy())


def _allocate_unions(tests: Sequence[EqualityColumn | SetColumn | RangeColumn]) -> tuple[CodeArray, CodeArray]:
    """Return arrays with room for the starts of all unions, and for their points."""
    unions = points = 0
    for test in tests:
        if isinstance(test, SetColumn):
            sizes = np.diff(test.start)[test.mask != 0]
            unions += int(np.count_nonzero(sizes > 1))
            points += int(sizes[sizes > 1].sum())
    return np.zeros(unions + 1, np.uint32), np.zeros(points, np.uint32)


def _build_box_ranges(test: AreaColumn) -> list[RangeColumn]:
    """Return the ranges of longitude and latitude that hold the areas, as `encode_boxes` does for one."""
    boxes = np.array([PlaceTable.compute_box(area) for area in test.areas] or [(0.0,) * 4], np.float64)
    has_longitudes = (boxes[:, 0] != ALL_LONGITUDES[0]) | (boxes[:, 2] != ALL_LONGITUDES[1])
    number = np.where(test.mask, test.area_number, 0)
    sides = {View.LONGITUDE: (0, 2, has_longitudes), View.LATITUDE: (1, 3, np.ones(len(boxes), bool))}
    ranges = []
    for view, (low, high, is_bounded) in sides.items():
        mask = test.mask & is_bounded[number]
        ends = [EndColumn(np.ascontiguousarray(boxes[number, side]), mask) for side in (low, high)]
        ranges.append(RangeColumn(Column(test.attribute, view), *ends))
    return ranges


def _collect_items(tests: Sequence[PredicateColumn], rows: IntArray) -> tuple[list[ExactItem], CodeArray, CodeArray]:
    """Return the exact checks of areas, and pairs of a row and the number of its check."""
    items: dict[ExactItem, int] = {}
    item_rows, item_numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for test in tests:
        if isinstance(test, AreaColumn):
            checks = [PlaceItem(test.attribute, ANY, area) for area in test.areas]
            numbers = np.array([items.setdefault(item, len(items)) for item in checks], np.int64)
            tested = np.flatnonzero(test.mask)
            item_rows.append(np.searchsorted(rows, tested))
            item_numbers.append(numbers[test.area_number[tested]] if len(tested) else tested)
    return list(items), np.concatenate(item_rows).astype(np.uint32), np.concatenate(item_numbers).astype(np.uint32)
