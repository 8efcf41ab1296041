"""Truth vectors: which of several conditions on an attribute one value can satisfy together.

Every value satisfies some of the conditions: a vector with one bit for each. There are finitely many vectors, and
knowing all of them decides every question about the conditions. Drawn for `a < 3` (bit 0) and `a in (2 .. 5)` (bit 1):

    values   ------- 2 ----- 3 ------- 5 -------
    vectors    01       11       10        00

Where values are ordered, the end points and the stretches between them give the vectors exactly; a value that is
itself a range gives the union of the bits of neighbouring stretches. A condition without an order is free to be true
or false, unless another condition or the stretch decides it. So there may be more vectors than values can produce,
never fewer.

All conditions read the value under one label (kind and unit), and the value is assumed to be readable.

Cost: linear in the end points of ordered conditions, times the number of conditions if values may be ranges; beyond
`MAX_COMBINATIONS` the computation is given up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import permutations, product
from operator import or_
from typing import TYPE_CHECKING, Any

from tidings.algebra.covering import area_relations, globs, value_sets
from tidings.algebra.covering.spans import split_into_cells
from tidings.algebra.covering.value_sets import Space
from tidings.algebra.law.evaluate import Setting, satisfies
from tidings.concepts import Ontology
from tidings.errors import TidingsError
from tidings.model import Compare, Comparison, In, Is, IsA, Near, SameText, TextTest, Within, WithinRegion, list_scalars
from tidings.model.values import EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.algebra.covering.spans import Cell, Cut, Spans
    from tidings.model import Condition

MAX_COMBINATIONS = 65_536
"""Combinations of stretches and unordered conditions that are enumerated at most."""

MAX_CHOICES = 4096
"""Combinations of unordered conditions that are enumerated at most."""

MAX_UNORDERED = 24
"""Unordered conditions that are compared with each other at most; their pairs are."""

_OUTCOMES = {
    Comparison.LT: 0b001,
    Comparison.EQ: 0b010,
    Comparison.GT: 0b100,
    Comparison.LE: 0b011,
    Comparison.GE: 0b110,
}


@dataclass(frozen=True, slots=True)
class ValueContext:
    """What vectors depend on besides the conditions; `is_concept`: values are canonical concept names."""

    ontology: Ontology
    now: datetime | None = None
    is_concept: bool = False


class _TooManyVectors(Exception):
    """The vectors exceed one of the limits."""


def compute_vectors(conditions: Sequence[Condition], context: ValueContext, *, ranges: bool) -> set[int] | None:
    """Return every combination of conditions that one value can satisfy, as bits; `None` if there are too many."""
    try:
        return _VectorTable(conditions, context, ranges=ranges).compute()
    except _TooManyVectors:
        return None


def compute_comparison_vectors(conditions: Sequence[Compare], *, single: bool, ordered: bool) -> set[int]:
    """Return the combinations of comparisons that a value and another attribute's values can satisfy.

    The value is less than, equal to or greater than the other's single value, or any of these for several values.
    Unless values are known to be `ordered`, their kind may have no order: equal, but not less-or-equal.
    """
    cases = (0b001, 0b010, 0b100) if single else range(1, 8)
    outcomes = [_OUTCOMES[condition.op] for condition in conditions]
    vectors = {sum(bool(outcome & case) << index for index, outcome in enumerate(outcomes)) for case in cases}
    if not ordered:
        vectors.add(sum((condition.op is Comparison.EQ) << index for index, condition in enumerate(conditions)))
    return vectors


class _VectorTable:
    """Computes the vectors of one list of conditions."""

    def __init__(self, conditions: Sequence[Condition], context: ValueContext, *, ranges: bool) -> None:
        self._conditions, self._context, self._ranges = conditions, context, ranges
        self._spaces: dict[Space, dict[int, Spans]] = {}
        self._concepts: dict[str, dict[int, Spans]] = {}
        self._unordered: list[int] = []
        for index, condition in enumerate(conditions):
            self._classify(index, condition)
        if len(self._unordered) > MAX_UNORDERED:
            raise _TooManyVectors
        self._implied = dict.fromkeys(self._unordered, 0)
        self._excluded = dict.fromkeys(self._unordered, 0)
        for first, second in permutations(self._unordered, 2):
            self._implied[first] |= implies(conditions[first], conditions[second]) << second
            self._excluded[first] |= excludes(conditions[first], conditions[second]) << second
        self._always = sum(1 << index for index in self._unordered if area_relations.covers_earth(conditions[index]))
        self._concept_vectors = [self._compute_concept_vectors(tree) for tree in self._concepts]

    def _classify(self, index: int, condition: Condition) -> None:
        value_set = value_sets.to_value_set(condition, self._context.now)
        if value_set is not None:
            self._spaces.setdefault(value_set.space, {})[index] = value_set.spans
        elif isinstance(condition, IsA) and (tree := _find_tree(condition, self._context.ontology)) is not None:
            ranges = self._context.ontology.ranges(condition.concept, tree=tree)
            self._concepts.setdefault(tree, {})[index] = tuple(((low, 0), (high + 1, 0)) for low, high in ranges)
        else:
            self._unordered.append(index)

    def compute(self) -> set[int]:
        main = self._spaces.keys() - {Space.AGE}
        if not main:
            free = self._enumerate_choices(self._always, 0)
            return self._combine(*map(self._combine_stretches, self._spaces), *self._concept_vectors, free)
        if not main <= {Space.TEXT, Space.PLACE}:
            return self._combine(*map(self._combine_stretches, self._spaces), self._enumerate_choices(0, 0))
        (space,) = main
        return self._collect(
            bits | rest
            for low, high, bits in self._list_stretches(space)
            for rest in self._combine_unordered(space, low, high)
        )

    def _combine_stretches(self, space: Space) -> set[int]:
        """Return the bits of each stretch of one order; if values may be ranges, of united neighbours too."""
        steps = [bits for _, _, bits in self._list_stretches(space)]
        if not self._ranges or space not in (Space.NUMBER, Space.TIME, Space.AGE):
            return set(steps)
        combinations: set[int] = set()
        ending: set[int] = set()  # united bits of all ranges that end here; each condition adds one at most
        for bits in steps:
            ending = {bits, *(run | bits for run in ending)}
            combinations |= ending
        return combinations

    def _list_stretches(self, space: Space) -> list[Cell]:
        indexes = list(self._spaces[space])
        sets = [value_sets.EVERYTHING[space], *self._spaces[space].values()]
        return [(low, high, _spread_bits(bits >> 1, indexes)) for low, high, bits in split_into_cells(sets)]

    def _combine(self, *axes: Iterable[int]) -> set[int]:
        return self._collect(reduce(or_, bits, 0) for bits in product(*axes))

    def _collect(self, combinations: Iterable[int]) -> set[int]:
        kept: set[int] = set()
        for count, bits in enumerate(combinations):
            if count >= MAX_COMBINATIONS:
                raise _TooManyVectors
            kept.add(bits)
        return kept

    def _combine_unordered(self, space: Space, low: Cut, high: Cut) -> set[int]:
        """Return the bits of the unordered conditions on one stretch of the order; a single value decides them all."""
        value = value_sets.find_sole_value(space, low, high)
        if value is not None:
            return self._evaluate_value(value)
        forced = self._find_forced(low, high) if space is Space.TEXT else (self._always, 0)
        return self._combine(*self._concept_vectors, self._enumerate_choices(*forced))

    def _evaluate_value(self, value: Any) -> set[int]:
        """Evaluate the unordered conditions on one value; those that cannot be evaluated stay free."""
        setting = Setting(self._context.ontology, self._context.now or EPOCH)
        undecided = [*self._unordered, *(index for tree in self._concepts.values() for index in tree)]
        outcomes = [(1 << index, self._evaluate_condition(index, value, setting)) for index in undecided]
        return self._combine(*((0, bit) if outcome is None else (bit * outcome,) for bit, outcome in outcomes))

    def _evaluate_condition(self, index: int, value: Any, setting: Setting) -> bool | None:
        """Evaluate a condition on a value by the law; `None` if it needs an undefined region or concept."""
        condition = self._conditions[index]
        if isinstance(condition, WithinRegion) or (isinstance(condition, IsA) and index in self._unordered):
            return None
        try:
            return satisfies(value, condition, setting)
        except TidingsError:  # an ambiguous concept name
            return None

    def _compute_concept_vectors(self, tree: str) -> set[int]:
        """Return the bits of each stretch of a tree's concepts, and 0 for a name outside the tree."""
        named: set[int | None] = set()  # the concepts that equality conditions name
        if self._context.is_concept:
            equalities = [condition for condition in self._conditions if isinstance(condition, Is | In)]
            values = [value for condition in equalities for value in list_scalars(condition)]
            named = {self._context.ontology.code(str(value), tree=tree) for value in values}
        concepts = self._concepts[tree]
        # A stretch whose concepts are all named by equalities holds no other value, so it adds no vector.
        kept = [
            bits
            for (low, _), (high, _), bits in split_into_cells(list(concepts.values()))
            if high - low > len(named) or not named.issuperset(range(low, high))
        ]
        return {0, *(_spread_bits(bits, list(concepts)) for bits in kept)}

    def _find_forced(self, low: Cut, high: Cut) -> tuple[int, int]:
        """Return the unordered conditions that all texts of a stretch satisfy, and those that none does, as bits."""
        prefix = globs.Glob((*globs.to_signs(value_sets.find_shared_prefix(low, high)), globs.STAR))
        true = false = 0
        for index in self._unordered:
            patterns = _to_globs(self._conditions[index])
            spans = [(glob, *value_sets.to_prefix_span(glob.head)) for glob in patterns]
            true |= any(globs.includes(glob, prefix) for glob in patterns) << index
            excluded = [high <= start or low >= end or globs.excludes(glob, prefix) for glob, start, end in spans]
            false |= (bool(excluded) and all(excluded)) << index
        return true, false

    def _enumerate_choices(self, true: int, false: int) -> list[int]:
        """Return the combinations of unordered conditions that are consistent with their known relations."""
        choices = [0]
        decided = 0
        for index in self._unordered:
            bit = 1 << index
            implied, excluded = self._implied[index] & decided, self._excluded[index]
            # Conditions already decided that imply this one.
            makers = sum(1 << other for other in self._unordered if self._implied[other] & bit) & decided
            holding = [bits | bit for bits in choices if not (false & bit or implied & ~bits or excluded & bits)]
            failing = [bits for bits in choices if not (true & bit or makers & bits)]
            choices = holding + failing
            decided |= bit
            if len(choices) > MAX_CHOICES:
                raise _TooManyVectors
        return choices


