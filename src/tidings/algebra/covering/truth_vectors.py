"""What one value of an attribute can be, as far as a few conditions can tell: the truth vectors.

Given conditions on one attribute, every value satisfies some of them: a vector, one bit each. There are
finitely many vectors, and knowing all of them decides every question about the conditions. Where values
have an order, the end points and the stretches between them give the vectors exactly, and a value that is
itself a range gives the joined bits of neighbouring stretches. A condition without an order is free to be
true or false, except where another condition, or the stretch, certainly decides it; then the vectors are
more than there really are, never fewer.

All conditions read the value as one kind, in one unit. That it can be read at all is taken for granted here.

Cost: linear in the end points of ordered conditions, with ranges times the conditions; what would need more
than `COMBINATIONS` is given up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING, Any

from tidings.algebra.covering import area_relations, globs
from tidings.algebra.covering.spans import cells
from tidings.algebra.covering.value_sets import (
    EPOCH,
    EVERYTHING,
    Space,
    place,
    prefix_span,
    shared_prefix,
    sole_value,
)
from tidings.algebra.law.evaluate import Setting, satisfies
from tidings.concepts import Ontology
from tidings.errors import TidingsError
from tidings.model import Compare, Comparison, In, Is, IsA, Near, SameText, TextTest, Within, WithinRegion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.algebra.covering.spans import Cell, Cut, Spans
    from tidings.model import Condition

COMBINATIONS = 65_536
"""Ways to combine what the stretches and the free conditions allow that are looked at."""

CHOICES = 4096
"""Ways in which free conditions hold together that are looked at."""

FREE = 24
"""Conditions without an order that are compared with each other."""

_HOLDS = {Comparison.LT: 0b001, Comparison.EQ: 0b010, Comparison.GT: 0b100, Comparison.LE: 0b011, Comparison.GE: 0b110}


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known beside the conditions; `folded` values are the concepts' own names."""

    ontology: Ontology
    now: datetime | None = None
    folded: bool = False


class _TooMany(Exception):
    """There are more vectors than we look at."""


def vectors(conditions: Sequence[Condition], sight: Sight, *, ranges: bool) -> set[int] | None:
    """Return every combination of the conditions that one value can satisfy, or nothing when there are too many."""
    try:
        return _Table(conditions, sight, ranges=ranges).vectors()
    except _TooMany:
        return None


def compared(conditions: Sequence[Compare], *, single: bool, ordered: bool) -> set[int]:
    """Return the combinations of comparisons with another attribute's values: less, equal, greater, or several.

    Unless values are known to be `ordered`, they may be of a kind that has no order: equal, and not at most equal.
    """
    cases = (0b001, 0b010, 0b100) if single else range(1, 8)
    found = {sum(1 << at for at, one in enumerate(conditions) if _HOLDS[one.op] & case) for case in cases}
    return found if ordered else found | {sum((one.op is Comparison.EQ) << at for at, one in enumerate(conditions))}


