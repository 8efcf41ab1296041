"""Whether a place lies in an area or near a centre, decided in floats wherever floats are sure.

An area is its edges: a point lies inside when a ray to the east crosses them an odd number of times, which
holds for outlines, holes and several polygons at once. Edges are kept in runs, each with its bounds: a run
beside or behind the point crosses the ray nowhere, and a run wholly before it crosses as often, odd or even,
as its two ends say. Only a run around the point is looked at edge by edge, and there a determinant's sign
counts when it is beyond the rounding error (Shewchuk, 1997, the first stage of `orient2d`).

A circle compares the haversine of the distance with that of the limit, not the distances: the arc sine,
which is bad near the antipode, is not needed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import Float, FloatArray, Int, IntArray

OUTSIDE, INSIDE, UNSURE = 0, 1, 2
"""The answers; the boundary is inside."""

TURN = 360.0
ROUNDING = 3.3306690738754716e-16  # (3 + 16 e) e, where e is 2**-53
UNDERFLOW = 1e-300  # products may have lost their last bits below this
BAND = 1e-9  # of the haversine: some thousand times what the roundings of both sides add up to
LEAST_BAND = 1e-30  # 13 nanometres; the latitudes' own rounding is a tenth of that


@jit_inline
def _find_side(x: Float, y: Float, x1: Float, y1: Float, x2: Float, y2: Float) -> Float:
    """Return above zero where the point is left of the edge, below where right, zero where floats are not sure."""
    left = (x1 - x) * (y2 - y)
    right = (x2 - x) * (y1 - y)
    determinant = left - right
    sure = abs(determinant) > ROUNDING * (abs(left) + abs(right)) + UNDERFLOW
    return determinant if sure else 0.0


@jit
def count_crossings(x: Float, y: Float, first: Int, last: Int, vertices: FloatArray) -> Int:
    """Count the edges from vertex `first` to `last` that cross the ray, 0 or 1; 2 not sure, 3 on an edge."""
    count = 0
    x1, y1 = vertices[first, 0], vertices[first, 1]
    for at in range(first + 1, last + 1):
        x2, y2 = vertices[at, 0], vertices[at, 1]
        if (y1 > y) != (y2 > y):
            if x1 > x and x2 > x:
                count ^= 1
            elif x1 >= x or x2 >= x:
                side = _find_side(x, y, x1, y1, x2, y2)
                if side == 0.0:
                    upright = x1 == x and x2 == x
                    corner = (x1 == x and y1 == y) or (x2 == x and y2 == y)
                    return 3 if upright or corner else 2
                count ^= (side > 0.0) == (y2 > y1)
        elif y2 == y and (x2 == x or (y1 == y and min(x1, x2) <= x <= max(x1, x2))):
            return 3
        x1, y1 = x2, y2
    return count


@jit
def decide_area(
    x: Float, y: Float, low: Int, high: Int, run_ends: IntArray, run_bounds: FloatArray, vertices: FloatArray
) -> Int:
    """Decide an unrolled place in the area whose runs go from `low` up to `high`."""
    count = 0
    for run in range(low, high):
        if y < run_bounds[run, 1] or y > run_bounds[run, 3] or x > run_bounds[run, 2]:
            continue
        first, last = run_ends[run, 0], run_ends[run, 1]
        if x < run_bounds[run, 0]:
            count ^= (vertices[first, 1] > y) != (vertices[last, 1] > y)
            continue
        parity = count_crossings(x, y, first, last, vertices)
        if parity >= 2:
            return INSIDE if parity == 3 else UNSURE
        count ^= parity
    return INSIDE if count else OUTSIDE


@jit_inline
def _decide_circle(lon: Float, lat: Float, center_lon: Float, center_lat: Float, limit: Float) -> Int:
    """Decide a place near a centre, by the same steps as `algebra.law.evaluate.compute_distance_m`."""
    lat1, lat2 = math.radians(center_lat), math.radians(lat)
    up, along = math.sin((lat2 - lat1) / 2), math.sin(math.radians(lon - center_lon) / 2)
    haversine = up * up + math.cos(lat1) * math.cos(lat2) * (along * along)
    if abs(haversine - limit) <= BAND * limit + LEAST_BAND:
        return UNSURE
    return INSIDE if haversine < limit else OUTSIDE


@jit
def decide_one(
    place: Int, lon: Float, lat: Float, frames: FloatArray, run_start: IntArray, run_ends: IntArray,
    run_bounds: FloatArray, vertices: FloatArray,
) -> Int:  # fmt: skip
    """Decide one place of the globe for one condition of the table."""
    low, high = run_start[place], run_start[place + 1]
    if low == high:
        return _decide_circle(lon, lat, frames[place, 0], frames[place, 1], frames[place, 3])
    answer = OUTSIDE
    if frames[place, 1] <= lat <= frames[place, 3]:
        for turn in (0.0, -TURN, TURN):
            x = lon + turn
            if frames[place, 0] <= x <= frames[place, 2]:
                verdict = decide_area(x, lat, low, high, run_ends, run_bounds, vertices)
                if verdict == INSIDE:
                    return INSIDE
                answer = max(answer, verdict)
    return answer


@jit
def decide(
    places: IntArray, at_lon: FloatArray, at_lat: FloatArray, frames: FloatArray, run_start: IntArray,
    run_ends: IntArray, run_bounds: FloatArray, vertices: FloatArray,
) -> npt.NDArray[np.int8]:  # fmt: skip
    """Return `OUTSIDE`, `INSIDE` or `UNSURE` for each pair: condition `places[i]`, point `at_lon[i]`, `at_lat[i]`."""
    answers = np.empty(len(places), np.int8)
    for at in range(len(places)):
        answers[at] = decide_one(places[at], at_lon[at], at_lat[at], frames, run_start, run_ends, run_bounds, vertices)
    return answers
