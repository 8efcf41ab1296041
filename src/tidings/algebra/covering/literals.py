"""Literals: what a test, or its negation, says of its attribute.

An attribute of an event is absent, null, or has values. A literal allows some of the three and, of values,
says one of four things: some or every value satisfies its condition, or some or every value fails it. So the
negation of a literal is again a literal.

A literal knows how its condition reads the attribute: literals that read it as different kinds, or in different
units, say nothing about each other beyond whether there are values at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from tidings.algebra.covering.value_sets import Placed, place
from tidings.algebra.law.typed_attribute import AS_IS, Label, resolve_attribute, strip_unit
from tidings.errors import UnknownUnit
from tidings.model import Compare, Comparison, Condition, Exists, IsNull, Not, Quantifier, Quantity, Test, scalars_of

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology
    from tidings.model import Filter

ABSENT, NULL, PRESENT = 1, 2, 4
"""The three states of an attribute, as bits."""

ANY_STATE = ABSENT | NULL | PRESENT

Name: TypeAlias = "str | tuple[str, str]"
"""An attribute, or two that are compared."""

_SAID = {Quantifier.ANY: (False, True), Quantifier.ALL: (True, True), Quantifier.NONE: (True, False)}
"""Whether a quantifier speaks of every value, and whether the value is to satisfy the condition."""

_FLIPPED = {
    Comparison.EQ: Comparison.EQ,
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}


@dataclass(frozen=True, slots=True)
class Literal:
    """In some of `states`; with values, some (or every) value satisfies (or fails) the condition.

    The condition's amounts are plain numbers, in the unit that `reads` names.
    """

    name: Name
    states: int
    condition: Condition | None = None
    every: bool = False
    wanted: bool = True
    placed: Placed | None = None
    reads: Label = AS_IS

    def negated(self) -> Literal:
        """Return the literal that holds exactly where this one does not."""
        if self.condition is None:
            return replace(self, states=self.states ^ ANY_STATE)
        states = ANY_STATE if self.states == PRESENT else PRESENT
        return replace(self, states=states, every=not self.every, wanted=not self.wanted)


def literal_of(tree: Filter, now: datetime | None, ontology: Ontology) -> Literal:
    """Return a bound test or a negated test as a literal."""
    if isinstance(tree, Not):
        return literal_of(tree.part, now, ontology).negated()
    assert isinstance(tree, Test)
    match tree.condition:
        case Exists():
            return Literal(tree.attribute, PRESENT)
        case IsNull():
            return Literal(tree.attribute, NULL)
    name, condition = _named(tree)
    every, wanted = _SAID[tree.quantifier]
    reads = resolve_attribute(tree.attribute, condition)[1:]
    if reads[1] and _is_resolved(condition, ontology):
        condition = strip_unit(condition)
    return Literal(name, PRESENT, condition, every, wanted, place(condition, now), reads)


def _is_resolved(condition: Condition, ontology: Ontology) -> bool:
    """Tell whether amounts compare as numbers: all are in the one unit to which their dimension is converted."""
    units = {value.unit for value in scalars_of(condition) if isinstance(value, Quantity)}
    try:
        return len(units) == 1 and {ontology.base_unit(unit) for unit in units} == units
    except UnknownUnit:
        return False


def _named(test: Test) -> tuple[Name, Condition]:
    """Name a comparison by both attributes; `b > a` is `a < b`, unless it speaks of all values of `b`."""
    if not isinstance(test.condition, Compare):
        return test.attribute, test.condition
    one, two, op = test.attribute, test.condition.other, test.condition.op
    if two < one and test.quantifier is not Quantifier.ALL:
        return (two, one), replace(test.condition, op=_FLIPPED[op], other=one)
    return (one, two), test.condition
