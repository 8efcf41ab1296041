"""What a conjunction says of each attribute, and whether an event can be so.

With all truth vectors of an attribute's conditions at hand, what must hold of every value leaves some of the
vectors, and the literals can hold together exactly when each thing that must hold of some value is left in
one. An attribute with one value by the schema needs a single vector for everything.

Of an attribute that is not declared, a value may be one that a kind cannot read: it satisfies no condition of that
kind. Conditions of different kinds, or in different units, are looked at apart, since what one of them reads says
nothing of what another one reads: text `1` is a number and a text. That may find more events than there are.

Two attributes compared are an attribute of their own, whose values are the first one's values; records are
values too, whose conditions are whole filters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING

from tidings.algebra.covering.literals import ABSENT, ANY_STATE, NULL, PRESENT, Literal, Name, literal_of
from tidings.algebra.covering.spans import meet, without
from tidings.algebra.covering.truth_vectors import Sight, compared, vectors
from tidings.algebra.covering.value_sets import EVERYTHING, Placed
from tidings.algebra.law.typed_attribute import AS_IS, Label
from tidings.algebra.normal_form import conjunctions
from tidings.errors import TooLarge
from tidings.model import Compare, Has, Kind, Not, all_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from tidings.algebra.covering.spans import Spans
    from tidings.algebra.law.requirements import RequirementTracker
    from tidings.concepts import Ontology
    from tidings.model import Attribute, Condition, Filter

ROWS = 256
"""Conjunctions a filter on elements of an array may have."""

RECORDS = 4
"""Filters on the elements of one array that are looked at together; their combinations double with each."""

LOOKS = 2000
"""Conjunctions about elements that one question may look at: arrays inside arrays multiply."""

CLOSE = 32
"""Literals of one attribute that, where there are too many vectors for all, are looked at in pairs."""


class Facts:
    """What is known of attributes; `prefix` is where we are, inside arrays of records."""

    def __init__(self, needs: RequirementTracker, ontology: Ontology, *, now: datetime | None) -> None:
        """Take what a schema and an ontology say; nothing is looked up yet."""
        self._needs, self.ontology, self._prefix = needs, ontology, ""
        self.now = now
        self._known: dict[str, Attribute] = {}
        self._left = [0]  # one counter for us and all below

    def start(self) -> None:
        """Begin a question: elements may be looked into anew."""
        self._left[0] = LOOKS

    def look(self, rows: int) -> bool:
        """Spend so many conjunctions on elements of arrays, unless too many were spent on this question."""
        self._left[0] -= rows
        return self._left[0] >= 0

    def attribute(self, name: str) -> Attribute:
        """Return what is declared of one attribute."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._needs.find_attribute(self._prefix + name)
        return found

    def one(self, name: Name) -> bool:
        """Tell whether the attribute has one value by the schema."""
        return not self.attribute(name if isinstance(name, str) else name[0]).several

    def reads_all(self, name: Name, reads: Label) -> bool:
        """Tell whether every value can be read so; otherwise some value may satisfy no condition that reads it so."""
        names = (name,) if isinstance(name, str) else name
        return all(self._needs.reads_all(self._prefix + one, reads) for one in names)

    def sight(self, name: Name) -> Sight:
        """Return what the truth vectors of an attribute depend on."""
        return Sight(
            self.ontology, self.now, folded=isinstance(name, str) and self.attribute(name).kind is Kind.CONCEPT
        )

    def below(self, name: str) -> Facts:
        """Return the facts inside the elements of an array."""
        found = Facts(self._needs, self.ontology, now=self.now)
        found._prefix, found._left = f"{self._prefix}{name}.", self._left
        return found


