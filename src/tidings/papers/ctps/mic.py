"""MIC, multidimensional index matching count: every constraint stored for all below it, matches counted.

Hu, "Matching Algorithm for Semantic-based Publish/Subscribe System", 2009, as Zhang et al. describe and measure it
(CTPS, 2022, sections 2 and 6).

A hash of three levels: an edge's label (the attribute's name); its vertices (a concept, a text, or `*` for a
variable); and for `*` the intervals in a binary tree. A constraint on a name and a concept is stored for every name
below and every concept below (hyponym expansion), so an event is looked up by its own names and values only, and a
subscription matches when as many of its constraints were found as it has.

The binary tree divides the order of floating-point numbers in halves: an interval is kept at the node whose middle
it straddles, which is the common beginning of its ends' bits, and compared exactly when an event passes there.

Cost: to add or remove O(names below x concepts below) for each constraint; to match O(constraints found); memory as
adding, so it grows with the square of the trees' size. Beyond `limit` stored entries adding is refused. Corrections
are in README.md here.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.arrays import expand_ranges
from tidings.errors import Unsupported
from tidings.kernels.papers.concept_rows import TermCounters, count_terms
from tidings.matcher.algorithm import Algorithm, SubId
from tidings.papers.common.growable_arrays import concatenate
from tidings.papers.ctps import concept_terms
from tidings.papers.ctps.term_rows import TermColumns

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Ontology
    from tidings.model import Filter
    from tidings.papers.ctps.concept_terms import ConceptTerm, OrderedSpan, TermRow, TermRows

MAX_ENTRIES = 20_000_000
"""Entries the index may have in all; each takes four bytes, and a list for each label and value."""


class Mic(Algorithm):
    """A three-level hash of expanded constraints, and counting."""

    def __init__(self, ontology: Ontology, *, limit: int = MAX_ENTRIES) -> None:
        """Start without subscriptions; more than `limit` entries are refused."""
        self._terms, self._limit, self._entries = concept_terms.TermCompiler("mic", ontology), limit, 0
        self._edges: dict[TypedAttribute, dict[Any, array[int]]] = {}
        # Of each label in use its root, and itself.
        self._roots_by_label: dict[TypedAttribute, tuple[TypedAttribute, TypedAttribute]] = {}
        # Of each root the trees in use, and by how many constraints.
        self._tree_uses: dict[TypedAttribute, dict[str, int]] = {}
        self._heights = [0] * 65  # of the binary trees' nodes: how many intervals are kept there
        self._columns = TermColumns(self._terms, self._add_row, self._remove_row)
        self._unconstrained: dict[int, None] = {}
        self._entries_of: dict[SubId, int] = {}
        self._counters: TermCounters | None = None

    def compile_filter(self, tree: Filter) -> TermRows:
        """Return the filter's rows of terms, or refuse those that alone exceed the limit."""
        rows = self._terms.compile_rows(tree)
        self._refuse_beyond(sum(self._count_entries(term) for row in rows for term in row))
        return rows

    def _count_entries(self, term: ConceptTerm) -> int:
        names = len(self._terms.list_names_below(term.name))
        if term.kind is concept_terms.TermKind.CONCEPT:
            return names * len(self._terms.list_concepts_below(*term.value))
        return names * (len(term.value) if term.kind is concept_terms.TermKind.TEXT else 1)

    def _refuse_beyond(self, entries: int) -> None:
        if entries > self._limit:
            msg = (
                f"`mic` stores a constraint for everything below it: {entries:,} entries, and the limit is "
                f"{self._limit:,}; use `ctps` or td.Matcher(), whose size does not depend on the trees' height"
            )
            raise Unsupported(msg, kind="mic", part=f"{entries:,} entries")

    def add_many(self, filters: Iterable[tuple[SubId, TermRows]]) -> None:
        """Take compiled filters in; a known id is replaced. Beyond the limit nothing is taken."""
        latest = dict(filters)
        more = {id: sum(self._count_entries(term) for row in rows for term in row) for id, rows in latest.items()}
        entries = self._entries - sum(self._entries_of.get(id, 0) for id in latest) + sum(more.values())
        self._refuse_beyond(entries)
        self._counters, self._entries = None, entries
        self._entries_of.update(more)
        self._columns.add_many(latest.items())

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there, everywhere it was stored."""
        self._counters = None
        self._entries -= self._entries_of.pop(id)
        self._columns.remove(id)

    def _add_row(self, at: int, row: TermRow) -> None:
        if not row:
            self._unconstrained[at] = None
        for number, term in enumerate(row, self._columns.starts[at]):
            self._add_term(number, term)

    def _add_term(self, number: int, term: ConceptTerm) -> None:
        self._count_use(term, 1)
        for label in self._terms.list_names_below(term.name):
            if label not in self._edges:
                # Its own root: a name with several parents lies below terms of several roots.
                self._edges[label], self._roots_by_label[label] = {}, (self._terms.find_root(label), label)
            vertices = self._edges[label]
            for vertex in self._iterate_vertices(term):
                numbers = vertices.get(vertex)
                if numbers is None:
                    vertices[vertex] = array("i", (number,))
                elif numbers[-1] < number:
                    numbers.append(number)
                else:
                    insort(numbers, number)

    def _count_use(self, term: ConceptTerm, step: int) -> None:
        """Count a term that comes (1) or goes (-1) at its interval's height, or its concept's tree."""
        if term.kind is concept_terms.TermKind.NUMBER:
            self._heights[_find_tree_node(term.value)[1]] += step
        elif term.kind is concept_terms.TermKind.CONCEPT:
            trees, label = self._tree_uses.setdefault(self._terms.find_root(term.name), {}), term.value[0]
            trees[label] = trees.get(label, 0) + step
            if not trees[label]:
                del trees[label]

    def _iterate_vertices(self, term: ConceptTerm) -> Iterator[Any]:
        """Yield the second level's keys of a term; for an interval, the node of the binary tree."""
        match term.kind:
            case concept_terms.TermKind.CONCEPT:
                label, concept = term.value
                for below in self._terms.list_concepts_below(label, concept):
                    yield label, below
            case concept_terms.TermKind.TEXT:
                yield from term.value
            case concept_terms.TermKind.NUMBER:
                yield _find_tree_node(term.value)
            case concept_terms.TermKind.EXISTS:
                yield None

    def _remove_row(self, at: int) -> None:
        self._unconstrained.pop(at, None)
        for number, term in enumerate(self._columns.iterate_terms(at), self._columns.starts[at]):
            self._remove_term(number, term)

    def _remove_term(self, number: int, term: ConceptTerm) -> None:
        self._count_use(term, -1)
        for label in self._terms.list_names_below(term.name):
            vertices = self._edges[label]
            for vertex in self._iterate_vertices(term):
                numbers = vertices[vertex]
                del numbers[bisect_left(numbers, number)]
                if not numbers:
                    del vertices[vertex]
            if not vertices:
                del self._edges[label], self._roots_by_label[label]

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        del setting
        sure: list[array[int]] = []
        compared: list[tuple[array[int], OrderedSpan]] = []
        for root, pairs in concept_terms.group_pairs(reading, self._roots_by_label).items():
            for value, labels in pairs:
                keys = self._list_keys(root, value)
                for label in self._terms.select_lowest(labels):
                    vertices = self._edges[label]
                    sure += [vertices[key] for key in keys if key in vertices]
                    compared += self._find_intervals(value, vertices)
        rows = list(self._unconstrained)
        if sure or compared:
            rows += self._count_terms(sure, compared)
        return self._columns.owners.resolve(rows)

    def _list_keys(self, root: TypedAttribute, value: object) -> list[Hashable]:
        """Return the keys under which a text or concept is stored, and that of existence."""
        keys: list[Hashable] = [None]
        if isinstance(value, str | bool):
            keys.append(value)
        if isinstance(value, str):
            keys += [(label, self._terms.find_concept(label, value)) for label in self._tree_uses.get(root, ())]
        return keys

    def _find_intervals(self, value: object, vertices: dict[Any, array[int]]) -> list[tuple[array[int], OrderedSpan]]:
        """Return the intervals at the nodes on a number's way down the binary tree; of a range, all."""
        intervals: list[tuple[array[int], OrderedSpan]] = []
        if value is concept_terms.OTHER or isinstance(value, str | bool):
            return intervals
        for span in concept_terms.to_value_spans(value):
            scale, bits = span.scale == concept_terms.TIME, _to_ordered_bits(span.low)
            keys: Iterable[Any] = [(scale, height, bits >> height) for height, kept in enumerate(self._heights) if kept]
            if span.low != span.high:
                keys = [key for key in vertices if type(key) is tuple and key[0] is scale]
            intervals += [(vertices[key], span) for key in keys if key in vertices]
        return intervals

    def _count_terms(self, sure: list[array[int]], compared: list[tuple[array[int], OrderedSpan]]) -> list[int]:
        columns = self._columns.arrays
        if self._counters is None:
            rows = np.flatnonzero(columns.sizes > 0)
            row_of = np.zeros(len(columns.labels), np.int32)
            row_of[expand_ranges(columns.starts[rows], columns.sizes[rows])] = np.repeat(rows, columns.sizes[rows])
            counted, counts = np.zeros(len(row_of), np.bool_), np.zeros(len(columns.sizes), np.int32)
            self._counters = TermCounters(counted, counts, row_of, columns.sizes)
        groups = np.cumsum([len(terms) for terms, _ in compared], dtype=np.int64)
        spans = np.array([end for _, span in compared for end in (span.low, span.high)], np.float64)
        ties = np.array([tie for _, span in compared for tie in (span.low_tie, span.high_tie)], np.int32)
        out = np.empty(len(columns.sizes), np.int32)
        lists = concatenate(sure), concatenate([terms for terms, _ in compared])
        count = count_terms(*lists, groups, spans, ties, columns.ends, self._counters, out)
        matched: list[int] = out[:count].tolist()
        return matched

    def explain(self) -> dict[str, object]:
        """Return how large the index is."""
        terms = int(np.maximum(self._columns.arrays.sizes, 0).sum())
        return {
            "algorithm": "MIC: expanded constraints, counted",
            "filters": len(self._entries_of),
            "constraints": terms,
            "entries": self._entries,
            "entries for each constraint": self._entries / terms if terms else 0.0,
            "limit of entries": self._limit,
        }


def _to_ordered_bits(number: float) -> int:
    """Return the bits of a float so that they order as floats do."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))  # minus zero is zero
    return int(~bits & (2**64 - 1) if bits >> 63 else bits | 1 << 63)


def _find_tree_node(span: OrderedSpan) -> tuple[bool, int, int]:
    """Return the node whose middle an interval straddles: the scale, its height, the beginning its numbers share."""
    low, high = _to_ordered_bits(span.low), _to_ordered_bits(span.high)
    height = (low ^ high).bit_length()
    return span.scale == concept_terms.TIME, height, low >> height
