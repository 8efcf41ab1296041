"""Read an event once for all filters: every required attribute as normalized values, plus explicit nulls.

Text is parsed into the kind that is asked for, units are converted and concept names canonicalized here, so that
everything behind compares plain values. A value that does not fit a declared attribute makes the event bad, whether
a filter asks for the attribute or not; a value that does not fit an undeclared one becomes a `Mismatch`, which is
present and satisfies nothing. Invariant: whether an event is bad depends on declarations alone, never on which
filters are subscribed. Attributes that are neither declared nor asked for are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.algebra.law.coerce import PLAIN, UNFIT, UNSURE, coerce, select_plain_reader, to_number
from tidings.algebra.law.raw_values import (
    find_leaves,
    flatten,
    has_value,
    is_array,
    is_missing,
    is_value,
    split_places,
    walk_names,
)
from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute
from tidings.errors import BadEvent, OntologyError, TidingsError
from tidings.model import Address, Kind, Point, Quantity, Range, get_values

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.algebra.law.read_specs import ReadSpec, Requirements
    from tidings.concepts import Ontology
    from tidings.model import EventLike

MAX_SCANNED_ATTRIBUTES = 32
"""With more required attributes than this and fewer fields in the event, attributes are found by its fields."""


class ReadPlan(NamedTuple):
    """One way to read an attribute: the specification, the keys tests use, and the fast reader of plain values."""

    spec: ReadSpec
    keys: list[TypedAttribute]
    read_plain: Callable[[Any], Any]


ReadValue: TypeAlias = "int | float | str | bool | datetime | Point | Address | Range | Mismatch"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of one event: values by typed attribute (often several), explicit nulls, arrays of records.

    `elements` has a nested `Reading` for each record, and a `Mismatch` for each element that is no record.
    """

    values: Mapping[TypedAttribute, tuple[ReadValue, ...]] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()
    elements: Mapping[str, tuple[Reading | Mismatch, ...]] = field(default_factory=dict)


