"""Boundary values of filters: for each attribute the values its conditions name, their neighbours, and midpoints.

An event with one of these is close to the boundary of some condition; random values seldom are.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from tidings import model
from tidings.model.values import INT_MAX, INT_MIN, EventValue
from tidings.testing.strategies.areas import spots_of
from tidings.testing.strategies.values import NOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.testing.strategies.world import World

_METRES_PER_DEGREE = 111_195.08


def find_boundary_values(trees: Iterable[model.Filter], world: World) -> dict[str, list[EventValue]]:
    """Return, by full attribute name, values at the boundaries of the filters' conditions."""
    values_by_name: dict[str, dict[EventValue, None]] = defaultdict(dict)
    pairs: list[tuple[str, str]] = []
    for tree in trees:
        for name_in_filter, test in model.walk_tests(tree):
            name = world.canonical(name_in_filter)
            values_by_name[name].update(dict.fromkeys(_list_boundary_values(test.condition, world)))
            if isinstance(test.condition, model.Compare):
                pairs.append((name, name_in_filter.removesuffix(test.attribute) + test.condition.other))
    for left, right in pairs:  # attributes that are compared draw from the same values
        shared = {**values_by_name[left], **values_by_name[right]} or dict.fromkeys(
            _DEFAULTS.get(_find_kind(left, world), ())
        )
        values_by_name[left], values_by_name[right] = shared, shared
    return {name: [*values, *_compute_midpoints(values)] for name, values in values_by_name.items()}


_DEFAULTS: dict[model.Kind | None, tuple[EventValue, ...]] = {
    model.Kind.NUMBER: (0, 1, 2),
    model.Kind.TEXT: ("a", "ab"),
    model.Kind.TIME: (NOW, NOW - timedelta(days=1)),
    model.Kind.PLACE: ((0.0, 0.0), (1.0, 0.0)),
}
"""Values of two attributes that filters only compare with each other."""


def _find_kind(name: str, world: World) -> model.Kind | None:
    slot = world.slots.get(name)
    if slot is None:  # inside an array of records
        array, _, inner = name.partition(".")
        slot = world.slots[array].fields.get(inner) if array in world.slots else None
    return slot.kind if slot and not slot.units else None


def _list_boundary_values(condition: model.Condition, world: World) -> Iterator[EventValue]:
    match condition:
        case model.Is() | model.In() | model.Range():
            for value in model.list_scalars(condition):
                yield from _list_neighbours(value)
        case model.SameText(values):
            for value in values:
                yield from (value, value.upper(), value.lower(), value.casefold(), value.swapcase(), f"{value}x")
        case model.TextTest(_, pattern):
            yield from _list_texts_like(pattern)
        case model.IsA(concept):
            yield concept
        case model.Age(range):
            for seconds in model.list_scalars(range):
                yield from _list_times_ago(seconds, world.now)
        case model.Within(area):
            yield from spots_of(area)
        case model.WithinRegion(region) if world.regions is not None:
            yield from spots_of(world.regions[region])
        case model.Near(center, metres):
            yield from _list_places_around(center, metres)
        case model.InNetworks(networks):
            for block in networks:
                for address in (int(block.network_address), int(block.broadcast_address)):
                    near = (n for n in (address, address - 1, address + 1) if 0 <= n < 2**block.max_prefixlen)
                    yield from (str(type(block.network_address)(n)) for n in near)


def _list_neighbours(value: EventValue) -> Iterator[EventValue]:
    """Yield the value and its nearest neighbours on both sides."""
    match value:
        case bool():
            yield from (True, False)
        case int():
            yield from (n for n in (value, value - 1, value + 1) if INT_MIN <= n <= INT_MAX)
            yield from (value - 0.5, value + 0.5)
        case float():
            yield value
            near = (math.nextafter(value, end) for end in (-math.inf, math.inf))
            yield from (n for n in near if math.isfinite(n))
        case str():
            yield from _list_texts_like(value)
        case datetime():
            yield from _list_times_beside(value)
        case model.Point(lon, lat):
            yield (lon, lat)
        case model.Quantity(amount, unit):
            yield from (model.Quantity(n, unit) for n in (amount, amount - 1, amount + 1, amount * 1000, amount / 1000))


def _list_times_beside(value: datetime) -> Iterator[datetime]:
    yield value
    for step in (timedelta(microseconds=1), timedelta(days=1)):
        if datetime.min.replace(tzinfo=value.tzinfo) + step <= value:
            yield value - step
        if value <= datetime.max.replace(tzinfo=value.tzinfo) - step:
            yield value + step


def _list_texts_like(pattern: str) -> Iterator[str]:
    """Texts at the boundary of a text test: the pattern, longer, shorter, in the other case, wildcards filled."""
    yield from (pattern, f"{pattern}x", f"x{pattern}", f"x{pattern}x", pattern[:-1], pattern[1:], pattern.swapcase())
    plain = re.sub(r"\\(.)", r"\1", pattern)
    yield from (plain.replace("*", filler).replace("?", "o") for filler in ("", "x\ny"))
    yield re.sub(r"\W", "", pattern)
    yield from (pattern.upper(), pattern.replace("SS", "ß"), pattern.replace("ss", "ẞ"))


def _list_times_ago(seconds: float, now: datetime) -> Iterator[datetime]:
    try:
        then = now - timedelta(seconds=seconds)
    except OverflowError:
        return
    yield from _list_times_beside(then)


def _list_places_around(center: model.Point, metres: float) -> Iterator[tuple[float, float]]:
    yield (center.lon, center.lat)
    yield (center.lon - 180 if center.lon > 0 else center.lon + 180, -center.lat)
    for share in (0.99, 1.01):
        lat = center.lat + math.copysign(share * metres / _METRES_PER_DEGREE, -center.lat)
        yield from [(center.lon, lat)] if abs(lat) <= 90 else []


def _compute_midpoints(values: Iterable[EventValue]) -> list[EventValue]:
    numbers = sorted(value for value in values if type(value) in (int, float))
    return [low + (high - low) // 2 for low, high in pairwise(numbers) if math.isfinite(high - low)]
