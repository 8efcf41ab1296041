"""Which of a pattern's named filters one event can satisfy together: the alphabet of its automaton.

A minterm is a set of filter names: exactly these are satisfied. Filters that exclude each other give one minterm
each and the empty one, "anything else"; overlapping filters give the combinations that are not provably empty. The
algebra never calls two filters exclusive wrongly, so no combination is missed; one too many is never read.
Cost: a comparison for each pair of filters, then at most `budget` combinations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.algebra.covering.covers import find_checker
from tidings.concepts import Vocabulary
from tidings.errors import TooLarge
from tidings.model import Not, all_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.algebra.covering.covers import CoverageChecker
    from tidings.model.patterns import NamedFilter

BUDGET = 1024
"""The most minterms: ten filters that overlap in every way."""

DOUBLE_CHECKED = 256
"""The most combinations that are judged as a whole as well, not by pairs alone."""


@dataclass(frozen=True, slots=True)
class Minterms:
    """The combinations of `names` that one event may satisfy; the first is the empty one, anything else."""

    names: tuple[str, ...]
    symbols: tuple[frozenset[str], ...]

    def __len__(self) -> int:
        return len(self.symbols)

    def describe(self, numbers: Sequence[int]) -> str:
        """Describe some of the minterms as a short formula that holds for them and for no other minterm.

        >>> Minterms(("a", "b"), (frozenset(), frozenset("a"), frozenset("b"), frozenset("ab"))).describe([1, 3])
        'a'
        """
        left = [self.symbols[number] for number in numbers]
        others = [symbol for symbol in self.symbols if symbol not in left]
        phrases = []
        while left:
            literals = _shorten(left[0], self.names, others)
            phrases.append(" and ".join(name if holds else f"not {name}" for name, holds in literals.items()))
            left = [symbol for symbol in left if not _agrees(symbol, literals)]
        return " or ".join(phrases)


def _shorten(symbol: frozenset[str], names: Sequence[str], others: Sequence[frozenset[str]]) -> dict[str, bool]:
    """Return the fewest literals, dropping `not`s first, that hold for a minterm and for none of the others."""
    literals = {name: name in symbol for name in names}
    for name in sorted(names, key=symbol.__contains__):
        shorter = {other: holds for other, holds in literals.items() if other != name}
        if not any(_agrees(other_symbol, shorter) for other_symbol in others):
            literals = shorter
    return literals


def _agrees(symbol: frozenset[str], literals: dict[str, bool]) -> bool:
    return all((name in symbol) is holds for name, holds in literals.items())


def build_minterms(
    filters: Sequence[NamedFilter], vocabulary: Vocabulary | None = None, *, budget: int = BUDGET
) -> Minterms:
    """Return the combinations of these filters that one event may satisfy.

    Without a schema in the vocabulary an attribute may carry several values, so `kind = 'a'` and `kind = 'b'` overlap;
    with `kind` as one text they do not. More than `budget` combinations raise `TooLarge`.
    """
    relations = _Relations(filters, find_checker(vocabulary or Vocabulary()))
    combinations = _combine_filters(relations, budget)
    if len(combinations) <= DOUBLE_CHECKED:
        combinations = [chosen for chosen in combinations if relations.is_possible(chosen)]
    combinations.sort(key=lambda chosen: (len(chosen), sorted(chosen)))
    names = tuple(named.name for named in filters)
    return Minterms(names, tuple(frozenset(names[place] for place in chosen) for chosen in combinations))


def _combine_filters(relations: _Relations, budget: int) -> list[frozenset[int]]:
    """Take the filters one after the other: each splits every combination in two, unless a pair forbids it."""
    apart, implies = relations.apart, relations.implies
    combinations: list[frozenset[int]] = [frozenset()]
    for place in range(len(relations.filters)):
        without, joined = [], []
        for chosen in combinations:
            left_out = set(range(place)) - chosen
            if not any((other, place) in implies for other in chosen):
                without.append(chosen)
            excluded = any((other, place) in apart for other in (*chosen, place))
            if not excluded and not any((place, other) in implies for other in left_out):
                joined.append(chosen | {place})
        combinations = without + joined
        if len(combinations) > budget:
            msg = f"more than {budget:,} combinations of filters; give a schema, or filters that exclude each other"
            raise TooLarge(msg, limit=budget)
    return combinations


class _Relations:
    """What is known of each pair of filters: that they exclude each other, or that one implies the other."""

    def __init__(self, filters: Sequence[NamedFilter], checker: CoverageChecker) -> None:
        self.filters, self._checker = filters, checker
        places, trees = range(len(filters)), [named.filter for named in filters]
        self.apart = {(i, j) for i in places for j in places if not checker.overlaps(trees[i], trees[j])}
        self.implies = {(i, j) for i in places for j in places if i != j and self._implies(filters[i], filters[j])}

    def is_possible(self, chosen: frozenset[int]) -> bool:
        """Judge a combination as a whole: its filters together, without those that it leaves out."""
        left_out = [place for place in range(len(self.filters)) if self._adds_information(chosen, place)]
        if not chosen or len(chosen) + len(left_out) < 3:
            return True  # pairs were judged already, and anything else stays
        inside = all_of(self.filters[place].filter for place in sorted(chosen))
        outside = all_of(Not(self.filters[place].filter) for place in left_out)
        return self._checker.overlaps(inside, outside)

    def _adds_information(self, chosen: frozenset[int], place: int) -> bool:
        """Tell whether leaving this filter out of a combination restricts the events of it.

        It does not where a chosen filter excludes it. Nor where it binds variables that no chosen one binds: an event
        may fail it for want of their values, whatever its filter says.
        """
        bound_variables = {variable for other in chosen for variable in self.filters[other].variables}
        excluded = any((other, place) in self.apart for other in chosen)
        return place not in chosen and not excluded and bound_variables.issuperset(self.filters[place].variables)

    def _implies(self, inner: NamedFilter, outer: NamedFilter) -> bool:
        if not set(outer.variables) <= set(inner.variables):
            return False
        return inner.filter == outer.filter or self._checker.covers(outer.filter, inner.filter)
