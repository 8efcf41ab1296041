"""Poset: every filter is below all filters that cover it directly, not below one of them only.

The Siena poset of section 3.7 of Tarkoma's text; `forest` is what that text makes of it. A node has several parents, so
a walk meets it several times. The text tests whether it has been visited; here it waits until the last of its parents
has matched, since one that does not match hides it (Property 3.13): so it is tested once at most, and less often than
in a forest. Placing a node costs more: all its covers are searched, and all nodes below them that it covers.

Cost: match O(nodes all of whose covers match, and their children); add O(filters) at worst; space O(covering pairs).
Like the forest it uses only `covers` and `holds`, so it supports every filter. See README.md here.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from tidings.papers.posets.forest import Forest

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from tidings.papers.posets.covering_order import CoverNode, Siblings


class Poset(Forest):
    """Filters under all filters that cover them directly."""

    name = "poset"

    def _iterate_subtree_counts(self, node: CoverNode) -> Iterator[Counter[Hashable]]:
        """Yield nothing: a poset keeps no counts of subtrees, where a node would count once for each of its parents."""
        del node
        return iter(())

    def _adds_nothing(self, node: CoverNode, forward: set[Hashable]) -> bool:
        """Tell whether a node is a leaf without a new interface; for others there is no count of the subtree here."""
        return not node.children and node.interfaces.keys() <= forward

    def _insert_node(self, node: CoverNode) -> CoverNode:
        """Link a node to its direct covers and to those it covers directly; return it, or one that is equivalent."""
        parents = self._find_direct_covers(node)
        for cover in parents:
            if node.may_cover(cover) and self.coverage.covers(node, cover):
                return cover  # they accept the same events
        children = self._find_directly_covered(node, parents)
        for child in children:
            if not child.parents:
                self.roots.remove(child)
            for parent in [cover for cover in parents if cover in child.parents]:
                self._unlink(parent, child)  # the new node is between them
            self._link(node, child)
        for parent in parents:
            self._link(parent, node)
        if not parents:
            self.roots.add(node)
        return node

    def _find_direct_covers(self, node: CoverNode) -> list[CoverNode]:
        """Return the nodes that cover a node and have no child that covers it."""
        decided: dict[CoverNode, bool] = {}

        def select_covers(siblings: Siblings) -> list[CoverNode]:
            candidates = list(siblings.iterate_covering(node))
            for candidate in candidates:
                if candidate not in decided:
                    decided[candidate] = self.coverage.covers(candidate, node)
            return [candidate for candidate in candidates if decided[candidate]]

        closer: dict[CoverNode, list[CoverNode]] = {}
        for cover in _traverse(select_covers(self.roots), closer.__getitem__):
            closer[cover] = select_covers(cover.children)
        return [cover for cover, below in closer.items() if not below]

    def _find_directly_covered(self, node: CoverNode, parents: list[CoverNode]) -> list[CoverNode]:
        """Return the nodes that a node covers, without those that are below another of them."""
        start = min(
            (parent.children for parent in parents), key=lambda nodes: sum(1 for _ in nodes), default=self.roots
        )
        covered: dict[CoverNode, None] = {}
        # Most nodes are leaves, and to iterate over no children costs as much as the rest of a step.
        for candidate in _traverse(
            start, lambda above: above.children if above.children and above not in covered else ()
        ):
            if node.may_cover(candidate) and self.coverage.covers(node, candidate):
                covered[candidate] = None
        return [candidate for candidate in covered if not self._is_below(candidate, covered)]

    def _is_below(self, node: CoverNode, others: dict[CoverNode, None]) -> bool:
        """Tell whether one of some nodes is above a node; a loop of its own, as it is most of a removal."""
        seen: set[CoverNode] = set()
        for ancestor in (waiting := list(node.parents)):  # grows while it is read: the nearest come first
            if ancestor in others:
                return True
            if ancestor not in seen:
                seen.add(ancestor)
                waiting += ancestor.parents
        return False

    def _link(self, parent: CoverNode, child: CoverNode) -> None:
        parent.children.add(child)
        child.parents[parent] = None

    def _unlink(self, parent: CoverNode, child: CoverNode) -> None:
        parent.children.remove(child)
        del child.parents[parent]

    def _remove_node(self, node: CoverNode) -> None:
        """Take a node out; its children without another path to one of its covers become children of that cover."""
        parents = list(node.parents)
        if not parents:
            self.roots.remove(node)
        for parent in parents:
            self._unlink(parent, node)
        for child in list(node.children):
            self._unlink(node, child)
            for parent in parents:
                if parent not in child.parents and not self._is_below(child, {parent: None}):
                    self._link(parent, child)
            if not child.parents:
                self.roots.add(child)


def _traverse(start: Iterable[CoverNode], expand: Callable[[CoverNode], Iterable[CoverNode]]) -> Iterator[CoverNode]:
    """Yield nodes breadth first, each once; `expand` is called after a node was handled and returns where to go on."""
    seen: set[CoverNode] = set()
    waiting = deque(start)
    while waiting:
        node = waiting.popleft()
        if node not in seen:
            seen.add(node)
            yield node
            waiting.extend(expand(node))
