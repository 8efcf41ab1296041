"""A draft: compiled filters column by column, before codes are known.

Each filter is a few rows; each row a conjunction of literals; each literal one or more intervals in the
list of its column. What no interval can say is a second-phase item of its row. A filter whose normal form
would be too large is kept as a tree over leaves, which are literals and second-phase items too; where some of
its literals are a key, they are a row that finds it. Appending is all that happens here, a million times, so
the lists are plain arrays.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings.algebra.normal_form import expand_rows, push_negations
from tidings.engine.compile.columns import Column, View, split_number
from tidings.engine.compile.encoders import place, registry
from tidings.engine.compile.encoders.base import EncodedPredicate
from tidings.engine.exact.exact_checks import ExactItem, LawItem, PlaceItem
from tidings.engine.tuning import DEFAULT_TUNING, EngineTuning
from tidings.errors import TooLarge
from tidings.kernels.match.literals import ALL, ANY, NONE, NOT_ALL, NOT_ANY
from tidings.model import (
    And,
    Compare,
    Exists,
    Has,
    In,
    Is,
    IsA,
    IsNull,
    Kind,
    Near,
    Not,
    Or,
    Quantifier,
    Range,
    SameText,
    Test,
    TextOp,
    TextTest,
    Within,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidings.concepts import Ontology
    from tidings.model import Filter

CACHED_TESTS = 200_000
"""Tests whose literals are remembered, because parsed filters share them."""

OPS = {Quantifier.ANY: ANY, Quantifier.ALL: ALL, Quantifier.NONE: NONE}


class DraftLiteral(NamedTuple):
    """One literal: its column, its op, and where its intervals stand in the column's list."""

    column: int
    op: int
    span: int
    spans: int


class CompiledTest(NamedTuple):
    """What a test asks: literals that must hold, second-phase items, and whether the literals say it all as written."""

    literals: tuple[DraftLiteral, ...]
    items: tuple[int, ...]
    lossless: bool


class EndLists:
    """The intervals of one column: low ends, high ends, flags."""

    def __init__(self, column: Column, kind: Kind) -> None:
        """Start empty."""
        self.kind = kind
        self.is_bytewise = column.view.is_bytewise
        self.low = array("i" if self.is_bytewise else "d")
        self.high = array("i" if self.is_bytewise else "d")
        self.flags = array("B")
        self.rest: dict[int, tuple[int, int]] = {}  # of integers that floats cannot hold
        self.text_numbers: dict[bytes, int] = {}

    def add(self, low: Any, high: Any, flags: int) -> None:
        """Append an interval."""
        if self.is_bytewise:
            self.low.append(self.text_numbers.setdefault(low, len(self.text_numbers)))
            self.high.append(self.text_numbers.setdefault(high, len(self.text_numbers)))
        else:
            self.low.append(low)
            self.high.append(high)
            if abs(low) > 2**53 or abs(high) > 2**53:
                self.rest[len(self.flags)] = split_number(low)[1], split_number(high)[1]
        self.flags.append(flags)


