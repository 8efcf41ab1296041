"""A draft: filters compiled to rows of intervals, before end points have codes.

A filter is a few rows; a row is a conjunction of literals; a literal is one or more intervals in the list of its
column. What no interval can express is an item of the exact checks that the row needs. A filter whose normal form would
be too large is kept as a tree over leaves, which are literals and items too; where some literals stand beside its `or`s
that can be a key, they are a row that finds the tree. Drafting only appends, a million times, so the lists are plain
arrays.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings import model
from tidings.algebra.normal_form import expand_rows, push_negations
from tidings.engine.compile.columns import EXACT, Column, View, split_number
from tidings.engine.compile.encoders import EncodedPredicate, encode_boxes, encode_condition, make_point
from tidings.engine.exact.exact_checks import QUANTIFIERS, ExactItem, LawItem, PlaceItem
from tidings.engine.tuning import DEFAULT_TUNING, EngineTuning
from tidings.errors import TooLarge
from tidings.kernels.match.literals import ALL, ANY, NOT_ALL, NOT_ANY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.concepts import Ontology

CACHED_TESTS = 200_000
"""Tests whose compiled form is cached, because parsed filters share them."""

MIN_UNREAD_TESTS = 200
"""A conjunction of so many tests is not read back from its row, which would be slow."""


class DraftLiteral(NamedTuple):
    """A literal: its column, its op, and its first interval in the column's list with their number."""

    column: int
    op: int
    span: int
    spans: int


class CompiledTest(NamedTuple):
    """A compiled test: literals that must hold, and items of the exact checks.

    `lossless`: the test can be read back from its literals.
    """

    literals: tuple[DraftLiteral, ...]
    items: tuple[int, ...]
    lossless: bool


class EndLists:
    """The intervals of one column: low ends, high ends, flags."""

    def __init__(self, column: Column) -> None:
        self.is_bytewise = column.view.is_bytewise
        self.low = array("i" if self.is_bytewise else "d")
        self.high = array("i" if self.is_bytewise else "d")
        self.flags = array("B")
        self.rest: dict[int, tuple[int, int]] = {}  # interval -> what floats miss of its integer ends
        self.text_numbers: dict[bytes, int] = {}

    def add(self, low: Any, high: Any, flags: int) -> None:
        """Append an interval."""
        if self.is_bytewise:
            self.low.append(self.text_numbers.setdefault(low, len(self.text_numbers)))
            self.high.append(self.text_numbers.setdefault(high, len(self.text_numbers)))
        else:
            self.low.append(low)
            self.high.append(high)
            if abs(low) > EXACT or abs(high) > EXACT:
                self.rest[len(self.flags)] = split_number(low)[1], split_number(high)[1]
        self.flags.append(flags)


