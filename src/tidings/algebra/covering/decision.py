"""Decide between two prepared filters: does one cover the other, do they overlap.

A conjunction covers another when each of its literals follows from the other's literals on the same attribute;
`conjunctions` decides that, exactly for conditions on ordered values. A disjunction covers a conjunction when one of
its parts does or, failing that, when there is no way to fail all its parts at once. What is too large to decide
counts as not covered, and as overlapping.

Cost: conjunctions of ranges and equalities, the common case, compare spans and never build truth vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.algebra.covering.attribute_literals import ABSENT_STATE, NULL, PRESENT
from tidings.algebra.covering.conjunctions import GroupedConjunction, build_conjunction, can_hold
from tidings.algebra.covering.spans import includes, intersect
from tidings.algebra.covering.value_sets import EVERYTHING
from tidings.model import And, Filter, Or

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.algebra.covering.attribute_literals import Literal
    from tidings.algebra.covering.conjunctions import AttributeFacts, AttributeGroup
    from tidings.algebra.covering.value_sets import ValueSet


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of one comparison: conjunctions of a normal form, and search steps over disjunctions or large filters."""

    rows: int = 256
    steps: int = 500


@dataclass(slots=True)
class PreparedFilter:
    """A filter as it was given, with negations pushed down, and as conjunctions (`None`: too many to expand)."""

    source: Filter
    tree: Filter
    rows: tuple[GroupedConjunction, ...] | None


def _contain_all(outer_sets: tuple[ValueSet, ...], inner_sets: tuple[ValueSet, ...]) -> bool:
    """Tell whether each outer set contains some inner set; then a value in the inner one lies in the outer one."""
    for wide in outer_sets:
        for narrow in inner_sets:
            if includes(wide.spans, narrow.spans):
                break
        else:
            return False
    return True


def _share_order(first: AttributeGroup, second: AttributeGroup) -> bool:
    """Tell whether two groups are about the same order of values under the same label."""
    left, right = first.merged_set or first.value_sets[0], second.merged_set or second.value_sets[0]
    return left.space is right.space and first.reads == second.reads


