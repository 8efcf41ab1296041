"""An event as filters see it: for each way an attribute is read, its values in their one form, and what was null.

This is the edge: text that reads as a kind is parsed here, units and concept names are folded here. A value of a
declared attribute that does not fit makes the event bad, with a reason, whether a filter asks for it or not. Of
other attributes a value that a kind cannot read is a `Mismatch`: it is there, and satisfies nothing. So what is
bad depends on declarations alone. What nobody declares or asks for is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.algebra.law.coerce import PLAIN, UNFIT, UNSURE, coerce, number, plain_reader
from tidings.algebra.law.requirements import Need, Requirements
from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute
from tidings.errors import AmbiguousConcept, BadEvent, OntologyError, TidingsError
from tidings.model import Address, Kind, Point, Quantity, Range, values_of

if TYPE_CHECKING:
    from tidings.concepts import Ontology
    from tidings.model import EventLike

MANY = 32
"""With more attributes than this, and fewer fields in an event, what its fields feed is looked up."""


class Way(NamedTuple):
    """A way to read an attribute, what tests call it, and what reads plain values at a glance."""

    need: Need
    keys: list[TypedAttribute]
    glance: Callable[[Any], Any]


EventValue: TypeAlias = "int | float | str | bool | datetime | Point | Address | Range | Mismatch"


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of each attribute as tests read it (several are normal), explicit nulls, and arrays of records.

    Of a record, `elements` has its reading; of what should be a record and is none, a `Mismatch`.
    """

    values: Mapping[TypedAttribute, tuple[EventValue, ...]] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()
    elements: Mapping[str, tuple[Reading | Mismatch, ...]] = field(default_factory=dict)


