"""HEM: its plan, its grid, its counts, and the places where the paper's text had to be corrected."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.kernels.papers import hem as kernels
from tidings.matcher.registry import ALGORITHMS
from tidings.papers.hem.hem import Hem
from tidings.papers.hem.range_matcher import RangeMatcher
from tidings.papers.hem.range_table import RangeTable

rates = st.lists(st.integers(0, 100).map(lambda share: share / 100), min_size=1, max_size=6)


def plan_order(choose, theta):
    order, methods = np.zeros(len(theta), np.int64), np.zeros(len(theta), np.int64)
    choose(np.array(theta), order, methods)
    return order.tolist(), methods.tolist()


def cost(theta, order, methods):
    """Formula 5."""
    total, left = 0.0, 1.0
    for m, method in zip(order, methods, strict=True):
        total += theta[m] if method == kernels.TRIANGLE else left
        left *= 1 - theta[m]
    return total


@given(rates)
def test_algorithm_4_goes_by_rate_and_turns_to_the_direct_method_once(theta):
    order, methods = plan_order(kernels.plan_near_optimal, theta)
    assert sorted(order) == list(range(len(theta)))
    assert [theta[m] for m in order] == sorted(theta, reverse=True)
    assert methods == sorted(methods)
    assert methods[0] == kernels.TRIANGLE
    left = 1.0
    for at in range(1, len(order)):
        left *= 1 - theta[order[at - 1]]
        if methods[at - 1] == kernels.TRIANGLE:
            assert (methods[at] == kernels.TRIANGLE) == (left > theta[order[at]])


def test_what_is_left_is_held_to_the_share_that_fails():
    """4.3.3 compares with the "matching rate", line 8 of Algorithm 4 with theta: the cost of the triangles is theta."""
    theta = [0.6, 0.3]  # 0.4 are left: more than fail on the second attribute (0.3), fewer than match (0.7)
    order, methods = plan_order(kernels.plan_near_optimal, theta)
    assert methods == [kernels.TRIANGLE, kernels.TRIANGLE]
    assert cost(theta, order, methods) < cost(theta, order, [kernels.TRIANGLE, kernels.DIRECT])


@given(rates)
def test_the_optimal_plan_is_the_best_that_the_observations_allow(theta):
    best = cost(theta, *plan_order(kernels.plan_optimal, theta))
    plans = (
        (order, methods)
        for order in permutations(range(len(theta)))
        for methods in product((kernels.TRIANGLE, kernels.DIRECT), repeat=len(theta))
        if methods[0] == kernels.TRIANGLE and list(methods) == sorted(methods)
    )
    if len(theta) <= 5:
        assert best == pytest.approx(min(cost(theta, order, methods) for order, methods in plans))
    assert best <= cost(theta, *plan_order(kernels.plan_near_optimal, theta)) + 1e-9


def fill_matcher(count=3000, *, m=3, delta=0.3, seed=1, **options):
    rng = np.random.default_rng(seed)
    lows = rng.integers(0, round((1 - delta) * 1000), (m, count)) / 1000
    table = RangeTable.from_ends(lows, lows + delta, rng.integers(0, 4, (m, count)).astype(np.uint8))
    hem = Hem(**options)
    hem.insert(table, np.arange(count, dtype=np.int32))
    return hem, table, rng


def scan(table, event):
    return [
        row for row in np.flatnonzero(table.alive) if all(inside(table, m, row, event[m]) for m in range(len(event)))
    ]


def inside(table, m, row, value):
    low, high, marks = table.lows[m, row], table.highs[m, row], table.ends[m, row]
    return (low < value or (low == value and not marks & 1)) and (value < high or (value == high and not marks & 2))


@pytest.mark.parametrize("options", [{}, {"candidates": "linked"}, {"plan": "optimal"}])
def test_every_variant_finds_what_a_scan_finds(options):
    hem, table, rng = fill_matcher(**options)
    for event in rng.integers(-50, 1050, (20, 3)) / 1000:
        assert sorted(hem.match(table, event).tolist()) == scan(table, event)


def test_every_plan_gives_the_same_answer():
    hem, table, _ = fill_matcher(300)
    event = np.array([0.3, 0.5, 0.71])
    for order in permutations(range(3)):
        for methods in product((kernels.TRIANGLE, kernels.DIRECT), repeat=3):
            rows = hem.run(table, event, kernels.MatchPlan(hem.event_plan.theta, np.array(order), np.array(methods)))
            assert sorted(rows.tolist()) == scan(table, event)


def test_the_rate_of_an_event_follows_rows_that_come_and_go():
    hem, table, _ = fill_matcher(4000, m=1, delta=0.5)
    event = np.array([0.1])
    hem.plan(event)
    share = 1 - len(scan(table, event)) / 4000
    assert hem.event_plan.theta[0] == pytest.approx(share, abs=0.02)
    gone = np.flatnonzero(table.lows[0] > 0.1).astype(np.int32)  # all that begin above the event's value
    hem.delete(table, gone)
    table.discard(gone)
    hem.plan(event)
    assert hem.event_plan.theta[0] == pytest.approx(0.0, abs=0.02)
    assert sorted(hem.match(table, event).tolist()) == scan(table, event)


@pytest.mark.parametrize("candidates", ["linked", "array"])
def test_both_forms_of_the_candidates_follow_rows_that_come_and_go(candidates):
    hem, table, rng = fill_matcher(1500, candidates=candidates)
    gone = rng.permutation(1500)[:700].astype(np.int32)
    events = rng.integers(-50, 1050, (8, 3)) / 1000
    events[0, 1] = np.nan  # absent
    hem.delete(table, gone)
    table.alive[gone] = False
    assert hem.match(table, events[0]).tolist() == []  # every row asks for every attribute
    for event in events[1:]:
        assert sorted(hem.match(table, event).tolist()) == scan(table, event)
    for row in gone[:300]:
        table.alive[row] = True
        hem.insert(table, np.array([row], np.int32))
    for event in events[1:]:
        assert sorted(hem.match(table, event).tolist()) == scan(table, event)


def test_the_cell_of_a_range_uses_the_whole_grid():
    """Formula 3 prints a row height of R / tau; half-widths reach R / 2 only, so half of the rows would stay empty."""
    lows, highs = np.array([[0.0, 0.0, 0.0]]), np.array([[1.0, 0.5, 0.0]])
    table = RangeTable.from_ends(lows, highs, np.zeros((1, 3), np.uint8))
    hem = Hem()
    hem.insert(table, np.arange(3, dtype=np.int32))
    rows = [number // (2 * kernels.TAU) for number in np.flatnonzero(hem.lists.sizes)]
    assert rows == [0, kernels.TAU // 2, kernels.TAU - 1]


def test_algorithm_1_ends_where_a_row_of_the_triangle_ends():
    """Line 17 runs to column 2 tau - i of row i, which is one past the row's last cell: it is not to be visited."""
    hem, _, _ = fill_matcher(10, m=1)
    sizes = np.ones_like(hem.lists.sizes)
    for row in range(kernels.TAU):
        begin = row * 2 * kernels.TAU
        sizes[begin + row : begin + 2 * kernels.TAU - row] = 0  # the triangle is empty, and all around it is row 0
    starts, pool, member = np.zeros_like(hem.lists.starts), np.zeros_like(hem.lists.pool), np.ones(10, np.uint8)
    lists = hem.lists.arrays._replace(start=starts, size=sizes, pool=pool)
    for value in (0.0, 0.5, 1.0):
        kernels.match_by_triangle(kernels.TriangleGrids(hem.closed_ends, hem.domains.domain, lists), 0, value, member)
        assert member.all()


