"""Conjunctions merged into one tree, which `filter-tree` and `candidates-tree` share.

From "Streaming matching of events" (Schitinin, Tsesko, 2016), sections 2.3 to 2.5. A conjunction is a path of
steps, one for each attribute's name, in one order of names; paths with the same beginning share their nodes. A
node has a step (the paper's `value`), the rows that end there (`filters`), and its children by name.

`ConjunctionTree.descend` is Algorithm 1, corrected (README.md here): instead of leaving terms out one after the other,
it looks up the names of a node's children, which all come later in the order. So a node is visited once, and terms that
no child mentions cost nothing.

Children of one name are found by hash where their value is fixed; a set is one node under each of its values, so two
sets in a path do not multiply; ranges are compared one by one, many of them in flat arrays; all other tests are
evaluated by `algebra.holds`.

Insert and delete: O(steps) dictionary look-ups. Match: O(nodes visited + ranges and other tests beside them), at
worst two to the power of the names. Space: O(steps) nodes where no paths meet.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tidings.algebra import Reading, Setting, holds
from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute
from tidings.model import Filter, Range
from tidings.papers.classifieds.path_steps import RANGE, SET, PathStep, close_ends, is_exact
from tidings.papers.common.slots import RowOwners

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from tidings.algebra.law.event_reading import ReadValue
    from tidings.kernels.array_types import FloatArray
    from tidings.matcher.algorithm import SubId

MIN_VECTORIZED = 32
"""From this many ranges on, NumPy is faster than a loop over them."""

_UNHASHED_TYPES = frozenset((Range, Mismatch))
"""The types of values that are not found by hash and do not compare with the ends of ranges."""

RangeKey: TypeAlias = "tuple[Any, Any, bool, bool]"
"""The ends of a range, and whether each is open."""

RangeArrays: TypeAlias = "tuple[FloatArray, FloatArray, list[PathNode]]"
"""The low ends, the high ends, and the nodes."""


def build_range_arrays(ranges: dict[RangeKey, PathNode]) -> RangeArrays | Literal[False]:
    """Return ranges as arrays of closed ends; False where some end is not exact in float64."""
    ends = [close_ends(*key) for key in ranges]
    if None in ends:
        return False
    flat = np.array(ends, np.float64)
    return flat[:, 0].copy(), flat[:, 1].copy(), list(ranges.values())


# Most groups have one table with one node, so a table is made when its first node comes.
class NodeGroup:
    """The children of a node under one name, by the kind of their step; `by_member` has sets under each value."""

    __slots__ = ("by_member", "fixed", "others", "range_arrays", "ranges", "sets")

    def __init__(self) -> None:
        self.fixed: dict[Hashable, PathNode] | None = None
        self.sets: dict[Hashable, PathNode] | None = None
        self.ranges: dict[RangeKey, PathNode] | None = None
        self.others: dict[Hashable, PathNode] | None = None
        self.by_member: dict[Hashable, dict[PathNode, None]] | None = None
        self.range_arrays: RangeArrays | Literal[False] | None = None  # built when needed, dropped by a change

    def get_child(self, step: PathStep, parent: PathNode) -> PathNode:
        """Return the child of this step; make it where there is none."""
        table = getattr(self, step.kind)
        if table is None:
            table = {}
            setattr(self, step.kind, table)
        node: PathNode | None = table.get(step.key)
        if node is None:
            node = table[step.key] = PathNode(step, parent)
            if step.kind is SET:
                if self.by_member is None:
                    self.by_member = {}
                for value in step.key:
                    self.by_member.setdefault(value, {})[node] = None
            elif step.kind is RANGE:
                self.range_arrays = None
        return node

    def remove(self, step: PathStep) -> None:
        """Forget the child of this step."""
        table = getattr(self, step.kind)
        gone = table.pop(step.key)
        if not table:
            setattr(self, step.kind, None)
        if step.kind is RANGE:
            self.range_arrays = None
        if step.kind is SET and self.by_member is not None:
            for value in step.key:
                nodes = self.by_member[value]
                del nodes[gone]
                if not nodes:
                    del self.by_member[value]

    def __iter__(self) -> Iterator[PathNode]:
        for table in (self.fixed, self.sets, self.ranges, self.others):
            if table is not None:
                yield from table.values()

    def find_covering(self, values: tuple[ReadValue, ...], reading: Reading, setting: Setting) -> Iterable[PathNode]:
        """Return the children that cover some of the values: lines 9 to 11 of Algorithm 1."""
        if len(values) != 1 or type(values[0]) in _UNHASHED_TYPES:
            return self._find_covering_any(values, reading, setting)
        value, nodes = values[0], list[PathNode]()
        if self.fixed is not None and (child := self.fixed.get(value)) is not None:
            nodes.append(child)
        if self.by_member is not None:
            nodes += self.by_member.get(value, ())
        if self.ranges is not None:
            nodes += self._find_ranges(value)
        if self.others is not None:
            nodes += [child for child in self.others.values() if holds(child.test, reading, setting)]
        return nodes

    def _find_ranges(self, value: Any) -> Iterable[PathNode]:
        """Return the children whose range holds a value: compared one by one, many of them in flat arrays."""
        assert self.ranges is not None
        if len(self.ranges) >= MIN_VECTORIZED and is_exact(value):
            if self.range_arrays is None:
                self.range_arrays = build_range_arrays(self.ranges)
            if self.range_arrays:
                lows, highs, nodes = self.range_arrays
                number = float(value)
                return [nodes[at] for at in np.flatnonzero((lows <= number) & (number <= highs)).tolist()]
        return [
            child
            for (low, high, low_open, high_open), child in self.ranges.items()
            if (low is None or (low < value if low_open else low <= value))
            and (high is None or (value < high if high_open else value <= high))
        ]

    def _find_covering_any(
        self, values: tuple[ReadValue, ...], reading: Reading, setting: Setting
    ) -> Iterable[PathNode]:
        """Do the same for no value (a null, an array of records), several, one that could not be read, or ranges."""
        if any(type(value) is Range for value in values):
            return [child for child in self if holds(child.test, reading, setting)]
        nodes: dict[PathNode, None] = {}
        for value in values:
            if self.fixed is not None and (child := self.fixed.get(value)) is not None:
                nodes[child] = None
            if self.by_member is not None:
                nodes.update(self.by_member.get(value, {}))
        for table in (self.ranges, self.others):
            if table is not None:
                nodes.update((child, None) for child in table.values() if holds(child.test, reading, setting))
        return nodes


class PathNode:
    """A node of the tree: the step that leads to it, the rows that end there, the children by their name's number."""

    __slots__ = ("children", "parent", "rows", "step")

    def __init__(self, step: PathStep | None = None, parent: PathNode | None = None) -> None:
        """Start without rows and children; the root has no step."""
        self.step, self.parent = step, parent
        self.rows: array[int] | None = None
        self.children: dict[int, NodeGroup] | None = None

    @property
    def test(self) -> Filter:
        """The test of the step that leads here."""
        assert self.step is not None
        return self.step.test

    def list_steps(self) -> list[PathStep]:
        """Return the steps from the root."""
        steps: list[PathStep] = []
        node: PathNode | None = self
        while node is not None and node.step is not None:
            steps.append(node.step)
            node = node.parent
        return steps[::-1]


