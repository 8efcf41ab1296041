"""A second opinion on what filters mean, written from the words of the language and from nothing else.

An event is spelled out as a list of values for each name; every test counts how many of them it
accepts; numbers and times are exact fractions, and whether two ranges meet is found by trying points.
Slow and plain on purpose; it shares no code with `tidings.algebra`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise

from tidings import model as m
from tidings.model import Kind
from tidings.testing.strategies.world import WORTH

EARTH_M = 6371008.8
NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def naive(tree, event, world) -> bool:
    """Tell whether the event satisfies the filter, or raise `Bad`."""
    return Naive(tree, world).opinion(event)


class Bad(Exception):
    """The event does not fit the kinds."""


class TooClose(Exception):
    """The answer hangs on the last digits of a floating-point sum: no opinion."""


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
        for one, two in self.pairs():
            for name, other in ((one, two), (two, one)):
                if not found.get(name) and found.get(other):
                    found[name], self.like[name] = found[other], other
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


# --- names and arrays -----------------------------------------------------------------------------


def every_test(tree, prefix=""):
    match tree:
        case m.And(parts) | m.Or(parts):
            for part in parts:
                yield from every_test(part, prefix)
        case m.Not(part):
            yield from every_test(part, prefix)
        case m.Test(attribute, condition):
            yield prefix + attribute, tree
            if isinstance(condition, m.Has):
                yield from every_test(condition.filter, f"{prefix}{attribute}.")


def beside(name, test):
    return name.removesuffix(test.attribute) + test.condition.other


def literals(condition):
    match condition:
        case m.Is(value):
            return (value,)
        case m.In(values):
            return values
        case m.Range(low, high):
            return tuple(end for end in (low, high) if end is not None)
    return ()


def kind_asked(condition):
    match condition:
        case m.TextTest():
            return Kind.TEXT
        case m.IsA():
            return Kind.CONCEPT
        case m.Within() | m.WithinRegion() | m.Near():
            return Kind.PLACE
        case m.InNetworks():
            return Kind.IP
        case m.Age():
            return Kind.TIME
        case m.Has():
            return Kind.RECORD
    for literal in literals(condition):
        for types, kind in (
            (bool, Kind.BOOL),
            (str, Kind.TEXT),
            (datetime, Kind.TIME),
            (m.Point, Kind.PLACE),
            ((int, float, m.Quantity), Kind.NUMBER),
        ):
            if isinstance(literal, types):
                return kind
    return None


def spelled(fields, name):
    """What stands under the dotted name, whichever way keys and records share its dots."""
    for key, value in fields.items():
        if key == name:
            yield value
        elif isinstance(key, str) and name.startswith(f"{key}."):
            for record in several(value, Kind.RECORD):
                if isinstance(record, Mapping):
                    yield from spelled(record, name[len(key) + 1 :])


def several(value, kind):
    if kind is Kind.PLACE and is_pair(value):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from several(item, kind)
    else:
        yield value


def is_pair(value):
    return isinstance(value, list | tuple) and len(value) == 2 and all(is_number(part) for part in value)


def is_number(value):
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def listed(value, kind):
    """Whether a value came as a list, or as a range: more than one value can be."""
    return isinstance(value, m.Range | list | tuple) and not (kind is Kind.PLACE and is_pair(value))


# --- values ---------------------------------------------------------------------------------------


def none_or(value, function):
    return None if value is None else function(value)


def span(point):
    return (point, point, False, False)


def ends_of(wanted, point):
    return (none_or(wanted.low, point), none_or(wanted.high, point), wanted.low_open, wanted.high_open)


def interval(leaf, point):
    """A value of a number or a time: from one point to another, perhaps the same."""
    if not isinstance(leaf, m.Range):
        return span(point(leaf))
    low, high, low_open, high_open = ends_of(leaf, point)
    if low is not None and low == high and (low_open or high_open):
        raise Bad
    return (low, high, low_open, high_open)


def number_point(leaf) -> Fraction:
    if isinstance(leaf, str) and re.fullmatch(NUMBER, leaf.strip()):
        leaf = int(leaf) if re.fullmatch(r"[+-]?[0-9]+", leaf.strip()) else float(leaf)
    if isinstance(leaf, Decimal) and leaf.is_finite():
        whole = leaf == leaf.to_integral_value() and abs(leaf) < 2**63
        leaf = int(leaf) if whole else float(leaf)
    if not is_number(leaf) or isinstance(leaf, Decimal) or (isinstance(leaf, float) and not math.isfinite(leaf)):
        raise Bad
    if isinstance(leaf, int) and not -(2**63) <= leaf < 2**63:
        raise Bad
    return Fraction(leaf)


def time_point(leaf) -> Fraction:
    if isinstance(leaf, str):
        try:
            leaf = datetime.fromisoformat(leaf.strip())
        except ValueError:
            raise Bad from None
    if isinstance(leaf, date) and not isinstance(leaf, datetime):
        leaf = datetime(leaf.year, leaf.month, leaf.day)  # noqa: DTZ001 - made UTC below
    if not isinstance(leaf, datetime):
        raise Bad
    gone = (leaf if leaf.tzinfo else leaf.replace(tzinfo=UTC)) - EPOCH
    return Fraction((gone.days * 86400 + gone.seconds) * 10**6 + gone.microseconds, 10**6)


def text_of(leaf) -> str:
    if not isinstance(leaf, str) or any("\ud800" <= char <= "\udfff" for char in leaf):
        raise Bad
    return leaf


def truth_of(leaf) -> bool:
    words = {"true": True, "false": False}
    if isinstance(leaf, str) and leaf.strip().lower() in words:
        return words[leaf.strip().lower()]
    if not isinstance(leaf, bool):
        raise Bad
    return leaf


def place_of(leaf):
    if isinstance(leaf, m.Point):
        return (Fraction(leaf.lon), Fraction(leaf.lat))
    if isinstance(leaf, Mapping) and "lon" in leaf and "lat" in leaf:
        leaf = (leaf["lon"], leaf["lat"])
    if not is_pair(leaf):
        raise Bad
    lon, lat = (Fraction(float(number_point(part))) for part in leaf)
    if abs(lon) > 180 or abs(lat) > 90:
        raise Bad
    return (lon, lat)


def address_of(leaf):
    if isinstance(leaf, str):
        try:
            leaf = ip_address(leaf.strip())
        except ValueError:
            raise Bad from None
    if not isinstance(leaf, IPv4Address | IPv6Address):
        raise Bad
    inside = leaf.ipv4_mapped if isinstance(leaf, IPv6Address) else None
    return inside or leaf


def natural_point(leaf):
    return time_point(leaf) if isinstance(leaf, date) else number_point(leaf)


def natural_of(leaf):
    if isinstance(leaf, str):
        return text_of(leaf)
    if isinstance(leaf, bool):
        return leaf
    if isinstance(leaf, m.Point):
        return place_of(leaf)
    if isinstance(leaf, date):
        return interval(leaf, time_point)
    return interval(leaf, number_point) if is_number(leaf) else leaf


def record_of(leaf):
    if not isinstance(leaf, Mapping):
        raise Bad
    return leaf


READERS = {
    Kind.TEXT: text_of,
    Kind.BOOL: truth_of,
    Kind.PLACE: place_of,
    Kind.IP: address_of,
    Kind.RECORD: record_of,
    None: natural_of,
}


# --- conditions -----------------------------------------------------------------------------------


def meet(one, two) -> bool:
    """Whether two ranges share a point: try every end, and a point between and beyond every two."""
    ends = sorted({end for span in (one, two) for end in span[:2] if end is not None})
    if not ends:
        return True
    points = [*ends, ends[0] - 1, ends[-1] + 1, *((low + high) / 2 for low, high in pairwise(ends))]
    return any(covers(one, point) and covers(two, point) for point in points)


def covers(span, point) -> bool:
    low, high, low_open, high_open = span
    above = low is None or point > low or (point == low and not low_open)
    below = high is None or point < high or (point == high and not high_open)
    return above and below


def compared(op, one, two) -> bool:
    """Whether some point of one and some point of the other compare."""
    if isinstance(one, str) and isinstance(two, str):
        left, right = [*map(ord, one)], [*map(ord, two)]
        return {"=": left == right, "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]
    if not is_span(one) or not is_span(two):
        return one == two
    if op == "=":
        return meet(one, two)
    if op in (">", ">="):
        one, two, op = two, one, {">": "<", ">=": "<="}[op]
    (low, _, low_open, _), (_, high, _, high_open) = one, two
    if low is None or high is None:
        return True
    return low < high or (op == "<=" and low == high and not low_open and not high_open)


def unlike(op, one, two) -> bool:
    sorts = (str, bool, IPv4Address | IPv6Address, tuple)
    one, two = (next((at for at, sort in enumerate(sorts) if isinstance(each, sort)), None) for each in (one, two))
    return one != two or (op != "=" and one not in (0, 3))


def is_span(value) -> bool:
    return isinstance(value, tuple) and len(value) == 4


def text_between(span, value) -> bool:
    code = [*map(ord, value)]
    if span.low is not None:
        low = [*map(ord, span.low)]
        if code < low or (code == low and span.low_open):
            return False
    if span.high is not None:
        high = [*map(ord, span.high)]
        if code > high or (code == high and span.high_open):
            return False
    return True


def text_accepts(op, pattern, value, ignoring_case) -> bool:
    if op == "matches":
        return re_search(pattern, value, ignoring_case)
    if ignoring_case:
        pattern, value = pattern.casefold(), value.casefold()
    if op == "like":
        return like(tokens(pattern), value)
    starts = [at for at in range(len(value) - len(pattern) + 1) if value[at : at + len(pattern)] == pattern]
    return {
        "starts with": 0 in starts,
        "ends with": len(value) - len(pattern) in starts,
        "contains": len(starts) > 0,
    }[op]


def re_search(pattern, value, ignoring_case) -> bool:
    """RE2 in Python's words, for the expressions that both read alike: only the `$` differs."""
    flags = re.DOTALL | (re.IGNORECASE if ignoring_case else 0)
    return re.search(re.sub(r"(?<!\\)\$", r"\\Z", pattern), value, flags) is not None


