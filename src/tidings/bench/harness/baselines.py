"""The baselines: a compiled scan, writing the answer down, every expression in turn, the law on a sample.

Baselines and peers have one protocol, so that one loop times and checks both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tidings.bench.harness.conjunction_columns import encode_conjunctions
from tidings.bench.workloads import rows_of
from tidings.kernels import baselines as kernels
from tidings.kernels.array_types import Int32Array, IntArray
from tidings.lang import parse
from tidings.model import Test, TextTest
from tidings.model.text_tests import compile_text_test

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tidings.bench.harness.conjunction_columns import Conjunctions
    from tidings.bench.workloads import Workload
    from tidings.bench.workloads.seeded_workload import Pair
    from tidings.kernels.array_types import FloatArray
    from tidings.model.values import EventValue


class MatchCounter(Protocol):
    """Counts matches: made from subscriptions, handed prepared events, then timed."""

    def prepare_events(self, events: pa.Table) -> Any:
        """Return events in the counter's own form; not timed."""

    def count_matches(self, prepared: Any) -> IntArray:
        """Return how many subscriptions each event satisfies."""


@dataclass(frozen=True, slots=True)
class MatchPairs:
    """Matches as flat arrays: event `e` has the rows from `starts[e]` up to `starts[e + 1]`."""

    starts: IntArray
    rows: Int32Array

    @property
    def counts(self) -> IntArray:
        """The number of rows of each event."""
        return np.diff(self.starts)


class Scan:
    """The early-exit scan of `kernels.baselines`, one event after the other."""

    def __init__(self, columns: pa.Table) -> None:
        """Encode the subscriptions and allocate the answer of one event."""
        self.conjunctions: Conjunctions = encode_conjunctions(columns)
        self._out = np.empty(len(self.conjunctions), np.int32)

    def prepare_events(self, events: pa.Table) -> FloatArray:
        """Encode events as a matrix of cells, a row for each event."""
        return self.conjunctions.encode_events(events)

    def find_rows(self, cells: FloatArray) -> Int32Array:
        """Return the rows that one event satisfies."""
        table = self.conjunctions
        if table.parts is None:
            count = kernels.scan(table.starts, table.columns, table.lows, table.highs, cells, self._out)
        else:
            count = kernels.scan_sets(
                table.starts, table.columns, table.parts, table.lows, table.highs, cells, self._out
            )
        return table.filter_by_area(self._out[:count], cells)

    def find_pairs(self, prepared: FloatArray) -> MatchPairs:
        """Return the rows of each event."""
        rows = [self.find_rows(event).copy() for event in prepared]
        starts = np.concatenate(([0], np.cumsum([len(part) for part in rows]))).astype(np.int64)
        return MatchPairs(starts, np.concatenate(rows) if rows else np.empty(0, np.int32))

    def count_matches(self, prepared: FloatArray) -> IntArray:
        """Return how many rows each event satisfies."""
        return self.find_pairs(prepared).counts


class Expressions:
    """Every text expression of a sample, compiled, and tested against every title in turn."""

    prepare_events = staticmethod(rows_of)

    def __init__(self, pairs: list[Pair], attribute: str) -> None:
        """Compile the expressions."""
        self._attribute = attribute
        self._tests: list[Callable[[str], bool]] = []
        for _, filter in pairs:
            tree = parse(filter) if isinstance(filter, str) else filter
            assert isinstance(tree, Test)
            assert isinstance(tree.condition, TextTest)
            self._tests.append(compile_text_test(tree.condition))

    def count_matches(self, prepared: list[dict[str, EventValue]]) -> IntArray:
        """Return how many expressions each event satisfies."""
        texts = [event[self._attribute] for event in prepared]
        return np.array([sum(test(text) for test in self._tests) for text in texts], np.int64)


class Law:
    """`evaluate` on every filter of a sample: the brute-force matcher."""

    prepare_events = staticmethod(rows_of)

    def __init__(self, workload: Workload, pairs: list[Pair]) -> None:
        """Bind the filters."""
        self._matcher = workload.matcher("brute")
        self._matcher.add_many(pairs)

    def count_matches(self, prepared: list[dict[str, EventValue]]) -> IntArray:
        """Return how many filters each event satisfies."""
        return np.bincount(self._matcher.match_many(prepared).event_index, minlength=len(prepared))
