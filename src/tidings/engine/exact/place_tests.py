"""The places of a segment's filters: areas and circles in flat arrays, decided exactly for candidates.

The index knows only the bounding box of a place (`PlaceTable.compute_box`, which contains it). Points inside the box
are decided by a kernel in floats wherever rounding cannot matter; the few so near a boundary that it could go to the
definition in exact arithmetic (the law). Longitudes are kept unrolled across the antimeridian, as the law reads them,
and as written where the two differ, so that a table opened from its arrays gives back the very conditions it was
built from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.algebra.law.evaluate import EARTH_RADIUS_M, compute_distance_m
from tidings.engine.arrays import compute_starts, find_starts, freeze
from tidings.errors import TidingsError
from tidings.kernels.array_types import BoolArray, FloatArray, IntArray
from tidings.kernels.match import point_tests as kernel
from tidings.model import Near, Point, Within
from tidings.model.areas import Area, find_bounds, shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

Place: TypeAlias = Within | Near
Box: TypeAlias = tuple[float, float, float, float]

RUN = 16
"""Edges in a run: the kernel reads a run's bounds in the time of some three edges."""

MARGIN_DEG = 1e-9
"""Added to a circle's box on every side: a tenth of a millimetre, a thousand times what rounding can do."""

FLAT = 1 - 1e-6
"""From this sine on, a circle nearly reaches a pole, and its box takes all longitudes."""


@dataclass(frozen=True, slots=True, eq=False)
class PlaceTable:
    """Conditions on a place, by number: the order in which `build` got them.

    A `..._start` has where the parts of each owner begin in the array of all parts, and the end of the last one.

    >>> table = PlaceTable.build([Near(Point(13.4, 52.5), 1000)])
    >>> table.decide([0, 0], [13.41, 13.5], [52.5, 52.5]).tolist()
    [True, False]
    """

    frames: FloatArray  # of an area west, south, east, north; of a circle longitude, latitude, metres, haversine
    polygon_start: IntArray  # of each place; a circle has none
    ring_start: IntArray  # of each polygon
    vertex_start: IntArray  # of each ring
    vertices: FloatArray  # longitude, unrolled, and latitude
    written: FloatArray  # the longitudes before they were unrolled; empty where that changed none
    written_start: IntArray  # of each ring: a ring that rounding leaves open gets a vertex more
    run_start: IntArray  # of each place
    run_ends: IntArray  # first and last vertex of each run
    run_bounds: FloatArray  # west, south, east, north of each run
    decoded: dict[int, Place] = field(init=False, default_factory=dict, repr=False)  # conditions made so far

    @classmethod
    def build(cls, conditions: Iterable[Place]) -> PlaceTable:
        """Build from bound conditions: a region must have become its area."""
        import shapely

        places = list(conditions)
        areas = [_get_area(condition) for condition in places]
        numbers = np.flatnonzero([area is not None for area in areas])
        shapes = np.array([shape(area) for area in areas if area is not None], object)
        polygons, of_shape = shapely.get_parts(shapes, return_index=True)
        rings, of_polygon = shapely.get_rings(polygons, return_index=True)
        vertices, of_ring = shapely.get_coordinates(rings, return_index=True)
        vertex_start = find_starts(of_ring, len(rings))
        written_rings = [ring for area in areas if area for polygon in area.polygons for ring in polygon]
        written = np.array([lon for ring in written_rings for lon, _ in ring], np.float64)
        written_start = compute_starts([len(ring) for ring in written_rings])
        same = np.array_equal(written, vertices[:, 0])
        run_ring, run_ends = _cut_runs(vertex_start)
        table = cls(
            frames=np.array([_compute_frame(condition) for condition in places], np.float64).reshape(-1, 4),
            polygon_start=find_starts(numbers[of_shape], len(places)),
            ring_start=find_starts(of_polygon, len(polygons)),
            vertex_start=vertex_start,
            vertices=vertices,
            written=written[:0] if same else written,
            written_start=written_start[:0] if same else written_start,
            run_start=find_starts(numbers[of_shape[of_polygon[run_ring]]], len(places)),
            run_ends=run_ends,
            run_bounds=_compute_bounds(run_ends, vertices),
        )
        table.decoded.update(enumerate(places))
        return table

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> PlaceTable:
        """Wrap the arrays of `to_arrays`, which may be memory-mapped; none is read."""
        return cls(**{name: arrays[name] for name in ARRAYS})

    def __post_init__(self) -> None:
        """Make the arrays read-only, as memory maps are: kernels then compile for one kind."""
        for name in ARRAYS:
            object.__setattr__(self, name, freeze(getattr(self, name)))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the flat arrays that `from_arrays` takes."""
        return {name: getattr(self, name) for name in ARRAYS}

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, place: int) -> Place:
        """Return a condition; one from arrays is decoded when it is first needed."""
        if not 0 <= place < len(self):
            msg = f"place `{place}` is not among the {len(self)}"
            raise IndexError(msg)
        if place not in self.decoded:
            self.decoded[int(place)] = self._decode(place)
        return self.decoded[place]

    def _decode(self, place: int) -> Place:
        first, last = self.polygon_start[place], self.polygon_start[place + 1]
        if first == last:
            lon, lat, metres, _ = self.frames[place].tolist()
            return Near(Point(lon, lat), metres)
        return Within(Area(tuple(tuple(self._decode_rings(polygon)) for polygon in range(first, last))))

    def _decode_rings(self, polygon: int) -> Iterator[tuple[tuple[float, float], ...]]:
        lons, start = self.vertices[:, 0], self.vertex_start
        if len(self.written):
            lons, start = self.written, self.written_start
        for ring in range(self.ring_start[polygon], self.ring_start[polygon + 1]):
            first, count = self.vertex_start[ring], start[ring + 1] - start[ring]
            lats = self.vertices[first : first + count, 1]
            yield tuple(zip(lons[start[ring] : start[ring + 1]].tolist(), lats.tolist(), strict=True))

    def decide(self, conditions: Sequence[int] | IntArray, lons: Sequence[float] | FloatArray, lats: Any) -> BoolArray:
        """Tell for each pair of a condition's number and a point whether the condition accepts the point."""
        numbers = freeze(np.asarray(conditions, np.int64))
        at_lon, at_lat = (freeze(np.asarray(degrees, np.float64)) for degrees in (lons, lats))
        answers = kernel.decide(numbers, at_lon, at_lat, *self.list_kernel_arrays())
        for pair in np.flatnonzero(answers == kernel.UNSURE):  # by the definition, in exact arithmetic
            condition, point = self[int(numbers[pair])], Point(float(at_lon[pair]), float(at_lat[pair]))
            if isinstance(condition, Within):
                answers[pair] = condition.area.holds(point)
            else:
                answers[pair] = compute_distance_m(condition.center, point) <= condition.metres
        return np.asarray(answers == kernel.INSIDE)

    def list_kernel_arrays(self) -> tuple[FloatArray, IntArray, IntArray, FloatArray, FloatArray]:
        """Return the arrays that the kernels take, in their order."""
        return self.frames, self.run_start, self.run_ends, self.run_bounds, self.vertices

    @staticmethod
    def compute_box(condition: Place) -> Box:
        """Return west, south, east, north of a box that contains every point which the condition accepts.

        Where the condition reaches the antimeridian, the box goes all around: 180 and -180 are one place.
        """
        area = _get_area(condition)
        if area is None:
            assert isinstance(condition, Near)
            return _compute_circle_box(condition)
        west, south, east, north = find_bounds(area)
        return (west, south, east, north) if west > -180 and east < 180 else (-180.0, south, 180.0, north)


