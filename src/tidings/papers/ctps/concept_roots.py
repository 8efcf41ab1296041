"""The index of one root of an attribute tree in CTPS: who asks, by which name, for which concept, text or number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.papers.ctps.bit_rows import operand
from tidings.papers.ctps.concept_terms import MEASURED, ancestors, spans_of_value

if TYPE_CHECKING:
    from array import array

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.papers.ctps.bit_rows import Node
    from tidings.papers.ctps.concept_terms import Terms

REMEMBERED = 4096
"""Values whose nodes are remembered between events, for each root."""


class Root:
    """Nodes of names (m1), concepts (m2, by tree), texts (m3) and existence; grids (m4) by scale.

    `asked` is the bit array of all subscriptions that ask anything here. A root that is `alone` has no tree of names.
    """

    def __init__(self, name: TypedAttribute, asked: int, at: int, *, alone: bool, terms: Terms) -> None:
        """Start without nodes; `at` is the root's number."""
        self.name, self.asked, self.at, self.alone = name, asked, at, alone
        self._terms = terms
        self.names: dict[TypedAttribute, Node] = {}
        self.concepts: dict[str, dict[str, Node]] = {}
        self.texts: dict[Any, Node] = {}
        self.exists: dict[None, Node] = {}
        self.grids: dict[str, int] = {}
        self._operands: dict[str, array[int]] = {}

    def forget(self) -> None:
        """Forget the remembered operands: nodes have changed."""
        self._operands.clear()

    def is_empty(self) -> bool:
        """Tell whether nobody asks anything here."""
        return not any((self.names, self.texts, self.exists, self.grids, *self.concepts.values()))

    def operand_of(self, value: Any) -> array[int]:
        """Return the nodes of a value as the kernel reads them; those of texts are remembered."""
        if type(value) is not str:
            return operand(self._nodes_of(value))
        found = self._operands.get(value)
        if found is None:
            if len(self._operands) >= REMEMBERED:
                self._operands.clear()
            found = self._operands[value] = operand(self._nodes_of(value))
        return found

    def _nodes_of(self, value: Any) -> list[Node]:
        """Return the nodes of a text, of a concept and of all above it (Algorithms 7 and 8)."""
        found = [*self.exists.values()]
        if not isinstance(value, str | bool):
            return found
        if value in self.texts:
            found.append(self.texts[value])
        if isinstance(value, bool):
            return found
        for label, nodes in self.concepts.items():
            concept = self._terms.concept(label, value)
            if concept is not None:
                found += [nodes[above] for above in ancestors(self._terms.tree(label), concept) if above in nodes]
        return found

    def write_queries(self, value: Any, code: array[int], queries: list[tuple[float, float, int, int]]) -> None:
        """Write the grids that a number, a time or a range is looked up in, and where (Algorithm 9)."""
        spans = spans_of_value(value) if self.grids and type(value) in MEASURED else ()
        asked = [span for span in spans if span.scale in self.grids]
        code.append(len(asked))
        for span in asked:
            code.fromlist([self.grids[span.scale], len(queries)])
            queries.append((span.low, span.high, span.low_tie, span.high_tie))
