"""Forest: every filter is below one that covers it; an event that a filter rejects is rejected by all below it.

Tarkoma's text on poset routing, section 3.7, Algorithm 6 (Match-Forest) and Property 3.13: the forest is walked from
its roots, breadth first, and a node that does not match hides its subtree. Equal filters share a node. The matcher
uses only `covers` and `holds`, so it supports every filter. The text starts from the roots of the event's type; here
those are the nodes whose attributes the event has.

For routing, many subscriptions belong to few interfaces: `route` returns interfaces, stops when it has all (Imax), and
skips tests of nodes (or whole subtrees) that can add none. With a deadline, the nodes left when it passes are added
untested: false positives, never a miss.

Cost: match O(nodes tested), at worst all; add O(depth times siblings that may cover), each some ten microseconds, so
this is for thousands of filters; remove O(children); space O(filters). Corrections are in README.md here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tidings.algebra import Reading, Setting, holds
from tidings.matcher.algorithm import Algorithm, SubId
from tidings.papers.posets.covering_order import CoverDecider, CoverNode, Siblings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tidings.concepts import Ontology
    from tidings.model import Filter


class SkipMode(StrEnum):
    """What a walk for interfaces skips."""

    NOTHING = "nothing"
    """Every node below matching ones is tested."""
    TESTS = "tests"
    """A node whose interfaces are all in the result is passed without a test (Algorithm 6, line 16)."""
    SUBTREES = "subtrees"
    """A node whose whole subtree has no interface that is not in the result is not processed further."""


@dataclass(slots=True)
class WalkResult:
    """The result of a walk; `approximate` when the deadline passed, so that some ids may be false (none is missing)."""

    ids: list[Hashable] = field(default_factory=list)
    tests: int = 0
    approximate: bool = False


def is_last_arrival(node: CoverNode, arrived: dict[CoverNode, int]) -> bool:
    """Count that a walk arrives at a node; tell whether it now comes from the last of the node's parents."""
    arrived[node] = count = arrived.get(node, 0) + 1
    return count >= len(node.parents)


