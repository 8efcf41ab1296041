"""Places around cities, and the areas that people draw there: rings of six to nine corners, in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.bench.workloads.cars import CITIES
from tidings.bench.workloads.parameter_forms import zipf_draw

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator
    from numpy.typing import NDArray

_LON = np.array([city.lon for city in CITIES])
_LAT = np.array([city.lat for city in CITIES])
CORNERS = (6, 9)
"""The fewest and the most corners of an area."""


def places(rng: Generator, count: int, *, given: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return places scattered around cities, the larger ones more often; null where none is given."""
    import pyarrow as pa

    city = zipf_draw(rng, count, len(CITIES), 1.0)
    lon = np.round(rng.normal(_LON[city], 0.15), 5)
    lat = np.round(rng.normal(_LAT[city], 0.1), 5)
    mask = None if given is None else pa.array(~given)
    return pa.StructArray.from_arrays([pa.array(lon), pa.array(lat)], ["lon", "lat"], mask=mask)


def areas(rng: Generator, count: int, *, reach: tuple[float, float]) -> list[str]:
    """Return areas around cities as WKT; corners lie between the two ends of `reach`, in degrees."""
    most = CORNERS[1]
    city = zipf_draw(rng, count, len(CITIES), 1.0)
    corners = rng.integers(CORNERS[0], most, count, endpoint=True)
    steps = np.arange(most) + rng.uniform(-0.3, 0.3, (count, most))
    turns = steps * (2 * np.pi) / corners[:, None]
    radii = rng.uniform(*reach, (count, most))
    lon = np.round(_LON[city][:, None] + radii * np.cos(turns), 4)
    lat = np.round(_LAT[city][:, None] + 0.7 * radii * np.sin(turns), 4)
    rings = zip(lon.tolist(), lat.tolist(), corners.tolist(), strict=True)
    return [_ring(xs[:size], ys[:size]) for xs, ys, size in rings]


def _ring(lons: list[float], lats: list[float]) -> str:
    written = [f"{lon} {lat}" for lon, lat in zip(lons, lats, strict=True)]
    return f"POLYGON(({', '.join(written)}, {written[0]}))"
