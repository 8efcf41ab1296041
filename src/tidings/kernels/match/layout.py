"""The arrays of matching: named groups of flat arrays, so that no call has thirty arguments.

`IndexRows` are conjunctions of literals, `EventCells` the codes of a batch of events, `IndexPaths` the ways from an
event's values to clusters of rows, and `IndexTiles` the bitmaps over the rows of large clusters. A group costs nothing
where a call does much work; inner loops unpack what they need first, since Numba counts references of all arrays of a
tuple that it hands on (measured in `kernels.papers.counting`: 150 ns an entry against 4).

The fields of `IndexRows`, `IndexPaths` and `IndexTiles` are names in snapshots: renaming one changes the format.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tidings.kernels.array_types import ByteArray, CodeArray, Float32Array, Int, Int32Array, IntArray, WordArray

OP_BITS = 4
"""A literal's head is its column, shifted by this, and its op."""

OP_MASK = (1 << OP_BITS) - 1
"""The bits of a head that are its op."""

Pairs: TypeAlias = tuple[IntArray, CodeArray, Int]
"""Output that grows: events, their slots (or rows), and how many pairs there are."""

Visits: TypeAlias = tuple[Int32Array, Int32Array, Int]
"""Tiled clusters, the events that are to visit them, and how many visits there are."""

Intervals: TypeAlias = tuple[IntArray, CodeArray, CodeArray]
"""Lists of intervals (CSR): where each list begins, low ends, high ends."""

EventBuckets: TypeAlias = tuple[CodeArray, CodeArray, CodeArray]
"""Of each event, flat: its dense columns by match rate, its bucket in each of these, its bucket in column order."""

PairBuffers: TypeAlias = tuple[CodeArray, CodeArray, CodeArray, CodeArray]
"""Work space of a tile: events and rows to be checked, events and rows that the bitmaps have decided."""


class RowLiterals(NamedTuple):
    """Rows before they are indexed: row `r` is the conjunction of the literals from `start[r]` up to `start[r + 1]`."""

    start: CodeArray
    head: CodeArray
    low: CodeArray
    high: CodeArray
    union_start: CodeArray
    union_low: CodeArray
    union_high: CodeArray


class IndexRows(NamedTuple):
    """Rows as they are matched: literal `i` is `literal[3 * i]` (its head), its low end and its high end.

    The three lie together because a row that is checked is seldom in cache: one line is fetched, not three.
    """

    start: CodeArray
    literal: CodeArray
    union_start: CodeArray
    union_low: CodeArray
    union_high: CodeArray
    entry: CodeArray  # row -> its first place in `slot`, with one more at the end; empty: every row has one slot
    slot: CodeArray  # the subscriptions of each row
    special: ByteArray  # 1: a special row, which needs an exact check or is one of several of its filter


class EventCells(NamedTuple):
    """The codes of events: `cell[event, column]`, see `literals`; `plain` events have no `SEVERAL` cell."""

    cell: CodeArray
    plain: ByteArray
    many_start: IntArray
    many_low: CodeArray
    many_high: CodeArray


class IndexPaths(NamedTuple):
    """The ways to clusters: groups of rows that are found by the same columns.

    A keyed group finds a cluster by the ranks of one or two points: in a table `direct`, or in a hash table of the
    group's own (see `keys`). A packed group is one cluster whose tiles have hulls in the group's columns.
    """

    by_column: Int32Array  # CSR: the keyed groups whose first column it is
    by_column_start: IntArray
    first: Int32Array
    second: Int32Array  # -1: none
    base: IntArray  # where the group's table begins
    width: IntArray  # ranks of the second column
    mask: IntArray  # hash groups: size of the table - 1; else 0
    direct: CodeArray  # cluster + 1
    hash_first: CodeArray
    hash_second: CodeArray
    hash_cluster: CodeArray  # cluster + 1
    cluster_start: CodeArray  # rows
    cluster_tiled: Int32Array  # -1, or its place in `tiled_start`
    tiled_start: Int32Array  # tiles


class IndexTiles(NamedTuple):
    """Up to a thousand or so rows, with bitmaps for each bucket of each *dense* column: one that some row tests."""

    row: CodeArray  # first row
    end: CodeArray  # the row after its last
    rest: WordArray  # rows of each tile that are to be checked whatever the bitmaps say
    rest_start: IntArray
    doubted: IntArray  # dense columns with bitmaps of doubt behind their others
    hull_column: IntArray  # two for each tile; -1: none
    hull_low: CodeArray
    hull_high: CodeArray
    place: WordArray  # tile * dense columns + dense column -> first word of its bitmaps, or `tiles.NOWHERE`
    words: WordArray
    dense: IntArray  # dense column -> column
    edge_start: IntArray
    edges: CodeArray
    rate_start: IntArray
    rates: Float32Array  # of each bucket of each dense column: the share of rows that live
    loose: Int32Array  # tiled clusters that every event visits


class LeafArrays(NamedTuple):
    """The distinct literals of a forest's trees; leaves of a column lie together (see `kernels.match.literals`)."""

    column: CodeArray
    op: ByteArray
    low: CodeArray
    high: CodeArray
    union_start: CodeArray
    union_low: CodeArray
    union_high: CodeArray


class ForestCode(NamedTuple):
    """The programs of a forest, those of shared sub-trees first; a tree whose root is `negated` is flipped last."""

    code: CodeArray
    starts: IntArray
    negated: ByteArray
