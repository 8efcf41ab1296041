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

Corrected (docs/papers.md#ctps): a constraint that several values satisfy counts once; of the names a value goes by
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
from tidings.papers.ctps.concept_terms import OTHER, TIME, Sort, Span, Terms, pairs_of, spans_of_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Ontology
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.papers.ctps.concept_terms import Row, Rows, Term

LIMIT = 20_000_000
"""Entries the index may have in all; each takes four bytes, and a list for each label and value."""

COLUMNS = {"low": "d", "high": "d", "low_ties": "h", "high_ties": "h", "row_of": "i"}


class Mic:
    """A three-level hash of expanded constraints, and counting."""

    def __init__(self, ontology: Ontology, *, limit: int = LIMIT) -> None:
        """Start without subscriptions; more than `limit` entries are refused."""
        self._terms, self._limit, self._entries = Terms("mic", ontology), limit, 0
        self._edges: dict[TypedAttribute, dict[Any, array[int]]] = {}
        self._known: dict[
            TypedAttribute, tuple[TypedAttribute, TypedAttribute]
        ] = {}  # of each label in use its root, and itself
        self._trees: dict[
            TypedAttribute, dict[str, int]
        ] = {}  # of each root the trees in use, and by how many constraints
        self._below: dict[TypedAttribute, tuple[TypedAttribute, ...]] = {}
        self._concepts: dict[tuple[str, str], tuple[str, ...]] = {}
        self._above: dict[TypedAttribute, frozenset[TypedAttribute]] = {}
        self._heights = [0] * 65  # of the binary trees' nodes: how many intervals are kept there
        self._columns = {name: array(code) for name, code in COLUMNS.items()}
        self._free_terms: list[int] = []
        self._owner: list[Any] = []
        self._wanted = array("i")
        self._free_rows: list[int] = []
        self._true: dict[int, None] = {}
        self._kept: dict[SubId, list[tuple[int, Row, list[int]]]] = {}
        self._arrays: tuple[Any, ...] | None = None

    # Changing ----------------------------------------------------------------------------------

    def compile_filter(self, tree: Filter) -> Rows:
        """Return the filter's rows of terms, or refuse those that alone exceed the limit."""
        rows = self._terms.rows(tree)
        self._refuse_beyond(sum(self._size(term) for row in rows for term in row))
        return rows

    def _size(self, term: Term) -> int:
        names = len(self._names_below(term.name))
        if term.sort is Sort.CONCEPT:
            return names * len(self._concepts_below(*term.value))
        return names * (len(term.value) if term.sort is Sort.TEXT else 1)

    def _names_below(self, name: TypedAttribute) -> tuple[TypedAttribute, ...]:
        found = self._below.get(name)
        if found is None:
            found = self._below[name] = self._terms.names_below(name)
        return found

    def _concepts_below(self, label: str, concept: str) -> tuple[str, ...]:
        found = self._concepts.get((label, concept))
        if found is None:
            found = self._concepts[label, concept] = self._terms.tree(label).below(concept)
        return found

    def _refuse_beyond(self, entries: int) -> None:
        if entries > self._limit:
            msg = (
                f"`mic` stores a constraint for everything below it: {entries:,} entries, and the limit is "
                f"{self._limit:,}; use `ctps` or td.Matcher(), whose size does not depend on the trees' height"
            )
            raise Unsupported(msg, kind="mic", part=f"{entries:,} entries")

    def add_many(self, filters: Iterable[tuple[SubId, Rows]]) -> None:
        """Take compiled filters in; a known id is replaced. Beyond the limit nothing is taken."""
        latest = dict(filters)
        replaced = [id for id in latest if id in self._kept]
        gone = sum(self._size(term) for id in replaced for _, row, _ in self._kept[id] for term in row)
        more = sum(self._size(term) for rows in latest.values() for row in rows for term in row)
        self._refuse_beyond(self._entries - gone + more)
        for id in replaced:
            self.remove(id)
        self._arrays = None
        for id, rows in latest.items():
            self._kept[id] = [self._add_row(id, row) for row in rows]

    def _add_row(self, id: SubId, row: Row) -> tuple[int, Row, list[int]]:
        if self._free_rows:
            at = self._free_rows.pop()
            self._owner[at], self._wanted[at] = id, len(row)
        else:
            at = len(self._owner)
            self._owner.append(id)
            self._wanted.append(len(row))
        if not row:
            self._true[at] = None
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
        if term.sort is Sort.NUMBER:
            for name, end in zip(COLUMNS, (term.value.low, term.value.high, *term.value[2::2]), strict=False):
                self._columns[name][number] = end
            self._heights[_straddled(term.value)[1]] += 1
        root = self._terms.root(term.name)
        if term.sort is Sort.CONCEPT:
            trees = self._trees.setdefault(root, {})
            trees[term.value[0]] = trees.get(term.value[0], 0) + 1
        for label in self._names_below(term.name):
            if label not in self._edges:
                # Its own root: a name with several parents lies below terms of several roots.
                self._edges[label], self._known[label] = {}, (self._terms.root(label), label)
            vertices = self._edges[label]
            for vertex in self._vertices(term):
                found = vertices.get(vertex)
                if found is None:
                    vertices[vertex] = array("i", (number,))
                elif found[-1] < number:
                    found.append(number)
                else:
                    insort(found, number)
        self._entries += self._size(term)
        return number

    def _vertices(self, term: Term) -> Iterator[Any]:
        """Yield the second level's keys of a term, and for an interval the place in the binary tree with them."""
        match term.sort:
            case Sort.CONCEPT:
                label, concept = term.value
                for below in self._concepts_below(label, concept):
                    yield label, below
            case Sort.TEXT:
                yield from term.value
            case Sort.NUMBER:
                yield _straddled(term.value)
            case Sort.EXISTS:
                yield None

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there, everywhere it was stored."""
        self._arrays = None
        for at, row, numbers in self._kept.pop(id):
            for term, number in zip(row, numbers, strict=True):
                self._remove_term(term, number)
            self._free_terms += numbers
            self._free_rows.append(at)
            self._owner[at] = None
            self._true.pop(at, None)

    def _remove_term(self, term: Term, number: int) -> None:
        for label in self._names_below(term.name):
            vertices = self._edges[label]
            for vertex in self._vertices(term):
                found = vertices[vertex]
                del found[bisect_left(found, number)]
                if not found:
                    del vertices[vertex]
            if not vertices:
                del self._edges[label], self._known[label]
        if term.sort is Sort.NUMBER:
            self._heights[_straddled(term.value)[1]] -= 1
        if term.sort is Sort.CONCEPT:
            trees = self._trees[self._terms.root(term.name)]
            trees[term.value[0]] -= 1
            if not trees[term.value[0]]:
                del trees[term.value[0]]
        self._entries -= self._size(term)

    # Matching ----------------------------------------------------------------------------------

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        del setting
        sure: list[array[int]] = []
        doubtful: list[tuple[array[int], Span]] = []
        for root, pairs in pairs_of(reading, self._known).items():
            for value, labels in pairs:
                keys = self._keys(root, value)
                for label in self._lowest(labels):
                    vertices = self._edges[label]
                    sure += [vertices[key] for key in keys if key in vertices]
                    doubtful += self._passed(value, vertices)
        rows = list(self._true)
        if sure or doubtful:
            rows += self._counted(sure, doubtful)
        return list(dict.fromkeys(self._owner[row] for row in rows))

    def _lowest(self, labels: list[TypedAttribute]) -> list[TypedAttribute]:
        """Return the names of a value that are above no other: the event's own, as far as somebody asks."""
        if len(labels) == 1:
            return labels
        above: set[TypedAttribute] = set()
        for label in labels:
            if label not in self._above:
                self._above[label] = frozenset(self._terms.names_above(label)[1:])
            above |= self._above[label]
        return [label for label in labels if label not in above]

    def _keys(self, root: TypedAttribute, value: Any) -> list[Any]:
        """Return where a text or concept is stored, and where existence is."""
        if not isinstance(value, str | bool):
            return [None]
        keys: list[Any] = [None, value]
        if isinstance(value, str):
            keys += [(label, self._terms.concept(label, value)) for label in self._trees.get(root, ())]
        return keys

    def _passed(self, value: Any, vertices: dict[Any, array[int]]) -> list[tuple[array[int], Span]]:
        """Return the intervals at the nodes on a number's way down the binary tree; of a range, all."""
        found: list[tuple[array[int], Span]] = []
        if value is OTHER or isinstance(value, str | bool):
            return found
        for span in spans_of_value(value):
            scale, bits = span.scale == TIME, _ordered(span.low)
            keys: Iterable[Any] = [(scale, height, bits >> height) for height, kept in enumerate(self._heights) if kept]
            if span.low != span.high:
                keys = [key for key in vertices if type(key) is tuple and key[0] is scale]
            found += [(vertices[key], span) for key in keys if key in vertices]
        return found

    def _counted(self, sure: list[array[int]], doubtful: list[tuple[array[int], Span]]) -> list[int]:
        if self._arrays is None:
            kept = [self._wanted, *self._columns.values()]
            wanted, *columns = [np.array(column, column.typecode) for column in kept]
            counted, counts = np.zeros(len(columns[0]), np.bool_), np.zeros(len(wanted), np.int32)
            self._arrays = (*columns[:4], counted, counts, columns[4], wanted, np.empty(len(wanted), np.int32))
        ends = np.cumsum([len(found) for found, _ in doubtful], dtype=np.int64)
        spans = np.array([(span.low, span.high) for _, span in doubtful]).reshape(-1, 2)
        ties = np.array([(span.low_tie, span.high_tie) for _, span in doubtful], np.int32).reshape(-1, 2)
        lists = _joined(sure), _joined([found for found, _ in doubtful])
        count = count_terms(*lists, ends, spans, ties, *self._arrays)
        found: list[int] = self._arrays[-1][:count].tolist()
        return found

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        """Return the same for each of many readings."""
        return [self.match(reading, setting) for reading in readings]

    def explain(self) -> dict[str, object]:
        """Say how large the index is."""
        terms = len(self._columns["row_of"]) - len(self._free_terms)
        return {
            "algorithm": "MIC: expanded constraints, counted",
            "filters": len(self._kept),
            "constraints": terms,
            "entries": self._entries,
            "entries for each constraint": self._entries / terms if terms else 0.0,
            "limit of entries": self._limit,
        }


def _joined(lists: list[array[int]]) -> Any:
    return np.concatenate([np.frombuffer(each, np.int32) for each in lists]) if lists else np.zeros(0, np.int32)


def _ordered(number: float) -> int:
    """Return the bits of a float so that they order as floats do."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))  # minus zero is zero
    return int(~bits & (2**64 - 1) if bits >> 63 else bits | 1 << 63)


def _straddled(span: Span) -> tuple[bool, int, int]:
    """Return the node whose middle an interval straddles: the scale, its height, the beginning its numbers share."""
    low, high = _ordered(span.low), _ordered(span.high)
    height = (low ^ high).bit_length()
    return span.scale == TIME, height, low >> height
