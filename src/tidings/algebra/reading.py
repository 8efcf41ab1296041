"""An event as filters see it: for each attribute its values in their one form, and what was null.

This is the edge: text that reads as the attribute's kind is parsed here, units and concept names are
folded here, and what does not fit makes the event bad, with a reason. Attributes that nobody asked for
are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.algebra.coerce import coerce, number
from tidings.algebra.likeness import refuse_unlike
from tidings.errors import AmbiguousConcept, BadEvent, OntologyError
from tidings.model import Address, Kind, Point, Quantity, Range, values_of

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.algebra.needs import Need
    from tidings.concepts import Ontology
    from tidings.model import EventLike

MANY = 32
"""With more attributes than this, and fewer fields in an event, what its fields feed is looked up."""

EventValue: TypeAlias = "int | float | str | bool | datetime | Point | Address | Range"


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of each attribute (several are normal), explicit nulls, and arrays of records."""

    values: Mapping[str, tuple[EventValue, ...]] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()
    elements: Mapping[str, tuple[Reading, ...]] = field(default_factory=dict)


class Reader:
    """Reads events for a fixed set of needs; built once, used for many events."""

    def __init__(self, needs: Mapping[str, Need], ontology: Ontology) -> None:
        """Take what is needed; which names of an event feed an attribute is looked up once, when it is first read."""
        self._ontology = ontology
        self._plain = {name: need for name, need in needs.items() if name not in ontology.derived}
        self._derived = {name: need for name, need in needs.items() if name in ontology.derived}
        self._paths: dict[str, list[tuple[str, ...]]] = {}
        self._fed: dict[str, list[int]] | None = None
        self._records = {
            name: Reader(_below(name, needs), ontology) for name, need in needs.items() if need.kind is Kind.RECORD
        }
        self._pairs = [pair for need in needs.values() for pair in need.compared if not pair.prefix]

    def read(self, event: EventLike, now: datetime) -> Reading:
        """Return the reading, or raise `BadEvent` with the attribute and the reason."""
        try:
            return self._read(values_of(event), now)
        except RecursionError:
            msg = "the event's lists or records are nested too deeply"
            raise BadEvent(msg, attribute=None) from None

    def _read(self, fields: Mapping[str, Any], now: datetime) -> Reading:
        values: dict[str, tuple[EventValue, ...]] = {}
        nulls: set[str] = set()
        elements: dict[str, tuple[Reading, ...]] = {}
        for name, need in self._asked(fields):
            found = self._found(name, fields)
            if not found:
                continue
            if need.kind is Kind.RECORD:
                elements[name] = tuple(self._records[name].read(part, now) for part in _records(name, need, found))
            else:
                values[name] = self._values(name, need, found, fields)
            if any(leaf is None for leaf in found) and not values.get(name) and not elements.get(name):
                nulls.add(name)
        for name, need in self._derived.items():
            values[name] = self._derive(name, need, fields, now)
        for pair in self._pairs:
            for left, right in product(values.get(pair.left, ()), values.get(pair.right, ())):
                refuse_unlike(pair.op, left, right, names=(pair.left, pair.right))
        return Reading(values, frozenset(nulls), elements)

    def _asked(self, fields: Mapping[str, Any]) -> Iterable[tuple[str, Need]]:
        """Return the attributes that an event may have something for: all, or where they are many, by its fields."""
        if len(self._plain) <= max(MANY, len(fields)):
            return self._plain.items()
        if self._fed is None:
            self._fed = self._feeding()
        fed = self._fed
        places = {place for key in fields for place in fed.get(key, ())}
        every = list(self._plain.items())
        return [every[place] for place in sorted(places)]

    def _feeding(self) -> dict[str, list[int]]:
        """Return, for each field that can begin a path, the places of the attributes that the path feeds."""
        fed: dict[str, list[int]] = {}
        for place, name in enumerate(self._plain):
            for path in self._paths_of(name):
                for split in range(1, len(path) + 1):
                    fed.setdefault(".".join(path[:split]), []).append(place)
        return fed

    def _paths_of(self, name: str) -> list[tuple[str, ...]]:
        paths = self._paths.get(name)
        if paths is None:
            paths = self._paths[name] = [tuple(source.split(".")) for source in self._ontology.sources(name)]
        return paths

    def _found(self, name: str, fields: Mapping[str, Any]) -> list[Any]:
        """Return what an event gives for an attribute, under any of the names that feed it."""
        found: list[Any] = []
        for path in self._paths_of(name):
            if len(path) > 1:
                found += leaves(fields, path)
            elif path[0] in fields:
                found.append(fields[path[0]])
        return found

    def _values(self, name: str, need: Need, found: list[Any], fields: Mapping[str, Any]) -> tuple[EventValue, ...]:
        try:
            values = tuple(
                self._value(name, need, raw, fields)
                for leaf in found
                for raw in _separate(leaf, need)
                if raw is not None
            )
        except (ValueError, OntologyError) as problem:
            if isinstance(problem, BadEvent):
                raise
            msg = f"`{name}`: {problem}"
            raise BadEvent(msg, attribute=name) from problem
        if not need.several:
            _refuse_several(name, found, values)
        return values

    def _value(self, name: str, need: Need, raw: Any, fields: Mapping[str, Any]) -> EventValue:
        if need.unit is not None and need.kind is Kind.NUMBER:
            return self._amount(name, need, raw, fields)
        value: EventValue = coerce(raw, need.kind)
        if need.folded and isinstance(value, str):
            return self._folded(value, need.tree)
        return value

    def _folded(self, value: str, tree: str | None) -> str:
        try:
            return self._ontology.canonical(value, tree=tree) or value
        except AmbiguousConcept as problem:
            raise ValueError(str(problem)) from problem

    def _amount(self, name: str, need: Need, raw: Any, fields: Mapping[str, Any]) -> EventValue:
        if isinstance(raw, Range) and Quantity in (type(raw.low), type(raw.high)):
            return self._amounts(name, need, raw, fields)
        given, unit = raw, self._unit_beside(need, fields)
        if isinstance(raw, Quantity):
            given, unit = raw.amount, raw.unit
        elif isinstance(raw, str) and (quantity := self._ontology.read_quantity(raw)):
            given, unit = quantity
        if unit is None and not need.bare:
            msg = (
                f"{raw!r} has no unit; write it as text with its unit, or declare the unit of `{name}` in the ontology"
            )
            raise ValueError(msg)
        return _scaled(coerce(given, Kind.NUMBER), lambda n: self._convert(n, unit, need.unit))

    def _amounts(self, name: str, need: Need, raw: Range, fields: Mapping[str, Any]) -> Range:
        """Read a range whose ends bring their units."""
        ends: list[Any] = [
            None if end is None else self._amount(name, need, end, fields) for end in (raw.low, raw.high)
        ]
        amounts: Range = coerce(replace(raw, low=ends[0], high=ends[1]), Kind.NUMBER)
        return amounts

    def _convert(self, amount: int | float, unit: str | None, to: str | None) -> int | float:
        if unit is None or to is None:
            return amount
        return number(self._ontology.convert(amount, unit, to=to))

    def _unit_beside(self, need: Need, fields: Mapping[str, Any]) -> str | None:
        if need.unit_from is None:
            return None
        units = {leaf for leaf in self._found(need.unit_from, fields) if isinstance(leaf, str)}
        if len(units) > 1:
            msg = f"`{need.unit_from}` names several units"
            raise ValueError(msg)
        return units.pop() if units else None

    def _derive(self, name: str, need: Need, fields: Mapping[str, Any], now: datetime) -> tuple[EventValue, ...]:
        value = self._ontology.derived[name].value(lambda source: self._input(name, source, fields, now), now)
        return () if value is None else self._values(name, need, [value], {})

    def _input(self, derived: str, source: str, fields: Mapping[str, Any], now: datetime) -> Any:
        """Return the one value of a derived attribute's input: as its kind where that is known, as given otherwise."""
        if source in self._ontology.derived:
            return self._ontology.derived[source].value(lambda s: self._input(source, s, fields, now), now)
        found = [raw for leaf in self._found(source, fields) for raw in flat(leaf) if raw is not None]
        if len(found) > 1:
            msg = f"`{derived}` is derived from `{source}`, which has {len(found)} values here"
            raise BadEvent(msg, attribute=derived)
        try:
            return coerce(found[0], self._ontology.kind(source)) if found else None
        except ValueError as problem:
            msg = f"`{source}`: {problem}"
            raise BadEvent(msg, attribute=source) from problem


