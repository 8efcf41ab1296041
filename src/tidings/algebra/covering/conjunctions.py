"""Conjunctions grouped by attribute, and whether any event can satisfy them.

The truth vectors of an attribute's conditions (`truth_vectors`) list what a single value can satisfy. Literals about
every value rule vectors out; the literals can hold together exactly when each literal about some value is satisfied
by one of the vectors left. An attribute with a single value needs one vector that satisfies all of them.

A value of an undeclared attribute may be unreadable for a kind and then satisfies no condition of that kind.
Conditions with different labels (kinds or units) are decided apart, because what one reads says nothing about
what another reads: text `1` is a number and a text. So the answer may be yes for events that cannot exist, never no
for one that can.

A comparison of two attributes is treated as an attribute of its own, keyed by both names. Records are values too,
and the conditions on them are whole filters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations, product
from typing import TYPE_CHECKING

from tidings.algebra.covering.attribute_literals import (
    ABSENT_STATE,
    ANY_STATE,
    NULL,
    PRESENT,
    Literal,
    Name,
    to_literal,
)
from tidings.algebra.covering.spans import intersect, subtract
from tidings.algebra.covering.truth_vectors import ValueContext, compute_comparison_vectors, compute_vectors
from tidings.algebra.covering.value_sets import EVERYTHING, ValueSet
from tidings.algebra.law.requirements import RequirementTracker
from tidings.algebra.law.typed_attribute import AS_IS, Label
from tidings.algebra.normal_form import list_conjunctions
from tidings.concepts import Ontology
from tidings.errors import TooLarge
from tidings.model import Attribute, Compare, Has, Kind, Not, all_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.algebra.covering.spans import Spans
    from tidings.model import Condition, Filter

MAX_ELEMENT_ROWS = 256
"""Conjunctions that the normal form of a filter on array elements may have."""

MAX_ELEMENT_FILTERS = 4
"""Filters on the elements of one array that are combined; each doubles the number of combinations."""

MAX_ELEMENT_CONJUNCTIONS = 2000
"""Conjunctions on array elements that one question may examine; nested arrays multiply them."""

MAX_PAIRED = 32
"""With more literals than this on one attribute, each is paired with the last instead of with every other."""


@dataclass(slots=True)
class AttributeFacts:
    """Declared facts about attributes, by name relative to the array of records that was entered."""

    tracker: RequirementTracker
    ontology: Ontology
    now: datetime | None
    prefix: str = ""
    _budget: list[int] = field(default_factory=lambda: [0])  # a list: one counter shared with all nested facts
    _attributes: dict[str, Attribute] = field(default_factory=dict)

    def start(self) -> None:
        """Begin a question with a full budget of conjunctions on array elements."""
        self._budget[0] = MAX_ELEMENT_CONJUNCTIONS

    def spend(self, rows: int) -> bool:
        """Spend budget on conjunctions over array elements; `False` means it is used up."""
        self._budget[0] -= rows
        return self._budget[0] >= 0

    def find_attribute(self, name: str) -> Attribute:
        """Return the declaration of one attribute."""
        attribute = self._attributes.get(name)
        if attribute is None:
            attribute = self._attributes[name] = self.tracker.find_attribute(self.prefix + name)
        return attribute

    def is_single(self, name: Name) -> bool:
        """Tell whether the attribute has a single value by declaration."""
        return not self.find_attribute(name if isinstance(name, str) else name[0]).several

    def reads_all(self, name: Name, reads: Label) -> bool:
        """Tell whether no value can be a mismatch under a label; a mismatch satisfies no condition of that label."""
        names = (name,) if isinstance(name, str) else name
        return all(self.tracker.reads_all(self.prefix + attribute, reads) for attribute in names)

    def enter(self, name: str) -> AttributeFacts:
        """Return the facts about attributes of an array's elements."""
        return AttributeFacts(self.tracker, self.ontology, self.now, f"{self.prefix}{name}.", self._budget)


