"""Areas: polygons with holes, several of them, across the antimeridian.

Edges are straight in longitude and latitude, and the boundary belongs to the area. An edge that spans
more than 180 degrees goes the short way, over the antimeridian; a ring may also continue beyond 180
degrees. Rings are kept unrolled (with continuous longitudes), so a point is tested at its longitude and
one turn to either side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from tidings.errors import BadRegion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shapely import Polygon
    from shapely.geometry.base import BaseGeometry

    from tidings.model.values import Point

# Shapely is imported inside the functions: only filters with areas need GEOS, and loading it takes longer than parsing
# a thousand filters.

Ring: TypeAlias = tuple[tuple[float, float], ...]
Rings: TypeAlias = tuple[Ring, ...]

FULL_TURN_DEG = 360.0
"""Degrees of longitude in a whole turn."""


@dataclass(frozen=True, slots=True)
class Area:
    """One or more polygons; of each, the first ring is the outline and the rest are holes."""

    polygons: tuple[Rings, ...]
    # Computed once: the caches below look areas up for every event, and a coast has thousands of places.
    _hash: int = field(init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        return self._hash

    def __post_init__(self) -> None:
        if not self.polygons or not all(self.polygons):
            msg = "an area needs at least one polygon with an outline"
            raise BadRegion(msg)
        for rings in self.polygons:
            for ring in rings:
                _check_ring(ring)
        object.__setattr__(self, "_hash", hash(self.polygons))
        shape(self)

    def holds(self, point: Point) -> bool:
        """Tell whether the point lies inside or on the boundary."""
        import shapely

        west, south, east, north = find_bounds(self)
        if not south <= point.lat <= north:
            return False
        # An unrolled ring may lie beyond 180 degrees, so every longitude that means the same is tested. The bounding
        # box comes first: it excludes most places without a call into GEOS.
        turns = (point.lon, point.lon - FULL_TURN_DEG, point.lon + FULL_TURN_DEG)
        return any(west <= lon <= east and shapely.intersects_xy(shape(self), lon, point.lat) for lon in turns)

    def to_geojson(self) -> dict[str, object]:
        """Return the GeoJSON geometry: a `Polygon`, or a `MultiPolygon` of several."""
        polygons = [[[list(place) for place in ring] for ring in rings] for rings in self.polygons]
        if len(polygons) == 1:
            return {"type": "Polygon", "coordinates": polygons[0]}
        return {"type": "MultiPolygon", "coordinates": polygons}


@lru_cache(maxsize=65536)
def shape(area: Area) -> BaseGeometry:
    """Return the unrolled, prepared shapely geometry; refuse crossing rings."""
    import shapely

    polygons = [_build_polygon(rings) for rings in area.polygons]
    whole: BaseGeometry = shapely.MultiPolygon(polygons) if len(polygons) > 1 else polygons[0]
    if not shapely.is_valid(whole):
        msg = f"the polygon is not valid: {shapely.is_valid_reason(whole)}"
        raise BadRegion(msg)
    shapely.prepare(whole)
    return whole


@lru_cache(maxsize=65536)
def find_bounds(area: Area) -> tuple[float, float, float, float]:
    """Return west, south, east, north of the unrolled area."""
    west, south, east, north = shape(area).bounds
    return west, south, east, north


def _build_polygon(rings: Rings) -> Polygon:
    import shapely

    outline = _unroll(rings[0])
    holes = [_move_into(_unroll(hole), outline) for hole in rings[1:]]
    # As arrays: the constructor of `Polygon` looks at each place in Python.
    polygon: Polygon = shapely.polygons(
        shapely.linearrings(outline), [shapely.linearrings(hole) for hole in holes] or None
    )
    return polygon


def _unroll(ring: Ring) -> list[tuple[float, float]]:
    """Follow the ring with continuous longitudes: a jump of over half a turn crosses the antimeridian.

    Whole turns are counted, and no steps are added up: a ring that never crosses keeps its longitudes to the bit.
    """
    turns, lons = 0, [ring[0][0]]
    for (before, _), (after, _) in pairwise(ring):
        # A step of a whole turn stays as it is: -180 to 180 is the edge of a world map, not a point.
        if FULL_TURN_DEG / 2 < abs(after - before) < FULL_TURN_DEG:
            turns += 1 if after < before else -1
        lons.append(after + turns * FULL_TURN_DEG if turns else after)
    if abs(lons[-1] - lons[0]) > FULL_TURN_DEG / 2:
        msg = "the ring goes around a pole; cut it along a meridian"
        raise BadRegion(msg)
    return [(lon, lat) for lon, (_, lat) in zip(lons, ring, strict=True)]


def _move_into(hole: list[tuple[float, float]], outline: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the hole moved by a whole turn where that brings it inside the longitudes of its unrolled outline."""
    west, east = min(x for x, _ in outline), max(x for x, _ in outline)
    for turn in (0.0, FULL_TURN_DEG, -FULL_TURN_DEG):
        if all(west <= lon + turn <= east for lon, _ in hole):
            return [(lon + turn, lat) for lon, lat in hole]
    return hole


def _check_ring(ring: Ring) -> None:
    if len(ring) < 4:
        msg = f"a ring needs at least four places, the last equal to the first; this one has {len(ring)}"
        raise BadRegion(msg)
    if ring[0] != ring[-1]:
        msg = f"the ring is not closed: it starts at {_format_place(ring[0])} and ends at {_format_place(ring[-1])}"
        raise BadRegion(msg)
    for lon, lat in ring:
        if not (abs(lon) <= 1.5 * FULL_TURN_DEG and abs(lat) <= 90):
            msg = f"{_format_place((lon, lat))} is not a longitude and a latitude"
            raise BadRegion(msg)


def _format_place(place: tuple[float, float]) -> str:
    return " ".join(f"{number:g}" if abs(number) < 1e15 else f"{str(number)[:15]}..." for number in place)


def build_area(polygons: Iterable[Iterable[Iterable[Iterable[float]]]]) -> Area:
    """Build an area from nested coordinate lists, as GeoJSON's MultiPolygon has them."""
    return Area(tuple(tuple(tuple(_check_pair(place) for place in ring) for ring in rings) for rings in polygons))


def _check_pair(place: Iterable[float]) -> tuple[float, float]:
    numbers = tuple(place)
    if len(numbers) != 2 or not all(type(n) in (int, float) for n in numbers):
        msg = f"a place of a polygon is two numbers, longitude and latitude, not {numbers!r}"
        raise BadRegion(msg)
    return numbers
