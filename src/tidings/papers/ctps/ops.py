"""OPS: subgraph matching, one subscription after the other.

Wang, Jin, Li, Shao, "Data model and matching algorithm in an ontology-based publish/subscribe system", 2005, as Zhang
et al. describe and measure it (CTPS, 2022, sections 2 and 6).

Event and subscription are graphs, here stars of edges; all nodes of a subscription are variables. The index does not
depend on subscriptions: it has all possible vertices (names, concepts) and edges (a name with a concept), and for each
edge those it may stand for: the name or one above with the concept or one above. Matching takes subscriptions one by
one and tries to map each of their edges to each of the event's.

Cost: to add or remove O(constraints); to match O(subscriptions x constraints x edges of the event x height squared);
memory O(constraints), and for each root and value tree (names x height) x (concepts x height), whatever the number of
subscriptions. An index beyond `limit` entries is refused.

Two edges of a subscription may be mapped to one edge of the event (corrected: README.md here).
"""

from __future__ import annotations

from array import array
from functools import cache
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from tidings.errors import Unsupported
from tidings.kernels.papers.concept_rows import search_graphs
from tidings.matcher.algorithm import Algorithm, SubId
from tidings.papers.common.growable_arrays import NO_ROWS, as_numpy, lengthen
from tidings.papers.ctps.concept_terms import ConceptTerm, TermCompiler, TermKind, TermRow, TermRows, list_ancestors
from tidings.papers.ctps.term_rows import EventPairs, TermColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Ontology
    from tidings.kernels.array_types import Int32Array, IntArray
    from tidings.model import Filter

_Node = TypeVar("_Node")

Ancestry: TypeAlias = "dict[_Node, tuple[_Node, ...]]"
"""Of each name or concept, itself and all above it."""

MAX_EDGES = 50_000_000
"""Entries that the possible edges of one root and value tree may have."""


class _EdgeTable:
    """All edges of one root's names to one tree's concepts, and what each may stand for."""

    def __init__(self, names: Ancestry[TypedAttribute], concepts: Ancestry[str], base: int) -> None:
        """Number the edges from `base` on: name by name, concept by concept."""
        self.base, self.users = base, 0
        self.names = {name: at for at, name in enumerate(names)}
        self.concepts = {concept: at for at, concept in enumerate(concepts)}
        self.size, width = len(names) * len(concepts), len(concepts)
        above_names = [np.array([self.names[each] for each in above], np.int32) * width for above in names.values()]
        above = [np.array([self.concepts[each] for each in each_above], np.int32) for each_above in concepts.values()]
        sizes = np.multiply.outer([len(each) for each in above_names], [len(each) for each in above]).ravel()
        self.ends = np.concatenate([[0], np.cumsum(sizes)])
        parts = [base + np.add.outer(name, concept).ravel() for name in above_names for concept in above]
        self.implied = np.concatenate(parts).astype(np.int32)

    def number_of(self, name: TypedAttribute, concept: str) -> int:
        """Return the number of an edge."""
        return self.base + self.names[name] * len(self.concepts) + self.concepts[concept]

    def list_implied(self, name: TypedAttribute, concept: str) -> Int32Array:
        """Return the edges that this one may stand for."""
        at = self.number_of(name, concept) - self.base
        return self.implied[self.ends[at] : self.ends[at + 1]]


