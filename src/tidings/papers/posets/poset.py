"""Poset: every filter stands under all filters that cover it directly, not under one of them only.

The Siena poset of section 3.7 of Tarkoma's text; `forest` is what that text makes of it. A node has several parents, so
a walk meets it several times. The text tests whether it has been visited; here it waits until the last of its parents
has matched, since one that does not match hides it (Property 3.13): so it is tested once at most, and less often than
in a forest. Placing a node costs more: all its covers are sought, and all below them that it covers.

Cost: match O(nodes all of whose covers match, and their children); add O(filters) at worst; space O(covering pairs).
Like the forest it knows only `covers` and `holds`, so it expresses everything. See README.md here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tidings.algebra import holds
from tidings.papers.posets.forest import Forest

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from tidings.algebra import Reading, Setting
    from tidings.matcher.algorithm import SubId
    from tidings.papers.posets.covering_order import CoverNode


class Poset(Forest):
    """Filters under all filters that cover them directly."""

    name = "poset"

    def _count(self, node: CoverNode, interface: Hashable, step: int) -> None:
        """Note an interface at the node; what lies below is not counted, since it would count twice."""
        for counts in (node.interfaces, self.interface_counts):
            counts[interface] = counts.get(interface, 0) + step
            if not counts[interface]:
                del counts[interface]

    def _adds_nothing(self, node: CoverNode, forward: set[Hashable]) -> bool:
        """Tell that only a leaf surely has nothing to add; subtrees have no index here."""
        return not node.children and node.interfaces.keys() <= forward

    def _is_due(self, node: CoverNode, arrived: dict[CoverNode, int]) -> bool:
        """Tell whether this was the last of the node's parents to let it through."""
        parents = len(node.parents)
        if parents < 2:
            return True
        arrived[node] = count = arrived.get(node, 0) + 1
        return count == parents

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        ids: list[SubId] = []
        arrived: dict[CoverNode, int] = {}
        present = self._coverage.find_present(reading)
        waiting = deque([self._roots])
        while waiting:
            for node in waiting.popleft().iterate_present(present):
                if self._is_due(node, arrived) and holds(node.tree, reading, setting):
                    ids += node.subscribers
                    if node.children:
                        waiting.append(node.children)
        return ids

    def _insert_node(self, node: CoverNode) -> CoverNode:
        """Link a node to its direct covers and to what it covers directly; return the node that stands for it."""
        parents = self._find_direct_covers(node)
        for cover in parents:
            if node.may_cover(cover) and self._coverage.covers(node, cover):
                return cover  # they accept the same events
        children = self._find_directly_covered(node, parents)
        for child in children:
            if not child.parents:
                self._roots.remove(child)
            for parent in [cover for cover in parents if cover in child.parents]:
                self._unlink(parent, child)  # the way now leads through the new node
            self._link(node, child)
        for parent in parents:
            self._link(parent, node)
        if not parents:
            self._roots.add(node)
        return node

    def _find_direct_covers(self, node: CoverNode) -> list[CoverNode]:
        decided: dict[CoverNode, bool] = {}

        def covering(nodes: Iterator[CoverNode]) -> list[CoverNode]:
            covers = []
            for candidate in nodes:
                if candidate not in decided:
                    decided[candidate] = self._coverage.covers(candidate, node)
                if decided[candidate]:
                    covers.append(candidate)
            return covers

        direct: dict[CoverNode, None] = {}
        seen: set[CoverNode] = set()
        waiting = deque(covering(self._roots.iterate_covering(node)))
        while waiting:
            candidate = waiting.popleft()
            if candidate in seen:
                continue
            seen.add(candidate)
            closer = covering(candidate.children.iterate_covering(node))
            if not closer:
                direct[candidate] = None
            waiting.extend(closer)
        return list(direct)

    def _find_directly_covered(self, node: CoverNode, parents: list[CoverNode]) -> list[CoverNode]:
        """Return what the node covers, of what stands below its covers, without what stands below that."""
        start = (
            min(parents, key=lambda candidate: sum(1 for _ in candidate.children)).children if parents else self._roots
        )
        covered: dict[CoverNode, None] = {}
        seen: set[CoverNode] = set()
        waiting = deque(start)
        while waiting:
            candidate = waiting.popleft()
            if candidate in seen:
                continue
            seen.add(candidate)
            if node.may_cover(candidate) and self._coverage.covers(node, candidate):
                covered[candidate] = None
            else:
                waiting.extend(candidate.children)
        return [candidate for candidate in covered if not self._is_below(candidate, covered)]

    def _is_below(self, node: CoverNode, others: dict[CoverNode, None]) -> bool:
        """Tell whether one of some nodes stands above a node."""
        seen: set[CoverNode] = set()
        waiting = deque(node.parents)
        while waiting:
            ancestor = waiting.popleft()
            if ancestor in others:
                return True
            if ancestor not in seen:
                seen.add(ancestor)
                waiting.extend(ancestor.parents)
        return False

    def _link(self, parent: CoverNode, child: CoverNode) -> None:
        parent.children.add(child)
        child.parents[parent] = None

    def _unlink(self, parent: CoverNode, child: CoverNode) -> None:
        parent.children.remove(child)
        del child.parents[parent]

    def _remove_node(self, node: CoverNode) -> None:
        """Take a node out; what stood below it and has no other way up stands below its covers then."""
        parents = list(node.parents)
        if not parents:
            self._roots.remove(node)
        for parent in parents:
            self._unlink(parent, node)
        for child in list(node.children):
            self._unlink(node, child)
            for parent in parents:
                if parent not in child.parents and not self._is_below(child, {parent: None}):
                    self._link(parent, child)
            if not child.parents:
                self._roots.add(child)

    def check(self) -> None:
        """Assert that links go both ways and down from covers, and that every node can be reached."""
        seen: set[CoverNode] = set()
        waiting = deque(self._roots)
        assert not any(root.parents for root in self._roots)
        while waiting:
            node = waiting.popleft()
            if node in seen:
                continue
            seen.add(node)
            assert node.subscribers
            for child in node.children:
                assert node in child.parents
                assert self._coverage.covers(node, child)
                waiting.append(child)
            assert all(node in set(parent.children) for parent in node.parents)
        assert seen == set(self._nodes.values())
