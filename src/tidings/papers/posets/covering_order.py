"""Filters as nodes of a covering order: cheap tests of which nodes may cover each other, and the decision.

`algebra.covers` decides, on filters that are bound already, but it costs some ten microseconds. So a node carries cheap
necessary conditions: the attributes without which it accepts nothing, its equalities, the span of numbers of each
attribute. Siblings are grouped by the attributes they require, so most are never compared. All of this may only miss
covers, never invent one; a filter without its cover is higher up than it could be, which is correct as well.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.algebra.covering.covers import CoverageChecker
from tidings.concepts import Ontology, Vocabulary
from tidings.model import And, Filter, Is, IsNull, Not, Or, Quantifier, Range, Test
from tidings.papers.common.intervals import INFINITY

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from tidings.algebra import Reading
    from tidings.algebra.covering.decision import PreparedFilter
    from tidings.matcher.algorithm import SubId

CoverKey: TypeAlias = tuple[str, Any]
"""An attribute and the value it must equal."""

ALL_ATTRIBUTES = -1
"""The attributes that a filter which accepts nothing requires: all bits."""


class CoverNode:
    """A filter, its subscriptions, and its neighbours in the order; compared by identity."""

    # There is one for each distinct filter: without slots it would carry a dictionary besides.
    __slots__ = (
        "children",
        "interfaces",
        "interfaces_below",
        "keys",
        "parents",
        "prepared",
        "required_attributes",
        "spans",
        "subscribers",
        "tree",
    )

    def __init__(self, tree: Filter, prepared: PreparedFilter, required_attributes: int) -> None:
        self.tree, self.prepared, self.required_attributes = tree, prepared, required_attributes
        parts = tree.parts if isinstance(tree, And) else (tree,)
        tests = [part for part in parts if isinstance(part, Test) and part.quantifier is Quantifier.ANY]
        self.keys = frozenset(
            (test.attribute, test.condition.value) for test in tests if isinstance(test.condition, Is)
        )
        self.spans = _find_spans(tests)
        self.subscribers: dict[SubId, None] = {}
        self.interfaces: Counter[Hashable] = Counter()
        self.interfaces_below: Counter[Hashable] = Counter()  # of this node and all below it, in forests only
        self.parents: dict[CoverNode, None] = {}
        self.children = Siblings()

    @property
    def key(self) -> CoverKey | None:
        """One equality, under which siblings look the node up."""
        return next(iter(self.keys), None)

    def may_cover(self, other: CoverNode) -> bool:
        """Tell whether the cheap conditions allow this node to cover the other."""
        if self.required_attributes & ~other.required_attributes or not self.keys <= other.keys:
            return False
        theirs = other.spans
        for name, (low, high) in self.spans.items():
            span = theirs.get(name)
            if span is not None and (span[0] < low or span[1] > high):
                return False
        return True


class Siblings:
    """Nodes with the same parent, by the attributes they require and one equality each."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        self.groups: dict[int, dict[CoverKey | None, dict[CoverNode, None]]] = {}

    def add(self, node: CoverNode) -> None:
        """Add a node."""
        self.groups.setdefault(node.required_attributes, {}).setdefault(node.key, {})[node] = None

    def remove(self, node: CoverNode) -> None:
        """Remove a node."""
        group = self.groups[node.required_attributes]
        del group[node.key][node]
        if not group[node.key]:
            del group[node.key]
        if not group:
            del self.groups[node.required_attributes]

    def __iter__(self) -> Iterator[CoverNode]:
        return (node for group in self.groups.values() for nodes in group.values() for node in nodes)

    def __bool__(self) -> bool:
        return bool(self.groups)

    def iterate_present(self, present: int) -> Iterator[CoverNode]:
        """Yield the nodes that an event with these attributes might satisfy."""
        for needs, group in self.groups.items():
            if not needs & ~present:
                for nodes in group.values():
                    yield from nodes

    def iterate_covering(self, node: CoverNode) -> Iterator[CoverNode]:
        """Yield the nodes that may cover this one."""
        for needs, group in self.groups.items():
            if needs & ~node.required_attributes:
                continue
            for key in (None, *node.keys):
                yield from (candidate for candidate in group.get(key, ()) if candidate.may_cover(node))

    def iterate_covered(self, node: CoverNode) -> Iterator[CoverNode]:
        """Yield the nodes that this one may cover."""
        for needs, group in self.groups.items():
            if not node.required_attributes & ~needs:
                yield from (candidate for nodes in group.values() for candidate in nodes if node.may_cover(candidate))


class CoverDecider:
    """Makes nodes, decides whether one covers another, and counts the decisions."""

    def __init__(self, ontology: Ontology) -> None:
        """Decide with these concepts and no schema: an attribute may have several values."""
        self._checker = CoverageChecker(Vocabulary(ontology=ontology))
        self._bits: dict[str, int] = {}
        self.comparisons = 0

    def make_node(self, tree: Filter) -> CoverNode:
        """Return a node for a bound filter."""
        self._checker.facts.start()
        return CoverNode(tree, self._checker.prepare_bound(tree), self._find_required(tree))

    def covers(self, outer: CoverNode, inner: CoverNode) -> bool:
        """Tell whether the first certainly accepts all that the second accepts."""
        self.comparisons += 1
        return self._checker.start_comparison().covers(outer.prepared, inner.prepared)

    def find_present(self, reading: Reading) -> int:
        """Return the bits of the attributes that an event has."""
        bits, present = self._bits, 0
        for key, values in reading.values.items():
            if values:
                present |= bits.get(key[0], 0)
        for name, parts in reading.elements.items():
            if parts:
                present |= bits.get(name, 0)
        return present

    def _find_required(self, tree: Filter) -> int:
        """Return the bits of the attributes without which the filter accepts nothing."""
        match tree:
            case Test(attribute, condition):
                return 0 if isinstance(condition, IsNull) else self._bits.setdefault(attribute, 1 << len(self._bits))
            case And(parts):
                return reduce(or_, map(self._find_required, parts), 0)
            case Or(parts):
                return reduce(and_, map(self._find_required, parts), ALL_ATTRIBUTES)
            case Not():
                return 0


def _find_spans(tests: list[Test]) -> dict[str, tuple[Any, Any]]:
    """Return the numbers that an attribute may have, where a single test bounds them."""
    spans: dict[str, tuple[Any, Any] | None] = {}
    for test in tests:
        match test.condition:
            case Range(low, high) if type(low if high is None else high) in (int, float):
                span = (-INFINITY if low is None else low, INFINITY if high is None else high)
                spans[test.attribute] = None if test.attribute in spans else span
            case _:
                spans[test.attribute] = None
    return {name: span for name, span in spans.items() if span is not None}
