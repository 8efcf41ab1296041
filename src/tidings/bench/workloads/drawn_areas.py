"""Places scattered around cities, and polygons of six to nine corners there, drawn in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.bench.workloads.cars import CITIES
from tidings.bench.workloads.parameter_forms import draw_zipf, make_places

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator

    from tidings.kernels.array_types import BoolArray

_LON = np.array([city.lon for city in CITIES])
_LAT = np.array([city.lat for city in CITIES])
CORNERS = (6, 9)
"""Least and greatest number of corners of an area."""


def draw_places(rng: Generator, count: int, *, valid: BoolArray | None = None) -> pa.Array:
    """Return places scattered around cities, the larger ones more often; null where `valid` is false."""
    city = draw_zipf(rng, count, len(CITIES), 1.0)
    lon = np.round(rng.normal(_LON[city], 0.15), 5)
    lat = np.round(rng.normal(_LAT[city], 0.1), 5)
    return make_places(lon, lat, valid=valid)


def draw_areas(rng: Generator, count: int, *, reach: tuple[float, float]) -> list[str]:
    """Return areas around cities as WKT; corners are as far from the centre as `reach` says, in degrees."""
    most = CORNERS[1]
    city = draw_zipf(rng, count, len(CITIES), 1.0)
    corners = rng.integers(CORNERS[0], most, count, endpoint=True)
    steps = np.arange(most) + rng.uniform(-0.3, 0.3, (count, most))
    turns = steps * (2 * np.pi) / corners[:, None]
    radii = rng.uniform(*reach, (count, most))
    lon = np.round(_LON[city][:, None] + radii * np.cos(turns), 4)
    lat = np.round(_LAT[city][:, None] + 0.7 * radii * np.sin(turns), 4)
    rings = zip(lon.tolist(), lat.tolist(), corners.tolist(), strict=True)
    return [render_ring(list(zip(xs, ys, strict=True))[:size]) for xs, ys, size in rings]


def render_ring(corners: list[tuple[float, float]]) -> str:
    """Write a polygon of these corners, which need not be closed, as WKT."""
    return f"POLYGON(({', '.join(f'{lon} {lat}' for lon, lat in [*corners, corners[0]])}))"
