"""Real events, and searches that resemble them: used-car ads and house sales with real areas.

The data are not part of the project. They are looked for in the folder of `TIDINGS_DATA`, then in `../shared/data`
next to the project. A search is made from an event drawn at random: the same make and model, a price near its price,
the county or postal area it lies in. So popular things are searched for often, and every search can match.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely

from tidings.bench.workloads.seeded_workload import Workload
from tidings.bench.workloads.workload_columns import decode_dictionary, make_places, mask_column, to_floats
from tidings.errors import FileError

if TYPE_CHECKING:
    from numpy.random import Generator

    from tidings.bench.workloads.workload_columns import WorkloadColumn
    from tidings.kernels.array_types import BoolArray, IntArray

VARIABLE = "TIDINGS_DATA"
"""The environment variable that names the folder of real data."""

CARS = ("craigslist_2020_7k_geo.parquet", "craigslist_2021_8k_geo.parquet", "craigslist_2021_18k_geo.parquet")
COUNTIES = "polygons/us_counties_fips.geojson.gz"
HOUSES = "king-county-houses/kc_house_data.parquet"
ZIPS = "king-county-houses/king_county_zipcodes.geojson.gz"
TOLERANCE_DEG = 0.0005
"""Tolerance of simplifying areas, about 50 m: some have thousands of corners."""


def data_folder() -> Path | None:
    """Return the folder of real data, or None."""
    named = os.environ.get(VARIABLE)
    defaults = [place.parent / "shared" / "data" for place in (Path.cwd(), Path(__file__).resolve().parents[4])]
    return next((folder for folder in ([Path(named)] if named else defaults) if folder.is_dir()), None)


def _find_file(path: str, key: str) -> Path:
    folder = data_folder()
    if folder is None or not (folder / path).exists():
        named = os.environ.get(VARIABLE)
        place = f"`{named}` ({VARIABLE}) does not have" if named else "there is no `../shared/data` with"
        msg = (
            f"the workload `{key}` needs real data, and {place} `{path}`; set {VARIABLE} to the folder that has it,"
            " or take a made-up workload (`tidings bench list`)"
        )
        raise FileError(msg)
    return folder / path


# Used cars -------------------------------------------------------------------------------------

CAR_TEXTS = {"manufacturer": "make", "model": "model", "type": "type", "paint_color": "color", "state": "state"}
"""The columns of text in the files, and their attributes."""

CAR_NUMBERS = ("year", "price", "odometer")

CAR_WISHES = {"model": 0.75, "low": 0.7, "year": 0.6, "odometer": 0.4, "type": 0.2, "color": 0.15, "state": 0.3}
"""How often a search asks for each, and in one of ten for its county; the make and a highest price nearly always."""


def build_used_cars() -> Workload:
    """Car ads of Craigslist, 2020 and 2021."""
    return Workload(
        key="used-cars",
        description="33,000 real car ads; searches like them, with a real county in 10 % (needs the data)",
        expected=lambda n: 2.4e-3 * n,
        tolerance=0.4,
        make_events=lambda count, rng: _sample_rows(load_cars(), count, rng),
        make_columns=_draw_car_searches,
        schema={
            **dict.fromkeys(("make", "model"), "text"),
            **dict.fromkeys(CAR_NUMBERS, "number"),
            **dict.fromkeys(("type", "color", "state"), "text"),
            "spot": "place",
        },
        writes=True,
    )


@cache
def load_cars() -> pa.Table:
    """Return all car ads, read once."""
    parts = []
    for file in CARS:
        read = pq.read_table(_find_file(f"used-car-ads/{file}", "used-cars"))
        texts = {name: pc.cast(read.column(column), pa.string()) for column, name in CAR_TEXTS.items()}
        parts.append(pa.table({**texts, **_read_numbers(read, CAR_NUMBERS), "spot": _read_places(read)}))
    return pa.concat_tables(parts).combine_chunks()


def _draw_car_searches(n: int, rng: Generator) -> dict[str, WorkloadColumn]:
    pick, seen, wants = _pick_events(load_cars(), n, rng, {**CAR_WISHES, "spot": 0.1})
    price, year, odometer = (to_floats(seen.column(name)) for name in ("price", "year", "odometer"))
    top = np.round(price * rng.uniform(1.0, 1.3, n), -2)
    return {
        "make": seen.column("make"),
        "model": _keep_where(wants["model"], seen.column("model")),
        "price_from": mask_column(np.round(top * 0.6, -2), wants["low"] & (price > 0)),
        "price_to": mask_column(top, ~np.isnan(price)),
        "year_from": mask_column(year - rng.integers(0, 4, n), wants["year"] & ~np.isnan(year)),
        "odometer_to": mask_column(np.round(odometer * 1.2, -3), wants["odometer"] & ~np.isnan(odometer)),
        **{name: _keep_where(wants[name], seen.column(name)) for name in ("type", "color", "state")},
        "spot_within": _select_areas(pick, wants["spot"], *load_counties()),
    }


@cache
def load_counties() -> tuple[list[str], IntArray]:
    """Return the counties as WKT, and for each car ad the number of its county."""
    return _locate_events(_find_file(COUNTIES, "used-cars"), load_cars())


# House sales -----------------------------------------------------------------------------------

HOUSE_NUMBERS = ("price", "bedrooms", "bathrooms", "sqft_living", "sqft_lot", "grade", "yr_built", "waterfront")

HOUSE_WISHES = {"low": 0.95, "bedrooms": 0.6, "living": 0.8, "lot": 0.3, "built": 0.4, "grade": 0.3, "spot": 0.5}
"""How often a search asks for each; a highest price always."""


def build_house_sales() -> Workload:
    """House sales of King County, 2014 and 2015."""
    return Workload(
        key="house-sales",
        description="21,613 real house sales; searches like them, with a real postal area in half (needs the data)",
        expected=lambda n: 1.37e-2 * n,
        tolerance=0.4,
        make_events=lambda count, rng: _sample_rows(load_houses(), count, rng),
        make_columns=_draw_house_searches,
        schema={**dict.fromkeys(HOUSE_NUMBERS, "number"), "spot": "place"},
        writes=True,
    )


@cache
def load_houses() -> pa.Table:
    """Return all house sales, read once."""
    read = pq.read_table(_find_file(HOUSES, "house-sales"))
    return pa.table({**_read_numbers(read, HOUSE_NUMBERS), "spot": _read_places(read)}).combine_chunks()


def _draw_house_searches(n: int, rng: Generator) -> dict[str, WorkloadColumn]:
    pick, seen, wants = _pick_events(load_houses(), n, rng, HOUSE_WISHES)
    price, living, rooms = (to_floats(seen.column(name)) for name in ("price", "sqft_living", "bedrooms"))
    built, grade, lot = (to_floats(seen.column(name)) for name in ("yr_built", "grade", "sqft_lot"))
    return {
        "price_from": mask_column(np.round(price * rng.uniform(0.8, 0.97, n), -3), wants["low"]),
        "price_to": np.round(price * rng.uniform(1.0, 1.1, n) + 1000, -3),
        "bedrooms_from": mask_column(rooms, wants["bedrooms"]),
        "sqft_living_from": mask_column(np.round(living * 0.9, -1), wants["living"]),
        "sqft_living_to": mask_column(np.round(living * 1.2, -1), wants["living"]),
        "sqft_lot_from": mask_column(np.round(lot * 0.8, -2), wants["lot"]),
        "yr_built_from": mask_column(built - 10, wants["built"]),
        "grade_from": mask_column(grade, wants["grade"]),
        "spot_within": _select_areas(pick, wants["spot"], *load_zip_areas()),
    }


@cache
def load_zip_areas() -> tuple[list[str], IntArray]:
    """Return the postal areas as WKT, and for each house sale the number of its area."""
    return _locate_events(_find_file(ZIPS, "house-sales"), load_houses())


# Both ------------------------------------------------------------------------------------------


def _read_numbers(read: pa.Table, names: tuple[str, ...]) -> dict[str, WorkloadColumn]:
    return {name: pc.cast(read.column(name), pa.float64()) for name in names}


def _read_places(read: pa.Table) -> pa.Array:
    """Return the places of a file's `long` and `lat`; coordinates that are not on the globe become null."""
    lon, lat = to_floats(read.column("long")), to_floats(read.column("lat"))
    return make_places(lon, lat, valid=(np.abs(lon) <= 180) & (np.abs(lat) <= 90))