@dataclass(slots=True)
class Group:
    """The literals of one attribute in one conjunction, and what follows from them.

    Where all literals read the attribute in one way and ask about one order, `reads` is that way, and the sets of
    values stand in `plain` (some value is in each of these) or, of an attribute with one value, in `merged`; with
    `unread`, a value that cannot be read so satisfies the literals too.
    """

    name: Name
    literals: tuple[Literal, ...]
    one: bool
    states: int = ANY_STATE
    asked: tuple[Literal, ...] = ()
    plain: tuple[Placed, ...] = ()
    merged: Placed | None = None
    reads: Label = AS_IS
    unread: bool = False

    def __post_init__(self) -> None:
        """Sort the literals out; which states are possible is settled by `settle`."""
        for literal in self.literals:
            self.states &= literal.states
        self.asked = tuple(literal for literal in self.literals if literal.condition is not None)
        placed = [literal.placed for literal in self.asked if literal.placed is not None]
        if len(placed) != len(self.asked) or len({one.space for one in placed}) != 1:
            return
        if len({literal.reads for literal in self.asked}) != 1:
            return
        self.reads = self.asked[0].reads
        if self.one:
            self.merged = _merged(self.asked)
        elif all(not literal.every and literal.wanted for literal in self.asked):
            self.plain = tuple(placed)

    def settle(self, facts: Facts) -> None:
        """Strike out `PRESENT` where no values satisfy the literals."""
        if self.merged is not None and not any(literal.wanted for literal in self.asked):
            self.unread = not facts.reads_all(self.name, self.reads)
        if self.states & PRESENT and not fits(self, self.asked, facts):
            self.states &= ~PRESENT


def _merged(literals: Sequence[Literal]) -> Placed:
    """Return the values that satisfy all literals of an attribute with one value."""
    placed = literals[0].placed
    assert placed is not None
    left: Spans = EVERYTHING[placed.space]
    for literal in literals:
        assert literal.placed is not None
        left = meet(left, literal.placed.spans) if literal.wanted else without(left, literal.placed.spans)
    return Placed(placed.space, left)


def fits(group: Group, asked: Sequence[Literal], facts: Facts) -> bool:
    """Tell whether some values of the group's attribute satisfy the literals together; in doubt they may."""
    if not asked:
        return True
    if len(asked) == 1 and (alone := asked[0].placed) is not None:
        if asked[0].wanted:
            return bool(alone.spans)
        return alone.spans != EVERYTHING[alone.space] or not facts.reads_all(group.name, asked[0].reads)
    if group.plain and asked is group.asked:
        return all(one.spans for one in group.plain)
    if group.merged and asked is group.asked:
        return bool(group.merged.spans) or group.unread
    apart: dict[Label, list[Literal]] = {}
    for literal in asked:
        apart.setdefault(literal.reads, []).append(literal)
    if len(apart) > 1:
        return all(_fit_alike(group, literals, facts) for literals in apart.values())
    return _fit_alike(group, asked, facts)


def _fit_alike(group: Group, asked: Sequence[Literal], facts: Facts) -> bool:
    """Tell the same of literals that read the attribute in one way."""
    conditions = tuple(dict.fromkeys(literal.condition for literal in asked if literal.condition is not None))
    one = group.one and not any(isinstance(condition, Has) for condition in conditions)
    ranges = not one and any(literal.every and literal.wanted for literal in asked)
    table = _vectors(group.name, conditions, facts, asked[0].reads, ranges=ranges)
    if table is None:
        return len(asked) < 3 or all(fits(group, pair, facts) for pair in _couples(asked))
    if not facts.reads_all(group.name, asked[0].reads):
        table.add(0)
    return _satisfied(asked, {c: 1 << at for at, c in enumerate(conditions)}, table, one=one)


def _couples(asked: Sequence[Literal]) -> Iterable[tuple[Literal, Literal]]:
    """Return the literals in pairs; of many, each with the last, which is the one in question."""
    return combinations(asked, 2) if len(asked) <= CLOSE else ((one, asked[-1]) for one in asked[:-1])


