"""Bit arrays of one length in one table, the nodes that have them, and the nodes of each root of an attribute tree.

A node with few subscriptions keeps their numbers in a list; from one number for `WORDS_EACH` words on it has a bit
array. So a node costs as much as its subscriptions, and a tree or dictionary of many thousand names does not fill the
memory with zeros.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.kernels.bits import clear_bits, set_bits
from tidings.papers.common.growable_arrays import grow
from tidings.papers.ctps.concept_terms import MEASURED, TermCompiler, to_value_spans

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.kernels.array_types import WordArray
    from tidings.papers.ctps.concept_terms import OrderedSpan

WORDS_EACH = 32
"""A list has at most one number for so many words of an array; where arrays are short, all nodes have one."""

MAX_CACHED_OPERANDS = 4096
"""Values whose operands are cached between events, for each root."""

GridQueries: TypeAlias = "list[tuple[float, float, int, int]]"
"""Intervals that grids are searched for: low and high end, and their ties."""

GROWTH = 1.25
"""Tables grow by this factor at least, so that copying is a constant for each subscription."""


class BitRows:
    """A table of bit arrays; rows are handed out empty and taken back."""

    def __init__(self) -> None:
        """Start with room for 64 subscriptions; row 0 holds all of them."""
        self.bits: WordArray = np.zeros((8, 1), np.uint64)
        self._used = 1
        self._free: list[int] = []

    @property
    def words(self) -> int:
        """The length of every array."""
        return int(self.bits.shape[1])

    @property
    def max_listed(self) -> int:
        """How many numbers a list may have."""
        return self.words // WORDS_EACH

    def allocate(self) -> int:
        """Return an empty row."""
        if self._free:
            return self._free.pop()
        if self._used == len(self.bits):
            self.bits = grow(self.bits, (int(self._used * GROWTH) + 8, self.words))
        self._used += 1
        return self._used - 1

    def release(self, row: int) -> None:
        """Take a row back."""
        self.bits[row] = 0
        self._free.append(row)

    def widen(self, subscriptions: int) -> bool:
        """Make room for `subscriptions`; return whether the arrays became longer."""
        words = -(-subscriptions // 64)
        if words <= self.words:
            return False
        self.bits = grow(self.bits, (0, max(words, int(self.words * GROWTH))))
        return True


class BitNode:
    """The subscriptions at a node of a tree: a list of their numbers, or a row of the table."""

    __slots__ = ("count", "home", "key", "listed", "number", "pending", "root", "row")

    def __init__(self, root: RootIndex, home: dict[Any, BitNode], key: Any) -> None:
        """Start empty; `home[key]` is where the node is found."""
        self.root, self.home, self.key = root, home, key
        self.number, self.row, self.count = -1, -1, 0
        self.listed: array[int] | None = None
        self.pending: list[int] = []

    @property
    def place(self) -> int:
        """The node's row; where it has none, -1 minus the node's number."""
        return self.row if self.row >= 0 else -1 - self.number

    def commit(self, rows: BitRows) -> None:
        """Add the pending subscriptions."""
        self.count += len(self.pending)
        if self.row < 0 and self.count <= rows.max_listed:
            self.listed = (self.listed or array("i")) + array("i", self.pending)
        else:
            if self.row < 0:
                self.row = rows.allocate()
                self.pending += self.listed or ()
                self.listed = None
            set_bits(rows.bits[self.row], np.array(self.pending, np.int64))
        self.pending = []

    def demote(self, rows: BitRows) -> None:
        """Become a list again where the arrays have become too long for so few subscriptions."""
        if self.row >= 0 and self.count <= rows.max_listed // 2:
            ones = np.flatnonzero(np.unpackbits(rows.bits[self.row].view(np.uint8), bitorder="little"))
            self.listed = array("i", ones.tolist())
            rows.release(self.row)
            self.row = -1

    def discard(self, id: int, rows: BitRows) -> bool:
        """Forget a subscription; return whether none is left."""
        self.count -= 1
        if self.row >= 0:
            clear_bits(rows.bits[self.row], np.array([id], np.int64))
        elif self.listed is not None:
            self.listed.remove(id)
        if self.count:
            return False
        if self.row >= 0:
            rows.release(self.row)
            self.row = -1
        self.listed = None
        return True


def encode_operand(rows: list[int], nodes: Iterable[BitNode]) -> array[int]:
    """Return rows, and what nodes list, as the kernel reads them: how many rows and which, how many ids and which."""
    ids = [id for node in nodes if node.listed is not None for id in node.listed]
    return array("i", [len(rows), *rows, len(ids), *ids])


class PendingBits:
    """Bits that wait to be set together: at nodes, of those that constrain a root, in grids with their intervals."""

    def __init__(self) -> None:
        self.nodes: list[BitNode] = []
        self.bits_by_root: dict[RootIndex, list[int]] = {}
        self.spans_by_grid: dict[int, tuple[list[int], list[OrderedSpan]]] = {}
        self.bits: list[int] = []

    def note(self, node: BitNode, bit: int) -> int:
        """Note a bit at a node, and return the node's number."""
        if not node.pending:
            self.nodes.append(node)
        node.pending.append(bit)
        return node.number