def leaves(fields: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Any]:
    """Yield what stands at the dotted path, through nested mappings, arrays and names that hold dots."""
    for split in range(1, len(path) + 1):
        key = path[0] if split == 1 else ".".join(path[:split])
        if key not in fields:
            continue
        if split == len(path):
            yield fields[key]
        else:
            for part in flat(fields[key]):
                if isinstance(part, Mapping):
                    yield from leaves(part, path[split:])


def flat(leaf: Any) -> Iterator[Any]:
    """Yield the elements of arrays, however nested; anything else is its own element."""
    if is_array(leaf):
        for element in leaf:
            yield from flat(element)
    else:
        yield leaf


def is_array(leaf: Any) -> bool:
    """Tell whether a value is several values: any iterable that is not text, bytes or a mapping."""
    if isinstance(leaf, str | bytes | bytearray | Mapping):
        return False
    return isinstance(leaf, Iterable) and getattr(leaf, "ndim", 1) != 0  # NumPy's arrays of no dimension are scalars


def _separate(leaf: Any, need: Need) -> Iterator[Any]:
    if need.kind is Kind.PLACE:
        yield from _places(leaf)
    else:  # an empty record says nothing, as an empty list does
        yield from (part for part in flat(leaf) if not (isinstance(part, Mapping) and not part))