def tokens(pattern):
    """A wildcard pattern as a list: text for a plain character, None for one, Ellipsis for any number."""
    found, escaped = [], False
    for char in pattern:
        if escaped or char not in "*?\\":
            found.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            found.append(None if char == "?" else ...)
    return [*found, "\\"] if escaped else found


def like(wanted, value) -> bool:
    """The places in the value that the wildcards read so far may have reached."""
    reached = {0}
    for token in wanted:
        if token is ...:
            reached = set(range(min(reached), len(value) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(value) and token in (None, value[at])}
    return len(value) in reached


def near(value, center, metres) -> bool:
    one, two = (tuple(math.radians(part) for part in place) for place in (value, (center.lon, center.lat)))
    vectors = [(math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)) for lon, lat in (one, two)]
    across = math.dist(*vectors)
    distance = 2 * EARTH_M * math.asin(min(1.0, across / 2))
    if abs(distance - metres) <= 1e-6 * max(1.0, metres) and value != (center.lon, center.lat):
        raise TooClose
    return distance <= metres


def in_block(address, block) -> bool:
    if address.version != block.version:
        return False
    bits = 32 if block.version == 4 else 128
    keep = bits - block.prefixlen
    return int(address) >> keep == int(block.network_address) >> keep


# --- polygons: exact, edges the short way, the boundary inside ------------------------------------


