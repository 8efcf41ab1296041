"""Areas on a grid of whole degrees: plain, concave, with a hole, across the antimeridian, several at once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from tidings.model import Area
from tidings.testing.hypothesis_import import st

if TYPE_CHECKING:
    from tidings.model.areas import Ring

Corner: TypeAlias = tuple[float, float]


def _close_ring(*corners: Corner) -> Ring:
    return (*corners, corners[0])


def _make_box(west: float, south: float, width: float, height: float) -> Ring:
    east, north = west + width, south + height
    return _close_ring((west, south), (east, south), (east, north), (west, north))


def _wrap_longitude(lon: float) -> float:
    """Return a longitude within 180 degrees, as maps write it."""
    return lon - 360 if lon > 180 else lon + 360 if lon < -180 else lon


@st.composite
def _draw_box(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 4)), draw(st.integers(-6, 4))
    return Area(((_make_box(west, south, draw(st.integers(1, 5)), draw(st.integers(1, 5))),),))


@st.composite
def _draw_triangle(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 4)), draw(st.integers(-6, 4))
    corners = [(west, south), (west + 4, south), (west + draw(st.integers(0, 4)), south + draw(st.integers(1, 4)))]
    return Area(((_close_ring(*(corners if draw(st.booleans()) else reversed(corners))),),))


@st.composite
def _draw_holed_area(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-4, 2)), draw(st.integers(-4, 2))
    return Area(((_make_box(west, south, 4, 4), _make_box(west + 1, south + 1, draw(st.integers(1, 2)), 2)),))


@st.composite
def _draw_antimeridian(draw: st.DrawFn) -> Area:
    """Areas across the antimeridian, with longitudes beyond 180 or wrapped, with a hole or without."""
    south = draw(st.integers(-4, 2))
    hole = draw(st.sampled_from((None, 179, 180, 181)))
    rings = [_make_box(178, south, 5, 4), *([] if hole is None else [_make_box(hole, south + 1, 1, 2)])]
    if not draw(st.booleans()):
        rings = [tuple((_wrap_longitude(lon), lat) for lon, lat in ring) for ring in rings]
    return Area((tuple(rings),))


@st.composite
def _draw_pair(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 2)), draw(st.integers(-6, 2))
    east = west + draw(st.integers(3, 6))
    hole = (_make_box(east + 0.25, south + 0.5, 0.5, 1),) if draw(st.booleans()) else ()
    return Area(((_make_box(west, south, 2, 2),), (_make_box(east, south, 1, 2), *hole)))


_SPECIAL = (
    Area(((_close_ring((0, 0), (4, 0), (4, 1), (1, 1), (1, 4), (0, 4)),),)),
    Area(((_make_box(-180, -90, 360, 180),),)),
    Area(((_make_box(-180, 60, 360, 30),),)),
    Area(((_make_box(170, -5, 10, 10),), (_make_box(-180, -5, 10, 10),))),
)


@cache
def areas() -> st.SearchStrategy[Area]:
    """Return areas; their corners lie on whole or quarter degrees, so tests can compute exactly."""
    return st.one_of(
        _draw_box(), _draw_triangle(), _draw_holed_area(), _draw_antimeridian(), _draw_pair(), st.sampled_from(_SPECIAL)
    )


def spots_of(area: Area) -> list[Corner]:
    """Return places near the boundary of an area: corners, middles of edges and of rings, and neighbours of corners."""
    places: dict[Corner, None] = {}
    for ring in (ring for rings in area.polygons for ring in rings):
        lons, lats = [lon for lon, _ in ring], [lat for _, lat in ring]
        middle = ((min(lons) + max(lons)) / 2, (min(lats) + max(lats)) / 2)
        edge = ((lons[0] + lons[1]) / 2, (lats[0] + lats[1]) / 2)
        neighbours = [(lons[0] + east, lats[0] + north) for east, north in ((-0.25, 0), (0, -0.25), (0.25, 0.25))]
        places.update(dict.fromkeys((*ring, middle, edge, *neighbours)))
    return [(_wrap_longitude(lon), lat) for lon, lat in places if abs(lat) <= 90]