class FilterDraft:
    """Compiled filters on their way into a segment."""

    def __init__(self, ontology: Ontology, tuning: EngineTuning = DEFAULT_TUNING) -> None:
        """Start empty."""
        self._ontology, self.tuning = ontology, tuning
        self.columns: dict[Column, int] = {}
        self.ends: list[EndLists] = []
        self.row_size = array("I")
        self.row_slot = array("I")
        self.lit_column = array("I")
        self.lit_op = array("B")
        self.lit_span = array("I")
        self.lit_count = array("I")
        self.items: dict[ExactItem, int] = {}
        self.item_row = array("I")
        self.item_number = array("I")
        self.patterns: dict[str, dict[TextTest, int]] = {}
        self.leaves: dict[DraftLiteral | int, int] = {}  # a literal, or the number of an item
        self.trees: list[tuple[int, Any]] = []
        self.candidate_leaves: dict[DraftLiteral | int, int] = {}  # literals alone
        self.candidate_trees: list[tuple[int, Any]] = []  # trees that are asked of what their rows let live
        self._compiled_tests: dict[tuple[int, bool], tuple[Test, CompiledTest]] = {}

    def add(self, slot: int, tree: Filter) -> bool:
        """Compile a bound filter; tell whether its one row says all of it, as written."""
        parts = tree.parts if type(tree) is And else (tree,)
        faithful = True
        literals: list[DraftLiteral] = []
        items: list[int] = []
        for part in parts:
            negated = type(part) is Not
            test = part.part if negated else part  # type: ignore[union-attr]
            if type(test) is not Test:
                self._add_compound(slot, tree)
                return False
            meaning = self._compile_cached(test, negated)
            literals += meaning.literals
            items += meaning.items
            faithful &= meaning.lossless
        self._append_row(slot, literals, items)
        return faithful and len(parts) < 200

    def _add_compound(self, slot: int, tree: Filter) -> None:
        rows: Iterable[Iterable[Filter]] | None = _expand_rows(tree, self.tuning.row_limit)
        if rows is None:
            flat = push_negations(tree)
            try:
                rows = expand_rows(flat, limit=self.tuning.row_limit)
            except TooLarge:
                rows = None
        if rows is None or not all(any(map(_is_selective, row)) for row in rows):
            flat = push_negations(tree)
            relaxed = self._find_key_literals(flat)
            if relaxed is None:
                self.trees.append((slot, self._build_node(flat, self.leaves)))
            else:
                self._append_row(slot, relaxed, ())
                self.candidate_trees.append((slot, self._build_node(flat, self.candidate_leaves)))
            return
        for row in rows:
            meanings = [self._compile_literal(literal) for literal in row]
            self._append_row(
                slot, [one for each in meanings for one in each.literals], [i for m in meanings for i in m.items]
            )

    def _append_row(self, slot: int, literals: Sequence[DraftLiteral], items: Sequence[int]) -> None:
        for column, op, span, count in literals:
            self.lit_column.append(column)
            self.lit_op.append(op)
            self.lit_span.append(span)
            self.lit_count.append(count)
        for item in items:
            self.item_row.append(len(self.row_slot))
            self.item_number.append(item)
        self.row_size.append(len(literals))
        self.row_slot.append(slot)

    def _find_key_literals(self, flat: Filter) -> list[DraftLiteral] | None:
        """Return the literals that a filter asks for whatever its `or`s say, if they are a key; else nothing.

        They let too many events live, never too few. A tree with items is left to blocks, where each is decided once.
        """
        direct = [part for part in flat.parts if not isinstance(part, Or)] if isinstance(flat, And) else []
        finds_it = bool(direct) if self.tuning.any_literal_finds_trees else any(map(_is_key, direct))
        if not finds_it or any(self._compile_literal(leaf).items for leaf in _iterate_leaves(flat)):
            return None
        return [literal for part in direct for literal in self._compile_literal(part).literals]

    def _build_node(self, flat: Filter, known: dict[DraftLiteral | int, int]) -> Any:
        """Return a tree whose leaves are numbers of literals and items in `known`."""
        match flat:
            case And(parts):
                return ("and", tuple(self._build_node(part, known) for part in parts))
            case Or(parts):
                return ("or", tuple(self._build_node(part, known) for part in parts))
        meaning = self._compile_literal(flat)
        # An item decides alone: its literals only say where to look.
        keys: list[DraftLiteral | int] = list(meaning.items) or list(meaning.literals)
        leaves = tuple(known.setdefault(key, len(known)) for key in keys)
        return leaves[0] if len(leaves) == 1 else ("and", leaves)

    def _compile_literal(self, literal: Filter) -> CompiledTest:
        if isinstance(literal, Not):
            assert isinstance(literal.part, Test)
            return self._compile_cached(literal.part, True)
        assert isinstance(literal, Test)
        return self._compile_cached(literal, False)

    def _compile_cached(self, test: Test, negated: bool) -> CompiledTest:
        known = self._compiled_tests.get((id(test), negated))
        if known is not None:
            return known[1]
        meaning = self._compile_test(test, negated)
        if len(self._compiled_tests) >= CACHED_TESTS:
            self._compiled_tests.clear()
        self._compiled_tests[id(test), negated] = (test, meaning)  # keeps the test, so that its id stays its own
        return meaning

    def _compile_test(self, test: Test, negated: bool) -> CompiledTest:
        op = OPS[test.quantifier] + (NOT_ANY if negated else ANY)
        condition, attribute = test.condition, test.attribute
        if isinstance(condition, Within | Near):
            item = self._number_item(PlaceItem(attribute, op, condition))
            boxes = place.encode_boxes(attribute, condition) if op in (ANY, ALL) else ()
            return CompiledTest(tuple(self._append_literal(box, ANY) for box in boxes), (item,), False)
        if isinstance(condition, Compare | Has):
            return self._defer_to_law(test, negated)
        found = registry.encode_condition(attribute, condition, self._ontology)
        if found is not None:
            return CompiledTest((self._append_literal(found, op),), (), _is_lossless(condition))
        if isinstance(condition, TextTest) and op not in (ALL, NOT_ALL):
            return CompiledTest((self._append_pattern(attribute, condition, op),), (), True)
        return self._defer_to_law(test, negated)

    def _defer_to_law(self, test: Test, negated: bool) -> CompiledTest:
        return CompiledTest((), (self._number_item(LawItem(Not(test) if negated else test)),), False)

    def _number_item(self, item: ExactItem) -> int:
        return self.items.setdefault(item, len(self.items))

    def _append_literal(self, found: EncodedPredicate, op: int) -> DraftLiteral:
        column = self._number_column(found.column, found.kind)
        ends = self.ends[column]
        first = len(ends.flags)
        for span in found.spans:
            ends.add(*span)
        return DraftLiteral(column, op, first, len(found.spans))

    def _append_pattern(self, attribute: str, condition: TextTest, op: int) -> DraftLiteral:
        known = self.patterns.setdefault(attribute, {})
        number = known.setdefault(condition, len(known))
        found = EncodedPredicate(Column(attribute, View.PATTERNS), ((number, number, 0),), Kind.TEXT)
        return self._append_literal(found, op)

    def _number_column(self, column: Column, kind: Kind) -> int:
        number = self.columns.get(column)
        if number is None:
            number = self.columns[column] = len(self.ends)
            self.ends.append(EndLists(column, kind))
        return number


