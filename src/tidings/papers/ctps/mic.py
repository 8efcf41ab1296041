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

It has no `not`, `!=`, text tests, ranges of text, places, ages, comparisons or arrays of records, and refuses them.

Corrected (README.md here): a constraint that several values satisfy counts once; of the names a value goes by
only the lowest are looked up.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import Unsupported
from tidings.kernels.papers.concept_rows import count_terms
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
    from collections.abc import Iterable, Iterator, Sequence

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Ontology
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.papers.ctps.concept_terms import Term, TermRow, TermRows

MAX_ENTRIES = 20_000_000
"""Entries the index may have in all; each takes four bytes, and a list for each label and value."""

COLUMNS = {"low": "d", "high": "d", "low_ties": "h", "high_ties": "h", "row_of": "i"}


class Mic:
    """A three-level hash of expanded constraints, and counting."""

    def __init__(self, ontology: Ontology, *, limit: int = MAX_ENTRIES) -> None:
        """Start without subscriptions; more than `limit` entries are refused."""
        self._terms, self._limit, self._entries = TermCompiler("mic", ontology), limit, 0
        self._edges: dict[TypedAttribute, dict[Any, array[int]]] = {}
        self._roots_by_label: dict[
            TypedAttribute, tuple[TypedAttribute, TypedAttribute]
        ] = {}  # of each label in use its root, and itself
        self._tree_uses: dict[
            TypedAttribute, dict[str, int]
        ] = {}  # of each root the trees in use, and by how many constraints
        self._names_below_cache: dict[TypedAttribute, tuple[TypedAttribute, ...]] = {}
        self._concepts_below_cache: dict[tuple[str, str], tuple[str, ...]] = {}
        self._names_above_cache: dict[TypedAttribute, frozenset[TypedAttribute]] = {}
        self._heights = [0] * 65  # of the binary trees' nodes: how many intervals are kept there
        self._columns = {name: array(code) for name, code in COLUMNS.items()}
        self._free_terms: list[int] = []
        self._owner: list[Any] = []
        self._wanted = array("i")
        self._free_rows: list[int] = []
        self._unconstrained: dict[int, None] = {}
        self._filters: dict[SubId, list[tuple[int, TermRow, list[int]]]] = {}
        self._arrays: tuple[Any, ...] | None = None

    # Changing ----------------------------------------------------------------------------------

    def compile_filter(self, tree: Filter) -> TermRows:
        """Return the filter's rows of terms, or refuse those that alone exceed the limit."""
        rows = self._terms.compile_rows(tree)
        self._refuse_beyond(sum(self._count_entries(term) for row in rows for term in row))
        return rows

    def _count_entries(self, term: Term) -> int:
        names = len(self._list_names_below(term.name))
        if term.kind is TermKind.CONCEPT:
            return names * len(self._list_concepts_below(*term.value))
        return names * (len(term.value) if term.kind is TermKind.TEXT else 1)

    def _list_names_below(self, name: TypedAttribute) -> tuple[TypedAttribute, ...]:
        names = self._names_below_cache.get(name)
        if names is None:
            names = self._names_below_cache[name] = self._terms.list_names_below(name)
        return names

    def _list_concepts_below(self, label: str, concept: str) -> tuple[str, ...]:
        concepts = self._concepts_below_cache.get((label, concept))
        if concepts is None:
            concepts = self._concepts_below_cache[label, concept] = self._terms.get_tree(label).below(concept)
        return concepts

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
        replaced = [id for id in latest if id in self._filters]
        gone = sum(self._count_entries(term) for id in replaced for _, row, _ in self._filters[id] for term in row)
        more = sum(self._count_entries(term) for rows in latest.values() for row in rows for term in row)
        self._refuse_beyond(self._entries - gone + more)
        for id in replaced:
            self.remove(id)
        self._arrays = None
        for id, rows in latest.items():
            self._filters[id] = [self._add_row(id, row) for row in rows]

    def _add_row(self, id: SubId, row: TermRow) -> tuple[int, TermRow, list[int]]:
        if self._free_rows:
            at = self._free_rows.pop()
            self._owner[at], self._wanted[at] = id, len(row)
        else:
            at = len(self._owner)
            self._owner.append(id)
            self._wanted.append(len(row))
        if not row:
            self._unconstrained[at] = None
        numbers = [self._add_term(at, term) for term in row]
        return at, row, numbers

    def _add_term(self, row: int, term: Term) -> int:
        if self._free_terms:
            number = self._free_terms.pop()
        else:
            number = len(self._columns["row_of"])
            for column in self._columns.values():
                column.append(0)
        self._columns["row_of"][number] = row
        if term.kind is TermKind.NUMBER:
            for name, end in zip(COLUMNS, (term.value.low, term.value.high, *term.value[2::2]), strict=False):
                self._columns[name][number] = end
            self._heights[_find_tree_node(term.value)[1]] += 1
        root = self._terms.find_root(term.name)
        if term.kind is TermKind.CONCEPT:
            trees = self._tree_uses.setdefault(root, {})
            trees[term.value[0]] = trees.get(term.value[0], 0) + 1
        for label in self._list_names_below(term.name):
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
        self._entries += self._count_entries(term)
        return number

    def _iterate_vertices(self, term: Term) -> Iterator[Any]:
        """Yield the second level's keys of a term, and for an interval the place in the binary tree with them."""
        match term.kind:
            case TermKind.CONCEPT:
                label, concept = term.value
                for below in self._list_concepts_below(label, concept):
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
        for at, row, numbers in self._filters.pop(id):
            for term, number in zip(row, numbers, strict=True):
                self._remove_term(term, number)
            self._free_terms += numbers
            self._free_rows.append(at)
            self._owner[at] = None
            self._unconstrained.pop(at, None)

    def _remove_term(self, term: Term, number: int) -> None:
        for label in self._list_names_below(term.name):
            vertices = self._edges[label]
            for vertex in self._iterate_vertices(term):
                numbers = vertices[vertex]
                del numbers[bisect_left(numbers, number)]
                if not numbers:
                    del vertices[vertex]
            if not vertices:
                del self._edges[label], self._roots_by_label[label]
        if term.kind is TermKind.NUMBER:
            self._heights[_find_tree_node(term.value)[1]] -= 1
        if term.kind is TermKind.CONCEPT:
            trees = self._tree_uses[self._terms.find_root(term.name)]
            trees[term.value[0]] -= 1
            if not trees[term.value[0]]:
                del trees[term.value[0]]
        self._entries -= self._count_entries(term)

    # Matching ----------------------------------------------------------------------------------

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        del setting
        sure: list[array[int]] = []
        doubtful: list[tuple[array[int], OrderedSpan]] = []
        for root, pairs in group_pairs(reading, self._roots_by_label).items():
            for value, labels in pairs:
                keys = self._list_keys(root, value)
                for label in self._select_lowest(labels):
                    vertices = self._edges[label]
                    sure += [vertices[key] for key in keys if key in vertices]
                    doubtful += self._find_intervals(value, vertices)
        rows = list(self._unconstrained)
        if sure or doubtful:
            rows += self._count_terms(sure, doubtful)
        return list(dict.fromkeys(self._owner[row] for row in rows))

    def _select_lowest(self, labels: list[TypedAttribute]) -> list[TypedAttribute]:
        """Return the names of a value that are above no other: the event's own, as far as somebody asks."""
        if len(labels) == 1:
            return labels
        above: set[TypedAttribute] = set()
        for label in labels:
            if label not in self._names_above_cache:
                self._names_above_cache[label] = frozenset(self._terms.list_names_above(label)[1:])
            above |= self._names_above_cache[label]
        return [label for label in labels if label not in above]

    def _list_keys(self, root: TypedAttribute, value: Any) -> list[Any]:
        """Return where a text or concept is stored, and where existence is."""
        if not isinstance(value, str | bool):
            return [None]
        keys: list[Any] = [None, value]
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

    def _count_terms(self, sure: list[array[int]], doubtful: list[tuple[array[int], OrderedSpan]]) -> list[int]:
        if self._arrays is None:
            kept = [self._wanted, *self._columns.values()]
            wanted, *columns = [np.array(column, column.typecode) for column in kept]
            counted, counts = np.zeros(len(columns[0]), np.bool_), np.zeros(len(wanted), np.int32)
            self._arrays = (*columns[:4], counted, counts, columns[4], wanted, np.empty(len(wanted), np.int32))
        ends = np.cumsum([len(rows) for rows, _ in doubtful], dtype=np.int64)
        spans = np.array([(span.low, span.high) for _, span in doubtful]).reshape(-1, 2)
        ties = np.array([(span.low_tie, span.high_tie) for _, span in doubtful], np.int32).reshape(-1, 2)
        lists = _concatenate(sure), _concatenate([rows for rows, _ in doubtful])
        count = count_terms(*lists, ends, spans, ties, *self._arrays)
        rows: list[int] = self._arrays[-1][:count].tolist()
        return rows

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        """Return the same for each of many readings."""
        return [self.match(reading, setting) for reading in readings]

    def explain(self) -> dict[str, object]:
        """Say how large the index is."""
        terms = len(self._columns["row_of"]) - len(self._free_terms)
        return {
            "algorithm": "MIC: expanded constraints, counted",
            "filters": len(self._filters),
            "constraints": terms,
            "entries": self._entries,
            "entries for each constraint": self._entries / terms if terms else 0.0,
            "limit of entries": self._limit,
        }


def _concatenate(lists: list[array[int]]) -> Any:
    return np.concatenate([np.frombuffer(each, np.int32) for each in lists]) if lists else np.zeros(0, np.int32)


def _to_ordered_bits(number: float) -> int:
    """Return the bits of a float so that they order as floats do."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))  # minus zero is zero
    return int(~bits & (2**64 - 1) if bits >> 63 else bits | 1 << 63)


def _find_tree_node(span: OrderedSpan) -> tuple[bool, int, int]:
    """Return the node whose middle an interval straddles: the scale, its height, the beginning its numbers share."""
    low, high = _to_ordered_bits(span.low), _to_ordered_bits(span.high)
    height = (low ^ high).bit_length()
    return span.scale == TIME, height, low >> height
