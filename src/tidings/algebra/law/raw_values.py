"""Raw values of events: which of them are null, what arrays hold, and what lies at a dotted path.

Nothing is converted here. An array is any iterable but text, bytes and mappings, so lists, NumPy's arrays and Arrow's
lists are read alike. Lists and records may be nested deeper than Python recurses: callers expect `RecursionError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from tidings.model import Point

if TYPE_CHECKING:
    from tidings.model.values import EventValue


def is_missing(raw: EventValue) -> bool:
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


def is_value(part: EventValue) -> bool:
    """Tell whether an element counts as a value; nulls and empty records say nothing, as empty lists do."""
    return not is_missing(part) and not (isinstance(part, Mapping) and not part)


def has_value(leaf: EventValue) -> bool:
    """Tell whether an array has an element that counts as a value; one that is nested too deeply has."""
    try:
        return any(map(is_value, flatten(leaf)))
    except RecursionError:
        return True


def walk_names(leaf: EventValue, prefix: str) -> Iterator[tuple[str, EventValue]]:
    """Yield dotted names and values of everything nested below a name, looking through arrays."""
    for part in flatten(leaf):
        if isinstance(part, Mapping):
            for key, value in part.items():
                yield f"{prefix}.{key}", value
                yield from walk_names(value, f"{prefix}.{key}")


def find_leaves(fields: Mapping[str, EventValue], path: tuple[str, ...]) -> list[EventValue]:
    """Return the values at a dotted path; if nesting is too deep, the outermost value, which no kind can read."""
    try:
        return list(iterate_leaves(fields, path))
    except RecursionError:
        return [fields.get(path[0])]


def iterate_leaves(fields: Mapping[str, EventValue], path: tuple[str, ...]) -> Iterator[EventValue]:
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


def flatten(leaf: EventValue) -> Iterator[EventValue]:
    """Yield the elements of arrays, however nested; anything else is its own element."""
    if is_array(leaf):
        for element in leaf:
            yield from flatten(element)
    else:
        yield leaf


def is_array(leaf: EventValue) -> bool:
    """Tell whether a value is several values: any iterable that is not text, bytes or a mapping."""
    if isinstance(leaf, str | bytes | bytearray | Mapping):
        return False
    return isinstance(leaf, Iterable) and getattr(leaf, "ndim", 1) != 0  # NumPy's arrays of no dimension are scalars


def split_places(leaf: EventValue) -> Iterator[EventValue]:
    """Yield places: a pair of numbers is one place, any other array holds several."""
    if is_array(leaf):
        parts = list(leaf)
        if parts and not any(is_array(part) or isinstance(part, Mapping | Point) or is_missing(part) for part in parts):
            yield parts
        else:
            for part in parts:
                yield from split_places(part)
    else:
        yield leaf
