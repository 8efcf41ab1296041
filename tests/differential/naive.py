"""A second opinion on what filters mean, written from the words of the language and from nothing else.

An event is spelled out as a list of values for each name; every test counts how many of them it
accepts; numbers and times are exact fractions, and whether two ranges meet is found by trying points.
Slow and plain on purpose; it shares no code with `tidings.algebra`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction

from naive_places import holds
from naive_values import (
    NUMBER,
    READERS,
    Bad,
    beside,
    compared,
    ends_of,
    every_test,
    in_block,
    interval,
    kind_asked,
    listed,
    literals,
    meet,
    natural_point,
    near,
    none_or,
    number_point,
    several,
    span,
    spelled,
    text_accepts,
    text_between,
    text_of,
    time_point,
    unlike,
)

from tidings import model as m
from tidings.model import Kind
from tidings.testing.strategies.world import WORTH


def naive(tree, event, world) -> bool:
    """Tell whether the event satisfies the filter, or raise `Bad`."""
    return Naive(tree, world).opinion(event)


class Surroundings:
    """What the words of a world mean, from its plain tables."""

    def __init__(self, world):
        self.world, self.now = world, world.now
        self.areas = {name: world.regions[name] for name in world.regions or ()}
        said = {name: world.schema[name] for name in world.schema or ()}
        self.single = {name for name, attribute in said.items() if not attribute.several}
        self.always_read = set(said) if world.schema is not None and world.schema.closed else set()
        self.kinds = {name: attribute.kind for name, attribute in said.items()}
        self.kinds.update(dict.fromkeys(world.lore.trees, Kind.CONCEPT))
        self.kinds.update(dict.fromkeys(world.lore.units, Kind.NUMBER))
        self.kinds.update({name: Kind.NUMBER for name, slot in world.slots.items() if slot.half})
        self.folded = {name for name, kind in self.kinds.items() if kind is Kind.CONCEPT}
        self.above = {name: up for tree in world.lore.parents.values() for name, up in tree.items()}

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

    def is_below(self, one, two):
        return one == two or any(self.is_below(up, two) for up in self.above.get(one, ()))

    def amount(self, number, unit, to):
        """An amount in another unit, as a whole number or the nearest float."""
        (family, worth), (other, base) = WORTH[unit], WORTH.get(to, (to, Fraction(1)))
        if family != other:
            raise Bad
        exact = number if unit == to else number * worth / base
        return exact if exact.denominator == 1 else Fraction(float(exact))


class Naive:
    """The opinion on one filter in one world."""

    def __init__(self, tree, world):
        self.tree, self.world = tree, Surroundings(world)
        self.kinds = self.kinds_of(tree)

    def opinion(self, event) -> bool:
        fields = event.values if isinstance(event, m.Event) else event
        if not isinstance(fields, Mapping):
            raise Bad
        for name in self.asked():
            values, _ = self.values(fields, name, "")
            if self.kinds.get(name) is Kind.RECORD:
                for element in values:
                    for inner in self.asked():
                        if inner.startswith(f"{name}."):
                            self.values(element, inner, f"{name}.")
                    self.check_pairs(f"{name}.", element)
        self.check_pairs("", fields)
        return self.decide(self.tree, "", fields)

    def check_pairs(self, prefix, fields):
        """Two attributes that a filter compares must be comparable in this record."""
        for name, test in every_test(self.tree):
            if isinstance(test.condition, m.Compare) and name == prefix + test.attribute:
                left, _ = self.values(fields, self.world.attribute(name), prefix)
                right, _ = self.values(fields, beside(name, test), prefix)
                if any(unlike(test.condition.op, one, two) for one in left for two in right):
                    raise Bad

    # --- kinds: the schema's word, else the trees', else what the filter itself asks --------------

    def kinds_of(self, tree):
        found = {}
        for name, test in every_test(tree):
            name, kind = self.world.attribute(name), kind_asked(test.condition)
            if kind and not (found.get(name) is Kind.CONCEPT and kind is Kind.TEXT):
                found[name] = kind
        found.update({name: kind for name, kind in self.world.kinds.items() if kind})
        self.like = {}  # of which attribute an attribute borrowed its kind, and so its unit
        for _ in self.pairs():  # often enough for the longest chain
            for one, two in self.pairs():
                for name, other in ((one, two), (two, one)):
                    if not found.get(name) and found.get(other):
                        found[name], self.like[name] = found[other], self.like.get(other, other)
        return found

    def pairs(self):
        compared = [(name, test) for name, test in every_test(self.tree) if isinstance(test.condition, m.Compare)]
        return [(self.world.attribute(name), beside(name, test)) for name, test in compared]

    def asked(self):
        names = {self.world.attribute(name) for name, _ in every_test(self.tree)}
        return names | {other for _, other in self.pairs()} | self.world.always_read

    # --- the event, spelled out -----------------------------------------------------------------

    def values(self, fields, name, prefix):
        """The values of an attribute, and whether an explicit null stands in their place."""
        kind = self.kinds.get(name)
        slot = self.world.slot(name)
        if slot and slot.half:
            return [span(2 * at[0]) for at in self.values(fields, slot.half, prefix)[0] if at], False
        found = [leaf for source in self.world.sources(name) for leaf in spelled(fields, source.removeprefix(prefix))]
        leaves = [leaf for whole in found for leaf in several(whole, kind) if leaf is not None]
        values = [self.value(leaf, name, kind, fields) for leaf in leaves]
        if name in self.world.single and (len(values) > 1 or any(listed(whole, kind) for whole in found)):
            raise Bad
        return values, None in found and not values

    def value(self, leaf, name, kind, fields):
        if kind is Kind.NUMBER:
            return self.number(leaf, name, fields)
        if kind is Kind.TIME:
            return interval(leaf, time_point)
        if kind is Kind.CONCEPT:
            return self.world.concept(text_of(leaf)) if name in self.world.folded else text_of(leaf)
        if isinstance(leaf, m.Range):
            if kind is not None:
                raise Bad
            return interval(leaf, natural_point)
        return READERS[kind](leaf)

    def number(self, leaf, name, fields):
        unit = self.unit_kept(name)
        if unit is None:
            return interval(leaf, number_point)
        amount, own = self.measured(leaf, name, fields)
        if own is None:
            if self.like.get(name, name) not in self.world.world.lore.units:
                raise Bad
            return interval(amount, number_point)
        if own not in WORTH:
            raise Bad
        (point, *_) = interval(amount, number_point)
        return span(self.world.amount(point, own, unit))

    def measured(self, leaf, name, fields):
        """A number and its unit: written together, or the unit in the attribute beside."""
        if isinstance(leaf, m.Quantity):
            return leaf.amount, leaf.unit
        if isinstance(leaf, str) and not re.fullmatch(NUMBER, leaf.strip()):
            written = re.fullmatch(rf"({NUMBER})\s*([^\W\d]\w*)", leaf.strip())
            if written:
                return written[1], written[4]
        slot = self.world.slot(name)
        units = [unit for unit in spelled(fields, slot.unit_from) if unit] if slot and slot.unit_from else []
        return leaf, units[0] if units else None

    def unit_kept(self, name):
        """The unit in which an attribute's amounts are compared."""
        name = self.like.get(name, name)
        if name in self.world.world.lore.units:
            return self.world.world.lore.units[name]
        named = [test.condition for other, test in every_test(self.tree) if self.world.attribute(other) == name]
        units = [each.unit for condition in named for each in literals(condition) if isinstance(each, m.Quantity)]
        return WORTH[units[0]][0] if units else None

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
        values, null = self.values(fields, name, prefix)
        match test.condition:
            case m.Exists():
                return len(values) > 0
            case m.IsNull():
                return null
            case m.Compare(op, other):
                others, _ = self.values(fields, prefix + other, prefix)
                if not others:
                    return False
                accepted = sum(sum(compared(op, value, right) for right in others) > 0 for value in values)
            case m.Has(inner):
                accepted = sum(self.decide(inner, f"{name}.", element) for element in values)
            case condition:
                accepted = sum(self.accepts(condition, value, name) for value in values)
        if not values:
            return False
        return {"any": accepted > 0, "all": accepted == len(values), "none": accepted == 0}[test.quantifier.value]

    def accepts(self, condition, value, name) -> bool:
        match condition:
            case m.Is(wanted):
                return self.equal(value, wanted, name)
            case m.In(wanted):
                return sum(self.equal(value, one, name) for one in wanted) > 0
            case m.Range():
                return self.inside(condition, value, name)
            case m.SameText(values):
                return sum([*map(ord, value.casefold())] == [*map(ord, one.casefold())] for one in values) > 0
            case m.TextTest(op, pattern, ignoring_case):
                return text_accepts(op.value, pattern, value, ignoring_case)
            case m.IsA(concept):
                return self.world.is_below(self.world.concept(value), self.world.concept(concept))
            case m.Within(area):
                return any(holds(polygon, value) for polygon in area.polygons)
            case m.WithinRegion(region):
                return any(holds(polygon, value) for polygon in self.world.areas[region].polygons)
            case m.Near(center, metres):
                return near(value, center, metres)
            case m.InNetworks(networks):
                return any(in_block(value, block) for block in networks)
            case m.Age(seconds):
                low, high, low_open, high_open = value
                now = time_point(self.world.now)
                age = (none_or(high, lambda t: now - t), none_or(low, lambda t: now - t), high_open, low_open)
                return meet(age, ends_of(seconds, number_point))
        raise AssertionError(condition)

    def equal(self, value, wanted, name) -> bool:
        match wanted:
            case bool():
                return value is wanted
            case str():
                wanted = self.world.concept(wanted) if name in self.world.folded else wanted
                return [*map(ord, value)] == [*map(ord, wanted)]
            case m.Point(lon, lat):
                return value == (Fraction(lon), Fraction(lat))
        return meet(value, span(self.point(wanted, name)))

    def inside(self, wanted, value, name) -> bool:
        if wanted.kind is Kind.TEXT:
            return text_between(wanted, value)
        return meet(value, ends_of(wanted, lambda end: self.point(end, name)))

    def point(self, literal, name) -> Fraction:
        match literal:
            case datetime():
                return time_point(literal)
            case m.Quantity(amount, unit):
                return self.world.amount(number_point(amount), unit, self.unit_kept(name))
        return number_point(literal)
