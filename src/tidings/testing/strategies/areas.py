"""Areas on a grid of whole degrees: plain, concave, with a hole, across the antimeridian, several at once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from tidings.model import Area
from tidings.testing.hypothesis_import import st

if TYPE_CHECKING:
    from tidings.model.areas import Ring

Corner: TypeAlias = tuple[float, float]


def _ring(*corners: Corner) -> Ring:
    return (*corners, corners[0])


def _box(west: float, south: float, width: float, height: float) -> Ring:
    east, north = west + width, south + height
    return _ring((west, south), (east, south), (east, north), (west, north))


def _rolled(ring: Ring) -> Ring:
    """Write longitudes beyond 180 as a map does, on the other side."""
    return tuple((lon - 360 if lon > 180 else lon, lat) for lon, lat in ring)


def _l_shape(west: float, south: float) -> Ring:
    return _ring(
        (west, south),
        (west + 4, south),
        (west + 4, south + 1),
        (west + 1, south + 1),
        (west + 1, south + 4),
        (west, south + 4),
    )


@st.composite
def _plain(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 4)), draw(st.integers(-6, 4))
    return Area(((_box(west, south, draw(st.integers(1, 5)), draw(st.integers(1, 5))),),))


@st.composite
def _triangle(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 4)), draw(st.integers(-6, 4))
    corners = [(west, south), (west + 4, south), (west + draw(st.integers(0, 4)), south + draw(st.integers(1, 4)))]
    return Area(((_ring(*(corners if draw(st.booleans()) else reversed(corners))),),))


@st.composite
def _holed(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-4, 2)), draw(st.integers(-4, 2))
    return Area(((_box(west, south, 4, 4), _box(west + 1, south + 1, draw(st.integers(1, 2)), 2)),))


@st.composite
def _across(draw: st.DrawFn) -> Area:
    """Across the antimeridian, written either way, with a hole on the far side or without."""
    south = draw(st.integers(-4, 2))
    hole = draw(st.sampled_from((None, 179, 180, 181)))
    rings = [_box(178, south, 5, 4), *([] if hole is None else [_box(hole, south + 1, 1, 2)])]
    return Area((tuple(rings if draw(st.booleans()) else map(_rolled, rings)),))


@st.composite
def _several(draw: st.DrawFn) -> Area:
    west, south = draw(st.integers(-6, 2)), draw(st.integers(-6, 2))
    apart = draw(st.integers(3, 6))
    return Area(((_box(west, south, 2, 2),), (_box(west + apart, south, 1, 2), *_hole(draw, west + apart, south))))


def _hole(draw: st.DrawFn, west: float, south: float) -> tuple[Ring, ...]:
    return (_box(west + 0.25, south + 0.5, 0.5, 1),) if draw(st.booleans()) else ()


_SPECIAL = (
    Area(((_l_shape(0, 0),),)),
    Area(((_box(-180, -90, 360, 180),),)),
    Area(((_box(-180, 60, 360, 30),),)),
    Area(((_box(170, -5, 10, 10),), (_box(-180, -5, 10, 10),))),
)


@cache
def areas() -> st.SearchStrategy[Area]:
    """Return areas; their corners lie on whole or quarter degrees, so tests may reckon exactly."""
    return st.one_of(_plain(), _triangle(), _holed(), _across(), _several(), st.sampled_from(_SPECIAL))


def spots_of(area: Area) -> list[Corner]:
    """Return telling places of an area: corners, middles of edges and of rings, and just beside each."""
    found: dict[Corner, None] = {}
    for ring in (ring for rings in area.polygons for ring in rings):
        lons, lats = [lon for lon, _ in ring], [lat for _, lat in ring]
        middle = ((min(lons) + max(lons)) / 2, (min(lats) + max(lats)) / 2)
        edge = ((ring[0][0] + ring[1][0]) / 2, (ring[0][1] + ring[1][1]) / 2)
        beside = (
            (ring[0][0] - 0.25, ring[0][1]),
            (ring[0][0], ring[0][1] - 0.25),
            (ring[0][0] + 0.25, ring[0][1] + 0.25),
        )
        found.update(dict.fromkeys((*ring, middle, edge, *beside)))
    return [place for lon, lat in found if (place := _on_globe(lon, lat)) is not None]


def _on_globe(lon: float, lat: float) -> Corner | None:
    lon = lon - 360 if lon > 180 else lon + 360 if lon < -180 else lon
    return (lon, lat) if abs(lat) <= 90 else None
