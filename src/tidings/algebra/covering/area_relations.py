"""Whether one area or circle certainly contains another, or is certainly disjoint from it.

Certainly means: with a margin for rounding wherever coordinates were computed. Areas are compared unrolled across the
antimeridian, as they are tested, and at every shift by 360 degrees at which a point may be tested. Between an area and
a circle, bounding boxes stand in for both, which may miss a true relation but never reports a false one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tidings.algebra.law.evaluate import EARTH_RADIUS_M, compute_distance_m
from tidings.model import Near, Within
from tidings.model.areas import FULL_TURN_DEG, find_bounds, shape

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

    from tidings.model import Area, Condition

MARGIN_M = 1.0
"""Great-circle distances are exact to 0.3 m at worst, near the antipodes."""

MARGIN_DEG = 1e-9
"""A generous bound on the rounding of shifted coordinates."""

FARTHEST_M = 2 * EARTH_RADIUS_M * math.asin(1.0)
"""Half the circumference: no distance exceeds it."""


def includes(outer: Condition, inner: Condition) -> bool:
    """Tell whether every point of the inner condition certainly satisfies the outer one."""
    match outer, inner:
        case Within(outer_area), Within(inner_area):
            return _covers_area(outer_area, inner_area)
        case Near(center, metres), Near(other, reach):
            if center == other:
                return reach <= metres
            return compute_distance_m(center, other) + reach + MARGIN_M <= metres
        case Near(), Within(area):
            return _estimate_farthest_m(outer, area) + MARGIN_M <= outer.metres
        case Within(area), Near():
            return _covers_circle(area, inner)
    return False


def excludes(first: Condition, second: Condition) -> bool:
    """Tell whether certainly no point satisfies both."""
    match first, second:
        case Within(left), Within(right):
            return _are_disjoint(shape(left), shape(right))
        case Near(center, metres), Near(other, reach):
            return compute_distance_m(center, other) > metres + reach + MARGIN_M
        case (Near() as circle, Within(area)) | (Within(area), Near() as circle):
            box = _compute_bounding_box(circle)
            return box is not None and _are_disjoint(box, shape(area))
    return False


def covers_earth(condition: Condition) -> bool:
    """Tell whether every place satisfies the condition."""
    return isinstance(condition, Near) and condition.metres >= FARTHEST_M


def _covers_area(outer: Area, inner: Area) -> bool:
    import shapely

    whole, part = shape(outer), shape(inner)
    if shapely.covers(whole, part):
        return True
    turns = (-FULL_TURN_DEG, FULL_TURN_DEG) if _is_near_one_turn(outer) else ()
    return any(shapely.covers(whole, _pad(_shift(part, turn))) for turn in turns)


def _is_near_one_turn(area: Area) -> bool:
    """Tell whether shifting by one turn decides an area: points are tested at most one turn away."""
    west, _, east, _ = find_bounds(area)
    return west > -1.5 * FULL_TURN_DEG and east < 1.5 * FULL_TURN_DEG


def _covers_circle(area: Area, circle: Near) -> bool:
    import shapely

    box = _compute_bounding_box(circle)
    if box is None or not _is_near_one_turn(area):
        return False
    return any(shapely.covers(shape(area), _shift(_pad(box), turn)) for turn in (0.0, -FULL_TURN_DEG, FULL_TURN_DEG))


def _are_disjoint(first: BaseGeometry, second: BaseGeometry) -> bool:
    """Tell whether no shift makes them touch; a point of each may be shifted by a turn, so two turns are tried."""
    import shapely

    if not shapely.disjoint(first, second):
        return False
    turns = (-2 * FULL_TURN_DEG, -FULL_TURN_DEG, FULL_TURN_DEG, 2 * FULL_TURN_DEG)
    return all(shapely.distance(_shift(first, turn), second) > MARGIN_DEG for turn in turns)


def _estimate_farthest_m(circle: Near, area: Area) -> float:
    """Return an upper bound of the distance to any point of the area: along the meridian, then the parallel."""
    west, south, east, north = find_bounds(area)
    lon, lat = circle.center.lon, circle.center.lat
    across = min(max(abs(west + turn - lon), abs(east + turn - lon)) for turn in (0.0, -FULL_TURN_DEG, FULL_TURN_DEG))
    widest = 1.0 if south <= 0 <= north else max(math.cos(math.radians(south)), math.cos(math.radians(north)))
    along = max(abs(south - lat), abs(north - lat))
    return EARTH_RADIUS_M * (math.radians(along) + math.radians(across) * widest)


def _compute_bounding_box(circle: Near) -> BaseGeometry | None:
    """Return the bounding box of a circle as a geometry, or `None` if the circle contains a pole."""
    import shapely

    angle = (circle.metres + MARGIN_M) / EARTH_RADIUS_M
    lon, lat, high = circle.center.lon, circle.center.lat, math.degrees(angle)
    if abs(lat) + high >= 90 - MARGIN_DEG:
        return None
    wide = math.degrees(math.asin(math.sin(angle) / math.cos(math.radians(lat))))
    return shapely.box(lon - wide, lat - high, lon + wide, lat + high)


def _shift(geometry: BaseGeometry, turn: float) -> BaseGeometry:
    import numpy as np
    import shapely

    return shapely.transform(geometry, lambda places: np.add(places, (turn, 0.0))) if turn else geometry


def _pad(geometry: BaseGeometry) -> BaseGeometry:
    """Return the geometry enlarged by the margin."""
    import shapely

    return shapely.buffer(geometry, MARGIN_DEG, quad_segs=1, cap_style="square", join_style="mitre")
