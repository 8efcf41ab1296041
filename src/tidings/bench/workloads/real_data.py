"""Real events, and searches that look for things like them: used-car ads and house sales with real areas.

The data are not part of the project. They are looked for in the folder of `TIDINGS_DATA`, then in `../shared/data`
beside the project. A search is made from an event drawn by chance: the same make and model, a price around its
price, the county or postal area it lies in. So popular things are looked for often, and every search can match.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.bench.workloads.base import Workload
from tidings.bench.workloads.parameter_forms import ids, shared_words, where
from tidings.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator
    from numpy.typing import NDArray

VARIABLE = "TIDINGS_DATA"
"""The variable that names the folder of real data."""

CARS = ("craigslist_2020_7k_geo.parquet", "craigslist_2021_8k_geo.parquet", "craigslist_2021_18k_geo.parquet")
COUNTIES = "polygons/us_counties_fips.geojson.gz"
HOUSES = "king-county-houses/kc_house_data.parquet"
ZIPS = "king-county-houses/king_county_zipcodes.geojson.gz"
TOLERANCE_DEG = 0.0005
"""Areas are simplified by so much, about 50 m: some have thousands of corners."""


def data_folder() -> Path | None:
    """Return the folder of real data, or nothing."""
    named = os.environ.get(VARIABLE)
    beside = [place.parent / "shared" / "data" for place in (Path.cwd(), Path(__file__).resolve().parents[4])]
    return next((folder for folder in ([Path(named)] if named else beside) if folder.is_dir()), None)


def _found(path: str, key: str) -> Path:
    folder = data_folder()
    if folder is None or not (folder / path).exists():
        named = os.environ.get(VARIABLE)
        where_ = f"`{named}` ({VARIABLE}) does not have" if named else "there is no `../shared/data` with"
        msg = (
            f"the workload `{key}` needs real data, and {where_} `{path}`; set {VARIABLE} to the folder that has it,"
            " or take a made-up workload (`tidings bench list`)"
        )
        raise FileError(msg)
    return folder / path


# Used cars -------------------------------------------------------------------------------------

CAR_SCHEMA = {
    "make": "text",
    "model": "text",
    "year": "number",
    "price": "number",
    "odometer": "number",
    "type": "text",
    "color": "text",
    "state": "text",
    "spot": "place",
}


def used_cars() -> Workload:
    """Car ads of Craigslist, 2020 and 2021."""
    return Workload(
        key="used-cars",
        description="33,000 real car ads; searches like them, with a real county in 10 % (needs the data)",
        expected=lambda n: 2.4e-3 * n,
        tolerance=0.4,
        make_events=lambda count, rng: _some(_cars(), count, rng),
        make_columns=_car_searches,
        schema=CAR_SCHEMA,
        writes=True,
    )


@cache
def _cars() -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    names = {"manufacturer": "make", "model": "model", "type": "type", "paint_color": "color", "state": "state"}
    parts = []
    for file in CARS:
        read = pq.read_table(_found(f"used-car-ads/{file}", "used-cars"))
        texts = {new: pc.cast(read.column(old), pa.string()) for old, new in names.items()}
        numbers = {name: pc.cast(read.column(name), pa.float64()) for name in ("year", "price", "odometer")}
        parts.append(pa.table({**texts, **numbers, "spot": _spots(read)}))
    return pa.concat_tables(parts).combine_chunks()


def _car_searches(n: int, rng: Generator) -> pa.Table:
    import pyarrow as pa

    cars = _cars()
    pick = rng.integers(0, cars.num_rows, n)
    seen = cars.take(pa.array(pick))
    price, year, odometer = (_numbers(seen, name) for name in ("price", "year", "odometer"))
    asks = {name: rng.random(n) < share for name, share in _CAR_WISHES.items()}
    top = np.round(price * rng.uniform(1.0, 1.3, n), -2)
    return pa.table(
        {
            "id": ids(n),
            "make": seen.column("make"),
            "model": _kept(seen.column("model"), asks["model"]),
            "price_from": where(np.round(top * 0.6, -2), asks["low"] & (price > 0)),
            "price_to": where(top, _there(price)),
            "year_from": where(year - rng.integers(0, 4, n), asks["year"] & _there(year)),
            "odometer_to": where(np.round(odometer * 1.2, -3), asks["odometer"] & _there(odometer)),
            "type": _kept(seen.column("type"), asks["type"]),
            "color": _kept(seen.column("color"), asks["color"]),
            "state": _kept(seen.column("state"), asks["state"]),
            "spot_within": _areas_of(pick, asks["spot"], *_counties()),
        }
    )


_CAR_WISHES = {
    "model": 0.75,
    "low": 0.7,
    "year": 0.6,
    "odometer": 0.4,
    "type": 0.2,
    "color": 0.15,
    "state": 0.3,
    "spot": 0.1,
}
"""How often a search asks for each; the make and a highest price nearly always."""


@cache
def _counties() -> tuple[list[str], NDArray[np.int64]]:
    return _located(_found(COUNTIES, "used-cars"), _cars())


# House sales -----------------------------------------------------------------------------------

HOUSE_SCHEMA = {
    "price": "number",
    "bedrooms": "number",
    "bathrooms": "number",
    "sqft_living": "number",
    "sqft_lot": "number",
    "grade": "number",
    "yr_built": "number",
    "waterfront": "number",
    "spot": "place",
}


def house_sales() -> Workload:
    """House sales of King County, 2014 and 2015."""
    return Workload(
        key="house-sales",
        description="21,613 real house sales; searches like them, with a real postal area in half (needs the data)",
        expected=lambda n: 1.37e-2 * n,
        tolerance=0.4,
        make_events=lambda count, rng: _some(_houses(), count, rng),
        make_columns=_house_searches,
        schema=HOUSE_SCHEMA,
        writes=True,
    )


@cache
def _houses() -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    read = pq.read_table(_found(HOUSES, "house-sales"))
    numbers = {name: pc.cast(read.column(name), pa.float64()) for name in HOUSE_SCHEMA if name != "spot"}
    return pa.table({**numbers, "spot": _spots(read)}).combine_chunks()


def _house_searches(n: int, rng: Generator) -> pa.Table:
    import pyarrow as pa

    houses = _houses()
    pick = rng.integers(0, houses.num_rows, n)
    seen = houses.take(pa.array(pick))
    price, living, rooms = (_numbers(seen, name) for name in ("price", "sqft_living", "bedrooms"))
    built, grade, lot = (_numbers(seen, name) for name in ("yr_built", "grade", "sqft_lot"))
    asks = {name: rng.random(n) < share for name, share in _HOUSE_WISHES.items()}
    every = np.ones(n, np.bool_)
    return pa.table(
        {
            "id": ids(n),
            "price_from": where(np.round(price * rng.uniform(0.8, 0.97, n), -3), asks["low"]),
            "price_to": where(np.round(price * rng.uniform(1.0, 1.1, n) + 1000, -3), every),
            "bedrooms_from": where(rooms, asks["bedrooms"]),
            "sqft_living_from": where(np.round(living * 0.9, -1), asks["living"]),
            "sqft_living_to": where(np.round(living * 1.2, -1), asks["living"]),
            "sqft_lot_from": where(np.round(lot * 0.8, -2), asks["lot"]),
            "yr_built_from": where(built - 10, asks["built"]),
            "grade_from": where(grade, asks["grade"]),
            "spot_within": _areas_of(pick, asks["spot"], *_zips()),
        }
    )


_HOUSE_WISHES = {"low": 0.95, "bedrooms": 0.6, "living": 0.8, "lot": 0.3, "built": 0.4, "grade": 0.3, "spot": 0.5}
"""How often a search asks for each; a highest price always."""


@cache
def _zips() -> tuple[list[str], NDArray[np.int64]]:
    return _located(_found(ZIPS, "house-sales"), _houses())


# Both ------------------------------------------------------------------------------------------


def _some(table: pa.Table, count: int, rng: Generator) -> pa.Table:
    import pyarrow as pa

    return table.take(pa.array(rng.integers(0, table.num_rows, count))).combine_chunks()


def _spots(read: pa.Table) -> pa.Array:
    """Return the places of a file's `long` and `lat`; what is not on the globe is null."""
    import pyarrow as pa

    lon, lat = _numbers(read, "long"), _numbers(read, "lat")
    there = (np.abs(lon) <= 180) & (np.abs(lat) <= 90)
    return pa.StructArray.from_arrays([pa.array(lon), pa.array(lat)], ["lon", "lat"], mask=pa.array(~there))


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.fill_null(pc.cast(table.column(name), pa.float64()), float("nan"))
    return column.to_numpy()  # type: ignore[no-any-return]