def test_no_cell_lies_outside_the_triangle():
    hem, _, _ = fill_matcher(5000, m=1, delta=0.01)
    for number in np.flatnonzero(hem.lists.sizes).tolist():
        row, column = divmod(number, 2 * kernels.TAU)
        assert row <= column <= 2 * kernels.TAU - 1 - row


def test_an_empty_range_accepts_nothing():
    """Theorem 4 (2) accepts v for [v, v), which Theorem 1 (1) excludes; nothing lies in it."""
    for options in ({}, {"candidates": "linked"}):
        hem = RangeMatcher("hem", Hem(**options))
        matcher = td.Matcher("hem")
        matcher.backend.algorithm = hem
        matcher.add("empty", "a in [5 .. 5) and b in [0 .. 9]")
        matcher.add("point", "a in [5 .. 5] and b in [0 .. 9]")
        assert matcher.match({"a": 5, "b": 5}) == ["point"]


def test_values_outside_the_domain_seen_so_far_are_found():
    matcher = td.Matcher("hem")
    matcher.add_many([("low", "a < 5"), ("mid", "a in [3 .. 7]"), ("high", "a > 6"), ("any", "a exists")])
    assert sorted(matcher.match({"a": -1e308})) == ["any", "low"]
    assert sorted(matcher.match({"a": 1e308})) == ["any", "high"]
    matcher.add_many([("far", "a in [-1e308 .. 1e308]"), ("tiny", "a in [5e-324 .. 1e-323]")])
    assert sorted(matcher.match({"a": 5e-324})) == ["any", "far", "low", "tiny"]
    assert sorted(matcher.match({"a": 6})) == ["any", "far", "mid"]


def test_explain_shows_the_grid():
    matcher = td.Matcher("hem")
    matcher.add("s", "a < 5 and b in [1 .. 2]")
    plan = matcher.explain().to_dict()
    assert "80 x 160" in str(plan)
    assert "hem" in ALGORITHMS