def implies(first: Condition, second: Condition) -> bool:
    """Tell whether every value that satisfies the first certainly satisfies the second."""
    match first, second:
        case TextTest() | SameText(), TextTest() | SameText():
            inner, outer = _to_globs(first), _to_globs(second)
            return bool(inner) and all(any(globs.includes(wide, glob) for wide in outer) for glob in inner)
        case Within() | Near(), Within() | Near():
            return area_relations.includes(second, first)
    return False


def excludes(first: Condition, second: Condition) -> bool:
    """Tell whether certainly no value satisfies both."""
    match first, second:
        case TextTest() | SameText(), TextTest() | SameText():
            left, right = _to_globs(first), _to_globs(second)
            return bool(left and right) and all(globs.excludes(glob, other) for glob in left for other in right)
        case Within() | Near(), Within() | Near():
            return area_relations.excludes(first, second)
    return False


def _find_tree(condition: IsA, ontology: Ontology) -> str | None:
    """Return the tree of a concept, or `None` if it is in no tree or in several."""
    if condition.tree is not None:
        return condition.tree
    homes = [name for name, tree in ontology.trees.items() if condition.concept in tree]
    return homes[0] if len(homes) == 1 else None


def _to_globs(condition: Condition) -> list[globs.Glob]:
    """Return globs whose texts together are those the condition accepts; empty if it has none."""
    if isinstance(condition, SameText):
        return [globs.Glob(globs.to_signs(text), ignores_case=True) for text in sorted(condition.folded)]
    glob = globs.to_glob(condition) if isinstance(condition, TextTest) else None
    return [] if glob is None else [glob]


def _spread_bits(bits: int, indexes: list[int]) -> int:
    return sum(1 << index for position, index in enumerate(indexes) if bits >> position & 1)
