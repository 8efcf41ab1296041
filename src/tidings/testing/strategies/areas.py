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


def _wrap_longitudes(ring: Ring) -> Ring:
    """Write longitudes beyond 180 as negative ones, as maps do."""
    return tuple((lon - 360 if lon > 180 else lon, lat) for lon, lat in ring)


def _make_l_shape(west: float, south: float) -> Ring:
    return _close_ring(
        (west, south),
        (west + 4, south),
        (west + 4, south + 1),
        (west + 1, south + 1),
        (west + 1, south + 4),
        (west, south + 4),
    )


@st.composite
def _boxes(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 4)), draw(st.integers(-6, 4))
    return Area(((_make_box(west, south, draw(st.integers(1, 5)), draw(st.integers(1, 5))),),))


@st.composite
def _triangles(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 4)), draw(st.integers(-6, 4))
    corners = [(west, south), (west + 4, south), (west + draw(st.integers(0, 4)), south + draw(st.integers(1, 4)))]
    return Area(((_close_ring(*(corners if draw(st.booleans()) else reversed(corners))),),))


@st.composite
def _areas_with_hole(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-4, 2)), draw(st.integers(-4, 2))
    return Area(((_make_box(west, south, 4, 4), _make_box(west + 1, south + 1, draw(st.integers(1, 2)), 2)),))


@st.composite
def _antimeridian_areas(draw: st.DrawFn) -> Area:
    """Areas across the antimeridian, with longitudes beyond 180 or wrapped, with a hole or without."""
    south = draw(st.integers(-4, 2))
    hole = draw(st.sampled_from((None, 179, 180, 181)))
    rings = [_make_box(178, south, 5, 4), *([] if hole is None else [_make_box(hole, south + 1, 1, 2)])]
    return Area((tuple(rings if draw(st.booleans()) else map(_wrap_longitudes, rings)),))


@st.composite
def _area_pairs(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 2)), draw(st.integers(-6, 2))
    distance = draw(st.integers(3, 6))
    return Area(
        (
            (_make_box(west, south, 2, 2),),
            (_make_box(west + distance, south, 1, 2), *_draw_hole(draw, west + distance, south)),
        )
    )


def _draw_hole(draw: st.DrawFn, west: float, south: float) -> tuple[Ring, ...]:
    return (_make_box(west + 0.25, south + 0.5, 0.5, 1),) if draw(st.booleans()) else ()


_SPECIAL = (
    Area(((_make_l_shape(0, 0),),)),
    Area(((_make_box(-180, -90, 360, 180),),)),
    Area(((_make_box(-180, 60, 360, 30),),)),
    Area(((_make_box(170, -5, 10, 10),), (_make_box(-180, -5, 10, 10),))),
)


@cache
def areas() -> st.SearchStrategy[Area]:
    """Return areas; their corners lie on whole or quarter degrees, so tests can compute exactly."""
    return st.one_of(
        _boxes(), _triangles(), _areas_with_hole(), _antimeridian_areas(), _area_pairs(), st.sampled_from(_SPECIAL)
    )


def spots_of(area: Area) -> list[Corner]:
    """Return places near the boundary of an area: corners, middles of edges and of rings, and neighbours of corners."""
    places: dict[Corner, None] = {}
    for ring in (ring for rings in area.polygons for ring in rings):
        lons, lats = [lon for lon, _ in ring], [lat for _, lat in ring]
        middle = ((min(lons) + max(lons)) / 2, (min(lats) + max(lats)) / 2)
        edge = ((ring[0][0] + ring[1][0]) / 2, (ring[0][1] + ring[1][1]) / 2)
        neighbours = (
            (ring[0][0] - 0.25, ring[0][1]),
            (ring[0][0], ring[0][1] - 0.25),
            (ring[0][0] + 0.25, ring[0][1] + 0.25),
        )
        places.update(dict.fromkeys((*ring, middle, edge, *neighbours)))
    return [on_globe for lon, lat in places if (on_globe := _normalize_place(lon, lat)) is not None]


def _normalize_place(lon: float, lat: float) -> Corner | None:
    lon = lon - 360 if lon > 180 else lon + 360 if lon < -180 else lon
    return (lon, lat) if abs(lat) <= 90 else None
