"""What kernels are handed: named groups of flat arrays, so that no call has thirty arguments.

`Rows` are conjunctions of literals, `Cells` the codes of a batch of events, `Paths` the ways from an event's
values to clusters of rows, and `Tiles` the bitmaps over rows of large clusters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

OP_BITS = 4
"""A literal's head is its column, shifted by this, and its op."""


class RowLiterals(NamedTuple):
    """Rows while they are built: row `r` is the conjunction of the literals from `start[r]` up to `start[r + 1]`."""

    start: Any
    head: Any
    low: Any
    high: Any
    union_start: Any
    union_low: Any
    union_high: Any


class IndexRows(NamedTuple):
    """Rows as they are matched: literal `i` is `literal[3 * i]` (its head), its low end and its high end.

    The three stand together because a row that is looked at is seldom in cache: one line, not three.
    """

    start: Any
    literal: Any
    union_start: Any
    union_low: Any
    union_high: Any
    entry: Any  # row -> its first place in `slot`, with one more at the end; empty: every row has one
    slot: Any  # the subscriptions of each row
    special: Any  # 1 where a row needs more than emitting its slots: a second phase, or it is one of several


class EventCells(NamedTuple):
    """The codes of events: `cell[event, column]`, see `kernels.literals`; `plain` events have no `SEVERAL` cell."""

    cell: Any
    plain: Any
    many_start: Any
    many_low: Any
    many_high: Any


class IndexPaths(NamedTuple):
    """Groups of rows that are found by the same columns.

    A keyed group finds a cluster by the ranks of one or two points: in a table `direct`, or in a hash table
    (`hashed`) of the group's own. A packed group is one cluster whose tiles have hulls in the group's columns.
    """

    by_column: Any  # CSR: the keyed groups whose first column it is
    by_column_start: Any
    first: Any
    second: Any  # -1: none
    base: Any  # where the group's table begins
    width: Any  # ranks of the second column
    mask: Any  # hash groups: size of the table - 1; else 0
    direct: Any  # cluster + 1
    hash_first: Any
    hash_second: Any
    hash_cluster: Any  # cluster + 1
    cluster_start: Any  # rows
    cluster_tiled: Any  # -1, or its place in `tiled_start`
    tiled_start: Any  # tiles


class IndexTiles(NamedTuple):
    """Up to a thousand or so rows, with bitmaps for each bucket of each column that constrains some of them."""

    row: Any  # first row
    end: Any  # the row after its last
    rest: Any  # rows of each tile that are to be checked whatever the bitmaps say
    rest_start: Any
    doubted: Any  # dense columns with bitmaps of doubt behind their others
    hull_column: Any  # two for each tile; -1: none
    hull_low: Any
    hull_high: Any
    place: Any  # tile * dense columns + dense column -> first word of its bitmaps, or `tiles.NOWHERE`
    words: Any
    dense: Any  # dense column -> column
    edge_start: Any
    edges: Any
    rate_start: Any
    rates: Any  # of each bucket of each dense column: the share of rows that live
    loose: Any  # tiled clusters that every event visits
