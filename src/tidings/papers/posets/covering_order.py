"""Filters as nodes of a covering order: who may cover whom, at a glance, and who does.

`algebra.covers` decides, on filters that are bound already, but it costs some ten microseconds. So a node carries cheap
necessary conditions: the attributes without which it accepts nothing, the equalities it asks for, the span of numbers
of each attribute. Siblings lie in groups by what they need, so most are never looked at. All of this may only lose
covers, never make one up; a filter without its cover stands higher than it could, which is right as well.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.algebra.covering.covers import Judge
from tidings.concepts import Vocabulary
from tidings.model import And, Is, IsNull, Not, Or, Quantifier, Range, Test

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tidings.algebra import Reading
    from tidings.algebra.covering.decision import PreparedFilter
    from tidings.concepts import Ontology
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter

Key: TypeAlias = tuple[str, Any]
"""An attribute and the value it must equal."""

ALL_ATTRIBUTES = -1
"""The attributes needed by a filter that accepts nothing: all bits."""

INFINITE = float("inf")


class CoverNode:
    """A filter, who subscribed to it, and its place in the order."""

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

    def __init__(self, tree: Filter, sketch: PreparedFilter, needs: int) -> None:
        """Stand alone."""
        self.tree, self.prepared, self.required_attributes = tree, sketch, needs
        self.keys, self.spans = _find_keys(tree), _find_spans(tree)
        self.subscribers: dict[SubId, None] = {}
        self.interfaces: Counter[Hashable] = Counter()
        self.interfaces_below: Counter[Hashable] = Counter()  # interfaces of this node and all below: of forests only
        self.parents: dict[CoverNode, None] = {}
        self.children = Siblings()

    @property
    def key(self) -> Key | None:
        """One equality, under which siblings look the node up."""
        return next(iter(self.keys), None)

    def may_cover(self, other: CoverNode) -> bool:
        """Tell whether nothing simple speaks against this node covering the other."""
        if self.required_attributes & ~other.required_attributes or not self.keys <= other.keys:
            return False
        theirs = other.spans
        for name, (low, high) in self.spans.items():
            span = theirs.get(name)
            if span is not None and (span[0] < low or span[1] > high):
                return False
        return True


class Siblings:
    """Nodes with the same parent, by the attributes they need and one equality each."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        """Start without nodes."""
        self.groups: dict[int, dict[Key | None, dict[CoverNode, None]]] = {}

    def add(self, node: CoverNode) -> None:
        """Take a node in."""
        self.groups.setdefault(node.required_attributes, {}).setdefault(node.key, {})[node] = None

    def remove(self, node: CoverNode) -> None:
        """Let a node go."""
        group = self.groups[node.required_attributes]
        del group[node.key][node]
        if not group[node.key]:
            del group[node.key]
        if not group:
            del self.groups[node.required_attributes]

    def __iter__(self) -> Iterator[CoverNode]:
        """Yield all nodes."""
        return (node for group in self.groups.values() for nodes in group.values() for node in nodes)

    def __bool__(self) -> bool:
        """Tell whether there is any."""
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
    """Makes nodes, and decides between them; counts how often it had to."""

    def __init__(self, ontology: Ontology) -> None:
        """Decide with these concepts; attributes may carry several values, whatever a schema says."""
        self._judge = Judge(Vocabulary(ontology=ontology))
        self._bits: dict[str, int] = {}
        self.comparisons = 0

    def make_node(self, tree: Filter) -> CoverNode:
        """Return a node for a bound filter."""
        self._judge.facts.start()
        return CoverNode(tree, self._judge.prepare_bound(tree), self._find_required(tree))

    def covers(self, outer: CoverNode, inner: CoverNode) -> bool:
        """Tell whether the first certainly accepts all that the second accepts."""
        self.comparisons += 1
        return self._judge.start_comparison().covers(outer.prepared, inner.prepared)

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
                return 0 if isinstance(condition, IsNull) else self._get_bit(attribute)
            case And(parts):
                return _unite_bits(map(self._find_required, parts))
            case Or(parts):
                common = ALL_ATTRIBUTES
                for part in parts:
                    common &= self._find_required(part)
                return common
            case Not():
                return 0

    def _get_bit(self, name: str) -> int:
        bit = self._bits.get(name)
        if bit is None:
            bit = self._bits[name] = 1 << len(self._bits)
        return bit


def _unite_bits(needs: Iterable[int]) -> int:
    united = 0
    for bits in needs:
        united |= bits
    return united


def _list_tests(tree: Filter) -> list[Test]:
    """Return the plain tests that must all hold."""
    parts = tree.parts if isinstance(tree, And) else (tree,)
    return [part for part in parts if isinstance(part, Test) and part.quantifier is Quantifier.ANY]


def _find_keys(tree: Filter) -> frozenset[Key]:
    tests = _list_tests(tree)
    return frozenset((test.attribute, test.condition.value) for test in tests if isinstance(test.condition, Is))


def _find_spans(tree: Filter) -> dict[str, tuple[Any, Any]]:
    """Return the numbers that an attribute may have, where one test alone says so."""
    spans: dict[str, tuple[Any, Any] | None] = {}
    for test in _list_tests(tree):
        match test.condition:
            case Range(low, high) if type(low if high is None else high) in (int, float):
                span = (-INFINITE if low is None else low, INFINITE if high is None else high)
                spans[test.attribute] = None if test.attribute in spans else span
            case _:
                spans[test.attribute] = None
    return {name: span for name, span in spans.items() if span is not None}
