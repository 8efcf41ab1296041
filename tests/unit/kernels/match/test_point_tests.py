"""The kernel of places against exact arithmetic: where it is sure it is right, and it is unsure only near edges."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tidings.kernels.match import point_tests as kernel

coordinates = st.one_of(st.integers(-3, 3).map(float), st.floats(-3, 3), st.floats(-1e-200, 1e-200))
corners = st.tuples(coordinates, coordinates)
rings = st.lists(corners, min_size=3, max_size=40).map(lambda ring: [*ring, ring[0]])


def exactly(x, y, ring):
    """Count the crossings of a ray to the east in rational numbers: odd is 1; on an edge is 3."""
    odd = 0
    for (x1, y1), (x2, y2) in pairwise(
        (Fraction(start) - Fraction(x), Fraction(end) - Fraction(y)) for start, end in ring
    ):
        side = x1 * y2 - x2 * y1
        if side == 0 and x1 * x2 <= 0 and y1 * y2 <= 0:
            return 3
        if (y1 > 0) != (y2 > 0):
            odd ^= (side > 0) == (y2 > y1)
    return int(odd)


def runs_of(ring, size):
    """Cut a ring as the engine does: neighbours share a vertex."""
    vertices = np.array(ring)
    ends = [(first, min(first + size, len(ring) - 1)) for first in range(0, len(ring) - 1, size)]
    bounds = [(*vertices[a : b + 1].min(axis=0), *vertices[a : b + 1].max(axis=0)) for a, b in ends]
    return np.array(ends, np.int64), np.array(bounds), vertices


@st.composite
def telling_points(draw, ring):
    """Anywhere, on a vertex, about on an edge, and a hair's breadth beside each."""
    x, y = draw(corners)
    if draw(st.booleans()):
        at, share = draw(st.integers(0, len(ring) - 2)), draw(st.sampled_from([0.0, 0.5, 0.25, 0.3, 0.9]))
        (x1, y1), (x2, y2) = ring[at], ring[at + 1]
        x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
    step = st.sampled_from([0.0, -np.inf, np.inf])
    x, y = (value if to == 0 else float(np.nextafter(value, to)) for value, to in ((x, draw(step)), (y, draw(step))))
    return x, y


@given(rings, st.data(), st.integers(1, 20))
def test_a_sure_answer_is_the_exact_one(ring, data, size):
    x, y = data.draw(telling_points(ring))
    ends, bounds, vertices = runs_of(ring, size)
    decision = kernel.decide_area(x, y, 0, len(ends), ends, bounds, vertices)
    expected = exactly(x, y, ring)
    assert decision in (kernel.UNSURE, kernel.INSIDE if expected else kernel.OUTSIDE)


@given(rings, corners)
def test_far_from_every_edge_the_kernel_is_sure(ring, point):
    x, y = point
    for (x1, y1), (x2, y2) in pairwise(ring):
        twice_area = abs((x1 - x) * (y2 - y) - (x2 - x) * (y1 - y))
        assume(twice_area > 1e-9)
    assert kernel.decide_area(x, y, 0, 1, *runs_of(ring, len(ring))) != kernel.UNSURE


def test_corners_and_upright_and_level_edges_are_sure():
    square = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0)]
    for x in (0.0, 2.0, 4.0):
        for y in (0.0, 2.0, 4.0):
            assert kernel.decide_area(x, y, 0, 2, *runs_of(square, 2)) == kernel.INSIDE
    for x, y in [(-1.0, 0.0), (-1.0, 4.0), (5.0, 0.0), (5.0, 4.0), (5.0, 2.0), (2.0, 5.0), (0.0, -1.0), (4.0, 5.0)]:
        assert kernel.decide_area(x, y, 0, 2, *runs_of(square, 2)) == kernel.OUTSIDE


def test_what_is_not_a_number_is_outside():
    ends, bounds, vertices = runs_of([(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 0.0)], 16)
    frames = np.array([[0.0, 0.0, 4.0, 4.0], [1.0, 1.0, 5.0, 1e-9]])
    starts = np.array([0, 1, 1])
    numbers, nothing = np.array([0, 1]), np.array([np.nan, np.nan])
    assert kernel.decide(numbers, nothing, nothing, frames, starts, ends, bounds, vertices).tolist() == [0, 0]
