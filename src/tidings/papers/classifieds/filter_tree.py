"""The filter tree: whole conjunctions as paths of one tree, which an event descends.

"Streaming matching of events" (Schitinin, Tsesko, 2016), sections 2.3 to 2.5; the tree itself is `conjunction_tree`. A
filter is brought into normal form, each of its conjunctions becomes a path, and an event is accepted by the filters
whose paths end at the nodes it reaches. Names are ordered by how many paths use them, the most frequent first. The
order is renewed when filters come, each time the number of paths has doubled; the tree is then rebuilt from its nodes.

Insert and delete: O(steps) look-ups, rebuilding included, amortised. Match: O(nodes reached + ranges and other tests
beside them); sub-linear where conditions are shared and fixed, at worst all 2^k nodes of k names, and linear where a
name has a range or an area of its own in each filter. Space: O(steps).

It refuses a negated test: `not p` accepts an event that lacks the attribute, and a path follows attributes that are
there (`a != x` requires the attribute and is a step like others). It refuses a filter whose normal form is too large.

The paper's nodes are immutable so that descents and updates may run at once; here a lock separates them, as only one
of them could run at a time anyway. Corrections are in README.md here.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from tidings import forks
from tidings.algebra.normal_form import list_conjunctions
from tidings.errors import TooLarge, Unsupported
from tidings.lang import render
from tidings.matcher.algorithm import Algorithm, SubId
from tidings.model import And, Filter, Test
from tidings.papers.classifieds.conjunction_tree import ConjunctionTree, PathRows
from tidings.papers.classifieds.path_steps import PathStep, to_steps
from tidings.papers.common.name_order import NameOrder, describe_attribute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra import Reading, Setting

KIND = "filter-tree"

FilterPaths = list[list[PathStep]]
"""A filter as the tree takes it: the steps of each of its conjunctions, in any order."""


class FilterTree(Algorithm):
    """All filters in one tree, in full."""

    def __init__(self) -> None:
        self.tree, self.path_rows, self.name_order = ConjunctionTree(), PathRows(), NameOrder()
        self.lock = RLock()
        forks.guard(self, forks.Level.ALGORITHM)

    def compile_filter(self, tree: Filter) -> FilterPaths:
        """Return the paths of the filter, or refuse a negation and a normal form that is too large."""
        parts = tree.parts if type(tree) is And else (tree,)
        if all(type(part) is Test for part in parts):  # the usual filter
            return [to_steps(parts)]  # type: ignore[arg-type]
        try:
            rows = list_conjunctions(tree)
        except TooLarge as problem:
            part = str(render(tree))[:80]
            msg = f"`{KIND}` needs the normal form of `{part}`, and {problem}; use td.Matcher(), which keeps it whole"
            raise Unsupported(msg, kind=KIND, part=part) from problem
        return [to_steps(_require_tests(row)) for row in rows]

    def add_many(self, filters: Iterable[tuple[SubId, FilterPaths]]) -> None:
        """Take filters in; a known id is replaced."""
        batch = dict(filters)
        with self.lock:
            for id in batch:
                if id in self.path_rows.owners:
                    self.remove(id)
            for paths in batch.values():
                for steps in paths:
                    self.name_order.add(step.name for step in steps)
            total = self.path_rows.owners.row_count + sum(map(len, batch.values()))
            if self.name_order.is_due(total) and self.name_order.reorder(total):
                self._rebuild()
            for id, paths in batch.items():
                nodes = [self.tree.insert(self._sort_steps(steps)) for steps in paths]
                self.path_rows.owners.assign(id, tuple([self.path_rows.add(id, node) for node in nodes]))

    def _sort_steps(self, steps: list[PathStep]) -> list[PathStep]:
        ranks = self.name_order.ranks
        return sorted(steps, key=lambda step: ranks[step.name])

    def _rebuild(self) -> None:
        """Insert every path into a new tree, in the present order; rows keep their numbers and places."""
        old, self.tree = self.tree, ConjunctionTree()
        for node in old.iterate_nodes():
            if node.rows is not None:
                moved = self.tree.insert(self._sort_steps(node.list_steps()))
                moved.rows = node.rows
                for row in node.rows:
                    self.path_rows.nodes[row] = moved

    @forks.with_lock
    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""
        for row in self.path_rows.owners.release(id):
            node = self.path_rows.detach(row)
            self.name_order.discard([step.name for step in node.list_steps()])
            self.tree.prune(node)

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading, each once."""
        with self.lock:
            reached = self.tree.descend(reading, setting)
            return self.path_rows.owners.resolve([row for node in reached if node.rows for row in node.rows])

    def explain(self) -> dict[str, object]:
        """Return the size of the tree, and the order of names."""
        with self.lock:
            ranks = self.name_order.ranks
            return {
                "algorithm": "filter tree (classifieds, section 2.4)",
                "filters": len(self.path_rows.owners),
                "paths": self.path_rows.owners.row_count,
                "nodes": sum(1 for _ in self.tree.iterate_nodes()),
                "names in order": [describe_attribute(name) for name in sorted(ranks, key=ranks.__getitem__)],
            }


def _require_tests(row: tuple[Filter, ...]) -> list[Test]:
    tests = [part for part in row if isinstance(part, Test)]
    if len(tests) < len(row):
        part = str(render(next(part for part in row if not isinstance(part, Test))))
        msg = (
            f"`{KIND}` follows the attributes that an event has; it has no path for `{part}`, which accepts events "
            "without that attribute; use td.Matcher(), which has"
        )
        raise Unsupported(msg, kind=KIND, part=part)
    return tests
