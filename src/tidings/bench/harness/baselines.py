"""The baselines: a compiled scan, writing the answer down, every expression in turn, the law on a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.bench.harness.conjunction_columns import conjunctions_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tidings.bench.harness.conjunction_columns import Conjunctions
    from tidings.bench.workloads import Workload


@dataclass(frozen=True, slots=True)
class Pairs:
    """Who matched: event `e` has the rows from `starts[e]` up to `starts[e + 1]`."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows each event has."""
        return np.diff(self.starts)


class Scan:
    """The early-exit scan of `kernels.baselines`, one event after the other."""

    def __init__(self, columns: pa.Table) -> None:
        """Encode the subscriptions and make room for an answer."""
        self.conjunctions: Conjunctions = conjunctions_of(columns)
        self._out = np.empty(len(self.conjunctions), np.int32)

    def cells(self, events: pa.Table) -> NDArray[np.float64]:
        """Encode events; not part of what is timed."""
        return self.conjunctions.cells(events)

    def rows(self, cells: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the rows that one event satisfies."""
        from tidings.kernels.papers import baselines as kernels

        held = self.conjunctions
        if held.parts is None:
            count = kernels.scan(held.starts, held.columns, held.lows, held.highs, cells, self._out)
        else:
            count = kernels.scan_sets(held.starts, held.columns, held.parts, held.lows, held.highs, cells, self._out)
        return held.decided(self._out[:count], cells)

    def pairs(self, cells: NDArray[np.float64]) -> Pairs:
        """Return the rows of each event of a matrix."""
        found = [self.rows(event).copy() for event in cells]
        starts = np.concatenate(([0], np.cumsum([len(rows) for rows in found]))).astype(np.int64)
        return Pairs(starts, np.concatenate(found) if found else np.empty(0, np.int32))


def written(pairs: Pairs) -> None:
    """Write the answer down, as a matcher must in any case."""
    from tidings.kernels.papers import baselines as kernels

    kernels.write_pairs(pairs.starts, pairs.rows)


class Expressions:
    """Every text expression of a sample, compiled, and tested against every title in turn."""

    def __init__(self, pairs: list[tuple[str, Any]], attribute: str) -> None:
        """Compile the expressions."""
        from tidings.lang import parse
        from tidings.model import Test, TextTest
        from tidings.model.text_tests import text_test

        self._attribute = attribute
        self._tests: list[Callable[[str], bool]] = []
        for _, filter in pairs:
            tree = parse(filter)
            assert isinstance(tree, Test)
            assert isinstance(tree.condition, TextTest)
            self._tests.append(text_test(tree.condition))

    def counts(self, events: list[dict[str, Any]]) -> NDArray[np.int64]:
        """Return how many expressions each event satisfies."""
        return np.array([self._count(event[self._attribute]) for event in events], np.int64)

    def _count(self, text: str) -> int:
        return sum(test(text) for test in self._tests)


class Law:
    """`evaluate`, asked of every filter of a sample: the brute-force matcher."""

    def __init__(self, workload: Workload, pairs: list[tuple[str, Any]]) -> None:
        """Bind the filters."""
        self._matcher = workload.matcher("brute")
        self._matcher.add_many(pairs)

    def counts(self, events: list[dict[str, Any]]) -> NDArray[np.int64]:
        """Return how many filters each event satisfies."""
        found = self._matcher.match_many(events)
        return np.bincount(found.event_index, minlength=len(events))
