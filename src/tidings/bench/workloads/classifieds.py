"""Car ads and saved searches in bulk: the main use, as plain conjunctions.

The same cars, cities and popularity as `car_ads` and `saved_searches`, drawn column by column. A search has one
to six predicates: which car (a model, a few models of a make, a make, a few makes, or none), a price nearly
always, up to three further conditions, an area in one of twenty. In `geo`, every search has an area.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.bench.workloads.ads import NOW
from tidings.bench.workloads.cars import COLORS, FUELS, MODELS
from tidings.bench.workloads.seeded_workload import Workload
from tidings.bench.workloads.workload_columns import (
    decode_dictionary,
    decode_sets,
    decode_words,
    draw_areas,
    draw_places,
    draw_zipf,
    mask_column,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator

    from tidings.bench.workloads.workload_columns import WorkloadColumn
    from tidings.kernels.array_types import BoolArray, IntArray

MAKES = tuple(dict.fromkeys(car.make for car in MODELS))
NAMES = tuple(dict.fromkeys(car.model for car in MODELS))
ALL_FUELS = (*FUELS, "electric")
SELLERS = ("private", "dealer")

_MAKE = np.array([MAKES.index(car.make) for car in MODELS])
_NAME = np.array([NAMES.index(car.model) for car in MODELS])
_PRICE = np.array([float(car.price) for car in MODELS])
_ELECTRIC = np.array([car.electric for car in MODELS])
_FAMILY = [np.flatnonzero(make == _MAKE) for make in range(len(MAKES))]
# The models of each make, padded to eight with -1.
_MODELS_OF = np.array([np.pad(_NAME[cars], (0, 8 - len(cars)), constant_values=-1) for cars in _FAMILY])
_SIZE_OF = np.array([len(cars) for cars in _FAMILY])

POPULARITY = 0.6
"""The exponent of Zipf's law for models."""


def build_classifieds() -> Workload:
    """Car ads against saved searches."""
    return Workload(
        key="classifieds",
        description="car ads against saved searches: Zipf models, 1-6 predicates, sets, ranges, an area in 5 %",
        expected=lambda n: 1.0e-3 * n,
        tolerance=0.3,
        make_events=_draw_ads,
        make_columns=_draw_searches,
        schema={
            **dict.fromkeys(("make", "model"), "text"),
            **dict.fromkeys(("year", "price", "odometer"), "number"),
            **dict.fromkeys(("fuel", "color", "seller"), "text"),
            "spot": "place",
        },
        writes=True,
        peers={"mokaccino": 100_000, "duckdb": 100_000},
    )


# Ads -------------------------------------------------------------------------------------------


def _draw_ads(count: int, rng: Generator) -> dict[str, WorkloadColumn]:
    """Draw ads as columns; one in eight lacks something."""
    car = draw_zipf(rng, count, len(MODELS), POPULARITY)
    age = np.minimum(np.where(_ELECTRIC[car], 9.0, 25.0), rng.exponential(7, count))
    odometer = np.round(age * rng.uniform(6_000, 22_000, count), -2)
    worth = _PRICE[car] * 0.87**age * (1 - np.minimum(0.3, odometer / 1_000_000))
    price = np.maximum(250, np.round(worth * rng.lognormal(0, 0.15, count), -1))
    fuel = np.where(_ELECTRIC[car], len(FUELS), draw_zipf(rng, count, len(FUELS), 1.0))
    lacks = np.where(rng.random(count) < 0.12, rng.integers(0, 5, count), -1)
    return {
        "make": decode_words(_MAKE[car], MAKES),
        "model": decode_words(_NAME[car], NAMES),
        "year": NOW.year - age.astype(np.int64),
        "price": mask_column(price.astype(np.int64), lacks != 0),
        "odometer": mask_column(odometer.astype(np.int64), lacks != 1),
        "fuel": decode_words(np.where(lacks == 2, -1, fuel), ALL_FUELS),
        "color": decode_words(np.where(lacks == 3, -1, draw_zipf(rng, count, len(COLORS), 1.0)), COLORS),
        "seller": decode_words((rng.random(count) > 0.55).astype(np.int64), SELLERS),
        "spot": draw_places(rng, count, valid=lacks != 4),
    }


# Searches --------------------------------------------------------------------------------------


def _draw_searches(n: int, rng: Generator) -> dict[str, WorkloadColumn]:
    """Return saved searches as columns."""
    car = draw_zipf(rng, n, len(MODELS), POPULARITY)
    has_area = rng.random(n) < 0.05
    columns = _draw_cars(rng, car)
    columns |= _draw_prices(rng, car, always=columns["make"].is_null().to_numpy(zero_copy_only=False))
    columns |= _draw_details(rng, n, most=np.where(has_area, 2, 3))
    shapes = draw_areas(rng, int(has_area.sum()), reach=(0.1, 0.4))
    columns["spot_within"] = decode_dictionary(np.where(has_area, np.cumsum(has_area) - 1, -1), shapes)
    return columns