class Forest(Algorithm):
    """Filters below filters that cover them, each below one."""

    name = "forest"

    def __init__(self, ontology: Ontology, *, interfaces: Mapping[SubId, Hashable] | None = None) -> None:
        """Start without filters; a subscription that `interfaces` does not name is an interface of its own."""
        self.coverage = CoverDecider(ontology)
        self._interface_of = interfaces or {}
        self.roots = Siblings()
        self.nodes: dict[Filter, CoverNode] = {}
        self._node_of: dict[SubId, CoverNode] = {}
        self.interface_counts: Counter[Hashable] = Counter()

    def compile_filter(self, tree: Filter) -> Filter:
        """Return the filter as it is."""
        return tree

    def add_many(self, filters: Iterable[tuple[SubId, Filter]]) -> None:
        """Take filters in; a known id is replaced."""
        for id, tree in filters:
            if id in self._node_of:
                self.remove(id)
            node = self.nodes.get(tree)
            if node is None:
                fresh = self.coverage.make_node(tree)
                node = self._insert_node(fresh)
                if node is fresh:
                    self.nodes[tree] = node
            self._node_of[id] = node
            node.subscribers[id] = None
            self._count(node, self._interface_of.get(id, id), 1)

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there; the children of a node without subscriptions move up."""
        node = self._node_of.pop(id)
        del node.subscribers[id]
        self._count(node, self._interface_of.get(id, id), -1)
        if not node.subscribers:
            del self.nodes[node.tree]
            self._remove_node(node)

    def _count(self, node: CoverNode, interface: Hashable, step: int) -> None:
        """Count a subscription of an interface, in or out."""
        for counts in (node.interfaces, self.interface_counts, *self._iterate_subtree_counts(node)):
            # Not `+=`: of a new key, a Counter asks a method that is written in Python for its 0.
            if left := counts.get(interface, 0) + step:
                counts[interface] = left
            else:
                del counts[interface]

    def _iterate_subtree_counts(self, node: CoverNode) -> Iterator[Counter[Hashable]]:
        """Yield the counts of all subtrees that a node is in."""
        above: CoverNode | None = node
        while above is not None:
            yield above.interfaces_below
            above = next(iter(above.parents), None)

    def _insert_node(self, node: CoverNode) -> CoverNode:
        """Put a node below one that covers it, and those it covers below it; return it, or one that is equivalent."""
        brood, parent, covers = self.roots, None, self.coverage.covers
        while above := next((candidate for candidate in brood.iterate_covering(node) if covers(candidate, node)), None):
            if node.may_cover(above) and covers(node, above):
                return above  # they accept the same events
            parent, brood = above, above.children
        for child in [candidate for candidate in brood.iterate_covered(node) if covers(node, candidate)]:
            brood.remove(child)
            self._attach(child, node)
            node.interfaces_below.update(child.interfaces_below)
        self._attach(node, parent)
        return node

    def _attach(self, node: CoverNode, parent: CoverNode | None) -> None:
        (self.roots if parent is None else parent.children).add(node)
        node.parents = {} if parent is None else {parent: None}

    def _remove_node(self, node: CoverNode) -> None:
        parent = next(iter(node.parents), None)
        (self.roots if parent is None else parent.children).remove(node)
        for child in list(node.children):
            self._attach(child, parent)

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        ids: list[SubId] = []
        present = self.coverage.find_present(reading)
        arrived: dict[CoverNode, int] = {}
        waiting = deque([self.roots])
        while waiting:
            for node in waiting.popleft().iterate_present(present):
                # Most nodes have one parent, of forests all: the call is for the others.
                if (len(node.parents) < 2 or is_last_arrival(node, arrived)) and holds(node.tree, reading, setting):
                    ids += node.subscribers
                    if node.children:
                        waiting.append(node.children)
        return ids

    def match_until(
        self, reading: Reading, setting: Setting, *, deadline: float, clock: Callable[[], float] = lambda: 0.0
    ) -> WalkResult:
        """Return the ids; once `clock()` has reached the deadline, those of all nodes that are left, untested."""
        result = WalkResult()
        for node in self._walk(reading, setting, lambda _: True, result=result, is_over=lambda: clock() >= deadline):
            result.ids += node.subscribers
        return result

    def route(
        self,
        reading: Reading,
        setting: Setting,
        *,
        skip: SkipMode = SkipMode.SUBTREES,
        deadline: float = 1.0,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> WalkResult:
        """Return the interfaces of the filters that accept the reading: Algorithm 6."""
        result = WalkResult()
        forward: set[Hashable] = set()

        def needs_test(node: CoverNode) -> bool | None:
            if skip is SkipMode.SUBTREES and self._adds_nothing(node, forward):
                return None
            return skip is SkipMode.NOTHING or not node.interfaces.keys() <= forward

        for node in self._walk(reading, setting, needs_test, result=result, is_over=lambda: clock() >= deadline):
            forward.update(node.interfaces)
            if len(forward) >= len(self.interface_counts):  # Imax: nothing can be added
                break
        result.ids = list(forward)
        return result

    def _walk(
        self,
        reading: Reading,
        setting: Setting,
        needs_test: Callable[[CoverNode], bool | None],
        *,
        result: WalkResult,
        is_over: Callable[[], bool],
    ) -> Iterator[CoverNode]:
        """Yield the nodes that match, or need no test; those for which `needs_test` is None are left out.

        Tests are counted in the result. Once the time is over, nodes are yielded without a test.
        """
        present = self.coverage.find_present(reading)
        arrived: dict[CoverNode, int] = {}
        waiting = deque([self.roots])
        while waiting:
            for node in waiting.popleft().iterate_present(present):
                if not is_last_arrival(node, arrived) or (test := needs_test(node)) is None:
                    continue
                result.approximate = result.approximate or is_over()
                if test and not result.approximate:
                    result.tests += 1
                    if not holds(node.tree, reading, setting):
                        continue
                yield node
                if node.children:
                    waiting.append(node.children)

    def _adds_nothing(self, node: CoverNode, forward: set[Hashable]) -> bool:
        return node.interfaces_below.keys() <= forward

    def explain(self) -> dict[str, object]:
        """Return how many nodes there are, how many are roots, and how many covers were decided to place them."""
        return {
            "algorithm": self.name,
            "filters": len(self._node_of),
            "nodes": len(self.nodes),
            "roots": sum(1 for _ in self.roots),
            "covers asked": self.coverage.comparisons,
        }