def holds(rings, place) -> bool:
    return any(_holds_unrolled(rings, (place[0] + turn, place[1])) for turn in (-720, -360, 0, 360, 720))


def _holds_unrolled(rings, place) -> bool:
    outline, *holes = (unrolled(ring) for ring in rings)
    if on_ring(outline, place):
        return True
    if not in_ring(outline, place):
        return False
    for hole in holes:
        for turn in (-360, 0, 360):
            moved = (place[0] + turn, place[1])
            if on_ring(hole, moved):
                return True
            if in_ring(hole, moved):
                return False
    return True


def unrolled(ring):
    places = [(Fraction(ring[0][0]), Fraction(ring[0][1]))]
    for (before, _), (lon, lat) in pairwise(ring):
        step = Fraction(lon) - Fraction(before)
        if 180 < abs(step) < 360:
            step += 360 if step < 0 else -360
        places.append((places[-1][0] + step, Fraction(lat)))
    return places


def on_ring(ring, place) -> bool:
    return any(on_edge(one, two, place) for one, two in pairwise(ring))


def on_edge(one, two, place) -> bool:
    (x1, y1), (x2, y2), (x, y) = one, two, place
    straight = (x2 - x1) * (y - y1) == (y2 - y1) * (x - x1)
    return straight and min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2)


def in_ring(ring, place) -> bool:
    """Count the edges that a ray to the east crosses."""
    x, y = place
    crossed = 0
    for (x1, y1), (x2, y2) in pairwise(ring):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            crossed += 1
    return crossed % 2 == 1
