"""Tables of probabilities: laws of how many events lie within a horizon."""

from __future__ import annotations

from math import comb, exp, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.forecast.horizon import Horizon
from tidings.forecast.learning.counts import Traffic
from tidings.forecast.predicting.probability_table import (
    FARTHEST,
    MEANS,
    SHARES,
    compute_event_count_weights,
    find_offset,
    locate_on_grids,
    require_times,
)

TIMED = Traffic(seen=100, gaps=50, elapsed=25e6)
"""Two events in a second."""


@given(st.integers(1, 40))
def test_of_the_streams_events_binomially_many_are_of_the_key(count):
    law = compute_event_count_weights(Horizon(count), keyed=True, traffic=Traffic())
    assert law.shape == (len(SHARES), count + 1)
    for share, row in zip(SHARES[:8], law, strict=False):
        wanted = [comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(count + 1)]
        assert row == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("count", [1, 7, FARTHEST, FARTHEST + 1, 100_000])
def test_laws_sum_to_one_however_far(count):
    law = compute_event_count_weights(Horizon(count), keyed=True, traffic=Traffic())
    assert law.sum(axis=1) == pytest.approx(np.ones(len(law)), abs=1e-9)
    assert law.min() >= 0
    assert law.shape[1] <= FARTHEST + 1


@pytest.mark.parametrize("seconds", [1, 3, 20])
def test_a_span_holds_as_many_as_come_at_that_rate(seconds):
    [law] = compute_event_count_weights(Horizon(seconds * 1_000_000, "time"), keyed=False, traffic=TIMED)
    for k in range(20):
        assert law[k] == pytest.approx(exp(-2 * seconds) * (2 * seconds) ** k / factorial(k), abs=1e-12)
    assert law.sum() == pytest.approx(1)


def test_a_very_long_span_is_as_far_as_is_looked():
    [law] = compute_event_count_weights(Horizon(10**14, "time"), keyed=False, traffic=TIMED)
    assert law[-1] == pytest.approx(1)


def test_own_events_and_those_of_a_stream_without_keys_are_not_thinned():
    assert compute_event_count_weights(Horizon(5, "own"), keyed=True, traffic=TIMED) is None
    assert compute_event_count_weights(Horizon(5), keyed=False, traffic=TIMED) is None


def test_a_span_needs_times_once_events_were_seen():
    with pytest.raises(td.TidingsError, match="`5 min` needs"):
        require_times(Horizon.of("5 min"), Traffic(seen=4))
    for horizon, traffic in (
        ("5 min", Traffic()),
        ("5 min", TIMED),
        (5, Traffic(seen=4)),
        ("5 own events", Traffic(4)),
    ):
        require_times(Horizon.of(horizon), traffic)


@pytest.mark.parametrize("traffic", [Traffic(), Traffic(seen=4)])
def test_where_no_time_has_passed_a_span_holds_about_one_event(traffic):
    [law] = compute_event_count_weights(Horizon.of("5 min"), keyed=False, traffic=traffic)
    assert (law @ np.arange(len(law))) == pytest.approx(1)


def test_a_key_lies_where_its_gaps_say_drawn_towards_the_average():
    gaps = np.array([[4.0, np.nan, 16.0], [4e6, np.nan, 16e6], [3, np.nan, 0], [4.0, np.nan, 9.0], [1e6, np.nan, 9e6]])
    locations = locate_on_grids(gaps, pace=(2.0, 2e6))
    assert locations[0].tolist() == pytest.approx([2 * (0.75 * 2 + 0.25 * 1), 2, 2])
    assert locations[1] == pytest.approx(locations[0] + 2 * np.log2(1e6))


def test_where_a_part_of_the_stream_comes_gaps_in_events_are_longer_but_not_in_time():
    gaps = np.array([[4.0], [4e6], [1e9]])
    whole, half = (locate_on_grids(gaps, pace=(2.0, 2e6), stream_share=share)[:, 0] for share in (1.0, 0.5))
    assert (half - whole).tolist() == pytest.approx([2, 0])


@pytest.mark.parametrize("seconds", [1, 60, 7200])
@pytest.mark.parametrize("column", [0, 5, 40])
def test_a_place_with_its_offset_is_that_of_how_often_a_gap_goes_into_a_span(seconds, column):
    horizon = Horizon(seconds * 1_000_000, "time")
    gap = horizon.amount / MEANS[column]
    place = locate_on_grids(np.array([[1.0], [gap], [1.0]]), pace=(1.0, gap))[1, 0]
    assert place + find_offset(horizon) == pytest.approx(column)
