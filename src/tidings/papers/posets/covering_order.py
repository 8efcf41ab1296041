"""Filters as nodes of a covering order: who may cover whom, at a glance, and who does.

`algebra.covers` decides, on filters that are bound already, but it costs some ten microseconds. So a node carries cheap
necessary conditions: the attributes without which it accepts nothing, the equalities it asks for, the span of numbers
of each attribute. Siblings lie in groups by what they need, so most are never looked at. All of this may only lose
covers, never make one up; a filter without its cover stands higher than it could, which is right as well.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.algebra.covering.decision import Case
from tidings.algebra.covering.judge import USUAL, Judge
from tidings.model import And, Is, IsNull, Not, Or, Quantifier, Range, Test

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tidings.algebra import Reading
    from tidings.algebra.covering.decision import Sketch
    from tidings.concepts import Ontology
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter

Key: TypeAlias = tuple[str, Any]
"""An attribute and the value it must equal."""

EVERY = -1
"""The attributes needed by a filter that accepts nothing: all bits."""

INFINITE = float("inf")


class Node:
    """A filter, who subscribed to it, and its place in the order."""

    __slots__ = (
        "below",
        "children",
        "interfaces",
        "keys",
        "needs",
        "parents",
        "sketch",
        "spans",
        "subscribers",
        "tree",
    )

    def __init__(self, tree: Filter, sketch: Sketch, needs: int) -> None:
        """Stand alone."""
        self.tree, self.sketch, self.needs = tree, sketch, needs
        self.keys, self.spans = _keys(tree), _spans(tree)
        self.subscribers: dict[SubId, None] = {}
        self.interfaces: Counter[Hashable] = Counter()
        self.below: Counter[Hashable] = Counter()  # interfaces of this node and all below: of forests only
        self.parents: dict[Node, None] = {}
        self.children = Brood()

    @property
    def key(self) -> Key | None:
        """One equality, under which siblings look the node up."""
        return next(iter(self.keys), None)

    def may_cover(self, other: Node) -> bool:
        """Tell whether nothing simple speaks against this node covering the other."""
        if self.needs & ~other.needs or not self.keys <= other.keys:
            return False
        theirs = other.spans
        for name, (low, high) in self.spans.items():
            span = theirs.get(name)
            if span is not None and (span[0] < low or span[1] > high):
                return False
        return True


class Brood:
    """Nodes with the same parent, by the attributes they need and one equality each."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        """Start without nodes."""
        self.groups: dict[int, dict[Key | None, dict[Node, None]]] = {}

    def add(self, node: Node) -> None:
        """Take a node in."""
        self.groups.setdefault(node.needs, {}).setdefault(node.key, {})[node] = None

    def drop(self, node: Node) -> None:
        """Let a node go."""
        group = self.groups[node.needs]
        del group[node.key][node]
        if not group[node.key]:
            del group[node.key]
        if not group:
            del self.groups[node.needs]

    def __iter__(self) -> Iterator[Node]:
        """Yield all nodes."""
        return (node for group in self.groups.values() for nodes in group.values() for node in nodes)

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self.groups)

    def having(self, present: int) -> Iterator[Node]:
        """Yield the nodes that an event with these attributes might satisfy."""
        for needs, group in self.groups.items():
            if not needs & ~present:
                for nodes in group.values():
                    yield from nodes

    def above(self, node: Node) -> Iterator[Node]:
        """Yield the nodes that may cover this one."""
        for needs, group in self.groups.items():
            if needs & ~node.needs:
                continue
            for key in (None, *node.keys):
                yield from (one for one in group.get(key, ()) if one.may_cover(node))

    def beneath(self, node: Node) -> Iterator[Node]:
        """Yield the nodes that this one may cover."""
        for needs, group in self.groups.items():
            if not node.needs & ~needs:
                yield from (one for nodes in group.values() for one in nodes if node.may_cover(one))


class Coverage:
    """Makes nodes, and decides between them; counts how often it had to."""

    def __init__(self, ontology: Ontology) -> None:
        """Decide with these concepts; attributes may carry several values, whatever a schema says."""
        self._judge = Judge(ontology)
        self._bits: dict[str, int] = {}
        self.asked = 0

    def node(self, tree: Filter) -> Node:
        """Return a node for a bound filter."""
        self._judge.facts.start()
        return Node(tree, self._judge.drawn(tree), self._needs(tree))

    def covers(self, one: Node, two: Node) -> bool:
        """Tell whether the first certainly accepts all that the second accepts."""
        self.asked += 1
        self._judge.facts.start()
        case = Case(self._judge.facts, self._judge.drawn, steps=USUAL.steps)
        return case.covers(one.sketch, two.sketch)

    def present(self, reading: Reading) -> int:
        """Return the bits of the attributes that an event has."""
        bits, found = self._bits, 0
        for key, values in reading.values.items():
            if values:
                found |= bits.get(key[0], 0)
        for name, parts in reading.elements.items():
            if parts:
                found |= bits.get(name, 0)
        return found

    def _needs(self, tree: Filter) -> int:
        """Return the bits of the attributes without which the filter accepts nothing."""
        match tree:
            case Test(attribute, condition):
                return 0 if isinstance(condition, IsNull) else self._bit(attribute)
            case And(parts):
                return _joined(map(self._needs, parts))
            case Or(parts):
                found = EVERY
                for part in parts:
                    found &= self._needs(part)
                return found
            case Not():
                return 0

    def _bit(self, name: str) -> int:
        bit = self._bits.get(name)
        if bit is None:
            bit = self._bits[name] = 1 << len(self._bits)
        return bit


def _joined(needs: Iterable[int]) -> int:
    found = 0
    for bits in needs:
        found |= bits
    return found


def _parts(tree: Filter) -> list[Test]:
    """Return the plain tests that must all hold."""
    parts = tree.parts if isinstance(tree, And) else (tree,)
    return [part for part in parts if isinstance(part, Test) and part.quantifier is Quantifier.ANY]


def _keys(tree: Filter) -> frozenset[Key]:
    tests = _parts(tree)
    return frozenset((test.attribute, test.condition.value) for test in tests if isinstance(test.condition, Is))


def _spans(tree: Filter) -> dict[str, tuple[Any, Any]]:
    """Return the numbers that an attribute may have, where one test alone says so."""
    found: dict[str, tuple[Any, Any] | None] = {}
    for test in _parts(tree):
        match test.condition:
            case Range(low, high) if type(low if high is None else high) in (int, float):
                span = (-INFINITE if low is None else low, INFINITE if high is None else high)
                found[test.attribute] = None if test.attribute in found else span
            case _:
                found[test.attribute] = None
    return {name: span for name, span in found.items() if span is not None}