class AttributeReader:
    """Reads events for a fixed set of requirements; built once, used for many events."""

    def __init__(self, requirements: Requirements, ontology: Ontology) -> None:
        """Prepare a plan for each attribute; the event paths that feed it are resolved when it is first read."""
        self._ontology = ontology
        self._wildcards = requirements.wildcards
        self._attributes = requirements.attributes
        plans = {name: tuple(_plan_reading(name, spec) for spec in specs) for name, specs in self._attributes.items()}
        self._direct_plans = {name: specs for name, specs in plans.items() if name not in ontology.derived}
        self._derived_plans = {name: specs for name, specs in plans.items() if name in ontology.derived}
        self._paths: dict[str, list[tuple[str, ...]]] = {}
        self._field_index: dict[str, list[int]] | None = None
        self._requirements, self._records = requirements, dict[str, AttributeReader]()

    def read(self, event: EventLike, now: datetime) -> Reading:
        """Return the reading, or raise `BadEvent` with the attribute and the reason."""
        try:
            return self._read(get_values(event), now)
        except RecursionError:
            msg = "the event's lists or records are nested too deeply"
            raise BadEvent(msg, attribute=None) from None

    def _read(self, fields: Mapping[str, Any], now: datetime) -> Reading:
        values: dict[TypedAttribute, tuple[ReadValue, ...]] = {}
        nulls: set[str] = set()
        elements: dict[str, tuple[Reading | Mismatch, ...]] = {}
        for name, plans in self._select_attributes(fields):
            leaves = self._collect_leaves(name, fields)
            if not leaves or (
                len(leaves) == 1 and type(leaves[0]) in PLAIN and _read_plain_value(leaves[0], plans, values)
            ):
                continue
            for spec, keys, _ in plans:
                if spec.kind is Kind.RECORD:
                    elements[name] = self._read_elements(name, spec, leaves, now)
                    continue
                read = self._read_values(keys[0], spec, leaves, fields)
                for key in keys:
                    values[key] = read
            if any(map(is_missing, leaves)) and not any(map(has_value, leaves)):
                nulls.add(name)
        for plans in self._derived_plans.values():
            for spec, keys, _ in plans:
                read = self._derive(keys[0], spec, fields, now)
                for key in keys:
                    values[key] = read
        for prefix, spec in self._wildcards:
            self._check_below(prefix, spec, fields)
        return Reading(values, frozenset(nulls), elements)

    def _select_attributes(self, fields: Mapping[str, Any]) -> Iterable[tuple[str, tuple[ReadPlan, ...]]]:
        """Return the attributes this event may have values for: all of them, or if many, those its fields feed."""
        if len(self._direct_plans) <= max(MAX_SCANNED_ATTRIBUTES, len(fields)):
            return self._direct_plans.items()
        if self._field_index is None:
            self._field_index = self._index_fields()
        index = self._field_index
        positions = {position for key in fields for position in index.get(key, ())}
        plans = list(self._direct_plans.items())
        return [plans[position] for position in sorted(positions)]

    def _index_fields(self) -> dict[str, list[int]]:
        """Return, for each field that can begin a path, the positions of the attributes the path feeds."""
        index: dict[str, list[int]] = {}
        for position, name in enumerate(self._direct_plans):
            for path in self._split_paths(name):
                for split in range(1, len(path) + 1):
                    index.setdefault(".".join(path[:split]), []).append(position)
        return index

    def _split_paths(self, name: str) -> list[tuple[str, ...]]:
        paths = self._paths.get(name)
        if paths is None:
            paths = self._paths[name] = [tuple(source.split(".")) for source in self._ontology.sources(name)]
        return paths

    def _collect_leaves(self, name: str, fields: Mapping[str, Any]) -> list[Any]:
        """Return the raw values at all paths that feed an attribute."""
        leaves: list[Any] = []
        for path in self._split_paths(name):
            if len(path) > 1:
                leaves += find_leaves(fields, path)
            elif path[0] in fields:
                leaves.append(fields[path[0]])
        return leaves

    def _read_values(
        self, key: TypedAttribute, spec: ReadSpec, leaves: list[Any], fields: Mapping[str, Any]
    ) -> tuple[ReadValue, ...]:
        """Return the normalized values; where the specification is strict, an unreadable one raises `BadEvent`."""
        name = key.name
        try:
            split = split_places if spec.kind is Kind.PLACE else flatten
            raws = [raw for leaf in leaves for raw in split(leaf) if is_value(raw)]
        except RecursionError:
            return (_reject_deep_nesting(name, spec, leaves),)
        values = tuple(self._read_value(name, spec, raw, fields) for raw in raws)
        if not spec.several:
            _refuse_several(name, leaves, values)
        return values

    def _read_value(self, name: str, spec: ReadSpec, raw: Any, fields: Mapping[str, Any]) -> ReadValue:
        try:
            if spec.unit is not None and spec.kind is Kind.NUMBER:
                return self._read_amount(name, spec, raw, fields)
            value: ReadValue = coerce(raw, spec.kind)
            if spec.folded and isinstance(value, str):
                return self._ontology.canonical(value, tree=spec.tree) or value
            return value
        except (ValueError, OntologyError) as problem:
            if not spec.strict:
                return Mismatch(raw)
            msg = f"`{name}`: {problem}"
            raise BadEvent(msg, attribute=name) from problem

    def _read_amount(self, name: str, spec: ReadSpec, raw: Any, fields: Mapping[str, Any]) -> ReadValue:
        if isinstance(raw, Range) and Quantity in (type(raw.low), type(raw.high)):
            bounds = (raw.low, raw.high)  # each brings its unit
            ends: list[Any] = [None if end is None else self._read_amount(name, spec, end, fields) for end in bounds]
            amounts: Range = coerce(replace(raw, low=ends[0], high=ends[1]), Kind.NUMBER)
            return amounts
        amount, unit = raw, self._find_unit(spec, fields)
        if isinstance(raw, Quantity):
            amount, unit = raw.amount, raw.unit
        elif isinstance(raw, str) and (quantity := self._ontology.read_quantity(raw)):
            amount, unit = quantity
        if unit is None and not spec.bare:
            msg = (
                f"{raw!r} has no unit; write it as text with its unit, or declare the unit of `{name}` in the ontology"
            )
            raise ValueError(msg)
        number: int | float | Range = coerce(amount, Kind.NUMBER)
        if isinstance(number, Range):
            low, high = (self._convert(end, unit, spec.unit) for end in (number.low, number.high))
            return replace(number, low=low, high=high)
        converted: int | float = self._convert(number, unit, spec.unit)
        return converted

    def _convert(self, amount: Any, unit: str | None, to: str | None) -> Any:
        if amount is None or unit is None or to is None:
            return amount
        return to_number(self._ontology.convert(amount, unit, to=to))

    def _find_unit(self, spec: ReadSpec, fields: Mapping[str, Any]) -> str | None:
        if spec.unit_from is None:
            return None
        units = {leaf for leaf in self._collect_leaves(spec.unit_from, fields) if isinstance(leaf, str)}
        if len(units) > 1:
            msg = f"`{spec.unit_from}` names several units"
            raise ValueError(msg)
        return units.pop() if units else None

    # Records -----------------------------------------------------------------------------------

    def _read_elements(
        self, name: str, spec: ReadSpec, leaves: list[Any], now: datetime
    ) -> tuple[Reading | Mismatch, ...]:
        """Return a reading for each record of an array, and a mismatch for each element that is no record."""
        if not spec.several:
            _refuse_several(name, leaves, ())
        try:
            return tuple(
                self._read_element(name, spec, part, now) for leaf in leaves for part in flatten(leaf) if is_value(part)
            )
        except RecursionError:
            return (_reject_deep_nesting(name, spec, leaves),)

    def _read_element(self, name: str, spec: ReadSpec, part: Any, now: datetime) -> Reading | Mismatch:
        if isinstance(part, Mapping):
            return self._get_record_reader(name).read(part, now)
        if spec.strict:
            msg = f"`{name}` is declared a record; {part!r} is not one"
            raise BadEvent(msg, attribute=name)
        return Mismatch(part)

    def _get_record_reader(self, name: str) -> AttributeReader:
        """Return the reader of an array's elements, made when one comes: arrays in arrays are below many names."""
        reader = self._records.get(name)
        if reader is None:
            reader = self._records[name] = AttributeReader(self._requirements.enter(name), self._ontology)
        return reader

    def _check_below(self, prefix: str, spec: ReadSpec, fields: Mapping[str, Any]) -> None:
        """Check the attributes a declaration `prefix.*` covers: every name below that has no declaration of its own."""
        for leaf in self._collect_leaves(prefix, fields):
            for name, value in walk_names(leaf, prefix):
                if name not in self._attributes:
                    self._read_values(TypedAttribute(name), spec, [value], {})

    # Derived attributes ------------------------------------------------------------------------

    def _derive(
        self, key: TypedAttribute, spec: ReadSpec, fields: Mapping[str, Any], now: datetime
    ) -> tuple[ReadValue, ...]:
        derived = self._ontology.derived[key.name]
        try:
            value = derived.value(lambda source: self._read_input(key.name, source, fields, now), now)
        except BadEvent:
            if spec.strict:
                raise
            return (Mismatch(derived.text),)
        return () if value is None else self._read_values(key, spec, [value], {})

    def _read_input(self, derived: str, source: str, fields: Mapping[str, Any], now: datetime) -> Any:
        """Return the single value of a derived attribute's input, coerced to its kind where that is known."""
        if source in self._ontology.derived:
            return self._ontology.derived[source].value(lambda s: self._read_input(source, s, fields, now), now)
        raw_values = [
            raw for leaf in self._collect_leaves(source, fields) for raw in flatten(leaf) if not is_missing(raw)
        ]
        if len(raw_values) > 1:
            msg = f"`{derived}` is derived from `{source}`, which has {len(raw_values)} values here"
            raise BadEvent(msg, attribute=derived)
        try:
            return coerce(raw_values[0], self._ontology.input_kind(source)) if raw_values else None
        except (ValueError, TidingsError) as problem:
            msg = f"`{source}`: {problem}"
            raise BadEvent(msg, attribute=source) from problem


