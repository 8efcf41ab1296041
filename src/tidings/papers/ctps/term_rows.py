"""Rows of terms in flat columns, for matchers that check rows one by one (`g-topss`, `ops`) or count terms (`mic`).

A term is a label (its attribute's name) and a code (its concept, texts or existence), or a label and the ends of an
interval. Labels and codes are numbers that are used again when no term has them. A row's terms lie side by side; the
space of a removed row goes to a later one of its length.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.papers.concept_rows import PairArrays, TermArrays, TermEnds
from tidings.papers.common.growable_arrays import BlockAllocator, as_numpy, lengthen
from tidings.papers.common.slots import Interner, RowOwners
from tidings.papers.ctps import concept_terms
from tidings.papers.ctps.concept_terms import NUMBER, OTHER, ConceptTerm, TermCompiler, TermKind, TermRow, TermRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidings.algebra import Reading
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.matcher.algorithm import SubId

ON_NUMBERS, ON_TIMES = -1, -2
"""The codes of intervals."""


class TermCodes:
    """Numbers the terms of all roots that are not intervals: concepts, texts, `exists`; finds those of a value."""

    def __init__(self, terms: TermCompiler) -> None:
        self._terms = terms
        self._interner: Interner[tuple[int, TermKind, Any]] = Interner()
        self._concepts: dict[int, dict[str, dict[str, int]]] = {}  # by root, tree and concept
        self._texts: dict[tuple[int, str | bool], dict[int, None]] = {}
        self._exists: dict[int, list[int]] = {}

    def take(self, root: int, term: ConceptTerm) -> int:
        """Return the code of a term that is not an interval."""
        new = (key := (root, term.kind, term.value)) not in self._interner.numbers
        code = self._interner.take(key)
        if new and term.kind is TermKind.CONCEPT:
            tree, concept = term.value
            self._concepts.setdefault(root, {}).setdefault(tree, {})[concept] = code
        elif new and term.kind is TermKind.TEXT:
            for text in term.value:
                self._texts.setdefault((root, text), {})[code] = None
        elif new:
            self._exists[root] = [code]
        return code

    def decode(self, code: int) -> tuple[TermKind, Any]:
        """Return the kind and value of the terms with a code."""
        _, kind, value = self._interner.values[code]
        return kind, value

    def release(self, code: int) -> None:
        """Count one term less with the code."""
        root, kind, value = self._interner.values[code]
        if not self._interner.release(code):
            return
        if kind is TermKind.CONCEPT:
            tree, concept = value
            trees = self._concepts[root]
            del trees[tree][concept]
            if not trees[tree]:
                del trees[tree]
        elif kind is TermKind.TEXT:
            for text in value:
                del self._texts[root, text][code]
                if not self._texts[root, text]:
                    del self._texts[root, text]
        else:
            del self._exists[root]

    def find_satisfied(self, root: int, value: object) -> list[int]:
        """Return the codes that a value satisfies: for a concept, by a walk up each tree in use under the root."""
        satisfied = [*self._exists.get(root, ())]
        if isinstance(value, str | bool):
            satisfied += self._texts.get((root, value), ())
        if isinstance(value, str):
            satisfied += self._terms.list_at_or_above(self._concepts.get(root, {}), value)
        return satisfied


class TermColumns:
    """The terms of all rows in flat columns, and the subscriptions that own the rows."""

    def __init__(
        self, terms: TermCompiler, on_add: Callable[[int, TermRow], None], on_remove: Callable[[int], None]
    ) -> None:
        """Start empty; `on_add` is called with each row that came, `on_remove` before a row goes."""
        self._terms, self._on_add, self._on_remove = terms, on_add, on_remove
        self.codes = TermCodes(terms)
        self.names: Interner[TypedAttribute] = Interner()
        self.tops: Interner[TypedAttribute] = Interner()
        self.labels_by_name: dict[TypedAttribute, tuple[int, int]] = {}
        self.owners = RowOwners()
        self.starts, self._sizes = array("i"), array("i")
        self._blocks = BlockAllocator()
        self._labels, self._codes = array("i"), array("i")
        self._low, self._high, self._low_ties, self._high_ties = array("d"), array("d"), array("h"), array("h")
        self._arrays: TermArrays | None = None

    def add_many(self, filters: Iterable[tuple[SubId, TermRows]]) -> None:
        """Take compiled filters in; a known id is replaced."""
        self._arrays = None
        for id, rows in filters:
            if id in self.owners:
                self.remove(id)
            numbers = []
            for row in rows:
                at = self._allocate(id, len(row))
                for place, term in enumerate(row, self.starts[at]):
                    self._write(place, term)
                numbers.append(at)
                self._on_add(at, row)
            self.owners.assign(id, tuple(numbers))

    def _allocate(self, id: SubId, size: int) -> int:
        at, start = self.owners.allocate(id), self._blocks.take_block(size)
        if at == len(self.starts):
            self.starts.append(0)
            self._sizes.append(0)
        self.starts[at], self._sizes[at] = start, size
        for column in (self._labels, self._codes, self._low, self._high, self._low_ties, self._high_ties):
            lengthen(column, self._blocks.length)
        return at

    def _write(self, place: int, term: ConceptTerm) -> None:
        name = term.name
        self._labels[place] = label = self.names.take(name)
        if name not in self.labels_by_name:
            self.labels_by_name[name] = (self.tops.take(self._terms.find_root(name)), label)
        if term.kind is not TermKind.NUMBER:
            self._codes[place] = self.codes.take(self.labels_by_name[name][0], term)
            return
        scale, self._low[place], self._low_ties[place], self._high[place], self._high_ties[place] = term.value
        self._codes[place] = ON_NUMBERS if scale == NUMBER else ON_TIMES

    def remove(self, id: SubId) -> None:
        """Forget a subscription."""
        self._arrays = None
        for at in self.owners.release(id):
            self._on_remove(at)
            for place in self._place_range(at):
                self._erase(place)
            self._blocks.release_block(self.starts[at], self._sizes[at])
            self._sizes[at] = -1

    def _erase(self, place: int) -> None:
        label, code = self._labels[place], self._codes[place]
        if code >= 0:
            self.codes.release(code)
        name = self.names.values[label]
        if self.names.release(label):
            self.tops.release(self.labels_by_name.pop(name)[0])

    def _place_range(self, at: int) -> range:
        return range(self.starts[at], self.starts[at] + self._sizes[at])

    def iterate_terms(self, at: int) -> Iterable[ConceptTerm]:
        """Yield the terms of a row."""
        for place in self._place_range(at):
            name, code = self.names.values[self._labels[place]], self._codes[place]
            if code >= 0:
                yield ConceptTerm(name, *self.codes.decode(code))
                continue
            low, low_tie = self._low[place], self._low_ties[place]
            high, high_tie = self._high[place], self._high_ties[place]
            scale = NUMBER if code == ON_NUMBERS else concept_terms.TIME
            yield ConceptTerm(name, TermKind.NUMBER, concept_terms.OrderedSpan(scale, low, low_tie, high, high_tie))

    @property
    def arrays(self) -> TermArrays:
        """The columns as kernels take them; they share memory with the columns, so every change drops them first."""
        if self._arrays is None:
            roots = np.zeros(len(self.names.values), np.int32)
            for root, label in self.labels_by_name.values():
                roots[label] = root
            ends = TermEnds(
                as_numpy(self._low), as_numpy(self._high), as_numpy(self._low_ties), as_numpy(self._high_ties)
            )
            starts, sizes = as_numpy(self.starts), as_numpy(self._sizes)
            self._arrays = TermArrays(starts, sizes, as_numpy(self._labels), as_numpy(self._codes), ends, roots)
        return self._arrays


class EventPairs:
    """An event's pairs, and the same in flat arrays, as kernels read them."""

    def __init__(self, reading: Reading, columns: TermColumns) -> None:
        self.pairs = [
            (root, *pair)
            for root, pairs in concept_terms.group_pairs(reading, columns.labels_by_name).items()
            for pair in pairs
        ]
        roots, labels, codes, label_ends, code_ends = (
            array("i"),
            array("i"),
            array("i"),
            array("i", [0]),
            array("i", [0]),
        )
        spans, ties, scales = array("d"), array("i"), array("i")
        for root, value, names in self.pairs:
            roots.append(root)
            labels.extend(names)
            codes.extend(columns.codes.find_satisfied(root, value))
            label_ends.append(len(labels))
            code_ends.append(len(codes))
            # A value's ends, and a bit for each scale it is on.
            value_spans = () if value is OTHER or isinstance(value, str | bool) else concept_terms.to_value_spans(value)
            scales.append(sum(1 if span.scale == NUMBER else 2 for span in value_spans))
            _, low, low_tie, high, high_tie = value_spans[0] if value_spans else ("", 0.0, 0, 0.0, 0)
            spans.extend((low, high))
            ties.extend((low_tie, high_tie))
        flat: tuple[array[Any], ...] = (roots, labels, label_ends, codes, code_ends, spans, ties, scales)
        self.arrays = PairArrays(*map(as_numpy, flat))
