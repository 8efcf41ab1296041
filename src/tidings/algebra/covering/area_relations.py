"""Whether one area or circle certainly lies within another, or certainly apart from it.

Certainly means: with a margin for rounding wherever something was computed rather than read. Areas are
compared unrolled, as they are tested, and at every whole turn at which a point may be asked. Between an
area and a circle, the circle stands in for its bounding box and the area for its own, which may leave a
true relation unseen, never a false one seen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.algebra.law.evaluate import EARTH_RADIUS_M, compute_distance_m
from tidings.model import Near, Within
from tidings.model.areas import TURN, bounds, shape

if TYPE_CHECKING:
    from tidings.model import Area, Condition

Box: TypeAlias = "tuple[float, float, float, float]"
"""West, south, east, north, in degrees."""

MARGIN_M = 1.0
"""Great-circle distances are exact to 0.3 m at worst, near the antipodes."""

MARGIN_DEG = 1e-9
"""Degrees by which shifted coordinates may be rounded, with room."""

HALF_WAY_M = 2 * EARTH_RADIUS_M * math.asin(1.0)
"""No distance exceeds this."""


def includes(outer: Condition, inner: Condition) -> bool:
    """Tell whether every place in the second is certainly in the first."""
    match outer, inner:
        case Within(one), Within(two):
            return _area_in_area(one, two)
        case Near(center, metres), Near(other, reach):
            if center == other:
                return reach <= metres
            return compute_distance_m(center, other) + reach + MARGIN_M <= metres
        case Near(), Within(area):
            return _farthest_m(outer, area) + MARGIN_M <= outer.metres
        case Within(area), Near():
            return _circle_in_area(area, inner)
    return False


def excludes(one: Condition, two: Condition) -> bool:
    """Tell whether certainly no place is in both."""
    match one, two:
        case Within(left), Within(right):
            return _apart(shape(left), shape(right))
        case Near(center, metres), Near(other, reach):
            return compute_distance_m(center, other) > metres + reach + MARGIN_M
        case (Near() as circle, Within(area)) | (Within(area), Near() as circle):
            box = _box(circle)
            return box is not None and _apart(_rectangle(box), shape(area))
    return False


def everywhere(condition: Condition) -> bool:
    """Tell whether every place satisfies the condition."""
    return isinstance(condition, Near) and condition.metres >= HALF_WAY_M


def _area_in_area(outer: Area, inner: Area) -> bool:
    import shapely

    whole, part = shape(outer), shape(inner)
    if shapely.covers(whole, part):
        return True
    return any(shapely.covers(whole, _room(_shifted(part, turn))) for turn in (-TURN, TURN) if _within_reach(outer))


def _within_reach(area: Area) -> bool:
    """A place is asked at most one turn away, so only areas on this side of that are told by shifting."""
    west, _, east, _ = bounds(area)
    return west > -1.5 * TURN and east < 1.5 * TURN


def _circle_in_area(area: Area, circle: Near) -> bool:
    import shapely

    box = _box(circle)
    if box is None or not _within_reach(area):
        return False
    rectangle = _room(_rectangle(box))
    return any(shapely.covers(shape(area), _shifted(rectangle, turn)) for turn in (0.0, -TURN, TURN))


def _apart(one: Any, two: Any) -> bool:
    """No turn brings them together; a place of each may be asked a turn away, so two turns apart counts."""
    import shapely

    if not shapely.disjoint(one, two):
        return False
    turns = (-2 * TURN, -TURN, TURN, 2 * TURN)
    return all(shapely.distance(_shifted(one, turn), two) > MARGIN_DEG for turn in turns)


def _farthest_m(circle: Near, area: Area) -> float:
    """Bound the distance to any place of the area: along the meridian, then along the parallel."""
    west, south, east, north = bounds(area)
    lon, lat = circle.center.lon, circle.center.lat
    across = min(max(abs(west + turn - lon), abs(east + turn - lon)) for turn in (0.0, -TURN, TURN))
    widest = 1.0 if south <= 0 <= north else max(math.cos(math.radians(south)), math.cos(math.radians(north)))
    along = max(abs(south - lat), abs(north - lat))
    return EARTH_RADIUS_M * (math.radians(along) + math.radians(across) * widest)


def _box(circle: Near) -> Box | None:
    """Bound the circle by meridians and parallels, unless it holds a pole."""
    angle = (circle.metres + MARGIN_M) / EARTH_RADIUS_M
    lon, lat, high = circle.center.lon, circle.center.lat, math.degrees(angle)
    if abs(lat) + high >= 90 - MARGIN_DEG:
        return None
    wide = math.degrees(math.asin(math.sin(angle) / math.cos(math.radians(lat))))
    return (lon - wide, lat - high, lon + wide, lat + high)


def _rectangle(box: Box) -> Any:
    import shapely

    return shapely.box(*box)


def _shifted(geometry: Any, turn: float) -> Any:
    import numpy as np
    import shapely

    return shapely.transform(geometry, lambda places: np.add(places, (turn, 0.0))) if turn else geometry


def _room(geometry: Any) -> Any:
    """Return the geometry and a little around it."""
    import shapely

    return shapely.buffer(geometry, MARGIN_DEG, quad_segs=1, cap_style="square", join_style="mitre")