def _plan_reading(name: str, spec: ReadSpec) -> ReadPlan:
    # Amounts with units and concepts always take the slow path.
    plain_kind = Kind.OPAQUE if spec.unit is not None or spec.folded else spec.kind
    return ReadPlan(spec, spec.list_keys(name), select_plain_reader(plain_kind))


def _read_plain_value(raw: Any, plans: Iterable[ReadPlan], values: dict[TypedAttribute, tuple[ReadValue, ...]]) -> bool:
    """Try the fast path for an attribute with one plain value; tell whether every plan could read it.

    Most values of most events end here.
    """
    for spec, keys, read_plain in plans:
        value = read_plain(raw)
        if value is UNFIT and not spec.strict:
            value = Mismatch(raw)
        elif value is UNSURE or value is UNFIT:
            return False
        for key in keys:
            values[key] = (value,)
    return True


def _reject_deep_nesting(name: str, spec: ReadSpec, leaves: list[Any]) -> Mismatch:
    """Raise `BadEvent` for lists nested beyond Python's recursion if declared strict, else return a mismatch."""
    if spec.strict:
        msg = f"`{name}`: its lists or records are nested too deeply"
        raise BadEvent(msg, attribute=name)
    return Mismatch(leaves[0])


def _refuse_several(name: str, leaves: list[Any], values: tuple[ReadValue, ...]) -> None:
    is_list = len(values) > 1 or any(is_array(leaf) for leaf in leaves if not (values and isinstance(values[0], Point)))
    if is_list or (values and isinstance(values[0], Range)):
        form = "a list" if is_list else "a range"
        msg = f"`{name}` has one value by the schema; this event gives {form} (declare it `several ...` to allow that)"
        raise BadEvent(msg, attribute=name)
