"""A second opinion on what filters mean, written from the words of the language and from nothing else.

First the declarations are held against the event: that alone decides whether it is bad. Then every test spells out
the values of its attribute, each as what the test asks for, or `UNREADABLE`; and counts how many of them it accepts.
Numbers and times are exact fractions, and whether two ranges meet is found by trying points. Slow and plain on
purpose; it shares no code with `tidings.algebra`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from naive_places import holds
from naive_values import (
    NUMBER,
    READERS,
    UNREADABLE,
    WORTH,
    Bad,
    accepts_text,
    build_interval,
    build_span,
    compare_spans,
    find_ends,
    find_kind_asked,
    find_spelled,
    is_in_block,
    is_list,
    is_missing,
    is_near,
    is_text_between,
    list_literals,
    list_values,
    map_value,
    meets,
    number_point,
    read_or_not,
    time_point,
    to_text,
)

from tidings import model as m
from tidings.model import Kind


def evaluate_naively(tree, event, world) -> bool:
    """Tell whether the event satisfies the filter, or raise `Bad`."""
    return Naive(tree, world).opinion(event)


@dataclass(frozen=True)
class Manner:
    """What a value is read as: a kind (or as it is), folded to a concept or not, and in which unit.

    Amounts in a unit must bring one unless they may be `bare`; `beside` names an attribute that may hold it.
    """

    kind: Kind | None
    folded: bool = False
    unit: str | None = None
    bare: bool = True
    beside: str | None = None


class Surroundings:
    """What the words of a world mean, from its plain tables."""

    def __init__(self, world):
        self.world, self.now = world, world.now
        self.areas = {name: world.regions[name] for name in world.regions or ()}
        declarations = {name: world.schema[name] for name in world.schema or ()}
        self.single = {name for name, attribute in declarations.items() if not attribute.several}
        self.kinds = {name: attribute.kind for name, attribute in declarations.items() if attribute.kind}
        self.strings = {name for name, attribute in declarations.items() if attribute.refinable}
        self.kinds.update(dict.fromkeys(world.lore.trees, Kind.CONCEPT))
        self.kinds.update(dict.fromkeys(world.lore.units, Kind.NUMBER))
        self.checked = {*declarations, *self.kinds}  # what is only derived is nobody's declaration
        self.kinds.update({name: Kind.NUMBER for name, slot in world.slots.items() if slot.half})
        self.above = {name: up for tree in world.lore.parents.values() for name, up in tree.items()}

    def find_declaration(self, name):
        """How a declared attribute is read, whoever asks."""
        kind, unit, slot = self.kinds.get(name), self.world.lore.units.get(name), self.slot(name)
        return Manner(kind, folded=kind is Kind.CONCEPT, unit=unit, beside=slot.unit_from if slot and unit else None)

    def manner(self, name, condition):
        """How a test reads its attribute: as declared, else as what the test asks for."""
        kind = find_kind_asked(condition)
        if name in self.kinds and not (name in self.strings and kind is Kind.IP):
            return self.find_declaration(name)
        units = [literal.unit for literal in list_literals(condition) if isinstance(literal, m.Quantity)]
        return Manner(kind, unit=WORTH[units[0]][0], bare=False) if units else Manner(kind)

    def manners(self, first, second):
        """How two attributes that are compared are read: what is declared of one of them goes for both."""
        named = [name for name in (first, second) if name in self.kinds]
        named = [name for name in named if name not in self.strings] or named
        if not named:
            return Manner(None), Manner(None)
        like = self.find_declaration(named[0])
        other = Manner(like.kind, unit=like.unit)
        return tuple(
            self.find_declaration(name) if self.kinds.get(name) in (like.kind, Kind.CONCEPT) else other
            for name in (first, second)
        )

    def slot(self, name):
        return self.world.slots.get(name)

    def attribute(self, written):
        """The attribute that a name means."""
        return next((name for name, slot in self.world.slots.items() if written in slot.spellings), written)

    def sources(self, name):
        """The names under which an event may carry the attribute."""
        slot = self.slot(name)
        return (name, *slot.spellings, *slot.below) if slot else (name,)

    def concept(self, word):
        """The concept that a word means: its name, a synonym, or either in another case; else the word itself."""
        spelled = {name: name for name in self.above}
        for name, words in self.world.lore.synonyms.items():
            spelled.update({other: name for other in words if other not in spelled and name in self.above})
        return spelled.get(word) or {key.casefold(): name for key, name in spelled.items()}.get(word.casefold(), word)

    def is_below(self, first, second):
        return first == second or any(self.is_below(up, second) for up in self.above.get(first, ()))

    def amount(self, number, unit, to):
        """An amount in another unit, as a whole number or the nearest float."""
        if unit == to:
            return number
        if unit not in WORTH:
            raise Bad
        (family, worth), (other, base) = WORTH[unit], WORTH.get(to, (to, Fraction(1)))
        if family != other:
            raise Bad
        exact = number * worth / base
        if exact.denominator == 1 and not -(2**63) <= exact < 2**63:
            raise Bad
        return exact if exact.denominator == 1 else Fraction(float(exact))


class Naive:
    """The opinion on one filter in one world."""

    def __init__(self, tree, world):
        self.tree, self.world = tree, Surroundings(world)

    def opinion(self, event) -> bool:
        fields = event.values if isinstance(event, m.Event) else event
        if not isinstance(fields, Mapping):
            raise Bad
        for name in self.world.checked:
            self.check(fields, name)
        return self.decide(self.tree, "", fields)

    def check(self, fields, name):
        """Raise `Bad` where an event breaks a declaration, whether a filter asks for the attribute or not."""
        manner = self.world.find_declaration(name)
        leaves = self.find_leaves(fields, name, "")
        values = self.values(fields, name, "", manner)
        if UNREADABLE in values and manner.kind is not None:
            raise Bad
        if name in self.world.single and (len(values) > 1 or any(is_list(whole, manner.kind) for whole in leaves)):
            raise Bad

    # --- the event, spelled out -----------------------------------------------------------------

    def find_leaves(self, fields, name, prefix):
        """What stands under the attribute's names, as it stands there."""
        return [
            leaf for source in self.world.sources(name) for leaf in find_spelled(fields, source.removeprefix(prefix))
        ]

    def values(self, fields, name, prefix, manner):
        """The values of an attribute as they are read; null and what is empty are none."""
        slot = self.world.slot(name)
        if slot and slot.half:
            return self.double_halves(self.values(fields, slot.half, prefix, Manner(Kind.NUMBER)))
        wholes = self.find_leaves(fields, name, prefix)
        leaves = [
            leaf for whole in wholes for leaf in list_values(whole, manner.kind) if not is_missing(leaf) and leaf != {}
        ]
        return [read_or_not(lambda leaf=leaf: self.value(leaf, manner, fields)) for leaf in leaves]

    def double_halves(self, halves):
        """The derived attribute of these worlds: it needs one number, and gives twice that."""
        if not halves:
            return []
        if len(halves) > 1 or halves[0] is UNREADABLE:
            return [UNREADABLE]
        whole = 2 * halves[0][0]
        if whole.denominator == 1 and not -(2**63) <= whole < 2**63:
            return [UNREADABLE]
        return [build_span(whole)]

    def value(self, leaf, manner, fields):
        if manner.kind is Kind.NUMBER:
            return self.number(leaf, manner, fields)
        if manner.kind is Kind.TIME:
            return build_interval(leaf, time_point)
        if manner.kind is Kind.CONCEPT:
            return self.world.concept(to_text(leaf)) if manner.folded else to_text(leaf)
        return READERS[manner.kind](leaf)

    def number(self, leaf, manner, fields):
        if manner.unit is None:
            return build_interval(leaf, number_point)
        return build_interval(leaf, lambda end: self.amount(end, manner, fields))

    def amount(self, leaf, manner, fields):
        """A number in the unit that is asked for: the unit is written with it, or beside it, or nowhere."""
        amount, own = self.split_unit(leaf, manner, fields)
        if own is None:
            if not manner.bare:
                raise Bad
            return number_point(amount)
        return self.world.amount(number_point(amount), own, manner.unit)

    def split_unit(self, leaf, manner, fields):
        if isinstance(leaf, m.Quantity):
            return leaf.amount, leaf.unit
        if isinstance(leaf, str) and not re.fullmatch(NUMBER, leaf.strip()):
            amount_match = re.fullmatch(rf"({NUMBER})\s*([^\W\d]\w*)", leaf.strip())
            if amount_match:
                return amount_match[1], amount_match[4]
        units = [unit for unit in find_spelled(fields, manner.beside) if unit] if manner.beside else []
        return leaf, units[0] if units else None

    # --- deciding: count the values that a test accepts --------------------------------------------

    def decide(self, tree, prefix, fields) -> bool:
        match tree:
            case m.And(parts):
                return sum(self.decide(part, prefix, fields) for part in parts) == len(parts)
            case m.Or(parts):
                return sum(self.decide(part, prefix, fields) for part in parts) > 0
            case m.Not(part):
                return not self.decide(part, prefix, fields)
        return self.test(tree, prefix, fields)

    def test(self, test, prefix, fields) -> bool:
        name = self.world.attribute(prefix + test.attribute)
        match test.condition:
            case m.Exists():
                return len(self.values(fields, name, prefix, Manner(None))) > 0
            case m.IsNull():
                null = any(is_missing(whole) for whole in self.find_leaves(fields, name, prefix))
                return null and not self.values(fields, name, prefix, Manner(None))
            case m.Compare(op, other):
                accepted, count = self.compare(op, name, self.world.attribute(prefix + other), prefix, fields)
            case m.Has(inner):
                values = self.values(fields, name, prefix, Manner(Kind.RECORD))
                records = [value for value in values if value is not UNREADABLE]
                accepted, count = sum(self.decide(inner, f"{name}.", record) for record in records), len(values)
            case condition:
                manner = self.world.manner(name, condition)
                values = self.values(fields, name, prefix, manner)
                read = [value for value in values if value is not UNREADABLE]
                accepted, count = sum(self.accepts(condition, value, manner) for value in read), len(values)
        if not count:
            return False
        return {"any": accepted > 0, "all": accepted == count, "none": accepted == 0}[test.quantifier.value]

    def compare(self, op, name, other, prefix, fields):
        """How many values compare so with some value of another attribute, of how many; none without one there."""
        first, second = self.world.manners(name, other)
        left, right = self.values(fields, name, prefix, first), self.values(fields, other, prefix, second)
        if not right:
            return 0, 0
        readable = [value for value in right if value is not UNREADABLE]
        accepted = [
            value
            for value in left
            if value is not UNREADABLE and any(compare_spans(op, value, each) for each in readable)
        ]
        return len(accepted), len(left)

    def accepts(self, condition, value, manner) -> bool:
        match condition:
            case m.Is(wanted):
                return self.equal(value, wanted, manner)
            case m.In(wanted):
                return sum(self.equal(value, candidate, manner) for candidate in wanted) > 0
            case m.Range():
                return self.inside(condition, value, manner)
            case m.SameText(values):
                return (
                    sum([*map(ord, value.casefold())] == [*map(ord, candidate.casefold())] for candidate in values) > 0
                )
            case m.TextTest(op, pattern, ignoring_case):
                return accepts_text(op.value, pattern, value, ignoring_case)
            case m.IsA(concept):
                return self.world.is_below(self.world.concept(value), self.world.concept(concept))
            case m.Within(area):
                return any(holds(polygon, value) for polygon in area.polygons)
            case m.WithinRegion(region):
                return any(holds(polygon, value) for polygon in self.world.areas[region].polygons)
            case m.Near(center, metres):
                return is_near(value, center, metres)
            case m.InNetworks(networks):
                return any(is_in_block(value, block) for block in networks)
            case m.Age(seconds):
                low, high, low_open, high_open = value
                now = time_point(self.world.now)
                age = (
                    map_value(high, lambda t: now - t),
                    map_value(low, lambda t: now - t),
                    high_open,
                    low_open,
                )
                return meets(age, find_ends(seconds, number_point))
        raise AssertionError(condition)

    def equal(self, value, wanted, manner) -> bool:
        match wanted:
            case bool():
                return value is wanted
            case str():
                wanted = self.world.concept(wanted) if manner.folded else wanted
                return [*map(ord, value)] == [*map(ord, wanted)]
            case m.Point(lon, lat):
                return value == (Fraction(lon), Fraction(lat))
        return meets(value, build_span(self.point(wanted, manner)))

    def inside(self, wanted, value, manner) -> bool:
        if wanted.kind is Kind.TEXT:
            return is_text_between(wanted, value)
        return meets(value, find_ends(wanted, lambda end: self.point(end, manner)))

    def point(self, literal, manner) -> Fraction:
        match literal:
            case datetime():
                return time_point(literal)
            case m.Quantity(amount, unit):
                return self.world.amount(number_point(amount), unit, manner.unit)
        return number_point(literal)