class Reader:
    """Reads events for a fixed set of needs; built once, used for many events."""

    def __init__(self, required: Requirements, ontology: Ontology) -> None:
        """Take what is needed; which names of an event feed an attribute is looked up once, when it is first read."""
        needs = required.attributes
        self._ontology = ontology
        self._wildcards = required.wildcards
        self._declared = needs
        keyed = {name: tuple(Way(need, need.keys(name), _glance(need)) for need in of) for name, of in needs.items()}
        self._plain = {name: of for name, of in keyed.items() if name not in ontology.derived}
        self._derived = {name: of for name, of in keyed.items() if name in ontology.derived}
        self._paths: dict[str, list[tuple[str, ...]]] = {}
        self._fed: dict[str, list[int]] | None = None
        self._records = {
            name: Reader(Requirements(_below(name, needs)), ontology)
            for name, of in needs.items()
            if any(need.kind is Kind.RECORD for need in of)
        }

    def read(self, event: EventLike, now: datetime) -> Reading:
        """Return the reading, or raise `BadEvent` with the attribute and the reason."""
        try:
            return self._read(values_of(event), now)
        except RecursionError:
            msg = "the event's lists or records are nested too deeply"
            raise BadEvent(msg, attribute=None) from None

    def _read(self, fields: Mapping[str, Any], now: datetime) -> Reading:
        values: dict[TypedAttribute, tuple[EventValue, ...]] = {}
        nulls: set[str] = set()
        elements: dict[str, tuple[Reading | Mismatch, ...]] = {}
        for name, needs in self._asked(fields):
            leaves = self._leaves(name, fields)
            if not leaves or (
                len(leaves) == 1 and type(leaves[0]) in PLAIN and _read_plainly(leaves[0], needs, values)
            ):
                continue
            for need, keys, _ in needs:
                if need.kind is Kind.RECORD:
                    elements[name] = self._elements(name, need, leaves, now)
                    continue
                read = self._values(keys[0], need, leaves, fields)
                for key in keys:
                    values[key] = read
            if any(map(is_missing, leaves)) and not any(map(_holds_something, leaves)):
                nulls.add(name)
        for needs in self._derived.values():
            for need, keys, _ in needs:
                read = self._derive(keys[0], need, fields, now)
                for key in keys:
                    values[key] = read
        for prefix, need in self._wildcards:
            self._check_below(prefix, need, fields)
        return Reading(values, frozenset(nulls), elements)

    def _asked(self, fields: Mapping[str, Any]) -> Iterable[tuple[str, tuple[Way, ...]]]:
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

    def _leaves(self, name: str, fields: Mapping[str, Any]) -> list[Any]:
        """Return what an event gives for an attribute, under any of the names that feed it."""
        found: list[Any] = []
        for path in self._paths_of(name):
            if len(path) > 1:
                found += _reached(fields, path)
            elif path[0] in fields:
                found.append(fields[path[0]])
        return found

    def _values(
        self, key: TypedAttribute, need: Need, found: list[Any], fields: Mapping[str, Any]
    ) -> tuple[EventValue, ...]:
        """Return the values in their one form; a strict need raises where one cannot be read."""
        name = key.name
        try:
            raws = [raw for leaf in found for raw in _separate(leaf, need) if not is_missing(raw)]
        except RecursionError:
            return (_too_deep(name, need, found),)
        values = tuple(self._value(name, need, raw, fields) for raw in raws)
        if not need.several:
            _refuse_several(name, found, values)
        return values

    def _value(self, name: str, need: Need, raw: Any, fields: Mapping[str, Any]) -> EventValue:
        try:
            if need.unit is not None and need.kind is Kind.NUMBER:
                return self._amount(name, need, raw, fields)
            value: EventValue = coerce(raw, need.kind)
            return self._folded(value, need.tree) if need.folded and isinstance(value, str) else value
        except (ValueError, OntologyError) as problem:
            if not need.strict:
                return Mismatch(raw)
            msg = f"`{name}`: {problem}"
            raise BadEvent(msg, attribute=name) from problem

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
        units = {leaf for leaf in self._leaves(need.unit_from, fields) if isinstance(leaf, str)}
        if len(units) > 1:
            msg = f"`{need.unit_from}` names several units"
            raise ValueError(msg)
        return units.pop() if units else None

    # Records -----------------------------------------------------------------------------------

    def _elements(self, name: str, need: Need, found: list[Any], now: datetime) -> tuple[Reading | Mismatch, ...]:
        """Return the readings of an array of records; what is no record is a mismatch."""
        if not need.several:
            _refuse_several(name, found, ())
        try:
            return tuple(
                self._element(name, need, part, now) for leaf in found for part in flat(leaf) if _is_there(part)
            )
        except RecursionError:
            return (_too_deep(name, need, found),)

    def _element(self, name: str, need: Need, part: Any, now: datetime) -> Reading | Mismatch:
        if isinstance(part, Mapping):
            return self._records[name].read(part, now)
        if need.strict:
            msg = f"`{name}` is declared a record; {part!r} is not one"
            raise BadEvent(msg, attribute=name)
        return Mismatch(part)

    def _check_below(self, prefix: str, need: Need, fields: Mapping[str, Any]) -> None:
        """Check what a declaration `prefix.*` speaks for: every name below the prefix that is not declared itself."""
        for leaf in self._leaves(prefix, fields):
            for name, value in _names_below(leaf, prefix):
                if name not in self._declared:
                    self._values(TypedAttribute(name), need, [value], {})

    # Derived attributes ------------------------------------------------------------------------

    def _derive(
        self, key: TypedAttribute, need: Need, fields: Mapping[str, Any], now: datetime
    ) -> tuple[EventValue, ...]:
        derived = self._ontology.derived[key.name]
        try:
            value = derived.value(lambda source: self._input(key.name, source, fields, now), now)
        except BadEvent:
            if need.strict:
                raise
            return (Mismatch(derived.text),)
        return () if value is None else self._values(key, need, [value], {})

    def _input(self, derived: str, source: str, fields: Mapping[str, Any], now: datetime) -> Any:
        """Return the one value of a derived attribute's input: as its kind where that is known, as given otherwise."""
        if source in self._ontology.derived:
            return self._ontology.derived[source].value(lambda s: self._input(source, s, fields, now), now)
        found = [raw for leaf in self._leaves(source, fields) for raw in flat(leaf) if not is_missing(raw)]
        if len(found) > 1:
            msg = f"`{derived}` is derived from `{source}`, which has {len(found)} values here"
            raise BadEvent(msg, attribute=derived)
        try:
            return coerce(found[0], self._ontology.input_kind(source)) if found else None
        except (ValueError, TidingsError) as problem:
            msg = f"`{source}`: {problem}"
            raise BadEvent(msg, attribute=source) from problem


