"""Conjunctions merged into one tree: what `filter-tree` and `candidates-tree` share.

From "Streaming matching of events" (Schitinin, Tsesko, 2016), sections 2.3 to 2.5. A conjunction is a path of
steps, one for each attribute's name, in one order of names; paths with the same beginning share their nodes. A
node has a step (the paper's `value`), the rows that end there (`filters`), and its children by name.

`Tree.descend` is Algorithm 1, corrected: the printed `while terms` never advances. It must take the head, go on
without it, and go on with each child that covers it. Read so, a node is visited again for each term that is left
out; here a node looks through its own names, which all come later in the order, so it is visited once, and terms
that no child mentions cost nothing. A stack takes the place of the recursion.

Children of one name are found by hash where their value is fixed; a set is one node under each of its values, so
two sets in a path multiply nothing; ranges are compared one by one, many of them in flat arrays; all else is asked
of the law.

Insert and delete: O(steps) dictionary look-ups. Match: O(nodes visited + ranges and other tests beside them), at
worst two to the power of the names. Space: O(steps) nodes where no paths meet.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tidings.algebra import holds
from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute
from tidings.model import Range
from tidings.papers.classifieds.path_steps import RANGE, SET, closed, is_exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tidings.algebra import Reading, Setting
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.papers.classifieds.path_steps import Step

MANY = 32
"""From so many ranges on, NumPy's way costs less than a loop over them."""

_UNLIKE = frozenset((Range, Mismatch))
"""The types of values that are not found by hash and do not compare with the ends of ranges."""

Spans: TypeAlias = "tuple[NDArray[np.float64], NDArray[np.float64], list[Node]]"
"""The low ends, the high ends, and the nodes."""


def spans_of(ranges: dict[Any, Node]) -> Spans | Literal[False]:
    """Return ranges as arrays of closed ends; false where some have no such ends."""
    ends = [closed(*key) for key in ranges]
    if None in ends:
        return False
    flat = np.array(ends, np.float64)
    return flat[:, 0].copy(), flat[:, 1].copy(), list(ranges.values())


# Implementer's note: most groups have one table with one node, so tables are made when they are needed.
class Group:
    """The children of a node under one name, by their sort; `holding` has the nodes of sets under each value."""

    __slots__ = ("fixed", "holding", "ranges", "sets", "spans", "tested")

    def __init__(self) -> None:
        """Start without children."""
        self.fixed: dict[Any, Node] | None = None
        self.sets: dict[Any, Node] | None = None
        self.ranges: dict[Any, Node] | None = None
        self.tested: dict[Any, Node] | None = None
        self.holding: dict[Any, dict[Node, None]] | None = None
        self.spans: Spans | Literal[False] | None = None  # of `ranges`, if they can be; nothing after a change

    def child(self, step: Step, parent: Node) -> Node:
        """Return the child of this step; it is made where there is none."""
        table = getattr(self, step.sort)
        if table is None:
            table = {}
            setattr(self, step.sort, table)
        found: Node | None = table.get(step.key)
        if found is None:
            found = table[step.key] = Node(step, parent)
            if step.sort is SET:
                if self.holding is None:
                    self.holding = {}
                for value in step.key:
                    self.holding.setdefault(value, {})[found] = None
            elif step.sort is RANGE:
                self.spans = None
        return found

    def drop(self, step: Step) -> None:
        """Forget the child of this step."""
        table = getattr(self, step.sort)
        gone = table.pop(step.key)
        if not table:
            setattr(self, step.sort, None)
        if step.sort is RANGE:
            self.spans = None
        if step.sort is SET and self.holding is not None:
            for value in step.key:
                nodes = self.holding[value]
                del nodes[gone]
                if not nodes:
                    del self.holding[value]

    def __len__(self) -> int:
        """Count the children."""
        return sum(len(table) for table in (self.fixed, self.sets, self.ranges, self.tested) if table)

    def __iter__(self) -> Iterator[Node]:
        """Yield the children."""
        for table in (self.fixed, self.sets, self.ranges, self.tested):
            if table is not None:
                yield from table.values()

    def covering(self, values: tuple[Any, ...], reading: Reading, setting: Setting) -> Iterable[Node]:
        """Return the children that cover some of the values: lines 9 to 11 of Algorithm 1."""
        if len(values) != 1 or type(values[0]) in _UNLIKE:
            return self._covering_several(values, reading, setting)
        value, found = values[0], list[Node]()
        if self.fixed is not None and (child := self.fixed.get(value)) is not None:
            found.append(child)
        if self.holding is not None:
            found += self.holding.get(value, ())
        if self.ranges is not None:
            found += self._holding_number(value)
        if self.tested is not None:
            found += [child for child in self.tested.values() if holds(child.test, reading, setting)]
        return found

    def _holding_number(self, value: Any) -> Iterable[Node]:
        """Return the children whose range holds a value: compared one by one, many of them in flat arrays."""
        assert self.ranges is not None
        if len(self.ranges) >= MANY and is_exact(value):
            if self.spans is None:
                self.spans = spans_of(self.ranges)
            if self.spans:
                lows, highs, nodes = self.spans
                number = float(value)
                return [nodes[at] for at in np.flatnonzero((lows <= number) & (number <= highs)).tolist()]
        return [
            child
            for (low, high, low_open, high_open), child in self.ranges.items()
            if (low is None or (low < value if low_open else low <= value))
            and (high is None or (value < high if high_open else value <= high))
        ]

    def _covering_several(self, values: tuple[Any, ...], reading: Reading, setting: Setting) -> Iterable[Node]:
        """Do the same for no value (a null, an array of records), several, what could not be read, or ranges.

        No hash finds a range; and what could not be read is found by none and compares with nothing.
        """
        if any(type(value) is Range for value in values):
            return [child for child in self if holds(child.test, reading, setting)]
        found: dict[Node, None] = {}
        for value in values:
            if self.fixed is not None and (child := self.fixed.get(value)) is not None:
                found[child] = None
            if self.holding is not None:
                found.update(self.holding.get(value, {}))
        for table in (self.ranges, self.tested):
            if table is not None:
                found.update((child, None) for child in table.values() if holds(child.test, reading, setting))
        return found


