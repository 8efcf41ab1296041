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
adding, so it grows with the square of the trees' size. Beyond `limit` stored entries adding is refused.

It refuses `not`, `!=`, text tests, ranges of text, places, ages, comparisons and arrays of records.

Corrected (README.md here): a constraint that several values satisfy counts once; of the names a value goes by
only the lowest are looked up.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.errors import Unsupported
from tidings.kernels.papers.concept_rows import TermCounters, TermEnds, count_terms
from tidings.matcher.algorithm import Algorithm
from tidings.papers.common.arrays import concatenate
from tidings.papers.common.interner import Slots
from tidings.papers.common.row_owners import RowOwners
from tidings.papers.ctps.concept_terms import (
    OTHER,
    TIME,
    OrderedSpan,
    TermCompiler,
    TermKind,
    group_pairs,
    to_value_spans,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Ontology
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.papers.ctps.concept_terms import Term, TermRow, TermRows

MAX_ENTRIES = 20_000_000
"""Entries the index may have in all; each takes four bytes, and a list for each label and value."""


class _StoredRow(NamedTuple):
    """A row with its terms and their numbers."""

    at: int
    row: TermRow
    numbers: list[int]


class Mic(Algorithm):
    """A three-level hash of expanded constraints, and counting."""

    def __init__(self, ontology: Ontology, *, limit: int = MAX_ENTRIES) -> None:
        """Start without subscriptions; more than `limit` entries are refused."""
        self._terms, self._limit, self._entries = TermCompiler("mic", ontology), limit, 0
        self._edges: dict[TypedAttribute, dict[Any, array[int]]] = {}
        # Of each label in use its root, and itself.
        self._roots_by_label: dict[TypedAttribute, tuple[TypedAttribute, TypedAttribute]] = {}
        # Of each root the trees in use, and by how many constraints.
        self._tree_uses: dict[TypedAttribute, dict[str, int]] = {}
        self._heights = [0] * 65  # of the binary trees' nodes: how many intervals are kept there
        self._term_rows = Slots()  # the row of each term
        self._low, self._high, self._low_ties, self._high_ties = array("d"), array("d"), array("h"), array("h")
        self._owners = RowOwners()
        self._wanted = array("i")  # the number of each row's terms
        self._unconstrained: dict[int, None] = {}
        self._stored: dict[SubId, list[_StoredRow]] = {}
        self._arrays: tuple[TermEnds, TermCounters] | None = None

    # Changing ----------------------------------------------------------------------------------

    def compile_filter(self, tree: Filter) -> TermRows:
        """Return the filter's rows of terms, or refuse those that alone exceed the limit."""
        rows = self._terms.compile_rows(tree)
        self._refuse_beyond(sum(self._count_entries(term) for row in rows for term in row))
        return rows

    def _count_entries(self, term: Term) -> int:
        names = len(self._terms.list_names_below(term.name))
        if term.kind is TermKind.CONCEPT:
            return names * len(self._terms.list_concepts_below(*term.value))
        return names * (len(term.value) if term.kind is TermKind.TEXT else 1)

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
        replaced = [id for id in latest if id in self._stored]
        gone = sum(self._count_entries(term) for id in replaced for kept in self._stored[id] for term in kept.row)
        more = sum(self._count_entries(term) for rows in latest.values() for row in rows for term in row)
        self._refuse_beyond(self._entries - gone + more)
        for id in replaced:
            self.remove(id)
        self._arrays = None
        for id, rows in latest.items():
            self._stored[id] = stored = [self._add_row(id, row) for row in rows]
            self._owners.assign(id, tuple(row.at for row in stored))

    def _add_row(self, id: SubId, row: TermRow) -> _StoredRow:
        at = self._owners.allocate(id)
        if at == len(self._wanted):
            self._wanted.append(0)
        self._wanted[at] = len(row)
        if not row:
            self._unconstrained[at] = None
        return _StoredRow(at, row, [self._add_term(at, term) for term in row])

    def _add_term(self, row: int, term: Term) -> int:
        number = self._term_rows.add(row)
        if number == len(self._low):
            for column in (self._low, self._high, self._low_ties, self._high_ties):
                column.append(0)
        if term.kind is TermKind.NUMBER:
            _, self._low[number], self._low_ties[number], self._high[number], self._high_ties[number] = term.value
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
        return number

    def _count_use(self, term: Term, step: int) -> None:
        """Count a term that comes (1) or goes (-1): its entries, its interval's height, its concept's tree."""
        self._entries += step * self._count_entries(term)
        if term.kind is TermKind.NUMBER:
            self._heights[_find_tree_node(term.value)[1]] += step
        elif term.kind is TermKind.CONCEPT:
            trees, label = self._tree_uses.setdefault(self._terms.find_root(term.name), {}), term.value[0]
            trees[label] = trees.get(label, 0) + step
            if not trees[label]:
                del trees[label]

    def _iterate_vertices(self, term: Term) -> Iterator[Any]:
        """Yield the second level's keys of a term; for an interval, the node of the binary tree."""
        match term.kind:
            case TermKind.CONCEPT:
                label, concept = term.value
                for below in self._terms.list_concepts_below(label, concept):
                    yield label, below
            case TermKind.TEXT:
                yield from term.value
            case TermKind.NUMBER:
                yield _find_tree_node(term.value)
            case TermKind.EXISTS:
                yield None

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there, everywhere it was stored."""
        self._arrays = None
        self._owners.release(id)
        for at, row, numbers in self._stored.pop(id):
            for term, number in zip(row, numbers, strict=True):
                self._remove_term(term, number)
            self._unconstrained.pop(at, None)

    def _remove_term(self, term: Term, number: int) -> None:
        self._term_rows.remove(number)
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

    # Matching ----------------------------------------------------------------------------------

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        del setting
        sure: list[array[int]] = []
        compared: list[tuple[array[int], OrderedSpan]] = []
        for root, pairs in group_pairs(reading, self._roots_by_label).items():
            for value, labels in pairs:
                keys = self._list_keys(root, value)
                for label in self._terms.select_lowest(labels):
                    vertices = self._edges[label]
                    sure += [vertices[key] for key in keys if key in vertices]
                    compared += self._find_intervals(value, vertices)
        rows = list(self._unconstrained)
        if sure or compared:
            rows += self._count_terms(sure, compared)
        return self._owners.resolve(rows)

    def _list_keys(self, root: TypedAttribute, value: Any) -> list[Any]:
        """Return the keys under which a text or concept is stored, and that of existence."""
        keys: list[Any] = [None]
        if isinstance(value, str | bool):
            keys.append(value)
        if isinstance(value, str):
            keys += [(label, self._terms.find_concept(label, value)) for label in self._tree_uses.get(root, ())]
        return keys

    def _find_intervals(self, value: Any, vertices: dict[Any, array[int]]) -> list[tuple[array[int], OrderedSpan]]:
        """Return the intervals at the nodes on a number's way down the binary tree; of a range, all."""
        intervals: list[tuple[array[int], OrderedSpan]] = []
        if value is OTHER or isinstance(value, str | bool):
            return intervals
        for span in to_value_spans(value):
            scale, bits = span.scale == TIME, _to_ordered_bits(span.low)
            keys: Iterable[Any] = [(scale, height, bits >> height) for height, kept in enumerate(self._heights) if kept]
            if span.low != span.high:
                keys = [key for key in vertices if type(key) is tuple and key[0] is scale]
            intervals += [(vertices[key], span) for key in keys if key in vertices]
        return intervals

    def _count_terms(self, sure: list[array[int]], compared: list[tuple[array[int], OrderedSpan]]) -> list[int]:
        if self._arrays is None:
            columns = (self._low, self._high, self._low_ties, self._high_ties)
            ends = TermEnds(*(np.array(column, column.typecode) for column in columns))
            row_of = np.array([-1 if row is None else row for row in self._term_rows.items], np.int32)
            counted, counts = np.zeros(len(row_of), np.bool_), np.zeros(len(self._wanted), np.int32)
            self._arrays = ends, TermCounters(counted, counts, row_of, np.array(self._wanted, np.int32))
        groups = np.cumsum([len(terms) for terms, _ in compared], dtype=np.int64)
        spans = np.array([end for _, span in compared for end in (span.low, span.high)], np.float64)
        ties = np.array([tie for _, span in compared for tie in (span.low_tie, span.high_tie)], np.int32)
        out = np.empty(len(self._wanted), np.int32)
        lists = concatenate(sure), concatenate([terms for terms, _ in compared])
        count = count_terms(*lists, groups, spans, ties, *self._arrays, out)
        rows: list[int] = out[:count].tolist()
        return rows

    def explain(self) -> dict[str, object]:
        """Return how large the index is."""
        terms = len(self._term_rows)
        return {
            "algorithm": "MIC: expanded constraints, counted",
            "filters": len(self._stored),
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
    return span.scale == TIME, height, low >> height
