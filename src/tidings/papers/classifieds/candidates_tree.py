"""The candidates tree: two-phase matching, a tree of few names and a final revision of what it finds.

"Streaming matching of events" (Schitinin, Tsesko, 2016), section 2.6. A few of the most frequently used names make the
tree (`conjunction_tree`): two, and more only where these reach too few filters. Of them only tests of fixed values are
in it: a tree does not pay for tests that hardly any two filters share, such as prices and polygons. The rows that end
at the nodes an event reaches are candidates. In the final revision the rest of each candidate is decided: intervals by
a kernel over flat rows (`revision`), and then whatever is not an interval, as areas and negations, by `algebra.holds`.

Which names make the tree is decided when filters come, each time their number has doubled; all are then inserted again.
A filter is taken through its normal form, a row for each conjunction. One whose normal form has more than `MAX_ROWS`
conjunctions stays whole; that, and a conjunction without a fixed value under these names, is a candidate at the root,
and decided for every event.

Insert and delete: O(tests), inserting again included, amortised. Match: O(nodes reached + candidates). Space: O(tests).
It supports every filter. For an event with a range, or with an integer that float64 does not have, all candidates are
evaluated. Corrections are in README.md here.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

import numpy as np

from tidings import forks
from tidings.algebra import Reading, Setting, holds
from tidings.algebra.law.typed_attribute import TypedAttribute, resolve_test
from tidings.algebra.normal_form import list_conjunctions
from tidings.errors import TooLarge
from tidings.matcher.algorithm import Algorithm, SubId
from tidings.model import And, Filter, In, Is, Test, all_of
from tidings.papers.classifieds.conjunction_tree import ConjunctionTree, PathNode, PathRows
from tidings.papers.classifieds.path_steps import ANY, PathStep, to_step
from tidings.papers.classifieds.revision import FinalRevision
from tidings.papers.common.name_order import NameOrder, describe_attribute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.kernels.array_types import Int32Array

TREE_NAMES = 2
"""How many names make the tree, where nearly all filters use one of them (benchmarks/papers/classifieds/README.md)."""

MAX_TREE_NAMES = 32
"""No more names make the tree, however the filters spread over names."""

MAX_UNREACHED_SHARE = 0.01
"""Names are added until no more than this share of the rows that name a fixed value has none of them."""

MAX_ROWS = 64
"""A filter of more conjunctions stays whole: revising its rows would take longer than evaluating it once."""


class FilterRows(NamedTuple):
    """A filter, and the literals of each of its conjunctions."""

    tree: Filter
    rows: list[tuple[Filter, ...]]


class CandidatesTree(Algorithm):
    """Filters under a few names in a tree, decided in a second phase."""

    def __init__(self, names: int = TREE_NAMES, most: int = MAX_TREE_NAMES) -> None:
        """Start without filters; `names` make the tree, and more, up to `most`, where these reach too few filters."""
        self._min_names, self._max_names = names, most
        self.filters: dict[SubId, FilterRows] = {}
        self.name_order = NameOrder()
        self._names: dict[TypedAttribute, int] = {}  # those that make the tree, each with its place in the order
        self.lock = RLock()
        forks.guard(self, forks.Level.ALGORITHM)
        self._reset()

    def _reset(self) -> None:
        self.tree, self.path_rows, self.revision = ConjunctionTree(), PathRows(), FinalRevision()
        self.law_parts: dict[int, Filter] = {}  # of a row: the part that has to be evaluated

    def compile_filter(self, tree: Filter) -> FilterRows:
        """Return the filter with its conjunctions; one of too many is a single part of a single one."""
        parts = tree.parts if type(tree) is And else (tree,)
        if all(type(part) is Test for part in parts):  # the usual filter
            return FilterRows(tree, [parts])
        try:
            return FilterRows(tree, list_conjunctions(tree, limit=MAX_ROWS))
        except TooLarge:
            return FilterRows(tree, [(tree,)])

    def add_many(self, filters: Iterable[tuple[SubId, FilterRows]]) -> None:
        """Take filters in; a known id is replaced."""
        batch = dict(filters)
        with self.lock:
            for id in batch:
                if id in self.filters:
                    self._remove(id)
            for compiled in batch.values():
                self.name_order.add(_iterate_fixed_names(compiled))
            total = len(self.filters) + len(batch)
            if self.name_order.is_due(total):
                self.name_order.reorder(total)
                names = self._choose_names({**self.filters, **batch}.values())
                if names != self._names:
                    self._names, batch = names, {**self.filters, **batch}
                    self._reset()
            self.filters.update(batch)
            self._insert_rows(batch)

    def _choose_names(self, filters: Iterable[FilterRows]) -> dict[TypedAttribute, int]:
        """Return the names that make the tree, in order: the most frequent ones, as many as reach nearly all rows."""
        order = self.name_order.sort_by_frequency()
        ranks = {name: at for at, name in enumerate(order)}
        first = [0] * len(order)  # how many rows have this as their most frequent name
        for compiled in filters:
            for literals in compiled.rows:
                if at := [ranks[resolve_test(part)] for part in literals if _is_fixed(part)]:
                    first[min(at)] += 1
        left, count = sum(first), 0
        allowed = MAX_UNREACHED_SHARE * left
        while count < min(self._max_names, len(order)) and (count < self._min_names or left > allowed):
            left -= first[count]
            count += 1
        return {name: at for at, name in enumerate(order[:count])}

    def _insert_rows(self, batch: dict[SubId, FilterRows]) -> None:
        """Put filters into the tree, node by node: rows of one node lie together, so the kernel reads them in order."""
        ends: dict[PathNode, list[tuple[SubId, list[Filter]]]] = {}
        for id, compiled in batch.items():
            for literals in compiled.rows:
                steps, rest = self._split(literals)
                ends.setdefault(self.tree.insert(steps), []).append((id, rest))
        rows_of: dict[SubId, list[int]] = {id: [] for id in batch}
        numbers, parts = [], []
        for node, placed in ends.items():
            for id, rest in placed:
                numbers.append(self.path_rows.add(id, node))
                parts.append(rest)
                rows_of[id].append(numbers[-1])
        for id, rows in rows_of.items():
            self.path_rows.owners.assign(id, tuple(rows))
        for row, undecided in zip(numbers, self.revision.set_many(numbers, parts), strict=True):
            if undecided:
                self.law_parts[row] = all_of(undecided)

    def _split(self, literals: tuple[Filter, ...]) -> tuple[list[PathStep], list[Filter]]:
        """Return the path of a conjunction, in order, and the tests that are not in it."""
        names = self._names
        path: dict[TypedAttribute, PathStep] = {}
        rest: list[Filter] = []
        for part in literals:
            if _is_fixed(part) and (name := resolve_test(part)) in names and name not in path:
                path[name] = to_step(part)
            else:
                rest.append(part)
        steps = list(path.values())
        if len(steps) > 1:
            steps.sort(key=lambda step: names[step.name])
        return steps, rest

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""
        with self.lock:
            self._remove(id)
            if not self.filters:
                self._names = {}
                self._reset()

    def _remove(self, id: SubId) -> None:
        compiled = self.filters.pop(id)
        self.name_order.discard(_iterate_fixed_names(compiled))
        # Which conjunction a row is does not matter: together they release what together they took.
        for row, literals in zip(self.path_rows.owners.release(id), compiled.rows, strict=True):
            self.law_parts.pop(row, None)
            self.tree.prune(self.path_rows.detach(row))
            self.revision.clear(row, self._split(literals)[1])

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading, each once."""
        with self.lock:
            owners, candidates = self.path_rows.owners, self.find_candidates(reading, setting)
            if not len(candidates):
                return []
            survivors = self.revision.find_survivors(candidates, reading)
            if survivors is None:
                near = dict.fromkeys(owners.resolve(candidates.tolist()))
                return [id for id in near if holds(self.filters[id].tree, reading, setting)]
            rows, parts = survivors.tolist(), self.law_parts
            if parts:
                rows = [row for row in rows if row not in parts or holds(parts[row], reading, setting)]
            return owners.resolve(rows)

    def find_candidates(self, reading: Reading, setting: Setting) -> Int32Array:
        """Return the rows that the first phase selects."""
        reached = self.tree.descend(reading, setting)
        joined = bytearray().join([node.rows for node in reached if node.rows is not None])
        return np.frombuffer(joined, np.int32)

    def explain(self) -> dict[str, object]:
        """Return what is in the tree, and what is left to the second phase."""
        with self.lock:
            return {
                "algorithm": "candidates tree (classifieds, section 2.6)",
                "filters": len(self.filters),
                "rows": self.path_rows.owners.row_count,
                "names in the tree": list(map(describe_attribute, self._names)),
                "nodes": sum(1 for _ in self.tree.iterate_nodes()),
                "asked for each event": len(self.tree.root.rows or ()),
                "rows with a part for the law": len(self.law_parts),
            }


def _is_fixed(part: Filter) -> TypeGuard[Test]:
    return type(part) is Test and part.quantifier is ANY and type(part.condition) in (Is, In)


def _iterate_fixed_names(compiled: FilterRows) -> Iterator[TypedAttribute]:
    return (resolve_test(part) for literals in compiled.rows for part in literals if _is_fixed(part))
