"""The planner: by which literals each row is found, and what that costs.

For each row it compares, by measured costs (`IndexTuning`), a key of one or two points, the hull of its tile in one or
two columns, and visiting the row for every event. The selectivity of a literal comes from a sample of events where one
is known, else from the end points that the subscriptions themselves name: what filters ask for is a fair guess of what
events hold. How much a path costs depends on how many rows share it, so the choice is made, counted, and made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tidings.engine.arrays import compute_starts
from tidings.engine.compile.columns import View
from tidings.kernels.array_types import ByteArray, CodeArray, Float32Array, Int32Array
from tidings.kernels.match import access_choice as kernel
from tidings.kernels.match import selectivity
from tidings.kernels.match.layout import OP_BITS, RowLiterals

if TYPE_CHECKING:
    from tidings.concepts import Ontology
    from tidings.engine.compile.row_table import RowTable
    from tidings.engine.tuning import IndexTuning

# These sizes were chosen in the first version of the planner. No measurement of them is on record.

MAX_PAIR_COLUMNS = 2048
"""With more columns, rows are not found by pairs of them: three arrays count pairs, 2 * columns ** 2 numbers of four
bytes each, which are 32 MiB at 2,048 columns."""

SAMPLED = 1024
"""About so many end points of a column stand for events when none are known, so shares differ by a thousandth."""

PAIR_SAMPLE_ROWS = 4096
"""Rows (every n-th, so up to twice as many) on which the pairs of columns worth having are found: all their pairs of
literals are looked at in each of many rounds (`count_popular_pairs`), which a million rows would make slow."""

ROUNDS = 2
"""How often the choice is made, each time with the popularity of the last one: at first a column is as popular as the
rows that could use it, and only after a choice it is known which do. No measurement of a third round is on record."""


@dataclass(frozen=True, slots=True)
class EventStatistics:
    """What is known of events: the sorted codes of sampled ones by column, and the share that has each column.

    A column that was not sampled is left out of `codes`; without `presence`, every event is taken to have every column.
    """

    codes: Mapping[int, CodeArray] = field(default_factory=dict)
    presence: Float32Array | None = None


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """How each row is found: its kind (`kernels.match.access_choice`), and the literals that do it (-1: none).

    `use` says for each literal what it could serve for.
    """

    kind: ByteArray
    first: Int32Array
    second: Int32Array
    use: ByteArray


def plan_rows(table: RowTable, statistics: EventStatistics, tuning: IndexTuning) -> AccessPlan:
    """Return the cheapest way to find each row."""
    columns, count = len(table.columns), len(table.start) - 1
    rows = RowLiterals(table.start, *table.literals)
    estimates = _estimate_literals(table, rows, statistics)
    has_pairs = 1 < columns <= MAX_PAIR_COLUMNS
    costs = (tuning.scan_ns, estimate_bitmap_ns(columns, tuning), tuning.look_ns, tuning.tile_ns)
    # Round 1: nobody has chosen yet, so count the rows that could use each column, and the pairs worth having.
    popular = kernel.count_popularity(rows, estimates, columns), np.zeros(0, np.float32)
    if has_pairs:
        sampled = np.arange(0, count, max(1, count // PAIR_SAMPLE_ROWS))
        scale = count / max(1, len(sampled))
        pairs = kernel.count_popular_pairs(rows, estimates, columns, sampled, scale, tuning.tile_rows, costs)
        popular = popular[0], pairs
    kind, first, second = kernel.choose(rows, estimates, columns, *popular, tuning.tile_rows, costs)
    # Round 2: count what rows chose, and let them choose again.
    for _ in range(1, ROUNDS):
        popular = kernel.count_choices(rows.head, kind, first, second, columns, has_pairs)
        kind, first, second = kernel.choose(rows, estimates, columns, *popular, tuning.tile_rows, costs)
    return AccessPlan(kind, first, second, estimates.use)


def _estimate_literals(table: RowTable, rows: RowLiterals, statistics: EventStatistics) -> kernel.LiteralEstimates:
    """Return what each literal could serve for, and the shares of events that it accepts."""
    codes = [statistics.codes.get(number, ends) for number, ends in enumerate(sample_ends(table))]
    bounds = compute_starts([len(column_codes) for column_codes in codes])
    all_codes = np.concatenate([*codes, np.zeros(0, np.uint32)]).astype(np.uint32)
    rate, spanned = selectivity.estimate_rates(*rows[1:], bounds, all_codes)
    column = rows.head >> OP_BITS
    # A text satisfies several patterns, and the ids between two of them mean nothing: no hulls there.
    is_pattern = np.array([described.view is View.PATTERNS for described in table.columns], bool)
    if is_pattern.any():
        spanned[is_pattern[column]] = 1.0
    # An event without the column satisfies no literal on it that finds rows. `spanned` stays as it is: `choose`
    # multiplies it by presence itself, after it has added a tile's share to it.
    presence = statistics.presence
    present = np.ones(len(rows.head), np.float32) if presence is None else presence[column]
    rate *= present
    return kernel.LiteralEstimates(kernel.classify_uses(rows), rate, spanned, present)


def estimate_presence(table: RowTable, ontology: Ontology) -> Float32Array:
    """Return the share of events that are taken to have each column.

    Of an attribute tree, an event has one of the leaves: a name has as many events as leaves below it, of all the
    leaves. A name in no tree is taken to be in every event.
    """
    shares: dict[str, float] = {}
    for tree in ontology.attribute_trees.values():
        for name in tree.names:
            shares[name] = len(ontology.sources(name)) / max(1, len(ontology.sources(tree.root(name))))
    return np.array([min(1.0, shares.get(column.attribute, 1.0)) for column in table.columns], np.float32)


def estimate_bitmap_ns(columns: int, tuning: IndexTuning) -> float:
    """Return what a row costs in the bitmaps of so many columns; with very many, it is scanned instead."""
    return min(tuning.scan_ns, columns * tuning.word_ns / 64)


def sample_ends(table: RowTable) -> list[CodeArray]:
    """Return, for each column, sorted codes of some end points that the literals name."""
    top = np.array([2 * len(space) for space in table.spaces], np.int64)
    ends, count = selectivity.sample_ends(*table.literals, top, SAMPLED)
    return [np.sort(ends[column, : count[column]]) for column in range(len(top))]


def count_by_kind(plan: AccessPlan) -> dict[str, int]:
    """Return how many rows are found in each way."""
    names = ("always", "hull", "hulls of two columns", "key", "key of two columns")
    counts = np.bincount(plan.kind, minlength=len(names)).tolist()
    return {name: count for name, count in zip(names, counts, strict=True) if count}