def _glance(need: Need) -> Callable[[Any], Any]:
    """Return what reads plain values for a need; units and concepts always take a closer look."""
    return plain_reader(Kind.OPAQUE if need.unit is not None or need.folded else need.kind)


def _read_plainly(raw: Any, ways: Iterable[Way], values: dict[TypedAttribute, tuple[EventValue, ...]]) -> bool:
    """Read the one value of an attribute where a glance is enough, which is nearly always; tell whether it was."""
    for need, keys, glance in ways:
        value = glance(raw)
        if value is UNFIT and not need.strict:
            value = Mismatch(raw)
        elif value is UNSURE or value is UNFIT:
            return False
        for key in keys:
            values[key] = (value,)
    return True


def is_missing(raw: Any) -> bool:
    """Tell whether a value is null: `None`, or the NaN, NaT and NA that stand for it in tables."""
    if raw is None:
        return True
    if isinstance(raw, str | int):
        return False
    if isinstance(raw, Decimal):
        return raw.is_nan()
    if isinstance(raw, float | datetime) or (hasattr(raw, "dtype") and getattr(raw, "ndim", 0) == 0):
        return bool(raw != raw)  # noqa: PLR0124 - only NaN and NaT are not themselves
    return type(raw).__name__ == "NAType"  # pandas' own, which we do not import to ask


def _is_there(part: Any) -> bool:
    """Tell whether something is a value: nulls and empty records are none."""
    return not is_missing(part) and not (isinstance(part, Mapping) and not part)


def _holds_something(leaf: Any) -> bool:
    """Tell whether there is a value: nulls, empty records and lists of nothing else are none."""
    try:
        return any(map(_is_there, flat(leaf)))
    except RecursionError:
        return True


def _too_deep(name: str, need: Need, found: list[Any]) -> Mismatch:
    """Refuse lists in lists that are too deep, where an attribute is declared; elsewhere nobody can read them."""
    if need.strict:
        msg = f"`{name}`: its lists or records are nested too deeply"
        raise BadEvent(msg, attribute=name)
    return Mismatch(found[0])


def _names_below(leaf: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted names of what stands below a name, through arrays, with what stands there."""
    for part in flat(leaf):
        if isinstance(part, Mapping):
            for key, value in part.items():
                yield f"{prefix}.{key}", value
                yield from _names_below(value, f"{prefix}.{key}")


def _reached(fields: Mapping[str, Any], path: tuple[str, ...]) -> list[Any]:
    """Return what stands at a dotted path; what is nested too deeply to get there stands for it, and is unreadable."""
    try:
        return list(leaves(fields, path))
    except RecursionError:
        return [fields.get(path[0])]


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
    # An empty record says nothing, as an empty list does.
    parts = _places(leaf) if need.kind is Kind.PLACE else flat(leaf)
    yield from (part for part in parts if not (isinstance(part, Mapping) and not part))


def _places(leaf: Any) -> Iterator[Any]:
    """A pair of numbers is one place; an array of anything else is several."""
    if is_array(leaf):
        parts = list(leaf)
        if parts and not any(is_array(part) or isinstance(part, Mapping | Point) or is_missing(part) for part in parts):
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


def _below(name: str, needs: Mapping[str, tuple[Need, ...]]) -> dict[str, tuple[Need, ...]]:
    prefix = f"{name}."
    return {other[len(prefix) :]: of for other, of in needs.items() if other.startswith(prefix)}


def _scaled(value: Any, scale: Callable[[Any], int | float]) -> int | float | Range:
    if isinstance(value, Range):
        ends = [None if end is None else scale(end) for end in (value.low, value.high)]
        return Range(ends[0], ends[1], value.low_open, value.high_open)
    return scale(value)