class Ops(Algorithm):
    """Subgraph matching over an index of all possible edges."""

    def __init__(self, ontology: Ontology, *, limit: int = MAX_EDGES) -> None:
        """Start without subscriptions; an index of more than `limit` entries is refused."""
        self._terms, self._limit = TermCompiler("ops", ontology), limit
        self._columns = TermColumns(self._terms, self._add_row, self._remove_row)
        self._edges = array("i")  # of each term its edge, or -1
        self._edge_tables: dict[TypedAttribute, dict[str, _EdgeTable]] = {}  # by root and tree
        self._count_entries = cache(self._count_possible)
        self._next = 0

    def compile_filter(self, tree: Filter) -> TermRows:
        """Return the filter's rows of terms, or refuse trees whose possible edges are too many."""
        rows = self._terms.compile_rows(tree)
        for row in rows:
            for term in row:
                if term.kind is TermKind.CONCEPT:
                    self._refuse_large(term)
        return rows

    def _refuse_large(self, term: ConceptTerm) -> None:
        root, label = self._terms.find_root(term.name), term.value[0]
        entries = self._count_entries(root, label)
        if entries > self._limit:
            msg = (
                f"`ops` keeps all possible edges: {entries:,} entries for `{root.name}` and `{label}`, and the limit "
                f"is {self._limit:,}; use `ctps` or td.Matcher(), which keep what is asked for"
            )
            raise Unsupported(msg, kind="ops", part=f"{term.name.name} is a {term.value[1]}")

    def _count_possible(self, root: TypedAttribute, label: str) -> int:
        return prod(sum(map(len, vertices.values())) for vertices in self._list_vertices(root, label))

    def _list_vertices(self, root: TypedAttribute, label: str) -> tuple[Ancestry[TypedAttribute], Ancestry[str]]:
        """Return the names under a root and the concepts of a tree, each with itself and all above."""
        tree = self._terms.get_tree(label)
        names = {name: self._terms.list_names_above(name) for name in self._terms.list_names(root)}
        return names, {concept: list_ancestors(tree, concept) for concept in tree.names}

    def add_many(self, filters: Iterable[tuple[SubId, TermRows]]) -> None:
        """Take compiled filters in; a known id is replaced."""
        self._columns.add_many(filters)

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""
        self._columns.remove(id)

    def _add_row(self, at: int, row: TermRow) -> None:
        start = self._columns.starts[at]
        lengthen(self._edges, start + len(row))
        for place, term in enumerate(row, start):
            self._edges[place] = self._number_edge(term) if term.kind is TermKind.CONCEPT else -1

    def _number_edge(self, term: ConceptTerm) -> int:
        root, (label, concept) = self._terms.find_root(term.name), term.value
        tables = self._edge_tables.setdefault(root, {})
        if label not in tables:
            tables[label] = _EdgeTable(*self._list_vertices(root, label), self._next)
            self._next += tables[label].size
        tables[label].users += 1
        return tables[label].number_of(term.name, concept)

    def _remove_row(self, at: int) -> None:
        for term in self._columns.iterate_terms(at):
            if term.kind is TermKind.CONCEPT:
                root, label = self._terms.find_root(term.name), term.value[0]
                tables = self._edge_tables[root]
                tables[label].users -= 1
                if not tables[label].users:
                    del tables[label]
                if not tables:
                    del self._edge_tables[root]
        if not self._edge_tables:
            self._next = 0

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        del setting
        pairs = EventPairs(reading, self._columns)
        implied, ends = self._collect_edges(pairs)
        out = np.empty(self._columns.owners.capacity, np.int32)
        count = search_graphs(self._columns.arrays, as_numpy(self._edges), pairs.arrays, implied, ends, out)
        return self._columns.owners.resolve(out[:count].tolist())

    def _collect_edges(self, pairs: EventPairs) -> tuple[Int32Array, IntArray]:
        """Return the edges that each of the event's edges with a concept may stand for, and where each list ends."""
        parts: list[Int32Array] = []
        names, tops = self._columns.names.values, self._columns.tops.values
        for root, value, labels in pairs.pairs:
            for tree, table in self._edge_tables.get(tops[root], {}).items() if isinstance(value, str) else ():
                concept = self._terms.find_concept(tree, value)
                if concept is not None:
                    lowest = self._terms.select_lowest([names[label] for label in labels])
                    parts += [table.list_implied(name, concept) for name in lowest]
        ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return (np.concatenate(parts) if parts else NO_ROWS), ends

    @property
    def index_bytes(self) -> int:
        """The bytes of the index of possible edges, without the subscriptions."""
        return sum(table.implied.nbytes + table.ends.nbytes for table in self._iterate_tables())

    def _iterate_tables(self) -> Iterator[_EdgeTable]:
        return chain.from_iterable(tables.values() for tables in self._edge_tables.values())

    def explain(self) -> dict[str, object]:
        """Return how large the index is."""
        return {
            "algorithm": "OPS: subgraph matching, one by one",
            "filters": len(self._columns.owners),
            "possible edges": sum(table.size for table in self._iterate_tables()),
            "bytes of possible edges": self.index_bytes,
        }
