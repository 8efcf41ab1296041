"""Sizes that a detector works with: thresholds of memory and of batching. They change speed and memory, no answer."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BufferSizes:
    """Rows that the buffers of one graph run have at first; a buffer that is full grows by itself.

    `cells` and `spent` are hash tables of keyed runs, so powers of two; `spent` has at least `spent_per_pattern` rows
    for each pattern.
    """

    pool: int = 1 << 13  # twice the compactions made a hundred patterns of ten steps 5 % slower
    cells: int = 1024
    fresh: int = 16
    spent: int = 1024
    spent_per_pattern: int = 4
    candidates: int = 1024
    out: int = 1024
    listed_events: int = 8192
    path: int = 64


@dataclass(frozen=True, slots=True)
class DetectorTuning:
    """When a run gives up events and values that nothing refers to any more, and how many events it takes at once.

    Below `kept_values` events and values (and four for each row of partial matches) nothing is collected; more than
    `archive_chunks` batches are put together into one.
    """

    kept_values: int = 100_000
    archive_chunks: int = 256
    piece: int = 1 << 17  # enough to pay for the arrays, few enough for memory
    buffers: BufferSizes = field(default_factory=BufferSizes)
