"""Seeded workloads: car ads as events, and the searches people save for them.

Both are functions of a size and a seed alone, so that two machines measure the same thing. Makes and
models follow Zipf's law, prices fall with age and distance driven, ads cluster around cities; searches
aim at the same cars with the same popularity, so popular ads are caught by many and rare ones by few.
An ad costs about 15 microseconds, a search about 20.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from tidings.bench.workloads.cars import CITIES, COLORS, FUELS, MODELS, TAGS, Car
from tidings.bench.workloads.workload_columns import render_ring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.model.values import EventValue

T = TypeVar("T")

NOW: Final = datetime(2024, 5, 1, 12, tzinfo=UTC)
"""The time at which the ads of a workload are matched, by default."""

CAR_SCHEMA: Final = {
    "id": "number", "make": "text", "model": "text", "year": "number", "price": "number", "odometer": "number",
    "fuel": "text", "color": "text", "tags": "several text", "posted": "time", "spot": "place",
    "seller.kind": "text", "seller.name": "text", "seller.rating": "number",
}  # fmt: skip
"""The attributes of `car_ads`, as an argument of `td.Schema`."""


def zipf(count: int, exponent: float = 1.0) -> list[float]:
    """Return cumulative weights: the n-th of `count` is drawn n ** -exponent times as often as the first."""
    return list(accumulate(rank**-exponent for rank in range(1, count + 1)))


_CAR_WEIGHTS = zipf(len(MODELS), 0.9)
_CITY_WEIGHTS = zipf(len(CITIES))
_COLOR_WEIGHTS = zipf(len(COLORS))
_FUEL_WEIGHTS = zipf(len(FUELS))
_TAG_WEIGHTS = zipf(len(TAGS), 0.7)


def car_ads(count: int, seed: int, *, now: datetime = NOW) -> list[dict[str, EventValue]]:
    """Return `count` ads; a few fields are missing or null, tags are several, the seller is a record.

    >>> car_ads(1, seed=7) == car_ads(1, seed=7)
    True
    """
    rng = Random(seed)
    return [_draw_ad(rng, number, now) for number in range(count)]


def saved_searches(count: int, seed: int) -> list[tuple[str, str]]:
    """Return `count` pairs of an id and a filter in text notation, with one to six predicates.

    >>> [id for id, _ in saved_searches(2, seed=7)]
    ['s0', 's1']
    """
    rng = Random(seed)
    return [(f"s{number}", _draw_search(rng)) for number in range(count)]


def _draw(rng: Random, items: Sequence[T], weights: list[float]) -> T:
    return rng.choices(items, cum_weights=weights)[0]


# --- ads ------------------------------------------------------------------------------------------


def _draw_ad(rng: Random, number: int, now: datetime) -> dict[str, EventValue]:
    car = _draw(rng, MODELS, _CAR_WEIGHTS)
    city = _draw(rng, CITIES, _CITY_WEIGHTS)
    age = min(9.0 if car.electric else 25.0, rng.expovariate(1 / 7))
    odometer = round(age * rng.uniform(6_000, 22_000), -2)
    worth = car.price * 0.87**age * (1 - min(0.3, odometer / 1_000_000))
    ad = {
        "id": number,
        "make": car.make,
        "model": car.model,
        "year": now.year - int(age),
        "price": max(250, int(round(worth * rng.lognormvariate(0, 0.15), -1))),
        "odometer": int(odometer),
        "fuel": "electric" if car.electric else _draw(rng, FUELS, _FUEL_WEIGHTS),
        "color": _draw(rng, COLORS, _COLOR_WEIGHTS),
        "tags": sorted({_draw(rng, TAGS, _TAG_WEIGHTS) for _ in range(rng.randrange(5))}),
        "posted": now - timedelta(seconds=round(rng.expovariate(1 / (9 * 86_400)))),
        "spot": {"lon": round(rng.gauss(city.lon, 0.15), 5), "lat": round(rng.gauss(city.lat, 0.1), 5)},
        "seller": _draw_seller(rng, number),
    }
    return _drop_some(rng, ad)


def _draw_seller(rng: Random, number: int) -> dict[str, EventValue]:
    if rng.random() < 0.55:
        return {"kind": "private", "name": f"person {number % 997}"}
    return {"kind": "dealer", "name": f"garage {number % 61}", "rating": round(rng.uniform(2.5, 5.0), 1)}


_MAY_LACK = ("odometer", "color", "fuel", "price", "spot")


def _drop_some(rng: Random, ad: dict[str, EventValue]) -> dict[str, EventValue]:
    """Remove a field from some ads and empty one in others, as people do."""
    chance = rng.random()
    if chance < 0.08:
        del ad[rng.choice(_MAY_LACK)]
    elif chance < 0.12:
        ad[rng.choice(_MAY_LACK)] = None
    return ad


# --- searches -------------------------------------------------------------------------------------


def _draw_search(rng: Random) -> str:
    car = _draw(rng, MODELS, _CAR_WEIGHTS)
    wishes = _draw_cars(rng, car) + _draw_place(rng)
    return " and ".join((wishes + _draw_details(rng, car))[:6])


def _draw_place(rng: Random) -> list[str]:
    chance = rng.random()
    if chance < 0.05:
        return [f"spot within {_draw_polygon(rng)}"]
    if chance > 0.15:
        return []
    city = _draw(rng, CITIES, _CITY_WEIGHTS)
    return [f"spot near ({city.lon}, {city.lat}) {rng.choice((10, 20, 50))} km"]


def _draw_cars(rng: Random, car: Car) -> list[str]:
    """Draw which car: a model, a few models of one make, two cars with `or`, a make, or any make but one."""
    chance = rng.random()
    if chance < 0.45:
        return [f"make = '{car.make}'", f"model = '{car.model}'"]
    if chance < 0.6 and len(family := [other.model for other in MODELS if other.make == car.make]) > 1:
        models = ", ".join(f"'{model}'" for model in rng.sample(family, min(len(family), rng.choice((2, 3)))))
        return [f"make = '{car.make}'", f"model in ({models})"]
    if chance < 0.72 and (other := _draw(rng, MODELS, _CAR_WEIGHTS)) != car:
        return [f"({_render_car(car)} or {_render_car(other)})"]
    return [f"make = '{car.make}'"] if chance < 0.98 else [f"not make = '{car.make}'"]


def _render_car(car: Car) -> str:
    return f"(make = '{car.make}' and model = '{car.model}')"


def _draw_details(rng: Random, car: Car) -> list[str]:
    """Draw a price in most searches, and up to three other wishes."""
    wishes = [_draw_price_wish(rng, car)] if rng.random() < 0.85 else []
    wanted = rng.choices((0, 1, 2, 3), (15, 40, 30, 15))[0]
    return wishes + [_draw_wish(rng, attribute) for attribute in rng.sample(_DETAILS, wanted)]


def _draw_price_wish(rng: Random, car: Car) -> str:
    top = max(500, round(car.price * 0.87 ** rng.uniform(1, 14), -2))
    low = round(top * rng.uniform(0.3, 0.7), -2)
    ends = (f"price < {top:.0f}", f"price <= {top:.0f}")
    return rng.choice((*ends, f"price in [{low:.0f} .. {top:.0f})", f"price between {low:.0f} and {top:.0f}"))


_DETAILS = ("year", "odometer", "fuel", "color", "tags", "seller", "posted")


def _draw_wish(rng: Random, attribute: str) -> str:
    match attribute:
        case "year":
            year = NOW.year - rng.randrange(1, 15)
            last = year + rng.randrange(1, 6)
            return rng.choice((f"year >= {year}", f"year in [{year} ..]", f"year in [{year} .. {last}]"))
        case "odometer":
            return f"odometer < {rng.choice((30, 60, 80, 100, 120, 150, 200))}000"
        case "fuel":
            fuel = _draw(rng, FUELS, _FUEL_WEIGHTS)
            return rng.choice((f"fuel = '{fuel}'", f"fuel in ('{fuel}', 'hybrid')", f"fuel != '{fuel}'"))
        case "color":
            first, second = rng.sample(COLORS, 2)
            return rng.choice((f"color in ('{first}', '{second}')", f"not color = '{first}'", f"color = '{second}'"))
        case "tags":
            tag = _draw(rng, TAGS, _TAG_WEIGHTS)
            return rng.choice((f"tags = '{tag}'", f"tags starts with '{tag[:4]}'", f"none(tags) = '{tag}'"))
        case "seller":
            kinds = ("seller.kind = 'private'", "seller.kind = 'dealer'")
            return rng.choice((*kinds, "seller.rating >= 4", "seller.rating exists"))
    return f"age(posted) < {rng.choice((1, 3, 7, 14))} days"


def _draw_polygon(rng: Random) -> str:
    """Draw a ring of six to nine places around a city."""
    city = _draw(rng, CITIES, _CITY_WEIGHTS)
    corners = rng.randrange(6, 10)
    turns = [(step + rng.uniform(-0.3, 0.3)) * math.tau / corners for step in range(corners)]
    radii = [rng.uniform(0.1, 0.4) for _ in turns]
    ring = [
        (round(city.lon + r * math.cos(t), 4), round(city.lat + 0.7 * r * math.sin(t), 4))
        for t, r in zip(turns, radii, strict=True)
    ]
    return render_ring(ring)
