"""Deciding between two prepared filters: does one cover the other, do they overlap.

A conjunction covers another when each of its literals follows from the other's literals on the same
attribute; `states` decides that, exactly for conditions on ordered values. A disjunction covers a conjunction
when one of its parts does or, failing that, when no way is left to fail all its parts at once. What is too
large to decide counts as not covered, and as overlapping.

The common case, conjunctions of ranges and equalities, never gets to truth vectors: it compares spans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.algebra.covering.conjunctions import Conjunction, conjunction, fits
from tidings.algebra.covering.literals import ABSENT, NULL, PRESENT
from tidings.algebra.covering.spans import contains, meet
from tidings.algebra.covering.value_sets import EVERYTHING
from tidings.model import And, Filter, Or

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.algebra.covering.conjunctions import Facts, Group
    from tidings.algebra.covering.literals import Literal
    from tidings.algebra.covering.value_sets import Placed


@dataclass(frozen=True, slots=True)
class Effort:
    """How far to go: conjunctions of a normal form, and ways to fail a disjunction (or parts of a large filter)."""

    rows: int = 256
    steps: int = 500


@dataclass(slots=True)
class Sketch:
    """A filter prepared for comparison; without rows, it was too large for a normal form."""

    source: Filter
    tree: Filter
    rows: tuple[Conjunction, ...] | None


def _all_wider(wides: tuple[Placed, ...], narrows: tuple[Placed, ...]) -> bool:
    """Tell whether each of the first sets contains one of the second: some value in that one is in it, too."""
    for wide in wides:
        for narrow in narrows:
            if contains(wide.spans, narrow.spans):
                break
        else:
            return False
    return True


def _alike(one: Group, two: Group) -> bool:
    """Tell whether two groups speak of one order of values, read in one way."""
    left, right = one.merged or one.plain[0], two.merged or two.plain[0]
    return left.space is right.space and one.reads == two.reads


class Case:
    """One question between two filters, with a limit on the steps it may take; `draw` prepares a part."""

    __slots__ = ("_draw", "_facts", "_parts", "_steps")

    def __init__(self, facts: Facts, draw: Callable[[Filter], Sketch], *, steps: int) -> None:
        """Start with all steps left."""
        self._facts = facts
        self._draw = draw
        self._steps = steps
        self._parts: dict[int, Sketch] = {}

    def covers(self, outer: Sketch, inner: Sketch) -> bool:
        """Tell whether the first certainly accepts all that the second accepts."""
        if outer.rows is None or inner.rows is None:
            return self._covers_by_parts(outer, inner)
        outers = outer.rows
        return all(self._covered(row, outers) for row in inner.rows)

    def overlaps(self, one: Sketch, two: Sketch) -> bool:
        """Tell whether some event may satisfy both."""
        if one.rows is None or two.rows is None:
            return self._overlaps_by_parts(one, two)
        rows = two.rows
        return any(self._meets(first, second) for first in one.rows for second in rows)

    def _covered(self, row: Conjunction, outers: tuple[Conjunction, ...]) -> bool:
        # Plain loops: this is where routing tables spend their time.
        for outer in outers:
            if not outer.needed <= row.groups.keys():
                continue
            for group in outer.groups.values():
                if not self._follows(row, group):
                    break
            else:
                return True
        return len(outers) > 1 and not self._escapes(row, self._ways(row, outers))

    def _follows(self, row: Conjunction, outer: Group) -> bool:
        """Tell whether the row's literals imply all of the group's."""
        inner = row.groups.get(outer.name)
        states = inner.states if inner is not None else row.states(outer.name)
        if states & ~outer.states:
            return False
        if not (states & PRESENT and outer.asked):
            return True
        asked = () if inner is None else inner.asked
        if outer.merged is not None and (not asked or (inner and inner.merged is not None)):
            return self._within(outer, inner)
        if outer.plain and inner and inner.plain and _alike(outer, inner):
            return _all_wider(outer.plain, inner.plain)
        return all(not fits(outer, (*asked, literal.negated()), self._facts) for literal in outer.asked)

    def _within(self, outer: Group, inner: Group | None) -> bool:
        """Compare the values of an attribute with one value."""
        wide, narrow = outer.merged, inner.merged if inner else None
        assert wide is not None
        if inner is None or narrow is None:
            unread = not self._facts.reads_all(outer.name, outer.reads)
            return contains(wide.spans, EVERYTHING[wide.space]) and (outer.unread or not unread)
        return _alike(outer, inner) and contains(wide.spans, narrow.spans) and (outer.unread or not inner.unread)

    def _ways(self, row: Conjunction, outers: tuple[Conjunction, ...]) -> list[list[Literal]]:
        """Return, for each conjunction, the negated literals by which an event of the row may fail it."""
        ways = [[one.negated() for one in outer.literals if not self._implies(row, one)] for outer in outers]
        return sorted(ways, key=len)

    def _implies(self, row: Conjunction, literal: Literal) -> bool:
        states = row.states(literal.name)
        if states & ~literal.states:
            return False
        if not states & PRESENT or literal.condition is None:
            return True
        group = row.groups.get(literal.name)
        return group is not None and not fits(group, (*group.asked, literal.negated()), self._facts)

    def _escapes(self, row: Conjunction, ways: list[list[Literal]]) -> bool:
        """Tell whether an event of the row may fail every conjunction, each in one of the ways."""
        if not ways:
            return True
        for literal in ways[0]:
            self._steps -= 1
            if self._steps < 0:
                return True
            narrower = conjunction((*row.literals, literal), self._facts)
            if narrower is not None and self._escapes(narrower, ways[1:]):
                return True
        return False

    def _meets(self, one: Conjunction, two: Conjunction) -> bool:
        if one.pairs or two.pairs:
            return conjunction((*one.literals, *two.literals), self._facts) is not None
        others = two.groups
        for name, group in one.groups.items():
            if name in others and not self._together(group, others[name]):
                return False
        return True

    def _together(self, one: Group, two: Group) -> bool:
        states = one.states & two.states
        if states & (ABSENT | NULL):
            return True
        if not states & PRESENT or not (one.asked and two.asked):
            return bool(states)
        if one.plain and two.plain:
            return True
        if one.merged and two.merged and _alike(one, two):
            return bool(meet(one.merged.spans, two.merged.spans)) or (one.unread and two.unread)
        return fits(one, (*one.asked, *two.asked), self._facts)

    def _covers_by_parts(self, outer: Sketch, inner: Sketch) -> bool:
        """Split what has no normal form; `and` outside and `or` inside lose nothing, the others may."""
        if not self._spend() or outer.tree == inner.tree:
            return outer.tree == inner.tree
        match outer.tree, inner.tree:
            case And(parts), _:
                return all(self.covers(self._part(part), inner) for part in parts)
            case _, Or(parts):
                return all(self.covers(outer, self._part(part)) for part in parts)
        if isinstance(outer.tree, Or) and any(self.covers(self._part(part), inner) for part in outer.tree.parts):
            return True
        return isinstance(inner.tree, And) and any(self.covers(outer, self._part(part)) for part in inner.tree.parts)

    def _overlaps_by_parts(self, one: Sketch, two: Sketch) -> bool:
        if not self._spend():
            return True
        large, other = (one, two) if one.rows is None else (two, one)
        match large.tree:
            case Or(parts):
                return any(self.overlaps(self._part(part), other) for part in parts)
            case And(parts):
                return all(self.overlaps(self._part(part), other) for part in parts)
        return True

    def _spend(self) -> bool:
        self._steps -= 1
        return self._steps >= 0

    def _part(self, tree: Filter) -> Sketch:
        found = self._parts.get(id(tree))
        if found is None:
            found = self._parts[id(tree)] = self._draw(tree)
        return found