def _sample_rows(table: pa.Table, count: int, rng: Generator) -> dict[str, WorkloadColumn]:
    rows = table.take(pa.array(rng.integers(0, table.num_rows, count))).combine_chunks()
    return dict(zip(rows.column_names, rows.columns, strict=True))


def _pick_events(
    events: pa.Table, n: int, rng: Generator, wishes: dict[str, float]
) -> tuple[IntArray, pa.Table, dict[str, BoolArray]]:
    """Draw an event for each of `n` searches; return their numbers, the events, and which searches have which wish."""
    pick = rng.integers(0, events.num_rows, n)
    wants = {name: rng.random(n) < share for name, share in wishes.items()}
    return pick, events.take(pa.array(pick)), wants


def _keep_where(wanted: BoolArray, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pa.array(wanted), column, pa.scalar(None, pa.string()))


def _select_areas(pick: IntArray, wanted: BoolArray, shapes: list[str], of_event: IntArray) -> pa.Array:
    return decode_dictionary(np.where(wanted, of_event[pick], -1), shapes)


def _locate_events(file: Path, events: pa.Table) -> tuple[list[str], IntArray]:
    """Return the areas of a file as WKT, and for each event the area it lies in, -1 for none."""
    with gzip.open(file, "rt", encoding="utf-8", errors="replace") as text:
        features = json.load(text)["features"]
    shapes = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in features])
    # The grid comes last: coordinates are rounded in WKT, and the result must still be a polygon.
    simple = shapely.set_precision(shapely.simplify(shapely.make_valid(shapes), TOLERANCE_DEG), 1e-6)
    is_polygon = np.isin(shapely.get_type_id(simple), (3, 6))  # alone or several
    simple = simple[is_polygon & ~shapely.is_empty(simple)]
    lon, lat = (to_floats(pc.struct_field(events.column("spot"), axis)) for axis in ("lon", "lat"))
    placed = np.flatnonzero(~np.isnan(lon))
    points = shapely.points(lon[placed], lat[placed])
    event, area = shapely.STRtree(simple).query(points, predicate="intersects")
    of_event = np.full(events.num_rows, -1, np.int64)
    of_event[placed[event]] = area
    return shapely.to_wkt(simple, rounding_precision=6).tolist(), of_event
