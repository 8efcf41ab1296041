"""The index of one root of an attribute tree in CTPS: who asks, by which name, for which concept, text or number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.papers.ctps.bit_rows import encode_operand
from tidings.papers.ctps.concept_terms import MEASURED, list_ancestors, to_value_spans

if TYPE_CHECKING:
    from array import array

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.papers.ctps.bit_rows import BitNode
    from tidings.papers.ctps.concept_terms import TermCompiler

MAX_CACHED_OPERANDS = 4096
"""Values whose nodes are remembered between events, for each root."""


class RootIndex:
    """Nodes of names (m1), concepts (m2, by tree), texts (m3) and existence; grids (m4) by scale.

    `constrained_row` is the bit array of all subscriptions that constrain this root. One that `has_single_name` has no
    tree of names.
    """

    def __init__(
        self, name: TypedAttribute, constrained_row: int, at: int, *, has_single_name: bool, terms: TermCompiler
    ) -> None:
        """Start without nodes; `at` is the root's number."""
        self.name, self.constrained_row, self.at, self.has_single_name = name, constrained_row, at, has_single_name
        self._terms = terms
        self.names: dict[TypedAttribute, BitNode] = {}
        self.concepts: dict[str, dict[str, BitNode]] = {}
        self.texts: dict[Any, BitNode] = {}
        self.exists: dict[None, BitNode] = {}
        self.grids: dict[str, int] = {}
        self._operands: dict[str, array[int]] = {}

    def clear_cache(self) -> None:
        """Forget the remembered operands: nodes have changed."""
        self._operands.clear()

    def is_empty(self) -> bool:
        """Tell whether nobody asks anything here."""
        return not any((self.names, self.texts, self.exists, self.grids, *self.concepts.values()))

    def get_operand(self, value: Any) -> array[int]:
        """Return the nodes of a value as the kernel reads them; those of texts are remembered."""
        if type(value) is not str:
            return encode_operand(self._find_nodes(value))
        code = self._operands.get(value)
        if code is None:
            if len(self._operands) >= MAX_CACHED_OPERANDS:
                self._operands.clear()
            code = self._operands[value] = encode_operand(self._find_nodes(value))
        return code

    def _find_nodes(self, value: Any) -> list[BitNode]:
        """Return the nodes of a text, of a concept and of all above it (Algorithms 7 and 8)."""
        nodes_of_value = [*self.exists.values()]
        if not isinstance(value, str | bool):
            return nodes_of_value
        if value in self.texts:
            nodes_of_value.append(self.texts[value])
        if isinstance(value, bool):
            return nodes_of_value
        for label, nodes in self.concepts.items():
            concept = self._terms.find_concept(label, value)
            if concept is not None:
                nodes_of_value += [
                    nodes[above] for above in list_ancestors(self._terms.get_tree(label), concept) if above in nodes
                ]
        return nodes_of_value

    def write_queries(self, value: Any, code: array[int], queries: list[tuple[float, float, int, int]]) -> None:
        """Write the grids that a number, a time or a range is looked up in, and where (Algorithm 9)."""
        spans = to_value_spans(value) if self.grids and type(value) in MEASURED else ()
        indexed = [span for span in spans if span.scale in self.grids]
        code.append(len(indexed))
        for span in indexed:
            code.fromlist([self.grids[span.scale], len(queries)])
            queries.append((span.low, span.high, span.low_tie, span.high_tie))