@dataclass(slots=True)
class AttributeGroup:
    """The literals of one attribute in one conjunction, and what follows from them.

    `conditional` are those with a condition on values. If these share one label (`reads`) and one order of values,
    they are also kept as sets: `value_sets` (some value lies in each) or, for an attribute with a single value,
    `merged_set` (the value lies in it). `accepts_unreadable`: a value that the label cannot read satisfies them too.
    """

    name: Name
    literals: tuple[Literal, ...]
    is_single: bool
    states: int = ANY_STATE
    conditional: tuple[Literal, ...] = ()
    value_sets: tuple[ValueSet, ...] = ()
    merged_set: ValueSet | None = None
    reads: Label = AS_IS
    accepts_unreadable: bool = False

    def __post_init__(self) -> None:
        """Classify the literals; `settle` then decides which states are possible."""
        for literal in self.literals:
            self.states &= literal.states
        self.conditional = tuple(literal for literal in self.literals if literal.condition is not None)
        value_sets = [literal.value_set for literal in self.conditional if literal.value_set is not None]
        if len(value_sets) != len(self.conditional) or len({value_set.space for value_set in value_sets}) != 1:
            return
        if len({literal.label for literal in self.conditional}) != 1:
            return
        self.reads = self.conditional[0].label
        if self.is_single:
            self.merged_set = _merge_sets(self.conditional)
        elif all(not literal.is_universal and literal.is_positive for literal in self.conditional):
            self.value_sets = tuple(value_sets)

    def settle(self, facts: AttributeFacts) -> None:
        """Remove `PRESENT` from the states if no values satisfy the literals."""
        if self.merged_set is not None and not any(literal.is_positive for literal in self.conditional):
            self.accepts_unreadable = not facts.reads_all(self.name, self.reads)
        if self.states & PRESENT and not can_hold(self, self.conditional, facts):
            self.states &= ~PRESENT


def _merge_sets(literals: Sequence[Literal]) -> ValueSet:
    """Return the values that satisfy all literals of a single-valued attribute."""
    first = literals[0].value_set
    assert first is not None
    remaining: Spans = EVERYTHING[first.space]
    for literal in literals:
        assert literal.value_set is not None
        narrow = intersect if literal.is_positive else subtract
        remaining = narrow(remaining, literal.value_set.spans)
    return ValueSet(first.space, remaining)


def can_hold(group: AttributeGroup, literals: Sequence[Literal], facts: AttributeFacts) -> bool:
    """Tell whether some values of the group's attribute satisfy the literals together; if undecided, `True`."""
    if not literals:
        return True
    if len(literals) == 1 and (value_set := literals[0].value_set) is not None:
        if literals[0].is_positive:
            return bool(value_set.spans)
        return value_set.spans != EVERYTHING[value_set.space] or not facts.reads_all(group.name, literals[0].label)
    if group.value_sets and literals is group.conditional:
        return all(value_set.spans for value_set in group.value_sets)
    if group.merged_set and literals is group.conditional:
        return bool(group.merged_set.spans) or group.accepts_unreadable
    by_label: dict[Label, list[Literal]] = {}
    for literal in literals:
        by_label.setdefault(literal.label, []).append(literal)
    return all(_can_hold_same_label(group, alike, facts) for alike in by_label.values())


def _can_hold_same_label(group: AttributeGroup, literals: Sequence[Literal], facts: AttributeFacts) -> bool:
    """Decide `can_hold` for literals of one label."""
    conditions = tuple(dict.fromkeys(literal.condition for literal in literals if literal.condition is not None))
    is_single = group.is_single and not any(isinstance(condition, Has) for condition in conditions)
    ranges = not is_single and any(literal.is_universal and literal.is_positive for literal in literals)
    table = _compute_vectors(group.name, conditions, facts, literals[0].label, ranges=ranges)
    if table is None:
        if len(literals) < 3:
            return True
        # If there are many, each is paired with the last, which is the one being tested.
        pairs = (
            combinations(literals, 2)
            if len(literals) <= MAX_PAIRED
            else ((other, literals[-1]) for other in literals[:-1])
        )
        return all(can_hold(group, pair, facts) for pair in pairs)
    if not facts.reads_all(group.name, literals[0].label):
        table.add(0)
    bits = {condition: 1 << index for index, condition in enumerate(conditions)}
    return _is_satisfiable_by(literals, bits, table, is_single=is_single)


def _is_satisfiable_by(
    literals: Sequence[Literal], bits: dict[Condition, int], table: set[int], *, is_single: bool
) -> bool:
    must = never = 0
    some: list[tuple[int, bool]] = []
    for literal in literals:
        assert literal.condition is not None
        bit = bits[literal.condition]
        if not (literal.is_universal or is_single):
            some.append((bit, literal.is_positive))
        elif literal.is_positive:
            must |= bit
        else:
            never |= bit
    vectors = [vector for vector in table if vector & must == must and not vector & never]
    return bool(vectors) and all(any(bool(vector & bit) is wanted for vector in vectors) for bit, wanted in some)


