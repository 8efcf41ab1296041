"""Rows of terms in flat columns, for the matchers that check subscriptions one by one (`g-topss`, `ops`).

A term is a label (its attribute's name) and a code (its concept, texts or existence), or a label and the ends of an
interval. Labels and codes are numbers that are used again when nobody needs them. A row's terms lie side by side; the
place of a removed row goes to the next one of its length.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.papers.common.interner import Interner
from tidings.papers.ctps.concept_terms import NUMBER, OTHER, Term, TermKind, group_pairs, list_ancestors, to_value_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from tidings.algebra import Reading
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.matcher.algorithm import SubId
    from tidings.papers.ctps.concept_terms import TermCompiler, TermRow, TermRows

ON_NUMBERS, ON_TIMES = -1, -2
"""The codes of intervals."""

COLUMNS = {"labels": "i", "codes": "i", "low": "d", "high": "d", "low_ties": "h", "high_ties": "h"}
"""What is kept of a term, and as what."""


class TermCodes:
    """Codes of concepts, sets of texts and existence under one root, and which of them a value satisfies."""

    def __init__(self, terms: TermCompiler) -> None:
        """Start empty."""
        self._terms = terms
        self._interner = Interner()
        self._concepts: dict[tuple[int, str], dict[str, int]] = {}
        self._trees: dict[int, dict[str, None]] = {}
        self._texts: dict[tuple[int, Any], dict[int, None]] = {}
        self._exists: dict[int, list[int]] = {}

    def take(self, root: int, term: Term) -> int:
        """Return the code of a term that is no interval."""
        new = (key := (root, term.kind, term.value)) not in self._interner.numbers
        code = self._interner.take(key)
        if new and term.kind is TermKind.CONCEPT:
            tree, concept = term.value
            self._concepts.setdefault((root, tree), {})[concept] = code
            self._trees.setdefault(root, {})[tree] = None
        elif new and term.kind is TermKind.TEXT:
            for text in term.value:
                self._texts.setdefault((root, text), {})[code] = None
        elif new:
            self._exists[root] = [code]
        return code

    def decode(self, code: int) -> tuple[TermKind, Any]:
        """Return the sort and value of a code."""
        _, sort, value = self._interner.values[code]
        return sort, value

    def release(self, code: int) -> None:
        """Forget that somebody needed the code."""
        root, sort, value = self._interner.values[code]
        if not self._interner.release(code):
            return
        if sort is TermKind.CONCEPT:
            concepts = self._concepts[root, value[0]]
            del concepts[value[1]]
            if not concepts:
                del self._concepts[root, value[0]], self._trees[root][value[0]]
        elif sort is TermKind.TEXT:
            for text in value:
                del self._texts[root, text][code]
                if not self._texts[root, text]:
                    del self._texts[root, text]
        else:
            del self._exists[root]

    def find_satisfied(self, root: int, value: Any) -> list[int]:
        """Return the codes that a value satisfies: for a concept, by a walk up each tree in use under the root."""
        exists = self._exists.get(root, [])
        if value is OTHER or not isinstance(value, str | bool):
            return exists
        satisfied = [*exists, *self._texts.get((root, value), ())]
        if isinstance(value, bool):
            return satisfied
        for label in self._trees.get(root, ()):
            concept, codes = self._terms.find_concept(label, value), self._concepts[root, label]
            if concept is not None:
                satisfied += [
                    codes[above] for above in list_ancestors(self._terms.get_tree(label), concept) if above in codes
                ]
        return satisfied


class TermColumns:
    """The terms of all rows in flat columns, and whose they are."""

    def __init__(self, terms: TermCompiler) -> None:
        """Start empty."""
        self._terms = terms
        self.codes = TermCodes(terms)
        self.names, self.tops = Interner(), Interner()
        self.labels_by_name: dict[TypedAttribute, tuple[int, int]] = {}
        self._columns = {name: array(code) for name, code in COLUMNS.items()}
        self._starts, self._sizes = array("i"), array("i")
        self._owner: list[Any] = []
        self._free: dict[int, list[int]] = {}
        self._rows: dict[SubId, tuple[int, ...]] = {}
        self._multi_row_filters = 0
        self._arrays: tuple[NDArray[Any], ...] | None = None

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._rows)

    @property
    def capacity(self) -> int:
        """The number of rows, with those that wait to be used again."""
        return len(self._owner)

    def get_start(self, at: int) -> int:
        """Return the place of a row's first term."""
        return self._starts[at]

    def __contains__(self, id: object) -> bool:
        """Tell whether a subscription is there."""
        return id in self._rows

    def add(self, id: SubId, rows: TermRows, on_row: Callable[[int, TermRow], None]) -> None:
        """Take a subscription in; `entered` hears of each of its rows."""
        self._arrays = None
        row_numbers = []
        for row in rows:
            at = self._allocate(id, len(row))
            for place, term in enumerate(row, self._starts[at]):
                self._write(place, term)
            row_numbers.append(at)
            on_row(at, row)
        self._rows[id] = tuple(row_numbers)
        self._multi_row_filters += len(row_numbers) > 1

    def _allocate(self, id: SubId, size: int) -> int:
        free = self._free.get(size)
        if free:
            at = free.pop()
            self._owner[at] = id
            self._sizes[at] = size
            return at
        self._owner.append(id)
        self._starts.append(len(self._columns["labels"]))
        self._sizes.append(size)
        for column in self._columns.values():
            column.extend([0] * size)
        return len(self._owner) - 1

    def _write(self, place: int, term: Term) -> None:
        columns, name = self._columns, term.name
        label = self.names.take(name)
        if name not in self.labels_by_name:
            self.labels_by_name[name] = (self.tops.take(self._terms.find_root(name)), label)
        columns["labels"][place] = label
        if term.kind is not TermKind.NUMBER:
            columns["codes"][place] = self.codes.take(self.labels_by_name[name][0], term)
            return
        span = term.value
        columns["codes"][place] = ON_NUMBERS if span.scale == NUMBER else ON_TIMES
        columns["low"][place], columns["high"][place] = span.low, span.high
        columns["low_ties"][place], columns["high_ties"][place] = span.low_tie, span.high_tie

    def remove(self, id: SubId, on_row: Callable[[int], None]) -> None:
        """Forget a subscription; `left` hears of each of its rows before it goes."""
        self._arrays = None
        rows = self._rows.pop(id)
        self._multi_row_filters -= len(rows) > 1
        for at in rows:
            on_row(at)
            for place in range(self._starts[at], self._starts[at] + self._sizes[at]):
                self._erase(place)
            self._free.setdefault(self._sizes[at], []).append(at)
            self._owner[at] = None
            self._sizes[at] = -1

    def _erase(self, place: int) -> None:
        label, code = self._columns["labels"][place], self._columns["codes"][place]
        if code >= 0:
            self.codes.release(code)
        name = self.names.values[label]
        if self.names.release(label):
            self.tops.release(self.labels_by_name.pop(name)[0])

    def terms_of(self, at: int) -> Iterable[Term]:
        """Yield the terms of a row; of an interval, its ends are not looked up."""
        for place in range(self._starts[at], self._starts[at] + self._sizes[at]):
            name, code = self.names.values[self._columns["labels"][place]], self._columns["codes"][place]
            sort, value = self.codes.decode(code) if code >= 0 else (TermKind.NUMBER, None)
            yield Term(name, sort, value)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the columns for a kernel: starts and sizes of rows, what is kept of terms, the roots of labels."""
        if self._arrays is None:
            kept = [self._starts, self._sizes, *self._columns.values()]
            # Not copies: whoever changes the columns forgets these first.
            roots = np.zeros(len(self.names.values), np.int32)
            for root, label in self.labels_by_name.values():
                roots[label] = root
            self._arrays = (*(np.frombuffer(column, column.typecode) for column in kept), roots)
        return self._arrays

    def owners(self, rows: list[int]) -> list[SubId]:
        """Return whose rows these are, each once."""
        owners = [self._owner[row] for row in rows]
        return list(dict.fromkeys(owners)) if self._multi_row_filters else owners


class EventPairs:
    """An event's pairs in flat arrays, as kernels read them."""

    def __init__(self, reading: Reading, columns: TermColumns) -> None:
        """Look up what the event says."""
        self.pairs = [
            (root, *pair) for root, pairs in group_pairs(reading, columns.labels_by_name).items() for pair in pairs
        ]
        labels, codes, label_ends, code_ends = array("i"), array("i"), array("i", [0]), array("i", [0])
        spans, ties, scales = array("d"), array("i"), array("i")
        for root, value, names in self.pairs:
            labels.extend(names)
            codes.extend(columns.codes.find_satisfied(root, value))
            label_ends.append(len(labels))
            code_ends.append(len(codes))
            _write_span(value, spans, ties, scales)
        roots = [root for root, _, _ in self.pairs]
        integers = (roots, labels, label_ends, codes, code_ends)
        self.arrays: Sequence[NDArray[Any]] = (
            *(np.array(column, np.int32) for column in integers),
            np.array(spans, np.float64), np.array(ties, np.int32), np.array(scales, np.int32),
        )  # fmt: skip


def _write_span(value: Any, spans: array[float], ties: array[int], scales: array[int]) -> None:
    """Write a value's ends, and a bit for each scale it is on."""
    value_spans = () if value is OTHER or isinstance(value, str | bool) else to_value_spans(value)
    scales.append(sum(1 if span.scale == NUMBER else 2 for span in value_spans))
    spans.extend((value_spans[0].low, value_spans[0].high) if value_spans else (0.0, 0.0))
    ties.extend((value_spans[0].low_tie, value_spans[0].high_tie) if value_spans else (0, 0))