def _places(leaf: Any) -> Iterator[Any]:
    """A pair of numbers is one place; an array of anything else is several."""
    if is_array(leaf):
        parts = list(leaf)
        if parts and not any(is_array(part) or isinstance(part, Mapping | Point) or part is None for part in parts):
            yield parts
        else:
            for part in parts:
                yield from _places(part)
    else:
        yield leaf


def _refuse_several(name: str, found: list[Any], values: tuple[EventValue, ...]) -> None:
    lists = any(is_array(leaf) and not (values and isinstance(values[0], Point)) for leaf in found)
    if len(values) > 1 or lists:
        msg = f"`{name}` has one value by the schema; this event gives a list (declare it `several ...` to allow that)"
        raise BadEvent(msg, attribute=name)
    if values and isinstance(values[0], Range):
        msg = f"`{name}` has one value by the schema; this event gives a range (declare it `several ...` to allow that)"
        raise BadEvent(msg, attribute=name)


def _records(name: str, need: Need, found: list[Any]) -> Iterator[Mapping[str, Any]]:
    if not need.several:
        _refuse_several(name, found, ())
    for leaf in found:
        for part in flat(leaf):
            if isinstance(part, Mapping):
                if part:
                    yield part
            elif part is not None:
                msg = f"`{name}` is an array of records; {part!r} is not one"
                raise BadEvent(msg, attribute=name)


def _below(name: str, needs: Mapping[str, Need]) -> dict[str, Need]:
    prefix = f"{name}."
    return {other[len(prefix) :]: _inside(need, prefix) for other, need in needs.items() if other.startswith(prefix)}


def _inside(need: Need, prefix: str) -> Need:
    """The need as an element of the array sees it: what is compared inside one element is compared there alone."""
    if not need.compared:
        return need
    pairs = [pair for pair in need.compared if pair.prefix.startswith(prefix)]
    return replace(need, compared=tuple(replace(pair, prefix=pair.prefix[len(prefix) :]) for pair in pairs))


def _scaled(value: Any, scale: Callable[[Any], int | float]) -> int | float | Range:
    if isinstance(value, Range):
        ends = [None if end is None else scale(end) for end in (value.low, value.high)]
        return Range(ends[0], ends[1], value.low_open, value.high_open)
    return scale(value)
