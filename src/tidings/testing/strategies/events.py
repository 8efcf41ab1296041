"""Events aimed at filters: attributes present or absent, with values in every form that an event can have.

An attribute is absent, null, an empty list, one value, several, several with a null among them, or a
range. A dotted name is nested, flat, or partly both. Values come in every form that reads as the kind:
numbers as decimals and text, times in other zones, naive, as dates and as ISO text, places as pairs,
mappings and points, addresses as text, as Python's classes, and inside IPv6.

In a mixed world, an undeclared attribute may also hold a value of any other kind.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING

from tidings.model import Kind, Point, Quantity, Range
from tidings.testing.hypothesis_import import st
from tidings.testing.strategies.boundary_values import find_boundary_values
from tidings.testing.strategies.values import ZONES, bad_values, odd_values, scalars

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidings.model import Filter
    from tidings.model.values import EventValue
    from tidings.testing.strategies.world import Slot, World

_SEVERAL = ("absent", "null", "empty", "one", "one", "one", "list", "list", "with null", "nested list", "range")
_SINGLE = ("absent", "null", "one", "one", "one")
_RANGED = (Kind.NUMBER, Kind.TIME)
_ODD_HALVES: tuple[EventValue, ...] = (
    "x", True, [1, 2], [1], [], "3", " 4 ", "5 GB", 1.5, 2**62, 2**70, float("inf"), float("nan"), {"a": 1},
)  # fmt: skip


class _Aimer:
    """Draws events of one world; their values are near those that the filters name."""

    def __init__(self, draw: st.DrawFn, world: World, trees: Iterable[Filter]) -> None:
        self.draw, self.world, self.aims = draw, world, find_boundary_values(trees, world)

    def draw_fields(self, slots: Mapping[str, Slot], prefix: str = "") -> dict[str, EventValue]:
        """Draw a record with these fields."""
        draw = self.draw
        record: dict[str, EventValue] = {}
        for name, slot in slots.items():
            if slot.half:
                self._draw_half(slot, prefix + name, record)
                continue
            is_present, value = self._draw_attribute(slot, prefix + name)
            names = (name, *slot.spellings, *slot.below)
            if is_present:
                _put(draw, record, draw(st.sampled_from(names)), value)
            if slot.several and (len(names) > 1 or "." in name) and draw(st.integers(0, 2)) == 0:
                record.setdefault(draw(st.sampled_from(names)), draw(st.sampled_from((None, [], value))))
            if slot.unit_from and draw(st.booleans()):
                record[slot.unit_from] = draw(st.sampled_from((None, *slot.units)))
            if self.world.mixed and "." in name and draw(st.integers(0, 5)) == 0:  # a value instead of a record
                record.setdefault(name.partition(".")[0], draw(odd_values()))
        return record

    def _draw_half(self, slot: Slot, name: str, record: dict[str, EventValue]) -> None:
        """Draw `slot.half`, the input of a derived attribute, which is twice it."""
        wanted = [value for value in self.aims.get(name, ()) if isinstance(value, int) and abs(value) < 2**40]
        halves = [st.none(), st.integers(-5, 5), *([st.sampled_from(wanted).map(lambda n: n // 2)] if wanted else [])]
        if slot.half and self.draw(st.booleans()):
            record[slot.half] = self.draw(st.sampled_from(_ODD_HALVES) if self._is_odd() else st.one_of(halves))

    def _is_odd(self) -> bool:
        """Return true now and then, in a mixed world: the attribute is to hold a value of any kind."""
        return self.world.mixed and self.draw(st.integers(0, 3)) == 0

    def _draw_attribute(self, slot: Slot, name: str) -> tuple[bool, EventValue]:
        """Draw whether the attribute is present, and its value."""
        mode = self.draw(st.sampled_from(_SEVERAL if slot.several else _SINGLE))
        match mode:
            case "absent":
                return False, None
            case "null":
                return True, None
            case "empty":
                return True, []
            case "list":
                return True, [self._draw_value(slot, name) for _ in range(self.draw(st.integers(1, 3)))]
            case "with null":
                return True, [None, self._draw_value(slot, name)]
            case "nested list":
                return True, [[self._draw_value(slot, name)], [], [self._draw_value(slot, name), None]]
            case "range" if slot.kind in _RANGED and not slot.units:
                return True, self._draw_range(slot, name)
        return True, self._draw_value(slot, name)

    def _draw_value(self, slot: Slot, name: str) -> EventValue:
        """Draw one value, in one of the forms it can take."""
        if not slot.declared and self._is_odd():
            return self.draw(odd_values() if slot.several else odd_values().filter(_is_single))
        if slot.kind is Kind.RECORD:
            return self.draw_fields(slot.fields, f"{name}.") or {"unasked": 1}
        return self.draw(st.sampled_from(forms(self._draw_plain(slot, name), slot)))

    def _draw_plain(self, slot: Slot, name: str) -> EventValue:
        aims = [value for value in self.aims.get(name, ()) if not slot.declared or _fits(value, slot)]
        if aims and self.draw(st.integers(0, 4)) > 0:
            return self.draw(st.sampled_from(aims))
        if slot.kind is Kind.NUMBER and slot.units:
            return Quantity(self.draw(st.integers(-20, 2000)), self.draw(st.sampled_from(slot.units)))
        return self.draw(st.sampled_from((*slot.words, "unheard of")) if slot.words else scalars(slot.kind))

    def draw_bad(self, slot: Slot, name: str) -> EventValue:
        """Draw a value that does not fit: two values instead of one, an amount without unit, or another kind."""
        draw = self.draw
        if not slot.several and draw(st.booleans()):
            return [self._draw_value(slot, name), self._draw_value(slot, name)]
        if not slot.bare and draw(st.booleans()):
            return draw(st.sampled_from((5, "5", Quantity(5, "furlng"), "5 parsec")))
        wrong = draw(bad_values(Kind.TEXT if slot.refinable else slot.kind))
        return [self._draw_value(slot, name), wrong] if slot.several and draw(st.booleans()) else wrong

    def _draw_range(self, slot: Slot, name: str) -> Range:
        """Draw a value that is itself a range; never an empty one, which nothing can read."""
        draw = self.draw
        ends = [value for value in self.aims.get(name, ()) if _fits(value, slot)]
        end = st.one_of(scalars(slot.kind), st.sampled_from(ends)) if ends else scalars(slot.kind)
        low, high = sorted((draw(end), draw(end)))
        wide = low < high
        first, last = draw(st.sampled_from(((low, high), (low, high), (low, None), (None, high))))
        return Range(first, last, low_open=wide and draw(st.booleans()), high_open=wide and draw(st.booleans()))


def _fits(value: object, slot: Slot) -> bool:
    """Tell whether a value is of the slot's own kind."""
    match slot.kind:
        case Kind.NUMBER:
            if slot.units:  # a compared attribute may lend it amounts of another dimension
                return isinstance(value, Quantity) and value.unit in slot.units
            return type(value) in (int, float)
        case Kind.TIME:
            return isinstance(value, datetime)
        case Kind.BOOL:
            return isinstance(value, bool)
        case Kind.PLACE:
            return isinstance(value, tuple | Point)
        case Kind.IP:
            return _is_address(value)
    return isinstance(value, str)


