"""G-ToPSS: a hash index of the edges of subscription graphs, then a check of every candidate.

Petrovic, Liu, Jacobsen, "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005, as Zhang et al. describe and
measure it (CTPS, 2022, sections 2 and 6).

A subscription is a star: edges from one variable (the event) by an attribute's name to a value. The first level of
the index is the pair of an edge's vertices (a constant text, or `*` for a variable with a constraint), the second
its label, with a list of subscriptions. Stage one looks each pair of the event up under `*` and under its own value,
by its label and by every label above, and gathers the processing set. Stage two checks each of these constraint by
constraint; for `is a` it walks the event's concept up the tree until it meets the wanted one or the root.

Cost: to add or remove O(constraints) (removal shifts the rest of a list); to match O(processing set x constraints x
height); memory O(constraints). The processing set is every subscription that has one edge with a name of the event,
so nearly all of them where every subscription has the same few roots.

Corrected (README.md here): a set of texts is a variable edge; a constraint may be met by any of several values.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.papers.concept_rows import check_candidates
from tidings.matcher.algorithm import Algorithm, SubId
from tidings.papers.common.growable_arrays import concatenate
from tidings.papers.ctps.concept_terms import ConceptTerm, TermCompiler, TermKind, TermRow, TermRows
from tidings.papers.ctps.term_rows import EventPairs, TermColumns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Ontology
    from tidings.kernels.array_types import Int32Array
    from tidings.model import Filter

VARIABLE = None
"""The vertex `*`: a variable with a constraint."""


class GTopss(Algorithm):
    """A two-level hash of edges, and a check of each candidate."""

    def __init__(self, ontology: Ontology) -> None:
        self._terms = TermCompiler("g-topss", ontology)
        self._columns = TermColumns(self._terms, self._add_row, self._remove_row)
        self._edges: dict[Any, dict[TypedAttribute, array[int]]] = {}
        self._unconstrained = array("i")  # rows without edges: `true`

    def compile_filter(self, tree: Filter) -> TermRows:
        """Return the filter's rows of terms."""
        return self._terms.compile_rows(tree)

    def add_many(self, filters: Iterable[tuple[SubId, TermRows]]) -> None:
        """Take compiled filters in; a known id is replaced."""
        self._columns.add_many(filters)

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""
        self._columns.remove(id)

    def _add_row(self, at: int, row: TermRow) -> None:
        for vertex, label in dict.fromkeys(map(_to_edge, row)):
            _insert_sorted(self._edges.setdefault(vertex, {}).setdefault(label, array("i")), at)
        if not row:
            _insert_sorted(self._unconstrained, at)

    def _remove_row(self, at: int) -> None:
        edges = dict.fromkeys(map(_to_edge, self._columns.iterate_terms(at)))
        for vertex, label in edges:
            labels = self._edges[vertex]
            del labels[label][bisect_left(labels[label], at)]
            if not labels[label]:
                del labels[label]
            if not labels:
                del self._edges[vertex]
        if not edges:
            del self._unconstrained[bisect_left(self._unconstrained, at)]

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        del setting
        pairs = EventPairs(reading, self._columns)
        rows = self._collect_candidates(pairs)
        capacity = self._columns.owners.capacity
        out, seen = np.empty(capacity, np.int32), np.zeros(capacity, np.bool_)
        count = check_candidates(rows, seen, self._columns.arrays, pairs.arrays, out)
        return self._columns.owners.resolve(out[:count].tolist())

    def _collect_candidates(self, pairs: EventPairs) -> Int32Array:
        """Stage one: the lists of each pair's labels, under its own value and under `*`."""
        lists = [self._unconstrained] if self._unconstrained else []
        names = self._columns.names.values
        for _, value, labels in pairs.pairs:
            for vertex in (value, VARIABLE) if isinstance(value, str | bool) else (VARIABLE,):
                second = self._edges.get(vertex)
                if second:
                    lists += [second[names[label]] for label in labels if names[label] in second]
        return concatenate(lists)

    def explain(self) -> dict[str, object]:
        """Return how large the index is."""
        return {
            "algorithm": "G-ToPSS: a two-level hash of edges, candidates checked",
            "filters": len(self._columns.owners),
            "pairs of vertices": len(self._edges),
            "lists": sum(map(len, self._edges.values())),
            "subscriptions in lists": sum(len(each) for labels in self._edges.values() for each in labels.values()),
        }


def _to_edge(term: ConceptTerm) -> tuple[Any, TypedAttribute]:
    constant = term.kind is TermKind.TEXT and len(term.value) == 1
    return (term.value[0] if constant else VARIABLE, term.name)


def _insert_sorted(rows: array[int], at: int) -> None:
    """Keep a list ascending; a new row nearly always comes last."""
    if not rows or rows[-1] < at:
        rows.append(at)
    else:
        insort(rows, at)
