"""The planner: by which literals each row is found, and what that costs.

For each row it compares, with measured constants, the key of one or two points, hulls of tiles in one or
two columns, and visiting the row for every event. How selective a literal is comes from a sample of events
where one is known, else from the end points that the subscriptions themselves name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.engine.compile.columns import View
from tidings.kernels.match import plan as kernel
from tidings.kernels.match.layout import OP_BITS

if TYPE_CHECKING:
    from tidings.concepts import Ontology
    from tidings.engine.compile.row_table import Table

SCAN_NS, WORD_NS, LOOK_NS, TILE_NS = 4.0, 0.5, 20.0, 150.0
"""Nanoseconds to check a row, to take 64 rows of one column's bitmap, to look a key up, to visit a tile."""

TILE = 1024
"""Rows of a tile."""

PAIRS_UP_TO = 2048
"""With more columns than this, pairs of columns are not counted."""

SAMPLED = 1024
"""End points of a column that stand for events when no events are known."""

PAIRS_FROM = 4096
"""Rows from which the pairs of columns worth having are found."""

ROUNDS = 2
"""How often the choice is made, each time with the popularity of the last one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How each row is found: the kind, and its one or two literals (-1: none)."""

    kind: NDArray[np.uint8]
    one: NDArray[np.int32]
    two: NDArray[np.int32]
    use: NDArray[np.uint8]
    rate: NDArray[np.float32]


def chosen(
    table: Table,
    sample: dict[int, NDArray[np.uint32]] | None = None,
    present: NDArray[np.float32] | None = None,
) -> Choice:
    """Return the best choice for every row.

    `sample` has the sorted codes of some events in some columns; `present` is the share of events that have each
    column, all of them where nothing is known.
    """
    lits, columns = table.literals, len(table.columns)
    codes = [(sample or {}).get(number, ends) for number, ends in enumerate(sampled_ends(table))]
    bounds = np.zeros(columns + 1, np.int64)
    np.cumsum([len(one) for one in codes], out=bounds[1:])
    joined = np.concatenate([*codes, np.zeros(0, np.uint32)]).astype(np.uint32)
    rate, spanned = kernel.estimate_rates(*lits.arrays, bounds, joined)
    # A text satisfies several patterns, and what lies between two ids says nothing: no hulls there.
    several = np.array([column.view is View.PATTERNS for column in table.columns], bool)
    if several.any():
        spanned[several[lits.head >> OP_BITS]] = 1.0
    there = np.ones(len(lits.head), np.float32) if present is None else present[lits.head >> OP_BITS]
    rate *= there
    use = kernel.classify_uses(table.start, *lits.arrays)
    pairs = 1 < columns <= PAIRS_UP_TO
    costs = (SCAN_NS, bits_ns(columns), LOOK_NS, TILE_NS)
    popular, popular_pairs = kernel.count_popularity(table.start, lits.head, use, rate, columns), np.zeros(0, np.float32)
    if pairs:
        count = len(table.start) - 1
        rows = np.arange(0, count, max(1, count // PAIRS_FROM))
        popular_pairs = kernel.count_popular_pairs(
            table.start, lits.head, use, rate, spanned, there, columns, rows, count / max(1, len(rows)), TILE, costs
        )
    kind, one, two = np.zeros(0, np.uint8), np.zeros(0, np.int32), np.zeros(0, np.int32)
    for turn in range(ROUNDS):
        if turn:
            popular, popular_pairs = kernel.count_choices(lits.head, kind, one, two, columns, pairs)
        kind, one, two = kernel.choose(
            table.start,
            lits.head,
            lits.low,
            lits.union_start,
            use,
            rate,
            spanned,
            there,
            columns,
            popular,
            popular_pairs,
            TILE,
            costs,
        )
    return Choice(kind, one, two, use, rate)


def present(table: Table, ontology: Ontology) -> NDArray[np.float32]:
    """Guess the share of events that have each column: of an attribute tree, an event has one of the leaves.

    So a name has as many events as leaves below it, of all the leaves; a name in no tree is taken to be always there.
    """
    shares: dict[str, float] = {}
    for tree in ontology.attribute_trees.values():
        for name in tree.names:
            shares[name] = len(ontology.sources(name)) / max(1, len(ontology.sources(tree.root(name))))
    return np.array([min(1.0, shares.get(column.attribute, 1.0)) for column in table.columns], np.float32)


def bits_ns(columns: int) -> float:
    """Return what a row costs in the bitmaps of so many columns; with very many, it is scanned instead."""
    return min(SCAN_NS, columns * WORD_NS / 64)


def sampled_ends(table: Table) -> list[NDArray[np.uint32]]:
    """Return sorted codes of end points that the literals name, as a guess of what events hold."""
    top = np.array([2 * len(space) for space in table.spaces], np.int64)
    ends, count = kernel.sample_ends(*table.literals.arrays, top, SAMPLED)
    return [np.sort(ends[column, : count[column]]) for column in range(len(top))]


def total(choice: Choice) -> dict[str, Any]:
    """Return how many rows are found in each way."""
    names = ("always", "hull", "hulls of two columns", "key", "key of two columns")
    counts = np.bincount(choice.kind, minlength=len(names)).tolist()
    return {name: count for name, count in zip(names, counts, strict=True) if count}