class Node:
    """A place in the tree: the step that leads here, the rows that end here, the children by their name's number."""

    __slots__ = ("children", "parent", "rows", "step")

    def __init__(self, step: Step | None = None, parent: Node | None = None) -> None:
        """Start without rows and children; the root has no step."""
        self.step, self.parent = step, parent
        self.rows: array[int] | None = None
        self.children: dict[int, Group] | None = None

    @property
    def test(self) -> Filter:
        """What the law is asked here."""
        assert self.step is not None
        return self.step.test

    def path(self) -> list[Step]:
        """Return the steps from the root."""
        steps: list[Step] = []
        node: Node | None = self
        while node is not None and node.step is not None:
            steps.append(node.step)
            node = node.parent
        return steps[::-1]


class Tree:
    """Paths merged into one tree."""

    def __init__(self) -> None:
        """Start with a root."""
        self.root = Node()
        self._numbers: dict[TypedAttribute, int] = {}  # small ones are looked up faster than names

    def children(self, node: Node, name: TypedAttribute) -> Iterable[Node]:
        """Return the children of a node under a name."""
        return (node.children or {}).get(self._numbers.get(name, -1), ())

    def insert(self, steps: Sequence[Step]) -> Node:
        """Return the node at the end of a path; what is missing of it is made."""
        node = self.root
        for step in steps:
            if node.children is None:
                node.children = {}
            number = self._numbers.setdefault(step.name, len(self._numbers))
            group = node.children.get(number)
            if group is None:
                group = node.children[number] = Group()
            node = group.child(step, node)
        return node

    def prune(self, node: Node) -> None:
        """Take out a node that nothing ends at or passes, and then its parent, as far as that goes."""
        while not node.rows and not node.children and node.parent is not None and node.step is not None:
            parent, step = node.parent, node.step
            assert parent.children is not None
            number = self._numbers[step.name]
            group = parent.children[number]
            group.drop(step)
            if not len(group):
                del parent.children[number]
            node = parent
        if not self.root.children:
            self._numbers.clear()

    def descend(self, reading: Reading, setting: Setting) -> list[Node]:
        """Return the nodes that an event reaches, each once; what ends there accepts it."""
        terms = self._terms(reading)
        visited = [self.root]
        for node in visited:  # the list grows while it is read: every child that covers the event joins it
            if node.children is not None:
                for number, group in node.children.items():
                    term = terms.get(number)
                    if term is not None:
                        visited += group.covering(term, reading, setting)
        return visited

    def _terms(self, reading: Reading) -> dict[int, tuple[Any, ...]]:
        """Return what an event says of names, by their numbers: values, or none where a test may ask for more."""
        numbers = self._numbers
        terms: dict[int, tuple[Any, ...]] = {}
        for attribute in reading.nulls | reading.elements.keys():
            for kind in ("", "record"):
                number = numbers.get(TypedAttribute(attribute, kind))
                if number is not None:
                    terms[number] = ()
        for name, values in reading.values.items():
            number = numbers.get(name)
            if values and number is not None:
                terms[number] = values
        return terms

    def nodes(self) -> Iterator[Node]:
        """Yield every node."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            for group in (node.children or {}).values():
                stack += group


class Rows:
    """Rows by number: whose they are, and at which node and place of it; numbers of rows that went are used again."""

    def __init__(self) -> None:
        """Start without rows."""
        self.ids: list[SubId | None] = []
        self.nodes: list[Node | None] = []
        self._places = array("i")
        self._free: list[int] = []

    def __len__(self) -> int:
        """Count the rows that are in use."""
        return len(self.ids) - len(self._free)

    def put(self, id: SubId, node: Node) -> int:
        """Let a row of this subscription end at a node, and return its number."""
        if node.rows is None:
            node.rows = array("i")
        if self._free:
            row = self._free.pop()
            self.ids[row], self.nodes[row], self._places[row] = id, node, len(node.rows)
        else:
            row = len(self.ids)
            self.ids.append(id)
            self.nodes.append(node)
            self._places.append(len(node.rows))
        node.rows.append(row)
        return row

    def take(self, row: int) -> Node:
        """Take a row away and return its node; the node's last row takes its place there."""
        node = self.nodes[row]
        assert node is not None
        assert node.rows is not None
        last = node.rows.pop()
        if last != row:
            node.rows[self._places[row]] = last
            self._places[last] = self._places[row]
        if not node.rows:
            node.rows = None
        self.ids[row] = self.nodes[row] = None
        self._free.append(row)
        return node