class Comparer:
    """Answers one question about two filters within a limit of steps; `prepare` is called for parts of large ones."""

    __slots__ = ("_facts", "_parts", "_prepare", "_steps")

    def __init__(self, facts: AttributeFacts, prepare: Callable[[Filter], PreparedFilter], *, steps: int) -> None:
        self._facts = facts
        self._prepare = prepare
        self._steps = steps
        self._parts: dict[int, PreparedFilter] = {}

    def covers(self, outer: PreparedFilter, inner: PreparedFilter) -> bool:
        """Tell whether the outer filter certainly accepts every event that the inner one accepts."""
        if outer.rows is None or inner.rows is None:
            return self._covers_by_parts(outer, inner)
        outers = outer.rows
        return all(self._is_covered(row, outers) for row in inner.rows)

    def overlaps(self, left: PreparedFilter, right: PreparedFilter) -> bool:
        """Tell whether some event may satisfy both."""
        if left.rows is None or right.rows is None:
            return self._overlaps_by_parts(left, right)
        rows = right.rows
        return any(self._meets(first, second) for first in left.rows for second in rows)

    def _is_covered(self, row: GroupedConjunction, outers: tuple[GroupedConjunction, ...]) -> bool:
        # Plain loops: this is where routing tables spend their time.
        for outer in outers:
            if not outer.required_names <= row.groups.keys():
                continue
            for group in outer.groups.values():
                if not self._follows(row, group):
                    break
            else:
                return True
        if len(outers) < 2:
            return False
        # For each conjunction, the negated literals by which an event of the row may fail it.
        failures = [
            [literal.negate() for literal in outer.literals if not self._implies(row, literal)] for outer in outers
        ]
        return not self._escapes(row, sorted(failures, key=len))

    def _follows(self, row: GroupedConjunction, outer: AttributeGroup) -> bool:
        """Tell whether the row's literals imply all of the group's."""
        inner = row.groups.get(outer.name)
        states = inner.states if inner is not None else row.find_states(outer.name)
        if states & ~outer.states:
            return False
        if not (states & PRESENT and outer.conditional):
            return True
        inner_literals = () if inner is None else inner.conditional
        if outer.merged_set is not None and (not inner_literals or (inner and inner.merged_set is not None)):
            return self._includes_values(outer, inner)
        if outer.value_sets and inner and inner.value_sets and _share_order(outer, inner):
            return _contain_all(outer.value_sets, inner.value_sets)
        return all(
            not can_hold(outer, (*inner_literals, literal.negate()), self._facts) for literal in outer.conditional
        )

    def _includes_values(self, outer: AttributeGroup, inner: AttributeGroup | None) -> bool:
        """Compare the value sets of a single-valued attribute."""
        wide, narrow = outer.merged_set, inner.merged_set if inner else None
        assert wide is not None
        if inner is None or narrow is None:
            unread = not self._facts.reads_all(outer.name, outer.reads)
            return includes(wide.spans, EVERYTHING[wide.space]) and (outer.accepts_unreadable or not unread)
        return (
            _share_order(outer, inner)
            and includes(wide.spans, narrow.spans)
            and (outer.accepts_unreadable or not inner.accepts_unreadable)
        )

    def _implies(self, row: GroupedConjunction, literal: Literal) -> bool:
        states = row.find_states(literal.name)
        if states & ~literal.states:
            return False
        if not states & PRESENT or literal.condition is None:
            return True
        group = row.groups.get(literal.name)
        return group is not None and not can_hold(group, (*group.conditional, literal.negate()), self._facts)

    def _escapes(self, row: GroupedConjunction, failures: list[list[Literal]]) -> bool:
        """Tell whether an event of the row may fail every conjunction, each by one of its negated literals."""
        if not failures:
            return True
        for literal in failures[0]:
            if not self._spend():
                return True
            narrower = build_conjunction((*row.literals, literal), self._facts)
            if narrower is not None and self._escapes(narrower, failures[1:]):
                return True
        return False

    def _meets(self, left: GroupedConjunction, right: GroupedConjunction) -> bool:
        if left.has_pairs or right.has_pairs:
            return build_conjunction((*left.literals, *right.literals), self._facts) is not None
        others = right.groups
        for name, group in left.groups.items():
            if name in others and not self._can_hold_together(group, others[name]):
                return False
        return True

    def _can_hold_together(self, left: AttributeGroup, right: AttributeGroup) -> bool:
        states = left.states & right.states
        if states & (ABSENT_STATE | NULL):
            return True
        if not states & PRESENT or not (left.conditional and right.conditional):
            return bool(states)
        if left.value_sets and right.value_sets:
            return True
        if left.merged_set and right.merged_set and _share_order(left, right):
            return bool(intersect(left.merged_set.spans, right.merged_set.spans)) or (
                left.accepts_unreadable and right.accepts_unreadable
            )
        return can_hold(left, (*left.conditional, *right.conditional), self._facts)

    def _covers_by_parts(self, outer: PreparedFilter, inner: PreparedFilter) -> bool:
        """Compare filters too large to expand by their parts; exact for an outer `and` or an inner `or` only."""
        if not self._spend() or outer.tree == inner.tree:
            return outer.tree == inner.tree
        match outer.tree, inner.tree:
            case And(parts), _:
                return all(self.covers(self._prepare_part(part), inner) for part in parts)
            case _, Or(parts):
                return all(self.covers(outer, self._prepare_part(part)) for part in parts)
        wide = outer.tree.parts if isinstance(outer.tree, Or) else ()
        narrow = inner.tree.parts if isinstance(inner.tree, And) else ()
        return any(self.covers(self._prepare_part(part), inner) for part in wide) or any(
            self.covers(outer, self._prepare_part(part)) for part in narrow
        )

    def _overlaps_by_parts(self, left: PreparedFilter, right: PreparedFilter) -> bool:
        if not self._spend():
            return True
        large, other = (left, right) if left.rows is None else (right, left)
        match large.tree:
            case Or(parts):
                return any(self.overlaps(self._prepare_part(part), other) for part in parts)
            case And(parts):
                return all(self.overlaps(self._prepare_part(part), other) for part in parts)
        return True

    def _spend(self) -> bool:
        self._steps -= 1
        return self._steps >= 0

    def _prepare_part(self, tree: Filter) -> PreparedFilter:
        part = self._parts.get(id(tree))
        if part is None:
            part = self._parts[id(tree)] = self._prepare(tree)
        return part