class _Table:
    """The vectors of one list of conditions."""

    def __init__(self, conditions: Sequence[Condition], sight: Sight, *, ranges: bool) -> None:
        self._conditions = conditions
        self._sight = sight
        self._ranges = ranges
        self._spaces: dict[Space, dict[int, Spans]] = {}
        self._concepts: dict[str, dict[int, Spans]] = {}
        self._free: list[int] = []
        for at, condition in enumerate(conditions):
            self._sort(at, condition)
        if len(self._free) > FREE:
            raise _TooMany
        self._implied, self._excluded = self._relations()
        self._kinds = self._concept_bits()

    def _sort(self, at: int, condition: Condition) -> None:
        placed = place(condition, self._sight.now)
        if placed is not None:
            self._spaces.setdefault(placed.space, {})[at] = placed.spans
        elif isinstance(condition, IsA) and (tree := _tree_of(condition, self._sight.ontology)) is not None:
            ranges = self._sight.ontology.ranges(condition.concept, tree=tree)
            self._concepts.setdefault(tree, {})[at] = tuple(((low, 0), (high + 1, 0)) for low, high in ranges)
        else:
            self._free.append(at)

    def vectors(self) -> set[int]:
        main = self._spaces.keys() - {Space.AGE}
        if main <= {Space.TEXT, Space.PLACE}:
            return self._worded(main.pop() if main else None)
        return self._products(*(self._line(space) for space in self._spaces), self._choices(0, 0))

    def _line(self, space: Space) -> set[int]:
        """Return the bits of each stretch of one order and, where values may be ranges, of neighbouring stretches."""
        steps = [bits for _, _, bits in self._stretches(space)]
        if not self._ranges or space not in (Space.NUMBER, Space.TIME, Space.AGE):
            return set(steps)
        found: set[int] = set()
        ending: set[int] = set()  # the joined bits of all runs that end here: one more at most for each condition
        for bits in steps:
            ending = {bits, *(run | bits for run in ending)}
            found |= ending
        return found

    def _stretches(self, space: Space) -> list[Cell]:
        at = list(self._spaces[space])
        sets = [EVERYTHING[space], *self._spaces[space].values()]
        return [(low, high, _spread(bits >> 1, at)) for low, high, bits in cells(sets)]

    def _products(self, *axes: Iterable[int]) -> set[int]:
        return self._limited(_joined(bits) for bits in product(*axes))

    def _limited(self, found: Iterable[int]) -> set[int]:
        kept: set[int] = set()
        for count, bits in enumerate(found):
            if count >= COMBINATIONS:
                raise _TooMany
            kept.add(bits)
        return kept

    def _worded(self, space: Space | None) -> set[int]:
        """Text and places: a stretch of one value decides everything, others what can be told of all in them."""
        ages = [self._line(Space.AGE)] if Space.AGE in self._spaces else []
        if space is None:
            return self._products(*ages, *self._kinds, self._choices(*self._always()))
        return self._limited(
            bits | rest for low, high, bits in self._stretches(space) for rest in self._rest(space, low, high)
        )

    def _rest(self, space: Space, low: Cut, high: Cut) -> set[int]:
        """Return the bits of the conditions that have no place in the order, on one stretch of it."""
        value = sole_value(space, low, high)
        if value is not None:
            return self._exact(value)
        forced = self._forced(low, high) if space is Space.TEXT else self._always()
        return self._products(*self._kinds, self._choices(*forced))

    def _exact(self, value: Any) -> set[int]:
        """Ask the law about one value; what cannot be asked stays free."""
        setting = Setting(self._sight.ontology, self._sight.now or EPOCH)
        known = {at: self._told(at, value, setting) for at in self._free}
        known.update({at: self._told(at, value, setting) for tree in self._concepts.values() for at in tree})
        bits = [(0, 1 << at) if told is None else (told << at,) for at, told in known.items()]
        return self._products(*bits)

    def _told(self, at: int, value: Any, setting: Setting) -> bool | None:
        """Ask the law about one condition, unless it needs a region or a concept that nobody defined."""
        condition = self._conditions[at]
        if isinstance(condition, WithinRegion) or (isinstance(condition, IsA) and at in self._free):
            return None
        try:
            return satisfies(value, condition, setting)
        except TidingsError:  # a name that means several concepts
            return None

    def _concept_bits(self) -> list[set[int]]:
        """Return, for each concept tree, the bits of each stretch of concepts, and of a name that it does not have."""
        found = []
        for tree, concepts in self._concepts.items():
            named = self._named(tree) if self._sight.folded else set()
            stretches = cells(list(concepts.values()))
            # A value beside those the conditions name is none of a stretch whose concepts they all name.
            kept = [
                bits
                for (low, _), (high, _), bits in stretches
                if high - low > len(named) or not named.issuperset(range(low, high))
            ]
            found.append({0, *(_spread(bits, list(concepts)) for bits in kept)})
        return found

    def _named(self, tree: str) -> set[int | None]:
        """Return the numbers of the concepts that the conditions name by themselves."""
        values = [one.value for one in self._conditions if isinstance(one, Is)]
        values += [value for one in self._conditions if isinstance(one, In) for value in one.values]
        return {self._sight.ontology.code(str(value), tree=tree) for value in values}

    def _forced(self, low: Cut, high: Cut) -> tuple[int, int]:
        """Return the free conditions that hold for all texts of a stretch, and those that hold for none."""
        prefix = globs.prefix_glob(shared_prefix(low, high))
        true = false = 0
        for at in self._free:
            patterns = _globs(self._conditions[at])
            spans = [(glob, *prefix_span(glob.head)) for glob in patterns]
            true |= any(globs.includes(glob, prefix) for glob in patterns) << at
            apart = [high <= start or low >= end or globs.excludes(glob, prefix) for glob, start, end in spans]
            false |= (bool(apart) and all(apart)) << at
        return true, false

    def _always(self) -> tuple[int, int]:
        return sum(1 << at for at in self._free if area_relations.everywhere(self._conditions[at])), 0

    def _choices(self, true: int, false: int) -> list[int]:
        """Return the ways in which the free conditions can hold together."""
        found = [0]
        decided = 0
        for at in self._free:
            bit = 1 << at
            needs, bars = self._implied[at] & decided, self._excluded[at]
            # Bits of those already decided that would make this one hold.
            makers = sum(1 << one for one in self._free if self._implied[one] & bit) & decided
            holding = [] if false & bit else [bits | bit for bits in found if not needs & ~bits and not bars & bits]
            failing = [] if true & bit else [bits for bits in found if not makers & bits]
            found = holding + failing
            decided |= bit
            if len(found) > CHOICES:
                raise _TooMany
        return found

    def _relations(self) -> tuple[dict[int, int], dict[int, int]]:
        implied = dict.fromkeys(self._free, 0)
        excluded = dict.fromkeys(self._free, 0)
        for one, two in product(self._free, self._free):
            if one != two:
                implied[one] |= implies(self._conditions[one], self._conditions[two]) << two
                excluded[one] |= excludes(self._conditions[one], self._conditions[two]) << two
        return implied, excluded