ARRAYS = tuple(name for name in PlaceTable.__slots__ if name != "decoded")
"""The names of the arrays, in the order of the fields."""


def _get_area(condition: Place) -> Area | None:
    match condition:
        case Within(area):
            return area
        case Near():
            return None
    msg = f"`{condition!r:.60}` is no area and no circle; bind the filter first"
    raise TidingsError(msg)


def _compute_frame(condition: Place) -> Box:
    if isinstance(condition, Within):
        return find_bounds(condition.area)
    center, half = condition.center, float(condition.metres) / (2 * EARTH_RADIUS_M)
    # Half the circumference and more is everywhere; at just half, the exact definition decides.
    limit = 2.0 if half > math.pi / 2 + 1e-9 else math.sin(half) ** 2
    return center.lon, center.lat, condition.metres, limit


def _compute_circle_box(condition: Near) -> Box:
    center, angle = condition.center, math.degrees(condition.metres / EARTH_RADIUS_M) * (1 + 1e-9) + MARGIN_DEG
    south, north = center.lat - angle, center.lat + angle
    if south <= -90 or north >= 90:
        return -180.0, max(south, -90.0), 180.0, min(north, 90.0)
    # The meridians that touch a circle: its angle's sine over the cosine of its centre's latitude.
    sine = math.sin(math.radians(angle)) / math.cos(math.radians(center.lat))
    across = math.degrees(math.asin(sine)) + MARGIN_DEG if sine < FLAT else 180.0
    west, east = center.lon - across, center.lon + across
    return (west, south, east, north) if west > -180 and east < 180 else (-180.0, south, 180.0, north)


def _cut_runs(vertex_start: IntArray) -> tuple[IntArray, IntArray]:
    """Return the ring of each run, and its first and last vertex; neighbours share one."""
    first, last = vertex_start[:-1], vertex_start[1:] - 1
    counts = -(-(last - first) // RUN)
    ring = np.repeat(np.arange(len(first)), counts)
    within = np.arange(len(ring)) - np.repeat(np.cumsum(counts) - counts, counts)
    start = first[ring] + RUN * within
    return ring, np.stack((start, np.minimum(start + RUN, last[ring])), axis=1)


def _compute_bounds(run_ends: IntArray, vertices: FloatArray) -> FloatArray:
    if not len(run_ends):
        return np.empty((0, 4))
    ends = (run_ends + np.array([0, 1])).ravel()  # the stretches between two runs are computed too, and dropped
    padded = np.append(vertices, [[0.0, 0.0]], axis=0)  # so that the end of the last run is a position
    return np.hstack([side.reduceat(padded, ends, axis=0)[::2] for side in (np.minimum, np.maximum)])
