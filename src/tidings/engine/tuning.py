"""Sizes and measured costs that the engine decides by; none of them changes an answer.

An `Engine` takes an `EngineTuning` and hands it to whatever it builds. `use_tuning` sets the one that engines get which
are built without, in this thread or task: so that a test can lead a whole `Matcher` down a path that only large or
unusual sets of subscriptions take.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidings.engine.compile.row_table import RowTable
    from tidings.engine.index.planner import AccessPlan, EventStatistics

    Planner = Callable[[RowTable, EventStatistics, "IndexTuning"], AccessPlan]


@dataclass(frozen=True, slots=True)
class IndexTuning:
    """What the planner compares, and how rows are laid out in an index."""

    scan_ns: float = 4.0  # nanoseconds to check the literals of one row
    word_ns: float = 0.5  # nanoseconds to combine 64 rows of one column's bitmap
    look_ns: float = 20.0  # nanoseconds to look a key up
    tile_ns: float = 150.0  # nanoseconds to visit a tile
    tile_rows: int = 1024  # rows of a tile
    tiled_from: int = 128  # keyed clusters of fewer rows are scanned; plans take 256 (`access_choice.SCANNED_BELOW`)
    direct_up_to: int = 8  # a key table has a place for every pair of points if these are at most so many for each row
    exact_up_to: int = 48  # a column with at most so many edges has a bucket for each stretch between them
    bitmap_bits: int = 320  # bits of bitmaps for each row, twice as many where columns are few: they set the buckets
    planner: Planner | None = None  # chooses how each row is found; None: `index.planner.plan_rows`


@dataclass(frozen=True, slots=True)
class EngineTuning:
    """When subscriptions are compiled, merged, kept as trees, and matched in blocks."""

    waiting_limit: int = 16  # so many subscriptions stay uncompiled, and cost a test each for every event
    inline_merge_limit: int = 8192  # so many are merged by the call that changed something; more by the merging thread
    growth: int = 4  # a segment is merged with smaller ones once it is at most so many times as large as all of them
    waste: float = 0.3  # a segment is built again when this share of its subscriptions is deleted
    merges_in_background: bool = True  # a thread merges what is over `inline_merge_limit`; if not, only `compact` does
    row_limit: int = 4  # a filter of more conjunctions is a tree, and so is one of several that are not all selective
    any_literal_finds_trees: bool = False  # whether any literal beside its `or` finds a tree; else it must be a key
    pair_cost: int = 40  # a tree for one event costs so many instructions of a block of 512; beyond that, blocks decide
    listed_ends: int = 32_000  # so many end points have codes of 16 bits; beyond, dense integers have no list
    sparsity: int = 16  # integers are dense when at least one in so many is an end point
    bulk_block: int = 8192  # rows of a bulk load that stay in cache while each column adds its literals
    index: IndexTuning = field(default_factory=IndexTuning)


DEFAULT_TUNING = EngineTuning()
"""What was measured to be best."""

_current: ContextVar[EngineTuning] = ContextVar("tidings engine tuning", default=DEFAULT_TUNING)


def get_tuning() -> EngineTuning:
    """Return the tuning of engines that are built here without one."""
    return _current.get()


@contextmanager
def use_tuning(tuning: EngineTuning) -> Iterator[None]:
    """Build engines with this tuning inside the `with` block; an engine keeps the tuning it was built with."""
    token = _current.set(tuning)
    try:
        yield
    finally:
        _current.reset(token)
