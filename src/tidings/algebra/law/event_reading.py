"""Read an event once for all filters: every required attribute as normalized values, plus explicit nulls.

Text is parsed into the kind that is asked for, units are converted and concept names canonicalized here, so that
everything behind compares plain values. A value that does not fit a declared attribute makes the event bad, whether
a filter asks for the attribute or not; a value that does not fit an undeclared one becomes a `Mismatch`, which is
present and satisfies nothing. Invariant: whether an event is bad depends on declarations alone, never on which
filters are subscribed. Attributes that are neither declared nor asked for are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.algebra.law.coerce import PLAIN, UNFIT, UNSURE, coerce, select_plain_reader, to_number
from tidings.algebra.law.typed_attribute import Mismatch, TypedAttribute
from tidings.errors import BadEvent, OntologyError, TidingsError
from tidings.model import Address, Kind, Point, Quantity, Range, values_of

if TYPE_CHECKING:
    from tidings.algebra.law.requirements import ReadSpec, Requirements
    from tidings.concepts import Ontology
    from tidings.model import EventLike

MAX_SCANNED_ATTRIBUTES = 32
"""With more required attributes than this and fewer fields in the event, attributes are found by its fields."""


class ReadPlan(NamedTuple):
    """One way to read an attribute: the specification, the keys tests use, and the fast reader of plain values."""

    need: ReadSpec
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
        needs = requirements.attributes
        self._ontology = ontology
        self._wildcards = requirements.wildcards
        self._attributes = needs
        plans = {name: tuple(_plan_reading(name, need) for need in specs) for name, specs in needs.items()}
        self._direct_plans = {name: specs for name, specs in plans.items() if name not in ontology.derived}
        self._derived_plans = {name: specs for name, specs in plans.items() if name in ontology.derived}
        self._paths: dict[str, list[tuple[str, ...]]] = {}
        self._field_index: dict[str, list[int]] | None = None
        self._records = {
            name: AttributeReader(requirements.enter(name), ontology)
            for name, specs in needs.items()
            if any(need.kind is Kind.RECORD for need in specs)
        }

    def read(self, event: EventLike, now: datetime) -> Reading:
        """Return the reading, or raise `BadEvent` with the attribute and the reason."""
        try:
            return self._read(values_of(event), now)
        except RecursionError:
            msg = "the event's lists or records are nested too deeply"
            raise BadEvent(msg, attribute=None) from None

    def _read(self, fields: Mapping[str, Any], now: datetime) -> Reading:
        values: dict[TypedAttribute, tuple[ReadValue, ...]] = {}
        nulls: set[str] = set()
        elements: dict[str, tuple[Reading | Mismatch, ...]] = {}
        for name, needs in self._select_attributes(fields):
            leaves = self._collect_leaves(name, fields)
            if not leaves or (
                len(leaves) == 1 and type(leaves[0]) in PLAIN and _read_plain_value(leaves[0], needs, values)
            ):
                continue
            for need, keys, _ in needs:
                if need.kind is Kind.RECORD:
                    elements[name] = self._read_elements(name, need, leaves, now)
                    continue
                read = self._read_values(keys[0], need, leaves, fields)
                for key in keys:
                    values[key] = read
            if any(map(is_missing, leaves)) and not any(map(_has_value, leaves)):
                nulls.add(name)
        for needs in self._derived_plans.values():
            for need, keys, _ in needs:
                read = self._derive(keys[0], need, fields, now)
                for key in keys:
                    values[key] = read
        for prefix, need in self._wildcards:
            self._check_below(prefix, need, fields)
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
                leaves += _find_leaves(fields, path)
            elif path[0] in fields:
                leaves.append(fields[path[0]])
        return leaves

    def _read_values(
        self, key: TypedAttribute, need: ReadSpec, leaves: list[Any], fields: Mapping[str, Any]
    ) -> tuple[ReadValue, ...]:
        """Return the normalized values; where the specification is strict, an unreadable one raises `BadEvent`."""
        name = key.name
        try:
            split = _split_places if need.kind is Kind.PLACE else flatten
            raws = [raw for leaf in leaves for raw in split(leaf) if _is_value(raw)]
        except RecursionError:
            return (_reject_deep_nesting(name, need, leaves),)
        values = tuple(self._read_value(name, need, raw, fields) for raw in raws)
        if not need.several:
            _refuse_several(name, leaves, values)
        return values

    def _read_value(self, name: str, need: ReadSpec, raw: Any, fields: Mapping[str, Any]) -> ReadValue:
        try:
            if need.unit is not None and need.kind is Kind.NUMBER:
                return self._read_amount(name, need, raw, fields)
            value: ReadValue = coerce(raw, need.kind)
            if need.folded and isinstance(value, str):
                return self._ontology.canonical(value, tree=need.tree) or value
            return value
        except (ValueError, OntologyError) as problem:
            if not need.strict:
                return Mismatch(raw)
            msg = f"`{name}`: {problem}"
            raise BadEvent(msg, attribute=name) from problem

    def _read_amount(self, name: str, need: ReadSpec, raw: Any, fields: Mapping[str, Any]) -> ReadValue:
        if isinstance(raw, Range) and Quantity in (type(raw.low), type(raw.high)):
            bounds = (raw.low, raw.high)  # each brings its unit
            ends: list[Any] = [None if end is None else self._read_amount(name, need, end, fields) for end in bounds]
            amounts: Range = coerce(replace(raw, low=ends[0], high=ends[1]), Kind.NUMBER)
            return amounts
        amount, unit = raw, self._find_unit(need, fields)
        if isinstance(raw, Quantity):
            amount, unit = raw.amount, raw.unit
        elif isinstance(raw, str) and (quantity := self._ontology.read_quantity(raw)):
            amount, unit = quantity
        if unit is None and not need.bare:
            msg = (
                f"{raw!r} has no unit; write it as text with its unit, or declare the unit of `{name}` in the ontology"
            )
            raise ValueError(msg)
        number: int | float | Range = coerce(amount, Kind.NUMBER)
        if isinstance(number, Range):
            low, high = (self._convert(end, unit, need.unit) for end in (number.low, number.high))
            return replace(number, low=low, high=high)
        converted: int | float = self._convert(number, unit, need.unit)
        return converted

    def _convert(self, amount: Any, unit: str | None, to: str | None) -> Any:
        if amount is None or unit is None or to is None:
            return amount
        return to_number(self._ontology.convert(amount, unit, to=to))

    def _find_unit(self, need: ReadSpec, fields: Mapping[str, Any]) -> str | None:
        if need.unit_from is None:
            return None
        units = {leaf for leaf in self._collect_leaves(need.unit_from, fields) if isinstance(leaf, str)}
        if len(units) > 1:
            msg = f"`{need.unit_from}` names several units"
            raise ValueError(msg)
        return units.pop() if units else None

    # Records -----------------------------------------------------------------------------------

    def _read_elements(
        self, name: str, need: ReadSpec, leaves: list[Any], now: datetime
    ) -> tuple[Reading | Mismatch, ...]:
        """Return a reading for each record of an array, and a mismatch for each element that is no record."""
        if not need.several:
            _refuse_several(name, leaves, ())
        try:
            return tuple(
                self._read_element(name, need, part, now)
                for leaf in leaves
                for part in flatten(leaf)
                if _is_value(part)
            )
        except RecursionError:
            return (_reject_deep_nesting(name, need, leaves),)

    def _read_element(self, name: str, need: ReadSpec, part: Any, now: datetime) -> Reading | Mismatch:
        if isinstance(part, Mapping):
            return self._records[name].read(part, now)
        if need.strict:
            msg = f"`{name}` is declared a record; {part!r} is not one"
            raise BadEvent(msg, attribute=name)
        return Mismatch(part)

    def _check_below(self, prefix: str, need: ReadSpec, fields: Mapping[str, Any]) -> None:
        """Check the attributes a declaration `prefix.*` covers: every name below that has no declaration of its own."""
        for leaf in self._collect_leaves(prefix, fields):
            for name, value in _walk_names(leaf, prefix):
                if name not in self._attributes:
                    self._read_values(TypedAttribute(name), need, [value], {})

    # Derived attributes ------------------------------------------------------------------------

    def _derive(
        self, key: TypedAttribute, need: ReadSpec, fields: Mapping[str, Any], now: datetime
    ) -> tuple[ReadValue, ...]:
        derived = self._ontology.derived[key.name]
        try:
            value = derived.value(lambda source: self._read_input(key.name, source, fields, now), now)
        except BadEvent:
            if need.strict:
                raise
            return (Mismatch(derived.text),)
        return () if value is None else self._read_values(key, need, [value], {})

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


def _plan_reading(name: str, need: ReadSpec) -> ReadPlan:
    # Amounts with units and concepts always take the slow path.
    plain_kind = Kind.OPAQUE if need.unit is not None or need.folded else need.kind
    return ReadPlan(need, need.keys(name), select_plain_reader(plain_kind))


def _read_plain_value(raw: Any, ways: Iterable[ReadPlan], values: dict[TypedAttribute, tuple[ReadValue, ...]]) -> bool:
    """Try the fast path for an attribute with one plain value; tell whether every plan could read it.

    Most values of most events end here.
    """
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


def _is_value(part: Any) -> bool:
    """Tell whether an element counts as a value; nulls and empty records say nothing, as empty lists do."""
    return not is_missing(part) and not (isinstance(part, Mapping) and not part)


def _has_value(leaf: Any) -> bool:
    try:
        return any(map(_is_value, flatten(leaf)))
    except RecursionError:
        return True


def _reject_deep_nesting(name: str, need: ReadSpec, leaves: list[Any]) -> Mismatch:
    """Raise `BadEvent` for lists nested beyond Python's recursion if declared strict, else return a mismatch."""
    if need.strict:
        msg = f"`{name}`: its lists or records are nested too deeply"
        raise BadEvent(msg, attribute=name)
    return Mismatch(leaves[0])


