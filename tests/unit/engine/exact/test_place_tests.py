"""Places in flat arrays against the law: areas of every shape, circles, and boxes that lose nothing."""

import math
import pickle
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidings.algebra.law.evaluate import EARTH_RADIUS_M, Setting, satisfies
from tidings.concepts import Ontology
from tidings.engine.exact.place_tests import PlaceTable
from tidings.errors import BadRegion, TidingsError
from tidings.kernels.match import point_tests as kernel
from tidings.model import Area, Near, Point, Within, WithinRegion
from tidings.testing.strategies import areas
from tidings.testing.strategies.areas import spots_of
from tidings.testing.strategies.values import points

SETTING = Setting(Ontology(), datetime(2026, 1, 1, tzinfo=UTC))


def law(condition, spot):
    return satisfies(Point(*spot), condition, SETTING)


def on_globe(lon, lat):
    lon = lon - 360 if lon > 180 else lon + 360 if lon < -180 else lon
    return min(max(lon, -180.0), 180.0), min(max(lat, -90.0), 90.0)


@st.composite
def stars(draw):
    """Areas with any float for a corner: stars around a centre, with a hole, several, and over the antimeridian."""
    polygons = []
    for number in range(draw(st.integers(1, 2))):
        lon, lat = draw(st.sampled_from([0.0, 179.5, -179.9, 64.123])) + 9 * number, draw(st.floats(-70, 70))
        corners = draw(st.integers(3, 50))
        reach = draw(st.lists(st.floats(0.5, 4), min_size=corners, max_size=corners))
        angles = [2 * math.pi * at / corners for at in range(corners)]
        outline = [(lon + r * math.cos(a), lat + r * math.sin(a)) for r, a in zip(reach, angles, strict=True)]
        hole = [(lon + 0.2 * math.cos(a), lat + 0.2 * math.sin(a)) for a in angles]
        rings = [outline, hole] if draw(st.booleans()) and corners > 6 else [outline]
        rolled = draw(st.booleans())
        polygons.append(tuple(close_ring(ring, rolled=rolled) for ring in rings))
    try:
        return Area(tuple(polygons))
    except BadRegion:
        assume(condition=False)


def close_ring(ring, *, rolled):
    ring = [on_globe(*corner) for corner in ring] if rolled else ring
    return (*ring, ring[0])


@st.composite
def spots(draw, area):
    """Places of the globe: anywhere near, on corners, about on edges, and a hair's breadth beside those."""
    ring = draw(st.sampled_from([ring for rings in area.polygons for ring in rings]))
    at, share = draw(st.integers(0, len(ring) - 2)), draw(st.sampled_from([0.0, 0.5, 1 / 3, 0.9]))
    (lon, lat), (lon2, lat2) = ring[at], ring[at + 1]
    turn = 360 * round((lon - lon2) / 360) if abs(lon - lon2) != 360 else 0
    lon, lat = lon + share * (lon2 + turn - lon), lat + share * (lat2 - lat)
    nudge = st.one_of(
        st.sampled_from([0.0, -np.inf, np.inf]).map(lambda to: lambda x: float(np.nextafter(x, to)) if to else x),
        st.floats(-5, 5).map(lambda step: lambda x: x + step),
    )
    return on_globe(draw(nudge)(lon), draw(nudge)(lat))


def assert_lawful(table, conditions, pairs):
    """The kernel is never wrong where it is sure; with the law's help it is always right; boxes lose nothing."""
    numbers, lons, lats = (np.array(part) for part in zip(*((n, *spot) for n, spot in pairs), strict=True))
    expected = [law(conditions[number], spot) for number, spot in pairs]
    sure = kernel.decide(numbers, lons, lats, *table.list_kernel_arrays())
    assert all(answer in (kernel.UNSURE, holds) for answer, holds in zip(sure, expected, strict=True))
    assert table.decide(numbers, lons, lats).tolist() == expected
    for (number, (lon, lat)), holds in zip(pairs, expected, strict=True):
        west, south, east, north = PlaceTable.compute_box(conditions[number])
        assert -180 <= west <= east <= 180
        assert -90 <= south <= north <= 90
        assert not holds or (west <= lon <= east and south <= lat <= north)


@given(st.lists(st.one_of(areas(), stars()), min_size=1, max_size=3), st.data())
def test_areas_are_decided_as_the_law_does(areas_drawn, data):
    conditions = [Within(area) for area in areas_drawn]
    pairs = [(n, spot) for n, area in enumerate(areas_drawn) for spot in data.draw(st.lists(spots(area), min_size=3))]
    pairs += [(n, on_globe(*spot)) for n, area in enumerate(areas_drawn) for spot in spots_of(area)]
    table = PlaceTable.build(conditions)
    assert_lawful(table, conditions, pairs)
    assert_lawful(PlaceTable.from_arrays(table.to_arrays()), conditions, pairs)


@st.composite
def rims(draw, center, metres):
    """A place about so far from the centre, along some bearing; also its antipode and any place at all."""
    angle = metres / EARTH_RADIUS_M * (1 + draw(st.sampled_from([0.0, 1e-15, -1e-15, 1e-10, -1e-10, 1e-8, 0.01, -0.5])))
    bearing, lat = draw(st.floats(0, 2 * math.pi)), math.radians(center.lat)
    lat2 = math.asin(
        max(-1, min(1, math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * math.cos(bearing)))
    )
    across = math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(lat), math.cos(angle) - math.sin(lat) * math.sin(lat2)
    )
    rim = on_globe(math.degrees(math.radians(center.lon) + across), math.degrees(lat2))
    other = draw(points())
    antipode = on_globe(center.lon + 180, -center.lat)
    return draw(st.sampled_from([rim, rim, (center.lon, center.lat), antipode, (other.lon, other.lat)]))