def _satisfied(asked: Sequence[Literal], bits: dict[Condition, int], table: set[int], *, one: bool) -> bool:
    must = never = 0
    some: list[tuple[int, bool]] = []
    for literal in asked:
        assert literal.condition is not None
        bit = bits[literal.condition]
        if not (literal.every or one):
            some.append((bit, literal.wanted))
        elif literal.wanted:
            must |= bit
        else:
            never |= bit
    left = [vector for vector in table if vector & must == must and not vector & never]
    return bool(left) and all(any(bool(vector & bit) is wanted for vector in left) for bit, wanted in some)


def _vectors(
    name: Name, conditions: tuple[Condition, ...], facts: Facts, alike: Label, *, ranges: bool
) -> set[int] | None:
    comparisons = [condition for condition in conditions if isinstance(condition, Compare)]
    if comparisons:
        single = facts.one(name[0]) and facts.one(name[1])
        return compared(comparisons, single=single, ordered=facts.reads_all(name, alike))
    inner = [condition.filter for condition in conditions if isinstance(condition, Has)]
    if not inner:
        return vectors(conditions, facts.sight(name), ranges=ranges)
    if len(inner) < len(conditions) or len(inner) > RECORDS or not isinstance(name, str):
        return None
    return _records(inner, facts.below(name))


def _records(filters: Sequence[Filter], facts: Facts) -> set[int]:
    """Return which of the filters one element can satisfy together."""
    found = set()
    for choice in product((False, True), repeat=len(filters)):
        parts = [part if chosen else Not(part) for part, chosen in zip(filters, choice, strict=True)]
        if satisfiable(all_of(parts), facts):
            found.add(sum(chosen << at for at, chosen in enumerate(choice)))
    return found


def satisfiable(tree: Filter, facts: Facts) -> bool:
    """Tell whether some event may satisfy a bound filter; false only when certainly none does."""
    try:
        rows = conjunctions(tree, limit=ROWS)
    except TooLarge:
        return True
    if not facts.look(1 + len(rows)):
        return True
    return any(
        conjunction((literal_of(part, facts.now, facts.ontology) for part in row), facts) is not None for row in rows
    )


@dataclass(slots=True)
class Conjunction:
    """Literals that some event may satisfy together, by attribute."""

    literals: tuple[Literal, ...]
    groups: dict[Name, Group] = field(default_factory=dict)
    pairs: bool = False
    needed: frozenset[Name] = frozenset()

    def states(self, name: Name) -> int:
        """Return the states the attribute may be in; two compared are present when both are."""
        group = self.groups.get(name)
        if isinstance(name, str) or group is not None:
            return ANY_STATE if group is None else group.states
        return self.paired(name)

    def paired(self, name: tuple[str, str]) -> int:
        """Return the states that two attributes leave to their comparison."""
        one, two = self.states(name[0]), self.states(name[1])
        both = PRESENT if one & two & PRESENT else 0
        return both | (ABSENT if (one | two) & (ABSENT | NULL) else 0)


def conjunction(literals: Iterable[Literal], facts: Facts) -> Conjunction | None:
    """Group the literals by attribute; nothing when no event can satisfy them all."""
    by_name: dict[Name, list[Literal]] = {}
    kept = tuple(literals)
    for literal in kept:
        by_name.setdefault(literal.name, []).append(literal)
    pairs: list[Name] = [name for name in by_name if isinstance(name, tuple)]
    for name in pairs:
        if any(literal.states == PRESENT for literal in by_name[name]):
            for attribute in name:
                by_name.setdefault(attribute, []).append(Literal(attribute, PRESENT))
    found = Conjunction(kept, pairs=bool(pairs))
    attributes: list[Name] = [name for name in by_name if isinstance(name, str)]
    for at in attributes + pairs:  # attributes before their comparisons
        group = Group(at, tuple(by_name[at]), facts.one(at))
        group.settle(facts)
        if isinstance(at, tuple):
            group.states &= found.paired(at)
        if not group.states:
            return None
        found.groups[at] = group
    # No event without these satisfies the literals, so nothing that leaves one of them open follows them.
    found.needed = frozenset(name for name in attributes if found.groups[name].states == PRESENT)
    return found