def _there(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    return ~np.isnan(values)


def _kept(column: Any, asked: NDArray[np.bool_]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pa.array(asked), column, pa.scalar(None, pa.string()))


def _areas_of(
    pick: NDArray[np.int64], asked: NDArray[np.bool_], shapes: list[str], of_event: NDArray[np.int64]
) -> pa.Array:
    return shared_words(np.where(asked, of_event[pick], -1), shapes)


def _located(file: Path, events: pa.Table) -> tuple[list[str], NDArray[np.int64]]:
    """Return the areas of a file as WKT, and for each event the area it lies in, -1 for none."""
    import pyarrow.compute as pc
    import shapely

    with gzip.open(file, "rt", encoding="utf-8", errors="replace") as text:
        features = json.load(text)["features"]
    shapes = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in features])
    # The grid last: what is rounded when it is written must still be a polygon.
    simple = shapely.set_precision(shapely.simplify(shapely.make_valid(shapes), TOLERANCE_DEG), 1e-6)
    simple = simple[
        np.isin(shapely.get_type_id(simple), (3, 6)) & ~shapely.is_empty(simple)
    ]  # polygons, alone or several
    spots = events.column("spot")
    lon, lat = (_numbers_of(pc.struct_field(spots, axis)) for axis in ("lon", "lat"))
    known = np.flatnonzero(_there(lon))
    points = shapely.points(lon[known], lat[known])
    event, area = shapely.STRtree(simple).query(points, predicate="intersects")
    of_event = np.full(events.num_rows, -1, np.int64)
    of_event[known[event]] = area
    return shapely.to_wkt(simple, rounding_precision=6).tolist(), of_event


def _numbers_of(column: Any) -> NDArray[np.float64]:
    import pyarrow.compute as pc

    return pc.fill_null(column, float("nan")).to_numpy()  # type: ignore[no-any-return]