def _is_single(value: object) -> bool:
    """Tell whether a value is neither a list nor a range, as a schema of single values wants it."""
    return not isinstance(value, list | tuple | Range)


def _is_address(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(ip_address(value))
    except ValueError:
        return False


def forms(value: EventValue, slot: Slot) -> list[EventValue]:
    """Return the forms in which an event may carry the value."""
    match value:
        case bool():
            return [value, str(value), str(value).upper()]
        case int() | float():
            exact = [value, Decimal(repr(value))] + ([float(value)] if float(value) == value else [])
            return [*exact, repr(value), f" {value!r} "]
        case datetime():
            return _list_moment_forms(value)
        case (lon, lat) | Point(lon, lat):
            pairs = [(lon, lat), [lon, lat]] if slot.several or slot.declared else []  # elsewhere a list is bad
            return [Point(lon, lat), *pairs, {"lon": lon, "lat": lat}]
        case Quantity(amount, unit):
            return [f"{amount} {unit}", f" {amount}{unit}", value, *([amount] if slot.bare else [])]
        case str() if _is_address(value) and (slot.kind is Kind.IP or not slot.declared):
            address = ip_address(value)
            mapped = f"::ffff:{value}" if isinstance(address, IPv4Address) else value.upper()
            return [value, address, f" {value} ", mapped]
    return [value]


def _list_moment_forms(value: datetime) -> list[EventValue]:
    zoned = [value] if not 2 < value.year < 9998 else [value.astimezone(zone) for zone in ZONES]
    forms: list[EventValue] = [*zoned, value.replace(tzinfo=None)]
    if value == datetime.combine(value, datetime.min.time(), UTC):
        forms.append(value.date())
    return [*forms, *(form.isoformat() for form in forms)]


def _put(draw: st.DrawFn, fields: dict[str, EventValue], name: str, value: EventValue) -> None:
    """Store a value under a dotted name, flat, nested or partly nested, next to what the record has already."""
    parts = name.split(".")
    split = draw(st.integers(0, len(parts) - 1)) if len(parts) > 1 else 0
    record = fields
    for part in parts[:split]:
        inner = record.setdefault(part, {})
        if not isinstance(inner, dict):  # the name before the dot has values of its own
            fields[name] = value
            return
        record = inner
    record[".".join(parts[split:])] = value


@st.composite
def events_of(draw: st.DrawFn, world: World, trees: tuple[Filter, ...]) -> dict[str, EventValue]:
    """Return one event of the world, aimed at the filters."""
    event = _Aimer(draw, world, trees).draw_fields(world.slots)
    if draw(st.integers(0, 3)) == 0:
        event["unasked"] = draw(st.sampled_from((1, "x", None, [], object, {"a": {}}, float("nan"))))
    return event


@st.composite
def bad_events(draw: st.DrawFn, world: World, trees: tuple[Filter, ...]) -> dict[str, EventValue]:
    """Return one event in which a declared attribute has a value that its kind cannot read.

    Where nothing is declared, no event can be bad, and this one is not.
    """
    aimer = _Aimer(draw, world, trees)
    event = aimer.draw_fields(world.slots)
    declared = sorted(name for name, slot in world.slots.items() if slot.declared and not slot.half)
    if not declared:
        return event
    name = draw(st.sampled_from(declared))
    for key in [key for key in event if key == name or name.startswith(f"{key}.")]:
        del event[key]
    event[name] = aimer.draw_bad(world.slots[name], name)
    return event
