"""The index of one root of an attribute tree in CTPS: subscriptions by name, and by concept, text or number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.papers.ctps.bit_rows import encode_operand
from tidings.papers.ctps.concept_terms import MEASURED, to_value_spans

if TYPE_CHECKING:
    from array import array

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.papers.ctps.bit_rows import BitNode
    from tidings.papers.ctps.concept_terms import TermCompiler

MAX_CACHED_OPERANDS = 4096
"""Values whose operands are cached between events, for each root."""


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
        self.texts: dict[Any, BitNode] = {}
        self.exists: dict[None, BitNode] = {}
        self.grids: dict[str, int] = {}
        self._operands: dict[str, array[int]] = {}

    def clear_cache(self) -> None:
        """Forget the cached operands: nodes have changed."""
        self._operands.clear()

    def is_empty(self) -> bool:
        """Tell whether no subscription constrains the root."""
        return not any((self.names, self.texts, self.exists, self.grids, *self.concepts.values()))

    def get_operand(self, value: Any) -> array[int]:
        """Return the nodes of a value as the kernel reads them; those of texts are cached."""
        is_text = type(value) is str
        code = self._operands.get(value) if is_text else None
        if code is None:
            nodes = self._find_nodes(value)
            code = encode_operand([node.row for node in nodes if node.row >= 0], nodes)
            if is_text:
                if len(self._operands) >= MAX_CACHED_OPERANDS:
                    self._operands.clear()
                self._operands[value] = code
        return code

    def _find_nodes(self, value: Any) -> list[BitNode]:
        """Return the nodes of a text, of a concept and of all above it (Algorithms 7 and 8)."""
        nodes = [*self.exists.values()]
        if isinstance(value, str | bool) and value in self.texts:
            nodes.append(self.texts[value])
        if isinstance(value, str):
            nodes += self._terms.list_at_or_above(self.concepts, value)
        return nodes

    def write_queries(self, value: Any, code: array[int], queries: list[tuple[float, float, int, int]]) -> None:
        """Append the grids that a number, a time or a range is looked up in, and its intervals (Algorithm 9)."""
        spans = to_value_spans(value) if self.grids and type(value) in MEASURED else ()
        indexed = [span for span in spans if span.scale in self.grids]
        code.append(len(indexed))
        for span in indexed:
            code.fromlist([self.grids[span.scale], len(queries)])
            queries.append((span.low, span.high, span.low_tie, span.high_tie))
