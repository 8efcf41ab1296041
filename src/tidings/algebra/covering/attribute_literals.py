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

from tidings.algebra.covering.value_sets import ValueSet, to_value_set
from tidings.algebra.law.typed_attribute import AS_IS, Label, resolve_attribute, strip_unit
from tidings.errors import UnknownUnit
from tidings.model import Compare, Condition, Exists, IsNull, Not, Quantifier, Quantity, Test, list_scalars

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology
    from tidings.model import Filter

ABSENT_STATE, NULL, PRESENT = 1, 2, 4
"""The three states of an attribute, as bits."""

ANY_STATE = ABSENT_STATE | NULL | PRESENT

Name: TypeAlias = "str | tuple[str, str]"
"""An attribute, or two that are compared."""

_QUANTIFIER_MEANING = {Quantifier.ANY: (False, True), Quantifier.ALL: (True, True), Quantifier.NONE: (True, False)}
"""For each quantifier: whether it is about every value, and whether values must satisfy the condition."""


@dataclass(frozen=True, slots=True)
class Literal:
    """The attribute is in one of `states`, and if present, its values satisfy or fail a condition.

    `is_universal`: every value, else some value; `is_positive`: satisfies, else fails. Amounts in the condition are
    plain numbers in the unit of `label`; `value_set` is the condition as ordered values, where it has them.
    """

    name: Name
    states: int
    condition: Condition | None = None
    is_universal: bool = False
    is_positive: bool = True
    value_set: ValueSet | None = None
    label: Label = AS_IS

    def negate(self) -> Literal:
        """Return the literal that holds exactly where this one does not."""
        if self.condition is None:
            return replace(self, states=self.states ^ ANY_STATE)
        states = ANY_STATE if self.states == PRESENT else PRESENT
        return replace(self, states=states, is_universal=not self.is_universal, is_positive=not self.is_positive)


def to_literal(tree: Filter, now: datetime | None, ontology: Ontology) -> Literal:
    """Return a bound test or a negated test as a literal."""
    if isinstance(tree, Not):
        return to_literal(tree.part, now, ontology).negate()
    assert isinstance(tree, Test)
    match tree.condition:
        case Exists():
            return Literal(tree.attribute, PRESENT)
        case IsNull():
            return Literal(tree.attribute, NULL)
    name, condition = _name_comparison(tree)
    every, wanted = _QUANTIFIER_MEANING[tree.quantifier]
    reads = resolve_attribute(tree.attribute, condition)[1:]
    if reads[1] and _is_resolved(condition, ontology):
        condition = strip_unit(condition)
    return Literal(name, PRESENT, condition, every, wanted, to_value_set(condition, now), reads)


def _is_resolved(condition: Condition, ontology: Ontology) -> bool:
    """Tell whether the amounts compare as plain numbers: all of them are in the base unit of one dimension."""
    units = {value.unit for value in list_scalars(condition) if isinstance(value, Quantity)}
    try:
        return len(units) == 1 and {ontology.base_unit(unit) for unit in units} == units
    except UnknownUnit:
        return False


def _name_comparison(test: Test) -> tuple[Name, Condition]:
    """Key a comparison by both attributes in order: `b > a` becomes `a < b`, unless it is about all values of `b`."""
    if not isinstance(test.condition, Compare):
        return test.attribute, test.condition
    left, right, op = test.attribute, test.condition.other, test.condition.op
    if right < left and test.quantifier is not Quantifier.ALL:
        return (right, left), replace(test.condition, op=op.mirror, other=left)
    return (left, right), test.condition