def _draw_cars(rng: Generator, car: IntArray) -> dict[str, pa.Array]:
    """Draw the car: a model (70 %), two or three models (20 %), a make (8 %), two makes (1.5 %), any make (0.5 %)."""
    n = len(car)
    chance = rng.random(n)
    make, model = np.full((n, 2), -1), np.full((n, 3), -1)
    make[:, 0] = np.where(chance < 0.995, _MAKE[car], -1)
    other = _MAKE[draw_zipf(rng, n, len(MODELS), POPULARITY)]
    two = (chance >= 0.98) & (chance < 0.995) & (other != _MAKE[car])
    make[two, 1] = other[two]
    model[:, 0] = np.where(chance < 0.9, _NAME[car], -1)
    several = (chance >= 0.7) & (chance < 0.9)
    for place in (1, 2):
        # Another model of the make, by chance; the same one again is left out.
        pick = _MODELS_OF[_MAKE[car], (rng.random(n) * _SIZE_OF[_MAKE[car]]).astype(np.int64)]
        fresh = several & (pick[:, None] != model[:, :place]).all(axis=1)
        model[fresh, place] = pick[fresh]
    return {"make": decode_sets(make, MAKES), "model": decode_sets(model, NAMES)}


def _draw_prices(rng: Generator, car: IntArray, *, always: BoolArray) -> dict[str, pa.Array]:
    """Draw its price: at most, less than, or between two; always present where nothing says which car."""
    n = len(car)
    top = np.maximum(500, np.round(_PRICE[car] * 0.87 ** rng.uniform(1, 14, n), -2)).astype(np.int64)
    low = np.round(top * rng.uniform(0.75, 0.93, n), -2).astype(np.int64)
    has_price, closed, between = always | (rng.random(n) < 0.92), rng.random(n) < 0.5, rng.random(n) < 0.85
    return {
        "price_from": mask_column(low, has_price & between),
        "price_to": mask_column(top, has_price & closed),
        "price_below": mask_column(top, has_price & ~closed),
    }


def _draw_details(rng: Generator, n: int, *, most: IntArray) -> dict[str, pa.Array]:
    """Draw up to three more conditions, out of year, distance driven, fuel, colour and seller."""
    wanted = np.minimum(rng.choice(4, n, p=(0.05, 0.2, 0.35, 0.4)), most)
    rank = rng.random((n, 5)).argsort(axis=1).argsort(axis=1)
    asks = rank < wanted[:, None]
    year = NOW.year - rng.integers(1, 15, n)
    until = rng.random(n) < 0.8
    fuel = draw_zipf(rng, (n, 2), len(FUELS), 1.0)
    fuel[:, 1] = np.where((rng.random(n) < 0.3) & (fuel[:, 0] != fuel[:, 1]), fuel[:, 1], -1)
    color = draw_zipf(rng, (n, 2), len(COLORS), 0.5)
    color[:, 1] = np.where((rng.random(n) < 0.6) & (color[:, 0] != color[:, 1]), color[:, 1], -1)
    driven = np.array((30, 60, 80, 100, 120, 150, 200))[rng.integers(0, 7, n)] * 1000
    return {
        "year_from": mask_column(year, asks[:, 0]),
        "year_to": mask_column(year + rng.integers(0, 4, n), asks[:, 0] & until),
        "odometer_below": mask_column(driven, asks[:, 1]),
        "fuel": decode_sets(np.where(asks[:, 2, None], fuel, -1), ALL_FUELS),
        "color": decode_sets(np.where(asks[:, 3, None], color, -1), COLORS),
        "seller": decode_words(np.where(asks[:, 4], (rng.random(n) > 0.55).astype(np.int64), -1), SELLERS),
    }


# Areas alone -----------------------------------------------------------------------------------

DISTINCT_AREAS = 50_000
"""Most distinct areas of `geo`; more searches than that share them, as people reuse areas that others drew."""


def build_geo() -> Workload:
    """Areas around cities, each with a range of price and of size."""
    return Workload(
        key="geo",
        description="an area of 6-9 corners and 2 ranges; places around 20 cities",
        expected=lambda n: 2.2e-3 * n,
        tolerance=0.3,
        make_events=_draw_offers,
        make_columns=_draw_area_searches,
        schema={"spot": "place", "price": "number", "size": "number"},
    )


def _draw_offers(count: int, rng: Generator) -> dict[str, WorkloadColumn]:
    price, size = rng.lognormal(12.5, 0.6, count), rng.lognormal(4.4, 0.4, count)
    return {"spot": draw_places(rng, count), "price": np.round(price), "size": np.round(size, 1)}


def _draw_area_searches(n: int, rng: Generator) -> dict[str, WorkloadColumn]:
    shapes = draw_areas(rng, min(n, DISTINCT_AREAS), reach=(0.05, 0.3))
    price, size = np.round(rng.lognormal(12.5, 0.6, n), -3), np.round(rng.lognormal(4.4, 0.4, n))
    which = np.arange(n) if n <= DISTINCT_AREAS else rng.integers(0, DISTINCT_AREAS, n)
    return {
        "spot_within": decode_dictionary(which, shapes),
        "price_from": np.round(price * 0.7),
        "price_to": price,
        "size_from": size,
        "size_to": np.round(size * 1.5),
    }
