"""Whether a polygon holds a place, the naive way: exact, edges the short way round, the boundary inside."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise


def holds(rings, place) -> bool:
    return any(_holds_unrolled(rings, (place[0] + turn, place[1])) for turn in (-720, -360, 0, 360, 720))


def _holds_unrolled(rings, place) -> bool:
    outline, *holes = (unroll_ring(ring) for ring in rings)
    if on_ring(outline, place):
        return True
    if not is_in_ring(outline, place):
        return False
    for hole in holes:
        for turn in (-360, 0, 360):
            moved = (place[0] + turn, place[1])
            if on_ring(hole, moved):
                return True
            if is_in_ring(hole, moved):
                return False
    return True


def unroll_ring(ring):
    places = [(Fraction(ring[0][0]), Fraction(ring[0][1]))]
    for (before, _), (lon, lat) in pairwise(ring):
        step = Fraction(lon) - Fraction(before)
        if 180 < abs(step) < 360:
            step += 360 if step < 0 else -360
        places.append((places[-1][0] + step, Fraction(lat)))
    return places


def on_ring(ring, place) -> bool:
    return any(on_edge(first, second, place) for first, second in pairwise(ring))


def on_edge(first, second, place) -> bool:
    (x1, y1), (x2, y2), (x, y) = first, second, place
    straight = (x2 - x1) * (y - y1) == (y2 - y1) * (x - x1)
    return straight and min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2)


def is_in_ring(ring, place) -> bool:
    """Count the edges that a ray to the east crosses."""
    x, y = place
    crossings = 0
    for (x1, y1), (x2, y2) in pairwise(ring):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            crossings += 1
    return crossings % 2 == 1