class ConjunctionTree:
    """Conjunctions as paths of steps, merged into one tree: common beginnings are stored once."""

    def __init__(self) -> None:
        self.root = PathNode()
        self._numbers: dict[TypedAttribute, int] = {}  # of names; numbers are looked up faster

    def list_children(self, node: PathNode, name: TypedAttribute) -> Iterable[PathNode]:
        """Return the children of a node under a name."""
        return (node.children or {}).get(self._numbers.get(name, -1), ())

    def insert(self, steps: Sequence[PathStep]) -> PathNode:
        """Return the node at the end of a path; make the nodes that are missing."""
        node = self.root
        for step in steps:
            if node.children is None:
                node.children = {}
            number = self._numbers.setdefault(step.name, len(self._numbers))
            group = node.children.get(number)
            if group is None:
                group = node.children[number] = NodeGroup()
            node = group.get_child(step, node)
        return node

    def prune(self, node: PathNode) -> None:
        """Remove a node without rows and children, and then its parent, as far as that goes."""
        while not node.rows and not node.children and node.parent is not None and node.step is not None:
            parent, step = node.parent, node.step
            assert parent.children is not None
            number = self._numbers[step.name]
            group = parent.children[number]
            group.remove(step)
            if not any(group):
                del parent.children[number]
            node = parent
        if not self.root.children:
            self._numbers.clear()

    def descend(self, reading: Reading, setting: Setting) -> list[PathNode]:
        """Return the nodes that an event reaches, each once; it satisfies all paths that end there."""
        terms = self._group_values(reading)
        visited = [self.root]
        for node in visited:  # the list grows while it is read: every child that covers the event joins it
            if node.children is not None:
                for number, group in node.children.items():
                    term = terms.get(number)
                    if term is not None:
                        visited += group.find_covering(term, reading, setting)
        return visited

    def _group_values(self, reading: Reading) -> dict[int, tuple[ReadValue, ...]]:
        """Return an event's values by the numbers of names; none for a null or records, which a test may accept."""
        numbers = self._numbers
        terms: dict[int, tuple[ReadValue, ...]] = {}
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

    def iterate_nodes(self) -> Iterator[PathNode]:
        """Yield every node."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            for group in (node.children or {}).values():
                stack += group


class PathRows:
    """Rows of subscriptions, and the node that each ends at."""

    def __init__(self) -> None:
        self.owners = RowOwners()
        self.nodes: list[PathNode] = []
        self._places = array("i")  # of each row, among those of its node

    def add(self, id: SubId, node: PathNode) -> int:
        """Let a row of this subscription end at a node, and return its number."""
        row = self.owners.allocate(id)
        if node.rows is None:
            node.rows = array("i")
        if row == len(self.nodes):
            self.nodes.append(node)
            self._places.append(0)
        self.nodes[row], self._places[row] = node, len(node.rows)
        node.rows.append(row)
        return row

    def detach(self, row: int) -> PathNode:
        """Take a row away from its node and return the node; its last row takes the place there."""
        node = self.nodes[row]
        assert node.rows is not None
        last = node.rows.pop()
        if last != row:
            node.rows[self._places[row]] = last
            self._places[last] = self._places[row]
        if not node.rows:
            node.rows = None
        return node