def _walk_names(leaf: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values of everything nested below a name, looking through arrays."""
    for part in flatten(leaf):
        if isinstance(part, Mapping):
            for key, value in part.items():
                yield f"{prefix}.{key}", value
                yield from _walk_names(value, f"{prefix}.{key}")


def _find_leaves(fields: Mapping[str, Any], path: tuple[str, ...]) -> list[Any]:
    """Return the values at a dotted path; if nesting is too deep, the outermost value, which no kind can read."""
    try:
        return list(iterate_leaves(fields, path))
    except RecursionError:
        return [fields.get(path[0])]


def iterate_leaves(fields: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values at a dotted path, looking through mappings, arrays and keys that contain dots."""
    for split in range(1, len(path) + 1):
        key = path[0] if split == 1 else ".".join(path[:split])
        if key not in fields:
            continue
        if split == len(path):
            yield fields[key]
        else:
            for part in flatten(fields[key]):
                if isinstance(part, Mapping):
                    yield from iterate_leaves(part, path[split:])


def flatten(leaf: Any) -> Iterator[Any]:
    """Yield the elements of arrays, however nested; anything else is its own element."""
    if is_array(leaf):
        for element in leaf:
            yield from flatten(element)
    else:
        yield leaf


def is_array(leaf: Any) -> bool:
    """Tell whether a value is several values: any iterable that is not text, bytes or a mapping."""
    if isinstance(leaf, str | bytes | bytearray | Mapping):
        return False
    return isinstance(leaf, Iterable) and getattr(leaf, "ndim", 1) != 0  # NumPy's arrays of no dimension are scalars


def _split_places(leaf: Any) -> Iterator[Any]:
    """Yield places: a pair of numbers is one place, any other array holds several."""
    if is_array(leaf):
        parts = list(leaf)
        if parts and not any(is_array(part) or isinstance(part, Mapping | Point) or is_missing(part) for part in parts):
            yield parts
        else:
            for part in parts:
                yield from _split_places(part)
    else:
        yield leaf


def _refuse_several(name: str, leaves: list[Any], values: tuple[ReadValue, ...]) -> None:
    is_list = len(values) > 1 or any(is_array(leaf) for leaf in leaves if not (values and isinstance(values[0], Point)))
    if is_list or (values and isinstance(values[0], Range)):
        form = "a list" if is_list else "a range"
        msg = f"`{name}` has one value by the schema; this event gives {form} (declare it `several ...` to allow that)"
        raise BadEvent(msg, attribute=name)
