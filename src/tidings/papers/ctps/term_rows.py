"""Rows of terms in flat columns, for the matchers that check subscriptions one by one (`g-topss`, `ops`).

A term is a label (its attribute's name) and a code (its concept, texts or existence), or a label and the ends of an
interval. Labels and codes are numbers that are used again when nobody needs them. A row's terms lie side by side; the
place of a removed row goes to the next one of its length.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.papers.ctps.concept_terms import NUMBER, OTHER, Sort, Term, ancestors, pairs_of, spans_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from tidings.algebra import Reading
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.matcher.algorithm import SubId
    from tidings.papers.ctps.concept_terms import Row, Rows, Terms

ON_NUMBERS, ON_TIMES = -1, -2
"""The codes of intervals."""

COLUMNS = {"labels": "i", "codes": "i", "low": "d", "high": "d", "low_ties": "h", "high_ties": "h"}
"""What is kept of a term, and as what."""


class Interned:
    """Numbers for things, counted: what nobody needs any more is forgotten, and its number used again."""

    def __init__(self) -> None:
        """Start empty."""
        self.numbers: dict[Any, int] = {}
        self.things: list[Any] = []
        self._counts: list[int] = []
        self._free: list[int] = []

    def take(self, thing: Any) -> int:
        """Return the number of a thing, and count one more who needs it."""
        number = self.numbers.get(thing)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.things[number] = thing
            else:
                number = len(self.things)
                self.things.append(thing)
                self._counts.append(0)
            self.numbers[thing] = number
        self._counts[number] += 1
        return number

    def drop(self, number: int) -> bool:
        """Count one less; tell whether the thing was forgotten."""
        self._counts[number] -= 1
        if self._counts[number]:
            return False
        del self.numbers[self.things[number]]
        self.things[number] = None
        self._free.append(number)
        return True

    def __len__(self) -> int:
        """Count the things."""
        return len(self.numbers)


class Codes:
    """Codes of concepts, sets of texts and existence under one root, and which of them a value satisfies."""

    def __init__(self, terms: Terms) -> None:
        """Start empty."""
        self._terms = terms
        self._all = Interned()
        self._concepts: dict[tuple[int, str], dict[str, int]] = {}
        self._trees: dict[int, dict[str, None]] = {}
        self._texts: dict[tuple[int, Any], dict[int, None]] = {}
        self._exists: dict[int, list[int]] = {}

    def take(self, root: int, term: Term) -> int:
        """Return the code of a term that is no interval."""
        new = (key := (root, term.sort, term.value)) not in self._all.numbers
        code = self._all.take(key)
        if new and term.sort is Sort.CONCEPT:
            tree, concept = term.value
            self._concepts.setdefault((root, tree), {})[concept] = code
            self._trees.setdefault(root, {})[tree] = None
        elif new and term.sort is Sort.TEXT:
            for text in term.value:
                self._texts.setdefault((root, text), {})[code] = None
        elif new:
            self._exists[root] = [code]
        return code

    def meaning(self, code: int) -> tuple[Sort, Any]:
        """Return the sort and value of a code."""
        _, sort, value = self._all.things[code]
        return sort, value

    def drop(self, code: int) -> None:
        """Forget that somebody needed the code."""
        root, sort, value = self._all.things[code]
        if not self._all.drop(code):
            return
        if sort is Sort.CONCEPT:
            concepts = self._concepts[root, value[0]]
            del concepts[value[1]]
            if not concepts:
                del self._concepts[root, value[0]], self._trees[root][value[0]]
        elif sort is Sort.TEXT:
            for text in value:
                del self._texts[root, text][code]
                if not self._texts[root, text]:
                    del self._texts[root, text]
        else:
            del self._exists[root]

    def of(self, root: int, value: Any) -> list[int]:
        """Return the codes that a value satisfies: for a concept, by a walk up each tree in use under the root."""
        exists = self._exists.get(root, [])
        if value is OTHER or not isinstance(value, str | bool):
            return exists
        found = [*exists, *self._texts.get((root, value), ())]
        if isinstance(value, bool):
            return found
        for label in self._trees.get(root, ()):
            concept, codes = self._terms.concept(label, value), self._concepts[root, label]
            if concept is not None:
                found += [codes[above] for above in ancestors(self._terms.tree(label), concept) if above in codes]
        return found


class Columns:
    """The terms of all rows in flat columns, and whose they are."""

    def __init__(self, terms: Terms) -> None:
        """Start empty."""
        self._terms = terms
        self.codes = Codes(terms)
        self.names, self.tops = Interned(), Interned()
        self.known: dict[TypedAttribute, tuple[int, int]] = {}
        self._columns = {name: array(code) for name, code in COLUMNS.items()}
        self._starts, self._sizes = array("i"), array("i")
        self._owner: list[Any] = []
        self._free: dict[int, list[int]] = {}
        self._rows: dict[SubId, tuple[int, ...]] = {}
        self._several = 0
        self._arrays: tuple[NDArray[Any], ...] | None = None

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._rows)

    @property
    def room(self) -> int:
        """The number of rows, with those that wait to be used again."""
        return len(self._owner)

    def start(self, at: int) -> int:
        """Return the place of a row's first term."""
        return self._starts[at]

    def __contains__(self, id: object) -> bool:
        """Tell whether a subscription is there."""
        return id in self._rows

    def add(self, id: SubId, rows: Rows, entered: Callable[[int, Row], None]) -> None:
        """Take a subscription in; `entered` hears of each of its rows."""
        self._arrays = None
        taken = []
        for row in rows:
            at = self._place(id, len(row))
            for place, term in enumerate(row, self._starts[at]):
                self._write(place, term)
            taken.append(at)
            entered(at, row)
        self._rows[id] = tuple(taken)
        self._several += len(taken) > 1

    def _place(self, id: SubId, size: int) -> int:
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
        if name not in self.known:
            self.known[name] = (self.tops.take(self._terms.root(name)), label)
        columns["labels"][place] = label
        if term.sort is not Sort.NUMBER:
            columns["codes"][place] = self.codes.take(self.known[name][0], term)
            return
        span = term.value
        columns["codes"][place] = ON_NUMBERS if span.scale == NUMBER else ON_TIMES
        columns["low"][place], columns["high"][place] = span.low, span.high
        columns["low_ties"][place], columns["high_ties"][place] = span.low_tie, span.high_tie

    def remove(self, id: SubId, left: Callable[[int], None]) -> None:
        """Forget a subscription; `left` hears of each of its rows before it goes."""
        self._arrays = None
        rows = self._rows.pop(id)
        self._several -= len(rows) > 1
        for at in rows:
            left(at)
            for place in range(self._starts[at], self._starts[at] + self._sizes[at]):
                self._erase(place)
            self._free.setdefault(self._sizes[at], []).append(at)
            self._owner[at] = None
            self._sizes[at] = -1

    def _erase(self, place: int) -> None:
        label, code = self._columns["labels"][place], self._columns["codes"][place]
        if code >= 0:
            self.codes.drop(code)
        name = self.names.things[label]
        if self.names.drop(label):
            self.tops.drop(self.known.pop(name)[0])

    def terms_of(self, at: int) -> Iterable[Term]:
        """Yield the terms of a row; of an interval, its ends are not looked up."""
        for place in range(self._starts[at], self._starts[at] + self._sizes[at]):
            name, code = self.names.things[self._columns["labels"][place]], self._columns["codes"][place]
            sort, value = self.codes.meaning(code) if code >= 0 else (Sort.NUMBER, None)
            yield Term(name, sort, value)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the columns for a kernel: starts and sizes of rows, what is kept of terms, the roots of labels."""
        if self._arrays is None:
            kept = [self._starts, self._sizes, *self._columns.values()]
            # Not copies: whoever changes the columns forgets these first.
            roots = np.zeros(len(self.names.things), np.int32)
            for root, label in self.known.values():
                roots[label] = root
            self._arrays = (*(np.frombuffer(column, column.typecode) for column in kept), roots)
        return self._arrays

    def owners(self, rows: list[int]) -> list[SubId]:
        """Return whose rows these are, each once."""
        found = [self._owner[row] for row in rows]
        return list(dict.fromkeys(found)) if self._several else found


class Pairs:
    """An event's pairs in flat arrays, as kernels read them."""

    def __init__(self, reading: Reading, columns: Columns) -> None:
        """Look up what the event says."""
        self.pairs = [(root, *pair) for root, pairs in pairs_of(reading, columns.known).items() for pair in pairs]
        labels, codes, label_ends, code_ends = array("i"), array("i"), array("i", [0]), array("i", [0])
        spans, ties, scales = array("d"), array("i"), array("i")
        for root, value, names in self.pairs:
            labels.extend(names)
            codes.extend(columns.codes.of(root, value))
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
    found = () if value is OTHER or isinstance(value, str | bool) else spans_of_value(value)
    scales.append(sum(1 if span.scale == NUMBER else 2 for span in found))
    spans.extend((found[0].low, found[0].high) if found else (0.0, 0.0))
    ties.extend((found[0].low_tie, found[0].high_tie) if found else (0, 0))