def _is_selective(literal: Filter) -> bool:
    """Tell whether a literal can be a key.

    A filter with a conjunction that has none would be visited by every event; as a tree, once for 512 of them.
    """
    return (
        type(literal) is Test
        and literal.quantifier is Quantifier.ANY
        and isinstance(literal.condition, Is | In | SameText | TextTest | IsA | Within | Near)
    )


def _is_key(literal: Filter) -> bool:
    """Tell whether a selective literal parts events well enough to find a tree by: a truth value is half of them."""
    return _is_selective(literal) and not isinstance(getattr(literal.condition, "value", None), bool)  # type: ignore[union-attr]


def _iterate_leaves(flat: Filter) -> Iterator[Filter]:
    """Yield the literals of a filter whose `not`s are pushed down."""
    if isinstance(flat, And | Or):
        for part in flat.parts:
            yield from _iterate_leaves(part)
    else:
        yield flat


def _expand_rows(tree: Filter, limit: int) -> list[tuple[Filter, ...]] | None:
    """Return the conjunctions of a filter that has few of them as it stands; nothing where it takes more thought.

    Most `or`s are of two or three alternatives, and to multiply them out is ten times as fast as `algebra.normal`.
    """
    kind = type(tree)
    if kind is Test or (kind is Not and type(tree.part) is Test):  # type: ignore[union-attr]
        return [(tree,)]
    if kind is Not:
        return None
    rows: list[tuple[Filter, ...]] = [] if kind is Or else [()]
    for part in tree.parts:  # type: ignore[union-attr]
        more = _expand_rows(part, limit)
        if more is None:
            return None
        rows = rows + more if kind is Or else [one + other for one in rows for other in more]
        if len(rows) > limit:
            return None
    return rows


def _is_lossless(condition: Any) -> bool:
    """Tell whether a condition can be read back from its intervals just as it was written."""
    match condition:
        case Range(low, high):
            return (
                low != high and _has_one_spelling(low) and _has_one_spelling(high)
            )  # `in [5 .. 5]` would come back as `= 5`
        case Is(value):
            return _has_one_spelling(value)
        case In(values):
            return all(map(_has_one_spelling, values))
        case Exists() | IsNull():
            return True
        case TextTest(op):
            return op in (TextOp.CONTAINS, TextOp.LIKE, TextOp.MATCHES)
    return False


def _has_one_spelling(value: Any) -> bool:
    return not isinstance(value, float) or not value.is_integer()