centers = st.one_of(points(), st.builds(Point, st.floats(-180, 180), st.floats(-90, 90)))
girth = math.pi * EARTH_RADIUS_M
distances = st.one_of(
    st.sampled_from([0, 1e-9, 1e-5, 1, 1500, girth / 2, girth, girth * (1 - 1e-12), girth + 1e-3, girth * 1.01, 2**62]),
    st.floats(0, 3e7),
    st.floats(0, 1e4),
)


@given(st.lists(st.builds(Near, centers, distances), min_size=1, max_size=3), st.data())
def test_circles_are_decided_as_the_law_does(conditions, data):
    pairs = [
        (n, spot)
        for n, near in enumerate(conditions)
        for spot in data.draw(st.lists(rims(near.center, near.metres), min_size=3))
    ]
    table = PlaceTable.build(conditions)
    assert_lawful(table, conditions, pairs)
    assert_lawful(PlaceTable.from_arrays(table.to_arrays()), conditions, pairs)


@given(st.lists(st.one_of(areas().map(Within), stars().map(Within), st.builds(Near, centers, distances)), max_size=5))
def test_a_table_gives_back_its_conditions(conditions):
    table = PlaceTable.build(conditions)
    again = PlaceTable.from_arrays(table.to_arrays())
    for other in (table, again, pickle.loads(pickle.dumps(again))):
        assert len(other) == len(conditions)
        assert [other[place] for place in range(len(other))] == conditions


def test_circles_and_areas_share_a_table():
    square = Area(((((0, 0), (2, 0), (2, 2), (0, 2), (0, 0)),),))
    table = PlaceTable.build([Near(Point(0, 0), 1000), Within(square), Near(Point(9, 9), 0)])
    decisions = table.decide([0, 1, 2, 0, 1, 2], [0, 1, 9, 1, 3, 9.1], [0, 1, 9, 1, 1, 9])
    assert decisions.tolist() == [True, True, True, False, False, False]


def test_few_answers_need_the_law():
    rng = np.random.default_rng(4)
    corners = [(10 * math.cos(a), 10 * math.sin(a)) for a in np.linspace(0, 2 * math.pi, 20, endpoint=False)]
    table = PlaceTable.build([Within(Area((((*corners, corners[0]),),))), Near(Point(0, 0), 1e6)])
    lons, lats = rng.uniform(-12, 12, 2000), rng.uniform(-12, 12, 2000)
    for place in (0, 1):
        sure = kernel.decide(np.full(2000, place), lons, lats, *table.list_kernel_arrays())
        assert np.count_nonzero(sure == kernel.UNSURE) == 0
        assert 500 < np.count_nonzero(sure) < 1900


def test_a_long_coast_is_cut_into_runs():
    angles = np.linspace(0, 2 * math.pi, 3000, endpoint=False)
    reach = 5 + 0.4 * np.sin(37 * angles)
    corners = list(zip((reach * np.cos(angles)).tolist(), (reach * np.sin(angles)).tolist(), strict=True))
    condition = Within(Area((((*corners, corners[0]),),)))
    rng = np.random.default_rng(5)
    spots = [*zip(rng.uniform(-6, 6, 500).tolist(), rng.uniform(-6, 6, 500).tolist(), strict=True), *corners[:50]]
    assert_lawful(PlaceTable.build([condition]), [condition], [(0, spot) for spot in spots])


@pytest.mark.parametrize(
    ("condition", "box"),
    [
        (Within(Area(((((1, 2), (3, 2), (3, 5), (1, 2)),),))), (1, 2, 3, 5)),
        (Within(Area(((((-180, 2), (-170, 2), (-170, 5), (-180, 2)),),))), (-180, 2, 180, 5)),
        (Within(Area(((((179, 2), (-179, 2), (-179, 5), (179, 2)),),))), (-180, 2, 180, 5)),
    ],
)
def test_the_box_of_an_area_is_its_bounds_or_goes_around(condition, box):
    assert PlaceTable.compute_box(condition) == box


def test_the_box_of_a_circle_is_tight_and_goes_around_at_poles_and_the_antimeridian():
    west, south, east, north = PlaceTable.compute_box(Near(Point(10, 60), 111_195.08))
    assert (west, south, east, north) == pytest.approx((8, 59, 12, 61), abs=2e-3)
    assert PlaceTable.compute_box(Near(Point(10, 89.9), 20_000))[::2] == (-180, 180)
    assert PlaceTable.compute_box(Near(Point(179.99, 0), 20_000))[::2] == (-180, 180)
    assert PlaceTable.compute_box(Near(Point(0, 0), 3e7)) == (-180, -90, 180, 90)


def test_a_region_must_have_become_its_area():
    with pytest.raises(TidingsError, match="bind"):
        PlaceTable.build([WithinRegion("berlin")])
    with pytest.raises(IndexError, match="`1`"):
        PlaceTable.build([Near(Point(0, 0), 1)])[1]