class RootIndex:
    """Nodes of names (m1), concepts (m2, by tree), texts (m3) and existence; grids (m4) by scale.

    `constrained_row` is the bit array of all subscriptions that constrain this root. One that `has_single_name` has no
    tree of names.
    """

    def __init__(
        self, name: TypedAttribute, constrained_row: int, *, has_single_name: bool, terms: TermCompiler
    ) -> None:
        self.name, self.constrained_row, self.has_single_name = name, constrained_row, has_single_name
        self.at = -1
        """The root's number among those of the matcher."""
        self._terms = terms
        self.names: dict[TypedAttribute, BitNode] = {}
        self.concepts: dict[str, dict[str, BitNode]] = {}
        self.texts: dict[str | bool, BitNode] = {}
        self.exists: dict[None, BitNode] = {}
        self.grids: dict[str, int] = {}
        self.operands: dict[str, array[int]] = {}
        """The nodes of texts as the kernel reads them: a cache, to be cleared when nodes change."""

    def is_empty(self) -> bool:
        """Tell whether no subscription constrains the root."""
        return not any((self.names, self.texts, self.exists, self.grids, *self.concepts.values()))

    def get_operand(self, value: Any) -> array[int]:
        """Return the nodes of a value as the kernel reads them; those of texts are cached."""
        is_text = type(value) is str
        code = self.operands.get(value) if is_text else None
        if code is None:
            nodes = self._find_nodes(value)
            code = encode_operand([node.row for node in nodes if node.row >= 0], nodes)
            if is_text:
                if len(self.operands) >= MAX_CACHED_OPERANDS:
                    self.operands.clear()
                self.operands[value] = code
        return code

    def _find_nodes(self, value: object) -> list[BitNode]:
        """Return the nodes of a text, of a concept and of all above it (Algorithms 7 and 8)."""
        nodes = [*self.exists.values()]
        if isinstance(value, str | bool) and value in self.texts:
            nodes.append(self.texts[value])
        if isinstance(value, str):
            nodes += self._terms.list_at_or_above(self.concepts, value)
        return nodes

    def write_queries(self, value: object, code: array[int], queries: GridQueries) -> None:
        """Append the grids that a number, a time or a range is looked up in, and its intervals (Algorithm 9)."""
        spans = to_value_spans(value) if self.grids and type(value) in MEASURED else ()
        indexed = [span for span in spans if span.scale in self.grids]
        code.append(len(indexed))
        for span in indexed:
            code.fromlist([self.grids[span.scale], len(queries)])
            queries.append((span.low, span.high, span.low_tie, span.high_tie))