class FilterDraft:
    """Compiled filters on their way into a segment; `RowTable.from_draft` gives them codes."""

    def __init__(self, ontology: Ontology, tuning: EngineTuning = DEFAULT_TUNING) -> None:
        self._ontology, self.tuning = ontology, tuning
        self.columns: dict[Column, int] = {}
        self.ends: list[EndLists] = []
        self.row_size = array("I")
        self.row_slot = array("I")
        self.literals = array("I")  # the four numbers of each `DraftLiteral`
        self.items: dict[ExactItem, int] = {}
        self.item_row = array("I")
        self.item_number = array("I")
        self.patterns: dict[str, dict[model.TextTest, int]] = {}
        self.leaves: dict[DraftLiteral | int, int] = {}  # a literal, or the number of an item
        self.trees: list[tuple[int, Any]] = []
        self.candidate_leaves: dict[DraftLiteral | int, int] = {}  # literals alone
        self.candidate_trees: list[tuple[int, Any]] = []  # trees that are decided for the events which pass their rows
        self._compiled_tests: dict[tuple[int, bool], tuple[model.Test, CompiledTest]] = {}

    def add(self, slot: int, tree: model.Filter) -> bool:
        """Compile a bound filter; tell whether it can be read back from its one row as it is."""
        tests = []
        for part in tree.parts if type(tree) is model.And else (tree,):
            negated = type(part) is model.Not
            test = part.part if negated else part  # type: ignore[union-attr]
            if type(test) is not model.Test:
                self._add_compound(slot, tree)
                return False
            tests.append(self._compile_cached(test, negated))
        self._append_row(slot, tests)
        return len(tests) < MIN_UNREAD_TESTS and all(test.lossless for test in tests)

    def _add_compound(self, slot: int, tree: model.Filter) -> None:
        rows = _expand_rows(tree, self.tuning.row_limit)
        if rows is None:
            with suppress(TooLarge):
                rows = expand_rows(push_negations(tree), limit=self.tuning.row_limit)
        if rows is None or not all(any(map(_is_selective, row)) for row in rows):
            flat = push_negations(tree)
            required = self._find_required_tests(flat)
            if required is None:
                self.trees.append((slot, self._build_node(flat, self.leaves)))
            else:
                self._append_row(slot, required)
                self.candidate_trees.append((slot, self._build_node(flat, self.candidate_leaves)))
            return
        for row in rows:
            self._append_row(slot, [self._compile_literal(literal) for literal in row])

    def _append_row(self, slot: int, tests: list[CompiledTest]) -> None:
        size = 0
        for literals, items, _ in tests:
            size += len(literals)
            for literal in literals:
                self.literals.extend(literal)
            for item in items:
                self.item_row.append(len(self.row_slot))
                self.item_number.append(item)
        self.row_size.append(size)
        self.row_slot.append(slot)

    def _find_required_tests(self, flat: model.Filter) -> list[CompiledTest] | None:
        """Return the tests that a filter requires beside its `or`s, if one of them can be a key; else None.

        They are necessary, not sufficient. A tree with items is decided in blocks, where each item is decided once.
        """
        direct = [part for part in flat.parts if not isinstance(part, model.Or)] if isinstance(flat, model.And) else []
        finds_it = bool(direct) if self.tuning.any_literal_finds_trees else any(map(_is_key, direct))
        if not finds_it or any(self._compile_literal(leaf).items for leaf in _iterate_leaves(flat)):
            return None
        return list(map(self._compile_literal, direct))

    def _build_node(self, flat: model.Filter, numbers: dict[DraftLiteral | int, int]) -> Any:
        """Return a tree whose leaves are the numbers of literals and items, which are added to `numbers`."""
        match flat:
            case model.And(parts):
                return ("and", tuple(self._build_node(part, numbers) for part in parts))
            case model.Or(parts):
                return ("or", tuple(self._build_node(part, numbers) for part in parts))
        compiled = self._compile_literal(flat)
        # An item decides alone: its literals are the bounding box of the same test.
        keys: list[DraftLiteral | int] = list(compiled.items) or list(compiled.literals)
        leaves = tuple(numbers.setdefault(key, len(numbers)) for key in keys)
        return leaves[0] if len(leaves) == 1 else ("and", leaves)

    def _compile_literal(self, literal: model.Filter) -> CompiledTest:
        if isinstance(literal, model.Not):
            assert isinstance(literal.part, model.Test)
            return self._compile_cached(literal.part, True)
        assert isinstance(literal, model.Test)
        return self._compile_cached(literal, False)

    def _compile_cached(self, test: model.Test, negated: bool) -> CompiledTest:
        cached = self._compiled_tests.get((id(test), negated))
        if cached is not None:
            return cached[1]
        compiled = self._compile_test(test, negated)
        if len(self._compiled_tests) >= CACHED_TESTS:
            self._compiled_tests.clear()
        self._compiled_tests[id(test), negated] = (test, compiled)  # the reference keeps `id(test)` valid
        return compiled

    def _compile_test(self, test: model.Test, negated: bool) -> CompiledTest:
        op = QUANTIFIERS.index(test.quantifier) + (NOT_ANY if negated else ANY)
        condition, attribute = test.condition, test.attribute
        if isinstance(condition, model.Within | model.Near):
            item = self._number_item(PlaceItem(attribute, op, condition))
            boxes = encode_boxes(attribute, condition) if op in (ANY, ALL) else ()
            return CompiledTest(tuple(self._append_literal(box, ANY) for box in boxes), (item,), False)
        encoded = None
        if not isinstance(condition, model.Compare | model.Has):
            encoded = encode_condition(attribute, condition, self._ontology)
        if encoded is None and isinstance(condition, model.TextTest) and op not in (ALL, NOT_ALL):
            numbers = self.patterns.setdefault(attribute, {})
            number = numbers.setdefault(condition, len(numbers))
            encoded = EncodedPredicate(Column(attribute, View.PATTERNS), (make_point(number),))
        if encoded is not None:
            return CompiledTest((self._append_literal(encoded, op),), (), _is_lossless(condition))
        return CompiledTest((), (self._number_item(LawItem(model.Not(test) if negated else test)),), False)

    def _number_item(self, item: ExactItem) -> int:
        return self.items.setdefault(item, len(self.items))

    def _append_literal(self, encoded: EncodedPredicate, op: int) -> DraftLiteral:
        column = self.columns.get(encoded.column)
        if column is None:
            column = self.columns[encoded.column] = len(self.ends)
            self.ends.append(EndLists(encoded.column))
        ends = self.ends[column]
        first = len(ends.flags)
        for span in encoded.spans:
            ends.add(*span)
        return DraftLiteral(column, op, first, len(encoded.spans))