def implies(one: Condition, two: Condition) -> bool:
    """Tell whether every value that satisfies the first certainly satisfies the second."""
    match one, two:
        case TextTest() | SameText(), TextTest() | SameText():
            inner, outer = _globs(one), _globs(two)
            return bool(inner) and all(any(globs.includes(wide, glob) for wide in outer) for glob in inner)
        case Within() | Near(), Within() | Near():
            return area_relations.includes(two, one)
    return False


def excludes(one: Condition, two: Condition) -> bool:
    """Tell whether certainly no value satisfies both."""
    match one, two:
        case TextTest() | SameText(), TextTest() | SameText():
            left, right = _globs(one), _globs(two)
            return bool(left and right) and all(globs.excludes(glob, other) for glob in left for other in right)
        case Within() | Near(), Within() | Near():
            return area_relations.excludes(one, two)
    return False


def _tree_of(condition: IsA, ontology: Ontology) -> str | None:
    """Return the tree that the concept is of, where that is beyond doubt."""
    if condition.tree is not None:
        return condition.tree
    homes = [name for name, tree in ontology.trees.items() if condition.concept in tree]
    return homes[0] if len(homes) == 1 else None


def _globs(condition: Condition) -> list[globs.Glob]:
    """Return patterns whose texts together are those of the condition; none where it has no patterns."""
    if isinstance(condition, SameText):
        return [globs.folded_glob(text) for text in sorted(condition.folded)]
    glob = globs.glob_of(condition) if isinstance(condition, TextTest) else None
    return [] if glob is None else [glob]


def _spread(bits: int, places: list[int]) -> int:
    return sum(1 << place for at, place in enumerate(places) if bits >> at & 1)


def _joined(parts: Iterable[int]) -> int:
    joined = 0
    for part in parts:
        joined |= part
    return joined
