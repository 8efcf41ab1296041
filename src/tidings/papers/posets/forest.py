"""Forest: every filter stands under one that covers it; an event that a filter rejects, nothing below it accepts.

Tarkoma's text on poset routing, section 3.7, Algorithm 6 (Match-Forest) and Property 3.13: the forest is walked from
its roots, breadth first, and a node that does not match hides its subtree. Equal filters share a node. The matcher
knows nothing of the language but `covers` and `holds`, so it expresses everything. The text asks for the roots of the
event's type; here those are the nodes whose attributes the event has.

For routing, many subscriptions belong to few interfaces: `route` returns interfaces, stops when all are found (Imax),
and skips tests of nodes (or whole subtrees) that can add none. With a deadline, what is left when it passes is added
unasked: false positives, never a miss.

Corrected (README.md here): a node may be left out altogether only when the interfaces of its whole subtree are in
the result, not its own alone; "the remaining nodes" are those below nodes that did not fail.

Cost: match O(nodes tested), at worst all; add O(depth times siblings that may cover), each some ten microseconds, so
this is for thousands of filters; remove O(children); space O(filters).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tidings.algebra import holds
from tidings.papers.posets.covering_order import CoverDecider, CoverNode, Siblings

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from tidings.algebra import Reading, Setting
    from tidings.concepts import Ontology
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter


class SkipMode(StrEnum):
    """What a walk for interfaces leaves out."""

    NOTHING = "nothing"
    """Every node below matching ones is tested."""
    TESTS = "tests"
    """A node whose interfaces are all in the result is passed without a test (Algorithm 6, line 16)."""
    SUBTREES = "subtrees"
    """A node whose whole subtree has no interface that is not in the result is not processed further."""


@dataclass(frozen=True, slots=True)
class WalkResult:
    """What a walk found; `approximate` when the deadline passed, so that some may be false (and none is missing)."""

    ids: list[Any]
    tests: int
    approximate: bool = False


def _read_no_clock() -> float:
    return 0.0


class Forest:
    """Filters under filters that cover them, each under one."""

    name = "forest"

    def __init__(self, ontology: Ontology, *, interfaces: Mapping[SubId, Hashable] | None = None) -> None:
        """Start without filters; a subscription that `interfaces` does not name is an interface of its own."""
        self._coverage = CoverDecider(ontology)
        self._interface_of = interfaces or {}
        self._roots = Siblings()
        self._nodes: dict[Filter, CoverNode] = {}
        self._node_of: dict[SubId, CoverNode] = {}
        self.interface_counts: dict[Hashable, int] = {}

    # Filters in and out ------------------------------------------------------------------------

    def compile_filter(self, tree: Filter) -> Filter:
        """Return the filter as it is: the law decides it, and `covers` places it."""
        return tree

    def add_many(self, filters: Iterable[tuple[SubId, Filter]]) -> None:
        """Take filters in; a known id is replaced."""
        for id, tree in filters:
            if id in self._node_of:
                self.remove(id)
            node = self._nodes.get(tree)
            if node is None:
                fresh = self._coverage.make_node(tree)
                node = self._insert_node(fresh)
                if node is fresh:
                    self._nodes[tree] = node
            self._node_of[id] = node
            node.subscribers[id] = None
            self._count(node, self._interface_of.get(id, id), 1)

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there; below a node that nobody wants any more, the children move up."""
        node = self._node_of.pop(id)
        del node.subscribers[id]
        self._count(node, self._interface_of.get(id, id), -1)
        if not node.subscribers:
            del self._nodes[node.tree]
            self._remove_node(node)

    def _count(self, node: CoverNode, interface: Hashable, step: int) -> None:
        """Note an interface at a node and on the way up."""
        _step(node.interfaces, interface, step)
        _step(self.interface_counts, interface, step)
        above: CoverNode | None = node
        while above is not None:
            _step(above.interfaces_below, interface, step)
            above = next(iter(above.parents), None)

    def _insert_node(self, node: CoverNode) -> CoverNode:
        """Put a node under one that covers it, and under it what it covers; return the node that stands for it."""
        brood, parent, covers = self._roots, None, self._coverage.covers
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
        (self._roots if parent is None else parent.children).add(node)
        node.parents = {} if parent is None else {parent: None}

    def _remove_node(self, node: CoverNode) -> None:
        parent = next(iter(node.parents), None)
        (self._roots if parent is None else parent.children).remove(node)
        for child in list(node.children):
            self._attach(child, parent)

    # Matching ----------------------------------------------------------------------------------

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        ids: list[SubId] = []
        present = self._coverage.find_present(reading)
        waiting = deque([self._roots])
        while waiting:
            for node in waiting.popleft().iterate_present(present):
                if holds(node.tree, reading, setting):
                    ids += node.subscribers
                    if node.children:
                        waiting.append(node.children)
        return ids

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        """Return the same for each of many readings."""
        return [self.match(reading, setting) for reading in readings]

    def match_until(
        self, reading: Reading, setting: Setting, *, deadline: float, clock: Callable[[], float] = _read_no_clock
    ) -> WalkResult:
        """Return the ids, and those that may be, once `clock()` has reached the deadline."""
        ids: list[SubId] = []
        tests, late, present = 0, False, self._coverage.find_present(reading)
        arrived: dict[CoverNode, int] = {}
        waiting = deque([self._roots])
        while waiting:
            for node in waiting.popleft().iterate_present(present):
                if not self._is_due(node, arrived):
                    continue
                late = late or clock() >= deadline
                if not late:
                    tests += 1
                    if not holds(node.tree, reading, setting):
                        continue
                ids += node.subscribers
                if node.children:
                    waiting.append(node.children)
        return WalkResult(ids, tests, late)

    def route(
        self,
        reading: Reading,
        setting: Setting,
        *,
        skip: SkipMode = SkipMode.SUBTREES,
        deadline: float = 1.0,
        clock: Callable[[], float] = _read_no_clock,
    ) -> WalkResult:
        """Return the interfaces of the filters that accept the reading: Algorithm 6."""
        forward: set[Hashable] = set()
        tests, late, present = 0, False, self._coverage.find_present(reading)
        arrived: dict[CoverNode, int] = {}
        waiting = deque([self._roots])
        while waiting:
            for node in waiting.popleft().iterate_present(present):
                if not self._is_due(node, arrived):
                    continue
                if skip is SkipMode.SUBTREES and self._adds_nothing(node, forward):
                    continue
                late = late or clock() >= deadline
                is_covered = skip is not SkipMode.NOTHING and node.interfaces.keys() <= forward
                if not (late or is_covered):
                    tests += 1
                    if not holds(node.tree, reading, setting):
                        continue
                if not is_covered:
                    forward.update(node.interfaces)
                if len(forward) >= len(self.interface_counts):  # Imax: nothing can be added
                    return WalkResult(list(forward), tests, late)
                if node.children:
                    waiting.append(node.children)
        return WalkResult(list(forward), tests, late)

    def _is_due(self, node: CoverNode, arrived: dict[CoverNode, int]) -> bool:
        """Tell whether a node is to be looked at now: in a forest, whenever its parent let it through."""
        del node, arrived
        return True

    def _adds_nothing(self, node: CoverNode, forward: set[Hashable]) -> bool:
        return node.interfaces_below.keys() <= forward

    def explain(self) -> dict[str, object]:
        """Tell how many nodes there are, how many are roots, and what placing them cost."""
        return {
            "algorithm": self.name,
            "filters": len(self._node_of),
            "nodes": len(self._nodes),
            "roots": sum(1 for _ in self._roots),
            "covers asked": self._coverage.comparisons,
        }

    def check(self) -> None:
        """Assert that every node is once in the forest, under one that covers it, with its interfaces counted."""
        waiting: deque[tuple[CoverNode | None, Siblings]] = deque([(None, self._roots)])
        seen = 0
        while waiting:
            parent, brood = waiting.popleft()
            for node in brood:
                seen += 1
                assert list(node.parents) == ([] if parent is None else [parent])
                assert parent is None or self._coverage.covers(parent, node)
                assert node.subscribers
                below = sum((child.interfaces_below for child in node.children), node.interfaces.copy())
                assert below == node.interfaces_below
                waiting.append((node, node.children))
        assert seen == len(self._nodes)


def _step(counts: dict[Hashable, int], key: Hashable, step: int) -> None:
    left = counts.get(key, 0) + step
    if left:
        counts[key] = left
    else:
        del counts[key]