def _is_selective(literal: model.Filter) -> bool:
    """Tell whether a literal can be a key.

    A row without a key would be visited for every event; as a tree, the filter is decided once for 512 of them.
    """
    return (
        type(literal) is model.Test
        and literal.quantifier is model.Quantifier.ANY
        and isinstance(
            literal.condition,
            model.Is | model.In | model.SameText | model.TextTest | model.IsA | model.Within | model.Near,
        )
    )


def _is_key(literal: model.Filter) -> bool:
    """Tell whether a literal is selective enough to find a tree by: a truth value is not, it is half of the events."""
    is_truth = isinstance(literal, model.Test) and isinstance(getattr(literal.condition, "value", None), bool)
    return _is_selective(literal) and not is_truth


def _iterate_leaves(flat: model.Filter) -> Iterator[model.Filter]:
    """Yield the literals of a filter whose `not`s are pushed down."""
    if isinstance(flat, model.And | model.Or):
        for part in flat.parts:
            yield from _iterate_leaves(part)
    else:
        yield flat


def _expand_rows(tree: model.Filter, limit: int) -> list[tuple[model.Filter, ...]] | None:
    """Return the conjunctions of a filter if they are few and no `not` has to be pushed down; else None.

    Most `or`s have two or three alternatives, and to multiply them out is ten times as fast as `algebra.normal_form`.
    """
    kind = type(tree)
    if kind is model.Test or (kind is model.Not and type(tree.part) is model.Test):  # type: ignore[union-attr]
        return [(tree,)]
    if kind is model.Not:
        return None
    rows: list[tuple[model.Filter, ...]] = [] if kind is model.Or else [()]
    for part in tree.parts:  # type: ignore[union-attr]
        more = _expand_rows(part, limit)
        if more is None:
            return None
        rows = rows + more if kind is model.Or else [row + more_row for row in rows for more_row in more]
        if len(rows) > limit:
            return None
    return rows


def _is_lossless(condition: Any) -> bool:
    """Tell whether a condition can be read back from its intervals exactly as it was written."""
    match condition:
        case model.Range(low, high):
            # `in [5 .. 5]` would come back as `= 5`.
            return low != high and _has_one_spelling(low) and _has_one_spelling(high)
        case model.Is(value):
            return _has_one_spelling(value)
        case model.In(values):
            return all(map(_has_one_spelling, values))
        case model.Exists() | model.IsNull():
            return True
        case model.TextTest(op):
            return op in (model.TextOp.CONTAINS, model.TextOp.LIKE, model.TextOp.MATCHES)
    return False


def _has_one_spelling(value: Any) -> bool:
    return not isinstance(value, float) or not value.is_integer()