def _compute_vectors(
    name: Name, conditions: tuple[Condition, ...], facts: AttributeFacts, label: Label, *, ranges: bool
) -> set[int] | None:
    comparisons = [condition for condition in conditions if isinstance(condition, Compare)]
    if comparisons:
        single = facts.is_single(name[0]) and facts.is_single(name[1])
        return compute_comparison_vectors(comparisons, single=single, ordered=facts.reads_all(name, label))
    inner = [condition.filter for condition in conditions if isinstance(condition, Has)]
    if not inner:
        is_concept = isinstance(name, str) and facts.find_attribute(name).kind is Kind.CONCEPT
        return compute_vectors(conditions, ValueContext(facts.ontology, facts.now, is_concept), ranges=ranges)
    if len(inner) < len(conditions) or len(inner) > MAX_ELEMENT_FILTERS or not isinstance(name, str):
        return None
    return _compute_element_vectors(inner, facts.enter(name))


def _compute_element_vectors(filters: Sequence[Filter], facts: AttributeFacts) -> set[int]:
    """Return the combinations of filters that one array element can satisfy, as bits."""
    satisfiable = set()
    for choice in product((False, True), repeat=len(filters)):
        parts = [part if chosen else Not(part) for part, chosen in zip(filters, choice, strict=True)]
        if is_satisfiable(all_of(parts), facts):
            satisfiable.add(sum(chosen << index for index, chosen in enumerate(choice)))
    return satisfiable


def is_satisfiable(tree: Filter, facts: AttributeFacts) -> bool:
    """Tell whether some event may satisfy a bound filter; false only when certainly none does."""
    try:
        rows = list_conjunctions(tree, limit=MAX_ELEMENT_ROWS)
    except TooLarge:
        return True
    if not facts.spend(1 + len(rows)):
        return True
    return any(
        build_conjunction((to_literal(part, facts.now, facts.ontology) for part in row), facts) is not None
        for row in rows
    )


@dataclass(slots=True)
class GroupedConjunction:
    """Literals that some event may satisfy together, grouped by attribute.

    `required_names` are the attributes that every such event has values for.
    """

    literals: tuple[Literal, ...]
    groups: dict[Name, AttributeGroup] = field(default_factory=dict)
    has_pairs: bool = False
    required_names: frozenset[Name] = frozenset()

    def find_states(self, name: Name) -> int:
        """Return the states an attribute may be in; a comparison is present if both its attributes are."""
        group = self.groups.get(name)
        if isinstance(name, str) or group is not None:
            return ANY_STATE if group is None else group.states
        return self.find_pair_states(name)

    def find_pair_states(self, name: tuple[str, str]) -> int:
        """Return the states of a comparison that the states of its two attributes allow."""
        left, right = self.find_states(name[0]), self.find_states(name[1])
        both = PRESENT if left & right & PRESENT else 0
        return both | (ABSENT_STATE if (left | right) & (ABSENT_STATE | NULL) else 0)


def build_conjunction(literals: Iterable[Literal], facts: AttributeFacts) -> GroupedConjunction | None:
    """Group literals by attribute; `None` if no event can satisfy them all."""
    by_name: dict[Name, list[Literal]] = {}
    kept = tuple(literals)
    for literal in kept:
        by_name.setdefault(literal.name, []).append(literal)
    pairs: list[Name] = [name for name in by_name if isinstance(name, tuple)]
    for name in pairs:
        if any(literal.states == PRESENT for literal in by_name[name]):
            for attribute in name:
                by_name.setdefault(attribute, []).append(Literal(attribute, PRESENT))
    result = GroupedConjunction(kept, has_pairs=bool(pairs))
    attributes: list[Name] = [name for name in by_name if isinstance(name, str)]
    for name_of_group in attributes + pairs:  # attributes before their comparisons
        group = AttributeGroup(name_of_group, tuple(by_name[name_of_group]), facts.is_single(name_of_group))
        group.settle(facts)
        if isinstance(name_of_group, tuple):
            group.states &= result.find_pair_states(name_of_group)
        if not group.states:
            return None
        result.groups[name_of_group] = group
    # A conjunction that says nothing about one of these cannot imply this one: `covers` checks this subset first.
    result.required_names = frozenset(name for name in attributes if result.groups[name].states == PRESENT)
    return result
